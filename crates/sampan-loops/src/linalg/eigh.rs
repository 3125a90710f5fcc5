//! Eigenvalues and eigenvectors of symmetric matrices: Householder tridiagonal form, then implicit QL.

use super::qr::{reflect, reflector};
use super::{Kind, LinalgError, Mat, axpy, batch, count, dot, rotate, store};
use crate::Ordered;
use sampan_macros::by_dtype;

/// `a = Q T Qᵀ`: diagonal and subdiagonal of T, and Qᵀ if wanted. `a` is symmetric in full.
fn tridiagonal(mut a: Mat, vectors: bool) -> (Vec<f64>, Vec<f64>, Mat) {
    let n = a.rows;
    let mut off = vec![0.0; n];
    let mut reflectors = Vec::new();
    for k in 0..n.saturating_sub(1) {
        let mut v = a.row(k)[k + 1..].to_vec();
        let (beta, value) = reflector(&mut v);
        off[k] = value;
        if beta != 0.0 {
            // A ← H A H as a rank-two change: w = β A v − ½ β² (vᵀ A v) v.
            let mut w: Vec<f64> = (k + 1..n).map(|i| beta * dot(&a.row(i)[k + 1..], &v)).collect();
            let half = -0.5 * beta * dot(&w, &v);
            axpy(&mut w, half, &v);
            for i in k + 1..n {
                let (vi, wi) = (v[i - k - 1], w[i - k - 1]);
                let row = &mut a.row_mut(i)[k + 1..];
                row.iter_mut().zip(&v).zip(&w).for_each(|((r, v), w)| *r -= vi * w + wi * v);
            }
        }
        reflectors.push((v, beta));
    }
    let diagonal = (0..n).map(|i| a.row(i)[i]).collect();
    if !vectors {
        return (diagonal, off, Mat::zeros(n, 0));
    }
    // Row j of Qᵀ is Q e_j = H₀ H₁ … e_j.
    let mut q = Mat::identity(n);
    for j in 1..n {
        for (k, (v, beta)) in reflectors.iter().enumerate().take(j).rev() {
            if *beta != 0.0 {
                reflect(v, *beta, &mut q.row_mut(j)[k + 1..]);
            }
        }
    }
    (diagonal, off, q)
}

/// Implicit QL with Wilkinson's shift on a tridiagonal matrix; the rows of `q` turn along.
fn ql(d: &mut [f64], e: &mut [f64], q: &mut Mat) -> Result<(), Kind> {
    let n = d.len();
    for l in 0..n {
        for tries in 0.. {
            let small = |m: usize| e[m].abs() <= f64::EPSILON * (d[m].abs() + d[m + 1].abs());
            let m = (l..n - 1).find(|&m| small(m)).unwrap_or(n - 1);
            if m == l {
                break;
            }
            if tries == 60 {
                return Err(Kind::NoConvergence);
            }
            let g = (d[l + 1] - d[l]) / (2.0 * e[l]);
            let mut g = d[m] - d[l] + e[l] / (g + g.hypot(1.0).copysign(g));
            let (mut s, mut c, mut p) = (1.0, 1.0, 0.0);
            let mut split = false;
            for i in (l..m).rev() {
                let (f, b) = (s * e[i], c * e[i]);
                let r = f.hypot(g);
                e[i + 1] = r;
                if r == 0.0 {
                    d[i + 1] -= p;
                    e[m] = 0.0;
                    split = true;
                    break;
                }
                (s, c) = (f / r, g / r);
                g = d[i + 1] - p;
                let t = (d[i] - g) * s + 2.0 * c * b;
                p = s * t;
                d[i + 1] = g + p;
                g = c * t - b;
                let (a, b) = q.rows_mut(i, i + 1);
                rotate(a, b, c, s);
            }
            if !split {
                d[l] -= p;
                e[l] = g;
                e[m] = 0.0;
            }
        }
    }
    Ok(())
}

/// Ascending eigenvalues and, as rows, their eigenvectors.
fn symmetric(a: Mat, vectors: bool) -> Result<(Vec<f64>, Mat), Kind> {
    let n = a.rows;
    let (mut d, mut e, mut q) = tridiagonal(a, vectors);
    ql(&mut d, &mut e, &mut q)?;
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&i, &j| d[i].total_cmp(&d[j]));
    let rows = order.iter().flat_map(|&i| q.row(i).to_vec()).collect();
    Ok((order.iter().map(|&i| d[i]).collect(), Mat { rows: n, cols: q.cols, data: rows }))
}

/// Eigenvalues `w` (ascending) of symmetric `n × n` matrices, read from one triangle, and the eigenvectors as columns
/// of `v`; with `v` empty only the values are computed.
#[by_dtype(T in [f32, f64])]
pub fn eigh<T: Ordered>(a: &[T], n: usize, upper: bool, w: &mut [T], v: &mut [T]) -> Result<(), LinalgError> {
    let vectors = !v.is_empty();
    let found = batch(count(a.len(), n * n), 4 * n * n * n, |i| {
        let mut m = Mat::load(a, i, n, n);
        for r in 0..n {
            for c in 0..r {
                let value = if upper { m.row(c)[r] } else { m.row(r)[c] };
                m.row_mut(r)[c] = value;
                m.row_mut(c)[r] = value;
            }
        }
        if m.data.iter().any(|x| !x.is_finite()) {
            return Err(Kind::NonFinite);
        }
        symmetric(m, vectors)
    })?;
    for (i, (values, rows)) in found.iter().enumerate() {
        store(w, i, values);
        if vectors {
            store(v, i, &rows.transposed().data);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::testing::{close, orthonormal_columns, random};
    use super::*;

    #[test]
    fn rebuilds() {
        for n in [1, 2, 3, 30] {
            let r = random(n as u64, n, n);
            let mut a = r.clone();
            a.data.iter_mut().zip(&r.transposed().data).for_each(|(x, y)| *x += y);
            let (mut w, mut v) = (vec![0.0; n], Mat::zeros(n, n));
            eigh_of(&a.data, n, false, &mut w, &mut v.data).unwrap();
            assert!(w.windows(2).all(|p| p[0] <= p[1]));
            orthonormal_columns(&v);
            let mut scaled = v.clone();
            (0..n).for_each(|i| scaled.row_mut(i).iter_mut().zip(&w).for_each(|(x, w)| *x *= w));
            close(&scaled.mul(&v.transposed()), &a, 1e-11);
            let mut only = vec![0.0; n];
            eigh_of(&a.data, n, true, &mut only, &mut []).unwrap();
            assert!(only.iter().zip(&w).all(|(a, b)| (a - b).abs() < 1e-11));
        }
    }

    #[test]
    fn equal_zero_and_bad() {
        let (mut w, mut v) = ([0f32; 3], [0f32; 9]);
        eigh_of(&[0f32; 9], 3, false, &mut w, &mut v).unwrap();
        assert_eq!(w, [0.0; 3]);
        eigh_of(&[2f32, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 2.0], 3, false, &mut w, &mut v).unwrap();
        assert_eq!(w, [2.0; 3]);
        assert_eq!(eigh_of(&[f32::NAN; 9], 3, false, &mut w, &mut v).unwrap_err().kind, Kind::NonFinite);
    }
}
