//! Weights as codes, and graphs whose weights alone are smaller.

use super::refused;
use super::rewrite::{Rewrite, call, replace};
use crate::graph::{Arg, Graph, Id, Known};
use sampan_core::{DType, Result, Tensor, Value};

/// Weights of fewer elements stay as they are: they are no burden.
const SMALL: usize = 16;

/// The codes of a weight, from -127 to 127, and the step of each place of an axis.
pub(super) fn codes(name: &str, w: &Tensor, axis: i64) -> Result<(Tensor, Tensor)> {
    let others: Vec<i64> = (0..w.ndim() as i64).filter(|&a| a != axis).collect();
    let largest: Vec<f32> = w.try_abs()?.try_max(others)?.to_vec();
    if let Some(bad) = largest.iter().position(|v| !v.is_finite()) {
        return Err(refused(format!("the weight `{name}` holds NaN or infinity (place {bad} of axis {axis})")));
    }
    // A channel of zeros has any step.
    let steps: Vec<f32> =
        largest.iter().map(|&m| if m > 0.0 { (m / 127.0).max(f32::MIN_POSITIVE) } else { 1.0 }).collect();
    let steps = Tensor::try_from_slice(&steps, [steps.len()])?;
    let coded = w.try_quantize_linear(&steps, None, axis, DType::Int8)?.try_clip(-127, 127)?.try_cast(DType::Int8)?;
    Ok((coded, steps))
}

/// The axis of outputs of a weight, by who reads it.
fn outputs(graph: &Graph, weight: Id) -> i64 {
    let reader = graph.calls.iter().find_map(|c| super::layers::parts(c, graph).filter(|(_, w, _)| *w == weight));
    reader.map_or(0, |(_, _, axis)| axis)
}

/// A graph whose large weights lie in another dtype.
pub(super) fn only(graph: Graph, dtype: DType) -> Result<Graph> {
    if !matches!(dtype, DType::Float16 | DType::BFloat16 | DType::Int8) {
        return Err(refused(format!("weights can be float16, bfloat16 or int8, not {dtype}")));
    }
    let large: Vec<(Id, String, Tensor)> = graph
        .weights
        .iter()
        .filter(|w| w.tensor.dtype() == DType::Float32 && w.tensor.ndim() >= 2 && w.tensor.numel() >= SMALL)
        .map(|w| (w.value, w.name.clone(), w.tensor.detach()))
        .collect();
    if large.is_empty() {
        return Err(refused("the network has no float32 weights that could be smaller"));
    }
    let mut rewrite = Rewrite::new(graph);
    for (id, name, tensor) in large {
        let known = Known { stop_gradient: true, ..rewrite.graph.values[id].clone() };
        let (call, out) = if dtype == DType::Int8 {
            let axis = outputs(&rewrite.graph, id);
            let (coded, steps) = codes(&name, &tensor, axis)?;
            let (coded, steps) =
                (rewrite.hold(format!("{name}.int8"), coded), rewrite.hold(format!("{name}.scale"), steps));
            let out = rewrite.graph.add_value(known);
            let args = [("x", Arg::Tensor(coded)), ("scale", Arg::Tensor(steps)), ("axis", Arg::Plain(axis.into()))];
            (call("dequantize_linear", &args, out)?, out)
        } else {
            let half = tensor.try_cast(dtype)?;
            let fits = |t: &Tensor| t.try_isfinite()?.try_all(()).map(|t| t.to_f64() == 1.0);
            if !fits(&half)? {
                if !fits(&tensor)? {
                    return Err(refused(format!("the weight `{name}` holds NaN or infinity")));
                }
                // Too large a number for it: this one stays.
                continue;
            }
            let half = rewrite.hold(format!("{name}.{dtype}"), half);
            let out = rewrite.graph.add_value(known);
            let args = [("x", Arg::Tensor(half)), ("dtype", Arg::Plain(Value::DType(DType::Float32)))];
            (call("cast", &args, out)?, out)
        };
        for reader in &mut rewrite.graph.calls {
            reader.args.iter_mut().for_each(|a| replace(a, id, out));
        }
        rewrite.first(call);
    }
    rewrite.finish()
}
