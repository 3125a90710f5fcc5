//! Trigonometric and hyperbolic functions.

use crate::ops::prelude::*;

/// The sine of each element, in radians.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([0.0f32]).sin().to_vec::<f32>(), [0.0]);
/// ```
#[op(inplace, complex, samples = any_line, onnx = "Sin")]
fn sin(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    cx.float(formula!(|x| x.sin()), x)
}

/// The cosine of each element, in radians.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([0.0f32]).cos().to_vec::<f32>(), [1.0]);
/// ```
#[op(inplace, complex, samples = any_line, onnx = "Cos")]
fn cos(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    cx.float(formula!(|x| x.cos()), x)
}

/// The tangent of each element, in radians.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([0.0f32]).tan().to_vec::<f32>(), [0.0]);
/// ```
#[op(inplace, complex, samples = any_unit, onnx = "Tan")]
fn tan(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    cx.float(formula!(|x| x.tan()), x)
}

/// The angle whose sine each element is, in [-π/2, π/2]; NaN outside [-1, 1].
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([0.0f32]).asin().to_vec::<f32>(), [0.0]);
/// ```
#[op(inplace, complex, samples = any_unit, onnx = "Asin")]
fn asin(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    cx.float(formula!(|x| x.asin()), x)
}

/// The angle whose cosine each element is, in [0, π]; NaN outside [-1, 1].
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([1.0f32]).acos().to_vec::<f32>(), [0.0]);
/// ```
#[op(inplace, complex, samples = any_unit, onnx = "Acos")]
fn acos(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    cx.float(formula!(|x| x.acos()), x)
}

/// The angle whose tangent each element is, in (-π/2, π/2).
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([0.0f32]).atan().to_vec::<f32>(), [0.0]);
/// ```
#[op(inplace, complex, samples = any_line, onnx = "Atan")]
fn atan(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    cx.float(formula!(|x| x.atan()), x)
}

/// The hyperbolic sine of each element.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([0.0f32]).sinh().to_vec::<f32>(), [0.0]);
/// ```
#[op(inplace, complex, samples = any_line, onnx = "Sinh")]
fn sinh(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    cx.float(formula!(|x| x.sinh()), x)
}

/// The hyperbolic cosine of each element.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([0.0f32]).cosh().to_vec::<f32>(), [1.0]);
/// ```
#[op(inplace, complex, samples = any_line, onnx = "Cosh")]
fn cosh(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    cx.float(formula!(|x| x.cosh()), x)
}

/// The hyperbolic tangent of each element.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([0.0f32]).tanh().to_vec::<f32>(), [0.0]);
/// ```
#[op(inplace, complex, samples = any_line, onnx = "Tanh", also("nn.functional.tanh"))]
fn tanh(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    cx.float(formula!(|x| x.tanh()), x)
}

/// The inverse of the hyperbolic sine.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([0.0f32]).asinh().to_vec::<f32>(), [0.0]);
/// ```
#[op(inplace, complex, samples = any_line, onnx = "Asinh")]
fn asinh(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    cx.float(formula!(|x| x.asinh()), x)
}

/// The inverse of the hyperbolic cosine; NaN below 1.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([1.0f32]).acosh().to_vec::<f32>(), [0.0]);
/// ```
#[op(inplace, complex, samples = above_one, onnx = "Acosh")]
fn acosh(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    cx.float(formula!(|x| x.acosh()), x)
}

/// The inverse of the hyperbolic tangent; NaN outside [-1, 1].
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([0.0f32]).atanh().to_vec::<f32>(), [0.0]);
/// ```
#[op(inplace, complex, samples = any_unit, onnx = "Atanh")]
fn atanh(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    cx.float(formula!(|x| x.atanh()), x)
}

/// The angle of the point (`y`, `x`) in (-π, π]: `atan(x / y)` in the right quadrant. Of integers it is a float64, as in
/// Paddle.
///
/// ```
/// # use sampan_core::Tensor;
/// let angle = Tensor::new([1.0f64]).atan2(&Tensor::new([-1.0f64]));
/// assert_eq!(angle.to_vec::<f64>(), [0.75 * std::f64::consts::PI]);
/// ```
#[op(inplace, samples = angle_samples)]
fn atan2(cx: &Cx, x: &Tensor, y: Operand) -> Result<Tensor> {
    let angle = formula!(|x, y| x.atan2(y));
    match &y {
        Operand::Tensor(y) if x.dtype().is_int() && y.dtype().is_int() => {
            let [x, y] = [x, y].map(|t| t.cast(DType::Float64));
            cx.float(angle, (&x, &y))
        }
        _ => cx.float(angle, (x, &y)),
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
    cx.float(formula!(|x, y| x.hypot(y)), (x, y))
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
    let f = formula!(|x; pi| {
        // Whole turns are taken off before π comes in, which is not exact.
        let n = x.round();
        let wave = ((x - n) * pi).sin();
        let odd = n.differs(2.0 * (n * 0.5).round());
        select(x.equals(0.0), 1.0, select(odd, -wave, wave) / (x * pi))
    });
    let out = cx.float_values(f, x)?;
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
fn angle_samples() -> Vec<Sample> {
    let mut samples = real_pairs();
    samples.push(sample![ints([2, 3], -3, 4), ints([3], 1, 4)]);
    samples
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
