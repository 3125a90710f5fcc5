//! Mathematics of `f32` and `f64` behind one trait, so that an op is written once for both. The `f32` functions that
//! networks spend their time in are branch-free and vectorise; see [`crate::vmath_f32`].

use crate::{Ordered, vmath_f32 as fast};
use std::ops::{Add, AddAssign, Div, DivAssign, Mul, MulAssign, Neg, Sub, SubAssign};

/// The one function of two arguments that is written by hand for `f32` only.
trait Power {
    fn power(self, y: Self) -> Self;
}
impl Power for f32 {
    #[inline(always)]
    fn power(self, y: f32) -> f32 {
        fast::powf(self, y)
    }
}
impl Power for f64 {
    #[inline(always)]
    fn power(self, y: f64) -> f64 {
        f64::powf(self, y)
    }
}

macro_rules! real {
    (
        common { $($(#[$cm:meta])* fn $cn:ident($($ca:ident: $ct:ty),*) -> $cr:ty = $ce:expr;)* }
        each { $($(#[$em:meta])* fn $en:ident() = $e32:expr, $e64:expr;)* }
    ) => {
        /// A real number that kernels compute with: `f32` or `f64`. The half types are widened to `f32` first.
        pub trait Real:
            Ordered
            + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self> + Neg<Output = Self>
            + AddAssign + SubAssign + MulAssign + DivAssign
        {
            /// Zero.
            const ZERO: Self;
            /// One.
            const ONE: Self;
            /// Positive infinity.
            const INFINITY: Self;
            /// Not a number.
            const NAN: Self;
            /// The distance from one to the next number.
            const EPSILON: Self;
            /// The nearest value to a literal.
            fn of(v: f64) -> Self;
            $($(#[$cm])* fn $cn(self, $($ca: $ct),*) -> $cr;)*
            $($(#[$em])* fn $en(self) -> Self;)*
        }
        real!(@impl f32; $($cn($($ca: $ct),*) -> $cr = $ce;)* ; $($en = $e32;)*);
        real!(@impl f64; $($cn($($ca: $ct),*) -> $cr = $ce;)* ; $($en = $e64;)*);
    };
    (@impl $t:ident; $($cn:ident($($ca:ident: $ct:ty),*) -> $cr:ty = $ce:expr;)* ; $($en:ident = $ee:expr;)*) => {
        impl Real for $t {
            const ZERO: $t = 0.0;
            const ONE: $t = 1.0;
            const INFINITY: $t = $t::INFINITY;
            const NAN: $t = $t::NAN;
            const EPSILON: $t = $t::EPSILON;
            #[inline(always)]
            fn of(v: f64) -> $t { v as $t }
            $(#[inline(always)] fn $cn(self, $($ca: $ct),*) -> $cr { ($ce)(self, $($ca),*) })*
            $(#[inline(always)] fn $en(self) -> $t { ($ee)(self) })*
        }
    };
}

real! {
    common {
        /// Absolute value.
        fn abs() -> Self = Self::abs;
        /// Square root.
        fn sqrt() -> Self = Self::sqrt;
        /// One over the square root.
        fn rsqrt() -> Self = |x: Self| 1.0 / Self::sqrt(x);
        /// One over it.
        fn recip() -> Self = |x: Self| 1.0 / x;
        /// The square.
        fn square() -> Self = |x: Self| x * x;
        /// Largest integer not above it.
        fn floor() -> Self = Self::floor;
        /// Smallest integer not below it.
        fn ceil() -> Self = Self::ceil;
        /// Nearest integer, ties to even.
        fn round() -> Self = Self::round_ties_even;
        /// Towards zero.
        fn trunc() -> Self = Self::trunc;
        /// −1, 0 or 1; NaN stays NaN.
        fn sign() -> Self = |x: Self| if x > 0.0 { 1.0 } else if x < 0.0 { -1.0 } else if x == 0.0 { 0.0 } else { x };
        /// Its magnitude with the sign of `s`.
        fn copysign(s: Self) -> Self = Self::copysign;
        /// To the power `y`.
        fn powf(y: Self) -> Self = <Self as Power>::power;
        /// To an integer power.
        fn powi(n: i32) -> Self = Self::powi;
        /// Angle of the point (`x`, self).
        fn atan2(x: Self) -> Self = Self::atan2;
        /// Length of the vector (self, `y`).
        fn hypot(y: Self) -> Self = Self::hypot;
        /// `self * a + b` rounded once.
        fn mul_add(a: Self, b: Self) -> Self = Self::mul_add;
        /// The smaller; NaN if either is.
        fn min(y: Self) -> Self = |x: Self, y: Self| if x < y || Self::is_nan(x) { x } else { y };
        /// The larger; NaN if either is.
        fn max(y: Self) -> Self = |x: Self, y: Self| if x > y || Self::is_nan(x) { x } else { y };
        /// The smaller; the other one where one is NaN.
        fn fmin(y: Self) -> Self = |x: Self, y: Self| if x < y || Self::is_nan(y) { x } else { y };
        /// The larger; the other one where one is NaN.
        fn fmax(y: Self) -> Self = |x: Self, y: Self| if x > y || Self::is_nan(y) { x } else { y };
        /// Remainder with the sign of the divisor, as Python has it.
        fn rem_floor(y: Self) -> Self = |x: Self, y: Self| {
            let r = x % y;
            if r != 0.0 && ((r < 0.0) != (y < 0.0)) { r + y } else { r }
        };
        /// Remainder with the sign of the dividend, as C's `fmod` has it.
        fn fmod(y: Self) -> Self = |x: Self, y: Self| x % y;
        /// Neither infinite nor NaN?
        fn is_finite() -> bool = |x: Self| Self::abs(x) < Self::INFINITY;
        /// Infinite of either sign?
        fn is_inf() -> bool = |x: Self| Self::abs(x) == Self::INFINITY;
        /// The next number towards `y`.
        fn next_after(y: Self) -> Self = |x: Self, y: Self| {
            if x < y {
                Self::next_up(x)
            } else if x > y {
                Self::next_down(x)
            } else if x == y {
                y
            } else {
                Self::NAN
            }
        };
        /// 1 where it is not negative and not NaN, else 0.
        fn step() -> Self = |x: Self| if x >= 0.0 { 1.0 } else { 0.0 };
        /// ln(1 + eˣ), without overflow.
        fn softplus() -> Self = |x: Self| {
            Real::max(x, 0.0) + Real::log1p(Real::exp(-Self::abs(x)))
        };
    }
    each {
        /// eˣ.
        fn exp() = fast::exp, f64::exp;
        /// [`Real::exp`] for |x| ≤ 80.
        fn exp_of_few() = fast::exp_of_few, f64::exp;
        /// [`Real::expm1`] for 0 ≤ x ≤ 80.
        fn expm1_of_few() = fast::expm1_of_few, f64::exp_m1;
        /// 2ˣ.
        fn exp2() = f32::exp2, f64::exp2;
        /// eˣ − 1, exact near 0.
        fn expm1() = fast::expm1, f64::exp_m1;
        /// Natural logarithm.
        fn ln() = fast::ln, f64::ln;
        /// Logarithm to base 2.
        fn log2() = f32::log2, f64::log2;
        /// Logarithm to base 10.
        fn log10() = f32::log10, f64::log10;
        /// ln(1 + x), exact near 0.
        fn log1p() = fast::log1p, f64::ln_1p;
        /// Sine.
        fn sin() = fast::sin, f64::sin;
        /// Cosine.
        fn cos() = fast::cos, f64::cos;
        /// Tangent.
        fn tan() = fast::tan, f64::tan;
        /// Arc sine.
        fn asin() = f32::asin, f64::asin;
        /// Arc cosine.
        fn acos() = f32::acos, f64::acos;
        /// Arc tangent.
        fn atan() = f32::atan, f64::atan;
        /// Hyperbolic sine.
        fn sinh() = |x: f32| f64::sinh(x as f64) as f32, f64::sinh;
        /// Hyperbolic cosine.
        fn cosh() = |x: f32| f64::cosh(x as f64) as f32, f64::cosh;
        /// Hyperbolic tangent.
        fn tanh() = fast::tanh, f64::tanh;
        /// Inverse hyperbolic sine.
        fn asinh() = |x: f32| f64::asinh(x as f64) as f32, libm::asinh;
        /// Inverse hyperbolic cosine.
        fn acosh() = |x: f32| f64::acosh(x as f64) as f32, libm::acosh;
        /// Inverse hyperbolic tangent.
        fn atanh() = |x: f32| f64::atanh(x as f64) as f32, libm::atanh;
        /// The error function.
        fn erf() = fast::erf, libm::erf;
        /// One minus the error function.
        fn erfc() = libm::erfcf, libm::erfc;
        /// 1 / (1 + e⁻ˣ).
        fn sigmoid() = fast::sigmoid, |x: f64| 1.0 / (1.0 + f64::exp(-x));
        /// ln |Γ(x)|.
        fn lgamma() = |x: f32| crate::special::lgamma(x as f64) as f32, crate::special::lgamma;
        /// Derivative of [`Real::lgamma`].
        fn digamma() = |x: f32| crate::special::digamma(x as f64) as f32, crate::special::digamma;
        /// Inverse of [`Real::erf`].
        fn erfinv() = |x: f32| crate::special::erfinv(x as f64) as f32, crate::special::erfinv;
        /// Modified Bessel function of order 0.
        fn i0() = |x: f32| crate::special::i0(x as f64) as f32, crate::special::i0;
        /// [`Real::i0`] times e⁻|ˣ|.
        fn i0e() = |x: f32| crate::special::i0e(x as f64) as f32, crate::special::i0e;
        /// Modified Bessel function of order 1.
        fn i1() = |x: f32| crate::special::i1(x as f64) as f32, crate::special::i1;
        /// [`Real::i1`] times e⁻|ˣ|.
        fn i1e() = |x: f32| crate::special::i1e(x as f64) as f32, crate::special::i1e;
    }
}

/// `a` where `cond` holds, else `b`; both are computed, so that loops vectorise. An `if` would become a choice between two
/// addresses where both are read from memory, and that a gather.
#[inline(always)]
pub fn select<T: Copy>(cond: bool, a: T, b: T) -> T {
    std::hint::select_unpredictable(cond, a, b)
}
