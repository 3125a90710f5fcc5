//! From a graph and the shapes of its inputs to a plan.

use super::heard::{self, Heard, hear};
use super::layers::{self, Layer};
use super::memory::{Draft, Info, Source, Val, finish};
use super::places::Place;
use super::run::{Given, Kernel, Plan};
use super::{Shared, fuse};
use crate::graph::{Arg, Call, Graph, Id, Size};
use sampan_core::value::Args;
use sampan_core::{DType, Device, Error, Result, Tensor, Value};
use sampan_formula::Bound;
use sampan_kernels::planned::{BLOCK, Pooling, join, pool};
use sampan_kernels::pool::PoolShape;
use std::collections::HashMap;

/// Inputs of a formula, at most.
const WIDEST_CHAIN: usize = 6;

pub(super) struct Builder<'a> {
    pub(super) shared: &'a Shared,
    pub(super) places: HashMap<Id, Place>,
    /// Tensors with the shapes of the values, and the values of such tensors.
    pub(super) shapes: HashMap<Id, Tensor>,
    pub(super) ids: HashMap<u64, Id>,
    pub(super) uses: Vec<usize>,
    pub(super) vals: Vec<Info>,
    pub(super) drafts: Vec<Draft>,
}

pub(super) fn refused(why: impl Into<String>) -> Error {
    Error::invalid(why.into()).in_op("plan")
}

/// The plan of a graph for inputs of these shapes.
pub(super) fn plan(shared: &Shared, shapes: &[Vec<usize>]) -> Result<Plan> {
    let graph = &shared.graph;
    if !graph.writes.is_empty() {
        return Err(refused("the graph writes what it is given"));
    }
    let mut b = Builder {
        shared,
        places: HashMap::new(),
        shapes: HashMap::new(),
        ids: HashMap::new(),
        uses: uses(graph),
        vals: vec![],
        drafts: vec![],
    };
    for weight in &graph.weights {
        b.hold(weight.value, weight.tensor.clone());
    }
    let mut inputs = Vec::new();
    for (input, shape) in graph.inputs.iter().zip(shapes) {
        let meta = Tensor::meta(shape, graph.values[input.value].dtype);
        inputs.push(b.val(shape.iter().product(), shape.clone(), true));
        b.there(input.value, meta, *inputs.last().expect("just put there"));
    }
    for call in &graph.calls {
        b.call(call)?;
    }
    let outputs =
        graph.outputs.iter().map(|&id| b.as_tensor(id).map(|(given, _)| given)).collect::<Result<Vec<_>>>()?;
    Ok(finish(b.vals, b.drafts, inputs, outputs))
}

/// How often each value is read; an output once more.
fn uses(graph: &Graph) -> Vec<usize> {
    let mut uses = vec![0; graph.values.len()];
    for call in &graph.calls {
        let mut ids = Vec::new();
        call.args.iter().for_each(|a| crate::lower::tensor_ids(a, &mut ids));
        ids.iter().for_each(|&id| uses[id] += 1);
    }
    graph.outputs.iter().for_each(|&id| uses[id] += 2);
    uses
}

impl Builder<'_> {
    pub(super) fn val(&mut self, len: usize, shape: Vec<usize>, tensor: bool) -> Val {
        self.vals.push(Info { len, shape, tensor });
        self.vals.len() - 1
    }

    pub(super) fn know(&mut self, id: Id, like: Tensor) {
        self.ids.insert(like.id(), id);
        self.shapes.insert(id, like);
    }

    pub(super) fn hold(&mut self, id: Id, tensor: Tensor) {
        self.know(id, tensor.clone());
        self.places.insert(id, Place::Held(tensor));
    }

    pub(super) fn there(&mut self, id: Id, like: Tensor, plain: Val) {
        self.know(id, like);
        self.places.insert(id, Place::There { plain: Some(plain), blocked: None });
    }

    pub(super) fn shape(&self, id: Id) -> &[usize] {
        self.shapes[&id].shape()
    }

    pub(super) fn is_float(&self, id: Id) -> bool {
        self.shapes[&id].dtype() == DType::Float32
    }

    pub(super) fn held(&self, id: Id) -> Option<&Tensor> {
        if let Some(Place::Held(t)) = self.places.get(&id) { Some(t) } else { None }
    }

    pub(super) fn size(&self, size: &Size) -> Result<i64> {
        let extent = |id: Id, axis: usize| Some(*self.shapes.get(&id)?.shape().get(axis)? as i64);
        size.eval(extent).ok_or_else(|| refused(format!("the size {size:?} cannot be computed")))
    }

    /// An argument with tensors that have shapes alone.
    fn value(&self, arg: &Arg) -> Result<Value> {
        let like = |id: &Id| self.shapes.get(id).cloned().ok_or_else(|| refused(format!("value {id} is not there")));
        Ok(match arg {
            Arg::Plain(v) => v.clone(),
            Arg::Tensor(id) => Value::Tensor(like(id)?),
            Arg::Tensors(ids) => Value::Tensors(ids.iter().map(like).collect::<Result<_>>()?),
            Arg::Size(s) => Value::Int(self.size(s)?),
            Arg::Sizes(all) => Value::Ints(all.iter().map(|s| self.size(s)).collect::<Result<_>>()?),
            Arg::List(parts) => Value::List(parts.iter().map(|p| self.value(p)).collect::<Result<_>>()?),
            Arg::Block(_) => return Err(refused("values decide which way it goes")),
        })
    }

    fn call(&mut self, call: &Call) -> Result<()> {
        if self.coded_call(call)? {
            return Ok(());
        }
        let args = call.args.iter().map(|a| self.value(a)).collect::<Result<Args>>()?;
        let mut read = Vec::new();
        call.args.iter().for_each(|a| crate::lower::tensor_ids(a, &mut read));
        let known = read.iter().all(|&id| self.held(id).is_some());
        let heard = hear(call.op, args.clone())?;
        if heard.outputs.len() < call.outputs.len() {
            return Err(refused(format!("{} gave too few results", call.op.name)));
        }
        let made = heard.outputs.iter().all(|t| t.device() == Device::Cpu);
        if known && made && !call.op.random {
            // The same for all inputs of these shapes.
            for (&id, t) in call.outputs.iter().zip(&heard.outputs) {
                self.hold(id, t.clone());
            }
            return Ok(());
        }
        for (&id, t) in call.outputs.iter().zip(&heard.outputs) {
            self.know(id, t.clone());
        }
        if let [out] = call.outputs[..]
            && !call.op.random
            && let Some(place) = self.planned(call, &heard, &args, &read, out)?
        {
            self.places.insert(out, place);
            return Ok(());
        }
        if call.op.name == "rnn" && self.recurrent(call, &args)? {
            return Ok(());
        }
        self.fall_back(call)
    }

    /// How a call is computed here, if it is.
    fn planned(&mut self, call: &Call, heard: &Heard, args: &[Value], read: &[Id], out: Id) -> Result<Option<Place>> {
        if !self.is_float(out) {
            return Ok(None);
        }
        let alone = |b: &Self, id: Id| b.uses[id] == 1;
        // A part of the layer before.
        if let ([x], Some(after)) = (read, fuse::activation(call))
            && alone(self, *x)
            && let Some(Place::Layer(layer)) = self.places.get_mut(x)
            && layer.after.is_none()
        {
            let layer = Layer { after: Some(after), ..(**layer).clone() };
            return Ok(Some(Place::Layer(Box::new(layer))));
        }
        if let ("add", &[a, b]) = (call.op.name, read)
            && self.shape(a) == self.shape(b)
            && self.is_float(a)
            && self.is_float(b)
        {
            for (a, b) in [(b, a), (a, b)] {
                if alone(self, a)
                    && self.held(b).is_none()
                    && let Some(Place::Layer(layer)) = self.places.get(&a)
                    && layer.after.is_none()
                    && layer.add.is_none()
                {
                    let layer = Layer { add: Some(b), ..(**layer).clone() };
                    // Codes are added as they are.
                    if layer.coded.is_none() || !matches!(self.places.get(&b), Some(Place::Decoded(_))) {
                        self.force(b)?;
                    }
                    return Ok(Some(Place::Layer(Box::new(layer))));
                }
            }
        }
        let coded = self.coded_of(call);
        let is_held = |&id: &Id| {
            self.held(id).is_some() || coded.is_some() && matches!(self.places.get(&id), Some(Place::Weight(_)))
        };
        let held = |t: &Tensor| self.ids.get(&t.id()).copied().filter(is_held);
        let id = |t: &Tensor| self.ids.get(&t.id()).copied();
        if let Some(mut layer) = layers::layer(call, heard, args, &held, &id) {
            match coded {
                Some(coded) => layer.coded = Some(Box::new(coded)),
                None => self.force(layer.x)?,
            }
            return Ok(Some(Place::Layer(Box::new(layer))));
        }
        if let (Some((s, kind)), &[x]) = (layers::pooling(heard), read)
            && (self.in_blocks(x) || self.shape(x)[1] >= BLOCK / 2)
        {
            if let (Pooling::Max, Some(place)) = (kind, self.pool_codes(s, x, out)) {
                return Ok(Some(place));
            }
            let s = PoolShape { planes: s.planes / self.shape(x)[1] * self.shape(x)[1].div_ceil(BLOCK), ..s };
            let from = self.blocked(x)?;
            let kernel: Kernel = Box::new(move |x, y| pool(&s, kind, x[0], y));
            let to = self.emit_blocked(format!("pool {kind:?}"), kernel, vec![Source::Val(from)], out);
            return Ok(Some(Place::There { plain: None, blocked: Some(to) }));
        }
        if let (true, &[x]) = (layers::reshapes(heard), read)
            && self.held(x).is_none()
        {
            let Source::Val(plain) = self.plain(x)? else { return Ok(None) };
            return Ok(Some(Place::There { plain: Some(plain), blocked: None }));
        }
        if let ([f], true) = (heard.formulas.as_slice(), heard.parts.is_empty())
            && f.dtype == DType::Float32
            && !f.tensors.is_empty()
            && let Some(inputs) = f.tensors.iter().map(|t| self.ids.get(t).copied()).collect::<Option<Vec<_>>>()
            && heard::ids(args).len() >= inputs.len()
        {
            return self.chain(f.formula.clone(), inputs, out).map(Some);
        }
        self.joined(call, read, out)
    }

    /// A formula, with those that only it reads inside of it.
    fn chain(&mut self, mut formula: Bound, mut inputs: Vec<Id>, out: Id) -> Result<Place> {
        let shape = self.shape(out).to_vec();
        let mut at = 0;
        while at < inputs.len() {
            let id = inputs[at];
            if self.uses[id] == 1
                && self.shape(id) == shape
                && let Some(Place::Chain(inner, theirs)) = self.places.get(&id)
                && inputs.len() + theirs.len() <= WIDEST_CHAIN + 1
            {
                formula = formula.compose(at, inner);
                inputs.remove(at);
                inputs.extend(theirs);
            } else {
                at += 1;
            }
        }
        for &input in &inputs {
            self.force(input)?;
        }
        Ok(Place::Chain(formula, inputs))
    }

    /// Images side by side along the channels.
    fn joined(&mut self, call: &Call, read: &[Id], out: Id) -> Result<Option<Place>> {
        let axis = matches!(call.arg("axis"), Some(Arg::Plain(Value::Int(1 | -3))));
        let fits = |&id: &Id| self.is_float(id) && self.in_blocks(id) && self.shape(id)[1].is_multiple_of(BLOCK);
        if call.op.name != "concat" || !axis || self.shape(out).len() != 4 || !read.iter().all(fits) {
            return Ok(None);
        }
        let (batch, plane) = (self.shape(out)[0], self.shape(out)[2..].iter().product());
        let blocks: Vec<usize> = read.iter().map(|&id| self.shape(id)[1] / BLOCK).collect();
        let from = read.iter().map(|&id| self.blocked(id).map(Source::Val)).collect::<Result<Vec<_>>>()?;
        let kernel: Kernel = Box::new(move |x, y| {
            let parts: Vec<(usize, &[f32])> = blocks.iter().copied().zip(x.iter().copied()).collect();
            join(batch, plane, &parts, y);
        });
        let to = self.emit_blocked("concat".into(), kernel, from, out);
        Ok(Some(Place::There { plain: None, blocked: Some(to) }))
    }

    /// Does a value lie in blocks, or will it?
    pub(super) fn in_blocks(&self, id: Id) -> bool {
        match self.places.get(&id) {
            Some(Place::There { blocked, .. }) => blocked.is_some(),
            Some(Place::Layer(layer)) => !matches!(layer.kind, layers::Kind::Linear { .. }),
            Some(Place::Decoded(codes)) => codes.images,
            Some(Place::Chain(_, inputs)) => {
                self.shape(id).len() == 4
                    && inputs.iter().any(|&i| self.shape(i) == self.shape(id) && self.in_blocks(i))
                    && inputs.iter().all(|&i| self.held(i).is_none() && self.shape(i) == self.shape(id))
            }
            _ => false,
        }
    }

    fn given(&mut self, arg: &Arg, reads: &mut Vec<Val>) -> Result<Given> {
        let mut tensor = |b: &mut Self, id: &Id| {
            let (given, val) = b.as_tensor(*id)?;
            reads.extend(val);
            Ok(given)
        };
        Ok(match arg {
            Arg::Tensor(id) => tensor(self, id)?,
            Arg::Tensors(ids) => Given::Tensors(ids.iter().map(|id| tensor(self, id)).collect::<Result<_>>()?),
            Arg::List(parts) => Given::List(parts.iter().map(|p| self.given(p, reads)).collect::<Result<_>>()?),
            other => Given::Always(self.value(other)?),
        })
    }

    /// A call through `dispatch`.
    fn fall_back(&mut self, call: &Call) -> Result<()> {
        let mut reads = Vec::new();
        let args = call.args.iter().map(|a| self.given(a, &mut reads)).collect::<Result<Vec<_>>>()?;
        let mut to = Vec::new();
        for &id in &call.outputs {
            let shape = self.shape(id).to_vec();
            let val = self.val(shape.iter().product(), shape, true);
            self.places.insert(id, Place::There { plain: Some(val), blocked: None });
            to.push(val);
        }
        self.drafts.push(Draft::Call { op: call.op, args, reads, to });
        Ok(())
    }
}
