//! Filling a tensor with random numbers in place.

use crate::ops::creation::EmptyLikeOpts;
use crate::ops::prelude::*;
use crate::random::Start;
use sampan_cuda::random::Draw;
use sampan_kernels::rng;

/// Values that owe nothing to the inputs: the gradient of the first one, whose content they replace, is zero.
fn cleared(cx: &Cx, out: Tensor, inputs: usize) -> Result<Tensor> {
    cx.grad(out, &[], move |g| {
        let mut grads = vec![None; inputs];
        grads[0] = Some(g.grad().zeros_like());
        Ok(grads)
    })
}

/// Random values of the shape and dtype of `x`, which holds floats.
fn redraw(cx: &Cx, x: &Tensor, draw: Option<Draw>, f: impl FnOnce(u64, u64, &Tensor)) -> Result<Tensor> {
    redraw_seeded(cx, x, 0, draw, f)
}

/// `draw` is what a GPU fills it with.
fn redraw_seeded(
    cx: &Cx,
    x: &Tensor,
    seed: i64,
    draw: Option<Draw>,
    f: impl FnOnce(u64, u64, &Tensor),
) -> Result<Tensor> {
    if !x.dtype().is_float() {
        return Err(Error::dtype(format!("x must hold floats, it holds {}", x.dtype())));
    }
    let out = cx.out(x.shape(), x.dtype())?;
    let start = if seed == 0 { Start::Next(out.numel()) } else { Start::Own(seed as u64) };
    cx.run(
        || {
            let (seed, start) = start.taken();
            f(seed, start, &out);
            Ok(())
        },
        |gpu| draw.map_or(Ok(false), |draw| crate::gpu::random::draw(gpu, draw, start, &out)),
    )?;
    Ok(out)
}

/// Uniform numbers in [min, max). A seed other than 0 gives the same numbers every time.
///
/// ```
/// # use sampan_core::Tensor;
/// assert!(Tensor::new([9.0f32, 9.0]).uniform_(0.0, 1.0, 0).to_vec::<f32>().iter().all(|&v| v < 1.0));
/// ```
#[op(random, samples = real_line, peer = "none: random", alias(from = min, to = max))]
fn uniform_(
    cx: &Cx,
    x: &Tensor,
    #[default(0.0)] min: f64,
    #[default(1.0)] max: f64,
    #[default(0)] seed: i64,
) -> Result<Tensor> {
    ensure!(min <= max && (max - min).is_finite(), "min {min} must not exceed max {max}");
    let draw = Draw::Uniform { low: min, width: max - min, top: rng::below(x.dtype(), min, max) };
    let out = redraw_seeded(cx, x, seed, Some(draw), |seed, at, out| {
        rng::uniform(seed, at, out.values_mut().slice(), min, max)
    })?;
    cleared(cx, out, 1)
}

/// Normal numbers of a mean and standard deviation.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([9.0f32]).normal_(2.0, 0.0).to_vec::<f32>(), [2.0]);
/// ```
#[op(random, samples = real_line, peer = "none: random")]
fn normal_(cx: &Cx, x: &Tensor, #[default(0.0)] mean: f64, #[default(1.0)] std: f64) -> Result<Tensor> {
    ensure!(std >= 0.0, "std cannot be negative, got {std}");
    let draw = Some(Draw::Normal { mean, deviation: std });
    let out = redraw(cx, x, draw, |seed, at, out| rng::normal(seed, at, out.values_mut().slice(), mean, std))?;
    cleared(cx, out, 1)
}

/// The exponential of normal numbers; `mean` and `std` are those of the logarithm.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([9.0f32]).log_normal_(0.0, 0.0).to_vec::<f32>(), [1.0]);
/// ```
#[op(random, samples = real_line, peer = "none: random")]
fn log_normal_(cx: &Cx, x: &Tensor, #[default(1.0)] mean: f64, #[default(2.0)] std: f64) -> Result<Tensor> {
    ensure!(std >= 0.0, "std cannot be negative, got {std}");
    // Halves would be rounded twice.
    let wide = if x.dtype() == DType::Float64 { DType::Float64 } else { DType::Float32 };
    let draw = Some(Draw::Normal { mean, deviation: std });
    let noise = redraw(cx, &x.try_empty_like_with(EmptyLikeOpts::new().dtype(wide))?, draw, |seed, at, out| {
        rng::normal(seed, at, out.values_mut().slice(), mean, std)
    })?;
    cleared(cx, noise.try_exp()?.try_cast(x.dtype())?, 1)
}

/// Exponential numbers of rate `lam`.
///
/// ```
/// # use sampan_core::Tensor;
/// assert!(Tensor::new([-9.0f32]).exponential_(1.0).to_vec::<f32>()[0] >= 0.0);
/// ```
#[op(random, samples = real_line, peer = "none: random", alias(lambd = lam))]
fn exponential_(cx: &Cx, x: &Tensor, #[default(1.0)] lam: f64) -> Result<Tensor> {
    ensure!(lam > 0.0, "lam must be positive, got {lam}");
    let draw = Some(Draw::Exponential { scale: -1.0 / lam });
    let out = redraw(cx, x, draw, |seed, at, out| rng::exponential(seed, at, out.values_mut().slice(), lam))?;
    cleared(cx, out, 1)
}

/// Cauchy numbers of median `loc` and half width `scale`.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([9.0f32]).cauchy_(2.0, 0.0).to_vec::<f32>(), [2.0]);
/// ```
#[op(random, samples = real_line, peer = "none: random")]
fn cauchy_(cx: &Cx, x: &Tensor, #[default(0.0)] loc: f64, #[default(1.0)] scale: f64) -> Result<Tensor> {
    let out = redraw(cx, x, None, |seed, at, out| rng::cauchy(seed, at, out.values_mut().slice(), loc, scale))?;
    cleared(cx, out, 1)
}

/// `ln u / ln(1 - probs)` for uniform u, the continuous form of the geometric distribution that Paddle gives.
///
/// ```
/// # use sampan_core::Tensor;
/// assert!(Tensor::new([-9.0f32]).geometric_(0.5).to_vec::<f32>()[0] >= 0.0);
/// ```
#[op(random, samples = geometric_samples, peer = "none: random")]
fn geometric_(cx: &Cx, x: &Tensor, probs: f64) -> Result<Tensor> {
    ensure!(probs > 0.0 && probs < 1.0, "probs must lie in (0, 1), got {probs}");
    let out = redraw(cx, x, None, |seed, at, out| rng::geometric(seed, at, out.values_mut().slice(), probs))?;
    cleared(cx, out, 1)
}

/// 1 with probability `p`, a number or a tensor that broadcasts to `x`, else 0.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([9.0f32]).bernoulli_(1.0).to_vec::<f32>(), [1.0]);
/// ```
#[op(random, samples = bernoulli_samples, peer = "none: random")]
fn bernoulli_(cx: &Cx, x: &Tensor, #[default(0.5)] p: Operand) -> Result<Tensor> {
    let probs = match &p {
        Operand::Scalar(p) => x.try_full_like(*p)?,
        Operand::Tensor(p) => p.try_expand(x.shape())?.try_cast(x.dtype())?,
    };
    cleared(cx, probs.try_bernoulli(None)?, 1 + p.tensor().is_some() as usize)
}

/// Whole numbers in [from_, to); without `to` as large as the dtype holds exactly.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([9i64]).random_(5, 6).to_vec::<i64>(), [5]);
/// ```
#[op(random, samples = random_samples, peer = "none: random")]
fn random_(cx: &Cx, x: &Tensor, #[default(0)] from_: i64, #[default(None)] to: Option<i64>) -> Result<Tensor> {
    let most = match x.dtype() {
        DType::Bool => 2,
        DType::UInt8 => 1 << 8,
        DType::Int8 => 1 << 7,
        DType::Int16 => 1 << 15,
        DType::Int32 => 1 << 31,
        DType::Int64 => i64::MAX,
        DType::Float16 => (1 << 11) + 1,
        DType::BFloat16 => (1 << 8) + 1,
        DType::Float32 => (1 << 24) + 1,
        DType::Float64 => (1 << 53) + 1,
        complex => bail!("draws real numbers, got {complex}"),
    };
    let to = to.unwrap_or(most);
    ensure!(from_ < to, "from_ {from_} must be below to {to}");
    let out = cx.out(x.shape(), x.dtype())?;
    cx.run(
        || {
            let (seed, start) = crate::random::reserve(out.numel());
            rng::randint(seed, start, out.values_mut().slice(), from_, to);
            Ok(())
        },
        |gpu| {
            let draw = Draw::Integers { low: from_, range: to.wrapping_sub(from_) as u64 };
            crate::gpu::random::draw(gpu, draw, Start::Next(out.numel()), &out)
        },
    )?;
    cleared(cx, out, 1)
}

fn geometric_samples() -> Vec<Sample> {
    vec![sample![randn([2, 3]), 0.3], sample![randn([]), 0.7]]
}
fn bernoulli_samples() -> Vec<Sample> {
    vec![sample![randn([2, 3])], sample![randn([2, 3]), 0.2], sample![randn([2, 3]), uniform([3], 0.0, 1.0)]]
}
fn random_samples() -> Vec<Sample> {
    vec![sample![randn([2, 3]), 2, 7], sample![ints([3], 0, 5)], sample![ints([3], 0, 5), -4, 4]]
}
