//! Attention, `softmax(scale · q kᵀ + mask) v`, in tiles: the matrix of all scores is never built. The forward pass keeps
//! the logarithm of each row's sum of exponentials, in `f64`, where it has room beside a large score; the backward pass
//! makes the tiles again from it. The random numbers of
//! dropout come from a counter that the place of a weight determines, so they too are made again instead of kept.

use crate::gemm::{Gemm, Mat, MatMut, matmul_serial};
use crate::rng::keep_or_drop;
use crate::shared::Shared;
use crate::simd::simd_fn;
use crate::vmath::Real;
use crate::widen::{lane_max, lane_sum};
use crate::{View, parallel};
use sampan_macros::by_dtype;

/// Queries in a tile.
const ROWS: usize = 64;
/// Keys in a tile.
const COLUMNS: usize = 128;
const _: () = assert!(COLUMNS.is_multiple_of(GROUP));

/// Sizes and rules of an attention. All tensors are row-major: `q` is `[batch, q_len, heads, dim]`, `k` is
/// `[batch, kv_len, kv_heads, dim]`, `v` is `[batch, kv_len, kv_heads, v_dim]`. `heads` is a multiple of `kv_heads`;
/// neighbouring heads share keys and values. A mask, which is added to the scores, is a view of shape
/// `[batch, heads, q_len, kv_len]`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Attention {
    /// Sequences.
    pub batch: usize,
    /// Heads of the queries.
    pub heads: usize,
    /// Heads of the keys and values.
    pub kv_heads: usize,
    /// Queries in a sequence.
    pub q_len: usize,
    /// Keys in a sequence.
    pub kv_len: usize,
    /// Width of queries and keys.
    pub dim: usize,
    /// Width of values.
    pub v_dim: usize,
    /// Factor of the scores.
    pub scale: f64,
    /// Query `i` sees the keys `0..=i` only.
    pub causal: bool,
    /// What happens to the weights before they meet the values.
    pub dropout: Option<Dropout>,
}

/// Each weight becomes zero with probability `p`, the others are scaled so that the mean stays.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dropout {
    /// The share that is dropped.
    pub p: f64,
    /// The stream of random numbers.
    pub seed: u64,
    /// Where this call's part of it begins.
    pub start: u64,
}

/// Keys whose random numbers share counters: what [`keep_or_drop`] makes at once.
const GROUP: usize = 64;
/// Counters to a group.
const COUNTERS: usize = 16;

impl Dropout {
    /// Counters that a call with so many rows of weights uses.
    pub fn counters(rows: usize, kv_len: usize) -> usize {
        rows * kv_len.div_ceil(GROUP) * COUNTERS
    }

    /// The factors of a row's weights from key `from` on, a multiple of [`GROUP`].
    fn factors<T: Real>(&self, row: usize, kv_len: usize, from: usize, out: &mut [T]) {
        let group = row * kv_len.div_ceil(GROUP) + from / GROUP;
        let keep = 1.0 - self.p;
        let scale = if keep > 0.0 { T::of(1.0 / keep) } else { T::ZERO };
        keep_or_drop(self.seed, self.start.wrapping_add((group * COUNTERS) as u64), keep, scale, out);
    }

    /// The factors of all weights, row by row of `kv_len`.
    pub fn all_factors(&self, kv_len: usize, out: &mut [f64]) {
        parallel::for_each_chunk_mut(out, kv_len, 8, |row, out| self.factors(row, kv_len, 0, out));
    }
}

/// A number of `f64` in two parts.
#[derive(Clone, Copy)]
struct Split<T> {
    high: T,
    low: T,
}

impl<T: Real> Split<T> {
    fn new(v: f64) -> Self {
        let high = T::of(v);
        let low = if high.is_finite() { T::of(v - high.to_f64()) } else { T::ZERO };
        Split { high, low }
    }

    /// `x` less the number.
    #[inline(always)]
    fn below(self, x: T) -> T {
        (x - self.high) - self.low
    }
}

simd_fn! {
    /// `s · scale + mask`.
    fn scale_row[T: Real](s: &'a mut [T], scale: T, mask: &'a [T]) {
        if mask.is_empty() {
            s.iter_mut().for_each(|s| *s *= scale);
        } else {
            s.iter_mut().zip(mask).for_each(|(s, &m)| *s = *s * scale + m);
        }
    }
}

simd_fn! {
    /// Turns scores into exponentials above the larger of `max` and their own maximum; returns that and their sum.
    fn exponentials[T: Real](s: &'a mut [T], max: T) -> (T, T) {
        let m = lane_max(s).max(max);
        if m == -T::INFINITY {
            // Nothing seen yet: no weight anywhere.
            s.fill(T::ZERO);
            return (m, T::ZERO);
        }
        for s in s.iter_mut() {
            *s = (*s - m).exp();
        }
        (m, lane_sum(s, |s| s))
    }
}

simd_fn! {
    /// `s ← p = exp(s − lse)`, `d ← p (d − delta) scale`.
    fn score_gradients[T: Real](s: &'a mut [T], d: &'a mut [T], lse: Split<T>, delta: T, scale: T) {
        for (s, d) in s.iter_mut().zip(d) {
            *s = lse.below(*s).exp();
            *d = *s * (*d - delta) * scale;
        }
    }
}

simd_fn! {
    /// The same under dropout: `s ← p · factor`, `d ← p (d · factor − delta) scale`.
    fn dropped_gradients[T: Real](s: &'a mut [T], d: &'a mut [T], factors: &'a [T], lse: Split<T>, delta: T, scale: T) {
        for ((s, d), &factor) in s.iter_mut().zip(d).zip(factors) {
            let p = lse.below(*s).exp();
            *d = p * (*d * factor - delta) * scale;
            *s = p * factor;
        }
    }
}

simd_fn! {
    fn multiply[T: Real](x: &'a mut [T], by: &'a [T]) {
        x.iter_mut().zip(by).for_each(|(x, &by)| *x *= by);
    }
}

simd_fn! {
    fn scale_slice[T: Real](x: &'a mut [T], by: T) {
        x.iter_mut().for_each(|x| *x *= by);
    }
}

/// A tile: rows of queries against a range of keys.
#[derive(Clone, Copy)]
struct Tile {
    b: usize,
    h: usize,
    i: usize,
    rows: usize,
    j: usize,
    cols: usize,
}

/// What is attended to.
#[derive(Clone, Copy)]
struct Inputs<'a, T> {
    s: &'a Attention,
    q: &'a [T],
    k: &'a [T],
    v: &'a [T],
    mask: Option<View<'a, T>>,
}

impl Attention {
    /// Heads that share keys and values.
    fn group(&self) -> usize {
        self.heads / self.kv_heads.max(1)
    }

    /// Keys that queries before `end` can see.
    fn visible(&self, end: usize) -> usize {
        if self.causal { self.kv_len.min(end) } else { self.kv_len }
    }

    /// Multiplications of one head, for the choice between one thread and several.
    fn cost(&self) -> usize {
        self.kv_len * (self.dim + self.v_dim)
    }
}

impl<'a, T: Real + Gemm> Inputs<'a, T> {
    /// Where row `i` of sequence `b` and head `h` starts in a tensor `[batch, len, heads, width]`.
    fn at(b: usize, i: usize, h: usize, len: usize, heads: usize, width: usize) -> usize {
        ((b * len + i) * heads + h) * width
    }

    fn queries<'b>(&self, x: &'b [T], t: Tile, width: usize) -> Mat<'b, T> {
        let offset = Self::at(t.b, t.i, t.h, self.s.q_len, self.s.heads, width);
        Mat { data: x, offset, row_stride: (self.s.heads * width) as isize, col_stride: 1 }
    }

    fn keys<'b>(&self, x: &'b [T], t: Tile, width: usize) -> Mat<'b, T> {
        let offset = Self::at(t.b, t.j, t.h / self.s.group(), self.s.kv_len, self.s.kv_heads, width);
        Mat { data: x, offset, row_stride: (self.s.kv_heads * width) as isize, col_stride: 1 }
    }

    /// The scores of a tile, row-major.
    fn scores(&self, t: Tile, s: &mut [T], mask_row: &mut Vec<T>) {
        let Tile { rows, cols, .. } = t;
        let (q, k) = (self.queries(self.q, t, self.s.dim), self.keys(self.k, t, self.s.dim));
        matmul_serial(rows, cols, self.s.dim, q, k.t(), MatMut::rows(s, cols), false);
        let scale = T::of(self.s.scale);
        for (r, s) in s.chunks_exact_mut(cols).take(rows).enumerate() {
            let i = t.i + r;
            match self.mask {
                None => scale_row(s, scale, &[]),
                Some(mask) => {
                    let [sb, sh, si, sj] = mask.strides else { panic!("attention: the mask must have four axes") };
                    let base = mask.offset as isize + t.b as isize * sb + t.h as isize * sh + i as isize * si;
                    if *sj == 1 {
                        let from = (base + t.j as isize) as usize;
                        scale_row(s, scale, &mask.data[from..from + cols]);
                    } else {
                        mask_row.clear();
                        mask_row.extend((t.j..t.j + cols).map(|j| mask.data[(base + j as isize * sj) as usize]));
                        scale_row(s, scale, mask_row);
                    }
                }
            }
            if self.s.causal && i + 1 < t.j + cols {
                s[(i + 1).saturating_sub(t.j)..].fill(-T::INFINITY);
            }
        }
    }

    fn check(&self) {
        let Attention { batch: b, heads: h, kv_heads: g, q_len: n, kv_len: m, .. } = *self.s;
        assert!(self.q.len() == b * n * h * self.s.dim && self.k.len() == b * m * g * self.s.dim, "attention: q or k");
        assert!(self.v.len() == b * m * g * self.s.v_dim && (h == 0 || g > 0 && h % g == 0), "attention: v or heads");
    }

    fn forward(&self, out: &mut [T], lse: &mut [f64]) {
        self.check();
        let Attention { batch, heads, q_len, v_dim, .. } = *self.s;
        assert!(out.len() == batch * q_len * heads * v_dim && lse.len() == batch * heads * q_len, "attention: outputs");
        let blocks = q_len.div_ceil(ROWS);
        let (out, lse) = (Shared::new(out), Shared::new(lse));
        parallel::for_each_range(batch * heads * blocks, 1, ROWS * self.s.cost(), |tasks| {
            let (mut s, mut acc, mut mask_row) =
                (vec![T::ZERO; ROWS * COLUMNS], vec![T::ZERO; ROWS * v_dim], Vec::new());
            for task in tasks {
                let (bh, i) = (task / blocks, task % blocks * ROWS);
                let (b, h, rows) = (bh / heads, bh % heads, ROWS.min(q_len - i));
                let (mut max, mut sum) = ([-T::INFINITY; ROWS], [T::ZERO; ROWS]);
                acc.fill(T::ZERO);
                let end = self.s.visible(i + rows);
                let mut factors = [T::ZERO; COLUMNS];
                for j in (0..end).step_by(COLUMNS) {
                    let t = Tile { b, h, i, rows, j, cols: COLUMNS.min(end - j) };
                    self.scores(t, &mut s, &mut mask_row);
                    for (r, s) in s.chunks_exact_mut(t.cols).take(rows).enumerate() {
                        let (m, total) = exponentials(s, max[r]);
                        // What was gathered so far stood under the old maximum.
                        let keep = if max[r] == m { T::ONE } else { (max[r] - m).exp() };
                        if keep != T::ONE {
                            scale_slice(&mut acc[r * v_dim..(r + 1) * v_dim], keep);
                        }
                        (sum[r], max[r]) = (sum[r] * keep + total, m);
                        if let Some(dropout) = self.s.dropout {
                            let factors = &mut factors[..t.cols];
                            dropout.factors(bh * q_len + i + r, self.s.kv_len, j, factors);
                            multiply(s, factors);
                        }
                    }
                    let v = self.keys(self.v, t, v_dim);
                    matmul_serial(rows, v_dim, t.cols, Mat::rows(&s, t.cols), v, MatMut::rows(&mut acc, v_dim), true);
                }
                for r in 0..rows {
                    let row = &mut acc[r * v_dim..(r + 1) * v_dim];
                    let seen = sum[r] != T::ZERO;
                    if seen {
                        scale_slice(row, sum[r].recip());
                    }
                    let to = Self::at(b, i + r, h, q_len, heads, v_dim);
                    // SAFETY: the lengths were checked above, and each row of both outputs belongs to one task.
                    unsafe {
                        std::ptr::copy_nonoverlapping(row.as_ptr(), out.get().add(to), v_dim);
                        *lse.get().add(bh * q_len + i + r) =
                            if seen { max[r].to_f64() + sum[r].ln().to_f64() } else { f64::INFINITY };
                    }
                }
            }
        });
    }

    fn backward(&self, lse: &[f64], g: &[T], delta: &[T], dq: &mut [T], dk: &mut [T], dv: &mut [T]) {
        self.check();
        let Attention { batch, heads, kv_heads, q_len, kv_len, dim, v_dim, .. } = *self.s;
        assert!(
            dq.len() == self.q.len() && dk.len() == self.k.len() && dv.len() == self.v.len(),
            "attention: gradients"
        );
        assert!(g.len() == batch * q_len * heads * v_dim, "attention: g");
        assert!(lse.len() == batch * heads * q_len && delta.len() == lse.len(), "attention: lse or delta");
        let group = self.s.group();
        let (dq, dk, dv) = (Shared::new(dq), Shared::new(dk), Shared::new(dv));
        parallel::for_each_range(batch * kv_heads, 1, 2 * group * q_len * self.s.cost(), |tasks| {
            let (mut s, mut d) = (vec![T::ZERO; ROWS * COLUMNS], vec![T::ZERO; ROWS * COLUMNS]);
            let (mut mask_row, mut factors) = (Vec::new(), [T::ZERO; COLUMNS]);
            for task in tasks {
                let (b, kv) = (task / kv_heads, task % kv_heads);
                let (mut dk_sum, mut dv_sum) = (vec![T::ZERO; kv_len * dim], vec![T::ZERO; kv_len * v_dim]);
                for h in kv * group..(kv + 1) * group {
                    for i in (0..q_len).step_by(ROWS) {
                        let rows = ROWS.min(q_len - i);
                        let mut dq_sum = vec![T::ZERO; rows * dim];
                        let end = self.s.visible(i + rows);
                        for j in (0..end).step_by(COLUMNS) {
                            let t = Tile { b, h, i, rows, j, cols: COLUMNS.min(end - j) };
                            let cols = t.cols;
                            let (gm, vm) = (self.queries(g, t, v_dim), self.keys(self.v, t, v_dim));
                            let (qm, km) = (self.queries(self.q, t, dim), self.keys(self.k, t, dim));
                            self.scores(t, &mut s, &mut mask_row);
                            matmul_serial(rows, cols, v_dim, gm, vm.t(), MatMut::rows(&mut d, cols), false);
                            let pairs = s.chunks_exact_mut(cols).zip(d.chunks_exact_mut(cols));
                            for (r, (s, d)) in pairs.take(rows).enumerate() {
                                let row = (b * heads + h) * q_len + i + r;
                                let (lse, delta, scale) = (Split::new(lse[row]), delta[row], T::of(self.s.scale));
                                match self.s.dropout {
                                    None => score_gradients(s, d, lse, delta, scale),
                                    Some(dropout) => {
                                        let factors = &mut factors[..cols];
                                        dropout.factors(row, kv_len, j, factors);
                                        dropped_gradients(s, d, factors, lse, delta, scale);
                                    }
                                }
                            }
                            let (p, ds) = (Mat::rows(&s, cols), Mat::rows(&d, cols));
                            let into = MatMut::rows(&mut dv_sum[j * v_dim..(j + cols) * v_dim], v_dim);
                            matmul_serial(cols, v_dim, rows, p.t(), gm, into, true);
                            let into = MatMut::rows(&mut dk_sum[j * dim..(j + cols) * dim], dim);
                            matmul_serial(cols, dim, rows, ds.t(), qm, into, true);
                            matmul_serial(rows, dim, cols, ds, km, MatMut::rows(&mut dq_sum, dim), true);
                        }
                        copy_rows(&dq_sum, dq, dim, |r| Self::at(b, i + r, h, q_len, heads, dim));
                    }
                }
                copy_rows(&dk_sum, dk, dim, |r| Self::at(b, r, kv, kv_len, kv_heads, dim));
                copy_rows(&dv_sum, dv, v_dim, |r| Self::at(b, r, kv, kv_len, kv_heads, v_dim));
            }
        });
    }
}

/// Writes the result `[batch, q_len, heads, v_dim]` and `lse` `[batch, heads, q_len]`. A query that sees no key at all
/// gives zeros; its `lse` is +∞, so that every weight made from it is zero.
#[by_dtype(T in [f32, f64])]
pub fn forward<T: Real + Gemm>(
    s: &Attention,
    q: &[T],
    k: &[T],
    v: &[T],
    mask: Option<View<T>>,
    out: &mut [T],
    lse: &mut [f64],
) {
    Inputs { s, q, k, v, mask }.forward(out, lse);
}

/// The gradients of `q`, `k` and `v` from `g`, that of the result, and `delta` `[batch, heads, q_len]`, the sums of the
/// products of each row of the result with its gradient.
#[by_dtype(T in [f32, f64])]
pub fn backward<T: Real + Gemm>(
    s: &Attention,
    q: &[T],
    k: &[T],
    v: &[T],
    mask: Option<View<T>>,
    lse: &[f64],
    g: &[T],
    delta: &[T],
    dq: &mut [T],
    dk: &mut [T],
    dv: &mut [T],
) {
    Inputs { s, q, k, v, mask }.backward(lse, g, delta, dq, dk, dv);
}

/// Copies rows to places that no other task writes.
fn copy_rows<T: Copy>(rows: &[T], to: Shared<T>, width: usize, place: impl Fn(usize) -> usize) {
    if width == 0 {
        return;
    }
    for (r, row) in rows.chunks_exact(width).enumerate() {
        // SAFETY: the callers' places are rows of a tensor whose length they checked, each written by one task.
        unsafe { std::ptr::copy_nonoverlapping(row.as_ptr(), to.get().add(place(r)), width) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(len: usize, seed: usize) -> Vec<f64> {
        (0..len).map(|i| ((i * 7919 + seed * 104_729) as f64 * 0.618).sin()).collect()
    }

    /// The definition, score by score.
    fn plain(a: &Inputs<f64>) -> Vec<f64> {
        let mut out = vec![0.0; a.s.batch * a.s.q_len * a.s.heads * a.s.v_dim];
        let mut factors = vec![1.0; a.s.batch * a.s.heads * a.s.q_len * a.s.kv_len];
        if let Some(dropout) = a.s.dropout {
            dropout.all_factors(a.s.kv_len, &mut factors);
            let kept = factors.iter().filter(|&&f| f != 0.0).count() as f64 / factors.len() as f64;
            assert!(factors.len() < 1000 || (kept - 1.0 + dropout.p).abs() < 0.02);
        }
        for b in 0..a.s.batch {
            for h in 0..a.s.heads {
                for i in 0..a.s.q_len {
                    let kv = h / a.s.group();
                    let key = |j: usize, w: usize| ((b * a.s.kv_len + j) * a.s.kv_heads + kv) * w;
                    let at = (b * a.s.q_len + i) * a.s.heads + h;
                    let seen = if a.s.causal { a.s.kv_len.min(i + 1) } else { a.s.kv_len };
                    let score = |j: usize| {
                        let s: f64 = (0..a.s.dim).map(|d| a.q[at * a.s.dim + d] * a.k[key(j, a.s.dim) + d]).sum();
                        let m = a.mask.map_or(0.0, |m| m.data[(i as isize * m.strides[2]) as usize + j]);
                        (s * a.s.scale + m).exp()
                    };
                    let total: f64 = (0..seen).map(score).sum();
                    for j in 0..seen {
                        for d in 0..a.s.v_dim {
                            let factor = factors[((b * a.s.heads + h) * a.s.q_len + i) * a.s.kv_len + j];
                            out[at * a.s.v_dim + d] += score(j) / total * factor * a.v[key(j, a.s.v_dim) + d];
                        }
                    }
                }
            }
        }
        out
    }

    #[test]
    fn tiles_equal_the_definition_and_differences() {
        for (q_len, kv_len, heads, causal, masked) in
            [(3, 5, 2, false, false), (150, 300, 2, false, true), (200, 200, 4, true, false), (70, 130, 2, true, true)]
        {
            let dropout = masked.then_some(Dropout { p: 0.3, seed: 5, start: 48 });
            let (batch, kv_heads, dim, v_dim) = (2, 2, 3, 4);
            let q = noise(batch * q_len * heads * dim, 1);
            let k = noise(batch * kv_len * kv_heads * dim, 2);
            let v = noise(batch * kv_len * kv_heads * v_dim, 3);
            let (m, shape) = (noise(q_len * kv_len, 4), [batch, heads, q_len, kv_len]);
            let mask = View { data: &m, shape: &shape, strides: &[0, 0, kv_len as isize, 1], offset: 0 };
            let s = Attention { batch, heads, kv_heads, q_len, kv_len, dim, v_dim, scale: 0.7, causal, dropout };
            let a = Inputs { s: &s, q: &q, k: &k, v: &v, mask: masked.then_some(mask) };
            let (mut out, mut lse) = (vec![0.0; batch * q_len * heads * v_dim], vec![0.0; batch * heads * q_len]);
            a.forward(&mut out, &mut lse);
            let expected = plain(&a);
            assert!(out.iter().zip(&expected).all(|(x, y)| (x - y).abs() < 1e-12));
            let g = noise(out.len(), 5);
            let (mut dq, mut dk, mut dv) = (vec![0.0; q.len()], vec![0.0; k.len()], vec![0.0; v.len()]);
            let mut delta = vec![0.0; lse.len()];
            for (at, (x, y)) in out.iter().zip(&g).enumerate() {
                let (row, h) = (at / v_dim / heads, at / v_dim % heads);
                delta[(row / q_len * heads + h) * q_len + row % q_len] += x * y;
            }
            a.backward(&lse, &g, &delta, &mut dq, &mut dk, &mut dv);
            let loss = |a: &Inputs<f64>| {
                let (mut out, mut lse) = (vec![0.0; out.len()], vec![0.0; lse.len()]);
                a.forward(&mut out, &mut lse);
                out.iter().zip(&g).map(|(x, y)| x * y).sum::<f64>()
            };
            for (which, (x, dx)) in [(&q, &dq), (&k, &dk), (&v, &dv)].into_iter().enumerate() {
                let at = x.len() / 2;
                let moved = |by: f64| {
                    let mut x = x.clone();
                    x[at] += by;
                    match which {
                        0 => loss(&Inputs { q: &x, ..a }),
                        1 => loss(&Inputs { k: &x, ..a }),
                        _ => loss(&Inputs { v: &x, ..a }),
                    }
                };
                let slope = (moved(1e-5) - moved(-1e-5)) / 2e-5;
                assert!((slope - dx[at]).abs() < 1e-7, "{which}: {slope} {}", dx[at]);
            }
        }
    }

    #[test]
    fn a_query_without_keys_gives_zeros() {
        let (m, q) = ([f32::NEG_INFINITY; 2], [1.0f32, 2.0]);
        let mask = View { data: &m, shape: &[1, 1, 1, 2], strides: &[0, 0, 0, 1], offset: 0 };
        let s = Attention {
            batch: 1,
            heads: 1,
            kv_heads: 1,
            q_len: 1,
            kv_len: 2,
            dim: 1,
            v_dim: 1,
            scale: 1.0,
            causal: false,
            dropout: None,
        };
        let a = Inputs { s: &s, q: &q[..1], k: &q, v: &q, mask: Some(mask) };
        let (mut out, mut lse) = ([9.0f32], [0.0f64]);
        a.forward(&mut out, &mut lse);
        assert_eq!(out, [0.0]);
        let (mut dq, mut dk, mut dv) = ([9f32; 1], [9f32; 2], [9f32; 2]);
        a.backward(&lse, &[1.0], &[0.0], &mut dq, &mut dk, &mut dv);
        assert_eq!((dq, dk, dv), ([0.0], [0.0; 2], [0.0; 2]));
    }
}
