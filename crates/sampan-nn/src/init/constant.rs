//! Values known beforehand.

use super::{Initializer, object};
use sampan_core::ops::creation::{self, FullOpts};
use sampan_core::{DType, Result, Tensor};
use sampan_macros::class;

/// One value everywhere.
#[derive(Clone, Copy, Debug)]
pub struct Constant {
    value: f64,
}

#[class(module = "nn.initializer", object = object)]
impl Constant {
    /// One value everywhere.
    ///
    /// ```
    /// use sampan_core::DType;
    /// use sampan_nn::init::{Constant, Initializer};
    /// let w = Constant::new(2.0).init(&[2, 2], DType::Float32).unwrap();
    /// assert_eq!(w.to_vec::<f32>(), [2.0; 4]);
    /// ```
    fn build(#[default(0.0)] value: f64) -> Result<Constant> {
        Ok(Constant { value })
    }
}

impl Initializer for Constant {
    fn init(&self, shape: &[usize], dtype: DType) -> Result<Tensor> {
        creation::try_full_with(shape, self.value, FullOpts::new().dtype(dtype))
    }
}
