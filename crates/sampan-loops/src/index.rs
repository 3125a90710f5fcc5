//! Indexing: gather and scatter. Indices are `i64`, checked before anything is written, so an error leaves the
//! destination as it was (but for [`take_along_axis`], whose destination is new). Where duplicates meet, they meet in the order of their positions, whatever the threads.

mod advanced;
mod along;
mod mask;
mod rows;

pub use advanced::{IndexPlan, index_fill, index_get, index_put, index_put_add};
pub use along::{Reduce, gather_tree, put_along_axis, take_along_axis};
pub use mask::{nonzero, one_hot};
pub use rows::{embedding, embedding_grad, flatten_nd, index_add, index_select};

use crate::simd::simd_fn;
use crate::{Bool, Complex64, Complex128, Element, Ordered, bf16, f16};
use std::fmt;
use std::num::Wrapping;
use std::ops::{Add, Div, Mul};

/// An index outside its axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadIndex {
    /// Where in the index tensor it stands (flat).
    pub position: usize,
    /// The index.
    pub value: i64,
    /// The extent it had to stay below.
    pub limit: usize,
}

impl fmt::Display for BadIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "index {} at position {} is out of range for extent {}", self.value, self.position, self.limit)
    }
}
impl std::error::Error for BadIndex {}

/// Checks every index against an extent; with `wrap`, −1 means the last.
pub fn check(idx: &[i64], limit: usize, wrap: bool) -> Result<(), BadIndex> {
    let low = if wrap { -(limit as i64) } else { 0 };
    let span = (limit as i64 - low) as u64;
    // Block by block without branches, then within the block.
    let outside = |block: &[i64]| count_outside(block, low, span) > 0;
    match idx.chunks(CHECKED).position(outside) {
        None => Ok(()),
        Some(block) => {
            let inside = |&i: &i64| (i.wrapping_sub(low) as u64) < span;
            let start = block * CHECKED;
            let position = start + idx[start..].iter().position(|i| !inside(i)).unwrap_or(0);
            Err(BadIndex { position, value: idx[position], limit })
        }
    }
}

/// Indices that are checked at a time.
const CHECKED: usize = 1024;

simd_fn! {
    /// How many are not in `low..low + span`.
    fn count_outside[](idx: &'a [i64], low: i64, span: u64) -> u64 {
        let mut count = 0;
        for &i in idx {
            count += (i.wrapping_sub(low) as u64 >= span) as u64;
        }
        count
    }
}

/// A checked index as a position.
#[inline(always)]
fn at(i: i64, limit: usize) -> usize {
    // Without a jump: signs are seldom in order.
    (i + (limit as i64 & (i >> 63))) as usize
}

/// An element with arithmetic: sums and products are formed in `Acc` (float32 for the half types, wrapping integers).
pub(crate) trait Num: Element {
    /// What sums are formed in.
    type Acc: Copy
        + Send
        + Sync
        + PartialEq
        + Add<Output = Self::Acc>
        + Mul<Output = Self::Acc>
        + Div<Output = Self::Acc>;
    /// Into the wider type.
    fn widen(self) -> Self::Acc;
    /// Back, rounding or wrapping.
    fn narrow(v: Self::Acc) -> Self;
    /// A count as a number.
    fn count(n: usize) -> Self::Acc;
    /// Is the first below the second? Never among complex numbers, which have no order.
    fn below(a: Self::Acc, b: Self::Acc) -> bool;
}

macro_rules! float_num {
    ($($t:ty => $acc:ty, $widen:expr, $narrow:expr);*) => {$(
        impl Num for $t {
            type Acc = $acc;
            #[inline(always)]
            fn widen(self) -> $acc { $widen(self) }
            #[inline(always)]
            fn narrow(v: $acc) -> $t { $narrow(v) }
            #[inline(always)]
            fn count(n: usize) -> $acc { n as $acc }
            #[inline(always)]
            fn below(a: $acc, b: $acc) -> bool { a < b }
        }
    )*};
}
float_num!(
    f32 => f32, std::convert::identity, std::convert::identity;
    f64 => f64, std::convert::identity, std::convert::identity;
    f16 => f32, f16::to_f32, f16::from_f32;
    bf16 => f32, bf16::to_f32, bf16::from_f32
);

macro_rules! int_num {
    ($($t:ty),*) => {$(
        impl Num for $t {
            type Acc = Wrapping<i64>;
            #[inline(always)]
            fn widen(self) -> Wrapping<i64> { Wrapping(self.to_i64()) }
            #[inline(always)]
            fn narrow(v: Wrapping<i64>) -> $t { <$t>::from_i64(v.0) }
            #[inline(always)]
            fn count(n: usize) -> Wrapping<i64> { Wrapping(n as i64) }
            #[inline(always)]
            fn below(a: Wrapping<i64>, b: Wrapping<i64>) -> bool { a < b }
        }
    )*};
}
int_num!(Bool, u8, i8, i16, i32, i64);

macro_rules! complex_num {
    ($($t:ty),*) => {$(
        impl Num for $t {
            type Acc = $t;
            #[inline(always)]
            fn widen(self) -> $t { self }
            #[inline(always)]
            fn narrow(v: $t) -> $t { v }
            #[inline(always)]
            fn count(n: usize) -> $t { <$t>::from_f64(n as f64) }
            #[inline(always)]
            fn below(_: $t, _: $t) -> bool { false }
        }
    )*};
}
complex_num!(Complex64, Complex128);
