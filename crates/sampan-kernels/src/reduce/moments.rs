//! Reductions that go over the elements twice: first a level, then the distances from it.

use super::drive::{Load, Place, reduce};
use super::fold::Sum;
use super::{Number, max};
use crate::simd::simd_fn;
use crate::vmath::Real;
use crate::widen::RealElement;
use crate::{Ordered, View};
use std::marker::PhantomData;

/// ln Σ eˣ over the flagged axes, without overflow.
pub fn logsumexp<T: RealElement + Number<Acc = <T as RealElement>::Wide>>(
    src: View<'_, T>,
    reduced: &[bool],
    dst: &mut [T],
) where
    T::Wide: Number<Acc = T::Wide>,
{
    let mut peak = vec![T::zeroed(); dst.len()];
    max(src, reduced, &mut peak);
    let peak: Vec<T::Wide> = peak.into_iter().map(RealElement::wide).collect();
    let mut total = vec![T::Wide::ZERO; dst.len()];
    let load = |place: Place, x: &[T], y: &mut [T::Wide]| {
        T::widen_slice(x, y);
        exp_shifted(y, place.of(&peak, x.len()));
    };
    reduce(src, reduced, &mut total, Some(&load), Sum(PhantomData), &|_| ());
    for ((d, &m), s) in dst.iter_mut().zip(&peak).zip(&total) {
        *d = T::narrow(if m.is_inf() { m } else { m + s.ln() });
    }
}

/// Sum of squared distances from the mean over the flagged axes, divided by `freedom`.
pub fn variance<T: RealElement + Number<Acc = <T as RealElement>::Wide>>(
    src: View<'_, T>,
    reduced: &[bool],
    freedom: f64,
    dst: &mut [T],
) where
    T::Wide: Number<Acc = T::Wide>,
{
    let n: usize = src.shape.iter().zip(reduced).filter(|&(_, &r)| r).map(|(&n, _)| n).product();
    let (mut mean, mut total) = (vec![T::Wide::ZERO; dst.len()], vec![T::Wide::ZERO; dst.len()]);
    let widen = |_: Place, x: &[T], y: &mut [T::Wide]| T::widen_slice(x, y);
    let load: Load<'_, T, T::Wide> = if T::HALF { Some(&widen) } else { None };
    reduce(src, reduced, &mut mean, load, Sum(PhantomData), &|_| ());
    mean.iter_mut().for_each(|m| *m = T::Wide::of(Ordered::to_f64(*m) / n as f64));
    let load = |place: Place, x: &[T], y: &mut [T::Wide]| {
        T::widen_slice(x, y);
        square_shifted(y, place.of(&mean, x.len()));
    };
    reduce(src, reduced, &mut total, Some(&load), Sum(PhantomData), &|_| ());
    for (d, s) in dst.iter_mut().zip(&total) {
        *d = T::from_f64(Ordered::to_f64(*s) / freedom);
    }
}

/// Applies a function of an element and a shift, which is one for all elements or one for each.
macro_rules! shifted {
    ($($name:ident, |$x:ident, $m:ident| $e:expr;)*) => {$(
        simd_fn! {
            fn $name[T: Real](x: &'a mut [T], shift: &'a [T]) {
                if let &[$m] = shift {
                    for x in x {
                        let $x = *x;
                        *x = $e;
                    }
                } else {
                    for (x, &$m) in x.iter_mut().zip(shift) {
                        let $x = *x;
                        *x = $e;
                    }
                }
            }
        }
    )*};
}
shifted! {
    exp_shifted, |x, m| (x - m).exp();
    square_shifted, |x, m| (x - m).square();
}
