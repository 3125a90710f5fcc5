//! Layer, root-mean-square and batch normalisation, forward and backward. Statistics are kept in the computing type
//! (`f32` for half types). Group and instance normalisation are layer normalisation of other rows, or batch
//! normalisation of other channels.

use crate::elementwise::CHUNK;
use crate::simd::simd_fn;
use crate::vmath::Real;
use crate::widen::{RealElement, lane_sum, lane_sum2, narrowed, widened};
use crate::{Ordered, parallel};

/// Rows of one piece: enough work for a thread, and at most 64 pieces so that partial gradients stay few.
fn rows_per_piece(rows: usize, n: usize) -> usize {
    rows.div_ceil(64).max(CHUNK / n.max(1)).max(1)
}

/// Which normalisation of rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RowNorm {
    /// Subtracts the mean, divides by the standard deviation.
    Layer,
    /// Divides by the root of the mean square.
    Rms,
}

simd_fn! {
    fn row_stats[T: Real](x: &'a [T], kind: RowNorm, eps: f64) -> (T, T) {
        let n = T::of(x.len() as f64);
        let mean = if kind == RowNorm::Layer { lane_sum(x, |x| x) / n } else { T::ZERO };
        let var = lane_sum(x, |x| (x - mean).square()) / n;
        (mean, (var + T::of(eps)).rsqrt())
    }
}

simd_fn! {
    fn row_forward[T: Real](x: &'a [T], y: &'a mut [T], mean: T, rstd: T, weight: Option<&'a [T]>, bias: Option<&'a [T]>) {
        match (weight, bias) {
            (Some(w), Some(b)) => {
                for (((y, &x), &w), &b) in y.iter_mut().zip(x).zip(w).zip(b) {
                    *y = ((x - mean) * rstd).mul_add(w, b);
                }
            }
            (Some(w), None) => {
                for ((y, &x), &w) in y.iter_mut().zip(x).zip(w) {
                    *y = (x - mean) * rstd * w;
                }
            }
            (None, b) => {
                for (y, &x) in y.iter_mut().zip(x) {
                    *y = (x - mean) * rstd;
                }
                for (y, &b) in y.iter_mut().zip(b.unwrap_or(&[])) {
                    *y += b;
                }
            }
        }
    }
}

simd_fn! {
    fn row_backward[T: Real](
        x: &'a [T], g: &'a [T], dx: &'a mut [T], mean: T, rstd: T, weight: Option<&'a [T]>, kind: RowNorm,
        dweight: &'a mut [T], dbias: &'a mut [T]
    ) {
        let count = T::of(x.len() as f64);
        // dx holds g·weight until the end.
        match weight {
            Some(w) => {
                for ((d, &g), &w) in dx.iter_mut().zip(g).zip(w) {
                    *d = g * w;
                }
            }
            None => dx.copy_from_slice(g),
        }
        let a = if kind == RowNorm::Layer { lane_sum(dx, |d| d) / count } else { T::ZERO };
        let b = lane_sum2(dx, x, |d, x| d * (x - mean)) * rstd / count;
        for (d, &x) in dx.iter_mut().zip(x) {
            *d = (*d - a - (x - mean) * rstd * b) * rstd;
        }
        for ((dw, &g), &x) in dweight.iter_mut().zip(g).zip(x) {
            *dw += g * ((x - mean) * rstd);
        }
        for (db, &g) in dbias.iter_mut().zip(g) {
            *db += g;
        }
    }
}

/// Normalises rows of `n` elements; keeps mean (zero for [`RowNorm::Rms`]) and 1/deviation of each row.
pub fn row_norm<T: RealElement>(
    kind: RowNorm,
    x: &[T],
    n: usize,
    weight: Option<&[T]>,
    bias: Option<&[T]>,
    eps: f64,
    y: &mut [T],
    mean: &mut [T::Wide],
    rstd: &mut [T::Wide],
) {
    if y.is_empty() {
        return;
    }
    let rows = y.len() / n;
    assert!(x.len() == rows * n && mean.len() == rows && rstd.len() == rows, "norm: slices of different lengths");
    assert!(
        weight.is_none_or(|w| w.len() == n) && bias.is_none_or(|b| b.len() == n),
        "norm: weights of another length"
    );
    let (mut rw, mut rb) = (Vec::new(), Vec::new());
    let weight = weight.map(|w| widened(w, &mut rw));
    let bias = bias.map(|b| widened(b, &mut rb));
    let group = (CHUNK / n).max(1);
    let mut pieces: Vec<_> =
        y.chunks_mut(group * n).zip(mean.chunks_mut(group)).zip(rstd.chunks_mut(group)).enumerate().collect();
    parallel::for_each_chunk_mut(&mut pieces, 1, group * n, |_, piece| {
        let (i, ((y, mean), rstd)) = &mut piece[0];
        let (mut rx, mut ry) = (Vec::new(), Vec::new());
        for (k, y) in y.chunks_mut(n).enumerate() {
            let x = widened(&x[(*i * group + k) * n..][..n], &mut rx);
            (mean[k], rstd[k]) = row_stats(x, kind, eps);
            narrowed(y, &mut ry, |y| row_forward(x, y, mean[k], rstd[k], weight, bias));
        }
    });
}

/// Gradients of [`row_norm`]. Give empty slices for gradients of weight and bias that are not wanted.
pub fn row_norm_backward<T: RealElement>(
    kind: RowNorm,
    x: &[T],
    g: &[T],
    n: usize,
    weight: Option<&[T]>,
    mean: &[T::Wide],
    rstd: &[T::Wide],
    dx: &mut [T],
    dweight: &mut [T::Wide],
    dbias: &mut [T::Wide],
) {
    dweight.fill(T::Wide::ZERO);
    dbias.fill(T::Wide::ZERO);
    if dx.is_empty() {
        return;
    }
    let rows = dx.len() / n;
    assert!(x.len() == dx.len() && g.len() == dx.len() && mean.len() == rows && rstd.len() == rows);
    let mut rw = Vec::new();
    let weight = weight.map(|w| widened(w, &mut rw));
    let group = rows_per_piece(rows, n);
    let (nw, nb) = (dweight.len(), dbias.len());
    // Each piece adds up its own share of the gradients of weight and bias.
    let mut pieces: Vec<_> =
        dx.chunks_mut(group * n).map(|dx| (dx, vec![T::Wide::ZERO; nw], vec![T::Wide::ZERO; nb])).collect();
    parallel::for_each_chunk_mut(&mut pieces, 1, group * n, |i, piece| {
        let (dx, dw, db) = &mut piece[0];
        let (mut rx, mut rg, mut ry) = (Vec::new(), Vec::new(), Vec::new());
        for (k, dx) in dx.chunks_mut(n).enumerate() {
            let row = i * group + k;
            let x = widened(&x[row * n..][..n], &mut rx);
            let g = widened(&g[row * n..][..n], &mut rg);
            narrowed(dx, &mut ry, |dx| row_backward(x, g, dx, mean[row], rstd[row], weight, kind, dw, db));
        }
    });
    for (_, dw, db) in &pieces {
        dweight.iter_mut().zip(dw).for_each(|(a, &b)| *a += b);
        dbias.iter_mut().zip(db).for_each(|(a, &b)| *a += b);
    }
}

/// Extents of data normalised by channel: batch, channels, and what follows (1 for a matrix).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub struct Channels {
    pub batch: usize,
    pub channels: usize,
    pub inner: usize,
}

simd_fn! {
    /// Σ v and Σ v·(x − shift), where v is `g`, or x − shift without one.
    fn line_sums[T: Real](x: &'a [T], g: Option<&'a [T]>, shift: T) -> (T, T) {
        match g {
            Some(g) => (lane_sum(g, |g| g), lane_sum2(g, x, |g, x| g * (x - shift))),
            None => (lane_sum(x, |x| x - shift), lane_sum(x, |x| (x - shift).square())),
        }
    }
}

simd_fn! {
    /// The same column by column over rows as long as `shift`.
    fn column_sums[T: Real](x: &'a [T], g: Option<&'a [T]>, shift: &'a [T], s0: &'a mut [T], s1: &'a mut [T]) {
        let n = shift.len();
        if n == 0 {
            return;
        }
        let (s0, s1) = (&mut s0[..n], &mut s1[..n]);
        for (r, x) in x.chunks_exact(n).enumerate() {
            match g {
                Some(g) => {
                    let g = &g[r * n..][..n];
                    for j in 0..n {
                        s0[j] += g[j];
                        s1[j] += g[j] * (x[j] - shift[j]);
                    }
                }
                None => {
                    for j in 0..n {
                        let d = x[j] - shift[j];
                        s0[j] += d;
                        s1[j] += d * d;
                    }
                }
            }
        }
    }
}

/// Both sums of [`line_sums`] for every channel, in one pass over the data.
fn channel_sums<T: RealElement>(x: &[T], g: Option<&[T]>, d: Channels, shift: &[T::Wide]) -> Vec<(f64, f64)> {
    let Channels { batch, channels, inner } = d;
    if inner >= 16 {
        return parallel::map(channels, batch * inner, |c| {
            let (mut rx, mut rg) = (Vec::new(), Vec::new());
            let (mut a, mut b) = (0.0, 0.0);
            for n in 0..batch {
                let at = (n * channels + c) * inner;
                // Lines in blocks: what a piece sums in `f32` stays short, the rest is added in `f64`.
                for from in (at..at + inner).step_by(4096) {
                    let to = (at + inner).min(from + 4096);
                    let x = widened(&x[from..to], &mut rx);
                    let g = g.map(|g| widened(&g[from..to], &mut rg));
                    let (s0, s1) = line_sums(x, g, shift[c]);
                    a += s0.to_f64();
                    b += s1.to_f64();
                }
            }
            (a, b)
        });
    }
    let width = channels * inner;
    let spread: Vec<T::Wide> = shift.iter().flat_map(|&s| std::iter::repeat_n(s, inner)).collect();
    let group = 64;
    let parts = parallel::map(batch.div_ceil(group), group * width, |p| {
        let (from, to) = (p * group * width, batch.min((p + 1) * group) * width);
        let (mut rx, mut rg) = (Vec::new(), Vec::new());
        let (mut s0, mut s1) = (vec![T::Wide::ZERO; width], vec![T::Wide::ZERO; width]);
        let g = g.map(|g| widened(&g[from..to], &mut rg));
        column_sums(widened(&x[from..to], &mut rx), g, &spread, &mut s0, &mut s1);
        (s0, s1)
    });
    let mut sums = vec![(0.0, 0.0); channels];
    for (s0, s1) in &parts {
        for j in 0..width {
            sums[j / inner].0 += s0[j].to_f64();
            sums[j / inner].1 += s1[j].to_f64();
        }
    }
    sums
}

/// Mean and (biased) variance of every channel, in one pass: deviations are taken from the channel's first value, which
/// keeps the difference of squares harmless.
pub fn channel_stats<T: RealElement>(x: &[T], d: Channels, mean: &mut [T::Wide], var: &mut [T::Wide]) {
    let Channels { batch, channels, inner } = d;
    assert!(x.len() == batch * channels * inner && mean.len() == channels && var.len() == channels);
    let count = (batch * inner) as f64;
    if x.is_empty() {
        mean.fill(T::Wide::NAN);
        return var.fill(T::Wide::NAN);
    }
    let shift: Vec<T::Wide> = (0..channels).map(|c| x[c * inner].wide()).collect();
    for (c, (s, q)) in channel_sums(x, None, d, &shift).into_iter().enumerate() {
        let m = s / count;
        mean[c] = T::Wide::of(shift[c].to_f64() + m);
        var[c] = T::Wide::of(f64::max(q / count - m * m, if q.is_nan() { f64::NAN } else { 0.0 }));
    }
}

simd_fn! {
    /// y = (x − m)·a + g·b + c with scalars.
    fn affine_line[T: Real](x: &'a [T], g: &'a [T], y: &'a mut [T], k: [T; 4]) {
        let [m, a, b, c] = k;
        if g.is_empty() {
            for (y, &x) in y.iter_mut().zip(x) {
                *y = (x - m).mul_add(a, c);
            }
        } else {
            for ((y, &x), &g) in y.iter_mut().zip(x).zip(g) {
                *y = (x - m).mul_add(a, g.mul_add(b, c));
            }
        }
    }
}

simd_fn! {
    /// The same with one coefficient for each column.
    fn affine_rows[T: Real](x: &'a [T], g: &'a [T], y: &'a mut [T], k: [&'a [T]; 4]) {
        let n = k[0].len();
        let [m, a, b, c] = k.map(|v| &v[..n]);
        for (r, (x, y)) in x.chunks_exact(n).zip(y.chunks_exact_mut(n)).enumerate() {
            if g.is_empty() {
                for j in 0..n {
                    y[j] = (x[j] - m[j]).mul_add(a[j], c[j]);
                }
            } else {
                let g = &g[r * n..][..n];
                for j in 0..n {
                    y[j] = (x[j] - m[j]).mul_add(a[j], g[j].mul_add(b[j], c[j]));
                }
            }
        }
    }
}

/// `y = (x − m)·a + g·b + c` with coefficients `[m, a, b, c]` by channel; `g` may be empty.
fn channel_combine<T: RealElement>(x: &[T], g: &[T], y: &mut [T], d: Channels, k: [&[T::Wide]; 4]) {
    assert_eq!(x.len(), y.len(), "batch norm: slices of different lengths");
    if y.is_empty() {
        return;
    }
    let of = |at: usize, len: usize| if g.is_empty() { g } else { &g[at..at + len] };
    if d.inner >= 16 {
        let group = (CHUNK / d.inner).max(1);
        return parallel::for_each_chunk_mut(y, group * d.inner, 1, |i, y| {
            let (mut rx, mut rg, mut ry) = (Vec::new(), Vec::new(), Vec::new());
            for (l, y) in y.chunks_mut(d.inner).enumerate() {
                let line = i * group + l;
                let (at, ch) = (line * d.inner, line % d.channels);
                let x = widened(&x[at..at + d.inner], &mut rx);
                let g = widened(of(at, d.inner), &mut rg);
                narrowed(y, &mut ry, |y| affine_line(x, g, y, k.map(|v| v[ch])));
            }
        });
    }
    let spread = |v: &[T::Wide]| -> Vec<T::Wide> { v.iter().flat_map(|&v| std::iter::repeat_n(v, d.inner)).collect() };
    let k = k.map(spread);
    let width = d.channels * d.inner;
    let group = (CHUNK / width).max(1) * width;
    parallel::for_each_chunk_mut(y, group, 1, |i, y| {
        let (mut rx, mut rg, mut ry) = (Vec::new(), Vec::new(), Vec::new());
        let x = widened(&x[i * group..][..y.len()], &mut rx);
        let g = widened(of(i * group, y.len()), &mut rg);
        narrowed(y, &mut ry, |y| affine_rows(x, g, y, k.each_ref().map(|v| v.as_slice())));
    });
}

/// Batch normalisation with given statistics: `y = (x − mean)·rstd·weight + bias`.
pub fn batch_norm<T: RealElement>(
    x: &[T],
    d: Channels,
    mean: &[T::Wide],
    rstd: &[T::Wide],
    weight: Option<&[T::Wide]>,
    bias: Option<&[T::Wide]>,
    y: &mut [T],
) {
    let scale: Vec<T::Wide> = (0..d.channels).map(|c| rstd[c] * weight.map_or(T::Wide::ONE, |w| w[c])).collect();
    let zero = vec![T::Wide::ZERO; d.channels];
    channel_combine(x, &[], y, d, [mean, &scale, &zero, bias.unwrap_or(&zero)]);
}

/// Gradients of [`batch_norm`]. With `training` the statistics came from `x` itself and take part in the gradient.
pub fn batch_norm_backward<T: RealElement>(
    x: &[T],
    g: &[T],
    d: Channels,
    mean: &[T::Wide],
    rstd: &[T::Wide],
    weight: Option<&[T::Wide]>,
    training: bool,
    dx: &mut [T],
    dweight: &mut [T::Wide],
    dbias: &mut [T::Wide],
) {
    let count = (d.batch * d.inner) as f64;
    let mut coefficients = (Vec::new(), Vec::new(), Vec::new());
    for (c, (sg, sgx)) in channel_sums(x, Some(g), d, mean).into_iter().enumerate() {
        let r = rstd[c].to_f64();
        dbias[c] = T::Wide::of(sg);
        dweight[c] = T::Wide::of(sgx * r);
        let scale = r * weight.map_or(1.0, |w| w[c].to_f64());
        // dx = scale·(g − mean g − x̂·mean(g·x̂)).
        let slope = if training { -scale * sgx * r * r / count } else { 0.0 };
        let rest = if training { -scale * sg / count } else { 0.0 };
        coefficients.0.push(T::Wide::of(slope));
        coefficients.1.push(T::Wide::of(scale));
        coefficients.2.push(T::Wide::of(rest));
    }
    channel_combine(x, g, dx, d, [mean, &coefficients.0, &coefficients.1, &coefficients.2]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bf16;

    fn data(n: usize, k: u64) -> Vec<f64> {
        (0..n as u64).map(|i| ((i * 7919 + k * 31) % 997) as f64 / 300.0 + 2.0).collect()
    }

    fn close(a: &[f64], b: &[f64], tolerance: f64) {
        assert_eq!(a.len(), b.len());
        for (i, (a, b)) in a.iter().zip(b).enumerate() {
            assert!((a - b).abs() <= tolerance * (1.0 + b.abs()), "{i}: {a} {b}");
        }
    }

    /// Central differences of Σ g·f(x).
    fn numeric(x: &[f64], g: &[f64], f: impl Fn(&[f64]) -> Vec<f64>) -> Vec<f64> {
        let h = 1e-5;
        let loss = |x: &[f64]| f(x).iter().zip(g).map(|(y, g)| y * g).sum::<f64>();
        (0..x.len())
            .map(|i| {
                let mut p = x.to_vec();
                p[i] += h;
                let up = loss(&p);
                p[i] -= 2.0 * h;
                (up - loss(&p)) / (2.0 * h)
            })
            .collect()
    }

    #[test]
    fn rows() {
        let (rows, n) = (5, 7);
        let (x, g, w, b) = (data(rows * n, 1), data(rows * n, 2), data(n, 3), data(n, 4));
        for kind in [RowNorm::Layer, RowNorm::Rms] {
            let run = |x: &[f64], w: &[f64], b: &[f64]| {
                let (mut y, mut m, mut r) = (vec![0.0; x.len()], vec![0.0; rows], vec![0.0; rows]);
                row_norm(kind, x, n, Some(w), Some(b), 1e-5, &mut y, &mut m, &mut r);
                (y, m, r)
            };
            let (y, m, r) = run(&x, &w, &b);
            let first = &x[..n];
            let mean = if kind == RowNorm::Layer { first.iter().sum::<f64>() / n as f64 } else { 0.0 };
            let var = first.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n as f64;
            close(&y[..1], &[(x[0] - mean) / (var + 1e-5).sqrt() * w[0] + b[0]], 1e-12);
            let (mut dx, mut dw, mut db) = (x.clone(), w.clone(), b.clone());
            row_norm_backward(kind, &x, &g, n, Some(&w), &m, &r, &mut dx, &mut dw, &mut db);
            close(&dx, &numeric(&x, &g, |x| run(x, &w, &b).0), 1e-7);
            close(&dw, &numeric(&w, &g, |w| run(&x, w, &b).0), 1e-7);
            close(&db, &numeric(&b, &g, |b| run(&x, &w, b).0), 1e-7);
            let narrow = |v: &[f64]| v.iter().map(|&v| bf16::from_f64(v)).collect::<Vec<_>>();
            let (hx, hw, hb) = (narrow(&x), narrow(&w), narrow(&b));
            let (mut hy, mut hm, mut hr) = (hx.clone(), vec![0f32; rows], vec![0f32; rows]);
            row_norm(kind, &hx, n, Some(&hw), Some(&hb), 1e-5, &mut hy, &mut hm, &mut hr);
            let wide = |v: &[bf16]| v.iter().map(|v| v.to_f64()).collect::<Vec<_>>();
            close(&wide(&hy), &run(&wide(&hx), &wide(&hw), &wide(&hb)).0, 0.01);
        }
    }

    #[test]
    fn channels() {
        for inner in [1, 3, 20] {
            let d = Channels { batch: 4, channels: 3, inner };
            let len = 12 * inner;
            let (x, g, w, b) = (data(len, 1), data(len, 2), data(3, 3), data(3, 4));
            let run = |x: &[f64]| {
                let (mut m, mut v, mut y) = (vec![0.0; 3], vec![0.0; 3], vec![0.0; len]);
                channel_stats(x, d, &mut m, &mut v);
                let r: Vec<f64> = v.iter().map(|v| 1.0 / (v + 1e-5).sqrt()).collect();
                batch_norm(x, d, &m, &r, Some(&w), Some(&b), &mut y);
                (m, v, r, y)
            };
            let (m, v, r, y) = run(&x);
            let channel = |c: usize| (0..len).filter(move |i| i / inner % 3 == c);
            for c in 0..3 {
                let mean = channel(c).map(|i| x[i]).sum::<f64>() / (4 * inner) as f64;
                let var = channel(c).map(|i| (x[i] - mean).powi(2)).sum::<f64>() / (4 * inner) as f64;
                close(&[m[c], v[c]], &[mean, var], 1e-12);
                let i = channel(c).nth(2).unwrap();
                close(&[y[i]], &[(x[i] - mean) * r[c] * w[c] + b[c]], 1e-12);
            }
            let (mut dx, mut dw, mut db) = (x.clone(), w.clone(), b.clone());
            batch_norm_backward(&x, &g, d, &m, &r, Some(&w), true, &mut dx, &mut dw, &mut db);
            close(&dx, &numeric(&x, &g, |x| run(x).3), 1e-6);
            close(&db, &(0..3).map(|c| channel(c).map(|i| g[i]).sum()).collect::<Vec<f64>>(), 1e-12);
            let want = |c| channel(c).map(|i| g[i] * (x[i] - m[c]) * r[c]).sum();
            close(&dw, &(0..3).map(want).collect::<Vec<f64>>(), 1e-12);
        }
    }

    #[test]
    fn same_bits_for_any_threads() {
        let n = 300;
        let x: Vec<f32> = data(n * 400, 1).iter().map(|&v| v as f32).collect();
        let run = || {
            let (mut m, mut r, mut y) = (vec![0f32; 400], vec![0f32; 400], x.clone());
            row_norm(RowNorm::Layer, &x, n, None, None, 1e-5, &mut y, &mut m, &mut r);
            let (mut dx, mut dw, mut db) = (x.clone(), vec![0f32; n], vec![0f32; n]);
            row_norm_backward(RowNorm::Layer, &x, &y, n, None, &m, &r, &mut dx, &mut dw, &mut db);
            let (mut cm, mut cv) = (vec![0f32; n], vec![0f32; n]);
            channel_stats(&x, Channels { batch: 400, channels: n, inner: 1 }, &mut cm, &mut cv);
            [y, dx, dw, db, cm, cv].concat().iter().map(|v| v.to_bits()).collect::<Vec<_>>()
        };
        let threads = parallel::num_threads();
        parallel::set_num_threads(1);
        let one = run();
        parallel::set_num_threads(4);
        let four = run();
        parallel::set_num_threads(threads);
        assert!(one == four);
    }
}
