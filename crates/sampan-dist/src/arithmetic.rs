//! Reductions over the values of several processes, in the order of their ranks.

use crate::backend::{Arithmetic, ReduceOp};
use half::slice::HalfFloatSliceExt;
use sampan_kernels::{Bool, Complex64, Complex128, bf16, f16, match_dtype};

/// Elements that are reduced at a time: the sums stay in the first-level cache.
const BLOCK: usize = 1024;

/// Sums that grow, wide enough for their values.
trait Wide: Copy + Default {
    fn apply(self, other: Self, op: ReduceOp) -> Self;
    fn divide(self, count: usize) -> Self;
}

macro_rules! real_wide {
    ($($t:ty),*) => {$(
        impl Wide for $t {
            #[inline(always)]
            fn apply(self, other: Self, op: ReduceOp) -> Self {
                match op {
                    ReduceOp::Sum | ReduceOp::Avg => self + other,
                    ReduceOp::Prod => self * other,
                    // A NaN on either side stays.
                    ReduceOp::Max => if self > other || self != self { self } else { other },
                    ReduceOp::Min => if self < other || self != self { self } else { other },
                }
            }
            #[inline(always)]
            fn divide(self, count: usize) -> Self {
                self / count as $t
            }
        }
    )*};
}
real_wide!(f32, f64);

macro_rules! int_wide {
    ($($t:ty),*) => {$(
        impl Wide for $t {
            #[inline(always)]
            fn apply(self, other: Self, op: ReduceOp) -> Self {
                match op {
                    ReduceOp::Sum | ReduceOp::Avg => self.wrapping_add(other),
                    ReduceOp::Prod => self.wrapping_mul(other),
                    ReduceOp::Max => self.max(other),
                    ReduceOp::Min => self.min(other),
                }
            }
            #[inline(always)]
            fn divide(self, count: usize) -> Self {
                self / count as $t
            }
        }
    )*};
}
int_wide!(i32, i64);

macro_rules! complex_wide {
    ($($t:ty),*) => {$(
        impl Wide for num_complex::Complex<$t> {
            #[inline(always)]
            fn apply(self, other: Self, op: ReduceOp) -> Self {
                if op == ReduceOp::Prod { self * other } else { self + other }
            }
            #[inline(always)]
            fn divide(self, count: usize) -> Self {
                self / count as $t
            }
        }
    )*};
}
complex_wide!(f32, f64);

/// A truth value: sums and maxima say whether any is true, products and minima whether all are.
impl Wide for bool {
    #[inline(always)]
    fn apply(self, other: Self, op: ReduceOp) -> Self {
        if matches!(op, ReduceOp::Prod | ReduceOp::Min) { self & other } else { self | other }
    }
    fn divide(self, _: usize) -> Self {
        self
    }
}

/// Values as they lie in memory.
trait Value: sampan_kernels::Element {
    type Wide: Wide;
    fn load(from: &[Self], to: &mut [Self::Wide]);
    fn store(from: &[Self::Wide], to: &mut [Self]);
    /// `sums[i] = sums[i] op values[i]`.
    #[inline(always)]
    fn fold(sums: &mut [Self::Wide], values: &[Self], op: ReduceOp) {
        let mut wide = [Self::Wide::default(); BLOCK];
        Self::load(values, &mut wide[..values.len()]);
        fold(sums, &wide[..values.len()], op);
    }
}

/// The operation is chosen outside the loop.
#[inline(always)]
fn fold<W: Wide>(sums: &mut [W], values: &[W], op: ReduceOp) {
    macro_rules! each {
        ($($op:ident),*) => {
            match op { $(ReduceOp::$op => sums.iter_mut().zip(values).for_each(|(s, v)| *s = s.apply(*v, ReduceOp::$op))),* }
        };
    }
    each!(Sum, Max, Min, Prod, Avg)
}

macro_rules! as_is {
    ($($t:ty),*) => {$(
        impl Value for $t {
            type Wide = $t;
            #[inline(always)]
            fn load(from: &[$t], to: &mut [$t]) { to.copy_from_slice(from) }
            #[inline(always)]
            fn store(from: &[$t], to: &mut [$t]) { to.copy_from_slice(from) }
            #[inline(always)]
            fn fold(sums: &mut [$t], values: &[$t], op: ReduceOp) { fold(sums, values, op) }
        }
    )*};
}
as_is!(f32, f64, i32, i64, Complex64, Complex128);

macro_rules! half {
    ($($t:ty),*) => {$(
        impl Value for $t {
            type Wide = f32;
            fn load(from: &[$t], to: &mut [f32]) { from.convert_to_f32_slice(to) }
            fn store(from: &[f32], to: &mut [$t]) { to.convert_from_f32_slice(from) }
        }
    )*};
}
half!(f16, bf16);

macro_rules! small_int {
    ($($t:ty),*) => {$(
        impl Value for $t {
            type Wide = i32;
            fn load(from: &[$t], to: &mut [i32]) { to.iter_mut().zip(from).for_each(|(t, f)| *t = *f as i32) }
            fn store(from: &[i32], to: &mut [$t]) { to.iter_mut().zip(from).for_each(|(t, f)| *t = *f as $t) }
        }
    )*};
}
small_int!(u8, i8, i16);

impl Value for Bool {
    type Wide = bool;
    fn load(from: &[Bool], to: &mut [bool]) {
        to.iter_mut().zip(from).for_each(|(t, f)| *t = f.get());
    }
    fn store(from: &[bool], to: &mut [Bool]) {
        to.iter_mut().zip(from).for_each(|(t, f)| *t = (*f).into());
    }
}

/// The values of the process that reduces.
pub enum Mine<'a> {
    /// They become the result.
    Becomes(&'a mut [u8]),
    /// They stay as they are.
    Stays(&'a [u8]),
}

impl Mine<'_> {
    fn bytes(&self) -> &[u8] {
        match self {
            Mine::Becomes(bytes) => bytes,
            Mine::Stays(bytes) => bytes,
        }
    }
}

/// Reduces the values of all, in the order of their ranks: `of(r)` gives those of rank `r`, but for `rank`, whose are
/// `mine`. The result is also written to `copy`, unless that is empty.
pub fn reduce<'a>(
    how: Arithmetic,
    (rank, size): (usize, usize),
    mut mine: Mine<'_>,
    of: impl Fn(usize) -> &'a [u8],
    copy: &mut [u8],
) {
    match_dtype!(how.dtype, T in any => typed::<T>(how.op, rank, size, &mut mine, &of, copy))
}

fn typed<'a, T: Value>(
    op: ReduceOp,
    rank: usize,
    size: usize,
    mine: &mut Mine<'_>,
    of: &impl Fn(usize) -> &'a [u8],
    copy: &mut [u8],
) {
    let mut sums = [T::Wide::default(); BLOCK];
    let (len, step) = (mine.bytes().len(), BLOCK * size_of::<T>());
    for start in (0..len).step_by(step) {
        let span = start..len.min(start + step);
        let sums = &mut sums[..span.len() / size_of::<T>()];
        for r in 0..size {
            let values = if r == rank { &mine.bytes()[span.clone()] } else { &of(r)[span.clone()] };
            let values: &[T] = bytemuck::cast_slice(values);
            if r == 0 { T::load(values, sums) } else { T::fold(sums, values, op) }
        }
        if op == ReduceOp::Avg {
            sums.iter_mut().for_each(|s| *s = s.divide(size));
        }
        if let Mine::Becomes(bytes) = mine {
            T::store(sums, bytemuck::cast_slice_mut(&mut bytes[span.clone()]));
        }
        if !copy.is_empty() {
            T::store(sums, bytemuck::cast_slice_mut(&mut copy[span]));
        }
    }
}
