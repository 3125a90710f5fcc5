//! Writing into a tensor's own memory, guarded by its version.

use super::Tensor;
use super::grad::attach_custom;
use super::indexing::SETITEM;
use crate::autograd::{self, History, grad_enabled};
use crate::dispatch::Write;
use crate::error::Kind;
use crate::{Device, Error, Result, recording};
use sampan_kernels::copy;

/// From here on new values are not copied but taken over, until one of their holders is written.
const LAZY_BYTES: usize = 1 << 14;

impl Tensor {
    /// Computes new values for this tensor and puts them in its place, the whole of an in-place op.
    pub(crate) fn replaced_by(&mut self, op: &str, compute: impl FnOnce(&Tensor) -> Result<Tensor>) -> Result<()> {
        let before = crate::dispatch::listening().then(|| self.clone());
        let values = self.replace(op, compute)?;
        if let Some(before) = before {
            let values = &values;
            let write = if op == SETITEM { Write::Index { values } } else { Write::Op { name: op, values } };
            crate::dispatch::wrote(&before, self, write);
        }
        Ok(())
    }

    /// The same without a word to those who watch; gives the new values.
    fn replace(&mut self, op: &str, compute: impl FnOnce(&Tensor) -> Result<Tensor>) -> Result<Tensor> {
        if crate::amp::enabled() {
            // The result must have the dtype of what it is written into.
            return crate::amp::with_level(None, || self.replace(op, compute));
        }
        let since = autograd::next_node();
        let out = compute(self)?;
        // What the op itself keeps for its gradient are the values before the write.
        autograd::keep_from_writes(&out, self.storage(), since);
        self.take_inplace(out.clone(), op)?;
        Ok(out)
    }

    /// Replaces this handle's values by those of a computed tensor, keeping its memory. Its history becomes that of the
    /// computed one.
    fn take_inplace(&mut self, out: Tensor, op: &str) -> Result<()> {
        if out.shares_memory(self) && out.dtype() == self.dtype() && out.numel() == self.numel() {
            return self.take_shape(out, op);
        }
        if out.shape() != self.shape() {
            return Err(Error::invalid(format!(
                "the result has shape {:?}, which does not fit in place into {:?}",
                out.shape(),
                self.shape()
            ))
            .hint("use the out-of-place form")
            .in_op(op));
        }
        self.check_inplace(op)?;
        if out.dtype() != self.dtype() {
            // The memory cannot hold the result: the handle moves on to another.
            out.keep_name_of(self);
            *self = out;
            return Ok(());
        }
        self.own_places();
        let recorded = grad_enabled() && (out.requires_grad() || self.requires_grad());
        self.overwrite(&out)?;
        if recorded {
            let history = out.history().cloned().unwrap_or_else(|| self.constant_or(&out));
            self.adopt(history);
        }
        Ok(())
    }

    /// The history of values that no recorded call made: a leaf's, or constants that replace what was recorded.
    fn constant_or(&self, values: &Tensor) -> History {
        let fresh = Tensor::from_parts(values.storage().clone(), values.layout().clone(), values.dtype());
        let out = match values.requires_grad() {
            true => attach_custom("assign", &[values], vec![fresh], &[], |g| Ok(g.grad().into())),
            false => attach_custom("fill", &[self], vec![fresh], &[], |g| Ok(g.grad().zeros_like().into())),
        };
        out[0].history().cloned().expect("a recorded call leaves a history")
    }

    /// Gives an expanded tensor, several of whose elements share one place in memory, a place for each.
    pub(super) fn own_places(&mut self) {
        if self.is_expanded() {
            let copy = crate::error::unwrap(self.try_clone_data());
            let history = self.history().cloned();
            copy.set_stop_gradient(!self.is_tracked());
            copy.keep_name_of(self);
            *self = match history {
                Some(history) => copy.with_history(history),
                None => copy,
            };
        }
    }

    fn is_expanded(&self) -> bool {
        self.layout().strides.iter().zip(self.shape()).any(|(&s, &n)| s == 0 && n > 1)
    }

    /// The in-place form of `reshape` and its like: nothing is written, the handle sees its memory under another shape.
    fn take_shape(&mut self, out: Tensor, op: &str) -> Result<()> {
        if self.requires_grad() && self.is_leaf() {
            // Also inside no_grad: an optimizer's handle would keep the old shape and never see the new one's gradient.
            return Err(Error::new(
                Kind::PreconditionNotMet,
                "the shape of a leaf that requires a gradient cannot change in place: its other handles would not know",
            )
            .hint("use the out-of-place form, or make a new leaf: x.detach().reshape(…).requires_grad_()")
            .received(self.describe())
            .in_op(op));
        }
        if self.history().is_some() && out.history().is_none() {
            return Err(Error::new(
                Kind::PreconditionNotMet,
                "the shape of a recorded tensor cannot change in place inside no_grad: its history would be lost",
            )
            .hint("use the out-of-place form")
            .received(self.describe())
            .in_op(op));
        }
        let new = self.rewritten(out.layout().clone(), out.history().cloned(), out.0.made_at);
        new.keep_name_of(self);
        *self = new;
        Ok(())
    }

    /// May this tensor be written in place now?
    pub(crate) fn check_inplace(&self, op: &str) -> Result<()> {
        if !(grad_enabled() && self.is_tracked() && self.is_leaf()) {
            return Ok(());
        }
        Err(Error::invalid("a leaf that requires a gradient cannot be changed in place")
            .hint("use the out-of-place form, or do it inside no_grad")
            .received(self.describe())
            .in_op(op))
    }

    /// Copies values of the same shape (any dtype) into this tensor's memory and counts the write.
    pub(crate) fn overwrite(&self, values: &Tensor) -> Result<()> {
        if recording::on_cpu() {
            recording::wrote(self, values);
            return recording::aside(|| self.overwrite(values));
        }
        if values.device().has_values() != self.device().has_values() {
            return Err(Error::invalid(format!(
                "values on {} cannot be written into a tensor on {}",
                values.device(),
                self.device()
            )));
        }
        let large = self.numel() * self.dtype().size() >= LAZY_BYTES && self.device() == Device::Cpu;
        let whole = |t: &Tensor| t.is_contiguous() && t.storage().read().len() == t.numel() * t.dtype().size();
        let apart = values.dtype() == self.dtype() && !values.shares_memory(self);
        if large && apart && whole(values) && whole(self) && self.storage().take_values(values.storage()) {
            // Nothing was copied.
        } else if let Device::Cuda(number) = self.device() {
            let gpu = crate::gpu::gpu(number)?;
            let values = values.detach().in_dtype(self.dtype())?;
            let values = if values.shares_memory(self) { values.try_clone_data()? } else { values };
            crate::gpu::copy_into(gpu, &values, self, self.layout().clone())?;
        } else if self.device().has_values() {
            let values = values.detach().in_dtype(self.dtype())?;
            // The values may lie in this very memory (a reversed view of it, say): then they need a copy first.
            let apart = values.is_contiguous() && !values.shares_memory(self);
            let values = if apart { values } else { values.try_clone_data()? };
            let (mut target, source) = Tensor::values_pair(self, &values);
            let l = self.layout();
            copy::scatter_strided(source.slice(), target.storage(), &l.shape, &l.strides, l.offset);
        }
        self.storage().bump();
        Ok(())
    }

    /// Replaces the values, keeping memory, shape and dtype; allowed on parameters. Not recorded.
    ///
    /// ```
    /// # use sampan_core::Tensor;
    /// let w = Tensor::new([1.0f32, 2.0]).requires_grad_();
    /// w.set_value(&Tensor::new([5.0f32, 6.0]));
    /// assert_eq!(w.to_vec::<f32>(), [5.0, 6.0]);
    /// ```
    #[track_caller]
    pub fn set_value(&self, values: &Tensor) {
        crate::error::unwrap(self.try_set_value(values))
    }

    /// Like [`set_value`](Self::set_value), returning the error instead of panicking.
    pub fn try_set_value(&self, values: &Tensor) -> Result<()> {
        if values.shape() != self.shape() {
            return Err(Error::invalid(format!(
                "the tensor has shape {:?}, the new values have {:?}",
                self.shape(),
                values.shape()
            ))
            .hint("reshape the values first; set_value does not broadcast")
            .in_op("set_value"));
        }
        if values.dtype() != self.dtype() {
            return Err(Error::dtype(format!("the tensor is {}, the new values are {}", self.dtype(), values.dtype()))
                .hint(format!("values.cast(\"{}\")", self.dtype()))
                .in_op("set_value"));
        }
        if self.is_expanded() {
            let why = "several elements of an expanded tensor share one place in memory";
            return Err(Error::new(Kind::PreconditionNotMet, why).received(self.describe()).in_op("set_value"));
        }
        let write = |values: &Tensor| self.overwrite(values).map_err(|e| e.in_op("set_value"));
        autograd::no_grad(|| {
            if !crate::dispatch::listening() {
                return write(values);
            }
            // Whoever watches must see a call that gives the new values.
            let values = &values.try_assign()?;
            write(values)?;
            crate::dispatch::wrote(self, self, Write::Value { values });
            Ok(())
        })
    }

    /// A copy of the values in new, contiguous memory, without history.
    pub fn try_clone_data(&self) -> Result<Tensor> {
        if recording::on_cpu() {
            let copy = recording::aside(|| self.try_clone_data())?;
            recording::copied(self, &copy, false);
            return Ok(copy);
        }
        let out = Tensor::uninit(self.shape(), self.dtype(), self.device());
        match self.device() {
            Device::Cpu => copy::copy_strided(self.values().view(), out.values_mut().slice()),
            Device::Cuda(number) => crate::gpu::copy(crate::gpu::gpu(number)?, self, &out)?,
            Device::Meta => {}
        }
        Ok(out)
    }
}
