//! Random tensors, all from the one generator of [`crate::random`].

use super::prelude::*;
use super::shape::checked_shape;
use sampan_kernels::rng;

/// The dtype of random floats, or an error for anything else.
fn float_dtype(dtype: Option<DType>) -> Result<DType> {
    let dtype = dtype.unwrap_or_else(default_dtype);
    if dtype.is_float() { Ok(dtype) } else { Err(Error::dtype(format!("dtype must be a float, got {dtype}"))) }
}

/// Where a fill starts: a fresh stretch of the global stream, or always the same one for a seed of its own.
fn stream(seed: i64, n: usize) -> (u64, u64) {
    if seed == 0 { crate::random::reserve(n) } else { (seed as u64, 0) }
}

/// Uniform numbers in [0, 1).
///
/// ```
/// # use sampan_core::ops::random::rand;
/// assert_eq!(rand([2, 3]).shape(), [2, 3]);
/// ```
#[op(non_diff, samples = shape_samples, peer = "none: random")]
fn rand(shape: &[i64], #[opt(None)] dtype: Option<DType>) -> Result<Tensor> {
    let mut opts = UniformOpts::new();
    if let Some(dtype) = dtype {
        opts = opts.dtype(dtype);
    }
    try_uniform_with(shape, 0.0, 1.0, opts)
}

/// Uniform numbers in [min, max). A seed other than 0 gives the same numbers every time.
///
/// ```
/// # use sampan_core::ops::random::uniform;
/// assert!(uniform([100], 2.0, 3.0).to_vec::<f32>().iter().all(|v| (2.0..3.0).contains(v)));
/// ```
#[op(non_diff, samples = uniform_samples, peer = "none: random")]
fn uniform(
    cx: &Cx,
    shape: &[i64],
    #[opt(None)] dtype: Option<DType>,
    #[default(0.0)] min: f64,
    #[default(1.0)] max: f64,
    #[opt(0)] seed: i64,
) -> Result<Tensor> {
    let shape = checked_shape(shape)?;
    fill_uniform(cx, &shape, float_dtype(dtype)?, min, max, seed)
}

fn fill_uniform(cx: &Cx, shape: &[usize], dtype: DType, min: f64, max: f64, seed: i64) -> Result<Tensor> {
    ensure!(min <= max && (max - min).is_finite(), "min {min} must not exceed max {max}");
    let out = cx.out(shape, dtype)?;
    cx.cpu(|| {
        let (seed, start) = stream(seed, out.numel());
        match_dtype!(dtype, T in float => rng::uniform::<T>(seed, start, out.data_mut::<T>().slice(), min, max), else => {});
        Ok(())
    })?;
    Ok(out)
}

/// Normal numbers of mean 0 and standard deviation 1.
///
/// ```
/// # use sampan_core::ops::random::randn;
/// assert_eq!(randn([2, 3]).shape(), [2, 3]);
/// ```
#[op(non_diff, samples = shape_samples, peer = "none: random", also("standard_normal"))]
fn randn(shape: &[i64], #[opt(None)] dtype: Option<DType>) -> Result<Tensor> {
    let mut opts = GaussianOpts::new();
    if let Some(dtype) = dtype {
        opts = opts.dtype(dtype);
    }
    try_gaussian_with(shape, 0.0, 1.0, opts)
}

/// Normal numbers of a mean and standard deviation. A seed other than 0 gives the same numbers every time.
///
/// ```
/// # use sampan_core::ops::random::gaussian;
/// assert_eq!(gaussian([2], 5.0, 0.0).to_vec::<f32>(), [5.0, 5.0]);
/// ```
#[op(non_diff, samples = uniform_samples, peer = "none: random")]
fn gaussian(
    cx: &Cx,
    shape: &[i64],
    #[default(0.0)] mean: f64,
    #[default(1.0)] std: f64,
    #[opt(0)] seed: i64,
    #[opt(None)] dtype: Option<DType>,
) -> Result<Tensor> {
    let shape = checked_shape(shape)?;
    fill_normal(cx, &shape, float_dtype(dtype)?, mean, std, seed)
}

fn fill_normal(cx: &Cx, shape: &[usize], dtype: DType, mean: f64, std: f64, seed: i64) -> Result<Tensor> {
    ensure!(std >= 0.0, "std cannot be negative, got {std}");
    let out = cx.out(shape, dtype)?;
    cx.cpu(|| {
        let (seed, start) = stream(seed, out.numel());
        match_dtype!(dtype, T in float => rng::normal::<T>(seed, start, out.data_mut::<T>().slice(), mean, std), else => {});
        Ok(())
    })?;
    Ok(out)
}

/// Whole numbers in [low, high); with `high` left out, in [0, low).
///
/// ```
/// # use sampan_core::ops::random::randint;
/// assert!(randint(2, 5, [100]).to_vec::<i64>().iter().all(|v| (2..5).contains(v)));
/// ```
#[op(non_diff, samples = randint_samples, peer = "none: random")]
fn randint(
    cx: &Cx,
    #[default(0)] low: i64,
    #[default(None)] high: Option<i64>,
    #[default([1i64])] shape: &[i64],
    #[opt(None)] dtype: Option<DType>,
) -> Result<Tensor> {
    let shape = checked_shape(shape)?;
    fill_ints(cx, &shape, dtype.unwrap_or(DType::Int64), low, high)
}

fn fill_ints(cx: &Cx, shape: &[usize], dtype: DType, low: i64, high: Option<i64>) -> Result<Tensor> {
    let (low, high) = high.map_or((0, low), |high| (low, high));
    ensure!(low < high, "low {low} must be below high {high}");
    let out = cx.out(shape, dtype)?;
    cx.cpu(|| {
        let (seed, start) = crate::random::reserve(out.numel());
        match_dtype!(dtype, T => rng::randint::<T>(seed, start, out.data_mut::<T>().slice(), low, high));
        Ok(())
    })?;
    Ok(out)
}

fn shape_samples() -> Vec<Sample> {
    vec![sample![[2, 3]], sample![[0]], sample![Vec::<i64>::new(); dtype = DType::Float64]]
}
fn uniform_samples() -> Vec<Sample> {
    vec![sample![[2, 3]], sample![[4]; dtype = DType::Float16], sample![[0]], sample![Vec::<i64>::new()]]
}
fn randint_samples() -> Vec<Sample> {
    vec![sample![5], sample![-3, 4, [2, 3]], sample![0, 9, [2]; dtype = DType::Int32]]
}
