//! Sums over a channel, and its statistics.

use crate::simd::simd_fn;
use crate::vmath::Real;
use crate::widen::add_lanes;
use std::ops::Range;

/// Elements that are summed in the computing type before the sum goes on in `f64`.
const PIECE: usize = 4096;
/// Short lines are summed together, so many at most. Pieces begin with a sample whose number is a multiple of it, so that sums have
/// the same pieces where a batch is cut between such samples.
const TOGETHER: usize = 16;
/// Independent accumulators of a sum.
const LANES: usize = 32;

/// Where a channel lies: `count` lines of `len` elements, `step` apart.
#[derive(Clone, Copy)]
pub struct Lines {
    pub first: usize,
    pub step: usize,
    pub count: usize,
    pub len: usize,
}

impl Lines {
    #[inline(always)]
    pub fn line(&self, i: usize) -> Range<usize> {
        let at = self.first + i * self.step;
        at..at + self.len
    }
}

/// Adds `f` of each element to the lanes of two sums.
#[inline(always)]
fn sum_line<T: Real>(x: &[T], g: &[T], sums: &mut [[T; LANES]; 2], f: impl Fn(T, T) -> (T, T)) {
    // Local, so that they stay in registers.
    let [mut s, mut t] = *sums;
    let (mut xs, mut gs) = (x.chunks_exact(LANES), g.chunks_exact(LANES));
    for (x, g) in xs.by_ref().zip(gs.by_ref()) {
        for j in 0..LANES {
            let (a, b) = f(x[j], g[j]);
            s[j] += a;
            t[j] += b;
        }
    }
    let (mut x, mut g) = (xs.remainder(), gs.remainder());
    if let (Some((x0, x1)), Some((g0, g1))) = (x.split_at_checked(LANES / 2), g.split_at_checked(LANES / 2)) {
        for j in 0..LANES / 2 {
            let (a, b) = f(x0[j], g0[j]);
            s[j] += a;
            t[j] += b;
        }
        (x, g) = (x1, g1);
    }
    for (j, (&x, &g)) in x.iter().zip(g).enumerate() {
        let (a, b) = f(x, g);
        s[j] += a;
        t[j] += b;
    }
    *sums = [s, t];
}

/// Two sums over each piece of a channel, of `f(first x of the piece, x, g)`; `take` is given that first x, how many elements the
/// piece has, and the sums.
#[inline(always)]
pub fn sum_pieces<T: Real>(
    x: &[T],
    g: &[T],
    lines: Lines,
    f: impl Fn(T, T, T) -> (T, T) + Copy,
    mut take: impl FnMut(T, usize, [T; 2]),
) {
    // A power of two, as what it divides is.
    let together = 1 << (PIECE / lines.len.max(1)).clamp(1, TOGETHER).ilog2();
    for first in (0..lines.count).step_by(together) {
        let group = first..lines.count.min(first + together);
        for at in (0..lines.len).step_by(PIECE) {
            let part = at..lines.len.min(at + PIECE);
            let from = x[lines.line(first).start + at];
            let mut sums = [[T::ZERO; LANES]; 2];
            for i in group.clone() {
                let line = lines.line(i);
                let span = line.start + part.start..line.start + part.end;
                sum_line(&x[span.clone()], &g[span], &mut sums, |x, g| f(from, x, g));
            }
            take(from, group.len() * part.len(), sums.map(add_lanes));
        }
    }
}

simd_fn! {
    /// Mean and biased variance of a channel in one pass: deviations are taken from the first value of each piece, which keeps
    /// the difference of squares harmless.
    pub fn statistics[T: Real](x: &'a [T], lines: Lines) -> (f64, f64) {
        let origin = x[lines.first].to_f64();
        let (mut total, mut squares) = (0.0, 0.0);
        sum_pieces(x, x, lines, |from, x, _| (x - from, (x - from).square()), |from, n, [s, q]| {
            let (n, s, q) = (n as f64, s.to_f64(), q.to_f64());
            // The piece's own distance from the origin, and what its elements are away from their mean.
            let far = from.to_f64() - origin + s / n;
            total += n * far;
            squares += f64::max(q - s * s / n, if q.is_nan() { f64::NAN } else { 0.0 }) + n * far * far;
        });
        let count = (lines.count * lines.len) as f64;
        if !squares.is_finite() {
            return statistics_f64(x, lines, count);
        }
        let mean = total / count;
        (origin + mean, f64::max(squares / count - mean * mean, 0.0))
    }
}

/// The statistics of a channel whose squares overflow.
#[cold]
#[inline(never)]
fn statistics_f64<T: Real>(x: &[T], lines: Lines, count: f64) -> (f64, f64) {
    let each = || (0..lines.count).flat_map(|i| &x[lines.line(i)]).map(|x| x.to_f64());
    let mean = each().sum::<f64>() / count;
    (mean, each().map(|x| (x - mean).powi(2)).sum::<f64>() / count)
}
