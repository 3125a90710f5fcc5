//! Codes and the steps of samples, found again in what files say of them.

use super::rewrite::call;
use crate::graph::{Arg, Call, Graph, Id, Known, Weight};
use sampan_core::{Result, Value};
use std::collections::HashMap;

fn tensor(call: &Call, name: &str) -> Option<Id> {
    if let Some(Arg::Tensor(id)) = call.arg(name) { Some(*id) } else { None }
}

/// One number: plain, or a weight.
fn number(call: &Call, name: &str, graph: &Graph) -> Option<f64> {
    match call.arg(name)? {
        Arg::Plain(Value::Float(v)) => Some(*v),
        Arg::Plain(Value::Int(v)) => Some(*v as f64),
        Arg::Tensor(id) => graph.weight_of(*id).filter(|w| w.tensor.numel() == 1).map(|w| w.tensor.to_f64_vec()[0]),
        _ => None,
    }
}

/// The value whose samples decide about steps.
fn source(graph: &Graph, made: &HashMap<Id, usize>, step: Id) -> Option<Id> {
    let (mut factor, mut plus, mut id) = (1.0, 0.0, step);
    // From the last operation to the first: `factor · x + plus`.
    for _ in 0..3 {
        let call = &graph.calls[*made.get(&id)?];
        match call.op.name {
            "scale" => {
                plus += factor * number(call, "bias", graph)?;
                factor *= number(call, "scale", graph)?;
            }
            "multiply" => factor *= number(call, "y", graph)?,
            "divide" => factor /= number(call, "y", graph)?,
            "add" => plus += factor * number(call, "y", graph)?,
            "max" => break,
            _ => return None,
        }
        id = tensor(call, "x")?;
    }
    let call = &graph.calls[*made.get(&id)?];
    let keeps = matches!(call.arg("keepdim"), Some(Arg::Plain(Value::Bool(true))));
    let from = tensor(call, "x").filter(|_| call.op.name == "max" && !keeps)?;
    let rank = graph.values[from].dims.len() as i64;
    let mut axes = match call.arg("axis")? {
        Arg::Plain(Value::Int(v)) => vec![*v],
        Arg::Plain(Value::Ints(v)) => v.to_vec(),
        _ => return None,
    };
    axes.iter_mut().for_each(|a| *a += if *a < 0 { rank } else { 0 });
    axes.sort_unstable();
    let largest = &graph.calls[*made.get(&from)?];
    let fits =
        (factor * 127.0 - 1.0f64).abs() < 1e-5 && (plus - 1e-12f64).abs() < 1e-13 && axes.into_iter().eq(1..rank);
    tensor(largest, "x").filter(|_| fits && largest.op.name == "abs")
}

/// Makes one call of each such chain.
pub(crate) fn recognise(graph: &mut Graph) -> Result<()> {
    let made: HashMap<Id, usize> =
        graph.calls.iter().enumerate().flat_map(|(k, c)| c.outputs.iter().map(move |&o| (o, k))).collect();
    let steps: Vec<Id> =
        graph.calls.iter().filter(|c| c.op.name == "quantize_linear").filter_map(|c| tensor(c, "scale")).collect();
    // ONNX takes the dtype of codes from the code of zero, so there is one for each step: zero times that.
    let zero = |id: Id| {
        let cast = made.get(&id).map(|&k| &graph.calls[k]).filter(|c| c.op.name == "cast")?;
        let times = made.get(&tensor(cast, "x")?).map(|&k| &graph.calls[k]).filter(|c| c.op.name == "multiply")?;
        number(times, "y", graph).filter(|n| *n == 0.0)
    };
    let coded = |c: &Call| c.op.name == "quantize_linear" && tensor(c, "zero_point").and_then(zero).is_some();
    let without: Vec<usize> = (0..graph.calls.len()).filter(|&k| coded(&graph.calls[k])).collect();
    for k in without {
        if let Some(at) = graph.calls[k].op.position("zero_point") {
            graph.calls[k].args[at] = Arg::Plain(Value::None);
        }
    }
    for step in steps {
        if let Some(x) = source(graph, &made, step) {
            graph.calls[made[&step]] = call("sample_steps", &[("x", Arg::Tensor(x))], step)?;
        }
    }
    Ok(())
}

/// A matrix that is turned after its codes became numbers is turned before.
pub(crate) fn turn(graph: &mut Graph) -> Result<()> {
    let made: HashMap<Id, usize> =
        graph.calls.iter().enumerate().flat_map(|(k, c)| c.outputs.iter().map(move |&o| (o, k))).collect();
    for k in 0..graph.calls.len() {
        let transpose = &graph.calls[k];
        let over = matches!(transpose.arg("perm"), Some(Arg::Plain(Value::Ints(p))) if p[..] == [1, 0]);
        let Some(from) = tensor(transpose, "x").filter(|_| over && transpose.op.name == "transpose") else { continue };
        let Some(decode) = made.get(&from).map(|&at| &graph.calls[at]) else { continue };
        let axis = if let Some(Arg::Plain(Value::Int(axis @ 0..=1))) = decode.arg("axis") { *axis } else { continue };
        let Some(weight) = tensor(decode, "x").and_then(|x| graph.weight_of(x)) else { continue };
        if decode.op.name != "dequantize_linear" || weight.tensor.ndim() != 2 {
            continue;
        }
        let turned = weight.tensor.detach().try_transpose([1i64, 0])?.try_contiguous()?;
        let (name, dtype) = (format!("{}.turned", weight.name), turned.dtype());
        let mut args: Vec<(&str, Arg)> = vec![("axis", Arg::Plain((1 - axis).into()))];
        args.extend(["scale", "zero_point"].into_iter().filter_map(|n| decode.arg(n).map(|a| (n, a.clone()))));
        let out = transpose.outputs[0];
        let dims = turned.shape().iter().map(|&n| crate::graph::Dim::Fixed(n)).collect();
        let value = graph.add_value(Known { dims, dtype, stop_gradient: true });
        graph.weights.push(Weight { name, value, tensor: turned, shared: false });
        args.push(("x", Arg::Tensor(value)));
        graph.calls[k] = call("dequantize_linear", &args, out)?;
    }
    Ok(())
}
