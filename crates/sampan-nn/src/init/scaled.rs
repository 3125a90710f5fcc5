//! Random values scaled by the number of inputs and outputs, so that signals keep their size through a deep network.

use super::{Initializer, Normal, Uniform, calculate_gain, fans, object};
use sampan_core::{DType, Result, Tensor, ensure};
use sampan_macros::class;

/// Values with this standard deviation.
fn spread(std: f64, uniform: bool, shape: &[usize], dtype: DType) -> Result<Tensor> {
    if uniform {
        // A uniform distribution on ±limit has the standard deviation limit / √3.
        let limit = std * 3f64.sqrt();
        Uniform::try_new(-limit, limit)?.init(shape, dtype)
    } else {
        Normal::try_new(0.0, std)?.init(shape, dtype)
    }
}

/// One over the square root of a fan; a weight without inputs or outputs has nothing to fill.
fn inverse_root(fan: f64) -> f64 {
    if fan > 0.0 { 1.0 / fan.sqrt() } else { 0.0 }
}

macro_rules! xavier {
    ($name:ident, $uniform:literal, $title:literal, $doc:literal) => {
        #[doc = $title]
        #[derive(Clone, Debug)]
        pub struct $name {
            fan_in: Option<f64>,
            fan_out: Option<f64>,
            gain: f64,
        }

        #[class(module = "nn.initializer", object = object)]
        impl $name {
            #[doc = $doc]
            /// The fans come from the shape unless they are given: `[in, out]` of a matrix, `[out, in, …]` of a convolution.
            fn build(
                #[opt(None)] fan_in: Option<f64>,
                #[opt(None)] fan_out: Option<f64>,
                #[opt(1.0)] gain: f64,
            ) -> Result<$name> {
                Ok($name { fan_in, fan_out, gain })
            }
        }

        impl Initializer for $name {
            fn init(&self, shape: &[usize], dtype: DType) -> Result<Tensor> {
                let (fan_in, fan_out) = fans(shape);
                let (fan_in, fan_out) = (self.fan_in.unwrap_or(fan_in), self.fan_out.unwrap_or(fan_out));
                let sum = if fan_in == 0.0 || fan_out == 0.0 { 0.0 } else { fan_in + fan_out };
                spread(self.gain.abs() * 2f64.sqrt() * inverse_root(sum), $uniform, shape, dtype)
            }
        }
    };
}
xavier!(XavierUniform, true, "Glorot's uniform values.", "Uniform values in `±gain * sqrt(6 / (fan_in + fan_out))`.");
xavier!(
    XavierNormal,
    false,
    "Glorot's normal values.",
    "Normal values with the standard deviation `gain * sqrt(2 / (fan_in + fan_out))`."
);

macro_rules! kaiming {
    ($name:ident, $uniform:literal, $title:literal, $doc:literal) => {
        #[doc = $title]
        #[derive(Clone, Debug)]
        pub struct $name {
            fan_in: Option<f64>,
            gain: f64,
            outputs: bool,
        }

        #[class(module = "nn.initializer", object = object)]
        impl $name {
            #[doc = $doc]
            /// `gain` is that of `nonlinearity` (see [`calculate_gain`]); `mode` may be `"fan_out"` to keep the size of
            /// gradients instead of signals.
            fn build(
                #[opt(None)] fan_in: Option<f64>,
                #[opt(0.0)] negative_slope: f64,
                #[opt("relu")] nonlinearity: &str,
                #[opt("fan_in")] mode: &str,
            ) -> Result<$name> {
                ensure!(matches!(mode, "fan_in" | "fan_out"), "mode must be \"fan_in\" or \"fan_out\", got {mode:?}");
                let outputs = mode == "fan_out";
                ensure!(!outputs || fan_in.is_none(), "fan_in cannot be given when mode is \"fan_out\"");
                Ok($name { fan_in, gain: calculate_gain(nonlinearity, Some(negative_slope))?, outputs })
            }
        }

        impl Initializer for $name {
            fn init(&self, shape: &[usize], dtype: DType) -> Result<Tensor> {
                let (fan_in, fan_out) = fans(shape);
                let fan = if self.outputs { fan_out } else { self.fan_in.unwrap_or(fan_in) };
                spread(self.gain * inverse_root(fan), $uniform, shape, dtype)
            }
        }
    };
}
kaiming!(KaimingUniform, true, "He's uniform values.", "Uniform values in `±gain * sqrt(3 / fan_in)`.");
kaiming!(
    KaimingNormal,
    false,
    "He's normal values.",
    "Normal values with the standard deviation `gain / sqrt(fan_in)`."
);
