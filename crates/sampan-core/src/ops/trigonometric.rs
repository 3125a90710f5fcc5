//! Trigonometric and hyperbolic functions.

use super::elementwise::pair_grads;
use super::prelude::*;
use sampan_kernels::{complex, vmath_f32::WIDEST_ANGLE};

/// The sine of each element, in radians.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([0.0f32]).sin().to_vec::<f32>(), [0.0]);
/// ```
#[op(inplace, complex, samples = any_line, onnx = "Sin")]
fn sin(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    let out = cx.analytic(x, real_fn!(|x| x.sin(), beyond WIDEST_ANGLE), complex_fn!(|z| complex::sin(z)))?;
    cx.grad(out, &[x], |g| Ok(g.grad() * g.saved(0).conjugate().cos()))
}

/// The cosine of each element, in radians.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([0.0f32]).cos().to_vec::<f32>(), [1.0]);
/// ```
#[op(inplace, complex, samples = any_line, onnx = "Cos")]
fn cos(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    let out = cx.analytic(x, real_fn!(|x| x.cos(), beyond WIDEST_ANGLE), complex_fn!(|z| complex::cos(z)))?;
    cx.grad(out, &[x], |g| Ok(-(g.grad() * g.saved(0).conjugate().sin())))
}

/// The tangent of each element, in radians.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([0.0f32]).tan().to_vec::<f32>(), [0.0]);
/// ```
#[op(inplace, complex, samples = any_unit, onnx = "Tan")]
fn tan(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    let out = cx.analytic(x, real_fn!(|x| x.tan(), beyond WIDEST_ANGLE), complex_fn!(|z| complex::tan(z)))?;
    cx.grad_from_output(out, &[], |g| Ok(g.grad() * (g.output(0).conjugate().square() + 1.0)))
}

/// The angle whose sine each element is, in [-π/2, π/2]; NaN outside [-1, 1].
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([0.0f32]).asin().to_vec::<f32>(), [0.0]);
/// ```
#[op(inplace, complex, samples = any_unit, onnx = "Asin")]
fn asin(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    let out = cx.analytic(x, real_fn!(|x| x.asin()), complex_fn!(|z| complex::asin(z)))?;
    cx.grad(out, &[x], |g| Ok(g.grad() * one_less_square(g.saved(0)).rsqrt()))
}

/// The angle whose cosine each element is, in [0, π]; NaN outside [-1, 1].
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([1.0f32]).acos().to_vec::<f32>(), [0.0]);
/// ```
#[op(inplace, complex, samples = any_unit, onnx = "Acos")]
fn acos(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    let out = cx.analytic(x, real_fn!(|x| x.acos()), complex_fn!(|z| complex::acos(z)))?;
    cx.grad(out, &[x], |g| Ok(-(g.grad() * one_less_square(g.saved(0)).rsqrt())))
}

/// `1 - x²` of the conjugate; of a real number as a product, which does not cancel near ±1.
fn one_less_square(x: &Tensor) -> Tensor {
    if x.is_complex() { x.conjugate().square().rsubtract(1.0) } else { (1.0 - x) * (x + 1.0) }
}

/// The angle whose tangent each element is, in (-π/2, π/2).
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([0.0f32]).atan().to_vec::<f32>(), [0.0]);
/// ```
#[op(inplace, complex, samples = any_line, onnx = "Atan")]
fn atan(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    let out = cx.analytic(x, real_fn!(|x| x.atan()), complex_fn!(|z| complex::atan(z)))?;
    cx.grad(out, &[x], |g| Ok(g.grad() / (g.saved(0).conjugate().square() + 1.0)))
}

/// The hyperbolic sine of each element.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([0.0f32]).sinh().to_vec::<f32>(), [0.0]);
/// ```
#[op(inplace, complex, samples = any_line, onnx = "Sinh")]
fn sinh(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    let out = cx.analytic(x, real_fn!(|x| x.sinh()), complex_fn!(|z| complex::sinh(z)))?;
    cx.grad(out, &[x], |g| Ok(g.grad() * g.saved(0).conjugate().cosh()))
}

/// The hyperbolic cosine of each element.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([0.0f32]).cosh().to_vec::<f32>(), [1.0]);
/// ```
#[op(inplace, complex, samples = any_line, onnx = "Cosh")]
fn cosh(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    let out = cx.analytic(x, real_fn!(|x| x.cosh()), complex_fn!(|z| complex::cosh(z)))?;
    cx.grad(out, &[x], |g| Ok(g.grad() * g.saved(0).conjugate().sinh()))
}

/// The hyperbolic tangent of each element.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([0.0f32]).tanh().to_vec::<f32>(), [0.0]);
/// ```
#[op(inplace, complex, samples = any_line, onnx = "Tanh", also("nn.functional.tanh"))]
fn tanh(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    let out = cx.analytic(x, real_fn!(|x| x.tanh()), complex_fn!(|z| complex::tanh(z)))?;
    cx.grad_from_output(out, &[], |g| match g.output(0) {
        y if y.dtype().is_complex() => Ok(g.grad() * (y * y).rsubtract(1.0).conj()),
        y => Ok(y.tanh_grad(&g.grad())),
    })
}

/// The backward step of `tanh` from its output: `grad * (1 - out²)`.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([0.5f32]).tanh_grad(&Tensor::new([2.0f32])).to_vec::<f32>(), [1.5]);
/// ```
#[op(module = "_C_ops", samples = output_and_grad, peer = "lambda out, grad: grad * (1 - out * out)")]
fn tanh_grad(cx: &Cx, out: &Tensor, grad: &Tensor) -> Result<Tensor> {
    let dx = cx.binary(out, &grad.into(), real_fn!(|y, g| g * (T::ONE - y * y)))?;
    cx.grad(dx, &[out, grad], |g| {
        let (y, dy) = (g.saved(0), g.saved(1));
        let slope = || g.grad() * dy * y * -2.0;
        Ok(pair_grads(g, y.shape(), Some(dy.shape()), slope, || y.tanh_grad(&g.grad())))
    })
}

/// The inverse of the hyperbolic sine.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([0.0f32]).asinh().to_vec::<f32>(), [0.0]);
/// ```
#[op(inplace, complex, samples = any_line, onnx = "Asinh")]
fn asinh(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    let out = cx.analytic(x, real_fn!(|x| x.asinh()), complex_fn!(|z| complex::asinh(z)))?;
    cx.grad(out, &[x], |g| match g.saved(0).conjugate() {
        x if x.is_complex() => Ok(g.grad() * (x.square() + 1.0).rsqrt()),
        // The square would overflow long before the length does.
        x => Ok(g.grad() / x.hypot(&Tensor::full_like_scalar(&x.detach(), 1.0))),
    })
}

/// The inverse of the hyperbolic cosine; NaN below 1.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([1.0f32]).acosh().to_vec::<f32>(), [0.0]);
/// ```
#[op(inplace, complex, samples = above_one, onnx = "Acosh")]
fn acosh(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    let out = cx.analytic(x, real_fn!(|x| x.acosh()), complex_fn!(|z| complex::acosh(z)))?;
    cx.grad(out, &[x], |g| {
        // The root of the product has another cut than the product of the roots, and overflows.
        let x = g.saved(0).conjugate();
        Ok(g.grad() * (&x - 1.0).rsqrt() * (x + 1.0).rsqrt())
    })
}

/// The inverse of the hyperbolic tangent; NaN outside [-1, 1].
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([0.0f32]).atanh().to_vec::<f32>(), [0.0]);
/// ```
#[op(inplace, complex, samples = any_unit, onnx = "Atanh")]
fn atanh(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    let out = cx.analytic(x, real_fn!(|x| x.atanh()), complex_fn!(|z| complex::atanh(z)))?;
    cx.grad(out, &[x], |g| Ok(g.grad() / one_less_square(g.saved(0))))
}

/// The angle of the point (`y`, `x`) in (-π, π]: `atan(x / y)` in the right quadrant.
///
/// ```
/// # use sampan_core::Tensor;
/// let angle = Tensor::new([1.0f64]).atan2(&Tensor::new([-1.0f64]));
/// assert_eq!(angle.to_vec::<f64>(), [0.75 * std::f64::consts::PI]);
/// ```
#[op(inplace, samples = real_pairs)]
fn atan2(cx: &Cx, x: &Tensor, y: Operand) -> Result<Tensor> {
    let out = cx.binary(x, &y, real_fn!(|x, y| x.atan2(y)))?;
    match y {
        Operand::Tensor(y) => cx.grad(out, &[x, &y], |g| {
            let (x, y) = (g.saved(0), g.saved(1));
            // Divided by the length twice: its square may overflow or vanish. The origin has no slope.
            let length = super::cross_entropy::or_one(&x.hypot(y));
            let dx = || g.grad() * (y / &length) / &length;
            Ok(pair_grads(g, x.shape(), Some(y.shape()), dx, || -(g.grad() * (x / &length) / &length)))
        }),
        Operand::Scalar(s) => cx.grad(out, &[x], move |g| {
            let x = g.saved(0);
            let y = Tensor::full_like_scalar(&x.detach(), s.to_f64());
            let length = super::cross_entropy::or_one(&x.hypot(&y));
            Ok(g.grad() * (y / &length) / &length)
        }),
    }
}

/// The length of the vector (`x`, `y`), without overflow on the way.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([3.0f32]).hypot(&Tensor::new([4.0f32])).to_vec::<f32>(), [5.0]);
/// ```
#[op(inplace, samples = tensor_pairs)]
fn hypot(cx: &Cx, x: &Tensor, y: &Tensor) -> Result<Tensor> {
    let out = cx.binary(x, &y.into(), real_fn!(|x, y| x.hypot(y)))?;
    cx.grad_from_output(out, &[x, y], |g| {
        let (x, y, length) = (g.saved(0), g.saved(1), g.output(0));
        let part = |v: &Tensor| g.grad() * (v / length);
        Ok(pair_grads(g, x.shape(), Some(y.shape()), || part(x), || part(y)))
    })
}

/// Degrees to radians.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([180i64]).deg2rad().to_vec::<f32>(), [std::f32::consts::PI]);
/// ```
#[op(samples = real_line)]
fn deg2rad(x: &Tensor) -> Result<Tensor> {
    x.try_multiply(std::f64::consts::PI / 180.0)
}

/// Radians to degrees.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([std::f32::consts::PI]).rad2deg().to_vec::<f32>(), [180.0]);
/// ```
#[op(samples = real_line)]
fn rad2deg(x: &Tensor) -> Result<Tensor> {
    x.try_multiply(180.0 / std::f64::consts::PI)
}

/// `sin(πx) / (πx)`, and 1 at zero.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([0.0f64, 0.5]).sinc().to_vec::<f64>(), [1.0, std::f64::consts::FRAC_2_PI]);
/// ```
#[op(inplace, samples = sinc_samples)]
fn sinc(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    let pi = std::f64::consts::PI;
    let out = cx.unary(
        x,
        real_fn!([pi: f64] |x| {
            // Whole turns are taken off before π comes in, which is not exact.
            let n = x.round();
            let wave = ((x - n) * T::of(pi)).sin();
            let odd = n != T::of(2.0) * (n * T::of(0.5)).round();
            select(x == T::ZERO, T::ONE, select(odd, -wave, wave) / (x * T::of(pi)))
        }),
    )?;
    cx.grad(out, &[x], move |g| {
        // In float64: near zero the two parts of the slope are almost equal.
        let x = g.saved(0).cast(DType::Float64);
        let zero = x.equal(0.0).cast(DType::Float64);
        let n = x.detach().round(0);
        let parity = (&n * 0.5).round(0) * -2.0 + n.clone();
        let (turned, sign) = ((&x - &n) * pi, 1.0 - parity.square() * 2.0);
        let some = &x + &zero;
        let slope = &sign * (turned.cos() - turned.sin() / (&some * pi)) * (1.0 - &zero) / some;
        // At zero the slope vanishes and falls as -π²x / 3.
        let slope = slope - zero * x * (pi * pi / 3.0);
        Ok((g.grad() * slope).cast(g.saved(0).dtype()))
    })
}

fn above_one() -> Vec<Sample> {
    vec![
        sample![uniform([2, 3], 1.2, 3.0)],
        sample![uniform([], 1.2, 3.0)],
        sample![uniform([0, 2], 1.2, 3.0)],
        // Paddle's root has another cut.
        sample![complexes([2, 3])].grad_peer("torch.acosh"),
    ]
}
fn sinc_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 3])],
        sample![values([0.0f32, 1.0, -0.25], [3])].no_grad("differences cancel at zero"),
        sample![randn([])],
        sample![randn([0, 2])],
    ]
}

/// Pairs of tensors: equal shapes, broadcasting, 0-d, empty.
pub(crate) fn tensor_pairs() -> Vec<Sample> {
    vec![
        sample![randn([2, 3]), uniform([2, 3], 0.5, 2.0)],
        sample![randn([2, 1, 3]), uniform([4, 1], 0.3, 1.5)],
        sample![randn([2, 3]), randn([])],
        sample![randn([0, 3]), randn([3])],
    ]
}

/// An output in (-0.9, 0.9) and the gradient that came back to it.
pub(crate) fn output_and_grad() -> Vec<Sample> {
    vec![
        sample![uniform([2, 3], -0.9, 0.9), randn([2, 3])],
        sample![uniform([], -0.9, 0.9), randn([])],
        sample![uniform([0, 3], -0.9, 0.9), randn([0, 3])],
    ]
}
