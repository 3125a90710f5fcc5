//! Layers without parameters, for now.

use crate::{Base, Layer, layer};
use sampan_core::{Result, Tensor};
use sampan_macros::class;

/// The largest value of each window.
#[derive(Layer)]
pub struct MaxPool2D {
    base: Base,
    kernel: i64,
}
#[class(module = "nn", object = layer::object)]
impl MaxPool2D {
    /// The largest value of each window.
    fn build(kernel_size: i64) -> Result<MaxPool2D> {
        Ok(MaxPool2D { base: Base::new("max_pool2d"), kernel: kernel_size })
    }
}
impl Layer for MaxPool2D {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x.try_max_pool2d(self.kernel)
    }
}

/// All axes but the first in one.
#[derive(Layer)]
pub struct Flatten {
    base: Base,
}
#[class(module = "nn", object = layer::object)]
impl Flatten {
    /// All axes but the first in one.
    fn build() -> Result<Flatten> {
        Ok(Flatten { base: Base::new("flatten") })
    }
}
impl Layer for Flatten {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x.try_reshape([0, -1])
    }
}
