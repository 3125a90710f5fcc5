//! The normalisation of rows, fused forward and backward, which layer, group and root-mean-square normalisation come
//! down to; and what it shares with that of channels.

use crate::autograd::vjp;
use crate::gpu;
use crate::ops::prelude::*;
use crate::ops::reduction::MeanOpts;
use sampan_kernels::norm::{self, RowNorm};

/// The dtype that statistics of `dtype` are kept in.
pub(super) fn wide(dtype: DType) -> DType {
    if dtype.is_half() { DType::Float32 } else { dtype }
}

pub(crate) fn check_float(x: &Tensor) -> Result<()> {
    if x.dtype().is_float() {
        return Ok(());
    }
    Err(Error::dtype(format!("x must be a float tensor, got {}", x.dtype())))
}

pub(super) fn check_affine(what: &str, t: Option<&Tensor>, shape: &[usize]) -> Result<()> {
    match t {
        Some(t) if t.shape() != shape => bail!("{what} must have shape {shape:?}, got {:?}", t.shape()),
        _ => Ok(()),
    }
}

/// The optional tensor in a dtype and row-major.
pub(super) fn ready(t: Option<&Tensor>, dtype: DType) -> Result<Option<Tensor>> {
    t.map(|t| t.in_dtype(dtype)?.in_rows()).transpose()
}

/// How a composite normalises: the axes that statistics are taken over, and which statistics.
#[derive(Clone, Copy)]
pub(super) struct Plan {
    pub axes: &'static [i64],
    pub rms: bool,
    pub epsilon: f64,
}

const ROWS: &[i64] = &[1];
pub(super) const CHANNELS: &[i64] = &[0, 2];

impl Plan {
    fn mean(self, t: &Tensor) -> Tensor {
        t.mean_with(self.axes, MeanOpts::new().keepdim(true))
    }

    /// Mean, variance, one over the deviation and the normalised values, with the statistics' axes kept.
    pub fn parts(self, x: &Tensor) -> (Tensor, Tensor, Tensor, Tensor) {
        let mean = self.mean(x) * if self.rms { 0.0 } else { 1.0 };
        let centred = x - &mean;
        let var = self.mean(&(&centred * &centred));
        let rstd = rstd_of(&var, self.epsilon);
        let normal = centred * &rstd;
        (mean, var, rstd, normal)
    }

    /// Gradients of `normal * weight + bias` with respect to x, weight and bias, in differentiable ops.
    pub fn backward(self, x: &Tensor, grad: &Tensor, weight: Option<&Tensor>) -> Vec<Tensor> {
        let (_, _, rstd, normal) = self.parts(x);
        self.backward_by(x, grad, weight, rstd, normal)
    }

    /// The same from known statistics.
    pub fn backward_by(
        self,
        x: &Tensor,
        grad: &Tensor,
        weight: Option<&Tensor>,
        rstd: Tensor,
        normal: Tensor,
    ) -> Vec<Tensor> {
        let inner = weight.map_or(grad.clone(), |w| grad * self.spread(w, x));
        let level = self.mean(&inner) * if self.rms { 0.0 } else { 1.0 };
        let dx = (&inner - level - &normal * self.mean(&(&inner * &normal))) * rstd;
        // Weights belong to columns of rows, or to channels.
        let others = if self.axes == CHANNELS { CHANNELS } else { &[0] };
        vec![dx, (grad * normal).sum(others), grad.sum(others)]
    }

    /// A weight of one axis in a shape that broadcasts against `x`.
    pub fn spread(self, w: &Tensor, x: &Tensor) -> Tensor {
        if self.axes == CHANNELS { w.reshape_to([1, x.dim(1), 1]) } else { w.clone() }
    }
}

/// The affine map after a normalisation.
pub(super) fn affine(plan: Plan, normal: Tensor, weight: Option<&Tensor>, bias: Option<&Tensor>) -> Tensor {
    let y = weight.map_or(normal.clone(), |w| &normal * plan.spread(w, &normal));
    bias.map_or(y.clone(), |b| &y + plan.spread(b, &normal))
}

/// Rows of a matrix normalised to mean 0 and deviation 1, or with `rms` divided by the root of their mean square; then
/// scaled and shifted by column. Also gives each row's mean (0 with `rms`) and one over its deviation.
#[op(
    internal,
    fused_on_gpu,
    module = "nn.functional",
    samples = row_norm_samples,
    reference = row_norm_composite,
    peer = "lambda x, w, b, eps, rms: ( \
            n := x.shape[1:], \
            mean := x.mean(1) * (not rms), \
            rstd := torch.rsqrt((x - mean[:, None]).square().mean(1) + eps), \
            y := F.rms_norm(x, n, w, eps) + (0 if b is None else b) if rms else F.layer_norm(x, n, w, b, eps), \
            (y, mean, rstd))[-1]",
    results("out", "mean", "rstd")
)]
fn row_norm(
    cx: &Cx,
    x: &Tensor,
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
    epsilon: f64,
    rms: bool,
) -> Result<(Tensor, Tensor, Tensor)> {
    check_float(x)?;
    let &[rows, n] = x.shape() else { bail!("x must be a matrix, got {:?}", x.shape()) };
    check_affine("weight", weight, &[n])?;
    check_affine("bias", bias, &[n])?;
    let dtype = x.dtype();
    let (y, mean, rstd) = (cx.out(x.shape(), dtype)?, cx.out([rows], wide(dtype))?, cx.out([rows], wide(dtype))?);
    let cpu = || {
        let (x, w, b) = (x.contiguous(), ready(weight, dtype)?, ready(bias, dtype)?);
        let (x, w, b) = (x.values(), w.as_ref().map(|w| w.values()), b.as_ref().map(|b| b.values()));
        let (mut y, mut mean, mut rstd) = (y.values_mut(), mean.values_mut(), rstd.values_mut());
        norm::row_norm(
            kind(rms),
            x.slice(),
            n,
            w.as_ref().map(|w| w.slice()),
            b.as_ref().map(|b| b.slice()),
            epsilon,
            y.slice(),
            mean.slice(),
            rstd.slice(),
        );
        Ok(())
    };
    cx.run(cpu, |gpu| {
        let (x, w, b) = (x.contiguous(), ready(weight, dtype)?, ready(bias, dtype)?);
        let norm = sampan_cuda::rows::RowNorm { rows, n, rms };
        gpu::rows::row_norm(gpu, norm, epsilon, &x, [w.as_ref(), b.as_ref()], [&y, &mean, &rstd])
    })?;
    let (has_weight, has_bias) = (weight.is_some(), bias.is_some());
    let saved: Vec<&Tensor> = [Some(x), weight].into_iter().flatten().collect();
    cx.grad_from_outputs((y, mean, rstd), &[1, 2], &saved, move |g| {
        let (x, w) = (g.saved(0), has_weight.then(|| g.saved(1)));
        let mut out = if g.has_grad(1) || g.has_grad(2) {
            // The statistics themselves were used: no kernel for that.
            let grads: Vec<Option<Tensor>> = (0..3).map(|i| g.has_grad(i).then(|| g.grad_of(i))).collect();
            let mut inputs = vec![x];
            inputs.extend(w);
            let mut out = vjp(&inputs, &grads, |t| {
                let (y, mean, rstd) = row_norm_composite(&t[0], t.get(1), None, epsilon, rms)?;
                Ok(vec![y, mean, rstd])
            })?;
            if has_bias {
                out.push(Some(g.grad().sum(0)));
            }
            return Ok(out);
        } else {
            let (dx, dw, db) = x.row_norm_grad(&g.grad(), w, g.output(1), g.output(2), epsilon, rms);
            vec![Some(dx), Some(dw), Some(db)]
        };
        if !has_bias {
            out.remove(2);
        }
        if !has_weight {
            out.remove(1);
        }
        Ok(out)
    })
}

fn kind(rms: bool) -> RowNorm {
    if rms { RowNorm::Rms } else { RowNorm::Layer }
}

fn row_norm_composite(
    x: &Tensor,
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
    epsilon: f64,
    rms: bool,
) -> Result<(Tensor, Tensor, Tensor)> {
    let plan = Plan { axes: ROWS, rms, epsilon };
    let (mean, _, rstd, normal) = plan.parts(x);
    Ok((affine(plan, normal, weight, bias), mean.squeeze(1), rstd.squeeze(1)))
}

/// The gradients of `row_norm` with respect to x, weight and bias. `mean` and `rstd` are what it gave for `x`.
#[op(
    internal,
    fused_on_gpu,
    module = "nn.functional",
    samples = row_norm_grad_samples,
    reference = row_norm_grad_composite,
    peer = "lambda x, g, w, mean, rstd, eps, rms: torch_pull( \
            lambda x, w, b: F.rms_norm(x, w.shape, w, eps) + b if rms else F.layer_norm(x, w.shape, w, b, eps), \
            (x, torch.ones(x.shape[1]) if w is None else w, torch.zeros(x.shape[1])), g)",
    results("dx", "dweight", "dbias")
)]
fn row_norm_grad(
    cx: &Cx,
    x: &Tensor,
    grad: &Tensor,
    weight: Option<&Tensor>,
    mean: &Tensor,
    rstd: &Tensor,
    epsilon: f64,
    rms: bool,
) -> Result<(Tensor, Tensor, Tensor)> {
    check_float(x)?;
    let &[rows, n] = x.shape() else { bail!("x must be a matrix, got {:?}", x.shape()) };
    ensure!(grad.shape() == x.shape(), "x and grad must have one shape");
    ensure!(mean.shape() == [rows] && rstd.shape() == [rows], "mean and rstd need one element a row");
    check_affine("weight", weight, &[n])?;
    let (dtype, stats) = (x.dtype(), wide(x.dtype()));
    let (dx, dw, db) = (cx.out(x.shape(), dtype)?, cx.out([n], stats)?, cx.out([n], stats)?);
    let cpu = || {
        let (x, grad, w) = (x.contiguous(), grad.in_dtype(dtype)?.in_rows()?, ready(weight, dtype)?);
        let (mean, rstd) = (mean.in_dtype(stats)?.in_rows()?, rstd.in_dtype(stats)?.in_rows()?);
        let (x, grad, w) = (x.values(), grad.values(), w.as_ref().map(|w| w.values()));
        let (mean, rstd) = (mean.values(), rstd.values());
        let (mut dx, mut dw, mut db) = (dx.values_mut(), dw.values_mut(), db.values_mut());
        norm::row_norm_backward(
            kind(rms),
            x.slice(),
            grad.slice(),
            n,
            w.as_ref().map(|w| w.slice()),
            mean.slice(),
            rstd.slice(),
            dx.slice(),
            dw.slice(),
            db.slice(),
        );
        Ok(())
    };
    cx.run(cpu, |gpu| {
        let (x, grad, w) = (x.contiguous(), grad.in_dtype(dtype)?.in_rows()?, ready(weight, dtype)?);
        let (mean, rstd) = (mean.in_dtype(stats)?.in_rows()?, rstd.in_dtype(stats)?.in_rows()?);
        let norm = sampan_cuda::rows::RowNorm { rows, n, rms };
        gpu::rows::row_norm_back(gpu, norm, [&x, &grad], w.as_ref(), [&mean, &rstd], [&dx, &dw, &db])
    })?;
    second_order(cx, (dx, dw, db), x, grad, weight, Plan { axes: ROWS, rms, epsilon })
}

/// States the gradient of a backward kernel through the composite it stands for. The statistics among the arguments are
/// functions of `x`, whose gradient accounts for them.
fn second_order(
    cx: &Cx,
    outputs: (Tensor, Tensor, Tensor),
    x: &Tensor,
    grad: &Tensor,
    weight: Option<&Tensor>,
    plan: Plan,
) -> Result<(Tensor, Tensor, Tensor)> {
    let saved: Vec<&Tensor> = [Some(x), Some(grad), weight].into_iter().flatten().collect();
    let count = saved.len();
    cx.grad(outputs, &saved, move |g| {
        let inputs: Vec<&Tensor> = (0..count).map(|i| g.saved(i)).collect();
        let grads: Vec<Option<Tensor>> = (0..3).map(|i| g.has_grad(i).then(|| g.grad_of(i))).collect();
        let mut out = vjp(&inputs, &grads, |t| Ok(plan.backward(&t[0], &t[1], t.get(2))))?;
        out.extend([None, None]);
        Ok(out)
    })
}

fn row_norm_grad_composite(
    x: &Tensor,
    grad: &Tensor,
    weight: Option<&Tensor>,
    mean: &Tensor,
    rstd: &Tensor,
    epsilon: f64,
    rms: bool,
) -> Result<(Tensor, Tensor, Tensor)> {
    let rstd = rstd.unsqueeze(1);
    let normal = (x - mean.unsqueeze(1)) * &rstd;
    let out = Plan { axes: ROWS, rms, epsilon }.backward_by(x, grad, weight, rstd, normal);
    Ok((out[0].clone(), out[1].clone(), out[2].clone()))
}

/// One over the deviation.
pub(super) fn rstd_of(var: &Tensor, epsilon: f64) -> Tensor {
    (var + epsilon).rsqrt()
}

fn row_norm_samples() -> Vec<Sample> {
    let none = || Value::None;
    vec![
        sample![randn([3, 4]), positive([4]), randn([4]), 1e-5, false],
        sample![randn([2, 3]), none(), none(), 1e-3, false],
        sample![randn([3, 4]), positive([4]), none(), 1e-5, true],
        sample![randn([2, 3]), none(), randn([3]), 1e-3, true],
        sample![randn([0, 3]), positive([3]), none(), 1e-5, false],
    ]
}

pub(super) const DEPENDENT: &str =
    "the statistics are functions of x, not independent inputs; layer_norm and batch_norm check it";

fn row_norm_grad_samples() -> Vec<Sample> {
    let make = |weight: bool, rms: bool| {
        let x = randn([3, 4]);
        let (_, mean, rstd) = x.row_norm(None, None, 1e-5, rms);
        let w = if weight { Value::from(positive([4])) } else { Value::None };
        sample![x, uniform([3, 4], -1.0, 1.0), w, mean, rstd, 1e-5, rms].no_grad(DEPENDENT)
    };
    vec![make(true, false), make(false, false), make(true, true)]
}
