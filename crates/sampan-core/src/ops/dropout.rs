//! Dropout: random masks kept as truth values.

use super::prelude::*;
use sampan_kernels::rng;

/// Truth values that are each true with probability `p`.
fn random_mask(cx: &Cx, shape: &[usize], p: f64) -> Result<Tensor> {
    let mask = cx.out(shape, DType::Bool)?;
    cx.cpu(|| {
        let (seed, start) = crate::random::reserve(mask.numel());
        rng::bernoulli::<Bool>(seed, start, mask.data_mut::<Bool>().slice(), p);
        Ok(())
    })?;
    Ok(mask)
}

/// Where `mask` holds, `x * scale`, else `other`. The mask broadcasts.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([1.0f32, 2.0]);
/// assert_eq!(x.masked_scale(&Tensor::new([true, false]), 3.0, -1.0).to_vec::<f32>(), [3.0, -1.0]);
/// ```
#[op(module = "nn.functional", samples = masked_scale_samples, peer = "none: internal part of dropout")]
fn masked_scale(cx: &Cx, x: &Tensor, mask: &Tensor, scale: f64, other: f64) -> Result<Tensor> {
    if mask.dtype() != DType::Bool || !x.dtype().is_float() {
        return Err(Error::dtype("needs a float x and a bool mask"));
    }
    ensure!(broadcast(x.shape(), mask.shape())?.as_slice() == x.shape(), "the mask must broadcast to x");
    let out = cx.out(x.shape(), x.dtype())?;
    cx.cpu(|| {
        let layout = mask.layout().broadcast_to(x.shape());
        match_dtype!(x.dtype(), T in float => {
            type Wide = <T as sampan_kernels::elementwise::RealElement>::Wide;
            use sampan_kernels::elementwise::RealElement;
            let (scale, other) = (scale as Wide, T::from_f64(other));
            let (x, mask, mut out) = (x.data::<T>(), mask.data::<Bool>(), out.data_mut::<T>());
            sampan_kernels::elementwise::map2(
                move |x: T, m: Bool| if m.get() { T::narrow(x.wide() * scale) } else { other },
                x.view(), mask.view_as(&layout), out.slice(),
            );
        }, else => {});
        Ok(())
    })?;
    cx.grad(out, &[mask], move |g| Ok([g.if_needed(0, || g.grad().masked_scale(g.saved(0), scale, 0.0)), None]))
}

fn check_p(p: f64) -> Result<()> {
    ensure!((0.0..=1.0).contains(&p), "p must lie in [0, 1], got {p}");
    Ok(())
}

/// The random mask of dropout: `true` is kept.
///
/// ```
/// # use sampan_core::ops::dropout::keep_mask;
/// assert_eq!(keep_mask([2, 3], 1.0).to_f64_vec(), [1.0; 6]);
/// ```
#[op(non_diff, module = "nn.functional", samples = keep_mask_samples, peer = "none: random")]
fn keep_mask(cx: &Cx, shape: &[i64], keep: f64) -> Result<Tensor> {
    check_p(keep)?;
    random_mask(cx, &super::shape::checked_shape(shape)?, keep)
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
#[op(module = "nn.functional", samples = dropout_samples, peer = "none: random")]
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
        sample![randn([2, 3]), 0.3; training = false],
        sample![randn([2, 3]), 0.3; training = false, mode = "downscale_in_infer"],
        sample![randn([2, 3]), 0.3; mode = "downscale_in_infer"],
        sample![randn([2, 3]), 1.0],
        sample![randn([0, 3])],
    ]
}
