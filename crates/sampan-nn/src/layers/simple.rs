//! Layers without parameters, for now.

use crate::{Base, Layer, layer};
use sampan_core::{Result, Tensor};
use sampan_macros::class;

/// `max(x, 0)`.
#[derive(Layer)]
pub struct ReLU {
    base: Base,
}
#[class(module = "nn", object = layer::object)]
impl ReLU {
    /// `max(x, 0)`.
    fn build() -> Result<ReLU> {
        Ok(ReLU { base: Base::new("re_lu") })
    }
}
impl Layer for ReLU {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x.try_relu()
    }
}
