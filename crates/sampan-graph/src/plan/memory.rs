//! The memory of a plan: values that do not live at the same time share it.

use super::run::{From, Given, Kernel, Plan, Step, To, Work};
use sampan_core::op::OpDef;
use sampan_core::{Layout, Tensor};
use std::sync::Mutex;

/// The number of a value among the steps.
pub(super) type Val = usize;

/// What is known of a value.
pub(super) struct Info {
    pub len: usize,
    /// Its shape, where it is not in blocks.
    pub shape: Vec<usize>,
    /// Must it be a tensor? A call reads or gives it, or it is given to the caller.
    pub tensor: bool,
}

/// Where a step reads.
#[derive(Clone)]
pub(super) enum Source {
    Val(Val),
    Held(Tensor),
}

/// A step whose values have no memory yet.
pub(super) enum Draft {
    Floats { name: String, kernel: Kernel, from: Vec<Source>, to: Val },
    Call { op: &'static OpDef, args: Vec<Given>, reads: Vec<Val>, to: Vec<Val> },
}

/// Gives every value its memory.
pub(super) fn finish(vals: Vec<Info>, drafts: Vec<Draft>, inputs: Vec<Val>, outputs: Vec<Given>) -> Plan {
    let mut last = vec![0; vals.len()];
    for (k, draft) in drafts.iter().enumerate() {
        match draft {
            Draft::Floats { from, .. } => from.iter().for_each(|s| {
                if let Source::Val(v) = s {
                    last[*v] = k;
                }
            }),
            Draft::Call { reads, .. } => reads.iter().for_each(|&v| last[v] = k),
        }
    }
    for output in &outputs {
        if let Given::Tensor(v, _) = output {
            last[*v] = usize::MAX;
        }
    }
    let mut slots = Slots::default();
    let mut slot = vec![0; vals.len()];
    let mut steps = Vec::new();
    for (k, draft) in drafts.into_iter().enumerate() {
        let mut done = Vec::new();
        let (name, work) = match draft {
            Draft::Floats { name, kernel, from, to } => {
                let place = match vals[to].tensor {
                    true => To::Tensor(to, Layout::contiguous(&vals[to].shape)),
                    false => {
                        slot[to] = slots.take(4 * vals[to].len);
                        To::Slot(slot[to], vals[to].len)
                    }
                };
                let read = |s: &Source| match s {
                    Source::Held(t) => From::Held(t.clone()),
                    Source::Val(v) if vals[*v].tensor => From::Tensor(*v),
                    Source::Val(v) => From::Slot(slot[*v], vals[*v].len),
                };
                let places = from.iter().map(read).collect();
                let mut over: Vec<Val> =
                    from.iter().filter_map(|s| if let Source::Val(v) = s { Some(*v) } else { None }).collect();
                over.sort_unstable();
                over.dedup();
                for v in over.into_iter().filter(|&v| last[v] == k) {
                    if vals[v].tensor { done.push(v) } else { slots.give(slot[v]) }
                }
                (name, Work::Floats { kernel, from: places, to: place })
            }
            Draft::Call { op, args, reads, to } => {
                done.extend(reads.iter().copied().filter(|&v| last[v] == k));
                let to = to.iter().map(|&v| (last[v] > k).then_some(v)).collect();
                (op.name.to_string(), Work::Call { op, args, to })
            }
        };
        steps.push(Step { name, work, done });
    }
    Plan { steps, inputs, outputs, tensors: vals.len(), slots: slots.bytes, free: Mutex::default() }
}

/// Buffers that values share one after the other.
#[derive(Default)]
struct Slots {
    bytes: Vec<usize>,
    free: Vec<usize>,
}

impl Slots {
    /// The smallest free one that is large enough; else the largest, which grows.
    fn take(&mut self, bytes: usize) -> usize {
        let fits = self.free.iter().copied().filter(|&s| self.bytes[s] >= bytes).min_by_key(|&s| self.bytes[s]);
        let slot = fits.or_else(|| self.free.iter().copied().max_by_key(|&s| self.bytes[s]));
        match slot {
            Some(s) => {
                self.free.retain(|&f| f != s);
                self.bytes[s] = self.bytes[s].max(bytes);
                s
            }
            None => {
                self.bytes.push(bytes);
                self.bytes.len() - 1
            }
        }
    }

    fn give(&mut self, slot: usize) {
        self.free.push(slot);
    }
}
