//! Tensors that look at the same memory, and what recorded ops wrote there.
//!
//! A view and what it looks at are two tensors, each with a history. When a recorded op writes into one of them, the
//! values of the other change with it; its history must too. The write is noted for all who look at the memory, and one
//! that was made before takes, when a recorded call next uses it, the history of what was written, where it was written.

use super::Tensor;
use super::grad::attach_custom;
use crate::autograd::{Grad, History};
use crate::shape::Layout;
use crate::{DType, Error, Result};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What the tensors on one memory have in common.
#[derive(Default)]
pub(super) struct Aliases {
    /// The version of the last recorded write.
    latest: AtomicU64,
    writes: Mutex<Vec<Write>>,
}

/// A recorded write: a tensor that looks at what was written and has its history, and the version it made.
#[derive(Clone)]
struct Write {
    written: Tensor,
    version: u64,
}

impl Aliases {
    fn since(&self, version: u64) -> Vec<Write> {
        self.writes.lock().iter().filter(|w| w.version > version).cloned().collect()
    }
}

impl Tensor {
    /// This new view of `other` hears of what is written to `other`, and the other way round. A leaf that is trained is
    /// left out: its gradient is by its values as they are, whoever wrote them.
    pub(super) fn alias_of(self, other: &Tensor) -> Tensor {
        if !(other.is_leaf() && other.is_tracked()) {
            // A new tensor has no aliases yet, so this cannot fail.
            let _ = self.0.aliases.set(other.0.aliases.get_or_init(Default::default).clone());
        }
        self
    }

    /// Did an alias write into its memory, by a recorded op, after it was made? A leaf that is trained, even one that was
    /// data when its views were made, goes by its values as they are.
    pub(crate) fn is_stale(&self) -> bool {
        let Some(aliases) = self.0.aliases.get() else { return false };
        aliases.latest.load(Ordering::Acquire) > self.0.made_at && !(self.is_leaf() && self.is_tracked())
    }

    /// This tensor with the history of all that was written to its memory since it was made.
    pub(crate) fn current(&self) -> Result<Tensor> {
        let Some(aliases) = self.0.aliases.get().filter(|_| self.is_stale()) else { return Ok(self.clone()) };
        if let Some(known) = self.newest()
            && !known.is_stale()
        {
            return Ok(known);
        }
        let mut t = self.clone();
        for write in aliases.since(self.0.made_at) {
            t = t.overlaid(&write)?;
        }
        self.set_newest(t.clone());
        Ok(t)
    }

    /// This tensor after one of the writes.
    fn overlaid(&self, write: &Write) -> Result<Tensor> {
        let Write { written, version } = write;
        let after = |history| self.rewritten(self.0.layout.clone(), history, *version);
        if written.layout() == self.layout() && written.dtype() == self.dtype() {
            return Ok(after(written.history().cloned()));
        }
        let ((low, high), (from, to)) = (reach(self), reach(written));
        let apart = high < from || to < low || self.numel() == 0 || written.numel() == 0;
        if apart || !(self.is_tracked() || written.is_tracked()) {
            return Ok(after(self.history().cloned()));
        }
        if self.dtype().real_part() != written.dtype().real_part() {
            return Err(Error::new(
                crate::error::Kind::PreconditionNotMet,
                format!(
                    "a {} tensor of shape {:?} shares memory with a {} one that a recorded op changed in place afterwards, \
                     so its gradient would be wrong",
                    self.dtype(),
                    self.shape(),
                    written.dtype()
                ),
            )
            .hint("make the view again after the change, or change a clone()"));
        }
        let (mine, theirs) = (in_parts(self), in_parts(written));
        let start = low.min(from);
        let len = high.max(to) - start + 1;
        let (shape, dtypes) = ([self.shape_vec(), written.shape_vec()], [self.dtype(), written.dtype()]);
        let formula = move |g: &Grad| {
            let complete = |t: Tensor, i: usize| -> Result<Tensor> {
                if dtypes[i].is_complex() { t.try_as_complex() } else { t.try_reshape_to(&shape[i]) }
            };
            let g_mine = if dtypes[0].is_complex() { g.grad().try_as_real()? } else { g.grad() };
            let untouched = || -> Result<Tensor> {
                let kept = Tensor::zeros([len as usize], DType::Bool).logical_not();
                view_of(&kept, &theirs, start)?.overwrite(&Tensor::zeros(&theirs.shape, DType::Bool))?;
                let zero = Tensor::zeros([], g_mine.dtype());
                view_of(&kept, &mine, start)?.try_where_cond(&g_mine, &zero)
            };
            let written = || -> Result<Tensor> {
                let offset = mine.offset as i64 - start as i64;
                view_of(&g_mine.try_strided_sum([len as i64], steps(&mine), offset)?, &theirs, start)
            };
            let first = g.needs(0).then(|| complete(untouched()?, 0)).transpose()?;
            let second = g.needs(1).then(|| complete(written()?, 1)).transpose()?;
            Ok([first, second].into())
        };
        let outputs = vec![after(None)];
        Ok(attach_custom("inplace", &[self, written], outputs, &[], formula).remove(0))
    }

    /// A new handle on the same memory, made at a version of it.
    pub(super) fn rewritten(&self, layout: Layout, history: Option<History>, version: u64) -> Tensor {
        let mut t = Tensor::from_parts(self.0.storage.clone(), layout, self.0.dtype);
        if let Some(inner) = Arc::get_mut(&mut t.0) {
            inner.made_at = version;
            inner.stop_gradient = (history.is_none() && !self.is_tracked()).into();
            inner.history = history;
            if let Some(aliases) = self.0.aliases.get() {
                inner.aliases = aliases.clone().into();
            }
        }
        t
    }

    /// Gives this handle, whose memory was just written, the history of what was written, and notes the write for all
    /// who look at the same memory.
    pub(super) fn adopt(&mut self, history: History) {
        let version = self.0.storage.version();
        if self.0.aliases.get().is_none() && Arc::strong_count(&self.0) > 1 {
            // Other handles on this very tensor are aliases as well.
            self.0.aliases.get_or_init(Default::default);
        }
        let layout = self.0.layout.clone();
        let new = self.rewritten(layout.clone(), Some(history.clone()), version);
        if let Some(aliases) = self.0.aliases.get() {
            // Without aliases of its own: a note must not keep itself alive.
            let written = Tensor::from_parts(self.0.storage.clone(), layout, self.0.dtype).with_history(history);
            let mut writes = aliases.writes.lock();
            // What lay under the same layout before is covered, and part of the new history.
            writes.retain(|w| w.written.layout() != written.layout() || w.written.dtype() != written.dtype());
            writes.push(Write { written, version });
            aliases.latest.store(version, Ordering::Release);
        }
        new.keep_name_of(self);
        *self = new;
    }
}

/// The layout in real numbers.
fn in_parts(t: &Tensor) -> Layout {
    t.parts().layout().clone()
}

/// The positions between which its elements lie, in real numbers.
fn reach(t: &Tensor) -> (isize, isize) {
    in_parts(t).reach()
}

fn steps(layout: &Layout) -> Vec<i64> {
    layout.strides.iter().map(|&s| s as i64).collect()
}

/// What a layout sees of values that lie from `start` on.
fn view_of(flat: &Tensor, layout: &Layout, start: isize) -> Result<Tensor> {
    let shape: Vec<i64> = layout.shape.iter().map(|&n| n as i64).collect();
    flat.try_strided_view(shape, steps(layout), layout.offset as i64 - start as i64)
}
