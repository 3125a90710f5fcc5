//! Numbers in eight bits.

use super::products::centred;
use super::windows::conv_of;
use crate::given::Given;
use crate::graph::Id;
use crate::onnx::eval::Item;
use crate::onnx::export::Writer;
use crate::onnx::node::{Call, many, one, op, shape_of};
use crate::record::unheard;
use sampan_core::{DType, Result, Tensor, Value};
use sampan_io::onnx::model::Attr;

/// A scale or zero point, spread if it has one number for each block of an axis.
fn in_blocks(c: &Call, t: &Tensor, x: &Tensor) -> Result<Tensor> {
    let block = c.int("block_size", 0);
    if block <= 0 || t.ndim() == 0 {
        return Ok(t.clone());
    }
    op!("repeat_interleave", t, block, c.axis(c.int("axis", 1), x.ndim())?)
}

fn limits(dtype: DType) -> Option<(f64, f64)> {
    match dtype {
        DType::UInt8 => Some((0.0, 255.0)),
        DType::Int8 => Some((-128.0, 127.0)),
        DType::Int16 => Some((-32768.0, 32767.0)),
        DType::Int32 => Some((f64::from(i32::MIN), f64::from(i32::MAX))),
        _ => None,
    }
}

/// Rounded and held inside of a dtype.
fn saturated(c: &Call, x: &Tensor, zero: Option<&Tensor>, dtype: DType) -> Result<Tensor> {
    let (low, high) = limits(dtype).ok_or_else(|| c.lacking(format!("numbers of {dtype}")))?;
    let mut y = op!("round", x)?;
    if let Some(zero) = zero {
        y = op!("add", &y, op!("cast", zero, y.dtype())?)?;
    }
    op!("cast", op!("clip", y, low, high)?, dtype)
}

fn quantize(c: &Call) -> Result<Tensor> {
    let (x, scale) = (c.x(0)?, c.x(1)?);
    let dtype = match (c.maybe(2), c.dtype("output_dtype")?) {
        (Some(zero), _) => zero.dtype(),
        (None, Some(dtype)) => dtype,
        (None, None) => DType::UInt8,
    };
    let zero = c.maybe(2).map(|z| in_blocks(c, z, x)).transpose()?.map_or(Value::None, Value::Tensor);
    op!("quantize_linear", x, in_blocks(c, scale, x)?, zero, c.int("axis", 1), dtype)
}

fn dequantize(c: &Call) -> Result<Tensor> {
    let (x, scale) = (c.x(0)?, c.x(1)?);
    let zero = c.maybe(2).map(|z| in_blocks(c, z, x)).transpose()?.map_or(Value::None, Value::Tensor);
    op!("dequantize_linear", x, in_blocks(c, scale, x)?, zero, c.int("axis", 1))
}

fn dynamic(c: &Call) -> Result<Vec<Tensor>> {
    let x = c.x(0)?;
    let high = op!("maximum", op!("max", x)?, 0.0)?;
    let low = op!("minimum", op!("min", x)?, 0.0)?;
    let scale = op!("divide", op!("subtract", high, &low)?, 255.0)?;
    let zero = op!("clip", op!("round", op!("divide", op!("neg", low)?, &scale)?)?, 0.0, 255.0)?;
    let zero = op!("cast", zero, DType::UInt8)?;
    let y = saturated(c, &op!("divide", x, &scale)?, Some(&zero), DType::UInt8)?;
    Ok(vec![y, scale, zero])
}

fn linear_matmul(c: &Call) -> Result<Tensor> {
    let row = c.x(0)?.ndim().saturating_sub(2);
    let a = centred(c.x(0)?, c.maybe(2), Some(row))?;
    let b = centred(c.x(3)?, c.maybe(5), Some(c.x(3)?.ndim() - 1))?;
    let wide = |t: &Tensor| op!("cast", t, DType::Float32);
    let product = op!("cast", op!("matmul", a, b)?, DType::Float32)?;
    let scale = op!("divide", op!("multiply", wide(c.x(1)?)?, wide(c.x(4)?)?)?, wide(c.x(6)?)?)?;
    let zero = c.x(7)?;
    saturated(c, &op!("multiply", product, scale)?, Some(zero), zero.dtype())
}

fn linear_conv(c: &Call) -> Result<Tensor> {
    let (x, w) = (centred(c.x(0)?, c.maybe(2), None)?, centred(c.x(3)?, c.maybe(5), Some(0))?);
    let bias = c.maybe(8).map(|b| op!("cast", b, DType::Float64)).transpose()?;
    let y = conv_of(c, &x, &w, bias.as_ref())?;
    let wide = |t: &Tensor| op!("cast", t, DType::Float64);
    let mut scale = op!("divide", op!("multiply", wide(c.x(1)?)?, wide(c.x(4)?)?)?, wide(c.x(6)?)?)?;
    if scale.numel() > 1 {
        let mut shape = vec![1; y.ndim()];
        shape[1] = shape_of(&scale)[0];
        scale = op!("reshape", scale, shape)?;
    }
    let zero = c.x(7)?;
    saturated(c, &op!("multiply", y, scale)?, Some(zero), zero.dtype())
}

pub fn read(c: &Call) -> Result<Option<Vec<Item>>> {
    one(match c.node.op.as_str() {
        "QuantizeLinear" => quantize(c)?,
        "DequantizeLinear" => dequantize(c)?,
        "DynamicQuantizeLinear" => return many(dynamic(c)?),
        "QLinearMatMul" => linear_matmul(c)?,
        "QLinearConv" => linear_conv(c)?,
        _ => return Ok(None),
    })
}

/// The code of zero, as many times as there are steps: ONNX takes the dtype of codes from it.
fn zeros(w: &mut Writer, step: Id, dtype: DType) -> Result<String> {
    let known = w.known(step).clone();
    let fixed = known.dims.iter().map(|d| d.fixed()).collect::<Option<Vec<_>>>();
    if let Some(shape) = fixed {
        let zeros = unheard(|| Tensor::try_from_slice(&vec![0i8; shape.iter().product()], &shape)?.try_cast(dtype))?;
        return Ok(w.tensor(&zeros));
    }
    let (step, zero) = (w.name(step)?, w.number(0.0, known.dtype)?);
    let zeros = w.op("Mul", &[&step, &zero]);
    Ok(w.cast(zeros, known.dtype, dtype))
}

pub fn write(w: &mut Writer, call: &Given) -> Result<bool> {
    let there = match call.name() {
        "quantize_linear" => true,
        "dequantize_linear" => false,
        _ => return Ok(false),
    };
    let (Some(x), Some(step)) = (call.id("x"), call.id("scale")) else { return Ok(false) };
    let codes = if there { call.dtype("dtype").unwrap_or(DType::Int8) } else { w.known(x).dtype };
    let floats = if there { w.known(x).dtype } else { w.known(step).dtype };
    if !matches!(codes, DType::Int8 | DType::UInt8) || floats != DType::Float32 || w.known(step).dims.len() > 1 {
        return Ok(false);
    }
    let mut inputs = vec![w.name(x)?, w.cast_id(step, DType::Float32)?];
    match call.id("zero_point") {
        Some(zero) => inputs.push(w.cast_id(zero, codes)?),
        None if there => inputs.push(zeros(w, step, codes)?),
        None => {}
    }
    let axis = Attr::Int(call.int("axis").unwrap_or(1));
    let op = if there { "QuantizeLinear" } else { "DequantizeLinear" };
    let one = w.known(step).dims.iter().all(|d| d.fixed() == Some(1));
    let y = w.node(op, inputs, if one { vec![] } else { vec![("axis", axis)] });
    w.bind(call.out(), y);
    Ok(true)
}
