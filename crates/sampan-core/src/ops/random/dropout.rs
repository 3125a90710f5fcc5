//! Dropout: random masks kept as truth values.

use crate::ops::prelude::*;
use sampan_kernels::rng;

/// Truth values that are each true with probability `p`.
fn random_mask(cx: &Cx, shape: &[usize], p: f64) -> Result<Tensor> {
    let mask = cx.out(shape, DType::Bool)?;
    cx.run(
        || {
            let (seed, start) = crate::random::reserve(mask.numel());
            rng::bernoulli(seed, start, mask.values_mut().slice(), p);
            Ok(())
        },
        |gpu| {
            let draw = sampan_cuda::random::Draw::Bernoulli { last: rng::threshold(p) as i64 - 1 };
            crate::gpu::random::draw(gpu, draw, crate::random::Start::Next(mask.numel()), &mask)
        },
    )?;
    Ok(mask)
}

/// Where `mask` holds, `x * scale`, else `other`. The mask broadcasts.
#[op(
    internal,
    module = "nn.functional",
    samples = masked_scale_samples,
    peer = "lambda x, mask, scale, other: torch.where(mask, x * scale, other)"
)]
fn masked_scale(cx: &Cx, x: &Tensor, mask: &Tensor, scale: f64, other: f64) -> Result<Tensor> {
    if mask.dtype() != DType::Bool || !x.dtype().is_float() {
        return Err(Error::dtype("needs a float x and a bool mask"));
    }
    ensure!(broadcast(x.shape(), mask.shape())?.as_slice() == x.shape(), "the mask must broadcast to x");
    let out = cx.values_in(x.dtype(), formula!(|x, m; scale, other| select(m, x * scale, other)), (x, mask))?;
    cx.grad(out, &[mask], move |g| Ok([g.if_needed(0, || g.grad().masked_scale(g.saved(0), scale, 0.0)), None]))
}

fn check_p(p: f64) -> Result<()> {
    ensure!((0.0..=1.0).contains(&p), "p must lie in [0, 1], got {p}");
    Ok(())
}

/// The random mask of dropout: `true` is kept.
#[op(random, internal, non_diff, module = "nn.functional", samples = keep_mask_samples, peer = "none: random")]
fn keep_mask(cx: &Cx, shape: &[i64], keep: f64) -> Result<Tensor> {
    check_p(keep)?;
    random_mask(cx, &crate::ops::shape::checked_shape(shape)?, keep)
}

/// Sets elements to zero with probability `p` in training, and scales the others by `1 / (1 - p)` so that the mean stays.
/// With `mode="downscale_in_infer"` the result is scaled by `1 - p` outside of training instead. `axis` names the axes
/// along which the mask varies; it is constant along the others.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([1.0f32, 2.0]);
/// assert_eq!(x.dropout(0.0).to_vec::<f32>(), [1.0, 2.0]);
/// assert_eq!(x.dropout(1.0).to_vec::<f32>(), [0.0, 0.0]);
/// ```
#[op(random, module = "nn.functional", samples = dropout_samples, peer = "none: random")]
fn dropout(
    x: &Tensor,
    #[default(0.5)] p: f64,
    #[opt(None)] axis: Axes,
    #[opt(true)] training: bool,
    #[opt("upscale_in_train")] mode: &str,
) -> Result<Tensor> {
    check_p(p)?;
    let upscale = match mode {
        "upscale_in_train" => true,
        "downscale_in_infer" => false,
        other => bail!("mode must be \"upscale_in_train\" or \"downscale_in_infer\", got \"{other}\""),
    };
    let varies = axis.mask(x.ndim())?;
    if !training {
        return Ok(if upscale { x.clone() } else { x * (1.0 - p) });
    }
    if p == 0.0 {
        return Ok(x.clone());
    }
    let shape: Shape = x.shape().iter().zip(&varies).map(|(&n, &v)| if v { n } else { 1 }).collect();
    drop_by(x, &shape, p, if upscale && p < 1.0 { 1.0 / (1.0 - p) } else { 1.0 })
}

/// Draws a mask of `shape` and scales what it keeps.
fn drop_by(x: &Tensor, shape: &[usize], p: f64, scale: f64) -> Result<Tensor> {
    if !x.dtype().is_float() {
        return Err(Error::dtype(format!("x must be a float tensor, got {}", x.dtype())));
    }
    let mask = mask_like(x, shape, 1.0 - p)?;
    x.try_masked_scale(&mask, scale, 0.0)
}

/// A mask on the device of `x`.
fn mask_like(x: &Tensor, shape: &[usize], keep: f64) -> Result<Tensor> {
    match x.device() {
        Device::Meta => Ok(Tensor::meta(shape, DType::Bool)),
        _ => try_keep_mask(shape, keep),
    }
}

/// Random numbers of the shape and dtype of `x`, from nothing but the generator.
fn random_like(x: &Tensor, fill: impl FnOnce(u64, u64, &mut [f32])) -> Result<Tensor> {
    let dtype = to_float(x.dtype());
    if x.device() == Device::Meta {
        return Ok(Tensor::meta(x.shape(), dtype));
    }
    let (seed, start) = crate::random::reserve(x.numel());
    let out = Tensor::zeros(x.shape(), DType::Float32);
    fill(seed, start, out.data_mut::<f32>().slice());
    out.try_cast(dtype)
}

/// Uniform noise of the shape of `x` in [lo, hi).
pub(crate) fn noise_like(x: &Tensor, lo: f64, hi: f64) -> Result<Tensor> {
    random_like(x, |seed, start, out| rng::uniform(seed, start, out.into(), lo, hi))
}

/// Gumbel noise of the shape of `x`.
pub(crate) fn gumbel_like(x: &Tensor) -> Result<Tensor> {
    random_like(x, |seed, start, out| {
        rng::exponential(seed, start, (&mut *out).into(), 1.0);
        out.iter_mut().for_each(|v| *v = -v.max(f32::MIN_POSITIVE).ln());
    })
}

/// `dropout` of whole channels of `[C, L]` or `[N, C, L]` data.
///
/// ```
/// # use sampan_core::{DType, Tensor};
/// assert_eq!(Tensor::zeros([2, 3], DType::Float32).dropout1d(0.5, true).shape(), [2, 3]);
/// ```
#[op(random, module = "nn.functional", samples = dropout1d_samples, peer = "none: random")]
fn dropout1d(x: &Tensor, #[default(0.5)] p: f64, #[default(true)] training: bool) -> Result<Tensor> {
    ensure!(matches!(x.ndim(), 2 | 3), "x must have 2 or 3 axes, got shape {:?}", x.shape());
    let last = x.ndim() - 1;
    drop_channels(x, p, training, |i| i != last)
}

/// `dropout` of whole channels of 4-d data.
///
/// ```
/// # use sampan_core::{DType, Tensor};
/// assert_eq!(Tensor::zeros([1, 2, 3, 3], DType::Float32).dropout2d(0.5, true, "NCHW").shape(), [1, 2, 3, 3]);
/// ```
#[op(random, module = "nn.functional", samples = dropout2d_samples, peer = "none: random")]
fn dropout2d(
    x: &Tensor,
    #[default(0.5)] p: f64,
    #[default(true)] training: bool,
    #[default("NCHW")] data_format: &str,
) -> Result<Tensor> {
    ensure!(x.ndim() == 4, "x must have 4 axes, got shape {:?}", x.shape());
    ensure!(matches!(data_format, "NCHW" | "NHWC"), "data_format must be NCHW or NHWC, got \"{data_format}\"");
    let channel = if data_format == "NCHW" { 1 } else { 3 };
    drop_channels(x, p, training, |i| i == 0 || i == channel)
}

/// `dropout` of whole channels of 5-d data.
///
/// ```
/// # use sampan_core::{DType, Tensor};
/// let x = Tensor::zeros([1, 2, 3, 3, 3], DType::Float32);
/// assert_eq!(x.dropout3d(0.5, true, "NCDHW").shape(), [1, 2, 3, 3, 3]);
/// ```
#[op(random, module = "nn.functional", samples = dropout3d_samples, peer = "none: random")]
fn dropout3d(
    x: &Tensor,
    #[default(0.5)] p: f64,
    #[default(true)] training: bool,
    #[default("NCDHW")] data_format: &str,
) -> Result<Tensor> {
    ensure!(x.ndim() == 5, "x must have 5 axes, got shape {:?}", x.shape());
    ensure!(matches!(data_format, "NCDHW" | "NDHWC"), "data_format must be NCDHW or NDHWC, got \"{data_format}\"");
    let channel = if data_format == "NCDHW" { 1 } else { 4 };
    drop_channels(x, p, training, |i| i == 0 || i == channel)
}

/// Dropout with a mask that varies along some axes only.
fn drop_channels(x: &Tensor, p: f64, training: bool, varies: impl Fn(usize) -> bool) -> Result<Tensor> {
    check_p(p)?;
    if !training || p == 0.0 {
        return Ok(x.clone());
    }
    drop_by(x, &mask_shape(x, varies), p, if p < 1.0 { 1.0 / (1.0 - p) } else { 1.0 })
}

fn mask_shape(x: &Tensor, varies: impl Fn(usize) -> bool) -> Shape {
    x.shape().iter().enumerate().map(|(i, &n)| if varies(i) { n } else { 1 }).collect()
}

/// What selu tends to far below zero: the value that alpha dropout puts in place of what it drops.
const SELU_FLOOR: f64 = -1.758_099_340_847_376_6;

/// Dropout for networks of selu: what is dropped becomes selu's lower limit, and the result is moved and scaled so that
/// mean and deviation stay.
fn alpha_drop(x: &Tensor, p: f64, training: bool, shape: &[usize]) -> Result<Tensor> {
    check_p(p)?;
    if !x.dtype().is_float() {
        return Err(Error::dtype(format!("x must be a float tensor, got {}", x.dtype())));
    }
    if !training || p == 0.0 {
        return Ok(x.clone());
    }
    if p == 1.0 {
        return Ok(x * 0.0);
    }
    let scale = 1.0 / ((1.0 - p) * (1.0 + p * SELU_FLOOR * SELU_FLOOR)).sqrt();
    let shift = -scale * p * SELU_FLOOR;
    let mask = mask_like(x, shape, 1.0 - p)?;
    Ok(x.try_masked_scale(&mask, scale, scale * SELU_FLOOR)? + shift)
}

/// Dropout that keeps mean and deviation of selu activations.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([1.0f32]).alpha_dropout(0.5, false).to_vec::<f32>(), [1.0]);
/// ```
#[op(random, module = "nn.functional", samples = alpha_samples, peer = "none: random")]
fn alpha_dropout(x: &Tensor, #[default(0.5)] p: f64, #[default(true)] training: bool) -> Result<Tensor> {
    alpha_drop(x, p, training, x.shape())
}

/// `alpha_dropout` of whole channels: the mask varies along the first two axes only.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([[1.0f32]]).feature_alpha_dropout(0.5, false).to_vec::<f32>(), [1.0]);
/// ```
#[op(random, module = "nn.functional", samples = feature_alpha_samples, peer = "none: random")]
fn feature_alpha_dropout(x: &Tensor, #[default(0.5)] p: f64, #[default(true)] training: bool) -> Result<Tensor> {
    ensure!(x.ndim() >= 2, "x must have at least 2 axes, got shape {:?}", x.shape());
    alpha_drop(x, p, training, &mask_shape(x, |i| i < 2))
}

fn masked_scale_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 3]), bools([2, 3]), 2.0, 0.0],
        sample![randn([2, 3]), bools([2, 1]), 1.5, -0.3],
        sample![randn([0, 3]), bools([3]), 1.5, 0.0],
    ]
}
fn keep_mask_samples() -> Vec<Sample> {
    vec![sample![[2, 3], 0.5], sample![[0], 0.5]]
}
fn dropout_samples() -> Vec<Sample> {
    vec![
        sample![randn([4, 5])],
        sample![randn([4, 5]), 0.3; axis = 0],
        sample![randn([2, 3]), 0.3; training = false].peer("F.dropout"),
        sample![randn([2, 3]), 0.3; training = false, mode = "downscale_in_infer"].peer("F.dropout"),
        sample![randn([2, 3]), 0.3; mode = "downscale_in_infer"],
        sample![randn([2, 3]), 1.0].peer("F.dropout"),
        sample![randn([0, 3])],
    ]
}

fn dropout1d_samples() -> Vec<Sample> {
    vec![
        sample![randn([3, 4])],
        sample![randn([2, 3, 2]), 0.3],
        sample![randn([3, 4]), 0.3, false].peer("torch.nn.functional.dropout1d"),
    ]
}
fn dropout2d_samples() -> Vec<Sample> {
    vec![sample![randn([2, 3, 2, 1])], sample![randn([2, 1, 2, 3]), 0.3, true, "NHWC"]]
}
fn dropout3d_samples() -> Vec<Sample> {
    vec![sample![randn([2, 3, 2, 1, 1])], sample![randn([2, 1, 2, 1, 3]), 0.3, true, "NDHWC"]]
}
fn alpha_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 3])],
        sample![randn([2, 3]), 1.0].peer("F.alpha_dropout"),
        sample![randn([4]), 0.2, false].peer("F.alpha_dropout"),
        sample![randn([0])],
    ]
}
fn feature_alpha_samples() -> Vec<Sample> {
    vec![sample![randn([2, 3, 2])], sample![randn([2, 3]), 0.2, false].peer("F.feature_alpha_dropout")]
}
