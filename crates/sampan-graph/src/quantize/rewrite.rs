//! Codes put between the calls of a graph.

use super::layers::{Layer, Layers};
use super::weights::codes;
use crate::graph::{Arg, Call, Dim, Graph, Id, Known, Weight};
use sampan_core::{DType, Error, Result, Tensor, Value, op};
use std::collections::HashMap;
use std::sync::OnceLock;

/// A graph that is being rewritten. Calls are put in front of others by their place.
pub(super) struct Rewrite {
    pub graph: Graph,
    /// What is called before the call of a number; behind the last for what is called at the end.
    before: Vec<Vec<Call>>,
}

/// A call with arguments by name, the others as they are when left out.
pub(super) fn call(name: &str, named: &[(&str, Arg)], out: Id) -> Result<Call> {
    let op = op::find(name).ok_or_else(|| Error::invalid(format!("there is no op `{name}`")).in_op("quantize"))?;
    let arg = |p: &sampan_core::op::Param| {
        let given = named.iter().find(|(n, _)| *n == p.name).map(|(_, a)| a.clone());
        given.or_else(|| p.default.map(|d| Arg::Plain(d()))).unwrap_or(Arg::Plain(Value::None))
    };
    Ok(Call { op, args: op.params.iter().map(arg).collect(), outputs: vec![out], no_grad: false, source: None })
}

/// Puts another value in the place of one.
pub(super) fn replace(arg: &mut Arg, from: Id, to: Id) {
    match arg {
        Arg::Tensor(id) if *id == from => *id = to,
        Arg::Tensors(ids) => ids.iter_mut().filter(|id| **id == from).for_each(|id| *id = to),
        Arg::List(parts) => parts.iter_mut().for_each(|p| replace(p, from, to)),
        _ => {}
    }
}

impl Rewrite {
    pub fn new(graph: Graph) -> Rewrite {
        let before = vec![Vec::new(); graph.calls.len() + 1];
        Rewrite { graph, before }
    }

    /// A new weight.
    pub fn hold(&mut self, name: String, tensor: Tensor) -> Id {
        let dims = tensor.shape().iter().map(|&n| Dim::Fixed(n)).collect();
        let value = self.graph.add_value(Known { dims, dtype: tensor.dtype(), stop_gradient: true });
        self.graph.weights.push(Weight { name, value, tensor, shared: false });
        value
    }

    /// A value like another one, of some dtype.
    fn like(&mut self, id: Id, dtype: DType) -> Id {
        let dims = self.graph.values[id].dims.clone();
        self.graph.add_value(Known { dims, dtype, stop_gradient: true })
    }

    /// The call that gives a value; `None` for inputs and weights.
    fn maker(&self, id: Id) -> Option<usize> {
        self.graph.calls.iter().position(|c| c.outputs.contains(&id))
    }

    /// Weights of layers as codes, with a step for each output.
    pub fn weights(&mut self, layers: &Layers) -> Result<()> {
        let mut known: HashMap<(Id, i64), Id> = HashMap::new();
        for layer in &layers.0 {
            let value = match known.get(&(layer.weight, layer.axis)) {
                Some(&value) => value,
                None => {
                    let value = self.weight(layer)?;
                    known.insert((layer.weight, layer.axis), value);
                    value
                }
            };
            self.graph.calls[layer.at].args.iter_mut().for_each(|a| replace(a, layer.weight, value));
        }
        Ok(())
    }

    fn weight(&mut self, layer: &Layer) -> Result<Id> {
        let held = self.graph.weight_of(layer.weight).expect("layers have weights");
        let (name, tensor) = (held.name.clone(), held.tensor.detach());
        let (coded, steps) = codes(&name, &tensor, layer.axis)?;
        let coded = self.hold(format!("{name}.int8"), coded);
        let steps = self.hold(format!("{name}.scale"), steps);
        let out = self.like(layer.weight, DType::Float32);
        let args = [("x", Arg::Tensor(coded)), ("scale", Arg::Tensor(steps)), ("axis", Arg::Plain(layer.axis.into()))];
        self.before[layer.at].push(call("dequantize_linear", &args, out)?);
        Ok(out)
    }

    /// A value as codes and back, before the call of a number; the value that comes out.
    fn there_and_back(&mut self, id: Id, step: Id, axis: i64, at: usize) -> Result<Id> {
        let (code, out) = (self.like(id, DType::Int8), self.like(id, DType::Float32));
        let with = |x: Id| vec![("x", Arg::Tensor(x)), ("scale", Arg::Tensor(step)), ("axis", Arg::Plain(axis.into()))];
        let made = [call("quantize_linear", &with(id), code)?, call("dequantize_linear", &with(code), out)?];
        self.before[at].extend(made);
        Ok(out)
    }

    /// What layers read, with a step for each sample.
    pub fn dynamic(&mut self, layers: &Layers) -> Result<()> {
        let mut known: HashMap<Id, Id> = HashMap::new();
        for layer in &layers.0 {
            let coded = match known.get(&layer.x) {
                Some(&coded) => coded,
                None => {
                    let at = self.maker(layer.x).map_or(0, |k| k + 1);
                    let dims = vec![self.graph.values[layer.x].dims[0]];
                    let step = self.graph.add_value(Known { dims, dtype: DType::Float32, stop_gradient: true });
                    self.before[at].push(call("sample_steps", &[("x", Arg::Tensor(layer.x))], step)?);
                    let coded = self.there_and_back(layer.x, step, 0, at)?;
                    known.insert(layer.x, coded);
                    coded
                }
            };
            let call = &mut self.graph.calls[layer.at];
            if let Some(at) = call.op.position("x") {
                replace(&mut call.args[at], layer.x, coded);
            }
        }
        Ok(())
    }

    /// Values with known steps as codes: all who read them read the codes, but for the graph's results.
    pub fn fixed(&mut self, steps: &[(Id, f32)]) -> Result<()> {
        for &(id, step) in steps {
            let tensor = Tensor::try_from_slice(&[step], [1usize])?;
            let step = self.hold(format!("value_{id}.scale"), tensor);
            let at = self.maker(id).map_or(0, |k| k + 1);
            let coded = self.there_and_back(id, step, 0, at)?;
            for call in &mut self.graph.calls {
                call.args.iter_mut().for_each(|a| replace(a, id, coded));
            }
        }
        Ok(())
    }

    /// A call before all others.
    pub fn first(&mut self, call: Call) {
        self.before[0].push(call);
    }

    pub fn finish(mut self) -> Result<Graph> {
        let calls = std::mem::take(&mut self.graph.calls);
        let last = self.before.pop().unwrap_or_default();
        for (call, before) in calls.into_iter().zip(self.before) {
            self.graph.calls.extend(before);
            self.graph.calls.push(call);
        }
        self.graph.calls.extend(last);
        self.graph.last_uses = OnceLock::new();
        self.graph.prune();
        Ok(self.graph)
    }
}
