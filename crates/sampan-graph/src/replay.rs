//! A graph that runs: every call goes through `dispatch`, so gradients, mixed precision and profilers work as always.

use crate::graph::{Arg, Dim, Graph, Id, Size};
use sampan_core::dispatch::dispatch;
use sampan_core::value::{Args, Object};
use sampan_core::{Error, Result, Tensor, Value, no_grad};

/// The values of one run.
struct Values(Vec<Option<Tensor>>);

impl Values {
    fn get(&self, id: Id) -> Result<&Tensor> {
        let found = self.0.get(id).and_then(Option::as_ref);
        found.ok_or_else(|| Error::invalid(format!("value {id} is read before it is given")).in_op("graph"))
    }

    fn size(&self, size: &Size) -> Result<i64> {
        let extent = |id, axis| Some(*self.get(id).ok()?.shape().get(axis)? as i64);
        size.eval(extent).ok_or_else(|| Error::invalid(format!("the size {size:?} cannot be computed")).in_op("graph"))
    }

    fn value(&self, arg: &Arg) -> Result<Value> {
        Ok(match arg {
            Arg::Plain(v) => v.clone(),
            Arg::Block(graph) => Value::Object(Object::new(graph.clone())),
            Arg::Tensor(id) => Value::Tensor(self.get(*id)?.clone()),
            Arg::Tensors(ids) => Value::Tensors(ids.iter().map(|&id| self.get(id).cloned()).collect::<Result<_>>()?),
            Arg::Size(s) => Value::Int(self.size(s)?),
            Arg::Sizes(all) => Value::Ints(all.iter().map(|s| self.size(s)).collect::<Result<_>>()?),
            Arg::List(parts) => Value::List(parts.iter().map(|p| self.value(p)).collect::<Result<_>>()?),
        })
    }
}

impl Graph {
    /// What the graph gives for these inputs, with its own weights.
    pub fn run(&self, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        let weights = self.weights.iter().map(|w| w.tensor.clone()).collect::<Vec<_>>();
        self.run_with(inputs, &weights)
    }

    /// Like [`run`](Graph::run), with other tensors in place of the weights.
    pub fn run_with(&self, inputs: &[Tensor], weights: &[Tensor]) -> Result<Vec<Tensor>> {
        self.check(inputs, weights)?;
        let mut values = Values(vec![None; self.values.len()]);
        for (input, t) in self.inputs.iter().zip(inputs) {
            values.0[input.value] = Some(t.clone());
        }
        for (weight, t) in self.weights.iter().zip(weights) {
            values.0[weight.value] = Some(t.clone());
        }
        let last = self.last_uses.get_or_init(|| self.find_last_uses());
        for (k, call) in self.calls.iter().enumerate() {
            let args = call.args.iter().map(|a| values.value(a)).collect::<Result<Args>>()?;
            // A value that is read no more gives its memory back now, not at the end.
            let mut done = |id: Id| {
                if last[id] == k {
                    values.0[id] = None;
                }
            };
            call.args.iter().for_each(|a| a.for_each_id(&mut done));
            let at = |e: Error| match &call.source {
                Some(source) => e.in_layer(source.clone()),
                None => e,
            };
            let outputs = if call.no_grad { no_grad(|| dispatch(call.op, args)) } else { dispatch(call.op, args) };
            let outputs = outputs.map_err(at)?;
            if outputs.len() < call.outputs.len() {
                let (got, wanted) = (outputs.len(), call.outputs.len());
                return Err(Error::invalid(format!("gave {got} results, {wanted} are read")).in_op(call.op.name));
            }
            for (&id, t) in call.outputs.iter().zip(outputs) {
                if last[id] > k {
                    values.0[id] = Some(t);
                }
            }
        }
        for &(target, value) in &self.writes {
            no_grad(|| values.get(target)?.try_set_value(values.get(value)?))?;
        }
        self.outputs.iter().map(|&id| values.get(id).cloned()).collect()
    }

    /// The last call that reads each value; what is given or written at the end is never done with.
    fn find_last_uses(&self) -> Vec<usize> {
        let mut last = vec![0; self.values.len()];
        for (k, call) in self.calls.iter().enumerate() {
            call.args.iter().for_each(|a| a.for_each_id(&mut |id| last[id] = k));
        }
        let kept = self.writes.iter().flat_map(|&(a, b)| [a, b]);
        for id in self.outputs.iter().copied().chain(kept) {
            last[id] = usize::MAX;
        }
        last
    }

    fn check(&self, inputs: &[Tensor], weights: &[Tensor]) -> Result<()> {
        if weights.len() != self.weights.len() {
            let (wanted, got) = (self.weights.len(), weights.len());
            return Err(Error::invalid(format!("has {wanted} weights, got {got}")).in_op("graph"));
        }
        self.check_inputs(inputs)
    }

    /// Are these inputs of the kind that the graph takes?
    pub(crate) fn check_inputs(&self, inputs: &[Tensor]) -> Result<()> {
        let fail = |message: String| Err(Error::invalid(message).in_op("graph"));
        if inputs.len() != self.inputs.len() {
            let names = self.inputs.iter().map(|i| i.name.as_str()).collect::<Vec<_>>().join(", ");
            return fail(format!("takes {} inputs ({names}), got {}", self.inputs.len(), inputs.len()));
        }
        for (input, t) in self.inputs.iter().zip(inputs) {
            let known = &self.values[input.value];
            if t.dtype() != known.dtype {
                let (name, wanted, got) = (&input.name, known.dtype, t.dtype());
                return Err(Error::dtype(format!("input `{name}` is {wanted}, got {got}")).in_op("graph"));
            }
            let fits = |(d, n): (&Dim, &usize)| d.fixed().is_none_or(|d| d == *n);
            if self.strict && (t.ndim() != known.dims.len() || !known.dims.iter().zip(t.shape()).all(fits)) {
                let shape = known.dims.iter().map(|d| d.fixed().map_or("any".into(), |n| n.to_string()));
                let shape = shape.collect::<Vec<_>>().join(", ");
                let message = format!("input `{}` has shape [{shape}], got {:?}", input.name, t.shape());
                return Err(Error::invalid(message).hint("None in its InputSpec stands for any extent").in_op("graph"));
            }
        }
        Ok(())
    }
}
