//! Special functions: error function, gamma, Bessel. Their gradients are each other, so every order exists.

use crate::ops::elementwise::sum_to;
use crate::ops::prelude::*;

/// The error function of each element.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([0.0f32]).erf().to_vec::<f32>(), [0.0]);
/// ```
#[op(inplace, samples = real_line, onnx = "Erf")]
fn erf(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    cx.float(formula!(|x| x.erf()), x)
}

/// The inverse of the error function; NaN outside [-1, 1].
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([0.0f32]).erfinv().to_vec::<f32>(), [0.0]);
/// ```
#[op(inplace, samples = unit_interval)]
fn erfinv(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    cx.float(formula!(|x| x.erfinv()), x)
}

/// The logarithm of the absolute value of the gamma function.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([1.0f32, 2.0]).lgamma().to_vec::<f32>(), [0.0, 0.0]);
/// ```
#[op(inplace, samples = gamma_line, also("gammaln"))]
fn lgamma(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    cx.float(formula!(|x| x.lgamma()), x)
}

/// The derivative of `lgamma`.
///
/// ```
/// # use sampan_core::Tensor;
/// assert!((Tensor::new([1.0f64]).digamma().to_f64() + 0.5772156649).abs() < 1e-9);
/// ```
#[op(inplace, samples = gamma_line)]
fn digamma(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    cx.float(formula!(|x| x.digamma()), x)
}

/// The `n`-th derivative of `digamma`.
///
/// ```
/// # use sampan_core::Tensor;
/// let six_over_pi_squared = 6.0 / (std::f64::consts::PI * std::f64::consts::PI);
/// assert!((Tensor::new([1.0f64]).polygamma(1).to_f64() * six_over_pi_squared - 1.0).abs() < 1e-12);
/// ```
#[op(inplace, samples = polygamma_samples)]
fn polygamma(cx: &Cx, x: &Tensor, n: i64) -> Result<Tensor> {
    ensure!((0..=170).contains(&n), "n must lie in 0..=170, where n! is finite, got {n}");
    cx.float(formula!(|x; n| n.polygamma_at(x)), x)
}

/// The logarithm of the multivariate gamma function of dimension `p`.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([2.5f64]);
/// assert_eq!(x.multigammaln(1).to_f64(), x.lgamma().to_f64());
/// ```
#[op(inplace, samples = multigammaln_samples)]
fn multigammaln(x: &Tensor, p: i64) -> Result<Tensor> {
    ensure!((1..=10_000).contains(&p), "p must lie in [1, 10000], got {p}");
    let constant = 0.25 * (p * (p - 1)) as f64 * std::f64::consts::PI.ln();
    Ok((0..p).fold(x.lgamma() * 0.0 + constant, |sum, i| sum + (x - 0.5 * i as f64).lgamma()))
}

/// The regularised lower incomplete gamma function: the share of Γ(`x`) below `y`. It has a gradient along `y`.
///
/// ```
/// # use sampan_core::Tensor;
/// let p = Tensor::new([1.0f64]).gammainc(&Tensor::new([2.0f64]));
/// assert!((p.to_f64() - (1.0 - (-2.0f64).exp())).abs() < 1e-12);
/// ```
#[op(inplace, samples = gammainc_samples, peer = "lambda x, y: paddle.gammainc(x.astype(y.dtype), y)")]
fn gammainc(cx: &Cx, x: &Tensor, y: &Tensor) -> Result<Tensor> {
    let out = cx.float_values(formula!(|x, y| x.gammainc(y)), (x, y))?;
    gammainc_grad(cx, out, x, y, 1.0)
}

/// The regularised upper incomplete gamma function, `1 - gammainc(x, y)`. It has a gradient along `y`.
///
/// ```
/// # use sampan_core::Tensor;
/// let q = Tensor::new([1.0f64]).gammaincc(&Tensor::new([2.0f64]));
/// assert!((q.to_f64() - (-2.0f64).exp()).abs() < 1e-12);
/// ```
#[op(inplace, samples = gammainc_samples, peer = "lambda x, y: paddle.gammaincc(x.astype(y.dtype), y)")]
fn gammaincc(cx: &Cx, x: &Tensor, y: &Tensor) -> Result<Tensor> {
    let out = cx.float_values(formula!(|x, y| x.gammaincc(y)), (x, y))?;
    gammainc_grad(cx, out, x, y, -1.0)
}

/// d/dy P(x, y) = yˣ⁻¹ e⁻ʸ / Γ(x).
fn gammainc_grad(cx: &Cx, out: Tensor, x: &Tensor, y: &Tensor, sign: f64) -> Result<Tensor> {
    cx.grad(out, &[x, y], move |g| {
        if g.needs(0) {
            return Err(Error::new(crate::error::Kind::Unimplemented, "has no gradient along x, the order")
                .hint("set stop_gradient on x"));
        }
        let (x, y) = (g.saved(0), g.saved(1));
        let density = || ((x - 1.0) * y.log() - y - x.lgamma()).exp();
        Ok([None, g.if_needed(1, || sum_to(&(g.grad() * density() * sign), y.shape()))])
    })
}

/// The modified Bessel function of the first kind of order 0.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([0.0f32]).i0().to_vec::<f32>(), [1.0]);
/// ```
#[op(inplace, samples = real_line)]
fn i0(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    cx.float(formula!(|x| x.i0()), x)
}

/// `i0(x)` times `exp(-|x|)`, which does not overflow.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([0.0f32]).i0e().to_vec::<f32>(), [1.0]);
/// ```
#[op(inplace, samples = real_line)]
fn i0e(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    let out = cx.float_values(formula!(|x| x.i0e()), x)?;
    cx.grad(out, &[x], |g| {
        let x = in_full(g.saved(0));
        Ok((g.grad() * (x.i1e() - x.sign() * x.i0e())).cast(g.saved(0).dtype()))
    })
}

/// The modified Bessel function of the first kind of order 1.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([0.0f32]).i1().to_vec::<f32>(), [0.0]);
/// ```
#[op(inplace, samples = real_line)]
fn i1(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    let out = cx.float_values(formula!(|x| x.i1()), x)?;
    cx.grad(out, &[x], |g| {
        let x = in_full(g.saved(0));
        Ok((g.grad() * (x.i0() - over_x(&x.i1(), &x))).cast(g.saved(0).dtype()))
    })
}

/// `i1(x)` times `exp(-|x|)`, which does not overflow.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([0.0f32]).i1e().to_vec::<f32>(), [0.0]);
/// ```
#[op(inplace, samples = real_line)]
fn i1e(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    let out = cx.float_values(formula!(|x| x.i1e()), x)?;
    cx.grad(out, &[x], |g| {
        let x = in_full(g.saved(0));
        let y = x.i1e();
        Ok((g.grad() * (x.i0e() - x.sign() * &y - over_x(&y, &x))).cast(g.saved(0).dtype()))
    })
}

/// In float64: far out the functions of both orders are almost equal, and their difference is the slope.
fn in_full(x: &Tensor) -> Tensor {
    x.cast(DType::Float64)
}

/// `y / x` for a `y` of order 1: ½ with no slope at zero, where Bessel functions of order 1 go like x / 2.
fn over_x(y: &Tensor, x: &Tensor) -> Tensor {
    let zero = x.equal(0.0).cast(x.dtype());
    y * (1.0 - &zero) / (x + &zero) + zero * 0.5
}

fn gamma_line() -> Vec<Sample> {
    vec![
        sample![uniform([2, 3], 0.3, 4.0)],
        sample![values([-0.5f32, -1.3, 7.0, 30.0], [4])],
        sample![positive([])],
        sample![positive([0, 2])],
    ]
}
fn polygamma_samples() -> Vec<Sample> {
    vec![
        sample![uniform([2, 3], 0.5, 4.0), 1],
        sample![uniform([3], 0.5, 4.0), 2],
        sample![positive([]), 0],
        sample![positive([0, 2]), 3],
    ]
}
fn multigammaln_samples() -> Vec<Sample> {
    vec![
        sample![uniform([2, 3], 1.5, 4.0), 2],
        sample![uniform([], 1.5, 4.0), 3],
        sample![positive([4]), 1],
        sample![positive([0, 2]), 2],
    ]
}
fn gammainc_samples() -> Vec<Sample> {
    vec![
        sample![ints([2, 3], 1, 9), uniform([2, 3], 0.5, 9.0)],
        sample![ints([2, 1], 1, 4), uniform([3], 0.5, 4.0)]
            .peer("lambda x, y: getattr(torch.special, op)(x.to(y.dtype), y)"),
        sample![ints([], 1, 4), uniform([], 0.5, 4.0)],
        sample![ints([0, 2], 1, 4), positive([2])].peer("lambda x, y: getattr(torch.special, op)(x.to(y.dtype), y)"),
    ]
}
