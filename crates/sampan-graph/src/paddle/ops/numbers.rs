//! Arithmetic of two operands, choices, and tensors made from numbers.

use crate::graph::{Arg, Known};
use crate::paddle::export::{Exporter, Given};
use crate::paddle::import::Importer;
use crate::paddle::program::{Op, Value, VarId};
use sampan_core::{DType, Result, Value as Plain};

/// Ours and Paddle's names, and whether the result has the operands' dtype.
const BINARY: [(&str, &str, bool); 21] = [
    ("add", "add", true),
    ("subtract", "subtract", true),
    ("multiply", "multiply", true),
    ("divide", "divide", true),
    ("maximum", "maximum", true),
    ("minimum", "minimum", true),
    ("pow", "elementwise_pow", true),
    ("floor_divide", "floor_divide", true),
    ("remainder", "remainder", true),
    ("bitwise_and", "bitwise_and", true),
    ("bitwise_or", "bitwise_or", true),
    ("bitwise_xor", "bitwise_xor", true),
    ("equal", "equal", false),
    ("not_equal", "not_equal", false),
    ("less_than", "less_than", false),
    ("less_equal", "less_equal", false),
    ("greater_than", "greater_than", false),
    ("greater_equal", "greater_equal", false),
    ("logical_and", "logical_and", false),
    ("logical_or", "logical_or", false),
    ("logical_xor", "logical_xor", false),
];

/// Is there such a number among the integers of a dtype?
fn holds(dtype: DType, value: i64) -> bool {
    match dtype {
        DType::UInt8 => u8::try_from(value).is_ok(),
        DType::Int8 => i8::try_from(value).is_ok(),
        DType::Int16 => i16::try_from(value).is_ok(),
        DType::Int32 => i32::try_from(value).is_ok(),
        _ => true,
    }
}

/// The dtype in which two operands meet.
fn common(w: &Exporter, call: &Given, arithmetic: bool) -> DType {
    let of = |name: &str| call.id(name).map(|id| w.known(id).dtype);
    if arithmetic {
        return w.known(call.out()).dtype;
    }
    match (of("x"), of("y")) {
        (Some(a), Some(b)) => sampan_core::promote::promote(a, b),
        (Some(a), None) if !a.is_inexact() && matches!(call.plain("y"), Some(Plain::Float(_))) => DType::Float32,
        // A number that the integers of the tensor cannot hold is larger or smaller than all of them.
        (Some(a), None) if matches!(call.plain("y"), Some(Plain::Int(y)) if !holds(a, *y)) => DType::Int64,
        (Some(DType::Bool), None) if !matches!(call.plain("y"), Some(Plain::Bool(_))) => DType::Int64,
        (Some(a), _) => a,
        _ => DType::Float32,
    }
}

/// An operand as a tensor of that dtype.
fn operand(w: &mut Exporter, call: &Given, name: &str, dtype: DType) -> Result<Option<VarId>> {
    Ok(match call.arg(name) {
        Some(Arg::Tensor(id)) => {
            let var = w.var_of(*id)?;
            Some(w.cast(var, dtype)?)
        }
        Some(Arg::Size(size)) => {
            let Value::Vars(vars) = w.sizes(std::slice::from_ref(size))? else { return Ok(None) };
            Some(w.cast(vars[0], dtype)?)
        }
        _ => match call.float(name) {
            // Some of Paddle's kernels do not spread a tensor without axes.
            Some(value) => {
                let shape: &[i64] = if w.known(call.out()).dims.is_empty() { &[] } else { &[1] };
                Some(w.number(value, shape, dtype)?)
            }
            None => None,
        },
    })
}

/// A tensor spread over the extents of the result, as `where` wants it.
fn spread(w: &mut Exporter, var: VarId, like: VarId, known: &Known) -> Result<VarId> {
    let same = w.program.vars[var].dims == crate::paddle::export::dims(known);
    if same {
        return Ok(var);
    }
    let dtype = w.program.vars[var].dtype;
    let zeros = Known { dtype, ..known.clone() };
    let args = vec![("x", Value::Var(like)), ("value", Value::Float(0.0)), ("dtype", Value::DType(Some(dtype)))];
    let zeros = w.emit("full_like", args, &zeros)?;
    let known = Known { dtype, ..known.clone() };
    w.emit("add", vec![("x", Value::Var(var)), ("y", Value::Var(zeros))], &known)
}

pub fn write(w: &mut Exporter, call: &Given) -> Result<bool> {
    let name = call.name();
    let reversed =
        name.strip_prefix('r').filter(|n| matches!(*n, "subtract" | "divide" | "pow" | "floor_divide" | "remainder"));
    if let Some(&(_, theirs, arithmetic)) = BINARY.iter().find(|(ours, ..)| *ours == reversed.unwrap_or(name)) {
        if name == "pow"
            && let Some(y) = call.float("y")
            && w.known(call.out()).dtype == DType::Float32
        {
            let x = operand(w, call, "x", DType::Float32)?.map_or(Value::Int(0), Value::Var);
            w.give("pow", vec![("x", x), ("y", Value::Float(y))], call.out())?;
            return Ok(true);
        }
        let dtype = common(w, call, arithmetic);
        if dtype.is_complex() {
            return Ok(false);
        }
        let (Some(x), Some(y)) = (operand(w, call, "x", dtype)?, operand(w, call, "y", dtype)?) else {
            return Ok(false);
        };
        let (x, y) = if reversed.is_some() { (y, x) } else { (x, y) };
        w.give(theirs, vec![("x", Value::Var(x)), ("y", Value::Var(y))], call.out())?;
        return Ok(true);
    }
    let known = w.known(call.out()).clone();
    match name {
        "neg" => {
            let args = vec![
                ("x", call.tensor(w, "x")?),
                ("scale", Value::Float(-1.0)),
                ("bias", Value::Float(0.0)),
                ("bias_after_scale", Value::Bool(true)),
            ];
            w.give("scale", args, call.out())?;
        }
        "scale" => {
            let Some(scale) = call.float("scale").filter(|_| call.arg("act").is_none()) else { return Ok(false) };
            let args = vec![
                ("x", call.tensor(w, "x")?),
                ("scale", Value::Float(scale)),
                ("bias", Value::Float(call.float("bias").unwrap_or(0.0))),
                ("bias_after_scale", Value::Bool(call.bool("bias_after_scale"))),
            ];
            w.give("scale", args, call.out())?;
        }
        "cast" => {
            w.give("cast", vec![("x", call.tensor(w, "x")?), ("dtype", Value::DType(Some(known.dtype)))], call.out())?
        }
        "clip" => {
            let bound = |name: &str, none: f64| match call.arg(name) {
                None => Some(none),
                Some(_) => call.float(name),
            };
            let (low, high) = (bound("min", f64::from(f32::MIN)), bound("max", f64::from(f32::MAX)));
            let (Some(low), Some(high)) = (low, high) else { return Ok(false) };
            w.give(
                "clip",
                vec![("x", call.tensor(w, "x")?), ("min", Value::Float(low)), ("max", Value::Float(high))],
                call.out(),
            )?;
        }
        "where_cond" => {
            let (Some(c), Some(x), Some(y)) =
                (call.id("condition"), operand(w, call, "x", known.dtype)?, operand(w, call, "y", known.dtype)?)
            else {
                return Ok(false);
            };
            let full = w.known(c).dims == known.dims;
            if !full || known.dtype == DType::Bool {
                return Ok(false);
            }
            let condition = w.var_of(c)?;
            let (x, y) = (spread(w, x, condition, &known)?, spread(w, y, condition, &known)?);
            w.give(
                "where",
                vec![("condition", Value::Var(condition)), ("x", Value::Var(x)), ("y", Value::Var(y))],
                call.out(),
            )?;
        }
        "zeros" | "ones" | "full" | "empty" => {
            let value = match name {
                "full" => match call.arg("fill_value") {
                    Some(Arg::Size(size)) => size.as_fixed().map(|n| n as f64),
                    _ => call.float("fill_value"),
                },
                "ones" => Some(1.0),
                _ => Some(0.0),
            };
            if let (Some(Arg::Size(size)), Some([1]), None) =
                (call.arg("fill_value"), call.ints("shape").as_deref(), value)
            {
                let var = w.size(size)?;
                let var = w.cast(var, known.dtype)?;
                w.bind(call.out(), var);
                return Ok(true);
            }
            let (Some(value), Some(shape)) = (value, call.sizes("shape")) else { return Ok(false) };
            let shape = w.sizes(&shape)?;
            let args =
                vec![("shape", shape), ("value", Value::Float(value)), ("dtype", Value::DType(Some(known.dtype)))];
            w.give("full", args, call.out())?;
        }
        "zeros_like" | "ones_like" | "full_like" => {
            let value = match name {
                "full_like" => call.float("fill_value"),
                "ones_like" => Some(1.0),
                _ => Some(0.0),
            };
            let Some(value) = value else { return Ok(false) };
            let args = vec![
                ("x", call.tensor(w, "x")?),
                ("value", Value::Float(value)),
                ("dtype", Value::DType(Some(known.dtype))),
            ];
            w.give("full_like", args, call.out())?;
        }
        "arange" => {
            let (mut start, mut end) = (call.arg("start").cloned(), call.arg("end").cloned());
            if end.is_none() {
                (start, end) = (Some(Arg::Plain(Plain::Int(0))), start);
            }
            let one = |w: &mut Exporter, arg: Option<Arg>, default: f64| -> Result<Option<VarId>> {
                Ok(match arg {
                    Some(Arg::Size(size)) => {
                        let Value::Vars(vars) = w.sizes(&[size])? else { return Ok(None) };
                        Some(w.cast(vars[0], known.dtype)?)
                    }
                    Some(Arg::Plain(Plain::Int(i))) => Some(w.number(i as f64, &[1], known.dtype)?),
                    Some(Arg::Plain(Plain::Float(f))) => Some(w.number(f, &[1], known.dtype)?),
                    None => Some(w.number(default, &[1], known.dtype)?),
                    _ => None,
                })
            };
            let (start, end) = (one(w, start, 0.0)?, one(w, end, 0.0)?);
            let step = one(w, call.arg("step").cloned(), 1.0)?;
            let (Some(start), Some(end), Some(step)) = (start, end, step) else { return Ok(false) };
            let args = vec![
                ("start", Value::Var(start)),
                ("end", Value::Var(end)),
                ("step", Value::Var(step)),
                ("dtype", Value::DType(Some(known.dtype))),
            ];
            w.give("arange", args, call.out())?;
        }
        "one_hot" => {
            let Some(n) = call.int("num_classes").filter(|n| *n > 0) else { return Ok(false) };
            w.give("one_hot", vec![("x", call.tensor(w, "x")?), ("num_classes", Value::Int(n))], call.out())?;
        }
        "softmax" | "log_softmax" => {
            let x = call.id("x").map(|id| w.var_of(id)).transpose()?;
            let Some(x) = x else { return Ok(false) };
            let x = w.cast(x, known.dtype)?;
            let theirs = if name == "softmax" { "softmax" } else { "log_softmax" };
            w.give(
                theirs,
                vec![("x", Value::Var(x)), ("axis", Value::Int(call.int("axis").unwrap_or(-1)))],
                call.out(),
            )?;
        }
        "gelu" => {
            let tanh = call.bool("approximate") || call.text("approximate") == Some("tanh");
            w.give("gelu", vec![("x", call.tensor(w, "x")?), ("approximate", Value::Bool(tanh))], call.out())?;
        }
        _ => return Ok(false),
    }
    Ok(true)
}

pub fn read(r: &mut Importer, op: &Op) -> Result<bool> {
    let name = op.schema.name;
    if let Some(&(ours, ..)) = BINARY.iter().find(|(_, theirs, _)| *theirs == name) {
        if r.symbolic(op)? {
            return Ok(true);
        }
        let (x, y) = (r.id(op.var("x")?)?, r.id(op.var("y")?)?);
        r.call(ours, vec![("x", Arg::Tensor(x)), ("y", Arg::Tensor(y))], &[op.first_result()?])?;
        return Ok(true);
    }
    let out = [op.first_result()?];
    let x = |r: &mut Importer| Ok::<_, sampan_core::Error>(("x", Arg::Tensor(r.id(op.var("x")?)?)));
    match name {
        "pow" => {
            let args = vec![x(r)?, ("y", Arg::Plain(Plain::Float(op.float("y")?)))];
            r.call("pow", args, &out)?;
        }
        "increment" => {
            let by = Arg::Plain(Plain::Float(op.float_or("value", 1.0)));
            let args = vec![x(r)?, ("bias", by)];
            r.call("scale", args, &out)?;
        }
        "scale" => {
            if r.symbolic(op)? {
                return Ok(true);
            }
            let scale = match op.var_or_none("scale") {
                Some(v) => Arg::Tensor(r.id(v)?),
                None => Arg::Plain(Plain::Float(op.float("scale")?)),
            };
            let bias = Arg::Plain(Plain::Float(op.float_or("bias", 0.0)));
            let after = Arg::Plain(Plain::Bool(op.bool("bias_after_scale", true)));
            let args = vec![x(r)?, ("scale", scale), ("bias", bias), ("bias_after_scale", after)];
            r.call("scale", args, &out)?;
        }
        "cast" => {
            if r.symbolic(op)? {
                return Ok(true);
            }
            let dtype = op.dtype("dtype").unwrap_or(r.program.vars[out[0]].dtype);
            let args = vec![x(r)?, ("dtype", Arg::Plain(Plain::DType(dtype)))];
            r.call("cast", args, &out)?;
        }
        "clip" => {
            let mut args = vec![x(r)?];
            let whole = !r.program.vars[out[0]].dtype.is_inexact();
            for bound in ["min", "max"] {
                let value = match op.var_or_none(bound) {
                    Some(v) => Arg::Tensor(r.id(v)?),
                    // Whole numbers stay whole.
                    None if whole => Arg::Plain(Plain::Int(op.float(bound)? as i64)),
                    None => Arg::Plain(Plain::Float(op.float(bound)?)),
                };
                args.push((bound, value));
            }
            r.call("clip", args, &out)?;
        }
        "where" => {
            let tensors = ["condition", "x", "y"].map(|n| (n, op.var(n)));
            let mut args = Vec::new();
            for (n, var) in tensors {
                args.push((n, Arg::Tensor(r.id(var?)?)));
            }
            r.call("where_cond", args, &out)?;
        }
        "full" => {
            let dtype = r.program.vars[out[0]].dtype;
            let value = op.float("value")?;
            let whole = !dtype.is_inexact() && value.fract() == 0.0;
            let number = if whole { Plain::Int(value as i64) } else { Plain::Float(value) };
            r.note_number(out[0], op, value)?;
            let shape = r.sizes(op, "shape")?;
            let args =
                vec![("shape", shape), ("fill_value", Arg::Plain(number)), ("dtype", Arg::Plain(Plain::DType(dtype)))];
            r.call("full", args, &out)?;
        }
        "full_batch_size_like" => {
            let (from, to) = (op.int("input_dim_idx").unwrap_or(0), op.int("output_dim_idx").unwrap_or(0));
            let shape = r.batch_like(op.var("input")?, op.ints("shape")?, from, to)?;
            let value = Arg::Plain(Plain::Float(op.float("value")?));
            let dtype = r.program.vars[out[0]].dtype;
            r.call(
                "full",
                vec![("shape", shape), ("fill_value", value), ("dtype", Arg::Plain(Plain::DType(dtype)))],
                &out,
            )?;
        }
        "full_like" => {
            let dtype = r.program.vars[out[0]].dtype;
            let value = Arg::Plain(Plain::Float(op.float("value")?));
            let args = vec![x(r)?, ("fill_value", value), ("dtype", Arg::Plain(Plain::DType(dtype)))];
            r.call("full_like", args, &out)?;
        }
        "arange" => {
            let mut args = vec![("dtype", Arg::Plain(Plain::DType(r.program.vars[out[0]].dtype)))];
            for (theirs, ours) in [("start", "start"), ("end", "end"), ("step", "step")] {
                args.push((ours, r.scalar(op.var(theirs)?)?));
            }
            r.call("arange", args, &out)?;
        }
        "one_hot" => {
            let args = vec![x(r)?, ("num_classes", Arg::Plain(Plain::Int(op.int("num_classes")?)))];
            r.call("one_hot", args, &out)?;
        }
        "softmax" | "log_softmax" => {
            let args = vec![x(r)?, ("axis", Arg::Plain(Plain::Int(op.int("axis").unwrap_or(-1))))];
            r.call(name, args, &out)?;
        }
        "gelu" => {
            let args = vec![x(r)?, ("approximate", Arg::Plain(Plain::Bool(op.bool("approximate", false))))];
            r.call("gelu", args, &out)?;
        }
        "label_smooth" => {
            let label = r.id(op.var("label")?)?;
            let epsilon = Arg::Plain(Plain::Float(op.float("epsilon")?));
            r.call("label_smooth", vec![("label", Arg::Tensor(label)), ("epsilon", epsilon)], &out)?;
        }
        _ => return Ok(false),
    }
    Ok(true)
}
