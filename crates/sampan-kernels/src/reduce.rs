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
pub(crate) use fold::{Max, Min, fold_row};
pub use moments::{logsumexp, power_norm, variance};
pub use number::Number;

use crate::copy::{cast_slice, convert};
use crate::simd::simd_fn;
use crate::vmath::Real;
use crate::widen::RealElement;
use crate::{Bool, Element, Ordered, View};
use bytemuck::Zeroable;
use drive::{Place, reduce};
use fold::{FoldOf, Prod, Sum};
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
pub fn sum<T: Number>(src: View<'_, T>, reduced: &[bool], dst: &mut [T]) {
    number(src, reduced, dst, Sum(PhantomData), &|_| ());
}

/// Mean over the flagged axes; NaN over none.
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
pub fn prod<T: Number>(src: View<'_, T>, reduced: &[bool], dst: &mut [T]) {
    number(src, reduced, dst, Prod(PhantomData), &|_| ());
}

/// Largest over the flagged axes; NaN where there is one.
pub fn max<T: Number>(src: View<'_, T>, reduced: &[bool], dst: &mut [T]) {
    number(src, reduced, dst, Max(PhantomData), &|_| ());
}

/// Smallest over the flagged axes; NaN where there is one.
pub fn min<T: Number>(src: View<'_, T>, reduced: &[bool], dst: &mut [T]) {
    number(src, reduced, dst, Min(PhantomData), &|_| ());
}

/// Sum of what `load` makes of the elements, slice by slice.
pub fn sum_map<A: Ordered, B: Number<Acc = B>>(
    src: View<'_, A>,
    reduced: &[bool],
    dst: &mut [B],
    load: &(dyn Fn(&[A], &mut [B]) + Sync),
) {
    reduce(src, reduced, dst, Some(&|_, x, y| load(x, y)), Sum(PhantomData), &|_| ());
}

/// Sum in another type: bool and small integers into `i64`, for example.
pub fn sum_as<A: Ordered, B: Number<Acc = B>>(src: View<'_, A>, reduced: &[bool], dst: &mut [B]) {
    sum_map(src, reduced, dst, &cast_slice);
}

/// Product in another type.
pub fn prod_as<A: Ordered, B: Number<Acc = B>>(src: View<'_, A>, reduced: &[bool], dst: &mut [B]) {
    reduce(src, reduced, dst, Some(&|_, x, y| cast_slice(x, y)), Prod(PhantomData), &|_| ());
}

/// How many elements are not zero.
pub fn count_nonzero<T: Ordered>(src: View<'_, T>, reduced: &[bool], dst: &mut [i64]) {
    sum_map(src, reduced, dst, &|x, y| {
        for (y, &x) in y.iter_mut().zip(x) {
            *y = convert::<T, Bool>(x).0 as i64;
        }
    });
}

/// Sum of squares, in the computing type.
pub fn sum_sq<T: RealElement>(src: View<'_, T>, reduced: &[bool], dst: &mut [T::Wide])
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
