//! One watched run as calls on numbered values: writes in place become new values of the same handle.

use crate::graph::Id;
use crate::record::{Event, Heard, tensors};
use sampan_core::dispatch::Cx;
use sampan_core::error::Kind;
use sampan_core::op::{Amp, Kind as Kinds, OpDef, Outputs, Param, Returns};
use sampan_core::value::Arg as _;
use sampan_core::{Device, Error, Result, Tensor, Value};
use std::collections::HashMap;

/// `x.detach()` is no call to those who listen, so the graph has one of its own.
pub static DETACH: OpDef =
    own("detach", "The same values, left out of gradients.", &[param("x", Kinds::Tensor)], detach);

/// An op that only graphs have.
pub(crate) const fn own(
    name: &'static str,
    doc: &'static str,
    params: &'static [Param],
    run: fn(&Cx) -> Result<Outputs>,
) -> OpDef {
    OpDef {
        name,
        module: "",
        file: file!(),
        doc,
        params,
        aliases: &[],
        also: &[],
        internal: true,
        fused_on_gpu: false,
        returns: Returns::Varying,
        results: &[],
        tuple: None,
        several: None,
        keywords: &[],
        primitive: false,
        non_diff: false,
        complex: true,
        inplace: false,
        random: false,
        amp: Amp::Keep,
        work: None,
        flops: None,
        onnx: None,
        peer: None,
        tol: None,
        run,
        reference: None,
        samples: None,
    }
}

/// A parameter of such an op, which must be given.
pub(crate) const fn param(name: &'static str, kind: Kinds) -> Param {
    Param { name, kind, optional: false, default: None, default_repr: "" }
}

fn detach(cx: &Cx) -> Result<Outputs> {
    Ok(Outputs::from_iter([<&Tensor>::get(&cx.args()[0], "x")?.detach()]))
}

/// A call whose tensors have numbers.
pub(crate) struct Step {
    pub op: &'static OpDef,
    pub args: Vec<Value>,
    /// The values that stand for the tensors among the arguments, in order.
    pub ids: Vec<Id>,
    pub outputs: Vec<Id>,
    pub no_grad: bool,
    pub source: Option<String>,
}

/// A run: what it made of its inputs.
#[derive(Default)]
pub(crate) struct Run {
    pub steps: Vec<Step>,
    /// Tensors that no call made, in the order of their first use.
    pub weights: Vec<Id>,
    pub outputs: Vec<Id>,
    pub writes: Vec<(Id, Id)>,
    /// A tensor for each value.
    pub tensors: Vec<Tensor>,
    pub stopped: Vec<bool>,
    /// How many of the first values are inputs.
    pub inputs: usize,
    /// Tensors that were there before and whose values went to the host.
    pub reads: Vec<(Tensor, &'static str, Option<String>)>,
}

/// A tensor of the program and the value it holds now.
struct Handle {
    tensor: Tensor,
    id: Id,
    stopped: bool,
    /// Another handle on the same memory was written since.
    stale: bool,
    /// The call that made it.
    step: Option<usize>,
    /// Is it an input or a weight, or computed from one?
    depends: bool,
    /// Is it an input or a weight?
    root: bool,
}

pub(crate) struct Builder {
    run: Run,
    handles: Vec<Handle>,
    by_id: HashMap<u64, usize>,
    /// Is it a part of a run? What it does not know, the rest of the run gave.
    inner: bool,
}

fn at(source: &Option<String>) -> String {
    source.as_ref().map_or(String::new(), |s| format!(" ({s})"))
}

impl Builder {
    pub fn new(inputs: &[Tensor], inner: bool) -> Builder {
        let mut builder = Builder { run: Run::default(), handles: Vec::new(), by_id: HashMap::new(), inner };
        for t in inputs {
            builder.root(t, t.stop_gradient());
        }
        builder.run.inputs = inputs.len();
        builder
    }

    fn value(&mut self, tensor: &Tensor, stopped: bool) -> Id {
        self.run.tensors.push(tensor.clone());
        self.run.stopped.push(stopped);
        self.run.tensors.len() - 1
    }

    fn handle(&mut self, tensor: &Tensor, id: Id, stopped: bool, step: Option<usize>, depends: bool) -> usize {
        self.by_id.insert(tensor.id(), self.handles.len());
        self.handles.push(Handle { tensor: tensor.clone(), id, stopped, stale: false, step, depends, root: false });
        self.handles.len() - 1
    }

    fn root(&mut self, tensor: &Tensor, stopped: bool) -> usize {
        let id = self.value(tensor, stopped);
        let h = self.handle(tensor, id, stopped, None, true);
        self.handles[h].root = true;
        h
    }

    /// Adds a call that the program did not make itself.
    fn add(&mut self, op: &'static OpDef, args: Vec<Value>, ids: Vec<Id>, like: &Tensor, source: Option<String>) -> Id {
        let out = self.value(like, true);
        self.run.steps.push(Step { op, args, ids, outputs: vec![out], no_grad: false, source });
        out
    }

    fn detached(&mut self, tensor: &Tensor, id: Id, source: &Option<String>) -> Id {
        self.add(&DETACH, vec![Value::Tensor(tensor.clone())], vec![id], tensor, source.clone())
    }

    /// The value that a tensor holds now.
    fn resolve(&mut self, t: &Tensor, stopped: bool, source: &Option<String>) -> Result<usize> {
        if let Some(&h) = self.by_id.get(&t.id()) {
            if self.handles[h].stale {
                self.refresh(h, source)?;
            }
            if stopped && !self.handles[h].stopped {
                // Somebody set `stop_gradient` on what was computed.
                let id = self.detached(t, self.handles[h].id, source);
                (self.handles[h].id, self.handles[h].stopped) = (id, true);
            }
            return Ok(h);
        }
        let same =
            |h: &Handle| h.tensor.shares_memory(t) && h.tensor.layout() == t.layout() && h.tensor.dtype() == t.dtype();
        if let Some(known) = self.handles.iter().rposition(same) {
            if self.handles[known].stale {
                self.refresh(known, source)?;
            }
            let Handle { id, stopped: was, step, depends, .. } = self.handles[known];
            let id = if stopped && !was { self.detached(t, id, source) } else { id };
            return Ok(self.handle(t, id, stopped, step, depends));
        }
        if self.handles.iter().any(|h| h.tensor.shares_memory(t) && h.step.is_some()) {
            return Err(refused(format!("a view of another tensor was made without a call{}", at(source)))
                .hint("use reshape, slices or transpose"));
        }
        if t.device() == Device::Meta && !self.inner {
            return Err(refused(format!("a tensor of shape {:?} came from nowhere{}", t.shape(), at(source)))
                .hint("a tensor that an earlier trace made cannot be kept between calls"));
        }
        let h = self.root(t, stopped);
        self.run.weights.push(self.handles[h].id);
        Ok(h)
    }

    /// Gives a handle its value again after another one on the same memory was written.
    fn refresh(&mut self, h: usize, source: &Option<String>) -> Result<()> {
        let lost = || {
            refused(format!("a tensor is read after its memory was written through a view of it{}", at(source)))
                .hint("write x[index] = value or x = x.op(…), or take a copy with clone() first")
        };
        let step = self.handles[h].step.ok_or_else(lost)?;
        let Step { op, args, ids, outputs, .. } = &self.run.steps[step];
        let (op, args, mut ids, single) = (*op, args.clone(), ids.clone(), outputs.len() == 1);
        let all = tensors(&args).into_iter().cloned().collect::<Vec<_>>();
        // A view of something that was written: the same view of what that is now.
        let base = all.first().filter(|b| single && b.shares_memory(&self.handles[h].tensor)).ok_or_else(lost)?;
        let base = *self.by_id.get(&base.id()).ok_or_else(lost)?;
        if self.handles[base].stale {
            self.refresh(base, source)?;
        }
        ids[0] = self.handles[base].id;
        let (tensor, stopped) = (self.handles[h].tensor.clone(), self.handles[h].stopped);
        let id = self.add(op, args, ids, &tensor, source.clone());
        self.run.stopped[id] = stopped;
        (self.handles[h].id, self.handles[h].stale) = (id, false);
        Ok(())
    }

    fn call(&mut self, heard: Heard) -> Result<()> {
        let Heard { op, args, outputs, stopped, gave, no_grad, source } = heard;
        let found = tensors(&args).into_iter().cloned().zip(stopped).collect::<Vec<_>>();
        let mut ids = Vec::with_capacity(found.len());
        let mut depends = false;
        for (t, stopped) in &found {
            let h = self.resolve(t, *stopped, &source)?;
            depends |= self.handles[h].depends;
            ids.push(self.handles[h].id);
        }
        let step = self.run.steps.len();
        let mut outs = Vec::new();
        for (t, stopped) in outputs.iter().zip(gave) {
            let id = self.value(t, stopped);
            // An op may give back the very tensor it was given.
            match self.by_id.get(&t.id()) {
                Some(&h) => self.handles[h].id = id,
                None => _ = self.handle(t, id, stopped, Some(step), depends),
            }
            outs.push(id);
        }
        self.run.steps.push(Step { op, args, ids, outputs: outs, no_grad, source });
        Ok(())
    }

    fn wrote(&mut self, before: Tensor, after: Tensor, values: Option<Tensor>, source: Option<String>) -> Result<()> {
        let Some(values) = values else {
            return Err(refused(format!("an optimizer's step cannot be part of a graph{}", at(&source))));
        };
        let target = self.resolve(&before, before.stop_gradient(), &source)?;
        let new = self.resolve(&values, values.stop_gradient(), &source)?;
        let id = self.handles[new].id;
        let (root, was, step) = (self.handles[target].root, self.handles[target].id, self.handles[target].step);
        let depends = self.handles[new].depends || self.handles[target].depends;
        if !values.shares_memory(&before) {
            self.spread(target, id, step, &source);
        }
        if root {
            match self.run.writes.iter_mut().find(|(_, v)| *v == was) {
                Some(write) => write.1 = id,
                None => self.run.writes.push((was, id)),
            }
        }
        self.handles[target].id = id;
        let stopped = after.stop_gradient();
        let h = match self.by_id.get(&after.id()) {
            Some(&h) => h,
            None => self.handle(&after, id, stopped, step, depends),
        };
        let handle = &mut self.handles[h];
        (handle.id, handle.stopped, handle.stale, handle.depends, handle.root) = (id, stopped, false, depends, root);
        Ok(())
    }

    /// What a write into the memory of a handle means to the others on it: what it was cut from by an index holds the new
    /// part; everything else is looked at again when somebody reads it.
    fn spread(&mut self, target: usize, id: Id, step: Option<usize>, source: &Option<String>) {
        let written = self.handles[target].tensor.clone();
        let others = (0..self.handles.len())
            .filter(|&h| h != target && self.handles[h].tensor.shares_memory(&written))
            .filter(|&h| self.handles[h].tensor.id() != written.id())
            .collect::<Vec<_>>();
        let mut base = None;
        if let Some(Step { op, args, ids, .. }) = step.map(|s| &self.run.steps[s])
            && op.name == "getitem"
            && ids.len() == 1
            && let Value::Tensor(cut_from) = &args[0]
            && cut_from.shares_memory(&written)
            && let Some(&h) = self.by_id.get(&cut_from.id())
            && !self.handles[h].stale
        {
            base = Some((h, args[1].clone()));
        }
        for &h in &others {
            self.handles[h].stale = true;
        }
        if let Some((h, index)) = base
            && let Some(setitem) = sampan_core::op::find("setitem")
        {
            let tensor = self.handles[h].tensor.clone();
            let args = vec![Value::Tensor(tensor.clone()), index, Value::Tensor(written), Value::Bool(false)];
            let old = self.handles[h].id;
            let new = self.add(setitem, args, vec![old, id], &tensor, source.clone());
            self.run.stopped[new] = self.handles[h].stopped;
            (self.handles[h].id, self.handles[h].stale) = (new, false);
            if self.handles[h].root {
                self.run.writes.push((old, new));
            }
        }
    }

    fn read(&mut self, tensor: Tensor, what: &'static str, source: Option<String>) -> Result<()> {
        let known = self.by_id.get(&tensor.id()).map(|&h| (self.handles[h].depends, self.handles[h].root));
        match known {
            _ if tensor.device() == Device::Meta => Err(read_error(what, &source)),
            Some((true, false)) => Err(read_error(what, &source)),
            // It may be a tensor of the program, or a number among its lines: other runs will tell.
            Some((true, true)) | None => {
                self.run.reads.push((tensor, what, source));
                Ok(())
            }
            Some((false, _)) => Ok(()),
        }
    }

    pub fn event(&mut self, event: Event) -> Result<()> {
        match event {
            Event::Call(heard) => self.call(heard),
            Event::Wrote { before, after, values, source } => self.wrote(before, after, values, source),
            Event::Read { tensor, what, source } => self.read(tensor, what, source),
        }
    }

    pub fn finish(mut self, outputs: &[Tensor]) -> Result<Run> {
        for t in outputs {
            let h = self.resolve(t, t.stop_gradient(), &None)?;
            let id = self.handles[h].id;
            self.run.outputs.push(id);
        }
        Ok(self.run)
    }
}

pub(crate) fn refused(message: String) -> Error {
    Error::new(Kind::PreconditionNotMet, message).in_op("trace")
}

/// A value was asked for that only a run has.
pub(crate) fn read_error(what: &str, source: &Option<String>) -> Error {
    refused(format!(
        "the program reads a tensor's value with `{what}`{}, which a graph does not know before it runs",
        at(source)
    ))
    .hint("compute with tensors: where(), cond(), masks; or take the value from outside as an argument")
}
