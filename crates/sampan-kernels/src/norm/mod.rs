//! Layer and root-mean-square normalisation, forward and backward. Statistics are kept in the computing type (`f32` for
//! half types). Group and instance normalisation are layer normalisation of other rows, or batch normalisation of other
//! channels.

pub mod batch_norm;

use crate::parallel;
use crate::parallel::CHUNK;
use crate::simd::simd_fn;
use crate::vmath::Real;
use crate::widen::{RealElement, Room, lane_sum, lane_sum2, narrowed, widened};
use sampan_macros::by_dtype;

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
        if !var.is_finite() {
            return row_stats_f64(x, kind, eps);
        }
        (mean, (var + T::of(eps)).rsqrt())
    }
}

/// The statistics of a row whose squares overflow.
#[cold]
#[inline(never)]
fn row_stats_f64<T: Real>(x: &[T], kind: RowNorm, eps: f64) -> (T, T) {
    let n = x.len() as f64;
    let mean = if kind == RowNorm::Layer { x.iter().map(|x| x.to_f64()).sum::<f64>() / n } else { 0.0 };
    let var = x.iter().map(|x| (x.to_f64() - mean).powi(2)).sum::<f64>() / n;
    (T::of(mean), T::of((var + eps).sqrt().recip()))
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
        let b = lane_sum2(dx, x, |d, x| d * ((x - mean) * rstd)) / count;
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
#[by_dtype(T in float)]
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
    let (mut rw, mut rb) = (Room::default(), Room::default());
    let weight = weight.map(|w| widened(w, &mut rw));
    let bias = bias.map(|b| widened(b, &mut rb));
    let group = (CHUNK / n).max(1);
    let mut pieces: Vec<_> =
        y.chunks_mut(group * n).zip(mean.chunks_mut(group)).zip(rstd.chunks_mut(group)).enumerate().collect();
    parallel::for_each_chunk_mut(&mut pieces, 1, group * n, |_, piece| {
        let (i, ((y, mean), rstd)) = &mut piece[0];
        let (mut rx, mut ry) = (Room::default(), Room::default());
        for (k, y) in y.chunks_mut(n).enumerate() {
            let x = widened(&x[(*i * group + k) * n..][..n], &mut rx);
            (mean[k], rstd[k]) = row_stats(x, kind, eps);
            narrowed(y, &mut ry, |y| row_forward(x, y, mean[k], rstd[k], weight, bias));
        }
    });
}

/// Gradients of [`row_norm`]. Give empty slices for gradients of weight and bias that are not wanted.
#[by_dtype(T in float)]
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
    let mut rw = Room::default();
    let weight = weight.map(|w| widened(w, &mut rw));
    let group = rows_per_piece(rows, n);
    let (nw, nb) = (dweight.len(), dbias.len());
    // Each piece adds up its own share of the gradients of weight and bias.
    let mut pieces: Vec<_> =
        dx.chunks_mut(group * n).map(|dx| (dx, vec![T::Wide::ZERO; nw], vec![T::Wide::ZERO; nb])).collect();
    parallel::for_each_chunk_mut(&mut pieces, 1, group * n, |i, piece| {
        let (dx, dw, db) = &mut piece[0];
        let (mut rx, mut rg, mut ry) = (Room::default(), Room::default(), Room::default());
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
                row_norm_of(kind, x, n, Some(w), Some(b), 1e-5, &mut y, &mut m, &mut r);
                (y, m, r)
            };
            let (y, m, r) = run(&x, &w, &b);
            let first = &x[..n];
            let mean = if kind == RowNorm::Layer { first.iter().sum::<f64>() / n as f64 } else { 0.0 };
            let var = first.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n as f64;
            close(&y[..1], &[(x[0] - mean) / (var + 1e-5).sqrt() * w[0] + b[0]], 1e-12);
            let (mut dx, mut dw, mut db) = (x.clone(), w.clone(), b.clone());
            row_norm_backward_of(kind, &x, &g, n, Some(&w), &m, &r, &mut dx, &mut dw, &mut db);
            close(&dx, &numeric(&x, &g, |x| run(x, &w, &b).0), 1e-7);
            close(&dw, &numeric(&w, &g, |w| run(&x, w, &b).0), 1e-7);
            close(&db, &numeric(&b, &g, |b| run(&x, &w, b).0), 1e-7);
            let narrow = |v: &[f64]| v.iter().map(|&v| bf16::from_f64(v)).collect::<Vec<_>>();
            let (hx, hw, hb) = (narrow(&x), narrow(&w), narrow(&b));
            let (mut hy, mut hm, mut hr) = (hx.clone(), vec![0f32; rows], vec![0f32; rows]);
            row_norm_of(kind, &hx, n, Some(&hw), Some(&hb), 1e-5, &mut hy, &mut hm, &mut hr);
            let wide = |v: &[bf16]| v.iter().map(|v| v.to_f64()).collect::<Vec<_>>();
            close(&wide(&hy), &run(&wide(&hx), &wide(&hw), &wide(&hb)).0, 0.01);
        }
    }

    #[test]
    fn same_bits_for_any_threads() {
        let n = 300;
        let x: Vec<f32> = data(n * 400, 1).iter().map(|&v| v as f32).collect();
        let run = || {
            let (mut m, mut r, mut y) = (vec![0f32; 400], vec![0f32; 400], x.clone());
            row_norm_of(RowNorm::Layer, &x, n, None, None, 1e-5, &mut y, &mut m, &mut r);
            let (mut dx, mut dw, mut db) = (x.clone(), vec![0f32; n], vec![0f32; n]);
            row_norm_backward_of(RowNorm::Layer, &x, &y, n, None, &m, &r, &mut dx, &mut dw, &mut db);
            [y, dx, dw, db].concat().iter().map(|v| v.to_bits()).collect::<Vec<_>>()
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
