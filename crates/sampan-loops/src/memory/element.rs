//! Element types and their run-time names.

use bytemuck::{Pod, Zeroable};
pub use num_complex::Complex;
use std::fmt;

pub use half::{bf16, f16};
pub use sampan_formula::DType;

/// A truth value of one byte. Unlike Rust's `bool` every bit pattern is valid, so buffers can be reinterpreted safely.
#[derive(Clone, Copy, Default, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(transparent)]
pub struct Bool(pub u8);

impl Bool {
    /// Is it true?
    #[inline(always)]
    pub fn get(self) -> bool {
        self.0 != 0
    }
}
impl PartialEq for Bool {
    #[inline(always)]
    fn eq(&self, other: &Bool) -> bool {
        self.get() == other.get()
    }
}
impl PartialEq<bool> for Bool {
    #[inline(always)]
    fn eq(&self, other: &bool) -> bool {
        self.get() == *other
    }
}
impl std::hash::Hash for Bool {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.get().hash(state);
    }
}
impl From<bool> for Bool {
    #[inline(always)]
    fn from(b: bool) -> Bool {
        Bool(b as u8)
    }
}
impl fmt::Debug for Bool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.get(), f)
    }
}

/// A complex number of two `f32`.
pub type Complex64 = Complex<f32>;
/// A complex number of two `f64`.
pub type Complex128 = Complex<f64>;

/// A Rust type that can be an element of a tensor.
pub trait Element: Pod + Send + Sync + PartialEq + fmt::Debug + Default + 'static {
    /// Its run-time name.
    const DTYPE: DType;
    /// From the widest float: for integers it truncates towards zero, saturates, and makes NaN zero.
    fn from_f64(v: f64) -> Self;
    /// From the widest integer, wrapping as C does.
    fn from_i64(v: i64) -> Self;
    /// From the widest complex number; real types take its real part.
    #[inline(always)]
    fn from_complex(v: Complex128) -> Self {
        Self::from_f64(v.re)
    }
    /// To the widest complex number.
    fn to_complex(self) -> Complex128;
}

/// An element on the real line, with an order: every dtype but the complex ones.
pub trait Ordered: Element + PartialOrd {
    /// To the widest float.
    fn to_f64(self) -> f64;
    /// To the widest integer, truncating.
    fn to_i64(self) -> i64;
    /// Is it a NaN? Never for integers.
    #[inline(always)]
    fn is_nan(self) -> bool {
        false
    }
}

macro_rules! int_element {
    ($($t:ty => $d:ident),*) => {$(
        impl Element for $t {
            const DTYPE: DType = DType::$d;
            #[inline(always)]
            fn from_f64(v: f64) -> Self { v as $t }
            #[inline(always)]
            fn from_i64(v: i64) -> Self { v as $t }
            #[inline(always)]
            fn to_complex(self) -> Complex128 { self.to_f64().into() }
        }
        impl Ordered for $t {
            #[inline(always)]
            fn to_f64(self) -> f64 { self as f64 }
            #[inline(always)]
            fn to_i64(self) -> i64 { self as i64 }
        }
    )*};
}
int_element!(u8 => UInt8, i8 => Int8, i16 => Int16, i32 => Int32, i64 => Int64);

macro_rules! float_element {
    ($($t:ty => $d:ident),*) => {$(
        impl Element for $t {
            const DTYPE: DType = DType::$d;
            #[inline(always)]
            fn from_f64(v: f64) -> Self { v as $t }
            #[inline(always)]
            fn from_i64(v: i64) -> Self { v as $t }
            #[inline(always)]
            fn to_complex(self) -> Complex128 { self.to_f64().into() }
        }
        impl Ordered for $t {
            #[inline(always)]
            fn to_f64(self) -> f64 { self as f64 }
            #[inline(always)]
            fn to_i64(self) -> i64 { self as i64 }
            #[inline(always)]
            fn is_nan(self) -> bool { <$t>::is_nan(self) }
        }
    )*};
}
float_element!(f32 => Float32, f64 => Float64);

macro_rules! half_element {
    ($($t:ty => $d:ident),*) => {$(
        impl Element for $t {
            const DTYPE: DType = DType::$d;
            #[inline(always)]
            fn from_f64(v: f64) -> Self { <$t>::from_f64(v) }
            #[inline(always)]
            fn from_i64(v: i64) -> Self { <$t>::from_f64(v as f64) }
            #[inline(always)]
            fn to_complex(self) -> Complex128 { self.to_f64().into() }
        }
        impl Ordered for $t {
            #[inline(always)]
            fn to_f64(self) -> f64 { <$t>::to_f64(self) }
            #[inline(always)]
            fn to_i64(self) -> i64 { self.to_f32() as i64 }
            #[inline(always)]
            fn is_nan(self) -> bool { <$t>::is_nan(self) }
        }
    )*};
}
half_element!(f16 => Float16, bf16 => BFloat16);

impl Element for Bool {
    const DTYPE: DType = DType::Bool;
    #[inline(always)]
    fn from_f64(v: f64) -> Self {
        (v != 0.0).into()
    }
    #[inline(always)]
    fn from_i64(v: i64) -> Self {
        (v != 0).into()
    }
    #[inline(always)]
    fn from_complex(v: Complex128) -> Self {
        (v.re != 0.0 || v.im != 0.0).into()
    }
    #[inline(always)]
    fn to_complex(self) -> Complex128 {
        self.to_f64().into()
    }
}
impl Ordered for Bool {
    #[inline(always)]
    fn to_f64(self) -> f64 {
        self.get() as u8 as f64
    }
    #[inline(always)]
    fn to_i64(self) -> i64 {
        self.get() as i64
    }
}

macro_rules! complex_element {
    ($($t:ident => $d:ident),*) => {$(
        impl Element for Complex<$t> {
            const DTYPE: DType = DType::$d;
            #[inline(always)]
            fn from_f64(v: f64) -> Self { Complex::new(v as $t, 0.0) }
            #[inline(always)]
            fn from_i64(v: i64) -> Self { Complex::new(v as $t, 0.0) }
            #[inline(always)]
            fn from_complex(v: Complex128) -> Self { Complex::new(v.re as $t, v.im as $t) }
            #[inline(always)]
            fn to_complex(self) -> Complex128 { Complex::new(self.re as f64, self.im as f64) }
        }
    )*};
}
complex_element!(f32 => Complex64, f64 => Complex128);

/// Runs a block with `T` bound to the Rust type of a run-time dtype:
/// `match_dtype!(dtype, T => body)` for every real dtype; complex ones are refused by unwinding (see [`crate::any::unsupported`]),
/// `match_dtype!(dtype, T in any => body)` for every dtype, where elements only move,
/// `match_dtype!(dtype, T in [f32, f64] => body, else => other)` for a chosen few. The groups `float`, `int`, `complex`,
/// `real` and `number` (all real ones but bool) may stand for a list; `bytes` gives one type for each size and alignment of
/// an element, where elements only move and whose type does not matter.
#[macro_export]
macro_rules! match_dtype {
    ($d:expr, $t:ident => $body:expr) => {
        $crate::match_dtype!($d, $t in [
            $crate::Bool, u8, i8, i16, i32, i64, $crate::f16, $crate::bf16, f32, f64
        ] => $body, else => $crate::any::unsupported($d))
    };
    ($d:expr, $t:ident in any => $body:expr) => {
        $crate::match_dtype!($d, $t in [
            $crate::Bool, u8, i8, i16, i32, i64, $crate::f16, $crate::bf16, f32, f64, $crate::Complex64, $crate::Complex128
        ] => $body, else => unreachable!())
    };
    ($d:expr, $t:ident in any => $body:expr, else => $other:expr) => {
        $crate::match_dtype!($d, $t in any => $body)
    };
    ($d:expr, $t:ident in real => $body:expr, else => $other:expr) => {
        $crate::match_dtype!($d, $t in [
            $crate::Bool, u8, i8, i16, i32, i64, $crate::f16, $crate::bf16, f32, f64
        ] => $body, else => $other)
    };
    ($d:expr, $t:ident in bytes => $body:expr, else => $other:expr) => {{
        let dtype: $crate::DType = $d;
        match dtype.size() {
            1 => { type $t = u8; $body }
            2 => { type $t = i16; $body }
            4 => { type $t = i32; $body }
            // Aligned as its parts are, so it is no i64.
            8 if dtype == $crate::DType::Complex64 => { type $t = $crate::Complex64; $body }
            8 => { type $t = i64; $body }
            _ => { type $t = $crate::Complex128; $body }
        }
    }};
    ($d:expr, $t:ident in complex => $body:expr, else => $other:expr) => {
        $crate::match_dtype!($d, $t in [$crate::Complex64, $crate::Complex128] => $body, else => $other)
    };
    ($d:expr, $t:ident in float => $body:expr, else => $other:expr) => {
        $crate::match_dtype!($d, $t in [$crate::f16, $crate::bf16, f32, f64] => $body, else => $other)
    };
    ($d:expr, $t:ident in int => $body:expr, else => $other:expr) => {
        $crate::match_dtype!($d, $t in [u8, i8, i16, i32, i64] => $body, else => $other)
    };
    ($d:expr, $t:ident in number => $body:expr, else => $other:expr) => {
        $crate::match_dtype!($d, $t in [
            u8, i8, i16, i32, i64, $crate::f16, $crate::bf16, f32, f64
        ] => $body, else => $other)
    };
    ($d:expr, $t:ident in [$($ty:ty),* $(,)?] => $body:expr, else => $other:expr) => {{
        let dtype: $crate::DType = $d;
        match dtype {
            $(d if d == <$ty as $crate::Element>::DTYPE => { type $t = $ty; $body })*
            #[allow(unreachable_patterns)]
            _ => $other,
        }
    }};
}
