//! The layers that codes are for: products and convolutions with weights that are known.

use super::refused;
use crate::graph::{Arg, Call, Graph, Id};
use sampan_core::{DType, Result, Value};
use std::collections::{HashMap, HashSet};

/// A layer that can compute with codes.
pub(super) struct Layer {
    /// Its call.
    pub at: usize,
    pub x: Id,
    pub weight: Id,
    /// The axis of the weight that has a step for each place: that of the outputs.
    pub axis: i64,
}

pub(super) struct Layers(pub Vec<Layer>);

fn id(call: &Call, name: &str) -> Option<Id> {
    if let Some(Arg::Tensor(id)) = call.arg(name) { Some(*id) } else { None }
}

fn is_true(call: &Call, name: &str) -> bool {
    matches!(call.arg(name), Some(Arg::Plain(Value::Bool(true))))
}

/// The input, the weight and the weight's axis of outputs, if a call is such a layer.
pub(crate) fn parts(call: &Call, graph: &Graph) -> Option<(Id, Id, i64)> {
    let (x, weight, axis) = match call.op.name {
        "conv2d" => {
            if matches!(call.arg("data_format"), Some(Arg::Plain(Value::Str(f))) if f.ends_with('C')) {
                return None;
            }
            (id(call, "x")?, id(call, "weight")?, 0)
        }
        "linear" => (id(call, "x")?, id(call, "weight")?, 1),
        "matmul" if !is_true(call, "transpose_x") => {
            (id(call, "x")?, id(call, "y")?, if is_true(call, "transpose_y") { 0 } else { 1 })
        }
        _ => return None,
    };
    let known = |id: Id| &graph.values[id];
    let axes = if call.op.name == "conv2d" { 4 } else { 2 };
    let fits = known(weight).dims.len() == axes
        && known(x).dims.len() >= 2
        && known(x).dtype == DType::Float32
        && known(weight).dtype == DType::Float32;
    fits.then_some((x, weight, axis))
}

impl Layers {
    /// Those of a graph; none at all is an error.
    pub fn of(graph: &Graph) -> Result<Layers> {
        let held: HashSet<Id> = graph.weights.iter().map(|w| w.value).collect();
        let layer = |(at, call): (usize, &Call)| {
            let (x, weight, axis) = parts(call, graph)?;
            (held.contains(&weight) && !held.contains(&x)).then_some(Layer { at, x, weight, axis })
        };
        let found: Vec<Layer> = graph.calls.iter().enumerate().filter_map(layer).collect();
        if !found.is_empty() {
            return Ok(Layers(found));
        }
        let names: HashSet<&str> = graph.calls.iter().map(|c| c.op.name).collect();
        if names.contains("dequantize_linear") {
            return Err(refused("the network is quantised already").hint("quantise the one that it was made from"));
        }
        let mut names: Vec<&str> = names.into_iter().collect();
        names.sort_unstable();
        let message = format!(
            "the network has no layer that can be quantised (conv2d, linear or matmul with float32 weights of its own); its \
             calls are {}",
            names.join(", ")
        );
        Err(refused(message))
    }
}

/// How many layers read codes on both sides, and how many there are.
pub(super) fn count(graph: &Graph) -> (usize, usize) {
    let made: HashMap<Id, &Call> = graph.calls.iter().flat_map(|c| c.outputs.iter().map(move |&o| (o, c))).collect();
    let coded = |id: &Id| made.get(id).is_some_and(|c| c.op.name == "dequantize_linear");
    let all: Vec<_> = graph.calls.iter().filter_map(|c| parts(c, graph)).collect();
    (all.iter().filter(|(x, w, _)| coded(x) && coded(w)).count(), all.len())
}
