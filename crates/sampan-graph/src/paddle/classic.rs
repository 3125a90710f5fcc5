//! Programs as `.pdmodel` has them.

use super::program::{Op, Program, Value, Var, VarId};
use super::schema::{self, Kind, Schema, Slot};
use sampan_core::{DType, Error, Result, Tensor};
use sampan_io::pdmodel::{self, Attr, Block, VarKind, dtype_number, dtype_of};
use std::collections::{HashMap, HashSet};

/// The variables that hold shapes: of 32 bits in a `.pdmodel`, until they are cast.
fn short_extents(program: &Program) -> HashSet<VarId> {
    let mut short = HashSet::new();
    for op in &program.ops {
        let sliced = op.schema.name == "slice" && op.var("input").is_ok_and(|v| short.contains(&v));
        if op.schema.name == "shape64" || sliced {
            short.extend(op.results("out"));
        }
    }
    short
}

/// Which ops give something that a `.pdmodel` reads: it lacks some of PIR's arguments.
fn read_ops(program: &Program) -> Vec<bool> {
    let mut needed = vec![false; program.vars.len()];
    program.fetches.iter().for_each(|&v| needed[v] = true);
    let mut read = vec![false; program.ops.len()];
    for (k, op) in program.ops.iter().enumerate().rev() {
        read[k] = op.results.iter().flat_map(|(_, vars)| vars).any(|&v| needed[v]);
        for slot in op.schema.args.iter().filter(|s| read[k] && !s.classic.is_empty()) {
            match op.get(slot.name) {
                Some(Value::Var(v)) => needed[*v] = true,
                Some(Value::Vars(vars)) => vars.iter().for_each(|&v| needed[v] = true),
                _ => {}
            }
        }
    }
    read
}

/// Attributes that a `.pdmodel` wants beside those of the schema.
fn extra(program: &Program, op: &Op, dtype_of_var: &dyn Fn(VarId) -> DType) -> Vec<(&'static str, Attr)> {
    let empty = |name: &str| op.ints(name).is_ok_and(|v| v.is_empty());
    let in_dtype = || op.var("x").map_or(-1, |x| dtype_number(dtype_of_var(x)));
    match op.schema.name {
        "cast" => vec![("in_dtype", Attr::Int(in_dtype()))],
        "mean" | "max" | "min" | "sum" | "any" | "all" => vec![("reduce_all", Attr::Bool(empty("axis")))],
        "tril" | "triu" => vec![("lower", Attr::Bool(op.schema.name == "tril"))],
        "split" => vec![("num", Attr::Int(0))],
        "split_with_num" => vec![("sections", Attr::Ints(vec![]))],
        "strided_slice" => {
            let n = op.ints("axes").map_or(0, |v| v.len());
            vec![("infer_flags", Attr::Ints(vec![1; n])), ("decrease_axis", Attr::Ints(vec![]))]
        }
        "set_value_with_tensor" => {
            let dtype = op.var("x").map_or(5, |x| dtype_number(program.vars[x].dtype));
            vec![("dtype", Attr::Int(dtype)), ("shape", Attr::Longs(vec![1]))]
        }
        "full" => {
            let value = op.float_or("value", 0.0);
            // The number as text, which keeps all its digits.
            vec![("str_value", Attr::Text(format!("{value}"))), ("force_cpu", Attr::Bool(false))]
        }
        "one_hot" => {
            vec![("dtype", Attr::Int(dtype_number(DType::Float32))), ("allow_out_of_range", Attr::Bool(false))]
        }
        "add" | "subtract" | "multiply" | "divide" | "maximum" | "minimum" | "remainder" | "floor_divide"
        | "elementwise_pow" | "equal" | "not_equal" | "less_than" | "less_equal" | "greater_than" | "greater_equal" => {
            vec![("axis", Attr::Int(-1))]
        }
        "hardswish" => {
            vec![("threshold", Attr::Float(6.0)), ("scale", Attr::Float(6.0)), ("offset", Attr::Float(3.0))]
        }
        _ => vec![],
    }
}

/// A plain value as an attribute.
fn to_attr(kind: Kind, value: &Value) -> Option<Attr> {
    Some(match (kind, value) {
        (Kind::Bool, Value::Bool(b)) => Attr::Bool(*b),
        (Kind::Int32 | Kind::Int32Tensor, Value::Int(i)) => Attr::Int(*i),
        (Kind::Int64 | Kind::Int64Tensor, Value::Int(i)) => Attr::Long(*i),
        (Kind::Float32 | Kind::FloatTensor, Value::Float(f)) => Attr::Float(*f),
        (Kind::Float32 | Kind::FloatTensor, Value::Int(i)) => Attr::Float(*i as f64),
        (Kind::Text, Value::Text(t)) => Attr::Text(t.clone()),
        (Kind::DType, Value::DType(d)) => Attr::Int(d.map_or(-1, dtype_number)),
        (Kind::Int32s | Kind::Int64s { long: false } | Kind::Shape { long: false }, Value::Ints(v)) => {
            Attr::Ints(v.iter().map(|&v| v.clamp(i32::MIN.into(), i32::MAX.into())).collect())
        }
        (Kind::Int64s { long: true } | Kind::Shape { long: true }, Value::Ints(v)) => Attr::Longs(v.clone()),
        (Kind::Float32s, Value::Floats(v)) => Attr::Floats(v.clone()),
        _ => return None,
    })
}

/// The program as a file has it; `unused` gets a variable for each result that nobody reads.
pub(crate) fn encode(program: &Program) -> Result<pdmodel::Program> {
    let mut block = Block { parent: -1, ..Block::default() };
    let name = |v: &VarId| program.vars[*v].name.clone();
    let plain = |name: &str, kind| pdmodel::Var {
        name: name.into(),
        kind,
        persistable: true,
        stop_gradient: false,
        is_parameter: false,
    };
    block.vars.extend([plain("feed", VarKind::Feed), plain("fetch", VarKind::Fetch)]);
    let short = short_extents(program);
    let dtype_of_var = |v: VarId| if short.contains(&v) { DType::Int32 } else { program.vars[v].dtype };
    for (i, v) in program.vars.iter().enumerate() {
        block.vars.push(pdmodel::Var {
            name: v.name.clone(),
            kind: VarKind::Tensor { dtype: Some(dtype_of_var(i)), dims: v.dims.clone() },
            persistable: v.weight,
            stop_gradient: v.stop_gradient,
            is_parameter: v.weight && v.trainable,
        });
    }
    let edge = |kind: &str, from: String, to: String, col: usize| pdmodel::Op {
        kind: kind.into(),
        inputs: vec![("X".into(), vec![from])],
        outputs: vec![("Out".into(), vec![to])],
        attrs: vec![("col".into(), Attr::Int(col as i64))],
    };
    // The last one first, as Paddle puts them; some readers count on it.
    for (i, v) in program.feeds.iter().enumerate().rev() {
        block.ops.push(edge("feed", "feed".into(), name(v), i));
    }
    let read = read_ops(program);
    for (k, op) in program.ops.iter().enumerate().filter(|(k, _)| read[*k]) {
        let mut out = pdmodel::Op { kind: op.schema.classic.into(), ..pdmodel::Op::default() };
        for Slot { name: arg, classic, kind, tensors, .. } in &op.schema.args {
            match op.get(arg) {
                _ if classic.is_empty() => {}
                None => {}
                Some(Value::Var(v)) => out.inputs.push((classic.to_string(), vec![name(v)])),
                Some(Value::Vars(v)) if kind.is_tensor() => {
                    out.inputs.push((classic.to_string(), v.iter().map(name).collect()));
                }
                Some(Value::Vars(v)) => {
                    let slot = tensors.ok_or_else(|| not_written(op, arg))?;
                    out.inputs.push((slot.to_string(), v.iter().map(name).collect()));
                    // Readers count the numbers there, and take the tensors.
                    let numbers = vec![-1; v.len()];
                    let long = *kind == Kind::Shape { long: true };
                    let numbers = if long { Attr::Longs(numbers) } else { Attr::Ints(numbers) };
                    out.attrs.push((classic.to_string(), numbers));
                }
                Some(value) => {
                    let attr = to_attr(*kind, value).ok_or_else(|| not_written(op, arg))?;
                    out.attrs.push((classic.to_string(), attr));
                }
            }
        }
        for Slot { name: result, classic, .. } in &op.schema.results {
            let vars = op.results(result);
            // Running statistics are written where they are read.
            let kept = match (op.schema.name, *result) {
                ("batch_norm_", "mean_out") => Some(op.var("mean")?),
                ("batch_norm_", "variance_out") => Some(op.var("variance")?),
                _ => None,
            };
            if let Some(kept) = kept {
                out.outputs.push((classic.to_string(), vec![name(&kept)]));
            } else if !vars.is_empty() {
                out.outputs.push((classic.to_string(), vars.iter().map(name).collect()));
            } else if !result.is_empty() {
                // A result that nobody reads still has a name, if it is one that PIR knows too.
                let unread = format!("{}_{k}.{}", op.schema.name, classic.to_lowercase());
                let bytes = matches!(*classic, "Mask" | "DropoutState");
                let dtype = Some(if bytes { DType::UInt8 } else { DType::Float32 });
                let kind = VarKind::Tensor { dtype, dims: vec![] };
                block.vars.push(pdmodel::Var { persistable: false, stop_gradient: true, ..plain(&unread, kind) });
                out.outputs.push((classic.to_string(), vec![unread]));
            }
        }
        out.attrs.extend(extra(program, op, &dtype_of_var).into_iter().map(|(n, a)| (n.to_string(), a)));
        block.ops.push(out);
    }
    for (i, v) in program.fetches.iter().enumerate() {
        block.ops.push(edge("fetch", name(v), "fetch".into(), i));
    }
    Ok(pdmodel::Program { blocks: vec![block] })
}

fn not_written(op: &Op, arg: &str) -> Error {
    Error::invalid(format!("{}: argument `{arg}` cannot be written", op.schema.name)).in_op("save")
}

fn not_read(message: String) -> Error {
    Error::new(sampan_core::error::Kind::Unimplemented, message).in_op("load")
}

fn from_attr(kind: Kind, attr: &Attr) -> Option<Value> {
    Some(match attr {
        Attr::Int(i) | Attr::Long(i) if kind == Kind::DType => Value::DType(dtype_of(*i)),
        Attr::Int(i) | Attr::Long(i) if kind == Kind::Bool => Value::Bool(*i != 0),
        Attr::Int(i) | Attr::Long(i) => Value::Int(*i),
        Attr::Float(f) | Attr::Float64(f) => Value::Float(*f),
        Attr::Text(t) => Value::Text(t.clone()),
        Attr::Ints(v) | Attr::Longs(v) => Value::Ints(v.clone()),
        Attr::Floats(v) | Attr::Float64s(v) => Value::Floats(v.clone()),
        Attr::Bool(b) => Value::Bool(*b),
        Attr::Texts(_) | Attr::Bools(_) | Attr::Block(_) | Attr::Unknown(_) => return None,
    })
}

/// Reads a program.
pub(crate) fn decode(file: &pdmodel::Program) -> Result<Program> {
    if file.blocks.len() != 1 {
        let ops = file.blocks[0].ops.iter().filter(|op| op.attrs.iter().any(|(_, a)| matches!(a, Attr::Block(_))));
        let names = ops.map(|op| op.kind.as_str()).collect::<Vec<_>>().join(", ");
        return Err(not_read(format!("the program branches ({names}), which is not read yet")));
    }
    let block = &file.blocks[0];
    let mut program = Program::default();
    let mut names = HashMap::new();
    for v in &block.vars {
        let VarKind::Tensor { dtype, dims } = &v.kind else { continue };
        let dtype = match dtype {
            Some(dtype) => *dtype,
            None if v.persistable => return Err(not_read(format!("`{}` has a dtype that sampan lacks", v.name))),
            None => DType::Float32,
        };
        names.insert(v.name.as_str(), program.vars.len());
        program.vars.push(Var {
            name: v.name.clone(),
            dims: dims.clone(),
            dtype,
            weight: v.persistable,
            trainable: v.persistable && !v.stop_gradient,
            stop_gradient: v.stop_gradient,
        });
    }
    let var = |name: &String| {
        names
            .get(name.as_str())
            .copied()
            .ok_or_else(|| Error::invalid(format!("`{name}` is not declared")).in_op("load"))
    };
    let vars = |list: &[String]| list.iter().map(var).collect::<Result<Vec<_>>>();
    let mut edges = [Vec::new(), Vec::new()];
    for op in &block.ops {
        match op.kind.as_str() {
            "feed" | "fetch" => {
                let feeds = op.kind == "feed";
                let col = op.attr("col").and_then(|a| if let Attr::Int(i) = a { Some(*i) } else { None }).unwrap_or(0);
                let end = if feeds { op.output("Out") } else { op.input("X") };
                edges[usize::from(!feeds)].extend(vars(end)?.into_iter().map(|v| (col, v)));
            }
            "assign_value" => {
                let tensor = assigned(op)?;
                program.constants.extend(vars(op.output("Out"))?.into_iter().map(|v| (v, tensor.clone())));
            }
            _ => {
                let mut read = read_op(op, &vars)?;
                align_axis(op, &mut read, &mut program)?;
                program.ops.push(read);
            }
        }
    }
    for list in &mut edges {
        list.sort_by_key(|(col, _)| *col);
    }
    let [feeds, fetches] = edges.map(|list| list.into_iter().map(|(_, v)| v).collect());
    (program.feeds, program.fetches) = (feeds, fetches);
    Ok(program)
}

/// The op of the schema, where a type stands for several.
fn schema_of(op: &pdmodel::Op) -> Result<&'static Schema> {
    let flag = |name: &str| matches!(op.attr(name), Some(Attr::Bool(true)));
    let wanted = match op.kind.as_str() {
        "tril_triu" => Some(if flag("lower") { "tril" } else { "triu" }),
        "split" => match op.attr("num") {
            Some(Attr::Int(n)) if *n > 0 => Some("split_with_num"),
            _ => Some("split"),
        },
        // Older names of the same.
        "matmul" | "mul" => return Err(not_read(format!("`{}`, an op of Paddle 1", op.kind))),
        "reduce_mean" | "mean" => Some("mean"),
        "flatten2" => return Err(not_read("`flatten2`, an op of Paddle 1".into())),
        "not_equal" => Some("not_equal"),
        _ => None,
    };
    let found = match wanted {
        Some(name) => schema::find(name),
        None => schema::find_classic(&op.kind).next(),
    };
    found.ok_or_else(|| {
        not_read(format!("the program calls `{}`, which has no counterpart here yet", op.kind))
            .hint("the network's code runs as it is; load its parameters with set_state_dict")
    })
}

fn read_op(op: &pdmodel::Op, vars: &dyn Fn(&[String]) -> Result<Vec<VarId>>) -> Result<Op> {
    let schema = schema_of(op)?;
    let mut args = Vec::new();
    for slot in &schema.args {
        let given = op.input(slot.classic);
        let tensors = slot.tensors.map_or(&[][..], |s| op.input(s));
        // One tensor that holds all the numbers: `Shape`, `StartsTensor` …
        let whole = slot.tensors.map_or(&[][..], |s| match s {
            "ShapeTensor" | "expand_shapes_tensor" => op.input("Shape"),
            "ShapeTensorList" => op.input("ShapeTensor"),
            "repeat_times_tensor" => op.input("RepeatTimes"),
            other => op.input(other.strip_suffix("List").unwrap_or("")),
        });
        let value = if slot.kind.is_tensor() {
            match slot.kind {
                _ if given.is_empty() => None,
                Kind::Tensors => Some(Value::Vars(vars(given)?)),
                _ => Some(Value::Var(vars(given)?[0])),
            }
        } else if !whole.is_empty() {
            Some(Value::Var(vars(whole)?[0]))
        } else if !tensors.is_empty() {
            Some(Value::Vars(vars(tensors)?))
        } else {
            op.attr(slot.classic).and_then(|a| from_attr(slot.kind, a))
        };
        args.extend(value.map(|v| (slot.name, v)));
    }
    if matches!(op.attr("reduce_all"), Some(Attr::Bool(true))) && schema.arg("axis").is_some() {
        args.retain(|(n, _)| *n != "axis");
        args.push(("axis", Value::Ints(vec![])));
    }
    if op.kind == "fill_constant" {
        let text = op.attr("str_value").and_then(|a| if let Attr::Text(t) = a { Some(t.as_str()) } else { None });
        if let Some(value) = text.filter(|t| !t.is_empty()).and_then(number) {
            args.retain(|(n, _)| *n != "value");
            args.push(("value", Value::Float(value)));
        }
    }
    let result = |s: &'static Slot| Ok((s.name, vars(op.output(s.classic))?));
    let results = schema.results.iter().filter(|s| !s.name.is_empty()).map(result).collect::<Result<_>>()?;
    Ok(Op { schema, args, results })
}

/// Paddle 2 says where the axes of `y` lie among those of `x`; others match them from the last.
fn align_axis(file: &pdmodel::Op, op: &mut Op, program: &mut Program) -> Result<()> {
    let Some(Attr::Int(axis @ 0..)) = file.attr("axis").filter(|_| file.kind.starts_with("elementwise_")) else {
        return Ok(());
    };
    let (x, y) = (op.var("x")?, op.var("y")?);
    let (rank, own) = (program.vars[x].dims.len() as i64, program.vars[y].dims.len() as i64);
    let behind = rank - own - axis;
    if behind <= 0 || behind > 64 {
        return Ok(());
    }
    let mut var = program.vars[y].clone();
    (var.weight, var.trainable, var.name) = (false, false, format!("{}@{axis}", var.name));
    var.dims.extend(std::iter::repeat_n(1, behind as usize));
    program.vars.push(var);
    let wide = program.vars.len() - 1;
    let schema = schema::find("unsqueeze").expect("it is in the table");
    let args = vec![("x", Value::Var(y)), ("axis", Value::Ints((own..own + behind).collect()))];
    program.ops.push(Op { schema, args, results: vec![("out", vec![wide])] });
    op.args.retain(|(n, _)| *n != "y");
    op.args.push(("y", Value::Var(wide)));
    Ok(())
}

/// A number as Paddle writes it, `inf` and `nan` included.
fn number(text: &str) -> Option<f64> {
    match text {
        "True" | "true" => Some(1.0),
        "False" | "false" => Some(0.0),
        other => other.parse().ok(),
    }
}

/// The values of `assign_value`.
fn assigned(op: &pdmodel::Op) -> Result<Tensor> {
    let whole = |name: &str| match op.attr(name) {
        Some(Attr::Ints(v) | Attr::Longs(v)) => v.clone(),
        _ => vec![],
    };
    let real = |name: &str| match op.attr(name) {
        Some(Attr::Floats(v) | Attr::Float64s(v)) => v.clone(),
        _ => vec![],
    };
    let shape = whole("shape").iter().map(|&d| usize::try_from(d).unwrap_or(0)).collect::<Vec<_>>();
    let number = op.attr("dtype").map_or(5, |a| if let Attr::Int(i) = a { *i } else { 5 });
    let dtype = dtype_of(number).ok_or_else(|| not_read(format!("assign_value of Paddle's dtype number {number}")))?;
    let mut values = [whole("int32_values"), whole("int64_values"), whole("bool_values")].concat();
    let reals = [real("fp32_values"), real("fp64_values"), real("values")].concat();
    values.extend(whole("values"));
    constant(&shape, dtype, &values, &reals)
}

/// A tensor of numbers that are written in a program.
pub(crate) fn constant(shape: &[usize], dtype: DType, wholes: &[i64], reals: &[f64]) -> Result<Tensor> {
    let numel = shape.iter().try_fold(1usize, |n, &d| n.checked_mul(d));
    let fits = |len: usize| numel == Some(len);
    let tensor = match (wholes.is_empty(), reals.is_empty()) {
        (false, _) if fits(wholes.len()) => Tensor::from_vec(wholes.to_vec(), shape),
        (_, false) if fits(reals.len()) => Tensor::from_vec(reals.to_vec(), shape),
        (true, true) if fits(0) => Tensor::from_vec(Vec::<f32>::new(), shape),
        _ => {
            let count = wholes.len().max(reals.len());
            return Err(Error::invalid(format!("a constant of shape {shape:?} has {count} values")).in_op("load"));
        }
    };
    tensor.try_cast(dtype)
}
