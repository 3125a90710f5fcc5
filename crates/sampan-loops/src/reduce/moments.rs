//! Reductions that go over the elements twice: first a level, then the distances from it.

use super::drive::{Load, Place, reduce};
use super::fold::{Max, Min, Sum};
use super::{Number, max_of};
use crate::cast::cast_slice;
use crate::simd::simd_fn;
use crate::vmath::Real;
use crate::widen::RealElement;
use crate::{Ordered, View};
use sampan_macros::by_dtype;
use std::marker::PhantomData;

/// ln Σ eˣ over the flagged axes, without overflow.
#[by_dtype(T in float)]
pub fn logsumexp<T: RealElement + Number<Acc = <T as RealElement>::Wide>>(
    src: View<'_, T>,
    reduced: &[bool],
    dst: &mut [T],
) where
    T::Wide: Number<Acc = T::Wide>,
{
    let mut peak = vec![T::zeroed(); dst.len()];
    max_of(src, reduced, &mut peak);
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

/// Sum of squared distances from the mean over the flagged axes, divided by `freedom`; with `root` the root of that.
#[by_dtype(T in float)]
pub fn variance<T: RealElement + Number<Acc = <T as RealElement>::Wide>>(
    src: View<'_, T>,
    reduced: &[bool],
    freedom: f64,
    root: bool,
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
    let finish = |s: f64| T::from_f64(if root { (s / freedom).sqrt() } else { s / freedom });
    let narrow = T::Wide::EPSILON.to_f64() > f64::EPSILON;
    if narrow && total.iter().any(|s| beyond(Ordered::to_f64(*s), root)) {
        // The squares left the range of f32; that of f64 holds them all.
        let (mut mean, mut total) = (vec![0.0; dst.len()], vec![0.0; dst.len()]);
        super::sum_as(src, reduced, &mut mean);
        mean.iter_mut().for_each(|m| *m /= n as f64);
        let load = |place: Place, x: &[T], y: &mut [f64]| {
            cast_slice(x, y);
            square_shifted(y, place.of(&mean, x.len()));
        };
        reduce(src, reduced, &mut total, Some(&load), Sum(PhantomData), &|_| ());
        return dst.iter_mut().zip(total).for_each(|(d, s)| *d = finish(s));
    }
    for (d, s) in dst.iter_mut().zip(&total) {
        *d = finish(Ordered::to_f64(*s));
    }
}

/// Whether a sum of powers in `f32` is not to be trusted: it overflowed, or, where its `root` is wanted, it may have
/// vanished while the root has not.
fn beyond(sum: f64, root: bool) -> bool {
    !sum.is_finite() || (root && sum < 1e-30)
}

/// `(Σ |x|^p)^(1/p)` over the flagged axes, for a finite p; how many are not zero for p = 0.
#[by_dtype(T in float)]
pub fn power_norm<T: RealElement>(src: View<'_, T>, reduced: &[bool], p: f64, dst: &mut [T])
where
    T::Wide: Number<Acc = T::Wide>,
{
    let mut sums = vec![T::Wide::ZERO; dst.len()];
    let each = |f: &(dyn Fn(T::Wide) -> T::Wide + Sync), sums: &mut [T::Wide]| {
        super::sum_map(src, reduced, sums, &|x: &[T], y: &mut [T::Wide]| {
            T::widen_slice(x, y);
            y.iter_mut().for_each(|y| *y = f(*y));
        })
    };
    let exponent = T::Wide::of(p);
    match p {
        0.0 => each(&|x| if x == T::Wide::ZERO { x } else { T::Wide::ONE }, &mut sums),
        1.0 => each(&|x| x.abs(), &mut sums),
        2.0 => super::sum_sq(src, reduced, &mut sums),
        _ => each(&|x| x.abs().powf(exponent), &mut sums),
    }
    let plain = p == 0.0 || p == 1.0;
    let tiny = if T::Wide::EPSILON.to_f64() > f64::EPSILON { 1e-30 } else { 1e-290 };
    if !plain && sums.iter().any(|s| !s.is_finite() || s.to_f64() < tiny) {
        return scaled_norm(src, reduced, p, dst);
    }
    for (d, s) in dst.iter_mut().zip(sums) {
        *d = T::narrow(match p {
            _ if plain => s,
            2.0 => s.sqrt(),
            _ => s.powf(exponent.recip()),
        });
    }
}

/// [`power_norm`] where the powers leave the range: relative to the largest element, or for negative p the smallest.
#[cold]
fn scaled_norm<T: RealElement>(src: View<'_, T>, reduced: &[bool], p: f64, dst: &mut [T]) {
    let mut level = vec![0.0; dst.len()];
    let size = |_: Place, x: &[T], y: &mut [f64]| {
        cast_slice(x, y);
        y.iter_mut().for_each(|y| *y = y.abs());
    };
    match p > 0.0 {
        true => reduce(src, reduced, &mut level, Some(&size), Max(PhantomData), &|_| ()),
        false => reduce(src, reduced, &mut level, Some(&size), Min(PhantomData), &|_| ()),
    }
    let mut sums = vec![0.0; dst.len()];
    let load = |place: Place, x: &[T], y: &mut [f64]| {
        cast_slice(x, y);
        let level = place.of(&level, x.len());
        y.iter_mut().enumerate().for_each(|(i, y)| *y = (y.abs() / level[i.min(level.len() - 1)]).powf(p));
    };
    reduce(src, reduced, &mut sums, Some(&load), Sum(PhantomData), &|_| ());
    for ((d, m), s) in dst.iter_mut().zip(level).zip(sums) {
        *d = T::from_f64(match m {
            m if m > 0.0 && m < f64::INFINITY => m * s.powf(1.0 / p),
            // Over no elements.
            f64::NEG_INFINITY => 0.0,
            // Zero, infinity and NaN are the norm themselves.
            m => m,
        });
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
