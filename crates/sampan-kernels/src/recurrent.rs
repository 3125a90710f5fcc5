//! The pointwise part of one step of a recurrent layer: gates from preactivations, forward and backward. Preactivations
//! come as two matrices, of the input and of the state, that are added here; rows are laid out gate after gate.

pub(crate) mod lstm;
mod product;
pub mod sequence;

use crate::parallel;
use crate::parallel::CHUNK;
use crate::simd::simd_fn;
use crate::vmath::Real;
use crate::widen::{RealElement, Room, narrowed, widened};
use sampan_macros::by_dtype;

simd_fn! {
    fn lstm_row[T: Real](a: &'a [T], b: &'a [T], c: &'a [T], h_out: &'a mut [T], c_out: &'a mut [T]) {
        let n = c.len();
        let (a, b, h_out, c_out) = (&a[..4 * n], &b[..4 * n], &mut h_out[..n], &mut c_out[..n]);
        for j in 0..n {
            let i = (a[j] + b[j]).sigmoid();
            let f = (a[n + j] + b[n + j]).sigmoid();
            let g = (a[2 * n + j] + b[2 * n + j]).tanh();
            let o = (a[3 * n + j] + b[3 * n + j]).sigmoid();
            let new = f * c[j] + i * g;
            c_out[j] = new;
            h_out[j] = o * new.tanh();
        }
    }
}

simd_fn! {
    fn lstm_back_row[T: Real](
        a: &'a [T], b: &'a [T], c: &'a [T], dh: &'a [T], dc: &'a [T], gates: &'a mut [T], prev: &'a mut [T]
    ) {
        let n = c.len();
        let (a, b, dh, dc) = (&a[..4 * n], &b[..4 * n], &dh[..n], &dc[..n]);
        let (gates, prev) = (&mut gates[..4 * n], &mut prev[..n]);
        for j in 0..n {
            let i = (a[j] + b[j]).sigmoid();
            let f = (a[n + j] + b[n + j]).sigmoid();
            let g = (a[2 * n + j] + b[2 * n + j]).tanh();
            let o = (a[3 * n + j] + b[3 * n + j]).sigmoid();
            let t = (f * c[j] + i * g).tanh();
            let d = dc[j] + dh[j] * o * (T::ONE - t * t);
            gates[j] = d * g * i * (T::ONE - i);
            gates[n + j] = d * c[j] * f * (T::ONE - f);
            gates[2 * n + j] = d * i * (T::ONE - g * g);
            gates[3 * n + j] = dh[j] * t * o * (T::ONE - o);
            prev[j] = d * f;
        }
    }
}

simd_fn! {
    fn gru_row[T: Real](a: &'a [T], b: &'a [T], h: &'a [T], out: &'a mut [T]) {
        let n = h.len();
        let (a, b, out) = (&a[..3 * n], &b[..3 * n], &mut out[..n]);
        for j in 0..n {
            let r = (a[j] + b[j]).sigmoid();
            let z = (a[n + j] + b[n + j]).sigmoid();
            let c = (a[2 * n + j] + r * b[2 * n + j]).tanh();
            out[j] = (h[j] - c) * z + c;
        }
    }
}

simd_fn! {
    fn gru_back_row[T: Real](
        a: &'a [T], b: &'a [T], h: &'a [T], g: &'a [T], da: &'a mut [T], db: &'a mut [T], dh: &'a mut [T]
    ) {
        let n = h.len();
        let (a, b, g) = (&a[..3 * n], &b[..3 * n], &g[..n]);
        let (da, db, dh) = (&mut da[..3 * n], &mut db[..3 * n], &mut dh[..n]);
        for j in 0..n {
            let r = (a[j] + b[j]).sigmoid();
            let z = (a[n + j] + b[n + j]).sigmoid();
            let c = (a[2 * n + j] + r * b[2 * n + j]).tanh();
            let dz = g[j] * (h[j] - c) * z * (T::ONE - z);
            let dc = g[j] * (T::ONE - z) * (T::ONE - c * c);
            let dr = dc * b[2 * n + j] * r * (T::ONE - r);
            (da[j], db[j]) = (dr, dr);
            (da[n + j], db[n + j]) = (dz, dz);
            (da[2 * n + j], db[2 * n + j]) = (dc, dc * r);
            dh[j] = g[j] * z;
        }
    }
}

/// Rows of one piece.
fn group(n: usize) -> usize {
    (CHUNK / n.max(1)).max(1)
}

/// A step of an LSTM with `n` units: from the preactivations `a + b` (input, forget, candidate and output gate, 4n a
/// row) and the cell state to the new output and cell state.
#[by_dtype(T in float)]
pub fn lstm<T: RealElement>(a: &[T], b: &[T], c: &[T], n: usize, h_out: &mut [T], c_out: &mut [T]) {
    assert!(a.len() == 4 * c.len() && b.len() == a.len() && h_out.len() == c.len() && c_out.len() == c.len());
    if c.is_empty() {
        return;
    }
    let rows = group(n);
    let mut pieces: Vec<_> = h_out.chunks_mut(rows * n).zip(c_out.chunks_mut(rows * n)).collect();
    parallel::for_each_chunk_mut(&mut pieces, 1, rows * n * 16, |p, piece| {
        let mut rooms: [Room; 5] = Default::default();
        let [ra, rb, rc, rh, rn] = &mut rooms;
        let (h_out, c_out) = &mut piece[0];
        for (k, (h_out, c_out)) in h_out.chunks_mut(n).zip(c_out.chunks_mut(n)).enumerate() {
            let row = p * rows + k;
            let a = widened(&a[row * 4 * n..][..4 * n], ra);
            let b = widened(&b[row * 4 * n..][..4 * n], rb);
            let c = widened(&c[row * n..][..n], rc);
            narrowed(h_out, rh, |h| narrowed(c_out, rn, |new| lstm_row(a, b, c, h, new)));
        }
    });
}

/// Gradients of [`lstm`] with respect to the preactivations (either of the two) and the old cell state, from those of the
/// new output and cell state.
#[by_dtype(T in float)]
pub fn lstm_backward<T: RealElement>(
    a: &[T],
    b: &[T],
    c: &[T],
    dh: &[T],
    dc: &[T],
    n: usize,
    gates: &mut [T],
    prev: &mut [T],
) {
    assert!(a.len() == 4 * c.len() && b.len() == a.len() && dh.len() == c.len() && dc.len() == c.len());
    assert!(gates.len() == a.len() && prev.len() == c.len());
    if c.is_empty() {
        return;
    }
    let rows = group(n);
    let mut pieces: Vec<_> = gates.chunks_mut(rows * 4 * n).zip(prev.chunks_mut(rows * n)).collect();
    parallel::for_each_chunk_mut(&mut pieces, 1, rows * n * 24, |p, piece| {
        let mut rooms: [Room; 7] = Default::default();
        let [ra, rb, rc, rh, rd, rg, rp] = &mut rooms;
        let (gates, prev) = &mut piece[0];
        for (k, (gates, prev)) in gates.chunks_mut(4 * n).zip(prev.chunks_mut(n)).enumerate() {
            let (wide, one) = ((p * rows + k) * 4 * n, (p * rows + k) * n);
            let a = widened(&a[wide..][..4 * n], ra);
            let b = widened(&b[wide..][..4 * n], rb);
            let c = widened(&c[one..][..n], rc);
            let dh = widened(&dh[one..][..n], rh);
            let dc = widened(&dc[one..][..n], rd);
            narrowed(gates, rg, |gates| narrowed(prev, rp, |prev| lstm_back_row(a, b, c, dh, dc, gates, prev)));
        }
    });
}

/// A step of a GRU with `n` units: from the preactivations of the input `a` and of the state `b` (reset, update and
/// candidate, 3n a row; the reset gate scales the candidate's `b`) and the state to the new state.
#[by_dtype(T in float)]
pub fn gru<T: RealElement>(a: &[T], b: &[T], h: &[T], n: usize, out: &mut [T]) {
    assert!(a.len() == 3 * h.len() && b.len() == a.len() && out.len() == h.len());
    if h.is_empty() {
        return;
    }
    let rows = group(n);
    parallel::for_each_chunk_mut(out, rows * n, 16, |p, out| {
        let mut rooms: [Room; 4] = Default::default();
        let [ra, rb, rh, ro] = &mut rooms;
        for (k, out) in out.chunks_mut(n).enumerate() {
            let (wide, one) = ((p * rows + k) * 3 * n, (p * rows + k) * n);
            let a = widened(&a[wide..][..3 * n], ra);
            let b = widened(&b[wide..][..3 * n], rb);
            let h = widened(&h[one..][..n], rh);
            narrowed(out, ro, |out| gru_row(a, b, h, out));
        }
    });
}

/// Gradients of [`gru`] with respect to both preactivations and the state.
#[by_dtype(T in float)]
pub fn gru_backward<T: RealElement>(
    a: &[T],
    b: &[T],
    h: &[T],
    g: &[T],
    n: usize,
    da: &mut [T],
    db: &mut [T],
    dh: &mut [T],
) {
    assert!(a.len() == 3 * h.len() && b.len() == a.len() && g.len() == h.len());
    assert!(da.len() == a.len() && db.len() == a.len() && dh.len() == h.len());
    if h.is_empty() {
        return;
    }
    let rows = group(n);
    let mut pieces: Vec<_> =
        da.chunks_mut(rows * 3 * n).zip(db.chunks_mut(rows * 3 * n)).zip(dh.chunks_mut(rows * n)).collect();
    parallel::for_each_chunk_mut(&mut pieces, 1, rows * n * 24, |p, piece| {
        let mut rooms: [Room; 7] = Default::default();
        let [ra, rb, rh, rg, r1, r2, r3] = &mut rooms;
        let ((da, db), dh) = &mut piece[0];
        let each = da.chunks_mut(3 * n).zip(db.chunks_mut(3 * n)).zip(dh.chunks_mut(n));
        for (k, ((da, db), dh)) in each.enumerate() {
            let (wide, one) = ((p * rows + k) * 3 * n, (p * rows + k) * n);
            let a = widened(&a[wide..][..3 * n], ra);
            let b = widened(&b[wide..][..3 * n], rb);
            let h = widened(&h[one..][..n], rh);
            let g = widened(&g[one..][..n], rg);
            narrowed(da, r1, |da| narrowed(db, r2, |db| narrowed(dh, r3, |dh| gru_back_row(a, b, h, g, da, db, dh))));
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bf16;

    fn data(n: usize, k: usize) -> Vec<f64> {
        (0..n).map(|i| ((i * 7919 + k * 31) % 997) as f64 / 300.0 - 1.6).collect()
    }

    fn sigmoid(x: f64) -> f64 {
        1.0 / (1.0 + (-x).exp())
    }

    /// Central differences of Σ w·f(x).
    fn numeric(x: &[f64], w: &[f64], f: impl Fn(&[f64]) -> Vec<f64>) -> Vec<f64> {
        let total = |x: &[f64]| f(x).iter().zip(w).map(|(y, w)| y * w).sum::<f64>();
        let at = |i: usize, by: f64| {
            let mut p = x.to_vec();
            p[i] += by;
            total(&p)
        };
        (0..x.len()).map(|i| (at(i, 1e-5) - at(i, -1e-5)) / 2e-5).collect()
    }

    fn close(a: &[f64], b: &[f64], tolerance: f64) {
        assert_eq!(a.len(), b.len());
        for (a, b) in a.iter().zip(b) {
            assert!((a - b).abs() <= tolerance * (1.0 + b.abs()), "{a} {b}");
        }
    }

    #[test]
    fn lstm_step_and_gradient() {
        let (rows, n) = (3, 5);
        let (a, b, c) = (data(rows * 4 * n, 1), data(rows * 4 * n, 2), data(rows * n, 3));
        let step = |a: &[f64], c: &[f64]| {
            let (mut h, mut new) = (vec![0.0; rows * n], vec![0.0; rows * n]);
            lstm_of(a, &b, c, n, &mut h, &mut new);
            [h, new].concat()
        };
        let out = step(&a, &c);
        let gate = |r: usize, k: usize, j: usize| a[r * 4 * n + k * n + j] + b[r * 4 * n + k * n + j];
        for (r, j) in (0..rows).flat_map(|r| (0..n).map(move |j| (r, j))) {
            let new = sigmoid(gate(r, 1, j)) * c[r * n + j] + sigmoid(gate(r, 0, j)) * gate(r, 2, j).tanh();
            assert!((out[rows * n + r * n + j] - new).abs() < 1e-12);
            assert!((out[r * n + j] - sigmoid(gate(r, 3, j)) * new.tanh()).abs() < 1e-12);
        }
        let w = data(2 * rows * n, 4);
        let (mut gates, mut prev) = (vec![0.0; a.len()], vec![0.0; c.len()]);
        lstm_backward_of(&a, &b, &c, &w[..rows * n], &w[rows * n..], n, &mut gates, &mut prev);
        close(&gates, &numeric(&a, &w, |a| step(a, &c)), 1e-6);
        close(&prev, &numeric(&c, &w, |c| step(&a, c)), 1e-6);
        let half = |v: &[f64]| v.iter().map(|&v| bf16::from_f64(v)).collect::<Vec<_>>();
        let (mut h, mut new) = (half(&c), half(&c));
        lstm_of(&half(&a), &half(&b), &half(&c), n, &mut h, &mut new);
        close(&h.iter().map(|v| v.to_f64()).collect::<Vec<_>>(), &out[..rows * n], 2e-2);
    }

    #[test]
    fn gru_step_and_gradient() {
        let (rows, n) = (2, 4);
        let (a, b, h) = (data(rows * 3 * n, 1), data(rows * 3 * n, 2), data(rows * n, 3));
        let step = |a: &[f64], b: &[f64], h: &[f64]| {
            let mut out = vec![0.0; rows * n];
            gru_of(a, b, h, n, &mut out);
            out
        };
        let out = step(&a, &b, &h);
        for (r, j) in (0..rows).flat_map(|r| (0..n).map(move |j| (r, j))) {
            let at = |k: usize| r * 3 * n + k * n + j;
            let (reset, z) = (sigmoid(a[at(0)] + b[at(0)]), sigmoid(a[at(1)] + b[at(1)]));
            let c = (a[at(2)] + reset * b[at(2)]).tanh();
            assert!((out[r * n + j] - ((h[r * n + j] - c) * z + c)).abs() < 1e-12);
        }
        let w = data(rows * n, 4);
        let (mut da, mut db, mut dh) = (a.clone(), b.clone(), h.clone());
        gru_backward_of(&a, &b, &h, &w, n, &mut da, &mut db, &mut dh);
        close(&da, &numeric(&a, &w, |a| step(a, &b, &h)), 1e-6);
        close(&db, &numeric(&b, &w, |b| step(&a, b, &h)), 1e-6);
        close(&dh, &numeric(&h, &w, |h| step(&a, &b, h)), 1e-6);
    }
}
