//! Running sums, products and extremes along one axis of row-major data seen as `(outer, n, inner)`.

use crate::complex::ComplexElement;
use crate::parallel::CHUNK;
use crate::reduce::Number;
use crate::vmath::Real;
use crate::{Element, Ordered, RealElement, parallel};
use sampan_macros::by_dtype;
use std::ops::{Add, Mul};

/// Calls `f(outer index, its n·inner outputs)`, several outer indices to a parallel piece.
fn for_each_outer<A: Send>(dst: &mut [A], n: usize, inner: usize, f: impl Fn(usize, &mut [A]) + Sync + Send) {
    let each = n * inner;
    if each == 0 {
        return;
    }
    let group = (CHUNK / each).max(1);
    parallel::for_each_chunk_mut(dst, group * each, 4, |i, piece| {
        for (k, out) in piece.chunks_mut(each).enumerate() {
            f(i * group + k, out);
        }
    });
}

/// `dst[.., k, ..] = join(dst[.., k − 1, ..], src[.., k, ..])`, in the accumulating type.
fn scan<T: Element, A: Copy + Send>(
    src: &[T],
    dst: &mut [T],
    (n, inner): (usize, usize),
    load: impl Fn(T) -> A + Sync + Send,
    join: impl Fn(A, A) -> A + Sync + Send,
    store: impl Fn(A) -> T + Sync + Send,
) {
    assert_eq!(src.len(), dst.len(), "scan: the destination has another size");
    for_each_outer(dst, n, inner, |o, out| {
        let x = &src[o * n * inner..][..n * inner];
        let mut acc: Vec<A> = x[..inner].iter().map(|&v| load(v)).collect();
        out[..inner].copy_from_slice(&x[..inner]);
        if inner == 1 {
            let mut a = acc[0];
            for (y, &v) in out[1..].iter_mut().zip(&x[1..]) {
                a = join(a, load(v));
                *y = store(a);
            }
            return;
        }
        for (x, y) in x.chunks(inner).zip(out.chunks_mut(inner)).skip(1) {
            for ((a, &v), y) in acc.iter_mut().zip(x).zip(y) {
                *a = join(*a, load(v));
                *y = store(*a);
            }
        }
    });
}

#[inline(always)]
fn load<T: Number>(v: T) -> T::Chain {
    crate::cast::convert(v)
}

#[inline(always)]
fn store<T: Number>(v: T::Chain) -> T {
    crate::cast::convert(v)
}

/// Running sum; floats add up in `f64`, integers wrap.
#[by_dtype(T in number)]
pub fn cumsum<T: Number>(src: &[T], dst: &mut [T], n: usize, inner: usize) {
    scan(src, dst, (n, inner), load::<T>, Number::add, store);
}

/// Running product.
#[by_dtype(T in number)]
pub fn cumprod<T: Number>(src: &[T], dst: &mut [T], n: usize, inner: usize) {
    scan(src, dst, (n, inner), load::<T>, Number::mul, store);
}

/// Running product of complex numbers.
#[by_dtype(T in complex)]
pub fn cumprod_complex<T: ComplexElement>(src: &[T], dst: &mut [T], n: usize, inner: usize) {
    scan(src, dst, (n, inner), T::number, |a, b| a * b, T::element);
}

/// Running ln Σ eˣ.
#[by_dtype(T in float)]
pub fn logcumsumexp<T: RealElement>(src: &[T], dst: &mut [T], n: usize, inner: usize) {
    // The peak so far, NaN once one was met, and the sum of exponentials relative to it.
    let join = |(m, s): (T::Wide, f64), (x, _): (T::Wide, f64)| {
        if x > m {
            (x, s * (m - x).exp().to_f64() + 1.0)
        } else if m == -T::Wide::INFINITY || x.is_nan() {
            (if x.is_nan() { x } else { m }, s)
        } else {
            (m, s + (x - m).exp().to_f64())
        }
    };
    let load = |v: T| {
        let v = v.wide();
        (v, if v == -T::Wide::INFINITY { 0.0 } else { 1.0 })
    };
    scan(src, dst, (n, inner), load, join, |(m, s)| {
        T::from_f64(if m.is_inf() { m.to_f64() } else { m.to_f64() + s.ln() })
    });
}

/// `dst[k] = a[k] · dst[k − 1] + b[k]`, from zero.
#[by_dtype(T in float)]
pub fn linear_recurrence<T: RealElement>(a: &[T], b: &[T], dst: &mut [T], n: usize, inner: usize) {
    recurrence(a, b, dst, (n, inner), |v: T| v.to_f64(), T::from_f64);
}

/// [`linear_recurrence`] of complex numbers.
#[by_dtype(T in complex)]
pub fn linear_recurrence_complex<T: ComplexElement>(a: &[T], b: &[T], dst: &mut [T], n: usize, inner: usize) {
    recurrence(a, b, dst, (n, inner), T::number, T::element);
}

fn recurrence<T: Element, A: Copy + Add<Output = A> + Mul<Output = A>>(
    a: &[T],
    b: &[T],
    dst: &mut [T],
    (n, inner): (usize, usize),
    load: impl Fn(T) -> A + Sync + Send,
    store: impl Fn(A) -> T + Sync + Send,
) {
    assert!(a.len() == dst.len() && b.len() == dst.len(), "scan: slices of different lengths");
    for_each_outer(dst, n, inner, |o, out| {
        let part = o * n * inner..(o + 1) * n * inner;
        let mut last = vec![load(T::zeroed()); inner];
        for ((a, b), y) in a[part.clone()].chunks(inner).zip(b[part].chunks(inner)).zip(out.chunks_mut(inner)) {
            for (((s, a), b), y) in last.iter_mut().zip(a).zip(b).zip(y) {
                *s = load(*a) * *s + load(*b);
                *y = store(*s);
            }
        }
    });
}

/// Running maximum and where it was met last; NaN, once met, stays.
#[by_dtype(T in number)]
pub fn cummax<T: Number>(src: &[T], values: &mut [T], indices: &mut [i64], n: usize, inner: usize) {
    extreme(src, values, indices, n, inner, |x, best| x >= best);
}

/// Running minimum and where it was met last; NaN, once met, stays.
#[by_dtype(T in number)]
pub fn cummin<T: Number>(src: &[T], values: &mut [T], indices: &mut [i64], n: usize, inner: usize) {
    extreme(src, values, indices, n, inner, |x, best| x <= best);
}

fn extreme<T: Number>(
    src: &[T],
    values: &mut [T],
    indices: &mut [i64],
    n: usize,
    inner: usize,
    wins: impl Fn(T, T) -> bool + Sync + Send,
) {
    assert!(src.len() == values.len() && src.len() == indices.len(), "scan: a destination has another size");
    for_each_outer(indices, n, inner, |o, out| {
        let x = &src[o * n * inner..][..n * inner];
        for j in 0..inner {
            let (mut best, mut at) = (x[j], 0);
            for k in 0..n {
                let v = x[k * inner + j];
                if !best.is_nan() && (wins(v, best) || v.is_nan()) {
                    best = v;
                    at = k;
                }
                out[k * inner + j] = at as i64;
            }
        }
    });
    let indices = &*indices;
    for_each_outer(values, n, inner, |o, out| {
        let from = o * n * inner;
        for (i, y) in out.iter_mut().enumerate() {
            *y = src[from + indices[from + i] as usize * inner + i % inner];
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn running() {
        let x: Vec<i32> = (0..24).map(|i| (i * 7) % 5 - 2).collect();
        for (outer, n, inner) in [(1, 24, 1), (2, 4, 3), (6, 4, 1), (1, 2, 12)] {
            let (mut s, mut m, mut at) = (vec![0; 24], vec![0; 24], vec![0i64; 24]);
            cumsum_of(&x, &mut s, n, inner);
            cummax_of(&x, &mut m, &mut at, n, inner);
            for o in 0..outer {
                for j in 0..inner {
                    let pick = |k: usize| x[(o * n + k) * inner + j];
                    for k in 0..n {
                        let here = (o * n + k) * inner + j;
                        assert_eq!(s[here], (0..=k).map(pick).sum::<i32>());
                        let best = (0..=k).map(pick).max().unwrap();
                        assert_eq!(m[here], best);
                        assert_eq!(at[here] as usize, (0..=k).rev().find(|&k| pick(k) == best).unwrap());
                    }
                }
            }
        }
    }

    #[test]
    fn long_chains_do_not_stop() {
        let n = (1 << 24) + 100;
        let mut y = vec![0f32; n];
        cumsum_of(&vec![1f32; n], &mut y, n, 1);
        assert_eq!(y[n - 1], n as f32);
        logcumsumexp_of(&vec![0f32; n], &mut y, n, 1);
        assert_eq!(y[n - 1], (n as f64).ln() as f32);
    }

    #[test]
    fn recurrences() {
        let (a, b) = ([0.5f32, 2.0, 3.0, 0.0], [1.0f32, 1.0, 1.0, 5.0]);
        let mut y = [0.0; 4];
        linear_recurrence_of(&a, &b, &mut y, 4, 1);
        assert_eq!(y, [1.0, 3.0, 10.0, 5.0]);
        linear_recurrence_of(&a, &b, &mut y, 2, 2);
        assert_eq!(y, [1.0, 1.0, 4.0, 5.0]);
    }

    #[test]
    fn logarithms_and_nan() {
        let x = [0.0f64, 1000.0, -3.0, 999.0];
        let mut y = [0.0; 4];
        logcumsumexp_of(&x, &mut y, 4, 1);
        assert_eq!(y[..3], [0.0, 1000.0, 1000.0]);
        assert!((y[3] - 1000.3132616875182).abs() < 1e-12);
        let x = [f64::NEG_INFINITY, f64::NEG_INFINITY, 1.0, f64::NAN];
        logcumsumexp_of(&x, &mut y, 4, 1);
        assert!(y[1] == f64::NEG_INFINITY && y[2] == 1.0 && y[3].is_nan());
        logcumsumexp_of(&[1.0, f64::NAN, f64::INFINITY, 2.0], &mut y, 4, 1);
        assert!(y[0] == 1.0 && y[1..].iter().all(|y| y.is_nan()));
        let x = [1.0f32, f32::NAN, 3.0];
        let (mut v, mut at) = ([0.0; 3], [0; 3]);
        cummin_of(&x, &mut v, &mut at, 3, 1);
        assert!(v[0] == 1.0 && v[1].is_nan() && v[2].is_nan());
        assert_eq!(at, [0, 1, 1]);
    }
}
