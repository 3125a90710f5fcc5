//! The normalisation of channels, fused forward and backward, with an activation after it where one is wanted. Batch and
//! instance normalisation come down to it.

use crate::autograd::vjp;
use crate::gpu;
use crate::ops::elementwise::apply;
use crate::ops::prelude::*;
use crate::ops::standardize::{CHANNELS, DEPENDENT, Plan, affine, check_affine, check_float, ready, rstd_of, wide};
use sampan_kernels::activation::Activation;
use sampan_kernels::batch_norm::{self, Channels};

/// The activation of a name.
pub(super) fn activation_of(name: &str) -> Result<Activation> {
    let found = Activation::named(name);
    found.ok_or_else(|| Error::invalid(format!("activation must be \"\", relu, relu6 or hardswish, got {name:?}")))
}

/// An activation in differentiable ops.
pub(super) fn activate(y: Tensor, activation: Activation) -> Tensor {
    match activation {
        Activation::Identity => y,
        Activation::Relu => y.relu(),
        Activation::Relu6 => y.relu6(),
        Activation::Hardswish => y.hardswish(),
    }
}

/// The gradient before an activation of `y`, in differentiable ops.
fn before(y: impl Fn() -> Tensor, grad: &Tensor, activation: Activation) -> Tensor {
    let back = match activation {
        Activation::Identity => return grad.clone(),
        Activation::Relu => formula!(|y, g| select(y.le(0.0), 0.0, g)),
        Activation::Relu6 => formula!(|y, g| select(y.le(0.0), 0.0, select(y.ge(6.0), 0.0, g))),
        Activation::Hardswish => {
            formula!(|y, g| g * select(y.le(-3.0), 0.0, select(y.ge(3.0), 1.0, (2.0 * y + 3.0) * (1.0 / 6.0))))
        }
    };
    crate::error::unwrap(apply(&back, vec![y(), grad.clone()]))
}

fn plan(epsilon: f64) -> Plan {
    Plan { axes: CHANNELS, rms: false, epsilon }
}

pub(super) fn channels_of(x: &Tensor) -> Result<Channels> {
    let &[batch, channels, inner] = x.shape() else {
        bail!("x must have the axes batch, channel, rest; got shape {:?}", x.shape())
    };
    Ok(Channels { batch, channels, inner })
}

/// The same for a GPU, where the channels may lie side by side.
fn on_gpu(c: Channels, epsilon: f64, activation: Activation, last: bool) -> sampan_cuda::rows::Channels {
    let Channels { batch, channels, inner } = c;
    sampan_cuda::rows::Channels { batch, channels, inner, epsilon, activation: activation as u8, last }
}

/// Do the channels of `x` lie side by side on a GPU?
fn lies_last(x: &Tensor) -> bool {
    matches!(x.device(), Device::Cuda(_)) && !x.is_contiguous() && x.layout().is_channels_last()
}

/// Takes the tensors that are there out of a list, in order.
fn optional(list: &[Tensor], from: usize, there: [bool; 2]) -> [Option<&Tensor>; 2] {
    let mut rest = list[from..].iter();
    there.map(|there| if there { rest.next() } else { None })
}

/// Channels of `[batch, channels, rest]` normalised to mean 0 and deviation 1, then scaled and shifted, then through an
/// activation (`relu`, `relu6`, `hardswish`) if one is named. Also gives each channel's mean and biased variance.
#[op(
    internal,
    fused_on_gpu,
    module = "nn.functional",
    samples = channel_norm_samples,
    reference = channel_norm_composite,
    peer = "lambda x, w, b, eps, act='': (getattr(F, act or 'identity', lambda y: y)( \
            F.batch_norm(x, None, None, w, b, True, 0, eps)), x.mean((0, 2)), torch.var(x, (0, 2), correction=0))",
    results("out", "mean", "variance")
)]
fn channel_norm(
    cx: &Cx,
    x: &Tensor,
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
    epsilon: f64,
    #[default("")] activation: &str,
) -> Result<(Tensor, Tensor, Tensor)> {
    check_float(x)?;
    let extents = channels_of(x)?;
    let activation = activation_of(activation)?;
    let c = extents.channels;
    check_affine("weight", weight, &[c])?;
    check_affine("bias", bias, &[c])?;
    let (dtype, stats) = (x.dtype(), wide(x.dtype()));
    let last = lies_last(x);
    let (y, mean, var) = (cx.out_like(&[x], x.shape(), dtype)?, cx.out([c], stats)?, cx.out([c], stats)?);
    let cpu = || {
        let (x, w, b) = (x.contiguous(), ready(weight, stats)?, ready(bias, stats)?);
        let (x, w, b) = (x.values(), w.as_ref().map(|w| w.values()), b.as_ref().map(|b| b.values()));
        let (mut y, mut mean, mut var) = (y.values_mut(), mean.values_mut(), var.values_mut());
        let (w, b) = (w.as_ref().map(|w| w.slice()), b.as_ref().map(|b| b.slice()));
        let (y, mean, var) = (y.slice(), mean.slice(), var.slice());
        batch_norm::train(x.slice(), extents, w, b, epsilon, activation, y, mean, var);
        Ok(())
    };
    cx.run(cpu, |gpu| {
        let (x, w, b) = (gpu::laid(gpu, x, last)?, ready(weight, stats)?, ready(bias, stats)?);
        let channels = on_gpu(extents, epsilon, activation, last);
        gpu::rows::moments(gpu, channels, &x, [&mean, &var])?;
        gpu::rows::normalised(gpu, channels, &x, [&mean, &var], [w.as_ref(), b.as_ref()], &y)
    })?;
    let there = [weight.is_some(), bias.is_some()];
    let saved: Vec<&Tensor> = [Some(x), weight, bias].into_iter().flatten().collect();
    let count = saved.len();
    cx.grad_from_outputs((y, mean, var), &[1, 2], &saved, move |g| {
        let inputs: Vec<&Tensor> = (0..count).map(|i| g.saved(i)).collect();
        if g.has_grad(1) || g.has_grad(2) {
            // The statistics themselves were used: no kernel for that.
            let grads: Vec<Option<Tensor>> = (0..3).map(|i| g.has_grad(i).then(|| g.grad_of(i))).collect();
            return vjp(&inputs, &grads, |t| {
                let [weight, bias] = optional(t, 1, there);
                let (y, mean, var) = by_composite(&t[0], weight, bias, epsilon, activation);
                Ok(vec![y, mean, var])
            });
        }
        let mut rest = inputs[1..].iter().copied();
        let [w, b] = there.map(|there| if there { rest.next() } else { None });
        let name = NAMES[activation as usize];
        let (dx, dw, db) = inputs[0].channel_norm_grad(&g.grad(), w, b, g.output(1), g.output(2), epsilon, name);
        let [dw, db] = [there[0].then_some(dw), there[1].then_some(db)];
        Ok([Some(dx), dw, db].into_iter().flatten().map(Some).collect::<Vec<_>>())
    })
}

/// Names of the activations, in their order.
const NAMES: [&str; 4] = ["", "relu", "relu6", "hardswish"];

fn by_composite(
    x: &Tensor,
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
    epsilon: f64,
    activation: Activation,
) -> (Tensor, Tensor, Tensor) {
    let plan = plan(epsilon);
    let (mean, var, _, normal) = plan.parts(x);
    let y = activate(affine(plan, normal, weight, bias), activation);
    (y, mean.squeeze([0, 2]), var.squeeze([0, 2]))
}

fn channel_norm_composite(
    x: &Tensor,
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
    epsilon: f64,
    activation: &str,
) -> Result<(Tensor, Tensor, Tensor)> {
    Ok(by_composite(x, weight, bias, epsilon, activation_of(activation)?))
}

/// The gradients of `channel_norm` with respect to x, weight and bias. `mean` and `var` are what it gave for `x`; the bias
/// counts only if there is an activation.
#[op(
    internal,
    fused_on_gpu,
    module = "nn.functional",
    samples = channel_norm_grad_samples,
    reference = channel_norm_grad_composite,
    peer = "lambda x, g, w, b, mean, var, eps, act='': torch_pull( \
            lambda x, w, b: getattr(F, act or 'identity', lambda y: y)(F.batch_norm(x, None, None, w, b, True, 0, eps)), \
            (x, torch.ones(x.shape[1]) if w is None else w, torch.zeros(x.shape[1]) if b is None else b), g)",
    results("dx", "dweight", "dbias")
)]
fn channel_norm_grad(
    cx: &Cx,
    x: &Tensor,
    grad: &Tensor,
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
    mean: &Tensor,
    var: &Tensor,
    epsilon: f64,
    #[default("")] activation: &str,
) -> Result<(Tensor, Tensor, Tensor)> {
    check_float(x)?;
    let extents = channels_of(x)?;
    let activation = activation_of(activation)?;
    let c = extents.channels;
    ensure!(grad.shape() == x.shape(), "x and grad must have one shape");
    ensure!(mean.shape() == [c] && var.shape() == [c], "mean and var need one element a channel");
    check_affine("weight", weight, &[c])?;
    check_affine("bias", bias, &[c])?;
    let (dtype, stats) = (x.dtype(), wide(x.dtype()));
    let last = lies_last(x);
    let (dx, dw, db) = (cx.out_like(&[x], x.shape(), dtype)?, cx.out([c], stats)?, cx.out([c], stats)?);
    let cpu = || {
        let (x, grad, w) = (x.contiguous(), grad.in_dtype(dtype)?.in_rows()?, ready(weight, stats)?);
        let b = ready(bias, stats)?;
        let (mean, var) = (mean.in_dtype(stats)?.in_rows()?, var.in_dtype(stats)?.in_rows()?);
        let (x, grad, w) = (x.values(), grad.values(), w.as_ref().map(|w| w.values()));
        let (b, mean, var) = (b.as_ref().map(|b| b.values()), mean.values(), var.values());
        let (mut dx, mut dw, mut db) = (dx.values_mut(), dw.values_mut(), db.values_mut());
        batch_norm::backward(
            x.slice(),
            grad.slice(),
            extents,
            mean.slice(),
            var.slice(),
            w.as_ref().map(|w| w.slice()),
            b.as_ref().map(|b| b.slice()),
            epsilon,
            activation,
            dx.slice(),
            dw.slice(),
            db.slice(),
        );
        Ok(())
    };
    cx.run(cpu, |gpu| {
        let (x, grad) = (gpu::laid(gpu, x, last)?, gpu::laid(gpu, &grad.in_dtype(dtype)?, last)?);
        let (w, b) = (ready(weight, stats)?, ready(bias, stats)?);
        let (mean, var) = (mean.in_dtype(stats)?.in_rows()?, var.in_dtype(stats)?.in_rows()?);
        let (channels, affine) = (on_gpu(extents, epsilon, activation, last), [w.as_ref(), b.as_ref()]);
        gpu::rows::normalised_back(gpu, channels, [&x, &grad], [&mean, &var], affine, [&dx, &dw, &db])
    })?;
    // The statistics among the arguments are functions of `x`, whose gradient accounts for them.
    let there = [weight.is_some(), bias.is_some()];
    let saved: Vec<&Tensor> = [Some(x), Some(grad), weight, bias].into_iter().flatten().collect();
    let count = saved.len();
    cx.grad((dx, dw, db), &saved, move |g| {
        let inputs: Vec<&Tensor> = (0..count).map(|i| g.saved(i)).collect();
        let grads: Vec<Option<Tensor>> = (0..3).map(|i| g.has_grad(i).then(|| g.grad_of(i))).collect();
        let mut out = vjp(&inputs, &grads, |t| {
            let [weight, bias] = optional(t, 2, there);
            let (_, _, rstd, normal) = plan(epsilon).parts(&t[0]);
            Ok(gradients(&t[0], &t[1], weight, bias, rstd, normal, epsilon, activation))
        })?;
        out.extend([None, None]);
        Ok(out)
    })
}

/// The gradients in differentiable ops, from known statistics.
fn gradients(
    x: &Tensor,
    grad: &Tensor,
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
    rstd: Tensor,
    normal: Tensor,
    epsilon: f64,
    activation: Activation,
) -> Vec<Tensor> {
    let plan = plan(epsilon);
    let grad = before(|| affine(plan, normal.clone(), weight, bias), grad, activation);
    plan.backward_by(x, &grad, weight, rstd, normal)
}

fn channel_norm_grad_composite(
    x: &Tensor,
    grad: &Tensor,
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
    mean: &Tensor,
    var: &Tensor,
    epsilon: f64,
    activation: &str,
) -> Result<(Tensor, Tensor, Tensor)> {
    let plan = plan(epsilon);
    let rstd = plan.spread(&rstd_of(var, epsilon), x);
    let normal = (x - plan.spread(mean, x)) * &rstd;
    let out = gradients(x, grad, weight, bias, rstd, normal, epsilon, activation_of(activation)?);
    Ok((out[0].clone(), out[1].clone(), out[2].clone()))
}

/// Channels of `[batch, channels, rest]` normalised by given statistics, then scaled and shifted, then through an
/// activation (`relu`, `relu6`, `hardswish`) if one is named, in one pass.
#[op(
    internal,
    fused_on_gpu,
    module = "nn.functional",
    samples = channel_norm_by_samples,
    reference = channel_norm_by_composite,
    peer = "lambda x, mean, var, w, b, eps, act='': ( \
            y := (x - mean[:, None]) / torch.sqrt(var[:, None] + eps), \
            y := y if w is None else y * w[:, None], \
            y := y if b is None else y + b[:, None], \
            getattr(F, act)(y) if act else y)[-1]"
)]
fn channel_norm_by(
    cx: &Cx,
    x: &Tensor,
    mean: &Tensor,
    var: &Tensor,
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
    epsilon: f64,
    #[default("")] activation: &str,
) -> Result<Tensor> {
    check_float(x)?;
    let extents = channels_of(x)?;
    let activation = activation_of(activation)?;
    let c = [extents.channels];
    for (what, t) in [("mean", Some(mean)), ("variance", Some(var)), ("weight", weight), ("bias", bias)] {
        check_affine(what, t, &c)?;
    }
    let (dtype, stats) = (x.dtype(), wide(x.dtype()));
    let (last, y) = (lies_last(x), cx.out_like(&[x], x.shape(), dtype)?);
    let cpu = || {
        let (x, w, b) = (x.contiguous(), ready(weight, stats)?, ready(bias, stats)?);
        let (mean, var) = (mean.in_dtype(stats)?.in_rows()?, var.in_dtype(stats)?.in_rows()?);
        let (x, w, b) = (x.values(), w.as_ref().map(|w| w.values()), b.as_ref().map(|b| b.values()));
        let (mean, var, mut y) = (mean.values(), var.values(), y.values_mut());
        let (w, b) = (w.as_ref().map(|w| w.slice()), b.as_ref().map(|b| b.slice()));
        batch_norm::infer(x.slice(), extents, mean.slice(), var.slice(), w, b, epsilon, activation, y.slice());
        Ok(())
    };
    cx.run(cpu, |gpu| {
        let (x, w, b) = (gpu::laid(gpu, x, last)?, ready(weight, stats)?, ready(bias, stats)?);
        let (mean, var) = (mean.in_dtype(stats)?.in_rows()?, var.in_dtype(stats)?.in_rows()?);
        let channels = on_gpu(extents, epsilon, activation, last);
        gpu::rows::normalised(gpu, channels, &x, [&mean, &var], [w.as_ref(), b.as_ref()], &y)
    })?;
    let there = [weight.is_some(), bias.is_some()];
    let saved: Vec<&Tensor> = [Some(x), Some(mean), Some(var), weight, bias].into_iter().flatten().collect();
    let count = saved.len();
    cx.grad(y, &saved, move |g| {
        let (x, mean, var) = (g.saved(0), g.saved(1), g.saved(2));
        let mut rest = (3..count).map(|i| g.saved(i));
        let [weight, bias] = there.map(|there| if there { rest.next() } else { None });
        let column = |t: &Tensor| t.reshape_to([1, t.numel(), 1]);
        let rstd = rstd_of(var, epsilon);
        let scale = weight.map_or(rstd.clone(), |w| &rstd * w);
        let plain = || by_statistics(x, mean, var, weight, bias, epsilon);
        let grad = before(plain, &g.grad(), activation);
        let weight_needed = there[0] && g.needs(3);
        let bias_needed = there[1] && g.needs(3 + there[0] as usize);
        let db = (bias_needed || g.needs(1)).then(|| grad.sum([0, 2]));
        let dw = (weight_needed || g.needs(2)).then(|| (&grad * (x - column(mean))).sum([0, 2]) * &rstd);
        let mut out = vec![
            g.if_needed(0, || &grad * column(&scale)),
            db.as_ref().map(|db| -(db * &scale)),
            dw.as_ref().map(|dw| dw * &scale * &rstd * -0.5),
        ];
        if there[0] {
            out.push(dw);
        }
        if there[1] {
            out.push(db);
        }
        Ok(out)
    })
}

fn by_statistics(
    x: &Tensor,
    mean: &Tensor,
    var: &Tensor,
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
    epsilon: f64,
) -> Tensor {
    let plan = plan(epsilon);
    let normal = (x - plan.spread(mean, x)) * plan.spread(&rstd_of(var, epsilon), x);
    affine(plan, normal, weight, bias)
}

fn channel_norm_by_composite(
    x: &Tensor,
    mean: &Tensor,
    var: &Tensor,
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
    epsilon: f64,
    activation: &str,
) -> Result<Tensor> {
    Ok(activate(by_statistics(x, mean, var, weight, bias, epsilon), activation_of(activation)?))
}

/// The peer's answers were recorded without an activation; the composite is what these are checked against.
const COMPOSITE: &str = "none: the reference in ops";

fn channel_norm_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 3, 2]), positive([3]), randn([3]), 1e-5],
        sample![randn([4, 2, 1]), Value::None, Value::None, 1e-3],
        sample![randn([3, 2, 1]), positive([2]), Value::None, 1e-3],
        sample![randn([2, 3, 2]), positive([3]), randn([3]), 1e-5, "hardswish"].peer(COMPOSITE),
        sample![randn([2, 3, 2]), Value::None, randn([3]), 1e-5, "relu"].peer(COMPOSITE),
        sample![randn([2, 3, 2]), positive([3]), Value::None, 1e-5, "relu6"].peer(COMPOSITE),
    ]
}

fn channel_norm_grad_samples() -> Vec<Sample> {
    let x = randn([2, 3, 2]);
    let (_, mean, var) = x.channel_norm(None, None, 1e-5, "");
    let g = uniform([2, 3, 2], -1.0, 1.0);
    let make = |weight: Value, bias: Value, activation: &str| {
        sample![x.clone(), g.clone(), weight, bias, mean.clone(), var.clone(), 1e-5, activation].no_grad(DEPENDENT)
    };
    vec![
        make(positive([3]).into(), Value::None, ""),
        make(Value::None, Value::None, ""),
        make(positive([3]).into(), randn([3]).into(), "hardswish").peer(COMPOSITE),
        make(positive([3]).into(), randn([3]).into(), "relu").peer(COMPOSITE),
    ]
}

fn channel_norm_by_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 3, 2]), randn([3]), positive([3]), positive([3]), randn([3]), 1e-5],
        sample![randn([2, 3, 2]), randn([3]), positive([3]), Value::None, randn([3]), 1e-2],
        sample![randn([2, 3, 2]), randn([3]), positive([3]), positive([3]), Value::None, 1e-2],
        sample![randn([0, 3, 2]), randn([3]), positive([3]), Value::None, Value::None, 1e-5],
        sample![randn([2, 3, 2]), randn([3]), positive([3]), positive([3]), randn([3]), 1e-5, "hardswish"]
            .peer(COMPOSITE),
    ]
}
