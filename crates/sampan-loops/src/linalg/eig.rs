//! Eigenvalues and eigenvectors of general real matrices: Hessenberg form, then shifted QR in complex numbers.

use super::qr::{reflect, reflector};
use super::{Kind, LinalgError, Mat, batch, count, store};
use crate::Complex128;
use crate::Ordered;
use sampan_macros::by_dtype;

/// `a = Q H Qᵀ` with H zero below the first subdiagonal; gives H and Q.
fn hessenberg(mut a: Mat) -> (Mat, Mat) {
    let n = a.rows;
    let mut q = Mat::identity(n);
    for k in 0..n.saturating_sub(2) {
        let mut v: Vec<f64> = (k + 1..n).map(|i| a.row(i)[k]).collect();
        let (beta, _) = reflector(&mut v);
        if beta == 0.0 {
            continue;
        }
        // From the left: row combinations.
        let mut w = vec![0.0; n];
        for (i, &vi) in v.iter().enumerate() {
            super::axpy(&mut w, beta * vi, a.row(k + 1 + i));
        }
        for (i, &vi) in v.iter().enumerate() {
            super::axpy(a.row_mut(k + 1 + i), -vi, &w);
        }
        // From the right, on H and on Q: each row on its own.
        for i in 0..n {
            reflect(&v, beta, &mut a.row_mut(i)[k + 1..]);
            reflect(&v, beta, &mut q.row_mut(i)[k + 1..]);
        }
        (k + 2..n).for_each(|i| a.row_mut(i)[k] = 0.0);
    }
    (a, q)
}

fn norm(c: Complex128) -> f64 {
    c.re.hypot(c.im)
}

/// The square root in the right half plane.
fn root(c: Complex128) -> Complex128 {
    let half = ((norm(c) + c.re.abs()) * 0.5).sqrt();
    if half == 0.0 {
        Complex128::ZERO
    } else if c.re >= 0.0 {
        Complex128::new(half, c.im / (2.0 * half))
    } else {
        Complex128::new(c.im.abs() / (2.0 * half), half.copysign(c.im))
    }
}

/// A square complex matrix.
struct CMat {
    n: usize,
    data: Vec<Complex128>,
}

impl CMat {
    fn new(m: &Mat) -> CMat {
        CMat { n: m.rows, data: m.data.iter().map(|&v| v.into()).collect() }
    }
    fn at(&self, i: usize, j: usize) -> Complex128 {
        self.data[i * self.n + j]
    }
    fn at_mut(&mut self, i: usize, j: usize) -> &mut Complex128 {
        &mut self.data[i * self.n + j]
    }
    /// Rows `k`, `k + 1` from column `from`: multiplied by `[[c, s], [−s̄, c]]` from the left.
    fn turn_rows(&mut self, k: usize, from: usize, c: f64, s: Complex128) {
        let (x, y) = self.data[k * self.n..(k + 2) * self.n].split_at_mut(self.n);
        for (x, y) in x[from..].iter_mut().zip(&mut y[from..]) {
            (*x, *y) = (*x * c + s * *y, *y * c - s.conj() * *x);
        }
    }
    /// The same turns of columns `low`, `low + 1`, … from the right, conjugate transposed; row after row, so that each
    /// stays in cache. In a `triangle` a turn starts at the row below its first column: further down all is zero.
    fn turn_columns(&mut self, low: usize, turns: &[(f64, Complex128)], triangle: bool) {
        let rows = if triangle { low + turns.len() + 1 } else { self.n };
        for (r, row) in self.data.chunks_exact_mut(self.n).enumerate().take(rows) {
            let skip = if triangle { r.saturating_sub(low + 1) } else { 0 };
            for (k, &(c, s)) in turns.iter().enumerate().skip(skip) {
                let (x, y) = (row[low + k], row[low + k + 1]);
                (row[low + k], row[low + k + 1]) = (x * c + s.conj() * y, y * c - s * x);
            }
        }
    }
}

/// Makes `h` upper triangular by unitary similarity; `q` turns along.
fn schur(h: &mut CMat, q: &mut CMat) -> Result<(), Kind> {
    let n = h.n;
    let mut high = n.saturating_sub(1);
    let mut tries = 0;
    while high > 0 {
        let small = |k: usize| {
            let near = h.at(k - 1, k - 1).l1_norm() + h.at(k, k).l1_norm();
            h.at(k, k - 1).l1_norm() <= f64::EPSILON * near.max(f64::MIN_POSITIVE)
        };
        let low = (1..=high).rev().find(|&k| small(k)).unwrap_or(0);
        if low > 0 {
            *h.at_mut(low, low - 1) = 0.0.into();
        }
        if low == high {
            (high, tries) = (high - 1, 0);
            continue;
        }
        tries += 1;
        if tries > 300 {
            return Err(Kind::NoConvergence);
        }
        let shift = if tries % 10 == 0 {
            // Off the beaten track, in case the usual shift goes round in circles.
            h.at(high, high) + norm(h.at(high, high - 1)) * Complex128::new(0.75, 0.44)
        } else {
            let (a, b) = (h.at(high - 1, high - 1), h.at(high - 1, high));
            let (c, d) = (h.at(high, high - 1), h.at(high, high));
            let half = (a - d) * 0.5;
            let root = root(half * half + b * c);
            // The eigenvalue of the last 2×2 block nearest its last element.
            let (x, y) = (half + root, half - root);
            d + if x.norm_sqr() < y.norm_sqr() { x } else { y }
        };
        (low..=high).for_each(|k| *h.at_mut(k, k) -= shift);
        let mut turns = Vec::with_capacity(high - low);
        for k in low..high {
            let (a, b) = (h.at(k, k), h.at(k + 1, k));
            let (na, nb) = (norm(a), norm(b));
            let both = na.hypot(nb);
            let (c, s) = if both == 0.0 {
                (1.0, 0.0.into())
            } else if na == 0.0 {
                (0.0, b.conj() / nb)
            } else {
                (na / both, (a / na) * b.conj() / both)
            };
            h.turn_rows(k, k, c, s);
            *h.at_mut(k + 1, k) = 0.0.into();
            turns.push((c, s));
        }
        h.turn_columns(low, &turns, true);
        q.turn_columns(low, &turns, false);
        (low..=high).for_each(|k| *h.at_mut(k, k) += shift);
    }
    Ok(())
}

/// Unit eigenvector of `k`: back substitution in the triangle, then `q`; its largest component is real.
fn vector(t: &CMat, q: &CMat, k: usize, tiny: f64) -> Vec<Complex128> {
    let n = t.n;
    let mut x = vec![Complex128::ZERO; k + 1];
    x[k] = Complex128::ONE;
    for i in (0..k).rev() {
        let sum: Complex128 = (i + 1..=k).map(|j| t.at(i, j) * x[j]).sum();
        let gap = t.at(i, i) - t.at(k, k);
        // Equal eigenvalues: a small gap gives a vector of the shared space, or of the nearest matrix that has one.
        x[i] = -sum / if norm(gap) < tiny { tiny.into() } else { gap };
        let large = norm(x[i]);
        if large > 1e100 {
            x.iter_mut().for_each(|v| *v /= large);
        }
    }
    let mut v: Vec<Complex128> = (0..n).map(|r| x.iter().enumerate().map(|(c, x)| q.at(r, c) * x).sum()).collect();
    let length = v.iter().map(|c| c.norm_sqr()).sum::<f64>().sqrt();
    let top = v.iter().copied().max_by(|a, b| a.norm_sqr().total_cmp(&b.norm_sqr())).unwrap_or(Complex128::ONE);
    let phase = top.conj() / norm(top) / length;
    v.iter_mut().for_each(|c| *c *= phase);
    v
}

/// Eigenvalues with their vectors, conjugates side by side, the one above the real axis first.
fn general(mut a: Mat) -> Result<Vec<(Complex128, Vec<Complex128>)>, Kind> {
    // The scale keeps squares in range.
    let scale = if a.max_abs() > 0.0 { a.max_abs() } else { 1.0 };
    a.data.iter_mut().for_each(|v| *v /= scale);
    let tiny = f64::EPSILON;
    let n = a.rows;
    let (h, q) = hessenberg(a);
    let (mut t, mut q) = (CMat::new(&h), CMat::new(&q));
    schur(&mut t, &mut q)?;
    let mut left: Vec<(Complex128, Vec<Complex128>)> =
        (0..n).map(|k| (t.at(k, k), vector(&t, &q, k, tiny))).rev().collect();
    let mut out = Vec::with_capacity(n);
    while let Some((w, v)) = left.pop() {
        // A real matrix has real or paired eigenvalues: what rounding took apart is put together again.
        let mate = |o: &Complex128| norm(o - w.conj());
        let best = (0..left.len()).min_by(|&i, &j| mate(&left[i].0).total_cmp(&mate(&left[j].0)));
        let paired = best.filter(|&i| mate(&left[i].0) < w.im.abs());
        match paired {
            Some(i) if w.im.abs() > 4.0 * n as f64 * tiny => {
                left.remove(i);
                let (w, v) = if w.im > 0.0 { (w, v) } else { (w.conj(), v.iter().map(|c| c.conj()).collect()) };
                let mirror = v.iter().map(|c| c.conj()).collect();
                out.extend([(w, v), (w.conj(), mirror)]);
            }
            _ => {
                let real: Vec<Complex128> = v.iter().map(|c| c.re.into()).collect();
                let length = real.iter().map(|c| c.re * c.re).sum::<f64>().sqrt();
                out.push((w.re.into(), real.iter().map(|c| c / length).collect()));
            }
        }
    }
    out.iter_mut().for_each(|(w, _)| *w *= scale);
    Ok(out)
}

/// The real parts of the eigenvalues `w` of real `n × n` matrices and of unit eigenvectors as columns of `v`, and whether
/// all eigenvalues are real.
#[by_dtype(T in [f32, f64])]
pub fn eig<T: Ordered>(a: &[T], n: usize, w: &mut [T], v: &mut [T]) -> Result<bool, LinalgError> {
    let found = batch(count(a.len(), n * n), 40 * n * n * n, |i| general(Mat::load_finite(a, i, n, n)?))?;
    for (i, pairs) in found.iter().enumerate() {
        store(w, i, &pairs.iter().map(|p| p.0.re).collect::<Vec<_>>());
        store(v, i, &(0..n).flat_map(|r| pairs.iter().map(move |p| p.1[r].re)).collect::<Vec<_>>());
    }
    Ok(found.iter().flatten().all(|p| T::from_f64(p.0.im).to_f64() == 0.0))
}

#[cfg(test)]
mod tests {
    use super::super::testing::random;
    use super::*;

    fn check(a: &Mat, tolerance: f64) -> Vec<Complex128> {
        let n = a.rows;
        let pairs = general(a.clone()).unwrap();
        for (k, (w, v)) in pairs.iter().enumerate() {
            assert!((v.iter().map(|c| c.norm_sqr()).sum::<f64>() - 1.0).abs() < 1e-12);
            for i in 0..n {
                let av: Complex128 = a.row(i).iter().zip(v).map(|(a, v)| v * a).sum();
                assert!(norm(av - w * v[i]) < tolerance, "n {n} pair {k}: {av} {}", w * v[i]);
            }
        }
        let trace: f64 = (0..n).map(|i| a.row(i)[i]).sum();
        assert!((pairs.iter().map(|p| p.0.re).sum::<f64>() - trace).abs() < tolerance * n as f64);
        pairs.into_iter().map(|p| p.0).collect()
    }

    #[test]
    fn pairs_hold() {
        for n in [1, 2, 3, 5, 12, 40] {
            check(&random(n as u64, n, n), 1e-11);
        }
        let w = check(&Mat { rows: 2, cols: 2, data: vec![0.0, -1.0, 1.0, 0.0] }, 1e-13);
        assert!(norm(w[0] - Complex128::I) < 1e-14 && w[1] == w[0].conj());
        let (mut w, mut v) = ([0f32; 2], [0f32; 4]);
        assert_eq!(eig_of(&[0.0, -1.0, 1.0, 0.0], 2, &mut w, &mut v), Ok(false));
        assert_eq!(eig_of(&[2.0, 0.0, 0.0, 3.0], 2, &mut w, &mut v), Ok(true));
    }

    #[test]
    fn permutation_zero_defective_and_bad() {
        let cycle =
            Mat { rows: 4, cols: 4, data: [0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 1, 0, 0, 0].map(f64::from).to_vec() };
        check(&cycle, 1e-12);
        check(&Mat::zeros(3, 3), 1e-12);
        check(&Mat { rows: 2, cols: 2, data: vec![1.0, 1.0, 0.0, 1.0] }, 1e-12);
        let e = eig_of(&[f32::INFINITY], 1, &mut [0f32], &mut [0f32]).unwrap_err();
        assert_eq!(e.kind, Kind::NonFinite);
    }
}
