//! What the rules of the optimizers ask of a number besides arithmetic. A rule is written once and read twice: over numbers
//! for the CPU, and over what becomes the text of a kernel for a GPU.

use crate::vmath::Real;
use sampan_formula::{Number, select};

/// A number, or one of a formula that is being written.
pub(super) trait Scalar: Copy {
    /// Zero of the same kind.
    fn zero(self) -> Self;
    /// One of three, by the sign.
    fn by_sign(self, plus: Self, zero: Self, minus: Self) -> Self;
}

impl<T: Real> Scalar for T {
    #[inline(always)]
    fn zero(self) -> T {
        T::ZERO
    }
    #[inline(always)]
    fn by_sign(self, plus: T, zero: T, minus: T) -> T {
        crate::vmath::select(self > T::ZERO, plus, crate::vmath::select(self < T::ZERO, minus, zero))
    }
}

impl Scalar for Number {
    fn zero(self) -> Number {
        0.0.into()
    }
    fn by_sign(self, plus: Number, zero: Number, minus: Number) -> Number {
        select(self.gt(0.0), plus, select(self.lt(0.0), minus, zero))
    }
}
