//! Softmax, its logarithm and cross entropy, along one axis of row-major data seen as `(outer, n, inner)`.

use crate::parallel::CHUNK;
use crate::simd::simd_fn;
use crate::vmath::Real;
use crate::widen::{RealElement, Room, lane_max, lane_sum, lane_sum2, narrowed, widened};
use crate::{Element, View, parallel};
use sampan_macros::by_dtype;

/// Columns that are worked on side by side where `inner > 1`.
const WIDTH: usize = 128;

/// Calls `f(x, y)` on groups of whole slabs of `each` elements, in the computing type.
fn slabs<T: RealElement>(x: &[T], y: &mut [T], each: usize, f: impl Fn(&[T::Wide], &mut [T::Wide]) + Sync + Send) {
    slabs2(x, x, y, each, |x, _, y| f(x, y));
}

/// The same with two inputs.
fn slabs2<T: RealElement>(
    a: &[T],
    b: &[T],
    y: &mut [T],
    each: usize,
    f: impl Fn(&[T::Wide], &[T::Wide], &mut [T::Wide]) + Sync + Send,
) {
    assert!(a.len() == y.len() && b.len() == y.len(), "softmax: slices of different lengths");
    if each == 0 {
        return;
    }
    let group = (CHUNK / each).max(1) * each;
    parallel::for_each_chunk_mut(y, group, 4, |i, y| {
        let at = i * group..i * group + y.len();
        let (mut ra, mut rb, mut ry) = (Room::default(), Room::default(), Room::default());
        let a_wide = widened(&a[at.clone()], &mut ra);
        // One input handed in twice is widened once.
        let b_wide = if std::ptr::eq(a, b) { a_wide } else { widened(&b[at], &mut rb) };
        narrowed(y, &mut ry, |y| f(a_wide, b_wide, y));
    });
}

simd_fn! {
    fn forward_rows[T: Real](x: &'a [T], y: &'a mut [T], n: usize, log: bool) {
        for (x, y) in x.chunks_exact(n).zip(y.chunks_exact_mut(n)) {
            let m = lane_max(x);
            if log {
                // The peak goes first: beside a large one the logarithm of the sum would be rounded away.
                let rest = lane_sum(x, |x| (x - m).exp()).ln();
                for (y, &x) in y.iter_mut().zip(x) {
                    *y = (x - m) - rest;
                }
            } else {
                for (y, &x) in y.iter_mut().zip(x) {
                    *y = (x - m).exp();
                }
                let scale = lane_sum(y, |y| y).recip();
                for y in y {
                    *y *= scale;
                }
            }
        }
    }
}

simd_fn! {
    fn forward_columns[T: Real](x: &'a [T], y: &'a mut [T], n: usize, inner: usize, log: bool) {
        for (x, y) in x.chunks_exact(n * inner).zip(y.chunks_exact_mut(n * inner)) {
            for j in (0..inner).step_by(WIDTH) {
                let w = WIDTH.min(inner - j);
                let (mut m, mut s) = ([-T::INFINITY; WIDTH], [T::ZERO; WIDTH]);
                for row in x.chunks_exact(inner) {
                    for (m, &x) in m.iter_mut().zip(&row[j..j + w]) {
                        *m = x.max(*m);
                    }
                }
                for (row, out) in x.chunks_exact(inner).zip(y.chunks_exact_mut(inner)) {
                    for (((y, &x), &m), s) in out[j..j + w].iter_mut().zip(&row[j..j + w]).zip(&m).zip(&mut s) {
                        let e = (x - m).exp();
                        *s += e;
                        *y = if log { x - m } else { e };
                    }
                }
                for s in &mut s[..w] {
                    *s = if log { s.ln() } else { s.recip() };
                }
                for out in y.chunks_exact_mut(inner) {
                    for (y, &s) in out[j..j + w].iter_mut().zip(&s) {
                        *y = if log { *y - s } else { *y * s };
                    }
                }
            }
        }
    }
}

simd_fn! {
    fn backward_rows[T: Real](y: &'a [T], g: &'a [T], dx: &'a mut [T], n: usize, log: bool) {
        for ((y, g), dx) in y.chunks_exact(n).zip(g.chunks_exact(n)).zip(dx.chunks_exact_mut(n)) {
            let total = if log { lane_sum(g, |g| g) } else { lane_sum2(y, g, |y, g| y * g) };
            for ((dx, &y), &g) in dx.iter_mut().zip(y).zip(g) {
                *dx = if log { g - y.exp() * total } else { y * (g - total) };
            }
        }
    }
}

simd_fn! {
    fn backward_columns[T: Real](y: &'a [T], g: &'a [T], dx: &'a mut [T], n: usize, inner: usize, log: bool) {
        let each = n * inner;
        for ((y, g), dx) in y.chunks_exact(each).zip(g.chunks_exact(each)).zip(dx.chunks_exact_mut(each)) {
            for j in (0..inner).step_by(WIDTH) {
                let w = WIDTH.min(inner - j);
                let mut total = [T::ZERO; WIDTH];
                for (y, g) in y.chunks_exact(inner).zip(g.chunks_exact(inner)) {
                    for ((t, &y), &g) in total.iter_mut().zip(&y[j..j + w]).zip(&g[j..j + w]) {
                        *t += if log { g } else { y * g };
                    }
                }
                for ((y, g), dx) in y.chunks_exact(inner).zip(g.chunks_exact(inner)).zip(dx.chunks_exact_mut(inner)) {
                    for (((dx, &y), &g), &t) in dx[j..j + w].iter_mut().zip(&y[j..j + w]).zip(&g[j..j + w]).zip(&total) {
                        *dx = if log { g - y.exp() * t } else { y * (g - t) };
                    }
                }
            }
        }
    }
}

fn forward<T: RealElement>(x: &[T], y: &mut [T], n: usize, inner: usize, log: bool) {
    slabs(
        x,
        y,
        n * inner,
        |x, y| {
            if inner == 1 { forward_rows(x, y, n, log) } else { forward_columns(x, y, n, inner, log) }
        },
    );
}

fn backward<T: RealElement>(y: &[T], g: &[T], dx: &mut [T], n: usize, inner: usize, log: bool) {
    slabs2(y, g, dx, n * inner, |y, g, dx| {
        if inner == 1 { backward_rows(y, g, dx, n, log) } else { backward_columns(y, g, dx, n, inner, log) }
    });
}

/// eˣ / Σ eˣ along the middle axis.
#[by_dtype(T in float)]
pub fn softmax<T: RealElement>(x: &[T], y: &mut [T], n: usize, inner: usize) {
    forward(x, y, n, inner, false);
}

/// x − ln Σ eˣ along the middle axis.
#[by_dtype(T in float)]
pub fn log_softmax<T: RealElement>(x: &[T], y: &mut [T], n: usize, inner: usize) {
    forward(x, y, n, inner, true);
}

/// Gradient of [`softmax`] from its output and the gradient there.
#[by_dtype(T in float)]
pub fn softmax_backward<T: RealElement>(y: &[T], g: &[T], dx: &mut [T], n: usize, inner: usize) {
    backward(y, g, dx, n, inner, false);
}

/// Gradient of [`log_softmax`] from its output and the gradient there.
#[by_dtype(T in float)]
pub fn log_softmax_backward<T: RealElement>(y: &[T], g: &[T], dx: &mut [T], n: usize, inner: usize) {
    backward(y, g, dx, n, inner, true);
}

/// The first label that is neither in `0..n` nor `ignore_index`, with its position.
pub fn bad_label(labels: &[i64], n: usize, ignore_index: i64) -> Option<(usize, i64)> {
    labels.iter().copied().enumerate().find(|&(_, l)| l != ignore_index && !(0..n as i64).contains(&l))
}

/// The element of each row at its label, zero where it is `ignore_index`. The labels have been checked.
#[by_dtype(T in bytes)]
pub fn pick<T: Element>(x: View<'_, T>, labels: &[i64], ignore_index: i64, dst: &mut [T]) {
    for (i, (d, &label)) in dst.iter_mut().zip(labels).enumerate() {
        // An ignored label may be any number.
        let place = || x.offset as isize + i as isize * x.strides[0] + label as isize * x.strides[1];
        *d = if label == ignore_index { T::default() } else { x.data[place() as usize] };
    }
}

/// Each element at its label in a row of `classes` zeros, which `dst` holds already: the transpose of [`pick`].
#[by_dtype(T in bytes)]
pub fn unpick<T: Element>(x: &[T], labels: &[i64], ignore_index: i64, classes: usize, dst: &mut [T]) {
    for (i, (&v, &label)) in x.iter().zip(labels).enumerate() {
        if label != ignore_index {
            dst[i * classes + label as usize] = v;
        }
    }
}

simd_fn! {
    fn logsumexp_rows[T: Real](x: &'a [T], peak: &'a mut [T], rest: &'a mut [T], n: usize) {
        for ((x, peak), rest) in x.chunks_exact(n).zip(peak).zip(rest) {
            let m = lane_max(x);
            *peak = m;
            *rest = lane_sum(x, |x| (x - m).exp()).ln();
        }
    }
}

simd_fn! {
    fn scaled_softmax[T: Real](x: &'a [T], y: &'a mut [T], peak: T, rest: T, scale: T) {
        for (y, &x) in y.iter_mut().zip(x) {
            *y = ((x - peak) - rest).exp() * scale;
        }
    }
}

/// Cross entropy of rows of `n` logits with integer labels (checked by [`bad_label`]): the loss of each row, zero where
/// the label is `ignore_index`, and ln Σ eˣ of each row for [`cross_entropy_backward`], in two parts that are not added
/// up, since a large peak would swallow the rest: the largest logit, and the logarithm of the sum relative to it.
#[by_dtype(T in float)]
pub fn cross_entropy<T: RealElement>(
    x: &[T],
    labels: &[i64],
    n: usize,
    ignore_index: i64,
    loss: &mut [T],
    peak: &mut [T::Wide],
    rest: &mut [T::Wide],
) {
    let rows = labels.len();
    assert!(x.len() == rows * n && loss.len() == rows && peak.len() == rows && rest.len() == rows);
    if n == 0 {
        // The sum over no classes is zero.
        peak.fill(-T::Wide::INFINITY);
        rest.fill(-T::Wide::INFINITY);
        loss.fill(T::zeroed());
        return;
    }
    let group = (CHUNK / n).max(1);
    let mut pieces: Vec<_> = peak.chunks_mut(group).zip(rest.chunks_mut(group)).collect();
    parallel::for_each_chunk_mut(&mut pieces, 1, group * n * 4, |i, piece| {
        let (peak, rest) = &mut piece[0];
        let mut room = Room::default();
        logsumexp_rows(widened(&x[i * group * n..][..peak.len() * n], &mut room), peak, rest, n);
    });
    for (i, (loss, &label)) in loss.iter_mut().zip(labels).enumerate() {
        let hit = || x[i * n + label as usize].wide();
        *loss = if label == ignore_index { T::zeroed() } else { T::narrow((peak[i] - hit()) + rest[i]) };
    }
}

/// Gradient of [`cross_entropy`] with respect to the logits, `g` being the gradient of each row's loss. Without `hot` the
/// share of the labels is left out: the softmax times `g` remains.
#[by_dtype(T in float)]
pub fn cross_entropy_backward<T: RealElement>(
    x: &[T],
    labels: &[i64],
    n: usize,
    ignore_index: i64,
    peak: &[T::Wide],
    rest: &[T::Wide],
    g: &[T],
    hot: bool,
    dx: &mut [T],
) {
    let rows = labels.len();
    assert!(x.len() == dx.len() && x.len() == rows * n && g.len() == rows && peak.len() == rows && rest.len() == rows);
    if n == 0 {
        return;
    }
    let group = (CHUNK / n).max(1);
    parallel::for_each_chunk_mut(dx, group * n, 4, |i, dx| {
        let (mut rx, mut ry) = (Room::default(), Room::default());
        for (k, dx) in dx.chunks_exact_mut(n).enumerate() {
            let row = i * group + k;
            if labels[row] == ignore_index {
                dx.fill(T::zeroed());
                continue;
            }
            let x = widened(&x[row * n..][..n], &mut rx);
            let scale = g[row].wide();
            narrowed(dx, &mut ry, |dx| {
                scaled_softmax(x, dx, peak[row], rest[row], scale);
                if hot {
                    dx[labels[row] as usize] -= scale;
                }
            });
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::f16;

    fn data(n: usize, k: u64) -> Vec<f64> {
        (0..n as u64).map(|i| ((i * 7919 + k * 31) % 997) as f64 / 150.0 - 3.0).collect()
    }

    fn close(a: &[f64], b: &[f64], tolerance: f64) {
        assert_eq!(a.len(), b.len());
        for (a, b) in a.iter().zip(b) {
            assert!((a - b).abs() <= tolerance * (1.0 + b.abs()), "{a} {b}");
        }
    }

    #[test]
    fn both_layouts_agree_with_plain_loops() {
        for (outer, n, inner) in [(7, 5, 1), (3, 100, 1), (2, 6, 300), (300, 10, 1), (1, 3, 4), (50, 20, 40)] {
            let x = data(outer * n * inner, 1);
            let g = data(outer * n * inner, 2);
            let (mut want, mut dwant) = (x.clone(), x.clone());
            for o in 0..outer {
                for j in 0..inner {
                    let at = |k: usize| (o * n + k) * inner + j;
                    let s: f64 = (0..n).map(|k| x[at(k)].exp()).sum();
                    (0..n).for_each(|k| want[at(k)] = x[at(k)].exp() / s);
                    let dot: f64 = (0..n).map(|k| want[at(k)] * g[at(k)]).sum();
                    (0..n).for_each(|k| dwant[at(k)] = want[at(k)] * (g[at(k)] - dot));
                }
            }
            let (mut y, mut l, mut dx, mut dl) = (x.clone(), x.clone(), x.clone(), x.clone());
            softmax_of(&x, &mut y, n, inner);
            close(&y, &want, 1e-12);
            log_softmax_of(&x, &mut l, n, inner);
            close(&l, &want.iter().map(|w| w.ln()).collect::<Vec<_>>(), 1e-12);
            softmax_backward_of(&y, &g, &mut dx, n, inner);
            close(&dx, &dwant, 1e-12);
            // d log_softmax: feeding g·y gives the softmax gradient.
            let gy: Vec<f64> = g.iter().zip(&y).map(|(g, y)| g * y).collect();
            log_softmax_backward_of(&l, &gy, &mut dl, n, inner);
            close(&dl, &dwant, 1e-12);
            let h: Vec<f16> = x.iter().map(|&x| f16::from_f64(x)).collect();
            let mut hy = h.clone();
            softmax_of(&h, &mut hy, n, inner);
            close(&hy.iter().map(|y| y.to_f64()).collect::<Vec<_>>(), &want, 5e-3);
        }
    }

    #[test]
    fn cross_entropy_and_gradient() {
        let (rows, n) = (40, 13);
        let x: Vec<f32> = data(rows * n, 3).iter().map(|&v| v as f32).collect();
        let labels: Vec<i64> = (0..rows as i64).map(|i| if i % 9 == 4 { -100 } else { i % 13 }).collect();
        assert_eq!(bad_label(&labels, n, -100), None);
        assert_eq!(bad_label(&labels, n, -1), Some((4, -100)));
        let (mut loss, mut peak, mut rest) = (vec![0f32; rows], vec![0f32; rows], vec![0f32; rows]);
        cross_entropy_of(&x, &labels, n, -100, &mut loss, &mut peak, &mut rest);
        let mut y = x.clone();
        softmax_of(&x, &mut y, n, 1);
        let mut dx = x.clone();
        let g: Vec<f32> = (0..rows).map(|i| i as f32 * 0.1).collect();
        cross_entropy_backward_of(&x, &labels, n, -100, &peak, &rest, &g, true, &mut dx);
        for r in 0..rows {
            for k in 0..n {
                let hot = (labels[r] == k as i64) as u8 as f32;
                let want = if labels[r] == -100 { 0.0 } else { (y[r * n + k] - hot) * g[r] };
                assert!((dx[r * n + k] - want).abs() < 1e-5);
            }
            let want = if labels[r] == -100 { 0.0 } else { -y[r * n + labels[r] as usize].ln() };
            assert!((loss[r] - want).abs() < 1e-5);
        }
    }
}
