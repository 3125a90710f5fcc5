//! Writing into a tensor's own memory, guarded by its version.

use super::{Inner, Tensor};
use crate::autograd::grad_enabled;
use crate::error::Kind;
use crate::{Error, Result, Scalar};
use sampan_kernels::{copy, match_dtype};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

impl Tensor {
    /// Replaces this handle's values by those of a computed tensor, keeping its memory. Its history becomes that of the
    /// computed one.
    pub(crate) fn take_inplace(&mut self, out: Tensor, op: &str) -> Result<()> {
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
        self.check_inplace(out.requires_grad(), op)?;
        if out.dtype() != self.dtype() {
            if matches!(op, "cast" | "cast_") {
                // The one op whose very point is another dtype: the handle moves to the new memory.
                *self = out;
                return Ok(());
            }
            let loses = out.dtype().is_float() && !self.dtype().is_inexact()
                || out.dtype().is_complex() && !self.dtype().is_complex();
            if loses {
                return Err(Error::dtype(format!(
                    "the result is {}, which a {} tensor cannot hold",
                    out.dtype(),
                    self.dtype()
                ))
                .hint("use the out-of-place form, or cast first")
                .in_op(op));
            }
        }
        let history = out.history().cloned();
        let tracked = out.requires_grad();
        self.overwrite(&out, tracked)?;
        if let Some(history) = history {
            // A cast of the result to this tensor's dtype is no part of the history: gradients are cast by the engine.
            self.0 = Arc::new(Inner {
                storage: self.0.storage.clone(),
                layout: self.0.layout.clone(),
                dtype: self.0.dtype,
                stop_gradient: AtomicBool::new(false),
                history: Some(history),
                made_at: self.0.storage.version(),
                is_view: self.0.is_view,
                detached: false,
                extra: OnceLock::new(),
            });
        }
        Ok(())
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
        self.0 = Arc::new(Inner {
            storage: self.0.storage.clone(),
            layout: out.layout().clone(),
            dtype: self.0.dtype,
            stop_gradient: AtomicBool::new(self.stop_gradient()),
            history: out.history().cloned(),
            made_at: out.0.made_at,
            is_view: self.0.is_view,
            detached: self.0.detached,
            extra: OnceLock::new(),
        });
        Ok(())
    }

    /// May this tensor be written in place now? `tracked`: the new values have a history of their own.
    pub(crate) fn check_inplace(&self, tracked: bool, op: &str) -> Result<()> {
        let recording = grad_enabled();
        let why = if self.layout().strides.iter().zip(self.shape()).any(|(&s, &n)| s == 0 && n > 1) {
            "an expanded tensor cannot be changed in place: several of its elements share one place in memory"
        } else if recording && self.requires_grad() && self.is_leaf() {
            "a leaf that requires a gradient cannot be changed in place"
        } else if recording && self.0.is_view && self.0.storage.is_shared() && (tracked || self.requires_grad()) {
            "a view cannot be changed in place by a recorded op: the tensor it looks at would not know"
        } else {
            return Ok(());
        };
        Err(Error::new(Kind::PreconditionNotMet, why)
            .hint("use the out-of-place form, assign by index on the whole tensor, or do it inside no_grad")
            .received(self.describe())
            .in_op(op))
    }

    /// Copies values of the same shape (any dtype) into this tensor's memory and counts the write.
    pub(crate) fn overwrite(&self, values: &Tensor, recorded: bool) -> Result<()> {
        if values.device() != self.device() {
            return Err(Error::invalid(format!(
                "values on {} cannot be written into a tensor on {}",
                values.device(),
                self.device()
            )));
        }
        if self.device() == crate::Device::Cpu {
            let values = values.detach().try_cast(self.dtype())?.contiguous();
            // The values may lie in this very memory (a reversed view of it, say): then they need a copy first.
            let values = if values.shares_memory(self) { values.try_clone_data()? } else { values };
            match_dtype!(self.dtype(), T in any => {
                let (mut target, source) = Tensor::data_pair::<T>(self, &values);
                let l = self.layout();
                copy::scatter_strided(source.slice(), target.storage(), &l.shape, &l.strides, l.offset);
            });
        }
        self.storage().bump(recorded);
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
        crate::autograd::no_grad(|| {
            self.check_inplace(false, "set_value")?;
            self.overwrite(values, false).map_err(|e| e.in_op("set_value"))
        })
    }

    /// A tensor like another one, every element one number.
    pub(crate) fn full_like_scalar(like: &Tensor, value: f64) -> Tensor {
        Tensor::full_like_scalar_value(like, Scalar::Float(value))
    }

    pub(crate) fn full_like_scalar_value(like: &Tensor, value: Scalar) -> Tensor {
        let out = Tensor::uninit(like.shape(), like.dtype(), like.device());
        if like.device() == crate::Device::Cpu {
            match_dtype!(like.dtype(), T in any => out.data_mut::<T>().slice().fill(value.to::<T>()));
        }
        out
    }

    /// A copy of the values in new, contiguous memory, without history.
    pub fn try_clone_data(&self) -> Result<Tensor> {
        let out = Tensor::uninit(self.shape(), self.dtype(), self.device());
        if self.device() == crate::Device::Cpu {
            match_dtype!(self.dtype(), T in any => {
                let source = self.data::<T>();
                copy::copy_strided(source.view(), out.data_mut::<T>().slice());
            });
        }
        Ok(out)
    }
}
