//! Complex numbers: what floating-point arithmetic asks for beyond the textbook formulas, and elementwise loops.

pub(crate) mod loops;

use crate::{Element, Ordered};
use num_traits::{Float, FloatConst};

pub use num_complex::Complex;

/// The type of the real and the imaginary part: `f32` or `f64`.
pub trait Part: Ordered + Float + FloatConst {
    /// A constant.
    fn of(v: f64) -> Self;
}
impl Part for f32 {
    #[inline(always)]
    fn of(v: f64) -> f32 {
        v as f32
    }
}
impl Part for f64 {
    #[inline(always)]
    fn of(v: f64) -> f64 {
        v
    }
}

/// A complex element with the type of its parts, so that code can be written for both at once.
pub trait ComplexElement: Element {
    /// The type of its parts.
    type Part: Part;
    /// As a number of that type.
    fn number(self) -> Complex<Self::Part>;
    /// Back.
    fn element(z: Complex<Self::Part>) -> Self;
}
macro_rules! complex_element {
    ($($t:ty),*) => {$(
        impl ComplexElement for Complex<$t> {
            type Part = $t;
            #[inline(always)]
            fn number(self) -> Self { self }
            #[inline(always)]
            fn element(z: Self) -> Self { z }
        }
    )*};
}
complex_element!(f32, f64);

/// `a / b` without needless overflow (Smith, 1962).
#[inline(always)]
pub fn div<R: Part>(a: Complex<R>, b: Complex<R>) -> Complex<R> {
    if b.re.abs() >= b.im.abs() {
        if b.re.is_zero() {
            return Complex::new(a.re / b.re.abs(), a.im / b.re.abs());
        }
        let r = b.im / b.re;
        let d = b.re + b.im * r;
        Complex::new((a.re + a.im * r) / d, (a.im - a.re * r) / d)
    } else {
        let r = b.re / b.im;
        let d = b.re * r + b.im;
        Complex::new((a.re * r + a.im) / d, (a.im * r - a.re) / d)
    }
}

/// `z / |z|`, and 0 at 0.
#[inline(always)]
pub fn sgn<R: Part>(z: Complex<R>) -> Complex<R> {
    let size = z.re.hypot(z.im);
    if size.is_zero() { Complex::new(R::zero(), R::zero()) } else { z / size }
}

/// The root with a real part that is not negative.
#[inline(always)]
pub fn sqrt<R: Part>(z: Complex<R>) -> Complex<R> {
    if z.re.is_zero() && z.im.is_zero() {
        return Complex::new(R::zero(), z.im);
    }
    if z.im.is_infinite() {
        return Complex::new(z.im.abs(), z.im);
    }
    let half = R::of(0.5);
    // Halved first: the sum of two large parts must not overflow.
    let t = ((z.re * half).abs() + (z.re * half).hypot(z.im * half)).sqrt();
    let other = z.im.abs() * half / t;
    if z.re.is_sign_negative() { Complex::new(other, t.copysign(z.im)) } else { Complex::new(t, other.copysign(z.im)) }
}

/// The principal logarithm.
#[inline(always)]
pub fn ln<R: Part>(z: Complex<R>) -> Complex<R> {
    Complex::new(z.re.hypot(z.im).ln(), z.im.atan2(z.re))
}

/// `ln(1 + z)`, exact near zero.
#[inline(always)]
pub fn ln_1p<R: Part>(z: Complex<R>) -> Complex<R> {
    let (x, y) = (z.re, z.im);
    // |1 + z|² = 1 + (2x + x² + y²)
    let half = R::of(0.5);
    let size = if x.abs() < half && y.abs() < half {
        half * ((x + x) + x * x + y * y).ln_1p()
    } else {
        (R::one() + x).hypot(y).ln()
    };
    Complex::new(size, y.atan2(R::one() + x))
}

/// `eᶻ − 1`, exact near zero.
#[inline(always)]
pub fn exp_m1<R: Part>(z: Complex<R>) -> Complex<R> {
    let (small, sin) = (z.re.exp_m1(), z.im.sin());
    let half = (z.im * R::of(0.5)).sin();
    // eˣ cos y − 1 = (eˣ − 1) cos y − 2 sin²(y / 2)
    Complex::new(small * z.im.cos() - R::of(2.0) * half * half, (small + R::one()) * sin)
}

/// `eᶻ`.
#[inline(always)]
pub fn exp<R: Part>(z: Complex<R>) -> Complex<R> {
    z.exp()
}

/// Hyperbolic tangent (Kahan, 1987).
#[inline(always)]
pub fn tanh<R: Part>(z: Complex<R>) -> Complex<R> {
    if z.re.abs() > R::of(30.0) {
        let flat = R::of(4.0) * z.im.sin() * z.im.cos() * (R::of(-2.0) * z.re.abs()).exp();
        return Complex::new(z.re.signum(), if flat.is_finite() { flat } else { R::zero() });
    }
    let (t, s) = (z.im.tan(), z.re.sinh());
    let beta = R::one() + t * t;
    let rho = (R::one() + s * s).sqrt();
    if t.is_infinite() {
        return Complex::new(rho / s, R::one() / t);
    }
    let d = R::one() + beta * s * s;
    Complex::new(beta * rho * s / d, t / d)
}

/// Hyperbolic sine.
#[inline(always)]
pub fn sinh<R: Part>(z: Complex<R>) -> Complex<R> {
    Complex::new(z.re.sinh() * z.im.cos(), z.re.cosh() * z.im.sin())
}

/// Hyperbolic cosine.
#[inline(always)]
pub fn cosh<R: Part>(z: Complex<R>) -> Complex<R> {
    Complex::new(z.re.cosh() * z.im.cos(), z.re.sinh() * z.im.sin())
}

/// `i z`.
#[inline(always)]
fn turned<R: Part>(z: Complex<R>) -> Complex<R> {
    Complex::new(-z.im, z.re)
}

/// `−i z`.
#[inline(always)]
fn turned_back<R: Part>(z: Complex<R>) -> Complex<R> {
    Complex::new(z.im, -z.re)
}

/// Sine.
#[inline(always)]
pub fn sin<R: Part>(z: Complex<R>) -> Complex<R> {
    turned_back(sinh(turned(z)))
}

/// Cosine.
#[inline(always)]
pub fn cos<R: Part>(z: Complex<R>) -> Complex<R> {
    cosh(turned(z))
}

/// Tangent.
#[inline(always)]
pub fn tan<R: Part>(z: Complex<R>) -> Complex<R> {
    turned_back(tanh(turned(z)))
}

/// The principal inverse of the hyperbolic sine. (This and the following after Kahan, 1987: exact near the cuts.)
#[inline(always)]
pub fn asinh<R: Part>(z: Complex<R>) -> Complex<R> {
    let one = R::one();
    let a = sqrt(Complex::new(one + z.im, -z.re));
    let b = sqrt(Complex::new(one - z.im, z.re));
    Complex::new((a.re * b.im - b.re * a.im).asinh(), z.im.atan2(a.re * b.re - a.im * b.im))
}

/// The principal inverse of the hyperbolic cosine.
#[inline(always)]
pub fn acosh<R: Part>(z: Complex<R>) -> Complex<R> {
    let one = R::one();
    let a = sqrt(Complex::new(z.re - one, z.im));
    let b = sqrt(Complex::new(z.re + one, z.im));
    Complex::new((a.re * b.re + a.im * b.im).asinh(), R::of(2.0) * a.im.atan2(b.re))
}

/// The principal inverse of the hyperbolic tangent.
#[inline(always)]
pub fn atanh<R: Part>(z: Complex<R>) -> Complex<R> {
    let (one, x, y) = (R::one(), z.re, z.im);
    let near = one - x.abs();
    let re = (R::of(4.0) * x.abs() / (near * near + y * y)).ln_1p() * R::of(0.25);
    let im = (y + y).atan2(near * (one + x.abs()) - y * y) * R::of(0.5);
    Complex::new(re.copysign(x), im)
}

/// The angle whose sine it is.
#[inline(always)]
pub fn asin<R: Part>(z: Complex<R>) -> Complex<R> {
    turned_back(asinh(turned(z)))
}

/// The angle whose cosine it is.
#[inline(always)]
pub fn acos<R: Part>(z: Complex<R>) -> Complex<R> {
    let one = R::one();
    let a = sqrt(Complex::new(one - z.re, -z.im));
    let b = sqrt(Complex::new(one + z.re, z.im));
    Complex::new(R::of(2.0) * a.re.atan2(b.re), (b.re * a.im - b.im * a.re).asinh())
}

/// The angle whose tangent it is.
#[inline(always)]
pub fn atan<R: Part>(z: Complex<R>) -> Complex<R> {
    turned_back(atanh(turned(z)))
}

/// `1 / z`.
#[inline(always)]
pub fn recip<R: Part>(z: Complex<R>) -> Complex<R> {
    div(Complex::new(R::one(), R::zero()), z)
}

/// `1 / (1 + e⁻ᶻ)`, without overflow: the side on which the exponential is small is computed.
#[inline(always)]
pub fn sigmoid<R: Part>(z: Complex<R>) -> Complex<R> {
    let one = Complex::new(R::one(), R::zero());
    if z.re.is_sign_negative() {
        let e = exp(z);
        div(e, one + e)
    } else {
        div(one, one + exp(-z))
    }
}

/// `a` to the power of `b`; `0⁰ = 1`.
#[inline(always)]
pub fn pow<R: Part>(a: Complex<R>, b: Complex<R>) -> Complex<R> {
    let (zero, one) = (R::zero(), R::one());
    if b.re.is_zero() && b.im.is_zero() {
        return Complex::new(one, zero);
    }
    if b.im.is_zero() && b.re.abs() <= R::of(64.0) && b.re.fract().is_zero() {
        // Few multiplications are closer than a logarithm and an exponential.
        let whole = a.powu(b.re.abs().to_u32().unwrap_or(0));
        return if b.re < zero { div(Complex::new(one, zero), whole) } else { whole };
    }
    if a.re.is_zero() && a.im.is_zero() && b.re > zero {
        return Complex::new(zero, zero);
    }
    exp(b * ln(a))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Complex128;

    fn near(a: Complex128, b: Complex128) {
        assert!((a - b).norm() <= 1e-12 * (1.0 + b.norm()), "{a} against {b}");
    }

    #[test]
    fn functions_agree_with_their_definitions() {
        for &(x, y) in &[(0.3, 0.4), (-1.2, 0.7), (2.5, -3.1), (-0.4, -2.2), (1e-3, 1e-4), (5.0, 1.0)] {
            let z = Complex128::new(x, y);
            let one = Complex128::new(1.0, 0.0);
            near(sqrt(z) * sqrt(z), z);
            assert!(sqrt(z).re >= 0.0);
            near(exp(ln(z)), z);
            near(ln_1p(z), ln(one + z));
            near(exp_m1(z), exp(z) - one);
            near(sin(z) * sin(z) + cos(z) * cos(z), one);
            near(sinh(z), (exp(z) - exp(-z)) / 2.0);
            near(cosh(z), (exp(z) + exp(-z)) / 2.0);
            near(tanh(z), div(sinh(z), cosh(z)));
            near(tan(z), div(sin(z), cos(z)));
            near(sigmoid(z), div(one, one + exp(-z)));
            near(sinh(asinh(z)), z);
            near(cosh(acosh(z)), z);
            near(tanh(atanh(z)), z);
            near(sin(asin(z)), z);
            near(cos(acos(z)), z);
            near(tan(atan(z)), z);
            assert!(
                acosh(z).re >= 0.0
                    && acos(z).re >= 0.0
                    && asin(z).re.abs() <= std::f64::consts::FRAC_PI_2
                    && atan(z).re.abs() <= std::f64::consts::FRAC_PI_2
            );
            near(div(z, Complex128::new(0.3, -0.8)) * Complex128::new(0.3, -0.8), z);
            near(pow(z, Complex128::new(3.0, 0.0)), z * z * z);
            near(pow(z, Complex128::new(-2.0, 0.0)), div(one, z * z));
            near(pow(z, Complex128::new(0.5, 0.0)), sqrt(z));
        }
    }

    #[test]
    fn large_and_special_values_stay_finite() {
        let big = Complex128::new(1e300, 1e300);
        near(div(big, big), Complex128::new(1.0, 0.0));
        assert!(sqrt(big * 1e7).re.is_finite());
        near(tanh(Complex128::new(800.0, 1.0)), Complex128::new(1.0, 0.0));
        near(sigmoid(Complex128::new(-800.0, 1.0)), Complex128::new(0.0, 0.0));
        assert_eq!(sqrt(Complex128::new(-4.0, -0.0)), Complex128::new(0.0, -2.0));
        assert_eq!(sgn(Complex128::new(0.0, 0.0)), Complex128::new(0.0, 0.0));
        assert_eq!(pow(Complex128::new(0.0, 0.0), Complex128::new(2.5, 0.0)), Complex128::new(0.0, 0.0));
    }
}
