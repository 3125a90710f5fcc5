//! Tensors from nothing: constants, ranges, copies.

use super::prelude::*;

impl Tensor {
    /// Zeros of a shape and dtype.
    pub fn zeros(shape: impl AsRef<[usize]>, dtype: DType) -> Tensor {
        Tensor::zeroed(shape, dtype, Device::Cpu)
    }

    /// A tensor of shapes and dtypes only, on which ops infer and compute nothing.
    pub fn meta(shape: impl AsRef<[usize]>, dtype: DType) -> Tensor {
        Tensor::uninit(shape, dtype, Device::Meta)
    }

    /// This tensor's shape and dtype without its values.
    pub fn to_meta(&self) -> Tensor {
        let t = Tensor::meta(self.shape(), self.dtype());
        t.set_stop_gradient(self.stop_gradient());
        t
    }
}
