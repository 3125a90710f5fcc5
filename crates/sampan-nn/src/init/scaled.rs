//! Random values scaled by the number of inputs and outputs, so that signals keep their size through a deep network.

use super::{Initializer, fans, object};
use sampan_core::ops::random;
use sampan_core::{DType, Result, Tensor, ensure};
use sampan_macros::class;

/// Glorot's uniform values.
#[derive(Clone, Debug)]
pub struct XavierUniform {
    fan_in: Option<f64>,
    fan_out: Option<f64>,
    gain: f64,
}

#[class(module = "nn.initializer", object = object)]
impl XavierUniform {
    /// Uniform values in `±gain * sqrt(6 / (fan_in + fan_out))`.
    fn build(
        #[opt(None)] fan_in: Option<f64>,
        #[opt(None)] fan_out: Option<f64>,
        #[opt(1.0)] gain: f64,
    ) -> Result<XavierUniform> {
        Ok(XavierUniform { fan_in, fan_out, gain })
    }
}

impl Initializer for XavierUniform {
    fn init(&self, shape: &[usize], dtype: DType) -> Result<Tensor> {
        let (fan_in, fan_out) = fans(shape);
        let sum = self.fan_in.unwrap_or(fan_in) + self.fan_out.unwrap_or(fan_out);
        let limit = self.gain * (6.0 / sum).sqrt();
        random::try_uniform(shape, -limit, limit)?.try_cast(dtype)
    }
}

/// He's normal values.
#[derive(Clone, Debug)]
pub struct KaimingNormal {
    fan_in: Option<f64>,
    gain: f64,
}

#[class(module = "nn.initializer", object = object)]
impl KaimingNormal {
    /// Normal values with the standard deviation `gain / sqrt(fan_in)`.
    fn build(
        #[opt(None)] fan_in: Option<f64>,
        #[opt(0.0)] negative_slope: f64,
        #[opt("relu")] nonlinearity: &str,
    ) -> Result<KaimingNormal> {
        ensure!(nonlinearity == "relu", "the nonlinearity {nonlinearity:?} is unknown");
        Ok(KaimingNormal { fan_in, gain: (2.0 / (1.0 + negative_slope * negative_slope)).sqrt() })
    }
}

impl Initializer for KaimingNormal {
    fn init(&self, shape: &[usize], dtype: DType) -> Result<Tensor> {
        let fan_in = self.fan_in.unwrap_or(fans(shape).0);
        (random::try_randn(shape)? * (self.gain / fan_in.sqrt())).try_cast(dtype)
    }
}
