//! Random tensors, all from the one generator of [`crate::random`].

pub mod dropout;
pub mod random_inplace;

use crate::gpu;
use crate::ops::prelude::*;
use crate::ops::shape::checked_shape;
use crate::random::Start;
use sampan_cuda::random::Draw;
use sampan_kernels::rng::{self, BadProbs};

/// The dtype of random floats, or an error for anything else.
fn float_dtype(dtype: Option<DType>) -> Result<DType> {
    let dtype = dtype.unwrap_or_else(default_dtype);
    if dtype.is_float() { Ok(dtype) } else { Err(Error::dtype(format!("dtype must be a float, got {dtype}"))) }
}

/// Where a fill starts: a fresh stretch of the global stream, or always the same one for a seed of its own.
fn stream(seed: i64, n: usize) -> Start {
    if seed == 0 { Start::Next(n) } else { Start::Own(seed as u64) }
}

/// Uniform numbers in [0, 1).
///
/// ```
/// # use sampan_core::ops::random::rand;
/// assert_eq!(rand([2, 3]).shape(), [2, 3]);
/// ```
#[op(random, non_diff, samples = shape_samples, peer = "none: random")]
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
#[op(random, non_diff, samples = uniform_samples, peer = "none: random")]
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
    cx.run(
        || {
            let (seed, start) = stream(seed, out.numel()).taken();
            rng::uniform(seed, start, out.values_mut().slice(), min, max);
            Ok(())
        },
        |gpu| {
            let draw = Draw::Uniform { low: min, width: max - min, top: rng::below(dtype, min, max) };
            gpu::random::draw(gpu, draw, stream(seed, out.numel()), &out)
        },
    )?;
    Ok(out)
}

/// Normal numbers of mean 0 and standard deviation 1.
///
/// ```
/// # use sampan_core::ops::random::randn;
/// assert_eq!(randn([2, 3]).shape(), [2, 3]);
/// ```
#[op(random, non_diff, samples = shape_samples, peer = "none: random", also("standard_normal"))]
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
#[op(random, non_diff, samples = uniform_samples, peer = "none: random")]
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
    cx.run(
        || {
            let (seed, start) = stream(seed, out.numel()).taken();
            rng::normal(seed, start, out.values_mut().slice(), mean, std);
            Ok(())
        },
        |gpu| gpu::random::draw(gpu, Draw::Normal { mean, deviation: std }, stream(seed, out.numel()), &out),
    )?;
    Ok(out)
}

/// Whole numbers in [low, high); with `high` left out, in [0, low).
///
/// ```
/// # use sampan_core::ops::random::randint;
/// assert!(randint(2, 5, [100]).to_vec::<i64>().iter().all(|v| (2..5).contains(v)));
/// ```
#[op(random, non_diff, samples = randint_samples, peer = "none: random")]
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
    cx.run(
        || {
            let (seed, start) = crate::random::reserve(out.numel());
            rng::randint(seed, start, out.values_mut().slice(), low, high);
            Ok(())
        },
        |gpu| {
            let draw = Draw::Integers { low, range: high.wrapping_sub(low) as u64 };
            gpu::random::draw(gpu, draw, Start::Next(out.numel()), &out)
        },
    )?;
    Ok(out)
}

/// Normal numbers whose mean and standard deviation are numbers or tensors, which broadcast; with two numbers the shape
/// must be given. Gradients flow to mean and standard deviation.
///
/// ```
/// # use sampan_core::{Tensor, ops::random::normal};
/// assert_eq!(normal(0.0, 1.0, Some(&[2, 3])).shape(), [2, 3]);
/// assert_eq!(normal(&Tensor::new([1.0f32, 2.0]), 0.0, None).to_vec::<f32>(), [1.0, 2.0]);
/// ```
#[op(random, samples = normal_samples, peer = "none: random")]
fn normal(
    #[default(0.0)] mean: Operand,
    #[default(1.0)] std: Operand,
    #[default(None)] shape: Option<&[i64]>,
) -> Result<Tensor> {
    if let (Operand::Scalar(m), Operand::Scalar(s)) = (&mean, &std) {
        let shape = shape.ok_or_else(|| Error::invalid("shape is needed where mean and std are numbers"))?;
        return try_gaussian(shape, m.to_f64(), s.to_f64());
    }
    let dims = |v: &Operand| v.tensor().map(Tensor::shape_vec).unwrap_or_default();
    let shape = broadcast(&dims(&mean), &dims(&std))?;
    let dtype = [&mean, &std].iter().find_map(|v| v.tensor()).map_or_else(default_dtype, |t| to_float(t.dtype()));
    let noise = try_gaussian_with(&shape, 0.0, 1.0, GaussianOpts::new().dtype(dtype))?;
    noise.try_multiply(std)?.try_add(mean)
}

/// The exponential of normal numbers; `mean` and `std` are those of the logarithm.
///
/// ```
/// # use sampan_core::ops::random::log_normal;
/// assert_eq!(log_normal(0.0, 0.0, Some(&[2])).to_vec::<f32>(), [1.0, 1.0]);
/// ```
#[op(random, samples = normal_samples, peer = "none: random")]
fn log_normal(
    #[default(1.0)] mean: Operand,
    #[default(2.0)] std: Operand,
    #[default(None)] shape: Option<&[i64]>,
) -> Result<Tensor> {
    try_normal(mean, std, shape)?.try_exp()
}

/// Normal numbers kept between `a` and `b`, as initialisers want them.
///
/// ```
/// # use sampan_core::ops::random::truncated_normal;
/// assert!(truncated_normal([100], 0.0, 1.0, -2.0, 2.0).to_vec::<f32>().iter().all(|v| v.abs() <= 2.0));
/// ```
#[op(random, non_diff, samples = shape_samples, peer = "none: random")]
fn truncated_normal(
    cx: &Cx,
    shape: &[i64],
    #[default(0.0)] mean: f64,
    #[default(1.0)] std: f64,
    #[default(-2.0)] a: f64,
    #[default(2.0)] b: f64,
    #[opt(None)] dtype: Option<DType>,
) -> Result<Tensor> {
    let shape = checked_shape(shape)?;
    let dtype = float_dtype(dtype)?;
    ensure!(mean.is_finite() && std.is_finite(), "mean and std must be finite, got {mean} and {std}");
    ensure!(std >= 0.0 && a <= b, "std cannot be negative and a must not exceed b, got std {std}, a {a}, b {b}");
    let out = cx.out(&shape, dtype)?;
    fill_random(cx, &out, |seed, at| rng::truncated_normal(seed, at, out.values_mut().slice(), mean, std, a, b))
}

/// Runs a fill on a fresh stretch of the stream.
fn fill_random(cx: &Cx, out: &Tensor, f: impl FnOnce(u64, u64)) -> Result<Tensor> {
    cx.cpu(|| {
        let (seed, start) = crate::random::reserve(out.numel());
        f(seed, start);
        Ok(())
    })?;
    Ok(out.clone())
}

/// Uniform numbers in [0, 1) in the shape (and, unless one is given, the dtype) of `x`.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([1.0f32, 2.0]).rand_like().shape(), [2]);
/// ```
#[op(random, non_diff, samples = like_samples, peer = "none: random")]
fn rand_like(cx: &Cx, x: &Tensor, #[opt(None)] dtype: Option<DType>) -> Result<Tensor> {
    fill_uniform(cx, x.shape(), float_dtype(dtype.or(Some(x.dtype())))?, 0.0, 1.0, 0)
}

/// Standard normal numbers in the shape (and, unless one is given, the dtype) of `x`.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([1.0f32, 2.0]).randn_like().shape(), [2]);
/// ```
#[op(random, non_diff, samples = like_samples, peer = "none: random")]
fn randn_like(cx: &Cx, x: &Tensor, #[opt(None)] dtype: Option<DType>) -> Result<Tensor> {
    fill_normal(cx, x.shape(), float_dtype(dtype.or(Some(x.dtype())))?, 0.0, 1.0, 0)
}

/// Whole numbers in [low, high) in the shape (and, unless one is given, the dtype) of `x`.
///
/// ```
/// # use sampan_core::Tensor;
/// assert!(Tensor::new([1.0f32, 2.0]).randint_like(3, None).to_vec::<f32>().iter().all(|&v| v < 3.0));
/// ```
#[op(random, non_diff, samples = randint_like_samples, peer = "none: random")]
fn randint_like(
    cx: &Cx,
    x: &Tensor,
    #[default(0)] low: i64,
    #[default(None)] high: Option<i64>,
    #[opt(None)] dtype: Option<DType>,
) -> Result<Tensor> {
    fill_ints(cx, x.shape(), dtype.unwrap_or(x.dtype()), low, high)
}

/// The numbers from 0 to n - 1 in random order.
///
/// ```
/// # use sampan_core::ops::random::randperm;
/// let mut order = randperm(5).to_vec::<i64>();
/// order.sort();
/// assert_eq!(order, [0, 1, 2, 3, 4]);
/// ```
#[op(random, non_diff, samples = randperm_samples, peer = "none: random")]
fn randperm(cx: &Cx, n: i64, #[opt(DType::Int64)] dtype: DType) -> Result<Tensor> {
    ensure!(n >= 0, "n cannot be negative, got {n}");
    let out = cx.out([n as usize], DType::Int64)?;
    fill_random(cx, &out, |seed, at| rng::randperm(seed, at, out.data_mut::<i64>().slice()))?.try_cast(dtype)
}

/// 1 with the probability in each element of `x` (or with `p`, if given), else 0.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([0.0f32, 1.0]).bernoulli(None).to_vec::<f32>(), [0.0, 1.0]);
/// ```
#[op(random, non_diff, samples = bernoulli_samples, peer = "none: random")]
fn bernoulli(cx: &Cx, x: &Tensor, #[default(None)] p: Option<f64>) -> Result<Tensor> {
    ensure!(p.is_none_or(|p| (0.0..=1.0).contains(&p)), "p must lie in [0, 1], got {p:?}");
    let out = cx.out(x.shape(), float_dtype(Some(x.dtype()))?)?;
    let x = contiguous_for(cx, x);
    if p.is_none() && cx.device().has_values() {
        check_probs(&x)?;
    }
    let cpu = || {
        let (seed, at) = crate::random::reserve(out.numel());
        let mut out = out.values_mut();
        match p {
            Some(p) => rng::bernoulli(seed, at, out.slice(), p),
            None => rng::bernoulli_with(seed, at, x.values().slice(), out.slice()),
        }
        Ok(())
    };
    cx.run(cpu, |gpu| {
        let start = Start::Next(out.numel());
        match p {
            Some(p) => gpu::random::draw(gpu, Draw::Bernoulli { last: rng::threshold(p) as i64 - 1 }, start, &out),
            None => gpu::random::draw_by(gpu, &x, start, &out),
        }
    })?;
    Ok(out)
}

/// Row-major values for a kernel; a meta tensor stays as it is.
fn contiguous_for(cx: &Cx, x: &Tensor) -> Tensor {
    if cx.device().has_values() { x.contiguous() } else { x.clone() }
}

fn check_probs(x: &Tensor) -> Result<()> {
    if let Device::Cuda(_) = x.device() {
        let outside =
            x.try_less_than(0.0)?.try_logical_or(&x.try_greater_than(1.0)?)?.try_logical_or(&x.try_isnan()?)?;
        ensure!(outside.try_any(())?.to_f64() == 0.0, "probabilities must lie in [0, 1]");
        return Ok(());
    }
    match rng::no_probability(x.values().slice()) {
        Some(bad) => Err(Error::invalid(format!("probabilities must lie in [0, 1], got {bad}"))),
        None => Ok(()),
    }
}

/// Positions drawn from each row with the weights it holds, which need not add up to 1.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([0.0f32, 3.0]);
/// assert_eq!(x.multinomial_with(2, sampan_core::ops::random::MultinomialOpts::new().replacement(true)).to_vec::<i64>(), [1, 1]);
/// ```
#[op(random, non_diff, samples = multinomial_samples, peer = "none: random")]
fn multinomial(cx: &Cx, x: &Tensor, #[default(1)] num_samples: i64, #[opt(false)] replacement: bool) -> Result<Tensor> {
    ensure!((1..=2).contains(&x.ndim()), "x must have 1 or 2 axes");
    ensure!(num_samples > 0, "num_samples must be positive, got {num_samples}");
    float_dtype(Some(x.dtype()))?;
    let (classes, k) = (x.dim(-1), num_samples as usize);
    ensure!(classes > 0, "there is nothing to draw from");
    ensure!(replacement || k <= classes, "{k} draws without replacement from {classes} classes are impossible");
    let mut shape = x.shape_vec();
    shape[x.ndim() - 1] = k;
    let out = cx.out(&shape, DType::Int64)?;
    cx.cpu(|| {
        let x = x.contiguous();
        let (seed, start) = crate::random::reserve(x.numel() / classes * k.max(classes));
        let (probs, mut draws) = (x.values(), out.data_mut::<i64>());
        rng::multinomial(seed, start, probs.slice(), classes, k, replacement, draws.slice()).map_err(|e| {
            Error::invalid(match e {
                BadProbs::Invalid { row, class } => {
                    format!("weight {class} of row {row} is negative, infinite or NaN")
                }
                BadProbs::AllZero { row } => format!("row {row} has no positive weight"),
                BadProbs::TooFew { row, positive } => {
                    format!("row {row} has {positive} positive weights, {k} draws without replacement need as many")
                }
            })
        })
    })?;
    Ok(out)
}

/// Poisson numbers whose rates are the elements of `x`.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([0.0f32, 0.0]).poisson().to_vec::<f32>(), [0.0, 0.0]);
/// ```
#[op(random, non_diff, samples = positive_line, peer = "none: random")]
fn poisson(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    let out = cx.out(x.shape(), float_dtype(Some(x.dtype()))?)?;
    let x = contiguous_for(cx, x);
    fill_random(cx, &out, |seed, at| rng::poisson(seed, at, x.values().slice(), out.values_mut().slice()))
}

/// Successes in `count` trials of probability `prob`, which broadcast; int64.
///
/// ```
/// # use sampan_core::{Tensor, ops::random};
/// assert_eq!(Tensor::new([3i64, 4]).binomial(&Tensor::new([1.0f32])).to_vec::<i64>(), [3, 4]);
/// ```
#[op(random, non_diff, samples = binomial_samples, peer = "none: random")]
fn binomial(cx: &Cx, count: &Tensor, prob: &Tensor) -> Result<Tensor> {
    float_dtype(Some(prob.dtype()))?;
    let shape = broadcast(count.shape(), prob.shape())?;
    let out = cx.out(&shape, DType::Int64)?;
    // Counts are whole numbers that a half would round.
    let wide = |t: &Tensor| t.try_cast(DType::Float64)?.try_expand(&shape).map(|t| contiguous_for(cx, &t));
    let (count, prob) = (wide(count)?, wide(prob)?);
    cx.cpu(|| check_probs(&prob))?;
    fill_random(cx, &out, |seed, at| {
        let (count, prob, mut out) = (count.data::<f64>(), prob.data::<f64>(), out.data_mut::<i64>());
        rng::binomial(seed, at, count.slice(), prob.slice(), out.slice());
    })
}

/// Gamma numbers whose shapes are the elements of `x`, of scale 1.
///
/// ```
/// # use sampan_core::Tensor;
/// assert!(Tensor::new([2.0f32]).standard_gamma().to_vec::<f32>()[0] > 0.0);
/// ```
#[op(random, non_diff, samples = positive_line, peer = "none: random")]
fn standard_gamma(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    let out = cx.out(x.shape(), float_dtype(Some(x.dtype()))?)?;
    let x = contiguous_for(cx, x);
    fill_random(cx, &out, |seed, at| rng::gamma(seed, at, x.values().slice(), out.values_mut().slice()))
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
fn normal_samples() -> Vec<Sample> {
    vec![
        sample![0.5, 2.0, [2, 3]],
        sample![crate::sample::randn([2, 1]), positive([3])],
        sample![crate::sample::randn([3]), 0.5],
        sample![1.0, positive([2])],
    ]
}
fn like_samples() -> Vec<Sample> {
    vec![sample![crate::sample::randn([2, 3])], sample![ints([2], 0, 5); dtype = DType::Float32]]
}
fn randint_like_samples() -> Vec<Sample> {
    vec![
        sample![ints([2, 3], 0, 5), 5],
        sample![crate::sample::randn([2]), -3, 4],
        sample![ints([], 0, 5), 0, 9; dtype = DType::Int32],
    ]
}
fn randperm_samples() -> Vec<Sample> {
    vec![sample![5], sample![0], sample![3; dtype = DType::Int32]]
}
fn bernoulli_samples() -> Vec<Sample> {
    vec![
        sample![crate::sample::uniform([2, 3], 0.0, 1.0)],
        sample![crate::sample::randn([4]), 0.3],
        sample![crate::sample::uniform([0], 0.0, 1.0)],
    ]
}
fn multinomial_samples() -> Vec<Sample> {
    vec![sample![positive([4]), 3], sample![positive([2, 3]), 5; replacement = true], sample![positive([2, 3])]]
}
fn binomial_samples() -> Vec<Sample> {
    vec![
        sample![ints([2, 3], 0, 9), crate::sample::uniform([3], 0.0, 1.0)],
        sample![values([3.0f32, 200.0], [2]), crate::sample::uniform([2], 0.0, 1.0)],
    ]
}
