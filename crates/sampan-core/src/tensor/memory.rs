//! A handle that moves to other memory, or sees more or less of its own.

use super::Tensor;
use crate::error::Kind;
use crate::ops::joining::try_concat;
use crate::shape::{Layout, checked_numel};
use crate::{Error, Result};

impl Tensor {
    /// Refuses a leaf that is trained: its other handles would not know.
    fn check_movable(&self, op: &str) -> Result<()> {
        if self.requires_grad() && self.is_leaf() {
            let why = "a leaf that requires a gradient cannot move to other memory in place";
            return Err(Error::new(Kind::PreconditionNotMet, why).received(self.describe()).in_op(op));
        }
        Ok(())
    }

    /// Moves this handle to the memory of `source`, seen with a shape, steps (in elements; contiguous if left out) and an
    /// offset in bytes from its first element; to no memory without a source. Both then share it. Other handles of this
    /// tensor stay where they were.
    ///
    /// ```
    /// # use sampan_core::Tensor;
    /// let (mut x, mut y) = (Tensor::new([0.0f32]), Tensor::new([1.0f32, 2.0, 3.0, 4.0]));
    /// x.set_(Some(&y), Some(&[2]), Some(&[2]), 4);
    /// y.set(3, 9.0);
    /// assert_eq!(x.to_vec::<f32>(), [2.0, 9.0]);
    /// ```
    #[track_caller]
    pub fn set_(
        &mut self,
        source: Option<&Tensor>,
        shape: Option<&[i64]>,
        stride: Option<&[i64]>,
        offset: i64,
    ) -> &mut Tensor {
        crate::error::unwrap(self.try_set_(source, shape, stride, offset));
        self
    }

    /// Like [`set_`](Self::set_), returning the error instead of panicking.
    pub fn try_set_(
        &mut self,
        source: Option<&Tensor>,
        shape: Option<&[i64]>,
        stride: Option<&[i64]>,
        offset: i64,
    ) -> Result<()> {
        self.check_movable("set_")?;
        let Some(source) = source else {
            *self = Tensor::zeros_on([0], self.dtype(), self.device());
            return Ok(());
        };
        let source = source.detach();
        if shape.is_none() && stride.is_none() && offset == 0 {
            *self = source;
            return Ok(());
        }
        if !source.is_contiguous() {
            let message = "the memory of `source` has gaps; a shape and steps are of its contiguous form";
            return Err(Error::invalid(message).hint("source.contiguous()").in_op("set_"));
        }
        let shape = shape.map_or_else(|| source.shape().iter().map(|&n| n as i64).collect(), <[i64]>::to_vec);
        let contiguous = || -> Result<Vec<i64>> {
            let extents: Vec<usize> = shape.iter().map(|&n| n.max(0) as usize).collect();
            checked_numel(&extents)?;
            Ok(Layout::contiguous(extents).strides.iter().map(|&n| n as i64).collect())
        };
        let stride = stride.map_or_else(contiguous, |s| Ok(s.to_vec())).map_err(|e| e.in_op("set_"))?;
        *self = source.try_as_strided(shape, stride, offset)?;
        Ok(())
    }

    /// Gives this handle another shape: the first elements stay in their memory. More elements than there are come with
    /// `fill_zero`, as zeros in new memory.
    ///
    /// ```
    /// # use sampan_core::Tensor;
    /// let mut x = Tensor::new([1.0f32, 2.0, 3.0]);
    /// x.resize_(&[2], false).resize_(&[2, 2], true);
    /// assert_eq!(x.to_vec::<f32>(), [1.0, 2.0, 0.0, 0.0]);
    /// ```
    #[track_caller]
    pub fn resize_(&mut self, shape: &[i64], fill_zero: bool) -> &mut Tensor {
        crate::error::unwrap(self.try_resize_(shape, fill_zero));
        self
    }

    /// Like [`resize_`](Self::resize_), returning the error instead of panicking.
    pub fn try_resize_(&mut self, shape: &[i64], fill_zero: bool) -> Result<()> {
        let run = |this: &Tensor| -> Result<Tensor> {
            this.check_movable("resize_")?;
            if let Some(bad) = shape.iter().find(|&&n| n < 0) {
                return Err(Error::invalid(format!("an extent must not be negative, got {bad}")));
            }
            let wanted = checked_numel(&shape.iter().map(|&n| n as usize).collect::<Vec<_>>())?;
            let flat = this.detach().try_flatten(0, -1)?;
            let missing = wanted.saturating_sub(flat.numel());
            if missing > 0 && !fill_zero {
                let message = format!("{wanted} elements are wanted, there are {}", flat.numel());
                return Err(Error::invalid(message).hint("fill_zero=True makes the others zeros"));
            }
            let zeros = || Tensor::zeros_on([missing], this.dtype(), this.device());
            let flat = if missing > 0 { try_concat(&[flat, zeros()], 0)? } else { flat };
            flat.try_narrow(0, 0, wanted as i64)?.try_reshape(shape)
        };
        *self = run(self).map_err(|e| e.in_op("resize_"))?;
        Ok(())
    }
}
