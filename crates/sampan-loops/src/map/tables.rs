//! The loops of a number type, by operation.

use super::fused::{self, Fused, Masked};
use super::truth::{self, Choice, Comparison};
use crate::cast::cast_slice;
use crate::{AnySlice, AnySliceMut, Complex64, Complex128, DType, Element, match_dtype};
use sampan_formula::{Binary, Constant, Formula, Unary};

/// `y = f(x)`.
pub type Loop1<T> = for<'a> fn(&'a [T], &'a mut [T]);
/// `y = f(a, b)`.
pub type Loop2<T> = for<'a> fn(&'a [T], &'a [T], &'a mut [T]);
/// `y = f(a, b, c)`.
pub type Loop3<T> = for<'a> fn(&'a [T], &'a [T], &'a [T], &'a mut [T]);

/// The loops of an operation on two numbers: on two slices, and where it pays, on a slice and one number.
#[derive(Clone, Copy)]
pub struct Pair<T> {
    pub slices: Loop2<T>,
    pub right: Option<for<'a> fn(&'a [T], T, &'a mut [T])>,
    pub left: Option<for<'a> fn(T, &'a [T], &'a mut [T])>,
    /// Is `f(a, b)` the same as `f(b, a)`, so that `right` does for a number on the left?
    pub swaps: bool,
}

/// A type that formulas are computed in.
pub trait Compute: Element {
    /// The type that constants are computed in.
    type Exact: Compute;
    /// Where a formula keeps its program for this type.
    const NOTE: usize;
    /// The loop of an operation on one number, if it is known for this type.
    fn unary(op: Unary) -> Option<Loop1<Self>>;
    /// The loops of an operation on two numbers, if it is known for this type.
    fn binary(op: Binary) -> Option<Pair<Self>>;
    /// The loop that takes from `a` where the condition holds, else from `b`.
    fn select() -> Loop3<Self>;
    /// The loops of an operation whose result is written as truth values, if it is a comparison.
    fn comparison(_: Binary) -> Option<Comparison<Self>> {
        None
    }
    /// The loops of [`select`](Self::select) by truth values as they lie in memory, if there are such.
    fn choice() -> Option<Choice<Self>> {
        None
    }
    /// A constant.
    fn constant(c: Constant) -> Self;
    /// From the type that constants are computed in.
    fn rounded(v: Self::Exact) -> Self;
    /// Reads another dtype.
    fn load(src: AnySlice<'_>, dst: &mut [Self]);
    /// Writes another dtype.
    fn store(src: &[Self], dst: AnySliceMut<'_>);
    /// Chains compiled as one loop.
    fn fused(_: &Formula) -> Option<Fused<Self>> {
        None
    }
    /// Chains over a slice and a mask, compiled as one loop.
    fn masked(_: &Formula) -> Option<Masked<Self>> {
        None
    }
}

/// The type whose loops compute a dtype; integers of 32 bits and less stay narrow if all constants are.
macro_rules! match_compute {
    ($dtype:expr, $narrow:expr, $t:ident => $body:expr) => {
        match $dtype {
            $crate::DType::Float16 | $crate::DType::BFloat16 | $crate::DType::Float32 => {
                type $t = f32;
                $body
            }
            $crate::DType::Float64 => {
                type $t = f64;
                $body
            }
            $crate::DType::Complex64 => {
                type $t = $crate::Complex64;
                $body
            }
            $crate::DType::Complex128 => {
                type $t = $crate::Complex128;
                $body
            }
            $crate::DType::Int64 => {
                type $t = i64;
                $body
            }
            _ if $narrow => {
                type $t = i32;
                $body
            }
            _ => {
                type $t = i64;
                $body
            }
        }
    };
}
pub(crate) use match_compute;

macro_rules! real_numbers {
    () => {
        fn comparison(op: Binary) -> Option<Comparison<Self>> {
            truth::comparison(op)
        }
        fn choice() -> Option<Choice<Self>> {
            Some(truth::choice())
        }
        fn load(src: AnySlice<'_>, dst: &mut [Self]) {
            match_dtype!(src.dtype(), A in real => cast_slice::<A, Self>(src.of(), dst), else => {
                for (d, z) in dst.iter_mut().zip(complex(src)) {
                    *d = Self::from_complex(z);
                }
            })
        }
        fn store(src: &[Self], dst: AnySliceMut<'_>) {
            let dtype = dst.dtype();
            match_dtype!(dtype, B in real => cast_slice::<Self, B>(src, dst.of()), else => {
                crate::any::unsupported(dtype)
            })
        }
    };
}

/// Complex elements in the widest type.
fn complex(src: AnySlice<'_>) -> impl Iterator<Item = Complex128> {
    let wide = src.dtype() == DType::Complex128;
    let (narrow, wide): (&[Complex64], &[Complex128]) = if wide { (&[], src.of()) } else { (src.of(), &[]) };
    narrow.iter().map(|z| z.to_complex()).chain(wide.iter().copied())
}

impl Compute for f32 {
    type Exact = f64;
    const NOTE: usize = 0;
    fn unary(op: Unary) -> Option<Loop1<f32>> {
        super::reals::unary::<f32>(op)
    }
    fn binary(op: Binary) -> Option<Pair<f32>> {
        super::reals::binary::<f32>(op)
    }
    fn select() -> Loop3<f32> {
        super::reals::select_loop::<f32>
    }
    fn constant(c: Constant) -> f32 {
        f64::constant(c) as f32
    }
    fn rounded(v: f64) -> f32 {
        v as f32
    }
    fn fused(formula: &Formula) -> Option<Fused<f32>> {
        fused::find(formula)
    }
    fn masked(formula: &Formula) -> Option<Masked<f32>> {
        fused::find_masked(formula)
    }
    real_numbers!();
}

impl Compute for f64 {
    type Exact = f64;
    const NOTE: usize = 1;
    fn unary(op: Unary) -> Option<Loop1<f64>> {
        super::reals::unary::<f64>(op)
    }
    fn binary(op: Binary) -> Option<Pair<f64>> {
        super::reals::binary::<f64>(op)
    }
    fn select() -> Loop3<f64> {
        super::reals::select_loop::<f64>
    }
    fn constant(c: Constant) -> f64 {
        match c {
            Constant::Int(i) => i as f64,
            Constant::Float(v) | Constant::Complex(v, _) => v,
        }
    }
    fn rounded(v: f64) -> f64 {
        v
    }
    real_numbers!();
}

macro_rules! integer_compute {
    ($($t:ident, $loops:ident, $note:literal;)*) => {$(
        impl Compute for $t {
            type Exact = i64;
            const NOTE: usize = $note;
            fn unary(op: Unary) -> Option<Loop1<$t>> {
                super::integers::$loops::unary(op)
            }
            fn binary(op: Binary) -> Option<Pair<$t>> {
                super::integers::$loops::binary(op)
            }
            fn select() -> Loop3<$t> {
                super::integers::$loops::select_loop
            }
            fn constant(c: Constant) -> $t {
                match c {
                    Constant::Int(i) => i as $t,
                    Constant::Float(v) | Constant::Complex(v, _) => v as i64 as $t,
                }
            }
            fn rounded(v: i64) -> $t {
                v as $t
            }
            real_numbers!();
        }
    )*};
}
integer_compute! {
    i32, narrow, 5;
    i64, wide, 2;
}

macro_rules! complex_compute {
    ($($t:ident, $part:ident, $note:literal;)*) => {$(
        impl Compute for $t {
            type Exact = Complex128;
            const NOTE: usize = $note;
            fn unary(op: Unary) -> Option<Loop1<$t>> {
                crate::complex::loops::unary::<$part>(op)
            }
            fn binary(op: Binary) -> Option<Pair<$t>> {
                crate::complex::loops::binary::<$part>(op)
            }
            fn select() -> Loop3<$t> {
                crate::complex::loops::select_loop::<$part>
            }
            fn constant(c: Constant) -> $t {
                let (re, im) = match c {
                    Constant::Int(i) => (i as f64, 0.0),
                    Constant::Float(v) => (v, 0.0),
                    Constant::Complex(re, im) => (re, im),
                };
                $t::from_complex(Complex128::new(re, im))
            }
            fn rounded(v: Complex128) -> $t {
                $t::from_complex(v)
            }
            fn load(src: AnySlice<'_>, dst: &mut [$t]) {
                match_dtype!(src.dtype(), A in any => {
                    for (d, &s) in dst.iter_mut().zip(src.of::<A>()) {
                        *d = $t::from_complex(s.to_complex());
                    }
                })
            }
            fn store(src: &[$t], dst: AnySliceMut<'_>) {
                let dtype = dst.dtype();
                match_dtype!(dtype, B in any => {
                    for (d, s) in dst.of::<B>().iter_mut().zip(src) {
                        *d = B::from_complex(s.to_complex());
                    }
                })
            }
        }
    )*};
}
complex_compute! {
    Complex64, f32, 3;
    Complex128, f64, 4;
}
