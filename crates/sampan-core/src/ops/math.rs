//! Powers, exponentials, logarithms and other elementwise functions of one argument.

use super::prelude::*;

/// The exponential of each element.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([0.0f32, 1.0]).exp().to_vec::<f32>(), [1.0, std::f32::consts::E]);
/// ```
#[op(inplace, samples = real_line, onnx = "Exp", amp = "black")]
fn exp(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    let out = cx.unary(x, real_fn!(|x| x.exp()))?;
    cx.grad_from_output(out, &[], |g| Ok(g.grad() * g.output(0)))
}

/// `exp(x) - 1`, exact near zero.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([1e-10f64]).expm1().to_vec::<f64>(), [1e-10f64.exp_m1()]);
/// ```
#[op(inplace, samples = real_line, amp = "black")]
fn expm1(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    let out = cx.unary(x, real_fn!(|x| x.expm1()))?;
    cx.grad_from_output(out, &[], |g| Ok(g.grad() * (g.output(0) + 1.0)))
}

/// The natural logarithm of each element.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([1.0f32]).log().to_vec::<f32>(), [0.0]);
/// ```
#[op(inplace, samples = positive_line, onnx = "Log", amp = "black")]
fn log(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    let out = cx.unary(x, real_fn!(|x| x.ln()))?;
    cx.grad(out, &[x], |g| Ok(g.grad() / g.saved(0)))
}

/// The logarithm to base 2 of each element.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([8.0f32, 0.5]).log2().to_vec::<f32>(), [3.0, -1.0]);
/// ```
#[op(inplace, samples = positive_line, amp = "black")]
fn log2(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    let out = cx.unary(x, real_fn!(|x| x.log2()))?;
    cx.grad(out, &[x], |g| Ok(g.grad() / (g.saved(0) * std::f64::consts::LN_2)))
}

/// The logarithm to base 10 of each element.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([100.0f64]).log10().to_vec::<f64>(), [2.0]);
/// ```
#[op(inplace, samples = positive_line, amp = "black")]
fn log10(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    let out = cx.unary(x, real_fn!(|x| x.log10()))?;
    cx.grad(out, &[x], |g| Ok(g.grad() / (g.saved(0) * std::f64::consts::LN_10)))
}

/// `log(1 + x)`, exact near zero.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([1e-10f64]).log1p().to_vec::<f64>(), [1e-10f64.ln_1p()]);
/// ```
#[op(inplace, samples = positive_line, amp = "black")]
fn log1p(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    let out = cx.unary(x, real_fn!(|x| x.log1p()))?;
    cx.grad(out, &[x], |g| Ok(g.grad() / (g.saved(0) + 1.0)))
}

/// The square root of each element; NaN for negative ones.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([4i64, 9]).sqrt().to_vec::<f32>(), [2.0, 3.0]);
/// ```
#[op(inplace, samples = positive_line, onnx = "Sqrt")]
fn sqrt(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    let out = cx.unary(x, real_fn!(|x| x.sqrt()))?;
    cx.grad_from_output(out, &[], |g| Ok(g.grad() * 0.5 / g.output(0)))
}

/// `1 / sqrt(x)`.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([4.0f32, 0.25]).rsqrt().to_vec::<f32>(), [0.5, 2.0]);
/// ```
#[op(inplace, samples = positive_line, amp = "black")]
fn rsqrt(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    let out = cx.unary(x, real_fn!(|x| x.rsqrt()))?;
    cx.grad_from_output(out, &[], |g| {
        let y = g.output(0);
        Ok(g.grad() * -0.5 * (y * y * y))
    })
}

/// `x * x`; keeps integers.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([-3i64, 2]).square().to_vec::<i64>(), [9, 4]);
/// ```
#[op(inplace, samples = real_line, amp = "black")]
fn square(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    let out = cx.unary_number(x, real_fn!(|x| x * x), |x| x.wrapping_mul(x))?;
    cx.grad(out, &[x], |g| Ok(g.grad() * 2.0 * g.saved(0)))
}

/// The absolute value of each element.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([-3i64, 2]).abs().to_vec::<i64>(), [3, 2]);
/// ```
#[op(inplace, samples = real_line, onnx = "Abs")]
fn abs(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    let out = cx.unary_number(x, real_fn!(|x| x.abs()), |x| x.wrapping_abs())?;
    cx.grad(out, &[x], |g| Ok(g.grad() * g.saved(0).sign()))
}

/// -1, 0 or 1, as each element is negative, zero or positive; NaN stays NaN.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([-2.5f32, 0.0, 7.0]).sign().to_vec::<f32>(), [-1.0, 0.0, 1.0]);
/// ```
#[op(inplace, samples = real_line, onnx = "Sign", also("sgn"))]
fn sign(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    let out = cx.unary_number(x, real_fn!(|x| x.sign()), |x| x.signum())?;
    cx.grad(out, &[], |g| Ok(zeros_like_grad(g)))
}

/// The logistic function `1 / (1 + exp(-x))`.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([0.0f32]).sigmoid().to_vec::<f32>(), [0.5]);
/// ```
#[op(inplace, samples = real_line, onnx = "Sigmoid", also("nn.functional.sigmoid"))]
fn sigmoid(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    let out = cx.unary(x, real_fn!(|x| x.sigmoid()))?;
    cx.grad_from_output(out, &[], |g| {
        let y = g.output(0);
        Ok(g.grad() * (y * (1.0 - y)))
    })
}

/// The hyperbolic tangent of each element.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([0.0f32]).tanh().to_vec::<f32>(), [0.0]);
/// ```
#[op(inplace, samples = real_line, onnx = "Tanh", also("nn.functional.tanh"))]
fn tanh(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    let out = cx.unary(x, real_fn!(|x| x.tanh()))?;
    cx.grad_from_output(out, &[], |g| Ok(g.grad() * (1.0 - g.output(0) * g.output(0))))
}

/// The error function of each element.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([0.0f32]).erf().to_vec::<f32>(), [0.0]);
/// ```
#[op(inplace, samples = real_line, onnx = "Erf")]
fn erf(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    let out = cx.unary(x, real_fn!(|x| x.erf()))?;
    cx.grad(out, &[x], |g| Ok(g.grad() * (-g.saved(0).square()).exp() * std::f64::consts::FRAC_2_SQRT_PI))
}

/// The gradient of a function that is constant between its jumps.
pub(crate) fn zeros_like_grad(g: &Grad) -> Tensor {
    let g = g.grad();
    Tensor::zeroed(g.shape(), g.dtype(), g.device())
}
