//! Codes and the numbers they stand for.
//!
//! Paddle's `scale` is the number that the code 127 stands for, ours the step between two codes; its codes are int8 among
//! weights and floats elsewhere, and it knows no zero point.

use super::args::plain;
use crate::graph::{Arg, Id, Known, Weight};
use crate::paddle::export::{Exporter, Given};
use crate::paddle::import::Importer;
use crate::paddle::program::{Op, Value, VarId};
use sampan_core::{DType, Result, Value as Plain};

/// The largest code.
const LARGEST: f64 = 127.0;

/// Steps as Paddle has them.
fn scale(w: &mut Exporter, id: Id) -> Result<VarId> {
    if let Some(weight) = w.graph.weight_of(id) {
        let (name, tensor) = (format!("{}.range", weight.name), weight.tensor.detach().try_scale(LARGEST)?);
        return Ok(w.weight_instead(id, &name, tensor));
    }
    // A range over that number is the range.
    let made = w.graph.calls.iter().find(|c| c.outputs.contains(&id) && c.op.name == "scale").map(Given);
    if let Some((range, factor)) = made.and_then(|c| Some((c.id("x")?, c.float("scale")?)))
        && (factor * LARGEST - 1.0).abs() < 1e-6
        && w.graph.weight_of(range).is_some()
    {
        return w.var_of(range);
    }
    let var = w.var_of(id)?;
    let like = w.like(var, w.program.vars[var].dtype);
    let args = vec![
        ("x", Value::Var(var)),
        ("scale", Value::Float(LARGEST)),
        ("bias", Value::Float(0.0)),
        ("bias_after_scale", Value::Bool(true)),
    ];
    w.emit("scale", args, &like)
}

pub fn write(w: &mut Exporter, call: &Given) -> Result<bool> {
    let there = match call.name() {
        "quantize_linear" => true,
        "dequantize_linear" => false,
        _ => return Ok(false),
    };
    let (Some(x), Some(step)) = (call.id("x"), call.id("scale")) else { return Ok(false) };
    let (x_known, step_known) = (w.known(x).clone(), w.known(step).clone());
    let codes = if there { call.dtype("dtype") } else { Some(x_known.dtype) };
    let one = step_known.dims.is_empty() || step_known.dims.len() == 1 && step_known.dims[0].fixed() == Some(1);
    let axis = call.int("axis").map(|a| if a < 0 { a + x_known.dims.len() as i64 } else { a });
    let floats = if there { x_known.dtype } else { step_known.dtype };
    if codes != Some(DType::Int8)
        || call.arg("zero_point").is_some()
        || floats != DType::Float32
        || step_known.dims.len() > 1
        || !(one || matches!(axis, Some(0 | 1)))
    {
        // As the arithmetic that it is.
        return Ok(false);
    }
    let zeros = w.zeros_weight()?;
    let args = vec![
        ("x", Value::Var(w.var_of(x)?)),
        ("scale", Value::Var(scale(w, step)?)),
        ("zero_point", Value::Var(zeros)),
        ("quant_axis", Value::Int(if one { -1 } else { axis.unwrap_or(0) })),
        ("bit_length", Value::Int(8)),
        ("qmin", Value::Int(-128)),
        ("qmax", Value::Int(127)),
        ("round_type", Value::Int(0)),
        ("is_test", Value::Bool(true)),
        ("only_observer", Value::Bool(false)),
    ];
    let out = call.out();
    let known = Known { dtype: DType::Float32, ..w.known(out).clone() };
    let y = w.emit(if there { "quantize_linear" } else { "dequantize_linear" }, args, &known)?;
    let only_back = |id: Id| {
        let reads = |c: &crate::graph::Call| {
            let mut found = false;
            c.args.iter().for_each(|a| a.for_each_id(&mut |i| found |= i == id));
            found
        };
        !w.graph.outputs.contains(&id)
            && w.graph.calls.iter().filter(|c| reads(c)).all(|c| c.op.name == "dequantize_linear")
    };
    let y = if there && !only_back(out) { w.cast(y, DType::Int8)? } else { y };
    w.bind(out, y);
    Ok(true)
}

/// Steps as we have them.
fn step(r: &mut Importer, var: VarId) -> Result<Arg> {
    if let Some(&known) = r.steps.get(&var) {
        return Ok(Arg::Tensor(known));
    }
    let id = r.id(var)?;
    let found = r.graph.weights.iter_mut().find(|w| w.value == id);
    let id = if let Some(weight) = found {
        // The weight in the file is read by nobody else, as a rule, and then left out.
        weight.shared = false;
        let name = weight.name.strip_suffix(".range").unwrap_or(&weight.name).to_string();
        let tensor = weight.tensor.detach().try_divide(LARGEST)?;
        let known = Known { stop_gradient: true, ..r.graph.values[id].clone() };
        let value = r.graph.add_value(known);
        r.graph.weights.push(Weight { name, value, tensor, shared: false });
        value
    } else {
        let known = r.graph.values[id].clone();
        let factor = plain(Plain::Float(1.0 / LARGEST));
        r.call_new("scale", vec![("x", Arg::Tensor(id)), ("scale", factor)], known)?
    };
    r.steps.insert(var, id);
    Ok(Arg::Tensor(id))
}

/// Weights that are codes, but lie in the file as floats.
fn as_codes(r: &mut Importer, id: Id) -> Result<Id> {
    let Some(weight) = r.graph.weights.iter_mut().find(|w| w.value == id) else { return Ok(id) };
    let (name, tensor) = (weight.name.clone(), weight.tensor.detach());
    if tensor.dtype() != DType::Float32 {
        return Ok(id);
    }
    let code = |v: &f32| v.fract() == 0.0 && (-128.0..=127.0).contains(v);
    if !tensor.to_vec::<f32>().iter().all(code) {
        return Ok(id);
    }
    weight.shared = false;
    let known = Known { dtype: DType::Int8, stop_gradient: true, ..r.graph.values[id].clone() };
    let value = r.graph.add_value(known);
    r.graph.weights.push(Weight { name, value, tensor: tensor.try_cast(DType::Int8)?, shared: false });
    Ok(value)
}

pub fn read(r: &mut Importer, op: &Op) -> Result<bool> {
    let there = match op.schema.name {
        "quantize_linear" => true,
        "dequantize_linear" => false,
        _ => return Ok(false),
    };
    if op.int("bit_length").unwrap_or(8) != 8 || op.bool("only_observer", false) {
        return Ok(false);
    }
    let (x, out) = (op.var("x")?, op.first_result()?);
    let axis = op.int("quant_axis").unwrap_or(-1);
    let step = step(r, op.var("scale")?)?;
    let axis = plain(Plain::Int(if axis < 0 { 0 } else { axis }));
    if there {
        let id = r.id(x)?;
        let known = Known { dtype: DType::Int8, ..r.known(out) };
        let code =
            r.call_new("quantize_linear", vec![("x", Arg::Tensor(id)), ("scale", step), ("axis", axis)], known)?;
        r.codes.insert(out, code);
        // For whoever computes with codes.
        let cast = vec![("x", Arg::Tensor(code)), ("dtype", plain(Plain::DType(DType::Float32)))];
        r.call("cast", cast, &[out])?;
    } else {
        let id = match r.codes.get(&x) {
            Some(&code) => code,
            None => {
                let id = r.id(x)?;
                as_codes(r, id)?
            }
        };
        r.call("dequantize_linear", vec![("x", Arg::Tensor(id)), ("scale", step), ("axis", axis)], &[out])?;
    }
    Ok(true)
}
