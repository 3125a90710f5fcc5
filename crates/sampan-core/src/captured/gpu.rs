//! A step on a GPU as one launch.

use super::{Line, NotNow, Recorded};
use crate::gpu::Gpu;
use crate::recording::{self, Notes, OnGpu, Touched, Work};
use crate::shape::Layout;
use crate::storage::{Storage, WeakStorage};
use crate::tensor::Slot;
use crate::{DType, Device, Result, Tensor, random};
use parking_lot::Mutex;
use sampan_cuda::{Block, Feed, Graph};
use std::sync::Arc;

/// Where inputs begin, in bytes; neighbours are near enough to be copied as one.
const ALIGNED: usize = 32;

/// One recorded call.
pub(super) struct Record {
    /// Dropped first: it waits for the work to be done.
    graph: Graph,
    gpu: &'static Gpu,
    feed: Feed,
    notes: OnGpu,
    guards: Vec<Box<dyn Fn() -> bool + Send>>,
    inputs: Vec<Tensor>,
    outputs: Vec<Tensor>,
    /// What the work reads or writes.
    memory: Vec<Touched>,
    /// Leaves, and where their gradients are before and after.
    leaves: Vec<Leaf>,
}

/// Undoes what a call that could not be recorded did on the host.
fn go_back(notes: &mut Notes) {
    if let Work::Gpu(gpu) = &mut notes.work {
        gpu.live.iter_mut().rev().for_each(|(_, live)| live.undo());
    }
    random::set_state(notes.random);
    for (leaf, before) in notes.leaves.drain(..) {
        leaf.set_grad_slot(before);
    }
}

pub(super) fn on_gpu(inputs: &[Tensor], number: u8) -> Result<Vec<Tensor>> {
    let name = Device::Cuda(number).to_string();
    inputs
        .iter()
        .map(|t| match t.device() {
            Device::Cpu if t.stop_gradient() => t.try_to_device(&name),
            Device::Cpu => Ok(t.detach().try_to_device(&name)?.requires_grad_()),
            _ => Ok(t.clone()),
        })
        .collect()
}

/// Runs `f`, and says why the host waited for the GPU in it, if it did.
pub(super) fn watched<R>(line: Option<Line>, f: impl FnOnce() -> R) -> (R, Option<String>) {
    let before = crate::gpu::STOOD_IN.lock().clone();
    let first: Arc<Mutex<Option<String>>> = Arc::default();
    let noted = first.clone();
    let told = move || {
        let mut first = noted.lock();
        if first.is_none() {
            let at = line.as_ref().and_then(|line| line()).map(|at| format!(" at {at}")).unwrap_or_default();
            *first = Some(at);
        }
    };
    let result = sampan_cuda::watch_waits(Arc::new(told), f);
    let at = first.lock().take();
    let now = crate::gpu::STOOD_IN.lock();
    let by_cpu = now.iter().find(|(op, n)| before.get(*op).is_none_or(|b| b < n)).map(|(op, _)| op);
    let reason = at.map(|at| match by_cpu {
        Some(op) => format!("{op} is computed by the CPU{at}"),
        None => format!("a value is read on the host{at}"),
    });
    (result, reason)
}

/// A leaf whose gradient the work uses or changes.
struct Leaf {
    tensor: Tensor,
    frozen: bool,
    before: Before,
    after: Slot,
}

/// A call that makes something for later calls, such as the memory of an optimizer, cannot stand for them; nor can one that
/// drops what it was given for something new.
fn kept_or_lost(notes: &OnGpu, leaves: &[(Tensor, Slot)], outputs: &[Tensor]) -> Option<NotNow> {
    let gradients: Vec<Slot> = leaves.iter().map(|(leaf, _)| leaf.grad_slot()).collect();
    let handed = |t: &Touched| {
        let of_output = outputs.iter().any(|o| t.storage.is(o.storage()));
        of_output || gradients.iter().any(|g| matches!(g, Slot::Held(g) if t.storage.is(g.storage())))
    };
    for touched in notes.touched.values() {
        match touched.storage.upgrade().is_some() {
            true if touched.own && !handed(touched) => {
                return Some(NotNow { why: "the call keeps a tensor that it made".into(), later: true });
            }
            // The gradients that leaves had before are still held by the notes.
            false if !touched.own => {
                return Some(NotNow { why: "the call replaces a tensor that it reads".into(), later: false });
            }
            _ => {}
        }
    }
    None
}

/// Where a gradient must be, so that recorded work may use it.
enum Before {
    None,
    Zeros(DType),
    Held(WeakStorage),
}

impl Before {
    fn is(&self, slot: &Slot) -> bool {
        match (self, slot) {
            (Before::None, Slot::None) => true,
            (Before::Zeros(a), Slot::Zeros(b)) => a == b,
            (Before::Held(a), Slot::Held(b)) => a.is(b.storage()),
            _ => false,
        }
    }
}

impl Record {
    /// The number of kernels, copies and fills.
    pub fn nodes(&self) -> usize {
        self.graph.nodes()
    }

    /// Records a call and does it.
    pub fn of(
        gpu: &'static Gpu,
        given: &[Tensor],
        line: Option<Line>,
        f: impl FnOnce(&[Tensor]) -> Result<Vec<Tensor>>,
    ) -> Result<Recorded> {
        // Inputs lie at fixed places from now on: side by side and the words after them, so that one copy brings them all.
        let room = |t: &Tensor| (t.numel() * t.dtype().size()).next_multiple_of(ALIGNED);
        let all: usize = given.iter().map(room).sum();
        let inbox = Arc::new(gpu.alloc(all + recording::BYTES_OF_WORDS)?);
        let mut start = 0;
        let inputs = given.iter().map(|t| {
            let block = Block::part(&inbox, start, t.numel() * t.dtype().size());
            start += room(t);
            let storage = Storage::from_block(gpu.ordinal() as u8, block);
            Tensor::from_parts(storage, Layout::contiguous(t.shape()), t.dtype())
        });
        let inputs: Vec<Tensor> = inputs.collect();
        recording::begin_gpu(Arc::new(Block::part(&inbox, all, recording::BYTES_OF_WORDS)));
        let recorder = match gpu.record() {
            Ok(recorder) => recorder,
            Err(fault) => {
                recording::end();
                return Err(fault.into());
            }
        };
        // Also where `f` unwinds: the error of a panicking form of a call.
        let call = std::panic::AssertUnwindSafe(|| {
            let leaf = |(t, g): (&Tensor, &Tensor)| {
                let t = t.detach();
                if g.stop_gradient() { t } else { t.requires_grad_() }
            };
            let leaves: Vec<Tensor> = inputs.iter().zip(given).map(leaf).collect();
            // Whoever holds an output must not hold what led to it.
            f(&leaves)?.iter().map(|t| t.detach().in_rows()).collect::<Result<Vec<Tensor>>>()
        });
        let (result, read) = watched(line, || std::panic::catch_unwind(call));
        let mut notes = recording::end().expect("taken since the beginning");
        let outputs = match result {
            Ok(Ok(outputs)) if read.is_none() => outputs,
            failed => {
                drop(recorder);
                go_back(&mut notes);
                return match failed {
                    Ok(Err(error)) if read.is_none() => Err(error),
                    Err(panic) if read.is_none() => std::panic::resume_unwind(panic),
                    _ => Ok(Recorded::Not(read.unwrap_or_default())),
                };
            }
        };
        let Notes { work: Work::Gpu(noted), leaves, guards, refused, .. } = notes else {
            unreachable!("notes of a GPU's work were begun")
        };
        let not_now = match refused {
            Some(why) => Some(NotNow { why, later: false }),
            None => kept_or_lost(&noted, &leaves, &outputs),
        };
        let graph = recorder.finish()?;
        let leaves = leaves.into_iter().map(|(leaf, before)| {
            let before = match &before {
                Slot::None => Before::None,
                Slot::Zeros(dtype) => Before::Zeros(*dtype),
                Slot::Held(t) => Before::Held(t.storage().downgrade()),
            };
            Leaf { frozen: leaf.stop_gradient(), before, after: leaf.grad_slot(), tensor: leaf }
        });
        let leaves = leaves.collect();
        let bytes = Feed::room(inputs.len() + 1, all + noted.words.len() * 8);
        let memory = noted.touched.values().filter(|t| t.storage.upgrade().is_some()).cloned().collect();
        let feed = Feed::new(gpu, bytes)?;
        let mut record = Record { graph, gpu, feed, notes: noted, guards, inputs, outputs, memory, leaves };
        let outputs = record.run(given)?;
        Ok(match not_now {
            None => Recorded::Done(super::Record::Gpu(record), outputs),
            Some(not_now) => Recorded::Once(outputs, not_now),
        })
    }

    /// May it be done again?
    pub fn still_fits(&mut self) -> Result<bool> {
        let as_before = |l: &Leaf| l.before.is(&l.tensor.grad_slot()) && l.tensor.stop_gradient() == l.frozen;
        if !self.leaves.iter().all(as_before) {
            return Ok(false);
        }
        if !self.guards.iter().all(|guard| guard()) || self.memory.iter().any(|t| t.storage.upgrade().is_none()) {
            return Ok(false);
        }
        for (_, live) in &mut self.notes.live {
            if !live.still_fits()? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Does it again, with other inputs and numbers.
    pub fn again(&mut self, given: &[Tensor]) -> Result<Vec<Tensor>> {
        for (range, live) in &mut self.notes.live {
            live.next(&mut self.notes.words[range.clone()])?;
        }
        self.run(given)
    }

    fn run(&mut self, given: &[Tensor]) -> Result<Vec<Tensor>> {
        // What the host wrote since the last time goes to the device first.
        for touched in &self.memory {
            if let Some(storage) = touched.storage.upgrade() {
                storage.on_device()?;
            }
        }
        self.feed(given)?;
        self.graph.launch()?;
        for touched in self.memory.iter().filter(|t| t.written) {
            if let Some(storage) = touched.storage.upgrade() {
                storage.for_device()?;
                storage.bump();
            }
        }
        for leaf in &self.leaves {
            leaf.tensor.set_grad_slot(leaf.after.clone());
        }
        let outputs = self.outputs.iter().map(Tensor::try_clone_data).collect::<Result<Vec<_>>>()?;
        let mut shut = false;
        if self.notes.gated {
            let mut word = [0; 8];
            self.gpu.download(&self.notes.block, &mut word)?;
            shut = u64::from_ne_bytes(word) != 0;
            if shut {
                self.notes.live.iter_mut().for_each(|(_, live)| live.undo());
            }
        }
        self.notes.actions.iter_mut().try_for_each(|action| action(shut))?;
        Ok(outputs)
    }

    /// Brings words and inputs to their places.
    fn feed(&mut self, given: &[Tensor]) -> Result<()> {
        let words = self.notes.words.len() * 8;
        let pairs = given.iter().zip(&self.inputs);
        let (host, device): (Vec<_>, Vec<_>) = pairs.partition(|(from, _)| from.storage().is_on_host());
        let ready = |(from, to): (&Tensor, &Tensor)| -> Result<_> {
            Ok((from.detach().in_rows()?, to.storage().for_device()?))
        };
        let host: Vec<(Tensor, Arc<Block>)> = host.into_iter().map(ready).collect::<Result<_>>()?;
        let mut to: Vec<(&Block, usize, usize)> = host.iter().map(|(_, block)| (&**block, 0, block.len())).collect();
        to.push((&self.notes.block, 0, words));
        let numbers = &self.notes.words;
        self.feed.send(&to, |at, place| match host.get(at) {
            Some((t, _)) => {
                let start = t.layout().offset * t.dtype().size();
                crate::gpu::copy_bytes(&t.storage().read().bytes()[start..start + place.len()], place);
            }
            None => {
                for (place, number) in place.chunks_exact_mut(8).zip(numbers) {
                    place.copy_from_slice(&number.to_ne_bytes());
                }
            }
        })?;
        // After the others: a piece of those changes what lies between them.
        device.into_iter().try_for_each(|(from, to)| crate::gpu::copy(self.gpu, from, to))
    }
}
