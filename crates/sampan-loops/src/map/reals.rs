//! The loops on real numbers. Those that vectorise are compiled for each instruction set; the others call a library
//! function for each number.

use super::tables::{Loop1, Loop2, Pair};
use crate::simd::simd_fn;
use crate::special;
use crate::vmath::{Real, select};
use crate::vmath_f32::WIDEST_ANGLE;
use sampan_formula::{Binary, Unary};

/// A loop over slices, compiled for each instruction set.
macro_rules! vector {
    (|$x:ident| $e:expr) => {{
        simd_fn! {
            fn run[T: Real](x: &'a [T], y: &'a mut [T]) {
                for (y, &$x) in y.iter_mut().zip(x) {
                    *y = $e;
                }
            }
        }
        Some(run::<T> as Loop1<T>)
    }};
    (|$x:ident, $y:ident| $e:expr) => {{
        simd_fn! {
            fn run[T: Real](a: &'a [T], b: &'a [T], y: &'a mut [T]) {
                for ((y, &$x), &$y) in y.iter_mut().zip(a).zip(b) {
                    *y = $e;
                }
            }
        }
        run::<T> as Loop2<T>
    }};
}

/// The loops of an operation that often meets a single number: on the right, and with `either` on the left too. Where both
/// sides are alike, one loop is enough.
macro_rules! pair {
    (|$x:ident, $y:ident| $e:expr) => {{
        simd_fn! {
            fn right[T: Real](a: &'a [T], $y: T, y: &'a mut [T]) {
                for (y, &$x) in y.iter_mut().zip(a) {
                    *y = $e;
                }
            }
        }
        Some(Pair { slices: vector!(|$x, $y| $e), right: Some(right::<T>), left: None, swaps: false })
    }};
    (alike |$x:ident, $y:ident| $e:expr) => {{
        let pair: Option<Pair<T>> = pair!(|$x, $y| $e);
        pair.map(|pair| Pair { swaps: true, ..pair })
    }};
    (either |$x:ident, $y:ident| $e:expr) => {{
        simd_fn! {
            fn left[T: Real]($x: T, b: &'a [T], y: &'a mut [T]) {
                for (y, &$y) in y.iter_mut().zip(b) {
                    *y = $e;
                }
            }
        }
        let pair: Option<Pair<T>> = pair!(|$x, $y| $e);
        pair.map(|pair| Pair { left: Some(left::<T>), ..pair })
    }};
}

/// A loop that calls a function for each number.
macro_rules! each {
    (|$x:ident| $e:expr) => {{
        fn run<T: Real>(x: &[T], y: &mut [T]) {
            for (y, &$x) in y.iter_mut().zip(x) {
                *y = $e;
            }
        }
        Some((|x, y| run::<T>(x, y)) as Loop1<T>)
    }};
    (|$x:ident, $y:ident| $e:expr) => {{
        fn run<T: Real>(a: &[T], b: &[T], y: &mut [T]) {
            for ((y, &$x), &$y) in y.iter_mut().zip(a).zip(b) {
                *y = $e;
            }
        }
        Some(Pair { slices: (|a, b, y| run::<T>(a, b, y)) as Loop2<T>, right: None, left: None, swaps: false })
    }};
}

/// A loop for angles of any size.
macro_rules! angle {
    (|$x:ident| $e:expr, $wide:expr) => {{
        simd_fn! {
            fn run[T: Real](x: &'a [T], y: &'a mut [T]) {
                for (y, &$x) in y.iter_mut().zip(x) {
                    *y = $e;
                }
                if T::EPSILON.to_f64() > f64::EPSILON {
                    let limit = T::of(WIDEST_ANGLE);
                    let mut far = false;
                    for &x in x {
                        far |= x.abs() > limit;
                    }
                    if far {
                        in_f64($wide, x, y, limit);
                    }
                }
            }
        }
        Some(run::<T> as Loop1<T>)
    }};
}

/// Computes in `f64` what lies beyond the limit.
#[cold]
#[inline(never)]
fn in_f64<T: Real>(f: fn(f64) -> f64, x: &[T], y: &mut [T], limit: T) {
    for (y, &x) in y.iter_mut().zip(x) {
        if x.abs() > limit {
            *y = T::of(f(x.to_f64()));
        }
    }
}

#[inline(always)]
fn truth<T: Real>(b: bool) -> T {
    select(b, T::ONE, T::ZERO)
}

/// The loop of an operation on one number.
pub fn unary<T: Real>(op: Unary) -> Option<Loop1<T>> {
    match op {
        Unary::Neg => vector!(|x| -x),
        Unary::Abs => vector!(|x| x.abs()),
        Unary::Sign => vector!(|x| x.sign()),
        Unary::Recip => vector!(|x| x.recip()),
        Unary::Sqrt => vector!(|x| x.sqrt()),
        Unary::Rsqrt => vector!(|x| x.rsqrt()),
        Unary::Exp => vector!(|x| x.exp()),
        Unary::Exp2 => each!(|x| x.exp2()),
        Unary::Expm1 => vector!(|x| x.expm1()),
        Unary::Ln => vector!(|x| x.ln()),
        Unary::Log2 => each!(|x| x.log2()),
        Unary::Log10 => each!(|x| x.log10()),
        Unary::Log1p => vector!(|x| x.log1p()),
        Unary::Sin => angle!(|x| x.sin(), f64::sin),
        Unary::Cos => angle!(|x| x.cos(), f64::cos),
        Unary::Tan => angle!(|x| x.tan(), f64::tan),
        Unary::Asin => each!(|x| x.asin()),
        Unary::Acos => each!(|x| x.acos()),
        Unary::Atan => each!(|x| x.atan()),
        Unary::Sinh => each!(|x| x.sinh()),
        Unary::Cosh => each!(|x| x.cosh()),
        Unary::Tanh => vector!(|x| x.tanh()),
        Unary::Asinh => each!(|x| x.asinh()),
        Unary::Acosh => each!(|x| x.acosh()),
        Unary::Atanh => each!(|x| x.atanh()),
        Unary::Sigmoid => vector!(|x| x.sigmoid()),
        Unary::Softplus => vector!(|x| x.softplus()),
        Unary::Erf => vector!(|x| x.erf()),
        Unary::Erfinv => each!(|x| x.erfinv()),
        Unary::Lgamma => each!(|x| x.lgamma()),
        Unary::Digamma => each!(|x| x.digamma()),
        Unary::I0 => each!(|x| x.i0()),
        Unary::I0e => each!(|x| x.i0e()),
        Unary::I1 => each!(|x| x.i1()),
        Unary::I1e => each!(|x| x.i1e()),
        Unary::Floor => vector!(|x| x.floor()),
        Unary::Ceil => vector!(|x| x.ceil()),
        Unary::Round => vector!(|x| x.round()),
        Unary::Trunc => vector!(|x| x.trunc()),
        Unary::Mantissa => each!(|x| T::of(special::split(x.to_f64()).0)),
        Unary::Exponent => each!(|x| T::of(special::split(x.to_f64()).1)),
        Unary::IsNan => vector!(|x| truth(x.is_nan())),
        Unary::IsInf => vector!(|x| truth(x.is_inf())),
        Unary::IsFinite => vector!(|x| truth(x.is_finite())),
        Unary::SignBit => each!(|x| truth(x.to_f64().is_sign_negative())),
        Unary::Not => vector!(|x| truth(x == T::ZERO)),
        Unary::Conj | Unary::Re => vector!(|x| x),
        Unary::Im | Unary::Angle | Unary::BitNot => None,
    }
}

/// The loops of an operation on two numbers.
pub fn binary<T: Real>(op: Binary) -> Option<Pair<T>> {
    match op {
        Binary::Add => pair!(alike | x, y | x + y),
        Binary::Sub => pair!(either | x, y | x - y),
        Binary::Mul => pair!(alike | x, y | x * y),
        Binary::Times => pair!(alike | x, y | select((x == T::ZERO) | (y == T::ZERO), T::ZERO, x * y)),
        Binary::Div => pair!(either | x, y | x / y),
        Binary::Pow => pair!(|x, y| x.powf(y)),
        Binary::Atan2 => each!(|x, y| x.atan2(y)),
        Binary::Hypot => each!(|x, y| x.hypot(y)),
        Binary::Min => pair!(|x, y| x.min(y)),
        Binary::Max => pair!(|x, y| x.max(y)),
        Binary::Fmin => pair!(|x, y| x.fmin(y)),
        Binary::Fmax => pair!(|x, y| x.fmax(y)),
        Binary::Remainder => each!(|x, y| x.rem_floor(y)),
        Binary::Fmod => each!(|x, y| x.fmod(y)),
        Binary::FloorDiv => each!(|x, y| {
            let q = (x - x.rem_floor(y)) / y;
            // Infinities and NaN follow the plain quotient.
            if q.is_finite() { q.round() } else { (x / y).floor() }
        }),
        Binary::Copysign => pair!(|x, y| x.copysign(y)),
        Binary::NextAfter => each!(|x, y| x.next_after(y)),
        Binary::Lt => pair!(|x, y| truth(x < y)),
        Binary::Le => pair!(|x, y| truth(x <= y)),
        Binary::Gt => pair!(|x, y| truth(x > y)),
        Binary::Ge => pair!(|x, y| truth(x >= y)),
        Binary::Eq => pair!(alike | x, y | truth(x == y)),
        Binary::Ne => pair!(alike | x, y | truth(x != y)),
        Binary::And => pair!(alike | x, y | truth(x != T::ZERO && y != T::ZERO)),
        Binary::Or => pair!(alike | x, y | truth(x != T::ZERO || y != T::ZERO)),
        Binary::Polygamma => each!(|x, y| T::of(special::polygamma(x.to_f64() as u32, y.to_f64()))),
        Binary::Gammainc => each!(|x, y| T::of(special::gammainc(x.to_f64(), y.to_f64()))),
        Binary::Gammaincc => each!(|x, y| T::of(special::gammaincc(x.to_f64(), y.to_f64()))),
        Binary::BitAnd | Binary::BitOr | Binary::BitXor | Binary::Shl | Binary::Shr => None,
        Binary::Complex | Binary::Gcd | Binary::Lcm => None,
    }
}

simd_fn! {
    /// Takes from `a` where the condition holds, else from `b`.
    pub fn select_loop[T: Real](c: &'a [T], a: &'a [T], b: &'a [T], y: &'a mut [T]) {
        for (((y, &c), &a), &b) in y.iter_mut().zip(c).zip(a).zip(b) {
            *y = select(c != T::ZERO, a, b);
        }
    }
}
