//! The normalisation of channels in parts, for those who put parts of a batch together: what each part has to say, and what
//! becomes of it when all have been heard.

use super::channel_norm::channels_of;
use crate::ops::prelude::*;
use crate::ops::reduction::MeanOpts;
use crate::ops::standardize::{check_affine, check_float, ready, rstd_of, wide};
use sampan_kernels::batch_norm::{self, Channels};

/// Mean and biased variance of each channel of `[batch, channels, rest]`, in float64: those of parts of a batch can be put
/// together, and what comes out has the bits of the whole when it is rounded.
#[op(
    internal,
    non_diff,
    module = "nn.functional",
    samples = channel_moments_samples,
    reference = channel_moments_composite,
    peer = "none: the reference in ops",
    results("mean", "variance")
)]
fn channel_moments(cx: &Cx, x: &Tensor) -> Result<(Tensor, Tensor)> {
    check_float(x)?;
    let extents = channels_of(x)?;
    let (mean, var) = (cx.out([extents.channels], DType::Float64)?, cx.out([extents.channels], DType::Float64)?);
    cx.cpu(|| {
        let x = x.contiguous();
        let (x, mut mean, mut var) = (x.values(), mean.data_mut::<f64>(), var.data_mut::<f64>());
        batch_norm::moments(x.slice(), extents, mean.slice(), var.slice());
        Ok(())
    })?;
    Ok((mean, var))
}

fn channel_moments_composite(x: &Tensor) -> Result<(Tensor, Tensor)> {
    let x = x.cast(DType::Float64);
    let mean = x.mean_with([0, 2], MeanOpts::new().keepdim(true));
    Ok((mean.squeeze([0, 2]), (&x - &mean).square().mean([0, 2])))
}

/// The extents of an input and its gradient, beside which `each` has a value for every channel.
fn checked(x: &Tensor, grad: &Tensor, each: &[(&str, Option<&Tensor>)]) -> Result<Channels> {
    check_float(x)?;
    let extents = channels_of(x)?;
    ensure!(grad.shape() == x.shape(), "x and grad must have one shape");
    each.iter().try_for_each(|(what, t)| check_affine(what, *t, &[extents.channels]))?;
    Ok(extents)
}

/// Σ grad and Σ grad·(x - mean) over each channel of `[batch, channels, rest]`, in float64.
#[op(
    internal,
    non_diff,
    module = "nn.functional",
    samples = channel_grad_sums_samples,
    reference = channel_grad_sums_composite,
    peer = "none: the reference in ops",
    results("sum", "product")
)]
fn channel_grad_sums(cx: &Cx, x: &Tensor, grad: &Tensor, mean: &Tensor) -> Result<(Tensor, Tensor)> {
    let extents = checked(x, grad, &[("mean", Some(mean))])?;
    let (sum, product) = (cx.out([extents.channels], DType::Float64)?, cx.out([extents.channels], DType::Float64)?);
    cx.cpu(|| {
        let (x, grad) = (x.contiguous(), grad.in_dtype(x.dtype())?.in_rows()?);
        let mean = mean.in_dtype(wide(x.dtype()))?.in_rows()?;
        let (x, grad, mean) = (x.values(), grad.values(), mean.values());
        let (mut sum, mut product) = (sum.data_mut::<f64>(), product.data_mut::<f64>());
        batch_norm::backward_sums(x.slice(), grad.slice(), extents, mean.slice(), sum.slice(), product.slice());
        Ok(())
    })?;
    Ok((sum, product))
}

fn column(t: &Tensor) -> Tensor {
    t.reshape_to([1, t.numel(), 1])
}

fn channel_grad_sums_composite(x: &Tensor, grad: &Tensor, mean: &Tensor) -> Result<(Tensor, Tensor)> {
    let [x, grad, mean] = [x, grad, mean].map(|t| t.cast(DType::Float64));
    Ok((grad.sum([0, 2]), (&grad * (x - column(&mean))).sum([0, 2])))
}

/// The gradient of `channel_norm` with respect to x, from the sums of `channel_grad_sums` over `count` elements of a channel.
#[op(
    internal,
    non_diff,
    module = "nn.functional",
    samples = channel_grad_by_samples,
    reference = channel_grad_by_composite,
    peer = "none: the reference in ops"
)]
fn channel_grad_by(
    cx: &Cx,
    x: &Tensor,
    grad: &Tensor,
    weight: Option<&Tensor>,
    mean: &Tensor,
    var: &Tensor,
    sum: &Tensor,
    product: &Tensor,
    count: f64,
    epsilon: f64,
) -> Result<Tensor> {
    let each =
        [("weight", weight), ("mean", Some(mean)), ("var", Some(var)), ("sum", Some(sum)), ("product", Some(product))];
    let extents = checked(x, grad, &each)?;
    let dx = cx.out(x.shape(), x.dtype())?;
    cx.cpu(|| {
        let stats = wide(x.dtype());
        let (x, grad, w) = (x.contiguous(), grad.in_dtype(x.dtype())?.in_rows()?, ready(weight, stats)?);
        let (mean, var) = (mean.in_dtype(stats)?.in_rows()?, var.in_dtype(stats)?.in_rows()?);
        let (sum, product) = (sum.in_dtype(DType::Float64)?.in_rows()?, product.in_dtype(DType::Float64)?.in_rows()?);
        let (x, grad, w) = (x.values(), grad.values(), w.as_ref().map(|w| w.values()));
        let (mean, var, sum, product) = (mean.values(), var.values(), sum.data::<f64>(), product.data::<f64>());
        let (w, mut dx) = (w.as_ref().map(|w| w.slice()), dx.values_mut());
        let (mean, var, sums) = (mean.slice(), var.slice(), (sum.slice(), product.slice()));
        batch_norm::backward_by(
            x.slice(),
            grad.slice(),
            extents,
            mean,
            var,
            w,
            epsilon,
            sums.0,
            sums.1,
            count,
            dx.slice(),
        );
        Ok(())
    })?;
    Ok(dx)
}

fn channel_grad_by_composite(
    x: &Tensor,
    grad: &Tensor,
    weight: Option<&Tensor>,
    mean: &Tensor,
    var: &Tensor,
    sum: &Tensor,
    product: &Tensor,
    count: f64,
    epsilon: f64,
) -> Result<Tensor> {
    let rstd = rstd_of(var, epsilon);
    let scale = weight.map_or(rstd.clone(), |w| &rstd * w);
    let slope = (product / count).cast(x.dtype()) * rstd.square();
    let centred = grad - column(&(sum / count).cast(x.dtype())) - (x - column(mean)) * column(&slope);
    Ok(centred * column(&scale))
}

fn channel_moments_samples() -> Vec<Sample> {
    vec![sample![randn([2, 3, 2])], sample![randn([3, 2, 17])]]
}

fn channel_grad_sums_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 3, 2]), randn([2, 3, 2]), randn([3])],
        sample![randn([3, 2, 17]), randn([3, 2, 17]), randn([2])],
    ]
}

fn channel_grad_by_samples() -> Vec<Sample> {
    let double = || randn([3]).cast(DType::Float64);
    let make = |weight: Value| {
        sample![randn([2, 3, 2]), randn([2, 3, 2]), weight, randn([3]), positive([3]), double(), double(), 8.0, 1e-5]
    };
    vec![make(positive([3]).into()), make(Value::None)]
}
