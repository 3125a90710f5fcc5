//! What kernels that do floating-point arithmetic ask of an element.

use crate::{Buffer, Ordered, bf16, f16, parallel};
use std::ops::{Add, AddAssign, Div, DivAssign, Mul, MulAssign, Neg, Sub, SubAssign};

/// A type the processor computes with: `f32` or `f64`.
pub trait Float:
    Ordered
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + SubAssign
    + MulAssign
    + DivAssign
{
    /// 0
    const ZERO: Self;
    /// 1
    const ONE: Self;
    /// −∞
    const NEG_INFINITY: Self;
    /// `self * a + b` rounded once.
    fn mul_add(self, a: Self, b: Self) -> Self;
    /// Largest integer not above.
    fn floor(self) -> Self;
    /// Nearest integer, halves to even.
    fn round_ties_even(self) -> Self;
    /// Absolute value.
    fn abs(self) -> Self;
    /// `self` to the power of `e`.
    fn powf(self, e: Self) -> Self;
}

macro_rules! float {
    ($($t:ident),*) => {$(
        impl Float for $t {
            const ZERO: $t = 0.0;
            const ONE: $t = 1.0;
            const NEG_INFINITY: $t = $t::NEG_INFINITY;
            #[inline(always)]
            fn mul_add(self, a: $t, b: $t) -> $t { <$t>::mul_add(self, a, b) }
            #[inline(always)]
            fn floor(self) -> $t { <$t>::floor(self) }
            #[inline(always)]
            fn round_ties_even(self) -> $t { <$t>::round_ties_even(self) }
            #[inline(always)]
            fn abs(self) -> $t { <$t>::abs(self) }
            #[inline(always)]
            fn powf(self, e: $t) -> $t { <$t>::powf(self, e) }
        }
    )*};
}
float!(f32, f64);

/// A floating-point element with the type its arithmetic is done in: half types compute in `f32`.
pub trait Real: Ordered {
    /// The type of intermediate results.
    type Acc: Float;
    /// To the type of intermediate results.
    fn up(self) -> Self::Acc;
    /// Rounded back.
    fn down(v: Self::Acc) -> Self;
}

impl Real for f32 {
    type Acc = f32;
    #[inline(always)]
    fn up(self) -> f32 {
        self
    }
    #[inline(always)]
    fn down(v: f32) -> f32 {
        v
    }
}
impl Real for f64 {
    type Acc = f64;
    #[inline(always)]
    fn up(self) -> f64 {
        self
    }
    #[inline(always)]
    fn down(v: f64) -> f64 {
        v
    }
}
impl Real for f16 {
    type Acc = f32;
    #[inline(always)]
    fn up(self) -> f32 {
        self.to_f32()
    }
    #[inline(always)]
    fn down(v: f32) -> f16 {
        f16::from_f32(v)
    }
}
impl Real for bf16 {
    type Acc = f32;
    #[inline(always)]
    fn up(self) -> f32 {
        self.to_f32()
    }
    #[inline(always)]
    fn down(v: f32) -> bf16 {
        bf16::from_f32(v)
    }
}

/// A copy in the type of intermediate results.
pub(crate) fn widened<T: Real>(src: &[T]) -> Buffer {
    let mut out = Buffer::uninit(std::mem::size_of::<T::Acc>() * src.len());
    parallel::for_each_chunk_mut(out.as_mut_slice::<T::Acc>(), 1 << 14, 2, |i, piece| {
        for (o, s) in piece.iter_mut().zip(&src[i << 14..]) {
            *o = s.up();
        }
    });
    out
}

/// Rounds every element of `src` into `dst`.
pub(crate) fn narrow<T: Real>(src: &[T::Acc], dst: &mut [T]) {
    assert_eq!(src.len(), dst.len());
    parallel::for_each_chunk_mut(dst, 1 << 14, 2, |i, piece| {
        for (o, s) in piece.iter_mut().zip(&src[i << 14..]) {
            *o = T::down(*s);
        }
    });
}

/// A pointer that several threads may write through. Whoever uses it sees to it that no two of them write the same
/// element.
pub(crate) struct Shared<T>(*mut T);
// SAFETY: the pointer is only followed in `unsafe` blocks, each of which writes elements no other thread touches.
unsafe impl<T: Send> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Shared<T> {}

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Shared<T> {}

impl<T> Shared<T> {
    pub(crate) fn new(data: &mut [T]) -> Self {
        Shared(data.as_mut_ptr())
    }

    pub(crate) fn from_ptr(ptr: *mut T) -> Self {
        Shared(ptr)
    }

    /// Of memory that is only read.
    pub(crate) fn new_const(ptr: *const T) -> Self {
        Shared(ptr.cast_mut())
    }

    /// The raw pointer. (A method, so that closures capture the wrapper and not the field.)
    pub(crate) fn get(self) -> *mut T {
        self.0
    }
}
