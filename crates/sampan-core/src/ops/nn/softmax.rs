//! Softmax and its logarithm along one axis.

use crate::gpu;
use crate::ops::prelude::*;
use sampan_kernels::softmax as kernel;

/// Extent of an axis and how many elements follow one step of it in row-major order.
fn lanes(shape: &[usize], axis: usize) -> (usize, usize) {
    (shape.get(axis).copied().unwrap_or(1), shape.iter().skip(axis + 1).product())
}

fn float_or(x: &Tensor, dtype: Option<DType>) -> Result<DType> {
    match dtype {
        Some(d) if !d.is_float() => Err(Error::dtype(format!("dtype must be a float, got {d}"))),
        Some(d) => Ok(d),
        None => Ok(to_float(x.dtype())),
    }
}

/// `e^x / sum(e^x)` along `axis`, after a cast to `dtype` if one is given.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([[1.0f32, 1.0]]).softmax(-1).to_vec::<f32>(), [0.5, 0.5]);
/// ```
#[op(inplace, fused_on_gpu, module = "nn.functional", samples = softmax_samples, reference = softmax_composite, onnx = "Softmax", amp = "black", also("softmax"))]
fn softmax(cx: &Cx, x: &Tensor, #[default(-1)] axis: i64, #[opt(None)] dtype: Option<DType>) -> Result<Tensor> {
    let dtype = float_or(x, dtype)?;
    let (n, inner) = lanes(x.shape(), resolve_axis(axis, x.ndim())?);
    let out = cx.out(x.shape(), dtype)?;
    cx.run(
        || {
            let x = x.in_dtype(dtype)?.in_rows()?;
            kernel::softmax(x.values().slice(), out.values_mut().slice(), n, inner);
            Ok(())
        },
        |gpu| gpu::rows::softmax(gpu, &x.in_dtype(dtype)?.in_rows()?, n, inner, false, &out),
    )?;
    cx.grad_from_output(out, &[], move |g| Ok(g.output(0).softmax_grad(&g.grad(), axis)))
}

fn softmax_composite(x: &Tensor, axis: i64, dtype: Option<DType>) -> Result<Tensor> {
    let e = below_peak(&x.cast(float_or(x, dtype)?), axis).exp();
    Ok(&e / kept_sum(&e, axis))
}

/// `x` less its largest element along an axis, which is a constant: the results do not depend on it.
fn below_peak(x: &Tensor, axis: i64) -> Tensor {
    x - x.detach().max_with(axis, crate::ops::reduction::MaxOpts::new().keepdim(true))
}

/// The logarithm of softmax along `axis`, after a cast to `dtype` if one is given.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([[3.0f32]]).log_softmax(-1).to_vec::<f32>(), [0.0]);
/// ```
#[op(fused_on_gpu, module = "nn.functional", samples = softmax_samples, reference = log_softmax_composite, onnx = "LogSoftmax", amp = "black")]
fn log_softmax(cx: &Cx, x: &Tensor, #[default(-1)] axis: i64, #[opt(None)] dtype: Option<DType>) -> Result<Tensor> {
    let dtype = float_or(x, dtype)?;
    let (n, inner) = lanes(x.shape(), resolve_axis(axis, x.ndim())?);
    let out = cx.out(x.shape(), dtype)?;
    cx.run(
        || {
            let x = x.in_dtype(dtype)?.in_rows()?;
            kernel::log_softmax(x.values().slice(), out.values_mut().slice(), n, inner);
            Ok(())
        },
        |gpu| gpu::rows::softmax(gpu, &x.in_dtype(dtype)?.in_rows()?, n, inner, true, &out),
    )?;
    cx.grad_from_output(out, &[], move |g| Ok(g.output(0).log_softmax_grad(&g.grad(), axis)))
}

fn log_softmax_composite(x: &Tensor, axis: i64, dtype: Option<DType>) -> Result<Tensor> {
    let x = below_peak(&x.cast(float_or(x, dtype)?), axis);
    Ok(&x - kept_sum(&x.exp(), axis).log())
}

/// The sum along an axis that stays with extent 1.
fn kept_sum(x: &Tensor, axis: i64) -> Tensor {
    x.sum_with(axis, crate::ops::reduction::SumOpts::new().keepdim(true))
}

/// Shapes must agree and dtypes too, as they come from one forward pass.
fn check_pair(y: &Tensor, grad: &Tensor) -> Result<()> {
    ensure!(y.shape() == grad.shape(), "y and grad must have one shape");
    if !y.dtype().is_float() {
        return Err(Error::dtype(format!("y must be a float tensor, got {}", y.dtype())));
    }
    Ok(())
}

/// The gradient of softmax from its result `y`: `y * (grad - sum(y * grad))`.
#[op(
    internal,
    fused_on_gpu,
    module = "nn.functional",
    samples = softmax_grad_samples,
    reference = softmax_grad_composite,
    peer = "lambda y, g, axis: torch._softmax_backward_data(g, y, axis, y.dtype)"
)]
fn softmax_grad(cx: &Cx, y: &Tensor, grad: &Tensor, axis: i64) -> Result<Tensor> {
    check_pair(y, grad)?;
    let (n, inner) = lanes(y.shape(), resolve_axis(axis, y.ndim())?);
    let out = cx.out(y.shape(), y.dtype())?;
    let ready = || Ok::<_, Error>((y.contiguous(), grad.in_dtype(y.dtype())?.in_rows()?));
    cx.run(
        || {
            let (y, grad) = ready()?;
            kernel::softmax_backward(y.values().slice(), grad.values().slice(), out.values_mut().slice(), n, inner);
            Ok(())
        },
        |gpu| {
            let (y, grad) = ready()?;
            gpu::rows::softmax_back(gpu, [&y, &grad], n, inner, false, &out)
        },
    )?;
    cx.grad(out, &[y, grad], move |g| {
        let (y, inner, gg) = (g.saved(0), g.saved(1), g.grad());
        Ok([
            g.if_needed(0, || &gg * (inner - kept_sum(&(y * inner), axis)) - inner * kept_sum(&(y * &gg), axis)),
            g.if_needed(1, || y.softmax_grad(&gg, axis)),
        ])
    })
}

fn softmax_grad_composite(y: &Tensor, grad: &Tensor, axis: i64) -> Result<Tensor> {
    Ok(y * (grad - kept_sum(&(y * grad), axis)))
}

/// The gradient of log_softmax from its result `y`: `grad - e^y * sum(grad)`.
#[op(
    internal,
    fused_on_gpu,
    module = "nn.functional",
    samples = softmax_grad_samples,
    reference = log_softmax_grad_composite,
    peer = "lambda y, g, axis: torch._log_softmax_backward_data(g, y, axis, y.dtype)"
)]
fn log_softmax_grad(cx: &Cx, y: &Tensor, grad: &Tensor, axis: i64) -> Result<Tensor> {
    check_pair(y, grad)?;
    let (n, inner) = lanes(y.shape(), resolve_axis(axis, y.ndim())?);
    let out = cx.out(y.shape(), y.dtype())?;
    let ready = || Ok::<_, Error>((y.contiguous(), grad.in_dtype(y.dtype())?.in_rows()?));
    cx.run(
        || {
            let (y, grad) = ready()?;
            kernel::log_softmax_backward(y.values().slice(), grad.values().slice(), out.values_mut().slice(), n, inner);
            Ok(())
        },
        |gpu| {
            let (y, grad) = ready()?;
            gpu::rows::softmax_back(gpu, [&y, &grad], n, inner, true, &out)
        },
    )?;
    cx.grad(out, &[y, grad], move |g| {
        let (p, inner, gg) = (g.saved(0).exp(), g.saved(1), g.grad());
        Ok([
            g.if_needed(0, || -(&gg * &p * kept_sum(inner, axis))),
            g.if_needed(1, || &gg - kept_sum(&(&gg * &p), axis)),
        ])
    })
}

fn log_softmax_grad_composite(y: &Tensor, grad: &Tensor, axis: i64) -> Result<Tensor> {
    Ok(grad - y.exp() * kept_sum(grad, axis))
}

/// A softmax of `x` plus Gumbel noise over `temperature`: a differentiable draw from the categories along `axis`. With
/// `hard` the result is one-hot, with the gradient of the soft one.
///
/// ```
/// # use sampan_core::{Tensor, ops::softmax::GumbelSoftmaxOpts};
/// let y = Tensor::new([[0.1f32, 0.2]]).gumbel_softmax_with(1.0, GumbelSoftmaxOpts::new().hard(true));
/// assert_eq!(y.sum(()).to_f64(), 1.0);
/// ```
#[op(random, module = "nn.functional", samples = gumbel_samples, peer = "none: random")]
fn gumbel_softmax(
    x: &Tensor,
    #[default(1.0)] temperature: f64,
    #[opt(false)] hard: bool,
    #[opt(-1)] axis: i64,
) -> Result<Tensor> {
    ensure!(temperature > 0.0, "temperature must be positive, got {temperature}");
    let at = resolve_axis(axis, x.ndim())?;
    let noise = crate::ops::dropout::gumbel_like(x)?;
    let soft = ((x + noise) / temperature).try_softmax(axis)?;
    if !hard || x.ndim() == 0 {
        return Ok(soft);
    }
    let drawn = soft.detach();
    let place = drawn.argmax_with(at as i64, crate::ops::sorting::ArgmaxOpts::new().keepdim(true));
    let ones = Tensor::full_on(place.shape(), 1.0, soft.dtype(), soft.device());
    let zeros = Tensor::zeros_on(soft.shape(), soft.dtype(), soft.device());
    let hot = zeros.put_along_axis(&place, ones, at as i64);
    Ok(hot - drawn + soft)
}

/// The first half of `x` along `axis` times the sigmoid of the second half.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([3.0f32, 0.0]).glu(-1).to_vec::<f32>(), [1.5]);
/// ```
#[op(module = "nn.functional", samples = glu_samples)]
fn glu(x: &Tensor, #[default(-1)] axis: i64) -> Result<Tensor> {
    let (a, b) = halves(x, axis)?;
    Ok(a * b.sigmoid())
}

/// `silu(x) * y`; without `y` both are halves of `x` along its last axis.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([0.0f32, 3.0]).swiglu(None).to_vec::<f32>(), [0.0]);
/// ```
#[op(module = "nn.functional", samples = swiglu_samples)]
fn swiglu(x: &Tensor, #[default(None)] y: Option<&Tensor>) -> Result<Tensor> {
    match y {
        Some(y) => x.silu().try_multiply(y),
        None => {
            let (a, b) = halves(x, -1)?;
            Ok(a.silu() * b)
        }
    }
}

fn halves(x: &Tensor, axis: i64) -> Result<(Tensor, Tensor)> {
    let axis = resolve_axis(axis, x.ndim())?;
    let n = x.shape().get(axis).copied().unwrap_or(1);
    ensure!(n % 2 == 0, "axis {axis} has extent {n}, which has no half");
    Ok((x.try_narrow(axis as i64, 0, n / 2)?, x.try_narrow(axis as i64, n / 2, n / 2)?))
}

fn softmax_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 3])],
        sample![randn([2, 3, 2]), 1],
        sample![randn([4]), 0],
        sample![randn([2, 3]), 0; dtype = DType::Float64],
        sample![randn([])],
        sample![randn([0, 3])],
    ]
}

fn softmax_grad_samples() -> Vec<Sample> {
    vec![
        sample![positive([2, 3]), randn([2, 3]), -1],
        sample![uniform([2, 3, 2], -1.0, 1.0), randn([2, 3, 2]), 1],
        sample![positive([]), randn([]), 0],
    ]
}

fn gumbel_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 3])],
        sample![randn([2, 3]), 0.5; axis = 0],
        sample![randn([2, 3]); hard = true].no_grad("the gradient is the soft one's by design"),
    ]
}
fn glu_samples() -> Vec<Sample> {
    vec![sample![randn([2, 4])], sample![randn([4, 3]), 0], sample![randn([2, 0])]]
}
fn swiglu_samples() -> Vec<Sample> {
    vec![sample![randn([2, 4])], sample![randn([2, 3]), positive([2, 3])]]
}
