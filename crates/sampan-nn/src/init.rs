//! Initial values of parameters, with Paddle's defaults.

use sampan_core::ops::random;
use sampan_core::{DType, Result, Tensor};

/// Zeros: the default of a bias.
pub fn zeros(shape: &[usize]) -> Tensor {
    Tensor::zeros(shape, DType::Float32)
}

fn uniform(shape: &[usize], limit: f64) -> Result<Tensor> {
    random::try_uniform(shape, -limit, limit)
}

/// Inputs and outputs that one element of a weight connects: `[in, out]` for a matrix, `[out, in, …]` for a convolution.
fn fans(shape: &[usize]) -> (f64, f64) {
    match *shape {
        [a, b] => (a as f64, b as f64),
        [out, inp, ref kernel @ ..] => {
            let field = kernel.iter().product::<usize>() as f64;
            (inp as f64 * field, out as f64 * field)
        }
        _ => (1.0, 1.0),
    }
}

/// Glorot's uniform values: the default of a linear layer.
pub fn xavier_uniform(shape: &[usize]) -> Result<Tensor> {
    let (fan_in, fan_out) = fans(shape);
    uniform(shape, (6.0 / (fan_in + fan_out)).sqrt())
}

/// He's normal values with fan-in: Paddle's default of a convolution.
pub fn kaiming_normal(shape: &[usize]) -> Result<Tensor> {
    let (fan_in, _) = fans(shape);
    Ok(random::try_randn(shape)? * (2.0 / fan_in).sqrt())
}
