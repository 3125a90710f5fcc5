//! The numbers that products are computed in, and what their vectors do.

use crate::vmath::Real;
use pulp::Simd;

/// A number with vectors: `f32` and `f64`.
pub(crate) trait Lane: Real {
    /// A vector of the instruction set `S`.
    type Vector<S: Simd>: Copy;

    /// How many numbers a vector has.
    #[inline(always)]
    fn lanes<S: Simd>() -> usize {
        size_of::<Self::Vector<S>>() / size_of::<Self>()
    }
    fn splat<S: Simd>(self, simd: S) -> Self::Vector<S>;
    fn plus<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S>;
    /// `a * b + c`.
    fn times_plus<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>, c: Self::Vector<S>) -> Self::Vector<S>;
    /// The sum of all lanes.
    fn total<S: Simd>(simd: S, a: Self::Vector<S>) -> Self;
    /// As many numbers as the slice has, and zeros.
    fn load<S: Simd>(simd: S, from: &[Self]) -> Self::Vector<S>;
    /// As many numbers as the slice has.
    fn store<S: Simd>(simd: S, to: &mut [Self], value: Self::Vector<S>);
}

macro_rules! lane {
    ($t:ident: $vector:ident $splat:ident $add:ident $mul_add:ident $sum:ident $load:ident $store:ident) => {
        impl Lane for $t {
            type Vector<S: Simd> = S::$vector;

            #[inline(always)]
            fn splat<S: Simd>(self, simd: S) -> S::$vector {
                simd.$splat(self)
            }
            #[inline(always)]
            fn plus<S: Simd>(simd: S, a: S::$vector, b: S::$vector) -> S::$vector {
                simd.$add(a, b)
            }
            #[inline(always)]
            fn times_plus<S: Simd>(simd: S, a: S::$vector, b: S::$vector, c: S::$vector) -> S::$vector {
                simd.$mul_add(a, b, c)
            }
            #[inline(always)]
            fn total<S: Simd>(simd: S, a: S::$vector) -> $t {
                simd.$sum(a)
            }
            #[inline(always)]
            fn load<S: Simd>(simd: S, from: &[$t]) -> S::$vector {
                simd.$load(from)
            }
            #[inline(always)]
            fn store<S: Simd>(simd: S, to: &mut [$t], value: S::$vector) {
                simd.$store(to, value)
            }
        }
    };
}
lane!(f32: f32s splat_f32s add_f32s mul_add_e_f32s reduce_sum_f32s partial_load_f32s partial_store_f32s);
lane!(f64: f64s splat_f64s add_f64s mul_add_e_f64s reduce_sum_f64s partial_load_f64s partial_store_f64s);
