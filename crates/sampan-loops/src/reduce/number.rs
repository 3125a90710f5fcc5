//! Numbers that can be reduced.

use crate::cast::cast_slice;
use crate::{Ordered, bf16, f16};

/// A number that can be reduced. Half types accumulate in `f32`; integers wrap.
pub trait Number: Ordered {
    /// What it accumulates in.
    type Acc: Number<Acc = Self::Acc>;
    /// What a long chain of sums or products is kept in, where every step rounds: `f64` for floats.
    type Chain: Number;
    /// Below or equal to everything.
    const LOWEST: Self;
    /// Above or equal to everything.
    const HIGHEST: Self;
    /// Sum.
    fn add(self, y: Self) -> Self;
    /// Product.
    fn mul(self, y: Self) -> Self;
    /// The larger; NaN if either is.
    fn larger(self, y: Self) -> Self;
    /// The smaller; NaN if either is.
    fn smaller(self, y: Self) -> Self;
    /// A slice to the accumulating type.
    fn load(src: &[Self], dst: &mut [Self::Acc]) {
        cast_slice(src, dst);
    }
    /// A slice back.
    fn store(src: &[Self::Acc], dst: &mut [Self]) {
        cast_slice(src, dst);
    }
}

macro_rules! number {
    ($($t:ty, $acc:ty, $chain:ty, $low:expr, $high:expr, $add:expr, $mul:expr;)*) => {$(
        impl Number for $t {
            type Acc = $acc;
            type Chain = $chain;
            const LOWEST: $t = $low;
            const HIGHEST: $t = $high;
            #[inline(always)]
            fn add(self, y: $t) -> $t { ($add)(self, y) }
            #[inline(always)]
            fn mul(self, y: $t) -> $t { ($mul)(self, y) }
            #[inline(always)]
            fn larger(self, y: $t) -> $t {
                // One instruction for numbers, which is right for a NaN on the right too.
                let m = if self > y { self } else { y };
                if Ordered::is_nan(self) { self } else { m }
            }
            #[inline(always)]
            fn smaller(self, y: $t) -> $t {
                let m = if self < y { self } else { y };
                if Ordered::is_nan(self) { self } else { m }
            }
        }
    )*};
}
macro_rules! int_number {
    ($($t:ty),*) => { number! { $($t, $t, $t, <$t>::MIN, <$t>::MAX, <$t>::wrapping_add, <$t>::wrapping_mul;)* } };
}
int_number!(u8, i8, i16, i32, i64);
number! {
    f32, f32, f64, f32::NEG_INFINITY, f32::INFINITY, |x: f32, y: f32| x + y, |x: f32, y: f32| x * y;
    f64, f64, f64, f64::NEG_INFINITY, f64::INFINITY, |x: f64, y: f64| x + y, |x: f64, y: f64| x * y;
    f16, f32, f64, f16::NEG_INFINITY, f16::INFINITY, |x: f16, y: f16| x + y, |x: f16, y: f16| x * y;
    bf16, f32, f64, bf16::NEG_INFINITY, bf16::INFINITY, |x: bf16, y: bf16| x + y, |x: bf16, y: bf16| x * y;
}
