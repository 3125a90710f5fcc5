//! Arithmetic, comparisons, choices and activations.

use crate::given::Given;
use crate::graph::Arg;
use crate::onnx::eval::Item;
use crate::onnx::export::Writer;
use crate::onnx::node::{Call, one, op, shape_of};
use sampan_core::{DType, Result, Tensor, Value as Plain};

/// ONNX's operators of two operands, and ours.
pub(super) const BINARY: [(&str, &str); 15] = [
    ("Add", "add"),
    ("Sub", "subtract"),
    ("Mul", "multiply"),
    ("Equal", "equal"),
    ("Less", "less_than"),
    ("Greater", "greater_than"),
    ("LessOrEqual", "less_equal"),
    ("GreaterOrEqual", "greater_equal"),
    ("And", "logical_and"),
    ("Or", "logical_or"),
    ("Xor", "logical_xor"),
    ("BitwiseAnd", "bitwise_and"),
    ("BitwiseOr", "bitwise_or"),
    ("BitwiseXor", "bitwise_xor"),
    ("Div", "divide"),
];

/// The second operand; early versions say at which axis of the first it begins.
fn second(c: &Call) -> Result<Tensor> {
    let (x, y) = (c.x(0)?, c.x(1)?);
    if c.opset() >= 7 || !c.flag("broadcast") || y.ndim() == 0 {
        return Ok(y.clone());
    }
    let axis = c.int("axis", x.ndim() as i64 - y.ndim() as i64);
    let at = if axis < 0 { axis + x.ndim() as i64 } else { axis }.max(0) as usize;
    let mut shape = shape_of(y);
    shape.resize(x.ndim().saturating_sub(at).max(shape.len()), 1);
    op!("reshape", y, shape)
}

/// Division: whole numbers are cut towards zero.
pub(super) fn divided(x: &Tensor, y: &Tensor) -> Result<Tensor> {
    if x.dtype().is_inexact() {
        return op!("divide", x, y);
    }
    let floor = op!("floor_divide", x, y)?;
    if x.dtype() == DType::UInt8 {
        return Ok(floor);
    }
    let rest = op!("not_equal", op!("multiply", &floor, y)?, x)?;
    let signs = op!("not_equal", op!("less_than", x, 0i64)?, op!("less_than", y, 0i64)?)?;
    op!("add", &floor, op!("cast", op!("logical_and", rest, signs)?, x.dtype())?)
}

/// The remainder of C, with the sign of the dividend, or that of Python.
fn modulo(c: &Call) -> Result<Tensor> {
    let (x, y) = (c.x(0)?, c.x(1)?);
    if !c.flag("fmod") {
        return op!("remainder", x, y);
    }
    let sign = op!("sign", x)?;
    op!("multiply", op!("remainder", op!("abs", x)?, op!("abs", y)?)?, sign)
}

/// One tensor of several by an op of two.
fn folded(c: &Call, name: &str) -> Result<Tensor> {
    let all = c.tensors()?;
    let first = all.first().cloned().ok_or_else(|| c.wrong("it takes at least one input"))?;
    all[1..].iter().try_fold(first, |x, y| op!(name, &x, y))
}

/// Bounds that may be attributes or inputs.
fn clip(c: &Call) -> Result<Tensor> {
    let mut y = c.x(0)?.clone();
    for (i, (attr, name)) in [("min", "maximum"), ("max", "minimum")].into_iter().enumerate() {
        let old = c.attr(attr).map(|_| c.float(attr, 0.0));
        match (old.filter(|_| c.opset() < 11), c.maybe(i + 1)) {
            (Some(bound), _) => y = op!(name, &y, op!("full", [1i64; 0], bound, y.dtype())?)?,
            (None, Some(bound)) => y = op!(name, &y, bound)?,
            (None, None) => {}
        }
    }
    Ok(y)
}

fn gelu(c: &Call) -> Result<Tensor> {
    op!("gelu", c.x(0)?, c.text("approximate", "none") == "tanh")
}

fn shrink(c: &Call) -> Result<Tensor> {
    let (x, bias, lambd) = (c.x(0)?, c.float("bias", 0.0), c.float("lambd", 0.5));
    let dtype = x.dtype();
    let number = |n: f64| op!("full", [1i64; 0], n, dtype);
    let low = op!("cast", op!("add", x, bias)?, dtype)?;
    let high = op!("cast", op!("subtract", x, bias)?, dtype)?;
    let rest = op!("where_cond", op!("greater_than", x, lambd)?, high, number(0.0)?)?;
    op!("where_cond", op!("less_than", x, -lambd)?, low, rest)
}

fn prelu(c: &Call) -> Result<Tensor> {
    let (x, slope) = (c.x(0)?, c.x(1)?);
    let mut slope = slope.clone();
    if c.opset() < 7 && slope.ndim() == 1 && slope.numel() > 1 {
        let mut shape = vec![1; x.ndim()];
        shape[1] = slope.numel() as i64;
        slope = op!("reshape", &slope, shape)?;
    }
    let per_channel = slope.ndim() + 1 == x.ndim() && slope.numel() == slope.shape()[0];
    if x.ndim() > 1 && x.dtype().is_float() && per_channel && slope.numel() == x.shape()[1] {
        return op!("prelu", x, op!("reshape", &slope, [-1i64])?);
    }
    let zero = op!("full", [1i64; 0], 0.0, x.dtype())?;
    op!("where_cond", op!("less_than", x, &zero)?, op!("multiply", x, &slope)?, x)
}

fn is_inf(c: &Call) -> Result<Tensor> {
    let x = c.x(0)?;
    match (c.int("detect_positive", 1) != 0, c.int("detect_negative", 1) != 0) {
        (true, true) => op!("isinf", x),
        (true, false) => op!("isposinf", x),
        (false, true) => op!("isneginf", x),
        (false, false) => op!("full_like", x, false, DType::Bool),
    }
}

fn power(c: &Call) -> Result<Tensor> {
    let (x, y) = (c.x(0)?, second(c)?);
    // The result is of the first one's dtype, whatever the second's is.
    let wide = if x.dtype().is_int() && y.dtype().is_float() { DType::Float64 } else { x.dtype() };
    let y = if y.dtype() == wide { y } else { op!("cast", &y, wide)? };
    let x2 = if x.dtype() == wide { x.clone() } else { op!("cast", x, wide)? };
    let z = op!("pow", x2, y)?;
    if z.dtype() == x.dtype() { Ok(z) } else { op!("cast", z, x.dtype()) }
}

pub fn read(c: &Call) -> Result<Option<Vec<Item>>> {
    let name = c.node.op.as_str();
    if name == "Div" {
        return one(divided(c.x(0)?, &second(c)?)?);
    }
    if let Some((_, ours)) = BINARY.iter().find(|(theirs, _)| *theirs == name) {
        return one(op!(*ours, c.x(0)?, second(c)?)?);
    }
    one(match name {
        "Mod" => modulo(c)?,
        "Pow" => power(c)?,
        "BitShift" => {
            let left = c.text("direction", "LEFT") == "LEFT";
            let ours = if left { "bitwise_left_shift" } else { "bitwise_right_shift" };
            op!(ours, c.x(0)?, c.x(1)?)?
        }
        "Max" => folded(c, "maximum")?,
        "Min" => folded(c, "minimum")?,
        "Sum" => folded(c, "add")?,
        "Mean" => op!("divide", folded(c, "add")?, c.inputs.len() as f64)?,
        "Where" => op!("where_cond", c.x(0)?, c.x(1)?, c.x(2)?)?,
        "Clip" => clip(c)?,
        "Round" => op!("round", c.x(0)?)?,
        "Gelu" => gelu(c)?,
        "Swish" => {
            let (x, alpha) = (c.x(0)?, c.float("alpha", 1.0));
            if alpha == 1.0 {
                op!("silu", x)?
            } else {
                op!("multiply", x, op!("sigmoid", op!("multiply", x, alpha)?)?)?
            }
        }
        "Softplus" => op!("softplus", c.x(0)?)?,
        "Shrink" => shrink(c)?,
        "PRelu" => prelu(c)?,
        "IsInf" => is_inf(c)?,
        "Cast" => {
            let to = c.dtype("to")?.ok_or_else(|| c.wrong("it does not say to which type"))?;
            if to == c.x(0)?.dtype() { c.x(0)?.clone() } else { op!("cast", c.x(0)?, to)? }
        }
        "CastLike" => op!("cast", c.x(0)?, c.x(1)?.dtype())?,
        _ => return Ok(None),
    })
}

/// An operand as a tensor of that dtype.
fn operand(w: &mut Writer, call: &Given, name: &str, dtype: DType) -> Result<Option<String>> {
    Ok(match call.arg(name) {
        Some(Arg::Tensor(id)) => Some(w.cast_id(*id, dtype)?),
        Some(Arg::Size(size)) => {
            let value = w.size(size)?;
            // A number has no axes, and adds none to the result.
            let none = w.ints(&[])?;
            let value = w.op("Reshape", &[&value, &none]);
            Some(w.cast(value, DType::Int64, dtype))
        }
        _ => call.float(name).map(|value| w.number(value, dtype)).transpose()?,
    })
}

/// The dtype in which two operands are compared.
fn compared(w: &Writer, call: &Given) -> DType {
    let of = |name: &str| call.id(name).map(|id| w.known(id).dtype);
    match (of("x"), of("y")) {
        (Some(a), Some(b)) => sampan_core::promote::promote(a, b),
        (Some(a), None) if !a.is_inexact() && matches!(call.plain("y"), Some(Plain::Float(_))) => DType::Float32,
        (Some(DType::Bool), None) if !matches!(call.plain("y"), Some(Plain::Bool(_))) => DType::Int64,
        (Some(a), _) => a,
        _ => DType::Float32,
    }
}

fn write_pair(w: &mut Writer, call: &Given) -> Result<bool> {
    let name = call.name();
    let reversed =
        name.strip_prefix('r').filter(|n| matches!(*n, "subtract" | "divide" | "pow" | "floor_divide" | "remainder"));
    let name = reversed.unwrap_or(name);
    let out = w.known(call.out()).dtype;
    let truth = matches!(name, "logical_and" | "logical_or" | "logical_xor");
    let dtype = match name {
        "equal" | "not_equal" | "less_than" | "less_equal" | "greater_than" | "greater_equal" => compared(w, call),
        _ if truth => DType::Bool,
        _ => out,
    };
    let known = BINARY.iter().any(|(_, ours)| *ours == name);
    if !known && !matches!(name, "not_equal" | "maximum" | "minimum" | "pow" | "floor_divide" | "remainder") {
        return Ok(false);
    }
    if dtype.is_complex() {
        return Ok(false);
    }
    // Comparisons by size are of numbers.
    let dtype = if dtype == DType::Bool && name.contains("_") && (name.starts_with("less") || name.starts_with("great"))
    {
        DType::Int32
    } else {
        dtype
    };
    let (Some(x), Some(y)) = (operand(w, call, "x", dtype)?, operand(w, call, "y", dtype)?) else { return Ok(false) };
    let (x, y) = if reversed.is_some() { (y, x) } else { (x, y) };
    let result = match name {
        "not_equal" => {
            let same = w.op("Equal", &[&x, &y]);
            w.op("Not", &[&same])
        }
        "maximum" => w.op("Max", &[&x, &y]),
        "minimum" => w.op("Min", &[&x, &y]),
        "pow" => w.op("Pow", &[&x, &y]),
        "remainder" if dtype.is_int() => w.op("Mod", &[&x, &y]),
        "floor_divide" if dtype.is_int() => {
            // Division of whole numbers is cut towards zero; without the remainder there is nothing to cut.
            let rest = w.op("Mod", &[&x, &y]);
            let whole = w.op("Sub", &[&x, &rest]);
            w.op("Div", &[&whole, &y])
        }
        "floor_divide" | "remainder" => {
            let quotient = w.op("Div", &[&x, &y]);
            let floor = w.op("Floor", &[&quotient]);
            if name == "floor_divide" {
                floor
            } else {
                let whole = w.op("Mul", &[&floor, &y]);
                w.op("Sub", &[&x, &whole])
            }
        }
        "bitwise_and" | "bitwise_or" | "bitwise_xor" if dtype == DType::Bool => {
            let theirs = [("bitwise_and", "And"), ("bitwise_or", "Or"), ("bitwise_xor", "Xor")];
            let theirs = theirs.iter().find(|(n, _)| *n == name).map_or("And", |(_, t)| t);
            w.op(theirs, &[&x, &y])
        }
        "bitwise_and" | "bitwise_or" | "bitwise_xor" if w.opset() < 18 => return Ok(false),
        _ => {
            let theirs = BINARY.iter().find(|(_, ours)| *ours == name).map_or("", |(theirs, _)| theirs);
            w.op(theirs, &[&x, &y])
        }
    };
    w.bind(call.out(), result);
    Ok(true)
}

pub fn write(w: &mut Writer, call: &Given) -> Result<bool> {
    if write_pair(w, call)? {
        return Ok(true);
    }
    let out = w.known(call.out()).clone();
    let result = match call.name() {
        "cast" => {
            let Some(id) = call.id("x") else { return Ok(false) };
            w.cast_id(id, out.dtype)?
        }
        "clip" => {
            let mut inputs = vec![];
            for name in ["x", "min", "max"] {
                inputs.push(operand(w, call, name, out.dtype)?.unwrap_or_default());
            }
            w.node("Clip", inputs, vec![])
        }
        "where_cond" | "masked_fill" => {
            let names = if call.name() == "where_cond" { ["condition", "x", "y"] } else { ["mask", "value", "x"] };
            let Some(c) = call.id(names[0]) else { return Ok(false) };
            let c = w.cast_id(c, DType::Bool)?;
            let both = (operand(w, call, names[1], out.dtype)?, operand(w, call, names[2], out.dtype)?);
            let (Some(x), Some(y)) = both else { return Ok(false) };
            w.op("Where", &[&c, &x, &y])
        }
        "prelu" => {
            let (Some(x), Some(weight)) = (call.id("x"), call.id("weight")) else { return Ok(false) };
            if call.text("data_format").is_some_and(|f| f.len() > 2 && f.ends_with('C')) {
                return Ok(false);
            }
            let (rank, n) =
                (w.known(x).dims.len(), w.known(weight).dims.iter().map(|d| d.fixed()).product::<Option<usize>>());
            let (x, mut slope) = (w.name(x)?, w.name(weight)?);
            if n != Some(1) {
                let mut shape = vec![1; rank.saturating_sub(1)];
                if let Some(first) = shape.first_mut() {
                    *first = -1;
                }
                let shape = w.ints(&shape)?;
                slope = w.op("Reshape", &[&slope, &shape]);
            }
            w.op("PRelu", &[&x, &slope])
        }
        name => {
            let Some(id) = call.id("x") else { return Ok(false) };
            let truth = matches!(name, "isinf" | "isfinite");
            let dtype = if truth { w.known(id).dtype } else { out.dtype };
            if !dtype.is_inexact() && !matches!(name, "square" | "scale" | "relu6") || dtype.is_complex() {
                return Ok(false);
            }
            let before = w.state.net.nodes.len();
            let x = w.cast_id(id, dtype)?;
            match super::formulas::formula(w, call, &x, dtype)? {
                Some(y) => y,
                None => {
                    w.state.net.nodes.truncate(before);
                    return Ok(false);
                }
            }
        }
    };
    w.bind(call.out(), result);
    Ok(true)
}
