//! A tape that is done again: primitives on tensors, without autograd, arguments to parse or listeners.

use crate::dispatch::{self, Cx, Kept};
use crate::op::OpDef;
use crate::shape::{Layout, Shape};
use crate::value::Args;
use crate::{DType, Device, Result, Tensor, amp, autograd, device};
use smallvec::SmallVec;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// Something that is no call: from tensors to tensors.
pub(crate) type Act = Box<dyn FnMut(&[Tensor], &AtomicBool) -> Result<Vec<Tensor>> + Send>;

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Source {
    /// A place of the tape.
    Slot(usize),
    /// A tensor that was there before.
    Outside(usize),
}

/// One call.
pub(crate) struct Call {
    pub op: &'static OpDef,
    /// With the tensors from outside in their places, and nothing in those of the others.
    pub args: Args,
    /// For each tensor among the arguments: its slot, and whether it is done with then; none from outside.
    pub reads: SmallVec<[Option<(usize, bool)>; 4]>,
    pub outputs: SmallVec<[usize; 2]>,
    /// Values that the body keeps for the gradient: which of those it saves, and their slots.
    pub extra: SmallVec<[(usize, usize); 1]>,
    /// Was a gradient wanted?
    pub track: bool,
}

/// What is left of a call whose arguments were looked at when it was recorded: its kernel, on tensors of the same shapes.
pub(crate) struct Kernel {
    pub op: &'static OpDef,
    pub run: dispatch::Kernel,
    pub reads: SmallVec<[Source; 3]>,
    pub shape: Shape,
    pub dtype: DType,
    /// The result stays there until the next time, to be used again if nobody else holds it.
    pub to: usize,
}

impl Kernel {
    /// Does its result stay with the tape?
    fn is_spared(&self) -> bool {
        self.shape.iter().product::<usize>() * self.dtype.size() <= SPARED
    }
}

/// Results of at most so many bytes stay with the tape. For larger ones asking for memory costs little beside filling it, and
/// memory that was just given back is still in the caches.
const SPARED: usize = 1 << 16;

/// What is done in turn.
#[allow(clippy::large_enum_variant)]
pub(crate) enum Step {
    Call(Call),
    Kernel(Kernel),
    View { from: usize, layout: Layout, delta: isize, dtype: DType, to: usize },
    Copy { from: Source, lazily: bool, to: usize },
    Write { target: Source, values: Source },
    Act { inputs: Vec<Source>, outputs: Vec<usize>, f: Act },
}

/// Recorded work of the CPU.
pub(crate) struct Tape {
    steps: Vec<Step>,
    slots: Vec<Option<Tensor>>,
    inputs: usize,
    outside: Vec<Tensor>,
    /// How many handles on the memory of each of them are the tape's own; none are counted of constants.
    own: Vec<Option<usize>>,
    /// Which slots nobody reads after which step.
    done: Vec<SmallVec<[usize; 2]>>,
    /// Those that are emptied in the end, which are all but those of small results of kernels.
    emptied: Vec<usize>,
    gate: Arc<AtomicBool>,
}

/// Stands in the place of a tensor that is not there yet.
pub(super) fn nothing() -> Tensor {
    static NOTHING: OnceLock<Tensor> = OnceLock::new();
    NOTHING.get_or_init(|| Tensor::meta([0], DType::Float32)).clone()
}

impl Tape {
    /// A tape with so many slots, the first of which are the inputs; of what is outside it is said whether it is constant.
    pub fn new(
        steps: Vec<Step>,
        slots: usize,
        inputs: usize,
        outside: Vec<(Tensor, bool)>,
        gate: Arc<AtomicBool>,
    ) -> Tape {
        let handles = |t: &Tensor| outside.iter().filter(|(o, _)| o.shares_memory(t)).count();
        let own = outside.iter().map(|(t, constant)| (!constant).then(|| handles(t))).collect();
        let outside = outside.into_iter().map(|(t, _)| t).collect();
        Tape { steps, slots: vec![None; slots], inputs, outside, own, done: Vec::new(), emptied: Vec::new(), gate }
    }

    /// How many calls it makes.
    pub fn calls(&self) -> usize {
        self.steps.iter().filter(|s| matches!(s, Step::Call(_) | Step::Kernel(_) | Step::Act { .. })).count()
    }

    /// Names of what it does.
    pub fn describe(&self) -> Vec<&'static str> {
        let name = |s: &Step| match s {
            Step::Call(call) => call.op.name,
            Step::Kernel(kernel) => kernel.op.name,
            Step::View { .. } => "(view)",
            Step::Copy { .. } => "(copy)",
            Step::Write { .. } => "(write)",
            Step::Act { .. } => "(act)",
        };
        self.steps.iter().map(name).collect()
    }

    /// Finds out when values are done with; those of `kept` never are.
    pub fn settle(&mut self, kept: &[Source]) {
        let mut last: Vec<Option<usize>> = vec![None; self.slots.len()];
        for (k, step) in self.steps.iter().enumerate() {
            step.for_each_read(|slot| last[slot] = Some(k));
        }
        let kept: Vec<usize> =
            kept.iter().filter_map(|s| if let Source::Slot(i) = s { Some(*i) } else { None }).collect();
        kept.iter().for_each(|&slot| last[slot] = Some(usize::MAX));
        let stays = |s: &Step| if let Step::Kernel(k) = s { k.is_spared().then_some(k.to) } else { None };
        let stay: Vec<usize> = self.steps.iter().filter_map(stays).collect();
        stay.iter().for_each(|&slot| last[slot] = Some(usize::MAX));
        self.emptied = (0..self.slots.len()).filter(|slot| !stay.contains(slot)).collect();
        // A value that a call gives and nobody reads goes at once; reads take theirs along.
        self.done = vec![SmallVec::new(); self.steps.len()];
        for (k, step) in self.steps.iter_mut().enumerate() {
            if let Step::Call(call) = step {
                let mut seen: SmallVec<[usize; 4]> = SmallVec::new();
                for read in call.reads.iter_mut().rev().flatten() {
                    read.1 = last[read.0] == Some(k) && !seen.contains(&read.0);
                    seen.push(read.0);
                }
            } else {
                step.for_each_read(|slot| {
                    if last[slot] == Some(k) && !self.done[k].contains(&slot) {
                        self.done[k].push(slot);
                    }
                });
            }
            step.for_each_made(|slot| {
                if last[slot].is_none() {
                    self.done[k].push(slot);
                }
            });
        }
    }

    /// Is somebody else still holding what it works on?
    pub fn is_held(&self) -> bool {
        self.outside.iter().zip(&self.own).all(|(t, own)| own.is_none_or(|own| t.storage().holders() > own))
    }

    /// A value, after the work is done.
    pub fn value(&self, source: Source) -> Tensor {
        self.get(source).clone()
    }

    fn get(&self, source: Source) -> &Tensor {
        match source {
            Source::Slot(i) => self.slots[i].as_ref().expect("made before it is read"),
            Source::Outside(i) => &self.outside[i],
        }
    }

    /// Puts a value in its place before the work is done.
    pub fn place(&mut self, slot: usize, t: Tensor) {
        self.slots[slot] = Some(t);
    }

    /// Does it all.
    pub fn run(&mut self, given: &[Tensor]) -> Result<()> {
        debug_assert_eq!(given.len(), self.inputs);
        for (slot, t) in self.slots.iter_mut().zip(given) {
            *slot = Some(t.clone());
        }
        self.gate.store(false, Ordering::Relaxed);
        let _stay = device::Stay::on(Device::Cpu);
        let mut work = || dispatch::outermost(|| self.run_steps());
        autograd::no_grad(|| if amp::enabled() { amp::with_level(None, work) } else { work() })
    }

    /// Forgets all values but those that stay.
    pub fn clear(&mut self) {
        self.emptied.iter().for_each(|&slot| self.slots[slot] = None);
    }

    fn run_steps(&mut self) -> Result<()> {
        for k in 0..self.steps.len() {
            match &mut self.steps[k] {
                Step::Call(call) => call.run(&mut self.slots)?,
                Step::Kernel(kernel) => kernel.run(&mut self.slots, &self.outside)?,
                Step::View { from, layout, delta, dtype, to } => {
                    let from = self.slots[*from].as_ref().expect("made before it is read");
                    let offset = (from.layout().offset as isize + *delta) as usize;
                    let layout = Layout { offset, ..layout.clone() };
                    self.slots[*to] = Some(Tensor::from_parts(from.storage().clone(), layout, *dtype));
                }
                Step::Copy { from, lazily, to } => {
                    let (from, lazily, to) = (*from, *lazily, *to);
                    let from = self.get(from);
                    let copy = if lazily { from.lazy_copy(from.layout().clone()) } else { from.try_clone_data() };
                    self.slots[to] = Some(copy?);
                }
                Step::Write { target, values } => {
                    let (target, values) = (*target, *values);
                    self.get(target).overwrite(self.get(values))?;
                }
                Step::Act { inputs, outputs, f } => {
                    let of = |s: &Source| match s {
                        Source::Slot(i) => self.slots[*i].clone().expect("made before it is read"),
                        Source::Outside(i) => self.outside[*i].clone(),
                    };
                    let given: SmallVec<[Tensor; 4]> = inputs.iter().map(of).collect();
                    let made = f(&given, &self.gate)?;
                    for (&slot, t) in outputs.iter().zip(made) {
                        self.slots[slot] = Some(t);
                    }
                }
            }
            for &slot in &self.done[k] {
                self.slots[slot] = None;
            }
        }
        Ok(())
    }
}

impl Call {
    fn run(&mut self, slots: &mut [Option<Tensor>]) -> Result<()> {
        let mut reads = self.reads.iter();
        for value in &mut self.args {
            value.for_each_tensor_mut(&mut |t| {
                if let Some(Some((slot, last))) = reads.next() {
                    let place = &mut slots[*slot];
                    let value = if *last { place.take() } else { place.clone() };
                    *t = value.expect("made before it is read");
                }
            });
        }
        let kept = Kept::default();
        let result = Cx::again(self.op, &self.args, self.track, (!self.extra.is_empty()).then_some(&kept));
        // What was read may be used again at once.
        let mut reads = self.reads.iter();
        for value in &mut self.args {
            value.for_each_tensor_mut(&mut |t| {
                if let Some(Some(_)) = reads.next() {
                    *t = nothing();
                }
            });
        }
        for (&slot, t) in self.outputs.iter().zip(result?) {
            slots[slot] = Some(t);
        }
        for &(i, slot) in &self.extra {
            slots[slot] = kept.borrow().get(i).cloned();
        }
        Ok(())
    }
}

impl Kernel {
    fn run(&mut self, slots: &mut [Option<Tensor>], outside: &[Tensor]) -> Result<()> {
        let out = match slots[self.to].take_if(|t| t.is_as_new()) {
            // What is made of nothing is what it was.
            Some(spare) if self.reads.is_empty() => {
                slots[self.to] = Some(spare);
                return Ok(());
            }
            Some(spare) => spare,
            None => Tensor::uninit(&self.shape, self.dtype, Device::Cpu),
        };
        let of = |s: &Source| match s {
            Source::Slot(i) => slots[*i].as_ref().expect("made before it is read"),
            Source::Outside(i) => &outside[*i],
        };
        let reads: SmallVec<[&Tensor; 3]> = self.reads.iter().map(of).collect();
        (self.run)(&reads, &out).map_err(|e| e.in_op(self.op.name))?;
        drop(reads);
        slots[self.to] = Some(out);
        Ok(())
    }
}

impl Step {
    fn for_each_read(&self, mut f: impl FnMut(usize)) {
        let mut source = |s: &Source| {
            if let Source::Slot(i) = s {
                f(*i);
            }
        };
        match self {
            Step::Call(call) => call.reads.iter().flatten().for_each(|(slot, _)| f(*slot)),
            Step::Kernel(kernel) => kernel.reads.iter().for_each(source),
            Step::View { from, .. } => f(*from),
            Step::Copy { from, .. } => source(from),
            Step::Write { target, values } => [target, values].into_iter().for_each(source),
            Step::Act { inputs, .. } => inputs.iter().for_each(source),
        }
    }

    fn for_each_made(&self, mut f: impl FnMut(usize)) {
        match self {
            Step::Call(call) => call.outputs.iter().copied().chain(call.extra.iter().map(|e| e.1)).for_each(f),
            Step::Kernel(Kernel { to, .. }) | Step::View { to, .. } | Step::Copy { to, .. } => f(*to),
            Step::Write { .. } => {}
            Step::Act { outputs, .. } => outputs.iter().copied().for_each(f),
        }
    }
}
