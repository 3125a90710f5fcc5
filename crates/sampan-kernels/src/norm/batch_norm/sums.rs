//! Sums over a channel, and its statistics.

use crate::simd::simd_fn;
use crate::vmath::Real;
use crate::widen::add_lanes;
use std::ops::Range;

/// Independent accumulators of a sum.
const LANES: usize = 16;

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
fn sum_line<T: Real>(x: &[T], g: &[T], sums: &mut [[f64; LANES]; 2], f: impl Fn(T, T) -> (f64, f64)) {
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

/// Two sums over a channel.
#[inline(always)]
pub fn sum_lines<T: Real>(x: &[T], g: &[T], lines: Lines, f: impl Fn(T, T) -> (f64, f64) + Copy) -> (f64, f64) {
    let mut sums = [[0.0; LANES]; 2];
    for i in 0..lines.count {
        sum_line(&x[lines.line(i)], &g[lines.line(i)], &mut sums, f);
    }
    let [a, b] = sums.map(add_lanes);
    (a, b)
}

simd_fn! {
    /// Mean and biased variance of a channel in one pass: deviations are taken from its first value, which keeps the
    /// difference of squares harmless.
    pub fn statistics[T: Real](x: &'a [T], lines: Lines) -> (f64, f64) {
        let from = x[lines.first].to_f64();
        let (s, q) = sum_lines(x, x, lines, |x, _| {
            let d = x.to_f64() - from;
            (d, d * d)
        });
        let count = (lines.count * lines.len) as f64;
        if !q.is_finite() {
            return statistics_f64(x, lines, count);
        }
        let mean = s / count;
        (from + mean, f64::max(q / count - mean * mean, if q.is_nan() { f64::NAN } else { 0.0 }))
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
