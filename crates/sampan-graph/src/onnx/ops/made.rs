//! Tensors made from numbers, shapes and chance.

use crate::given::Given;
use crate::graph::Arg;
use crate::onnx::eval::Item;
use crate::onnx::export::Writer;
use crate::onnx::node::{Call, one, op, shape_of};
use sampan_core::{DType, Result, Tensor, Value};
use sampan_io::onnx::model::Attr;

fn constant(c: &Call) -> Result<Tensor> {
    for name in ["value", "value_int", "value_ints", "value_float", "value_floats"] {
        match c.attr(name) {
            Some(Attr::Tensor(t)) => return Ok(t.clone()),
            Some(Attr::Int(i)) => return Tensor::try_from_slice(&[*i], [0usize; 0]),
            Some(Attr::Ints(v)) => return Tensor::try_from_slice(v, [v.len()]),
            Some(Attr::Float(f)) => return Tensor::try_from_slice(&[*f], [0usize; 0]),
            Some(Attr::Floats(v)) => return Tensor::try_from_slice(v, [v.len()]),
            _ => {}
        }
    }
    Err(c.lacking("a constant of text, or a sparse one"))
}

fn constant_of_shape(c: &Call) -> Result<Tensor> {
    let shape = c.numbers(0)?;
    let (value, dtype) = match c.attr("value") {
        Some(Attr::Tensor(t)) => (Value::from(t.try_item()?), t.dtype()),
        _ => (Value::Float(0.0), DType::Float32),
    };
    op!("full", shape, value, dtype)
}

fn range(c: &Call) -> Result<Tensor> {
    let dtype = c.x(0)?.dtype();
    let number = |i| -> Result<Value> {
        let n = c.number(i)?;
        Ok(if dtype.is_float() { Value::Float(n) } else { Value::Int(n as i64) })
    };
    op!("arange", number(0)?, number(1)?, number(2)?, dtype)
}

fn one_hot(c: &Call) -> Result<Tensor> {
    let (indices, depth, values) = (c.x(0)?, c.number(1)? as i64, c.x(2)?);
    let axis = c.int("axis", -1);
    let rank = indices.ndim() as i64 + 1;
    let at = if axis < 0 { axis + rank } else { axis };
    let indices = op!("cast", indices, DType::Int64)?;
    let indices = op!("where_cond", op!("less_than", &indices, 0i64)?, op!("add", &indices, depth)?, &indices)?;
    let mut shape = vec![1; rank as usize];
    *shape.get_mut(at as usize).ok_or_else(|| c.wrong(format!("axis {axis} of {rank} axes")))? = depth;
    let classes = op!("reshape", op!("arange", 0i64, depth, 1i64, DType::Int64)?, shape)?;
    let hit = op!("equal", op!("unsqueeze", indices, at)?, classes)?;
    let of = |i: i64| op!("reshape", op!("slice", values, [0i64], [i], [i + 1])?, [0i64; 0]);
    op!("where_cond", hit, of(1)?, of(0)?)
}

fn eye_like(c: &Call) -> Result<Tensor> {
    let (x, k) = (c.x(0)?, c.int("k", 0));
    let dtype = c.dtype("dtype")?.unwrap_or(x.dtype());
    let [rows, columns] = shape_of(x)[..] else { return Err(c.wrong("it takes a matrix")) };
    let (i, j) = (op!("arange", 0i64, rows, 1i64)?, op!("arange", 0i64, columns, 1i64)?);
    let hit = op!("equal", op!("unsqueeze", op!("add", i, k)?, 1i64)?, op!("unsqueeze", j, 0i64)?)?;
    op!("cast", hit, dtype)
}

/// Random numbers in a shape that an attribute or an input has.
fn random(c: &Call, like: bool, normal: bool) -> Result<Tensor> {
    let shape = if like { shape_of(c.x(0)?) } else { c.ints("shape").unwrap_or_default() };
    let dtype = match c.dtype("dtype")? {
        Some(dtype) => dtype,
        None if like => c.x(0)?.dtype(),
        None => DType::Float32,
    };
    let made = match normal {
        true => op!("gaussian", shape, c.float("mean", 0.0), c.float("scale", 1.0))?,
        false => op!("uniform", shape; min = c.float("low", 0.0), max = c.float("high", 1.0))?,
    };
    op!("cast", made, dtype)
}

fn trilu(c: &Call) -> Result<Tensor> {
    let k = if c.maybe(1).is_some() { c.number(1)? as i64 } else { 0 };
    let (x, upper) = (c.x(0)?, c.int("upper", 1) != 0);
    if x.numel() == 0 {
        return Ok(x.clone());
    }
    let name = if upper { "triu" } else { "tril" };
    op!(name, x, k)
}

pub fn read(c: &Call) -> Result<Option<Vec<Item>>> {
    one(match c.node.op.as_str() {
        "Constant" => constant(c)?,
        "ConstantOfShape" => constant_of_shape(c)?,
        "Range" => range(c)?,
        "OneHot" => one_hot(c)?,
        "EyeLike" => eye_like(c)?,
        "Trilu" => trilu(c)?,
        "RandomNormal" => random(c, false, true)?,
        "RandomNormalLike" => random(c, true, true)?,
        "RandomUniform" => random(c, false, false)?,
        "RandomUniformLike" => random(c, true, false)?,
        "Bernoulli" => {
            let x = c.x(0)?;
            let dtype = c.dtype("dtype")?.unwrap_or(x.dtype());
            op!("cast", op!("bernoulli", x)?, dtype)?
        }
        "Multinomial" => {
            let dtype = c.dtype("dtype")?.unwrap_or(DType::Int32);
            let drawn = op!("multinomial", op!("softmax", c.x(0)?)?, c.int("sample_size", 1), true)?;
            op!("cast", drawn, dtype)?
        }
        _ => return Ok(None),
    })
}

/// One number of a call, without axes.
fn scalar(w: &mut Writer, arg: Option<&Arg>, default: f64, dtype: DType) -> Result<Option<String>> {
    Ok(match arg {
        None => Some(w.number(default, dtype)?),
        Some(Arg::Plain(Value::Int(i))) => Some(w.number(*i as f64, dtype)?),
        Some(Arg::Plain(Value::Float(f))) => Some(w.number(*f, dtype)?),
        Some(Arg::Plain(Value::Bool(b))) => Some(w.number(f64::from(u8::from(*b)), dtype)?),
        Some(Arg::Size(size)) => {
            let (value, none) = (w.size(size)?, w.ints(&[])?);
            let value = w.op("Reshape", &[&value, &none]);
            Some(w.cast(value, DType::Int64, dtype))
        }
        _ => None,
    })
}

pub fn write(w: &mut Writer, call: &Given) -> Result<bool> {
    let (name, out) = (call.name(), w.known(call.out()).clone());
    let value = match name {
        "full" | "full_like" => call.arg("fill_value"),
        "ones" | "ones_like" => Some(&Arg::Plain(Value::Int(1))),
        _ => None,
    };
    let y = match name {
        "zeros" | "ones" | "full" | "empty" | "zeros_like" | "ones_like" | "full_like" | "empty_like" => {
            let shape = match (name.ends_with("_like"), call.id("x"), call.sizes("shape")) {
                (true, Some(id), _) => w.shape(id)?,
                (false, _, Some(sizes)) => w.sizes(&sizes)?,
                _ => return Ok(false),
            };
            let plain = !matches!(value, Some(Arg::Size(_)));
            let Some(value) = scalar(w, value, 0.0, out.dtype)? else { return Ok(false) };
            if plain && out.dims.iter().all(|d| d.fixed().is_some()) && out.dims.is_empty() {
                value
            } else {
                w.op("Expand", &[&value, &shape])
            }
        }
        "arange" => {
            let (mut start, mut end) = (call.arg("start"), call.arg("end"));
            if end.is_none() {
                (start, end) = (None, start);
            }
            let dtype = if matches!(out.dtype, DType::Int32 | DType::Float32 | DType::Float64) {
                out.dtype
            } else {
                DType::Int64
            };
            let (start, end) = (scalar(w, start, 0.0, dtype)?, scalar(w, end, 0.0, dtype)?);
            let step = scalar(w, call.arg("step"), 1.0, dtype)?;
            let (Some(start), Some(end), Some(step)) = (start, end, step) else { return Ok(false) };
            let y = w.op("Range", &[&start, &end, &step]);
            w.cast(y, dtype, out.dtype)
        }
        "one_hot" => {
            let (Some(x), Some(n)) = (call.id("x"), call.int("num_classes").filter(|n| *n > 0)) else {
                return Ok(false);
            };
            let x = w.cast_id(x, DType::Int64)?;
            let depth = w.number(n as f64, DType::Int64)?;
            let values = w.tensor(&Tensor::try_from_slice(&[0f32, 1.0], [2])?);
            let y = w.op("OneHot", &[&x, &depth, &values]);
            w.cast(y, DType::Float32, out.dtype)
        }
        _ => return Ok(false),
    };
    w.bind(call.out(), y);
    Ok(true)
}
