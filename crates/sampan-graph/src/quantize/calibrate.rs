//! Steps from examples: what flows through a network is watched, and its codes are made to reach it.

use super::layers::Layers;
use super::observe::{Method, Observer};
use super::refused;
use super::rewrite::Rewrite;
use crate::graph::{Arg, Call, Graph, Id};
use sampan_core::{Result, Tensor, no_grad};
use std::collections::HashMap;
use std::sync::OnceLock;

/// Collects what a network does with examples, and then makes it compute with codes whose steps are fixed.
pub struct Calibration {
    /// The graph as it will be rewritten, and as it shows the values that are watched.
    graph: Graph,
    watched: Graph,
    layers: Layers,
    observers: Vec<(Id, Observer)>,
    batches: usize,
}

/// Calls that give some of the elements they are given, so that codes pass through them as they are.
fn passes(call: &Call) -> Option<Id> {
    let named = |name: &str| if let Some(Arg::Tensor(id)) = call.arg(name) { Some(*id) } else { None };
    let alone = call.outputs.len() == 1;
    match call.op.name {
        "max_pool2d" | "adaptive_max_pool2d" | "flatten" | "reshape" | "squeeze" | "unsqueeze" if alone => named("x"),
        _ => None,
    }
}

impl Calibration {
    /// For a graph that takes and gives floats.
    pub fn new(graph: &Graph, method: Method) -> Result<Calibration> {
        match method {
            Method::Percentile(p) if !(p > 0.0 && p <= 100.0) => {
                return Err(refused(format!("a percentile lies above 0 and not above 100, got {p}")));
            }
            Method::MovingAverage(rate) if !(0.0..1.0).contains(&rate) => {
                return Err(refused(format!("the rate of an average lies in [0, 1), got {rate}")));
            }
            _ => {}
        }
        let graph = no_grad(|| graph.for_inference())?;
        let layers = Layers::of(&graph)?;
        let made: HashMap<Id, &Call> =
            graph.calls.iter().flat_map(|c| c.outputs.iter().map(move |&o| (o, c))).collect();
        let mut seen: Vec<Id> = Vec::new();
        for layer in &layers.0 {
            let mut id = layer.x;
            // What only passes elements on has the steps of what it was given.
            while !seen.contains(&id) {
                seen.push(id);
                match made.get(&id).and_then(|c| passes(c)) {
                    Some(from) if !graph.weights.iter().any(|w| w.value == from) => id = from,
                    _ => break,
                }
            }
        }
        let mut watched = graph.clone();
        watched.outputs.clone_from(&seen);
        watched.last_uses = OnceLock::new();
        watched.prune();
        let observers = seen.into_iter().map(|id| (id, Observer::new(method))).collect();
        Ok(Calibration { graph, watched, layers, observers, batches: 0 })
    }

    /// Looks at one batch of inputs.
    pub fn feed(&mut self, inputs: &[Tensor]) -> Result<()> {
        let values = no_grad(|| self.watched.run(inputs)).map_err(|e| e.in_op("quantize"))?;
        for ((id, observer), value) in self.observers.iter_mut().zip(values) {
            if !observer.see(&value.to_vec::<f32>()) {
                let input = self.graph.inputs.iter().find(|i| i.value == *id);
                let what = match input {
                    Some(input) => format!("the input `{}`", input.name),
                    None => {
                        let maker = self.graph.calls.iter().find(|c| c.outputs.contains(id));
                        let (name, at) = maker.map_or(("a call", None), |c| (c.op.name, c.source.as_ref()));
                        format!("what {name}{} gives", at.map_or(String::new(), |s| format!(" ({s})")))
                    }
                };
                let message = format!("batch {} of the calibration data: {what} holds NaN or infinity", self.batches);
                return Err(refused(message).hint("calibrate with examples that the network was made for"));
            }
        }
        self.batches += 1;
        Ok(())
    }

    /// The quantised graph.
    pub fn finish(self) -> Result<Graph> {
        if self.batches == 0 {
            return Err(refused("there are no calibration data").hint("give at least one batch of examples"));
        }
        let mut steps: HashMap<Id, f32> = self.observers.iter().map(|(id, o)| (*id, o.step())).collect();
        // What passes elements on keeps the grid; from the first to the last.
        for call in &self.graph.calls {
            if let Some(from) = passes(call)
                && let (Some(&step), true) = (steps.get(&from), steps.contains_key(&call.outputs[0]))
            {
                steps.insert(call.outputs[0], step);
            }
        }
        let order: Vec<(Id, f32)> = self.observers.iter().map(|(id, _)| (*id, steps[id])).collect();
        no_grad(|| {
            let mut rewrite = Rewrite::new(self.graph);
            rewrite.weights(&self.layers)?;
            rewrite.fixed(&order)?;
            rewrite.finish()
        })
    }
}
