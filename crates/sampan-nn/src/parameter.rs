//! A tensor that is trained.

use sampan_core::Tensor;
use std::ops::Deref;

/// A tensor that is trained: `stop_gradient` is false and a checkpoint keeps it. A clone is the same parameter, which is
/// how weights are shared.
#[derive(Clone)]
pub struct Parameter(Tensor);

impl Parameter {
    /// Makes a tensor a parameter.
    pub fn new(values: Tensor) -> Parameter {
        let t = values.detach();
        t.set_stop_gradient(false);
        t.set_persistable(true);
        Parameter(t)
    }

    /// The tensor.
    pub fn tensor(&self) -> &Tensor {
        &self.0
    }
}

impl Deref for Parameter {
    type Target = Tensor;
    fn deref(&self) -> &Tensor {
        &self.0
    }
}
