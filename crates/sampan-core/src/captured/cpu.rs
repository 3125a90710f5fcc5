//! A step on the CPU, from a tape of its calls.

use super::replay::{Source, Tape};
use super::tape::{Builder, Recorder};
use super::{Line, NotNow, Recorded};
use crate::dispatch;
use crate::recording::{self, Notes, Work};
use crate::tensor::Slot;
use crate::{DType, Error, Layout, Result, Tensor, profiler};
use std::rc::Rc;

/// One recorded call.
pub(super) struct Record {
    tape: Tape,
    guards: Vec<Box<dyn Fn() -> bool + Send>>,
    outputs: Vec<Source>,
    leaves: Vec<Leaf>,
}

/// A leaf whose gradient the work uses or changes.
struct Leaf {
    tensor: Tensor,
    frozen: bool,
    before: Before,
    after: After,
}

/// Where a gradient must be, so that recorded work may use it.
enum Before {
    None,
    Zeros(DType),
    /// Of this dtype and layout (but for the place where it begins); in this slot of the tape.
    Held(DType, Layout, usize),
}

impl Before {
    fn is(&self, slot: &Slot) -> bool {
        match (self, slot) {
            (Before::None, Slot::None) => true,
            (Before::Zeros(a), Slot::Zeros(b)) => a == b,
            (Before::Held(dtype, layout, _), Slot::Held(t)) => {
                let l = t.layout();
                t.dtype() == *dtype && l.shape == layout.shape && l.strides == layout.strides
            }
            _ => false,
        }
    }
}

/// Where a gradient is afterwards.
enum After {
    None,
    Zeros(DType),
    Held(Source),
    /// As before.
    Same,
}

impl Record {
    /// Records a call, which is done as it would be without.
    pub fn of(
        given: &[Tensor],
        line: Option<Line>,
        f: impl FnOnce(&[Tensor]) -> Result<Vec<Tensor>>,
    ) -> Result<Recorded> {
        // In memory of their own, so that none of them is taken for another or for what was there before.
        let copy = |t: &Tensor| -> Result<Tensor> {
            let own = t.detach().lazy_copy(t.layout().clone())?;
            Ok(if t.stop_gradient() { own } else { own.requires_grad_() })
        };
        let inputs = given.iter().map(copy).collect::<Result<Vec<_>>>()?;
        let versions: Vec<u64> = inputs.iter().map(Tensor::inplace_version).collect();
        recording::begin_cpu(Builder::new(&inputs, line));
        let end = End;
        let outputs = dispatch::listen(Rc::new(Recorder), || f(&inputs));
        let notes = end.now();
        let Some(Notes { work: Work::Cpu(mut tape), guards, leaves, mut refused, .. }) = notes else {
            return Err(Error::invalid("what was recorded is gone").in_op("capture"));
        };
        let outputs = outputs?;
        // A result without gradients that were asked for inside is to be differentiated outside.
        if !tape.walked && outputs.iter().any(|t| !t.stop_gradient() && !t.is_leaf()) {
            refused.get_or_insert_with(|| "its result may be differentiated".into());
        }
        for ((own, before), t) in inputs.iter().zip(versions).zip(given) {
            if own.inplace_version() != before {
                t.overwrite(own)?;
                refused.get_or_insert_with(|| "an argument is written in place".into());
            }
        }
        let outputs: Vec<Tensor> = outputs.iter().map(Tensor::detach).collect();
        let once = |outputs, why, later| Ok(Recorded::Once(outputs, NotNow { why, later }));
        let mut sources = Vec::with_capacity(outputs.len());
        for t in &outputs {
            match tape.result(t) {
                Ok(source) => sources.push(source),
                Err(why) => drop(refused.get_or_insert(why)),
            }
        }
        let mut kept = Vec::new();
        let mut handed = outputs.clone();
        for (i, (leaf, before)) in leaves.into_iter().enumerate() {
            if tape.is_own(&leaf) {
                // Made on the way; but an argument must not become one.
                if inputs.iter().any(|t| t.shares_memory(&leaf)) {
                    refused.get_or_insert_with(|| "an argument has a gradient".into());
                }
                continue;
            }
            let after = leaf.grad_slot();
            if let Slot::Held(t) = &after {
                handed.push(t.clone());
            }
            let same = matches!((&before, &after), (Slot::Held(a), Slot::Held(b)) if a.is_same(b));
            let after = match after {
                _ if same => After::Same,
                Slot::None => After::None,
                Slot::Zeros(dtype) => After::Zeros(dtype),
                Slot::Held(t) => match tape.result(&t) {
                    Ok(source) => After::Held(source),
                    Err(why) => {
                        refused.get_or_insert(why);
                        After::None
                    }
                },
            };
            let slot = tape.gradients().iter().find(|(leaf, _)| *leaf == i).map(|&(_, slot)| slot);
            let before = match (&before, slot) {
                (Slot::None, _) => Before::None,
                (Slot::Zeros(dtype), _) => Before::Zeros(*dtype),
                (Slot::Held(t), Some(slot)) => Before::Held(t.dtype(), t.layout().clone(), slot),
                (Slot::Held(_), None) => {
                    refused.get_or_insert_with(|| "two leaves have the same gradient".into());
                    Before::None
                }
            };
            kept.push(Leaf { frozen: leaf.stop_gradient(), tensor: leaf, before, after });
        }
        if let Some(why) = refused {
            return once(outputs, why, false);
        }
        drop(inputs);
        if tape.kept(&handed, given.len()) {
            return once(outputs, "the call keeps a tensor that it made".into(), true);
        }
        drop(handed);
        let mut tape = tape.finish(given.len());
        if !tape.is_held() {
            return once(outputs, "the call replaces a tensor that it reads".into(), false);
        }
        let last = kept.iter().filter_map(|l| if let After::Held(s) = l.after { Some(s) } else { None });
        tape.settle(&sources.iter().copied().chain(last).collect::<Vec<_>>());
        let record = Record { tape, guards, outputs: sources, leaves: kept };
        Ok(Recorded::Done(super::Record::Cpu(record), outputs))
    }

    /// How many calls it makes.
    pub fn nodes(&self) -> usize {
        self.tape.calls()
    }

    /// The names of its calls.
    pub fn describe(&self) -> Vec<&'static str> {
        self.tape.describe()
    }

    /// May it be done again?
    pub fn still_fits(&self) -> bool {
        let as_before =
            |l: &Leaf| l.tensor.with_grad_slot(|slot| l.before.is(slot)) && l.tensor.stop_gradient() == l.frozen;
        self.guards.iter().all(|guard| guard()) && self.leaves.iter().all(as_before) && self.tape.is_held()
    }

    /// Does it again, with other inputs.
    pub fn again(&mut self, given: &[Tensor]) -> Result<Vec<Tensor>> {
        let _range = profiler::range_of(profiler::Kind::Range, "captured step");
        for leaf in &self.leaves {
            if let Before::Held(_, _, slot) = leaf.before
                && let Slot::Held(t) = leaf.tensor.grad_slot()
            {
                self.tape.place(slot, t);
            }
        }
        let done = self.tape.run(given);
        let outputs = done.map(|()| {
            for leaf in &self.leaves {
                let after = match (&leaf.after, &leaf.before) {
                    (After::Same, _) | (After::None, Before::None) => continue,
                    (After::Zeros(now), Before::Zeros(before)) if now == before => continue,
                    (After::None, _) => Slot::None,
                    (After::Zeros(dtype), _) => Slot::Zeros(*dtype),
                    (After::Held(source), _) => Slot::Held(self.tape.value(*source)),
                };
                leaf.tensor.set_grad_slot(after);
            }
            self.outputs.iter().map(|&s| self.tape.value(s)).collect()
        });
        self.tape.clear();
        outputs
    }
}

/// Ends taking notes, also where the function unwinds.
struct End;

impl End {
    fn now(self) -> Option<Notes> {
        let notes = recording::end();
        std::mem::forget(self);
        notes
    }
}

impl Drop for End {
    fn drop(&mut self) {
        drop(recording::end());
    }
}
