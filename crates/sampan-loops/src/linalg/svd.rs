//! Singular values by one-sided Jacobi rotations, which find small singular values accurately; least squares.

use super::{Kind, LinalgError, Mat, batch, count, dot, qr, rotate, store};
use crate::Ordered;
use sampan_macros::by_dtype;

/// `a = U S Vᵀ` with the columns of U and V as rows of `ut` and `vt`; `s` descends.
struct Svd {
    ut: Mat,
    s: Vec<f64>,
    vt: Mat,
}

/// Rotates rows of `g` against each other until all are orthogonal; the rows of `v` turn along.
fn jacobi(g: &mut Mat, v: &mut Mat) -> Result<(), Kind> {
    let n = g.rows;
    for _ in 0..60 {
        let mut norms: Vec<f64> = (0..n).map(|i| dot(g.row(i), g.row(i))).collect();
        let mut turned = false;
        for i in 0..n {
            for j in i + 1..n {
                let c = dot(g.row(i), g.row(j));
                let (a, b) = (norms[i], norms[j]);
                if c == 0.0 || c.abs() <= 1e-15 * (a * b).sqrt() {
                    continue;
                }
                turned = true;
                let zeta = (b - a) / (2.0 * c);
                let t = 1.0f64.copysign(zeta) / (zeta.abs() + zeta.hypot(1.0));
                let cos = 1.0 / t.hypot(1.0);
                let sin = cos * t;
                let (x, y) = g.rows_mut(i, j);
                rotate(x, y, cos, sin);
                (norms[i], norms[j]) = (dot(x, x), dot(y, y));
                let (x, y) = v.rows_mut(i, j);
                rotate(x, y, cos, sin);
            }
        }
        if !turned {
            return Ok(());
        }
    }
    Err(Kind::NoConvergence)
}

/// Puts orthonormal rows, themselves orthogonal to the first `done`, in place of the rows after those.
fn complete(rows: &mut Mat, done: usize) {
    if done == rows.rows {
        return;
    }
    let first = Mat { rows: done, cols: rows.cols, data: rows.data[..done * rows.cols].to_vec() };
    let basis = qr::factor(&first.transposed()).q_columns(rows.rows);
    rows.data[done * first.cols..].copy_from_slice(&basis.data[done * first.cols..]);
}

/// Singular values and vectors: `ku` of the left ones, `kv` of the right ones.
fn decompose(a: Mat, ku: usize, kv: usize) -> Result<Svd, Kind> {
    if a.rows < a.cols {
        let Svd { ut, s, vt } = decompose(a.transposed(), kv, ku)?;
        return Ok(Svd { ut: vt, s, vt: ut });
    }
    let (m, n) = (a.rows, a.cols);
    // The scale keeps squares in range.
    let scale = if a.max_abs() > 0.0 { a.max_abs() } else { 1.0 };
    let mut a = a;
    a.data.iter_mut().for_each(|v| *v /= scale);
    // A = Q R, and only the small R goes through the rotations: rows of `g` are columns of R.
    let f = qr::factor(&a);
    let mut g = Mat::zeros(n, n);
    (0..n).for_each(|j| g.row_mut(j).copy_from_slice(&f.columns.row(j)[..n]));
    let mut v = Mat::identity(n);
    jacobi(&mut g, &mut v)?;
    let norms: Vec<f64> = (0..n).map(|i| dot(g.row(i), g.row(i)).sqrt()).collect();
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&i, &j| norms[j].total_cmp(&norms[i]));
    let rank = norms.iter().filter(|&&x| x > f64::MIN_POSITIVE).count();
    let mut inner = Mat::zeros(n, n);
    let mut vt = Mat::zeros(n, n);
    for (to, &from) in order.iter().enumerate() {
        vt.row_mut(to).copy_from_slice(v.row(from));
        if to < rank {
            let row = g.row(from).iter().map(|x| x / norms[from]);
            inner.row_mut(to).iter_mut().zip(row).for_each(|(d, x)| *d = x);
        }
    }
    complete(&mut inner, rank);
    // U = Q · inner, on columns as rows.
    let mut ut = inner.mul(&f.q_columns(n));
    if ku > n {
        ut.data.resize(ku * m, 0.0);
        ut.rows = ku;
        complete(&mut ut, n);
    }
    Ok(Svd { ut, s: order.iter().map(|&i| norms[i] * scale).collect(), vt })
}

/// Singular values `s` (descending), left vectors as columns of `u` and right ones as rows of `vt`, for `m × n`
/// matrices. With `full`, `u` is `m × m` and `vt` is `n × n`, else `m × k` and `k × n`, `k = min(m, n)`. Empty `u` and
/// `vt` are left out.
#[by_dtype(T in [f32, f64])]
pub fn svd<T: Ordered>(
    a: &[T],
    m: usize,
    n: usize,
    full: bool,
    u: &mut [T],
    s: &mut [T],
    vt: &mut [T],
) -> Result<(), LinalgError> {
    let k = m.min(n);
    let (ku, kv) = if full { (m, n) } else { (k, k) };
    let found = batch(count(a.len(), m * n), 20 * m * n * k, |i| decompose(Mat::load_finite(a, i, m, n)?, ku, kv))?;
    for (i, f) in found.iter().enumerate() {
        store(s, i, &f.s);
        if !u.is_empty() {
            store(u, i, &f.ut.transposed().data);
        }
        if !vt.is_empty() {
            store(vt, i, &f.vt.data);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::testing::{close, orthonormal_columns, random};
    use super::*;

    fn check(a: &Mat, full: bool) -> Vec<f64> {
        let (m, n, k) = (a.rows, a.cols, a.rows.min(a.cols));
        let (ku, kv) = if full { (m, n) } else { (k, k) };
        let (mut u, mut s, mut vt) = (Mat::zeros(m, ku), vec![0.0; k], Mat::zeros(kv, n));
        svd_of(&a.data, m, n, full, &mut u.data, &mut s, &mut vt.data).unwrap();
        orthonormal_columns(&u);
        orthonormal_columns(&vt.transposed());
        assert!(s.windows(2).all(|p| p[0] >= p[1]) && s.iter().all(|&v| v >= 0.0));
        let mut us = Mat::zeros(m, kv);
        (0..m).for_each(|i| (0..k).for_each(|j| us.row_mut(i)[j] = u.row(i)[j] * s[j]));
        close(&us.mul(&vt), a, 1e-12 * a.max_abs().max(1.0));
        s
    }

    #[test]
    fn rebuilds_in_every_shape() {
        for (m, n) in [(1, 1), (4, 4), (20, 7), (7, 20), (1, 3), (3, 1), (30, 30)] {
            check(&random(1, m, n), false);
            check(&random(2, m, n), true);
        }
    }

    #[test]
    fn rank_deficient_and_bad() {
        check(&Mat::zeros(3, 2), true);
        let low = random(3, 6, 2).mul(&random(4, 2, 5));
        let s = check(&low, true);
        assert!(s[2] < 1e-14 * s[0]);
        let e = svd_of(&[f32::NAN; 4], 2, 2, false, &mut [0f32; 4], &mut [0f32; 2], &mut [0f32; 4]).unwrap_err();
        assert_eq!(e.kind, Kind::NonFinite);
    }
}
