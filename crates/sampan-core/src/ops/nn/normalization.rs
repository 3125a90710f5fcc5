//! Normalisation layers as functions: layer, root mean square, group, batch, instance, local response.

use super::channel_norm::{activate, activation_of};
use crate::ops::elementwise::apply;
use crate::ops::piecewise::channels_last;
use crate::ops::prelude::*;
use crate::ops::standardize::check_float;

/// An affine parameter as a vector of `n`.
fn flat(what: &str, t: Option<&Tensor>, n: usize) -> Result<Option<Tensor>> {
    match t {
        Some(t) if t.numel() != n => bail!("{what} has shape {:?}, expected {n} elements", t.shape()),
        other => Ok(other.map(|t| t.reshape_to([n]))),
    }
}

/// Rows over the trailing axes `normalized_shape`, and the checks of it.
fn trailing(x: &Tensor, normalized_shape: &[i64]) -> Result<[usize; 2]> {
    let tail = crate::ops::shape::checked_shape(normalized_shape)?;
    if tail.is_empty() || !x.shape().ends_with(&tail) {
        return Err(Error::invalid(format!("x of shape {:?} does not end in normalized_shape {tail:?}", x.shape()))
            .hint("normalized_shape must be the extents of the last axes of x"));
    }
    let n: usize = tail.iter().product();
    let rows = x.shape()[..x.ndim() - tail.len()].iter().product();
    Ok([rows, n])
}

/// Normalises over the last axes, those of `normalized_shape`, to mean 0 and deviation 1, then scales by `weight` and
/// shifts by `bias`.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([[1.0f32, 3.0]]);
/// assert!((x.layer_norm(2, None, None, 1e-5).to_vec::<f32>()[1] - 1.0).abs() < 1e-4);
/// ```
#[op(module = "nn.functional", samples = layer_norm_samples, alias(eps = epsilon), amp = "black_data", also("layer_norm"))]
fn layer_norm(
    x: &Tensor,
    normalized_shape: &[i64],
    #[default(None)] weight: Option<&Tensor>,
    #[default(None)] bias: Option<&Tensor>,
    #[default(1e-5)] epsilon: f64,
) -> Result<Tensor> {
    check_float(x)?;
    let [rows, n] = trailing(x, normalized_shape)?;
    let (w, b) = (flat("weight", weight, n)?, flat("bias", bias, n)?);
    let (y, _, _) = x.reshape_to([rows, n]).try_row_norm(w.as_ref(), b.as_ref(), epsilon, false)?;
    Ok(y.reshape_to(x.shape()))
}

/// Divides by the root of the mean square over the last axes, those of `normalized_shape`, then scales by `weight`. Gives
/// the result and one over the root for each row.
///
/// ```
/// # use sampan_core::Tensor;
/// let (y, _) = Tensor::new([[3.0f32, 3.0]]).rms_norm(2, None, 0.0);
/// assert_eq!(y.to_vec::<f32>(), [1.0, 1.0]);
/// ```
#[op(
    module = "nn.functional",
    samples = rms_samples,
    alias(x = input, epsilon = eps),
    // Paddle computes it on GPUs only.
    peer = "lambda x, n, w=None, eps=1e-5: ( \
            n := tuple(np.atleast_1d(n)), \
            square := x.square().flatten(-len(n)).mean(-1).flatten(), \
            (F.rms_norm(x, n, w if w is None else w.reshape(n), eps), torch.rsqrt(square + eps)))[-1]",
    amp = "black_data",
    results("out", "invvar")
)]
fn rms_norm(
    input: &Tensor,
    normalized_shape: &[i64],
    #[default(None)] weight: Option<&Tensor>,
    #[default(1e-5)] eps: f64,
) -> Result<(Tensor, Tensor)> {
    check_float(input)?;
    let [rows, n] = trailing(input, normalized_shape)?;
    let w = flat("weight", weight, n)?;
    let (y, _, rstd) = input.reshape_to([rows, n]).try_row_norm(w.as_ref(), None, eps, true)?;
    Ok((y.reshape_to(input.shape()), rstd))
}

/// `x` with its channels on axis 1, and whether they were moved there.
fn channels_first(x: &Tensor, data_format: &str) -> Result<(Tensor, bool)> {
    ensure!(x.ndim() >= 2, "x must have at least the axes batch and channel, got shape {:?}", x.shape());
    let moved = channels_last(data_format)? && x.ndim() > 2;
    Ok((if moved { x.moveaxis(-1, 1) } else { x.clone() }, moved))
}

/// Normalises groups of channels of each sample to mean 0 and deviation 1, then scales and shifts by channel.
///
/// ```
/// # use sampan_core::Tensor;
/// let y = Tensor::new([[[1.0f32, 3.0], [1.0, 3.0]]]).group_norm(2, 0.0, None, None, "NCHW");
/// assert_eq!(y.to_vec::<f32>(), [-1.0, 1.0, -1.0, 1.0]);
/// ```
#[op(module = "nn.functional", samples = group_samples, alias(eps = epsilon), amp = "black_data", also("group_norm"))]
fn group_norm(
    x: &Tensor,
    num_groups: i64,
    #[default(1e-5)] epsilon: f64,
    #[default(None)] weight: Option<&Tensor>,
    #[default(None)] bias: Option<&Tensor>,
    #[default("NCHW")] data_format: &str,
) -> Result<Tensor> {
    check_float(x)?;
    let (first, moved) = channels_first(x, data_format)?;
    let (batch, channels) = (first.dim(0), first.dim(1));
    ensure!(
        num_groups > 0 && channels % num_groups as usize == 0,
        "{channels} channels have no {num_groups} equal groups"
    );
    let (w, b) = (flat("weight", weight, channels)?, flat("bias", bias, channels)?);
    let inner: usize = first.shape()[2..].iter().product();
    let (rows, n) = (batch.saturating_mul(num_groups as usize), channels / num_groups as usize * inner);
    let (y, _, _) = first.reshape_to([rows, n]).try_row_norm(None, None, epsilon, false)?;
    let mut y = y.reshape_to([batch, channels, inner]);
    let column = |t: Tensor| t.cast(x.dtype()).reshape_to([1, channels, 1]);
    if let Some(w) = w {
        y = y * column(w);
    }
    if let Some(b) = b {
        y = y + column(b);
    }
    let y = y.reshape_to(first.shape());
    Ok(if moved { y.moveaxis(1, -1) } else { y })
}

/// Normalises each channel of each sample to mean 0 and deviation 1, then scales and shifts by channel. The running
/// statistics, `use_input_stats` and `momentum` are accepted and have no effect, as in Paddle.
///
/// ```
/// # use sampan_core::Tensor;
/// let y = Tensor::new([[[1.0f32, 3.0]]]).instance_norm();
/// assert!((y.to_vec::<f32>()[1] - 1.0).abs() < 1e-4);
/// ```
#[op(module = "nn.functional", samples = instance_samples, alias(epsilon = eps), amp = "data")]
fn instance_norm(
    x: &Tensor,
    #[opt(None)] running_mean: Option<&Tensor>,
    #[opt(None)] running_var: Option<&Tensor>,
    #[opt(None)] weight: Option<&Tensor>,
    #[opt(None)] bias: Option<&Tensor>,
    #[opt(true)] use_input_stats: bool,
    #[opt(0.9)] momentum: f64,
    #[opt(1e-5)] eps: f64,
    #[opt("NCHW")] data_format: &str,
) -> Result<Tensor> {
    let _ = (running_mean, running_var, use_input_stats, momentum);
    check_float(x)?;
    let (first, moved) = channels_first(x, data_format)?;
    let (batch, channels) = (first.dim(0), first.dim(1));
    let (w, b) = (flat("weight", weight, channels)?, flat("bias", bias, channels)?);
    // Every channel of every sample is a channel of its own.
    let spread = |t: Tensor| t.unsqueeze(0).expand([batch, channels]).reshape_to([batch * channels]);
    let inner: usize = first.shape()[2..].iter().product();
    let rows = first.reshape_to([1, batch * channels, inner]);
    let (y, _, _) = rows.try_channel_norm(w.map(spread).as_ref(), b.map(spread).as_ref(), eps, "")?;
    let y = y.reshape_to(first.shape());
    Ok(if moved { y.moveaxis(1, -1) } else { y })
}

/// Divides by `(k + alpha * mean)^beta`, the mean being that of the squares of `size` neighbouring channels.
///
/// ```
/// # use sampan_core::Tensor;
/// let y = Tensor::new([[[2.0f32], [2.0]]]).local_response_norm(1, 1.0, 1.0, 0.0, "NCHW");
/// assert_eq!(y.to_vec::<f32>(), [0.5, 0.5]);
/// ```
#[op(module = "nn.functional", samples = response_samples, amp = "data")]
fn local_response_norm(
    x: &Tensor,
    size: i64,
    #[default(1e-4)] alpha: f64,
    #[default(0.75)] beta: f64,
    #[default(1.0)] k: f64,
    #[default("NCHW")] data_format: &str,
) -> Result<Tensor> {
    check_float(x)?;
    ensure!(x.ndim() >= 3, "x must have at least 3 axes, got shape {:?}", x.shape());
    ensure!(size > 0, "size must be positive, got {size}");
    let axis = if channels_last(data_format)? { x.ndim() - 1 } else { 1 };
    let n = x.shape()[axis] as i64;
    let squares = x.square();
    let mut total: Option<Tensor> = None;
    // Channel c sees c - size / 2 up to c + (size - 1) / 2; what lies outside counts as zero.
    for shift in (-(size / 2)).max(1 - n)..=((size - 1) / 2).min(n - 1) {
        let part = squares.try_narrow(axis as i64, shift.max(0) as usize, (n - shift.abs()) as usize)?;
        let mut start = vec![0i64; x.ndim()];
        start[axis] = (-shift).max(0);
        let part = if shift == 0 { part } else { part.unslice(x.shape(), start, vec![1i64; x.ndim()]) };
        total = Some(total.map_or(part.clone(), |t| t + part));
    }
    let Some(total) = total else { return Ok(x.clone()) };
    Ok(x / (total * (alpha / size as f64) + k).pow(beta))
}

/// `x` as `[batch, channels, rest]`; channels-last data has no rest.
fn by_channel(x: &Tensor, data_format: &str) -> Result<Tensor> {
    let last = crate::ops::piecewise::channels_last(data_format)?;
    ensure!(x.ndim() >= 2, "x must have at least the axes batch and channel, got shape {:?}", x.shape());
    let s = x.shape();
    Ok(if last && s.len() > 2 {
        let c = s[s.len() - 1];
        x.reshape_to([s[..s.len() - 1].iter().product(), c, 1])
    } else {
        x.reshape_to([s[0], s[1], s[2..].iter().product()])
    })
}

/// Moves running statistics towards those of a batch; `momentum` is the share of the old ones that is kept.
fn update_running(running: &Tensor, batch: &Tensor, momentum: f64) -> Result<()> {
    if batch.device() == Device::Meta {
        return Ok(());
    }
    crate::no_grad(|| {
        let rest = 1.0 - momentum;
        let mix = formula!(|old, new; momentum, rest| old * momentum + new * rest);
        if let (Device::Cuda(number), false) = (running.device(), crate::dispatch::listening()) {
            return crate::gpu::change(crate::gpu::gpu(number)?, &mix, running, &[batch]);
        }
        running.try_set_value(&apply(&mix, vec![running.detach(), batch.detach().cast(running.dtype())])?)
    })
}

/// Normalises each channel over the batch: in training by the batch's own mean and variance, which also move the running
/// ones (`momentum` is the share of the old that is kept), otherwise, or with `use_global_stats`, by the running ones. In
/// training a single element in each channel has no deviation: it is the result as it is, and nothing is learnt from it.
///
/// ```
/// # use sampan_core::{DType, Tensor, ops::normalization::BatchNormOpts};
/// let (mean, var) = (Tensor::zeros([1], DType::Float32), Tensor::zeros([1], DType::Float32));
/// let x = Tensor::new([[1.0f32], [3.0]]);
/// x.batch_norm_with(&mean, &var, BatchNormOpts::new().training(true));
/// assert!((mean.to_f64() - 0.2).abs() < 1e-6 && (var.to_f64() - 0.1).abs() < 1e-6);
/// ```
#[op(module = "nn.functional", samples = batch_norm_samples, alias(eps = epsilon), amp = "data", flops = crate::ops::work::norm_flops)]
fn batch_norm(
    x: &Tensor,
    running_mean: &Tensor,
    running_var: &Tensor,
    #[opt(None)] weight: Option<&Tensor>,
    #[opt(None)] bias: Option<&Tensor>,
    #[opt(false)] training: bool,
    #[opt(0.9)] momentum: f64,
    #[opt(1e-5)] epsilon: f64,
    #[opt("NCHW")] data_format: &str,
    #[opt(None)] use_global_stats: Option<bool>,
) -> Result<Tensor> {
    let training = !use_global_stats.unwrap_or(!training);
    normalised(x, [running_mean, running_var], [weight, bias], training, momentum, epsilon, data_format, "")
}

/// [`batch_norm`] and an activation after it (`relu`, `relu6` or `hardswish`; none if the name is empty) in the same pass:
/// what lies between the two is never stored.
#[op(internal, module = "nn.functional", samples = batch_norm_activation_samples, amp = "data", flops = crate::ops::work::norm_flops)]
fn batch_norm_activation(
    x: &Tensor,
    running_mean: &Tensor,
    running_var: &Tensor,
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
    training: bool,
    momentum: f64,
    epsilon: f64,
    data_format: &str,
    use_global_stats: Option<bool>,
    activation: &str,
) -> Result<Tensor> {
    let training = !use_global_stats.unwrap_or(!training);
    let (running, affine) = ([running_mean, running_var], [weight, bias]);
    normalised(x, running, affine, training, momentum, epsilon, data_format, activation)
}

/// `x` itself. Weight and bias have no part in it and get gradients of zero: an optimizer goes on with its decay and its
/// moments, as Paddle's does.
fn untouched(x: &Tensor, affine: [Option<&Tensor>; 2]) -> Tensor {
    let never = Tensor::full_on([1, 1, 1], 0.0, DType::Bool, x.device());
    let ignored = |y: Tensor, t: &Tensor| never.where_cond(t.cast(x.dtype()).reshape_to([1, t.numel(), 1]), y);
    affine.into_iter().flatten().fold(x.assign(), ignored)
}

/// Normalises channels by their own statistics if `training`, else by the running ones.
fn normalised(
    x: &Tensor,
    [running_mean, running_var]: [&Tensor; 2],
    [weight, bias]: [Option<&Tensor>; 2],
    training: bool,
    momentum: f64,
    epsilon: f64,
    data_format: &str,
    activation: &str,
) -> Result<Tensor> {
    check_float(x)?;
    let rows = by_channel(x, data_format)?;
    let c = [rows.dim(1)];
    let named =
        [("running_mean", Some(running_mean)), ("running_var", Some(running_var)), ("weight", weight), ("bias", bias)];
    for (what, t) in named {
        if let Some(t) = t
            && t.shape() != c
        {
            return Err(Error::invalid(format!("{what} has shape {:?}, x has {} channels", t.shape(), c[0]))
                .hint(format!("data_format is \"{data_format}\"; num_features must be the extent of its C axis")));
        }
    }
    let y = if !training {
        rows.try_channel_norm_by(running_mean, running_var, weight, bias, epsilon, activation)?
    } else {
        ensure!(x.numel() > 0, "the statistics of an empty batch do not exist");
        if x.numel() == c[0] {
            let y = untouched(&rows, [weight, bias]);
            return Ok(activate(y, activation_of(activation)?).reshape_to(x.shape()));
        }
        let (y, mean, var) = rows.try_channel_norm(weight, bias, epsilon, activation)?;
        update_running(running_mean, &mean, momentum)?;
        update_running(running_var, &var, momentum)?;
        y
    };
    Ok(y.reshape_to(x.shape()))
}

fn batch_norm_activation_samples() -> Vec<Sample> {
    let (m, v, w, b) = (randn([3]), positive([3]), positive([3]), randn([3]));
    let peer = "none: batch_norm and the activation have theirs";
    vec![
        sample![
            randn([2, 3, 2, 1]),
            m.clone(),
            v.clone(),
            w.clone(),
            b.clone(),
            false,
            0.9,
            1e-5,
            "NCHW",
            Value::None,
            "hardswish"
        ]
        .peer(peer),
        sample![
            randn([2, 3, 2]),
            m.clone(),
            v.clone(),
            w.clone(),
            b.clone(),
            true,
            0.9,
            1e-5,
            "NCHW",
            Value::None,
            "relu6"
        ]
        .peer(peer),
        sample![randn([1, 3, 1]), m, v, w, b, true, 0.9, 1e-5, "NCHW", Value::None, "relu"].peer(peer),
    ]
}

fn layer_norm_samples() -> Vec<Sample> {
    vec![
        sample![randn([3, 4]), 4],
        sample![randn([2, 2, 3]), [2, 3], positive([6]), randn([6])],
        sample![randn([2, 3]), [3], positive([3])],
        sample![randn([2, 3]), [3], Value::None, randn([3]), 1e-3],
        sample![randn([0, 3]), 3],
    ]
}

fn batch_norm_samples() -> Vec<Sample> {
    // Paddle takes the statistics for constants.
    let given = "lambda x, mean, var, w=1, b=0, **_: \
        torch.movedim((torch.movedim(x, 1, -1) - mean) / torch.sqrt(var + 1e-5) * w + b, -1, 1)";
    let stats = |n| (randn([n]), positive([n]));
    let (m3, v3) = stats(3);
    let (m2, v2) = stats(2);
    vec![
        sample![randn([2, 3, 2, 1]), m3.clone(), v3.clone(), positive([3]), randn([3])].grad_peer(given),
        sample![randn([2, 3, 2]), m3.clone(), v3.clone(), positive([3]), randn([3]), true],
        sample![randn([4, 2]), m2.clone(), v2.clone(); training = true, momentum = 0.5],
        sample![randn([2, 3, 2]), m2.clone(), v2.clone(), positive([2]), randn([2]), true; data_format = "NLC"],
        sample![randn([2, 3, 2]), m3.clone(), v3.clone(); training = true, use_global_stats = true].grad_peer(given),
        sample![randn([1, 3, 1]), m3, v3, positive([3]), randn([3]), true],
    ]
}

fn rms_samples() -> Vec<Sample> {
    vec![sample![randn([3, 4]), 4], sample![randn([2, 2, 3]), [2, 3], positive([6]), 1e-3], sample![randn([0, 3]), 3]]
}

fn group_samples() -> Vec<Sample> {
    vec![
        // Paddle's gradient without a weight is another one.
        sample![randn([2, 4, 2]), 2].grad_peer("torch.group_norm"),
        sample![randn([2, 4, 1, 2]), 2, 1e-4, positive([4]), randn([4])],
        sample![randn([2, 2, 4]), 4, 1e-5, positive([4]), randn([4]), "NLC"]
            .peer("lambda x, g, eps, w, b, format: torch.group_norm(x.mT, g, w, b, eps).mT"),
        sample![randn([1, 2, 2, 4]), 2, 1e-5, positive([4]), randn([4]), "NHWC"],
    ]
}
fn instance_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 3, 4])],
        sample![randn([2, 3, 2, 2]), Value::None, Value::None, positive([3]), randn([3]); eps = 1e-4],
    ]
}
fn response_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 4, 2]), 3, 0.5],
        sample![randn([1, 2, 2, 3]), 2, 0.3, 0.6, 2.0, "NHWC"],
        sample![randn([1, 3, 2, 2]), 9, 0.3],
    ]
}
