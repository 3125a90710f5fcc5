//! Random tensors, all from the one generator of [`crate::random`].

use super::prelude::*;
use sampan_kernels::rng;

/// Uniform numbers in [0, 1).
///
/// ```
/// # use sampan_core::ops::random::rand;
/// assert_eq!(rand([2, 3]).shape(), [2, 3]);
/// ```
#[op(non_diff, samples = rand_samples, peer = "none: random")]
fn rand(cx: &Cx, shape: &[i64], #[opt(None)] dtype: Option<DType>) -> Result<Tensor> {
    let shape = super::shape::checked_shape(shape)?;
    let dtype = dtype.unwrap_or_else(default_dtype);
    let out = cx.out(&shape, dtype)?;
    cx.cpu(|| {
        let (seed, start) = crate::random::reserve(out.numel());
        match dtype {
            DType::Float32 => rng::uniform::<f32>(seed, start, out.data_mut::<f32>().slice(), 0.0, 1.0),
            DType::Float64 => rng::uniform::<f64>(seed, start, out.data_mut::<f64>().slice(), 0.0, 1.0),
            other => return Err(Error::dtype(format!("dtype must be float32 or float64, got {other}"))),
        }
        Ok(())
    })?;
    Ok(out)
}

fn rand_samples() -> Vec<Sample> {
    vec![sample![[2, 3]], sample![[0]], sample![Vec::<i64>::new()]]
}
