//! The loops of formulas on complex numbers.

use super::{self as complex, Complex, Part};
use crate::map::tables::{Loop1, Loop2, Pair};
use crate::{Element, Ordered};
use sampan_formula::{Binary, Unary};

macro_rules! each {
    (|$x:ident| $e:expr) => {{
        fn run<R: Part>(x: &[Complex<R>], y: &mut [Complex<R>]) {
            for (y, &$x) in y.iter_mut().zip(x) {
                *y = $e;
            }
        }
        Some((|x, y| run::<R>(x, y)) as Loop1<Complex<R>>)
    }};
    (|$x:ident, $y:ident| $e:expr) => {{
        fn run<R: Part>(a: &[Complex<R>], b: &[Complex<R>], y: &mut [Complex<R>]) {
            for ((y, &$x), &$y) in y.iter_mut().zip(a).zip(b) {
                *y = $e;
            }
        }
        Some(Pair { slices: (|a, b, y| run::<R>(a, b, y)) as Loop2<Complex<R>>, right: None, left: None, swaps: false })
    }};
}

fn truth<R: Part>(b: bool) -> Complex<R> {
    real(if b { R::one() } else { R::zero() })
}

fn real<R: Part>(re: R) -> Complex<R> {
    Complex::new(re, R::zero())
}

fn is_zero<R: Part>(z: Complex<R>) -> bool {
    z == Complex::new(R::zero(), R::zero())
}

/// The loop of an operation on one number.
pub fn unary<R: Part>(op: Unary) -> Option<Loop1<Complex<R>>>
where
    Complex<R>: Element,
{
    match op {
        Unary::Neg => each!(|z| -z),
        Unary::Abs => each!(|z| real(R::of(z.re.to_f64().hypot(z.im.to_f64())))),
        Unary::Sign => each!(|z| complex::sgn(z)),
        Unary::Recip => each!(|z| complex::recip(z)),
        Unary::Sqrt => each!(|z| complex::sqrt(z)),
        Unary::Rsqrt => each!(|z| complex::recip(complex::sqrt(z))),
        Unary::Exp => each!(|z| complex::exp(z)),
        Unary::Expm1 => each!(|z| complex::exp_m1(z)),
        Unary::Ln => each!(|z| complex::ln(z)),
        Unary::Log2 => each!(|z| complex::ln(z) / R::LN_2()),
        Unary::Log10 => each!(|z| complex::ln(z) / R::LN_10()),
        Unary::Log1p => each!(|z| complex::ln_1p(z)),
        Unary::Sin => each!(|z| complex::sin(z)),
        Unary::Cos => each!(|z| complex::cos(z)),
        Unary::Tan => each!(|z| complex::tan(z)),
        Unary::Asin => each!(|z| complex::asin(z)),
        Unary::Acos => each!(|z| complex::acos(z)),
        Unary::Atan => each!(|z| complex::atan(z)),
        Unary::Sinh => each!(|z| complex::sinh(z)),
        Unary::Cosh => each!(|z| complex::cosh(z)),
        Unary::Tanh => each!(|z| complex::tanh(z)),
        Unary::Asinh => each!(|z| complex::asinh(z)),
        Unary::Acosh => each!(|z| complex::acosh(z)),
        Unary::Atanh => each!(|z| complex::atanh(z)),
        Unary::Sigmoid => each!(|z| complex::sigmoid(z)),
        Unary::IsNan => each!(|z| truth(Ordered::is_nan(z.re) || Ordered::is_nan(z.im))),
        Unary::IsInf => each!(|z| truth(z.re.is_infinite() || z.im.is_infinite())),
        Unary::IsFinite => each!(|z| truth(z.re.is_finite() && z.im.is_finite())),
        Unary::Not => each!(|z| truth(is_zero(z))),
        Unary::Conj => each!(|z| z.conj()),
        Unary::Re => each!(|z| real(z.re)),
        Unary::Im => each!(|z| real(z.im)),
        Unary::Angle => each!(|z| real(R::of(z.im.to_f64().atan2(z.re.to_f64())))),
        _ => None,
    }
}

/// The loops of an operation on two numbers.
pub fn binary<R: Part>(op: Binary) -> Option<Pair<Complex<R>>>
where
    Complex<R>: Element,
{
    match op {
        Binary::Add => each!(|x, y| x + y),
        Binary::Sub => each!(|x, y| x - y),
        Binary::Mul => each!(|x, y| x * y),
        Binary::Times => each!(|x, y| if is_zero(x) || is_zero(y) { real(R::zero()) } else { x * y }),
        Binary::Div => each!(|x, y| complex::div(x, y)),
        Binary::Pow => each!(|x, y| complex::pow(x, y)),
        Binary::Eq => each!(|x, y| truth(x == y)),
        Binary::Ne => each!(|x, y| truth(x != y)),
        // Who orders complex numbers means real ones among them, such as magnitudes.
        Binary::Lt => each!(|x, y| truth(x.re < y.re)),
        Binary::Le => each!(|x, y| truth(x.re <= y.re)),
        Binary::Gt => each!(|x, y| truth(x.re > y.re)),
        Binary::Ge => each!(|x, y| truth(x.re >= y.re)),
        Binary::Complex => each!(|x, y| Complex::new(x.re, y.re)),
        Binary::And => each!(|x, y| truth(!is_zero(x) && !is_zero(y))),
        Binary::Or => each!(|x, y| truth(!is_zero(x) || !is_zero(y))),
        _ => None,
    }
}

/// Takes from `a` where the condition holds, else from `b`.
pub fn select_loop<'a, R: Part>(
    c: &'a [Complex<R>],
    a: &'a [Complex<R>],
    b: &'a [Complex<R>],
    y: &'a mut [Complex<R>],
) {
    for (((y, &c), &a), &b) in y.iter_mut().zip(c).zip(a).zip(b) {
        *y = if is_zero(c) { b } else { a };
    }
}
