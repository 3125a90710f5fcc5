//! Elementwise functions of one argument.

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
