//! What `help` shows: text of the registry, arguments with their types, and an example made from a sample call.

use crate::op::{literal, module_name, text_signature};
use sampan_core::dispatch::dispatch;
use sampan_core::op::{Kind, OpDef, Param, Returns};
use sampan_core::{DType, Tensor, Value};

/// A parameter's type as a Python annotation.
pub fn annotation(p: &Param) -> String {
    let base = match p.kind {
        Kind::Tensor => "Tensor",
        Kind::Tensors => "Sequence[Tensor]",
        Kind::Operand => "Tensor | float",
        Kind::Int => "int",
        Kind::Float => "float",
        Kind::Bool => "bool",
        Kind::Str => "str",
        Kind::DType => "DTypeLike",
        Kind::Ints => "int | Sequence[int] | Tensor",
        Kind::Floats => "float | Sequence[float]",
        Kind::Scalar => "float | bool",
        Kind::Any => return "Any".into(),
    };
    let none = p.optional || p.default.is_some_and(|d| matches!(d(), Value::None));
    if none { format!("{base} | None") } else { base.into() }
}

/// What a call gives, as a Python annotation.
pub fn result(returns: Returns) -> String {
    match returns {
        Returns::One => "Tensor".into(),
        Returns::Tuple(n) => format!("tuple[{}]", vec!["Tensor"; n].join(", ")),
        Returns::List => "list[Tensor]".into(),
        Returns::Varying => "Any".into(),
    }
}

/// The text without its examples, which are Rust.
pub fn prose(doc: &str) -> String {
    let mut out = Vec::new();
    let mut code = false;
    for line in doc.lines() {
        let line = line.strip_prefix(' ').unwrap_or(line);
        if line.trim_start().starts_with("```") {
            code = !code;
        } else if !code {
            out.push(line.trim_end());
        }
    }
    out.join("\n").trim().to_string()
}

/// The arguments, one a line.
pub fn arguments(params: &[Param], aliases: &[(&str, &str)]) -> String {
    let line = |p: &Param| {
        let default = p.default.map(|d| format!(", default {}", literal(&d()))).unwrap_or_default();
        let also: Vec<&str> = aliases.iter().filter(|(_, n)| *n == p.name).map(|(a, _)| *a).collect();
        let also = if also.is_empty() { String::new() } else { format!("; also called {}", also.join(", ")) };
        format!("    {} ({}{default}){also}", p.name, annotation(p))
    };
    params.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// The whole text of an op.
pub fn of_op(def: &'static OpDef, name: &str) -> String {
    let mut parts = vec![format!("{name}{}", text_signature(def.params)), prose(def.doc)];
    if !def.params.is_empty() {
        parts.push(format!("Args:\n{}", arguments(def.params, def.aliases)));
    }
    parts.push(format!("Returns:\n    {}", result(def.returns)));
    if def.inplace && !name.ends_with('_') {
        parts.push(format!("`{name}_` writes the result into the first argument."));
    }
    if let Some(example) = example(def) {
        parts.push(format!("Example:\n{example}"));
    }
    parts.join("\n\n")
}

/// A tensor of one decimal place.
fn short(t: &Tensor) -> Tensor {
    match t.dtype() {
        DType::Float32 | DType::Float64 => {
            let rounded: Vec<f64> = t.to_f64_vec().iter().map(|v| (v * 10.0).round() / 10.0).collect();
            Tensor::try_from_slice(&rounded, t.shape())
                .and_then(|r| r.try_cast(t.dtype()))
                .unwrap_or_else(|_| t.clone())
        }
        _ => t.clone(),
    }
}

/// A value as Python code, if it is short enough to read.
fn code(v: &Value) -> Option<String> {
    match v {
        Value::Tensor(t) if t.dtype().is_complex() => None,
        Value::Tensor(t) if t.numel() <= 12 && t.numel() > 0 && t.to_f64_vec().iter().all(|v| v.is_finite()) => {
            let item = |i: usize| match t.dtype() {
                DType::Bool => (if t.to_f64_vec()[i] != 0.0 { "True" } else { "False" }).to_string(),
                d if d.is_float() => format!("{:?}", (t.to_f64_vec()[i] * 10.0).round() / 10.0),
                _ => format!("{}", t.to_f64_vec()[i] as i64),
            };
            fn level(shape: &[usize], at: &mut usize, item: &dyn Fn(usize) -> String) -> String {
                match shape {
                    [] => {
                        *at += 1;
                        item(*at - 1)
                    }
                    [n, rest @ ..] => {
                        format!("[{}]", (0..*n).map(|_| level(rest, at, item)).collect::<Vec<_>>().join(", "))
                    }
                }
            }
            let natural = matches!(t.dtype(), DType::Float32 | DType::Int64 | DType::Bool);
            let dtype = if natural { String::new() } else { format!(", '{}'", t.dtype().name()) };
            Some(format!("sampan.to_tensor({}{dtype})", level(t.shape(), &mut 0, &item)))
        }
        Value::Tensor(_) | Value::Object(_) | Value::Dict(_) => None,
        Value::Tensors(ts) => {
            let each: Option<Vec<String>> = ts.iter().map(|t| code(&Value::Tensor(t.clone()))).collect();
            each.map(|e| format!("[{}]", e.join(", ")))
        }
        Value::List(vs) => {
            let each: Option<Vec<String>> = vs.iter().map(code).collect();
            each.map(|e| format!("[{}]", e.join(", ")))
        }
        other => Some(literal(other)),
    }
}

/// The first sample call that is short enough, with its result.
fn example(def: &'static OpDef) -> Option<String> {
    // What is random or unspecified is another one every time.
    let fleeting = def.random || def.peer.is_some_and(|p| p.starts_with("none: unspecified"));
    if def.returns != Returns::One || def.module == "_C_ops" || def.name.ends_with('_') || fleeting {
        return None;
    }
    (def.samples?)().into_iter().take(4).find_map(|mut sample| {
        for v in sample.positional.iter_mut().chain(sample.named.iter_mut().map(|(_, v)| v)) {
            v.map_tensors(&mut |t| Ok(short(t))).ok()?;
        }
        let mut args: Vec<String> = sample.positional.iter().map(code).collect::<Option<_>>()?;
        for (name, v) in &sample.named {
            args.push(format!("{name}={}", code(v)?));
        }
        let outputs = dispatch(def, sample.bind(def).ok()?).ok()?;
        let [out] = outputs.as_slice() else { return None };
        // An empty line, as three axes need it, would end an example.
        if out.numel() > 12 || out.numel() == 0 || out.ndim() > 2 {
            return None;
        }
        let call = format!("{}.{}({})", module_name(def.module), def.name, args.join(", "));
        let import = if def.module.is_empty() {
            "import sampan".to_string()
        } else {
            format!("import sampan, {}", module_name(def.module))
        };
        let shown = format!("{:?}", out.detach()).lines().map(|l| format!("    {l}")).collect::<Vec<_>>().join("\n");
        Some(format!("    >>> {import}\n    >>> {call}\n{shown}"))
    })
}
