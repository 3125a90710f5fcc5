//! A tape of the CPU's work: which calls were made, on what, while they are made.
//!
//! Calls are taken down at the level of primitive ops: what a composite or a gradient formula calls, not what a primitive
//! does inside. A value is known by where it lies in which memory, so that views and handles without history are the
//! values they look at. Memory that was made on the way by something that is no call is never taken for a constant, unless
//! an op made it, which does so by shapes alone.

use super::replay::{Act, Call, Kernel, Source, Step, Tape, nothing};
use crate::autograd::grad_enabled;
use crate::captured::Line;
use crate::dispatch::{self, Listener, Write};
use crate::op::OpDef;
use crate::recording;
use crate::shape::{Shape, Strides};
use crate::storage::{Storage, WeakStorage};
use crate::value::Args;
use crate::{DType, Error, Tensor, Value};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Where a value lies.
type Key = (usize, Shape, Strides, usize, DType);

fn key(t: &Tensor) -> Key {
    let l = t.layout();
    (t.storage().address(), l.shape.clone(), l.strides.clone(), l.offset, t.dtype())
}

/// By whom memory was made.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Made {
    /// By a call that is recorded, inside.
    InCall,
    /// By a composite or a gradient formula.
    ByOps,
    /// By the program.
    ByHost,
}

/// Memory of a value of the tape.
struct Known {
    storage: WeakStorage,
    slot: usize,
    offset: usize,
}

/// Takes calls down.
pub(crate) struct Builder {
    /// Inside of how many calls the program is, from the recorded one on.
    pub depth: usize,
    /// Composites that the program is inside of.
    pub composites: Vec<&'static str>,
    pub gate: Arc<AtomicBool>,
    pub line: Option<Line>,
    steps: Vec<Step>,
    slots: usize,
    values: HashMap<Key, Source>,
    /// Memory of values; weak, which keeps the address from being used for something else.
    memory: HashMap<usize, Known>,
    made: HashMap<usize, (WeakStorage, Made)>,
    /// Tensors that were there before, or are constants.
    outside: Vec<Tensor>,
    /// Slots of gradients that leaves had before: (leaf, slot).
    gradients: Vec<(usize, usize)>,
    /// Those of them that nobody else holds: ops made them by shapes.
    constants: Vec<bool>,
    /// What the call that is running saves for its gradient.
    saved: Vec<Tensor>,
    /// Kernels that the call that is running has run, on what and for what.
    kernels: SmallVec<[(SmallVec<[Tensor; 3]>, Tensor, dispatch::Kernel); 1]>,
    /// Has the call that is running looked at values on the host? What it told its kernel then holds for this time alone.
    peeked: bool,
    /// Does the shape of what the call that is running gives depend on values?
    pub by_values: bool,
    /// Were gradients computed?
    pub walked: bool,
}

impl Builder {
    /// A tape of a function of these tensors.
    pub fn new(inputs: &[Tensor], line: Option<Line>) -> Builder {
        // Made now, since notes cannot be taken of what is made while they are taken.
        nothing();
        let mut tape = Builder {
            depth: 0,
            composites: Vec::new(),
            gate: Arc::default(),
            line,
            steps: Vec::new(),
            slots: 0,
            values: HashMap::new(),
            memory: HashMap::new(),
            made: HashMap::new(),
            outside: Vec::new(),
            gradients: Vec::new(),
            constants: Vec::new(),
            saved: Vec::new(),
            kernels: SmallVec::new(),
            peeked: false,
            by_values: false,
            walked: false,
        };
        for t in inputs {
            tape.new_value(t);
        }
        tape
    }

    /// A new slot for a value.
    fn new_value(&mut self, t: &Tensor) -> usize {
        let slot = self.slots;
        self.slots += 1;
        self.values.insert(key(t), Source::Slot(slot));
        let storage = t.storage();
        let known = || Known { storage: storage.downgrade(), slot, offset: t.layout().offset };
        self.memory.entry(storage.address()).or_insert_with(known);
        slot
    }

    /// The gradient that a leaf had before.
    pub fn gradient(&mut self, leaf: usize, grad: &Tensor) {
        if !self.values.contains_key(&key(grad)) {
            let slot = self.new_value(grad);
            self.gradients.push((leaf, slot));
        }
    }

    /// Memory was made.
    pub fn made(&mut self, storage: &Storage, by: Made) {
        self.made.insert(storage.address(), (storage.downgrade(), by));
    }

    /// Is a tensor one of the tape's own values?
    pub fn is_own(&self, t: &Tensor) -> bool {
        self.memory.contains_key(&t.storage().address())
    }

    /// Where a value comes from; the reason why that cannot be told, if it cannot.
    fn source(&mut self, t: &Tensor) -> Result<Source, String> {
        if let Some(&known) = self.values.get(&key(t)) {
            return Ok(known);
        }
        let address = t.storage().address();
        if let Some(known) = self.memory.get(&address) {
            let (from, offset) = (known.slot, known.offset);
            return Ok(self.view(from, offset, t));
        }
        match self.made.get(&address) {
            Some((_, Made::InCall)) => Err("a call keeps a value that it does not give".into()),
            Some((_, Made::ByHost)) => Err("a tensor is made from values of the host".into()),
            _ => Ok(self.outside(t)),
        }
    }

    /// A tensor that does not change place.
    fn outside(&mut self, t: &Tensor) -> Source {
        let source = Source::Outside(self.outside.len());
        self.constants.push(self.made.contains_key(&t.storage().address()));
        self.outside.push(t.detach());
        self.values.insert(key(t), source);
        source
    }

    /// What is seen of the memory of a value.
    fn view(&mut self, from: usize, offset: usize, t: &Tensor) -> Source {
        let slot = self.slots;
        self.slots += 1;
        let layout = t.layout().clone();
        let delta = layout.offset as isize - offset as isize;
        self.steps.push(Step::View { from, layout, delta, dtype: t.dtype(), to: slot });
        self.values.insert(key(t), Source::Slot(slot));
        Source::Slot(slot)
    }

    fn sources<'a>(&mut self, tensors: impl IntoIterator<Item = &'a Tensor>) -> Result<SmallVec<[Source; 4]>, String> {
        tensors.into_iter().map(|t| self.source(t)).collect()
    }

    /// A call was made.
    fn called(&mut self, op: &'static OpDef, args: &[Value], outputs: &[Tensor]) -> Option<String> {
        let mut tensors: SmallVec<[&Tensor; 4]> = SmallVec::new();
        args.iter().for_each(|v| v.for_each_tensor(&mut |t| tensors.push(t)));
        let (saved, kernels) = (std::mem::take(&mut self.saved), std::mem::take(&mut self.kernels));
        if std::mem::take(&mut self.by_values) {
            return Some("the shape of a result depends on values".into());
        }
        let sources = match self.sources(tensors.iter().copied()) {
            Ok(sources) => sources,
            Err(why) => return Some(why),
        };
        // What only looks at the memory of its inputs needs no call.
        let of_input = |o: &Tensor| tensors.iter().any(|t| t.shares_memory(o));
        if !outputs.is_empty() && outputs.iter().all(of_input) {
            return outputs.iter().find_map(|o| self.source(o).err());
        }
        let inside = |made: &HashMap<usize, (WeakStorage, Made)>, t: &Tensor| {
            made.get(&t.storage().address()).is_some_and(|(_, by)| *by == Made::InCall)
        };
        let peeked = std::mem::take(&mut self.peeked);
        let is_output = |t: &Tensor| outputs.iter().any(|o| o.shares_memory(t));
        let keeps_more = saved.iter().any(|t| inside(&self.made, t) && !self.is_own(t) && !is_output(t));
        if !peeked
            && !keeps_more
            && let Some(kernel) = self.kernel(op, kernels, outputs)
        {
            self.steps.push(kernel);
            return None;
        }
        let track = grad_enabled() && !op.non_diff && tensors.iter().any(|t| t.is_tracked());
        let outputs = outputs.iter().map(|o| self.new_value(o)).collect();
        let mut extra = SmallVec::new();
        for (i, t) in saved.iter().enumerate() {
            if inside(&self.made, t) && !self.is_own(t) {
                extra.push((i, self.new_value(t)));
            }
        }
        let mut args = Args::from(args);
        let mut next = sources.iter();
        let place = |_: &Tensor| match next.next() {
            Some(Source::Outside(i)) => Ok(self.outside[*i].clone()),
            _ => Ok(nothing()),
        };
        let mut place = place;
        // Nothing in it fails.
        let filled: crate::Result<()> = args.iter_mut().try_for_each(|v| v.map_tensors(&mut place));
        if let Err(error) = filled {
            return Some(error.to_string());
        }
        let reads = sources.iter().map(|s| if let Source::Slot(i) = s { Some((*i, false)) } else { None }).collect();
        self.steps.push(Step::Call(Call { op, args, reads, outputs, extra, track }));
        None
    }

    /// The one kernel that a call comes down to, if it says so and gives what that computes.
    fn kernel(
        &mut self,
        op: &'static OpDef,
        kernels: SmallVec<[(SmallVec<[Tensor; 3]>, Tensor, dispatch::Kernel); 1]>,
        outputs: &[Tensor],
    ) -> Option<Step> {
        let [output] = outputs else { return None };
        let [(reads, out, run)] = <[_; 1]>::try_from(kernels.into_vec()).ok()?;
        if key(output) != key(&out) || !out.is_contiguous() || out.layout().offset != 0 {
            return None;
        }
        let reads = self.sources(&reads).ok()?.into_iter().collect();
        let (shape, dtype, to) = (out.shape_vec(), out.dtype(), self.new_value(output));
        Some(Step::Kernel(Kernel { op, run, reads, shape, dtype, to }))
    }

    /// Something was done that is no call.
    pub fn act(&mut self, inputs: &[&Tensor], outputs: &[Tensor], f: Act) -> Option<String> {
        let inputs = match self.sources(inputs.iter().copied()) {
            Ok(inputs) => inputs.into_vec(),
            Err(why) => return Some(why),
        };
        let outputs = outputs.iter().map(|o| self.new_value(o)).collect();
        self.steps.push(Step::Act { inputs, outputs, f });
        None
    }

    /// A copy was made outside of a call.
    pub fn copied(&mut self, from: &Tensor, to: &Tensor, lazily: bool) -> Option<String> {
        let from = match self.source(from) {
            Ok(from) => from,
            Err(why) => return Some(why),
        };
        let to = self.new_value(to);
        self.steps.push(Step::Copy { from, lazily, to });
        None
    }

    /// Values were written outside of a call.
    pub fn wrote(&mut self, target: &Tensor, values: &Tensor) -> Option<String> {
        let both = self.source(target).and_then(|target| Ok((target, self.source(values)?)));
        match both {
            Ok((target, values)) => self.steps.push(Step::Write { target, values }),
            Err(why) => return Some(why),
        }
        None
    }

    /// Where a result comes from.
    pub fn result(&mut self, t: &Tensor) -> Result<Source, String> {
        self.source(t)
    }

    /// Has somebody kept a value other than these, or dropped what was given?
    pub fn kept(&self, handed: &[Tensor], inputs: usize) -> bool {
        let first: Vec<usize> = (0..inputs).chain(self.gradients.iter().map(|&(_, slot)| slot)).collect();
        let alive = |known: &Known| known.storage.upgrade().is_some();
        let handed = |known: &Known| handed.iter().any(|t| known.storage.is(t.storage()));
        self.memory.values().any(|known| !first.contains(&known.slot) && alive(known) && !handed(known))
    }

    /// The tape.
    pub fn finish(self, inputs: usize) -> Tape {
        let outside = self.outside.into_iter().zip(self.constants).collect();
        Tape::new(self.steps, self.slots, inputs, outside, self.gate)
    }

    /// Slots of gradients that leaves had before.
    pub fn gradients(&self) -> &[(usize, usize)] {
        &self.gradients
    }
}

/// Takes down what a thread calls.
pub(super) struct Recorder;

impl Listener for Recorder {
    fn enter(&self, op: &'static OpDef, _args: &[Value]) {
        let begins = recording::with_tape(|tape| {
            let inside = tape.depth > 0;
            if inside || op.primitive {
                tape.depth += 1;
            } else {
                tape.composites.push(op.name);
            }
            !inside && op.primitive
        });
        if begins == Some(true) {
            recording::inside_call(true);
        }
    }

    fn exit(&self, op: &'static OpDef, args: &[Value], outputs: &[Tensor]) {
        if !ends() {
            return;
        }
        let refused = recording::with_tape(|tape| tape.called(op, args, outputs)).flatten();
        recording::inside_call(false);
        if let Some(why) = refused {
            recording::refuse(|| format!("{why}, in {}", op.name));
        }
    }

    fn failed(&self, _op: &'static OpDef, _args: &[Value], _error: &Error) {
        if ends() {
            recording::with_tape(|tape| {
                tape.saved.clear();
                tape.kernels.clear();
                tape.peeked = false;
                tape.by_values = false;
            });
            recording::inside_call(false);
        }
    }

    fn wrote(&self, _before: &Tensor, _after: &Tensor, write: &Write) {
        // All others are told of as they are done.
        if matches!(write, Write::Update) && recording::on() {
            recording::refuse(|| "memory is written by what is no call".into());
        }
    }

    fn read(&self, _tensor: &Tensor, what: &'static str) {
        if recording::on() {
            recording::refuse(|| format!("a value is read ({what})"));
        }
    }
}

/// A call ends; is it the recorded one?
fn ends() -> bool {
    let ended = recording::with_tape(|tape| match tape.depth {
        0 => {
            tape.composites.pop();
            false
        }
        depth => {
            tape.depth -= 1;
            depth == 1
        }
    });
    ended == Some(true)
}

/// What the call that is recorded saves for its gradient.
#[cold]
pub(crate) fn saved(tensors: &[&Tensor]) {
    recording::with_tape(|tape| {
        if tape.depth == 1 {
            tape.saved = tensors.iter().map(|&t| t.clone()).collect();
        }
    });
}

/// The shape of what the running call gives depends on values.
#[cold]
pub(crate) fn by_values() {
    recording::with_tape(|tape| tape.by_values |= tape.depth == 1);
}

/// The kernel that the call that is recorded has run on these tensors to fill `out`.
#[cold]
pub(crate) fn kernel(tensors: &[&Tensor], out: &Tensor, run: impl FnOnce() -> dispatch::Kernel) {
    recording::with_tape(|tape| {
        if tape.depth == 1 {
            tape.kernels.push((tensors.iter().map(|&t| t.clone()).collect(), out.clone(), run()));
        }
    });
}

/// The call that is recorded looks at values on the host.
#[cold]
pub(crate) fn peeked() {
    recording::with_tape(|tape| tape.peeked |= tape.depth > 0);
}
