//! Random values of a distribution named in full.

use super::{Initializer, object};
use sampan_core::ops::random::{self, try_gaussian_with, try_truncated_normal_with, try_uniform_with};
use sampan_core::{DType, Result, Tensor, ensure};
use sampan_macros::class;

/// Uniform values.
#[derive(Clone, Copy, Debug)]
pub struct Uniform {
    low: f64,
    high: f64,
}

#[class(module = "nn.initializer", object = object)]
impl Uniform {
    /// Uniform values in `[low, high)`.
    ///
    /// ```
    /// use sampan_core::DType;
    /// use sampan_nn::init::{Initializer, Uniform};
    /// let w = Uniform::new(0.5, 1.0).init(&[100], DType::Float64)?;
    /// assert!(w.to_vec::<f64>().iter().all(|v| (0.5..1.0).contains(v)));
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    fn build(#[default(-1.0)] low: f64, #[default(1.0)] high: f64) -> Result<Uniform> {
        ensure!(low <= high, "low {low} must not exceed high {high}");
        Ok(Uniform { low, high })
    }
}

impl Initializer for Uniform {
    fn init(&self, shape: &[usize], dtype: DType) -> Result<Tensor> {
        try_uniform_with(shape, self.low, self.high, random::UniformOpts::new().dtype(dtype))
    }
}

/// Normal values.
#[derive(Clone, Copy, Debug)]
pub struct Normal {
    mean: f64,
    std: f64,
}

#[class(module = "nn.initializer", object = object)]
impl Normal {
    /// Normal values with a mean and a standard deviation.
    ///
    /// ```
    /// use sampan_core::DType;
    /// use sampan_nn::init::{Initializer, Normal};
    /// let w = Normal::new(3.0, 0.0).init(&[2], DType::Float32)?;
    /// assert_eq!(w.to_vec::<f32>(), [3.0, 3.0]);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    fn build(#[default(0.0)] mean: f64, #[default(1.0)] std: f64) -> Result<Normal> {
        ensure!(std >= 0.0, "std cannot be negative, got {std}");
        Ok(Normal { mean, std })
    }
}

impl Initializer for Normal {
    fn init(&self, shape: &[usize], dtype: DType) -> Result<Tensor> {
        try_gaussian_with(shape, self.mean, self.std, random::GaussianOpts::new().dtype(dtype))
    }
}

/// Normal values without tails.
#[derive(Clone, Copy, Debug)]
pub struct TruncatedNormal {
    mean: f64,
    std: f64,
    a: f64,
    b: f64,
}

#[class(module = "nn.initializer", object = object)]
impl TruncatedNormal {
    /// Normal values drawn again until they lie between `a` and `b`, which are values and not multiples of `std`.
    ///
    /// ```
    /// use sampan_core::DType;
    /// use sampan_nn::init::{Initializer, TruncatedNormal};
    /// let w = TruncatedNormal::with(0.0, 1.0, |o| o.a(-0.5).b(0.5)).init(&[100], DType::Float32)?;
    /// assert!(w.to_vec::<f32>().iter().all(|v| v.abs() <= 0.5));
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    fn build(
        #[default(0.0)] mean: f64,
        #[default(1.0)] std: f64,
        #[opt(-2.0)] a: f64,
        #[opt(2.0)] b: f64,
    ) -> Result<TruncatedNormal> {
        ensure!(std >= 0.0 && a <= b, "std cannot be negative and a must not exceed b, got std {std}, a {a}, b {b}");
        Ok(TruncatedNormal { mean, std, a, b })
    }
}

impl Initializer for TruncatedNormal {
    fn init(&self, shape: &[usize], dtype: DType) -> Result<Tensor> {
        let opts = random::TruncatedNormalOpts::new().dtype(dtype);
        try_truncated_normal_with(shape, self.mean, self.std, self.a, self.b, opts)
    }
}
