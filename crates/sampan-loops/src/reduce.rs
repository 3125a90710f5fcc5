//! Reductions over any set of axes of a strided view. The order of every sum is fixed by the shape and strides alone:
//! within a piece values go to separate lanes, pieces are combined as a tree. So results have the same bits for any
//! number of threads, and rounding errors grow with the logarithm of the size.

mod drive;
mod fold;
mod moments;
mod number;
#[cfg(test)]
mod tests;

pub use crate::arg::{argmax, argmin};
pub(crate) use drive::split;
pub(crate) use fold::{FoldOf, Max, Min, fold_row};
pub use moments::{logsumexp, power_norm, variance};
pub use number::Number;

use crate::cast::{cast_slice, convert};
use crate::complex::ComplexElement;
use crate::simd::simd_fn;
use crate::vmath::Real;
use crate::widen::RealElement;
use crate::{Bool, Element, Ordered, View};
use bytemuck::Zeroable;
use drive::{Place, reduce};
use fold::{Prod, Sum};
use sampan_macros::by_dtype;
use std::iter::Product;
use std::marker::PhantomData;

/// A reduction that accumulates in another type than it gives back.
fn number<T: Number>(
    src: View<'_, T>,
    reduced: &[bool],
    dst: &mut [T],
    fold: impl FoldOf<T::Acc>,
    finish: &(dyn Fn(&mut [T::Acc]) + Sync),
) {
    if T::DTYPE == T::Acc::DTYPE {
        let dst: &mut [T::Acc] = bytemuck::cast_slice_mut(dst);
        reduce(src, reduced, dst, None, fold, finish);
    } else {
        let mut wide = vec![T::Acc::zeroed(); dst.len()];
        reduce(src, reduced, &mut wide, Some(&|_, x, y| T::load(x, y)), fold, finish);
        T::store(&wide, dst);
    }
}

/// Sum over the flagged axes.
#[by_dtype(T in number)]
pub fn sum<T: Number>(src: View<'_, T>, reduced: &[bool], dst: &mut [T]) {
    number(src, reduced, dst, Sum(PhantomData), &|_| ());
}

/// Mean over the flagged axes; NaN over none.
#[by_dtype(T in float)]
pub fn mean<T: Number + RealElement>(src: View<'_, T>, reduced: &[bool], dst: &mut [T]) {
    let n: usize = src.shape.iter().zip(reduced).filter(|&(_, &r)| r).map(|(&n, _)| n).product();
    number(src, reduced, dst, Sum(PhantomData), &|sums| divide(sums, n as f64));
    let narrow = T::Wide::EPSILON.to_f64() > f64::EPSILON;
    if narrow && dst.iter().any(|d| !Ordered::to_f64(*d).is_finite()) {
        // The sum may have left the range of f32 where the mean has not.
        let mut sums = vec![0.0; dst.len()];
        sum_as(src, reduced, &mut sums);
        dst.iter_mut().zip(sums).for_each(|(d, s)| *d = T::from_f64(s / n as f64));
    }
}

simd_fn! {
    fn divide[A: Ordered](x: &'a mut [A], n: f64) {
        for x in x {
            *x = A::from_f64(x.to_f64() / n);
        }
    }
}

/// Product over the flagged axes.
#[by_dtype(T in number)]
pub fn prod<T: Number>(src: View<'_, T>, reduced: &[bool], dst: &mut [T]) {
    number(src, reduced, dst, Prod(PhantomData), &|_| ());
}

/// Largest over the flagged axes; NaN where there is one.
#[by_dtype(T in number)]
pub fn max<T: Number>(src: View<'_, T>, reduced: &[bool], dst: &mut [T]) {
    number(src, reduced, dst, Max(PhantomData), &|_| ());
}

/// Smallest over the flagged axes; NaN where there is one.
#[by_dtype(T in number)]
pub fn min<T: Number>(src: View<'_, T>, reduced: &[bool], dst: &mut [T]) {
    number(src, reduced, dst, Min(PhantomData), &|_| ());
}

/// Product of complex numbers over rows of `n`.
#[by_dtype(T in complex)]
pub fn prod_complex<T: ComplexElement + Product>(src: &[T], n: usize, dst: &mut [T]) {
    assert_eq!(src.len(), dst.len() * n, "prod: the destination has another size than the rows");
    for (i, d) in dst.iter_mut().enumerate() {
        *d = src[i * n..][..n].iter().copied().product();
    }
}

/// Sum of what `load` makes of the elements, slice by slice.
fn sum_map<A: Ordered, B: Number<Acc = B>>(
    src: View<'_, A>,
    reduced: &[bool],
    dst: &mut [B],
    load: &(dyn Fn(&[A], &mut [B]) + Sync),
) {
    reduce(src, reduced, dst, Some(&|_, x, y| load(x, y)), Sum(PhantomData), &|_| ());
}

/// Sum in another type.
fn sum_as<A: Ordered, B: Number<Acc = B>>(src: View<'_, A>, reduced: &[bool], dst: &mut [B]) {
    sum_map(src, reduced, dst, &cast_slice);
}

/// Sum of truth values and shorter integers as `i64`.
#[by_dtype(A in [Bool, u8, i8, i16, i32])]
pub fn sum_i64<A: Ordered>(src: View<'_, A>, reduced: &[bool], dst: &mut [i64]) {
    sum_as(src, reduced, dst);
}

/// How many elements are not zero.
#[by_dtype(T in real)]
pub fn count_nonzero<T: Ordered>(src: View<'_, T>, reduced: &[bool], dst: &mut [i64]) {
    sum_map(src, reduced, dst, &|x, y| {
        for (y, &x) in y.iter_mut().zip(x) {
            *y = convert::<T, Bool>(x).0 as i64;
        }
    });
}

/// Sum of squares, in the computing type.
fn sum_sq<T: RealElement>(src: View<'_, T>, reduced: &[bool], dst: &mut [T::Wide])
where
    T::Wide: Number<Acc = T::Wide>,
{
    sum_map(src, reduced, dst, &|x, y| {
        T::widen_slice(x, y);
        for y in y {
            *y *= *y;
        }
    });
}

fn truth(_: Place, x: &[Bool], y: &mut [u8]) {
    for (y, &x) in y.iter_mut().zip(x) {
        *y = x.get() as u8;
    }
}

/// How many elements are NaN, and how many infinite.
#[by_dtype(T in float)]
pub fn count_non_finite<T: Ordered>(x: &[T]) -> (usize, usize) {
    x.iter().fold((0, 0), |(nan, inf), &v| {
        let v = v.to_f64();
        (nan + v.is_nan() as usize, inf + v.is_infinite() as usize)
    })
}

/// Is any element true?
pub fn any(src: View<'_, Bool>, reduced: &[bool], dst: &mut [Bool]) {
    reduce(src, reduced, bytemuck::cast_slice_mut(dst), Some(&truth), Max::<u8>(PhantomData), &|_| ());
}

/// Are all elements true?
pub fn all(src: View<'_, Bool>, reduced: &[bool], dst: &mut [Bool]) {
    let dst: &mut [u8] = bytemuck::cast_slice_mut(dst);
    reduce(src, reduced, dst, Some(&truth), Min::<u8>(PhantomData), &|_| ());
    // Over no elements the neutral 255 remains.
    dst.iter_mut().for_each(|d| *d = (*d != 0) as u8);
}
