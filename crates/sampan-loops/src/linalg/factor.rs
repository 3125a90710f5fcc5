//! Triangular factors: Cholesky, LU, and what follows from them.

use super::{Kind, LinalgError, Mat, axpy, batch, count, dot, store};
use crate::Ordered;
use sampan_macros::by_dtype;

/// `a = L Lᵀ`, lower triangle; reads the lower triangle of `a`.
fn cholesky_lower(mut a: Mat) -> Result<Mat, Kind> {
    let n = a.rows;
    for i in 0..n {
        for j in 0..=i {
            let s = a.row(i)[j] - dot(&a.row(i)[..j], &a.row(j)[..j]);
            a.row_mut(i)[j] = if i != j {
                s / a.row(j)[j]
            } else if s > 0.0 && s.is_finite() {
                s.sqrt()
            } else if s.is_finite() {
                return Err(Kind::NotPositiveDefinite(i + 1));
            } else {
                return Err(Kind::NonFinite);
            };
        }
        a.row_mut(i)[i + 1..].fill(0.0);
    }
    Ok(a)
}

/// Cholesky factors of `n × n` matrices: lower (`a = L Lᵀ`) or upper (`a = Uᵀ U`), from the triangle of that name.
#[by_dtype(T in [f32, f64])]
pub fn cholesky<T: Ordered>(a: &[T], n: usize, upper: bool, dst: &mut [T]) -> Result<(), LinalgError> {
    let factors = batch(count(a.len(), n * n), n * n * n / 3, |i| {
        let m = Mat::load(a, i, n, n);
        let l = cholesky_lower(if upper { m.transposed() } else { m })?;
        Ok(if upper { l.transposed() } else { l })
    })?;
    factors.iter().enumerate().for_each(|(i, l)| store(dst, i, &l.data));
    Ok(())
}

/// Which triangle a system has and how it is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Triangle {
    /// The upper triangle is read, else the lower.
    pub upper: bool,
    /// The transpose of the matrix is meant.
    pub transpose: bool,
    /// The diagonal is taken to be ones.
    pub unit: bool,
}

/// Solves in place, `b` of `n` rows.
fn triangular(a: &Mat, how: Triangle, b: &mut Mat) -> Result<(), Kind> {
    let n = a.rows;
    // The transpose of an upper triangle is a lower one: only `at` knows the difference.
    let at = |i: usize, j: usize| if how.transpose { a.row(j)[i] } else { a.row(i)[j] };
    let forward = how.upper == how.transpose;
    for step in 0..n {
        let i = if forward { step } else { n - 1 - step };
        for j in if forward { 0..i } else { i + 1..n } {
            let c = at(i, j);
            if c != 0.0 {
                let (from, to) = b.row_pair(j, i);
                axpy(to, -c, from);
            }
        }
        if !how.unit {
            let d = at(i, i);
            if d == 0.0 {
                return Err(Kind::Singular(i + 1));
            }
            b.row_mut(i).iter_mut().for_each(|v| *v /= d);
        }
    }
    Ok(())
}

/// Solves `a x = b` for triangular `n × n` matrices and `n × m` right sides.
#[by_dtype(T in [f32, f64])]
pub fn solve_triangular<T: Ordered>(
    a: &[T],
    n: usize,
    how: Triangle,
    b: &[T],
    m: usize,
    dst: &mut [T],
) -> Result<(), LinalgError> {
    let solved = batch(count(a.len(), n * n), n * n * m, |i| {
        let mut x = Mat::load(b, i, n, m);
        triangular(&Mat::load(a, i, n, n), how, &mut x)?;
        Ok(x)
    })?;
    solved.iter().enumerate().for_each(|(i, x)| store(dst, i, &x.data));
    Ok(())
}

/// Both factors in one matrix (the unit diagonal of L left out), the row exchanged at each step, the sign of the
/// exchanges, and the first zero pivot (from 1; 0 if none).
struct Lu {
    lu: Mat,
    pivots: Vec<usize>,
    odd: bool,
    zero: usize,
}

/// Gaussian elimination with partial pivoting, in panels: the bulk of the work is a product that stays in cache.
fn lu_factor(mut a: Mat) -> Lu {
    const PANEL: usize = 32;
    let (m, n) = (a.rows, a.cols);
    let k = m.min(n);
    let mut out = Lu { lu: Mat::zeros(0, 0), pivots: Vec::with_capacity(k), odd: false, zero: 0 };
    for start in (0..k).step_by(PANEL) {
        let end = (start + PANEL).min(k);
        for c in start..end {
            let mut p = c;
            for i in c + 1..m {
                // A NaN is taken as pivot, so that it reaches the result.
                let (v, best) = (a.row(i)[c].abs(), a.row(p)[c].abs());
                if v > best || (v.is_nan() && !best.is_nan()) {
                    p = i;
                }
            }
            a.swap_rows(c, p);
            out.pivots.push(p);
            out.odd ^= p != c;
            let pivot = a.row(c)[c];
            if pivot == 0.0 {
                if out.zero == 0 {
                    out.zero = c + 1;
                }
                continue;
            }
            for i in c + 1..m {
                let (top, row) = a.row_pair(c, i);
                let f = row[c] / pivot;
                row[c] = f;
                if f != 0.0 {
                    axpy(&mut row[c + 1..end], -f, &top[c + 1..end]);
                }
            }
        }
        // The rest of each row: first the panel's own rows (from top to bottom), then all below from those.
        for i in start + 1..m {
            for c in start..end.min(i) {
                let (top, row) = a.row_pair(c, i);
                let f = row[c];
                if f != 0.0 {
                    axpy(&mut row[end..], -f, &top[end..]);
                }
            }
        }
    }
    out.lu = a;
    out
}

impl Lu {
    fn solve(&self, b: &mut Mat) -> Result<(), Kind> {
        if self.zero > 0 {
            return Err(Kind::Singular(self.zero));
        }
        if self.lu.data.iter().any(|v| !v.is_finite()) {
            return Err(Kind::NonFinite);
        }
        self.pivots.iter().enumerate().for_each(|(i, &p)| b.swap_rows(i, p));
        triangular(&self.lu, Triangle { upper: false, transpose: false, unit: true }, b)?;
        triangular(&self.lu, Triangle { upper: true, transpose: false, unit: false }, b)
    }

    /// The pivots. A NaN anywhere is one of them: an elimination step that has nothing to do would drop it, and no
    /// determinant with a NaN is known.
    fn diagonal(&self) -> impl Iterator<Item = f64> + '_ {
        let unknown = self.lu.data.iter().copied().find(|v| v.is_nan());
        (0..self.pivots.len()).map(|i| self.lu.row(i)[i]).chain(unknown)
    }
}

/// LU of `m × n` matrices: both factors in `dst`, `pivots` (from 1, as LAPACK gives them), and in `infos` the first
/// zero pivot (from 1; 0 if none).
#[by_dtype(T in [f32, f64])]
pub fn lu<T: Ordered>(a: &[T], m: usize, n: usize, dst: &mut [T], pivots: &mut [i32], infos: &mut [i32]) {
    let k = m.min(n);
    let factors = batch(count(a.len(), m * n), m * n * k, |i| Ok(lu_factor(Mat::load(a, i, m, n))));
    for (i, f) in factors.iter().flatten().enumerate() {
        store(dst, i, &f.lu.data);
        for (d, p) in pivots[i * k..(i + 1) * k].iter_mut().zip(&f.pivots) {
            *d = *p as i32 + 1;
        }
        infos[i] = f.zero as i32;
    }
}

/// Signs and logarithms of the absolute determinants; sign 0 and −∞ for a singular matrix.
#[by_dtype(T in [f32, f64])]
pub fn slogdet<T: Ordered>(a: &[T], n: usize, sign: &mut [T], logdet: &mut [T]) {
    sign.fill(T::from_f64(1.0));
    logdet.fill(T::default());
    let found = batch(count(a.len(), n * n), n * n * n, |i| {
        let f = lu_factor(Mat::load(a, i, n, n));
        let start = (if f.odd { -1.0 } else { 1.0 }, 0.0);
        Ok(f.diagonal().fold(start, |(s, l), d| {
            let sign = if d == 0.0 || d.is_nan() { d } else { d.signum() };
            (s * sign, l + d.abs().ln())
        }))
    });
    for (i, &(s, l)) in found.iter().flatten().enumerate() {
        (sign[i], logdet[i]) = (T::from_f64(s), T::from_f64(l));
    }
}

/// Determinants of `n × n` matrices; those of no elements are 1.
#[by_dtype(T in [f32, f64])]
pub fn det<T: Ordered>(a: &[T], n: usize, dst: &mut [T]) {
    dst.fill(T::from_f64(1.0));
    let found = batch(count(a.len(), n * n), n * n * n, |i| {
        let f = lu_factor(Mat::load(a, i, n, n));
        Ok(f.diagonal().product::<f64>() * if f.odd { -1.0 } else { 1.0 })
    });
    for (d, v) in dst.iter_mut().zip(found.iter().flatten()) {
        *d = T::from_f64(*v);
    }
}

/// Solves `a x = b` for `n × n` matrices and `n × m` right sides.
#[by_dtype(T in [f32, f64])]
pub fn solve<T: Ordered>(a: &[T], n: usize, b: &[T], m: usize, dst: &mut [T]) -> Result<(), LinalgError> {
    let solved = batch(count(a.len(), n * n), n * n * (n + m), |i| {
        let mut x = Mat::load(b, i, n, m);
        lu_factor(Mat::load(a, i, n, n)).solve(&mut x)?;
        Ok(x)
    })?;
    solved.iter().enumerate().for_each(|(i, x)| store(dst, i, &x.data));
    Ok(())
}

/// Inverses of `n × n` matrices.
#[by_dtype(T in [f32, f64])]
pub fn inverse<T: Ordered>(a: &[T], n: usize, dst: &mut [T]) -> Result<(), LinalgError> {
    let inverses = batch(count(a.len(), n * n), 2 * n * n * n, |i| {
        let mut x = Mat::identity(n);
        lu_factor(Mat::load(a, i, n, n)).solve(&mut x)?;
        Ok(x)
    })?;
    inverses.iter().enumerate().for_each(|(i, x)| store(dst, i, &x.data));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::testing::{close, random};
    use super::*;

    fn mat(rows: usize, cols: usize, data: Vec<f64>) -> Mat {
        Mat { rows, cols, data }
    }

    #[test]
    fn cholesky_rebuilds() {
        let r = random(1, 40, 40);
        let a = r.mul(&r.transposed());
        let mut l = vec![0.0; 1600];
        cholesky_of(&a.data, 40, false, &mut l).unwrap();
        let l = mat(40, 40, l);
        close(&l.mul(&l.transposed()), &a, 1e-11);
        let mut u = vec![0.0; 1600];
        cholesky_of(&a.data, 40, true, &mut u).unwrap();
        close(&mat(40, 40, u), &l.transposed(), 1e-11);
        let e = cholesky_of(&[4f32, 0.0, 0.0, 4.0, 1.0, 2.0, 2.0, 1.0], 2, false, &mut [0f32; 8]).unwrap_err();
        assert_eq!(e, LinalgError { matrix: 1, kind: Kind::NotPositiveDefinite(2) });
        assert_eq!(cholesky_of(&[f32::NAN], 1, false, &mut [0f32]).unwrap_err().kind, Kind::NonFinite);
    }

    #[test]
    fn triangular_in_all_forms() {
        let full = random(3, 6, 6);
        let b = random(4, 6, 2);
        for bits in 0..8 {
            let how = Triangle { upper: bits & 1 != 0, transpose: bits & 2 != 0, unit: bits & 4 != 0 };
            let mut t = full.clone();
            for i in 0..6 {
                for j in 0..6 {
                    if (j > i) != how.upper && i != j {
                        t.row_mut(i)[j] = 0.0;
                    }
                }
                if how.unit {
                    t.row_mut(i)[i] = 1.0;
                }
            }
            let mut x = vec![0.0; 12];
            solve_triangular_of(&full.data, 6, how, &b.data, 2, &mut x).unwrap();
            let t = if how.transpose { t.transposed() } else { t };
            close(&t.mul(&mat(6, 2, x)), &b, 1e-9);
        }
    }

    #[test]
    fn lu_rebuilds_tall_wide_and_blocked() {
        for (m, n) in [(3, 3), (70, 70), (75, 40), (40, 75), (1, 4)] {
            let a = random(5, m, n);
            let k = m.min(n);
            let (mut f, mut p, mut info) = (vec![0.0; m * n], vec![0; k], [0]);
            lu_of(&a.data, m, n, &mut f, &mut p, &mut info);
            assert_eq!(info, [0]);
            let f = mat(m, n, f);
            let (mut l, mut u) = (Mat::zeros(m, k), Mat::zeros(k, n));
            for i in 0..m {
                for j in 0..n {
                    if j < i.min(k) {
                        l.row_mut(i)[j] = f.row(i)[j];
                        assert!(f.row(i)[j].abs() <= 1.0);
                    } else if i < k {
                        u.row_mut(i)[j] = f.row(i)[j];
                    }
                }
                if i < k {
                    l.row_mut(i)[i] = 1.0;
                }
            }
            let mut pa = a.clone();
            p.iter().enumerate().for_each(|(i, &q)| pa.swap_rows(i, q as usize - 1));
            close(&l.mul(&u), &pa, 1e-12);
        }
    }

    #[test]
    fn inverse_solve_det() {
        let a = random(6, 50, 50);
        let mut inv = vec![0.0; 2500];
        inverse_of(&a.data, 50, &mut inv).unwrap();
        close(&a.mul(&mat(50, 50, inv)), &Mat::identity(50), 1e-10);
        let b = random(7, 50, 3);
        let mut x = vec![0.0; 150];
        solve_of(&a.data, 50, &b.data, 3, &mut x).unwrap();
        close(&a.mul(&mat(50, 3, x)), &b, 1e-10);
        let zero = [0f32; 4];
        assert_eq!(inverse_of(&zero, 2, &mut [0f32; 4]).unwrap_err().kind, Kind::Singular(1));
        assert_eq!(solve_of(&[f32::NAN; 4], 2, &zero, 2, &mut [0f32; 4]).unwrap_err().kind, Kind::NonFinite);
        let mut d = [0f32; 2];
        det_of(&[0f32, 2.0, 3.0, 4.0, 1.0, 2.0, 2.0, 4.0], 2, &mut d);
        assert_eq!(d, [-6.0, 0.0]);
        let (mut s, mut l) = ([0f32; 2], [0f32; 2]);
        slogdet_of(&[0f32, 2.0, 3.0, 4.0, 0.0, 0.0, 0.0, 0.0], 2, &mut s, &mut l);
        assert_eq!((s, l[0], l[1]), ([-1.0, 0.0], 6f32.ln(), f32::NEG_INFINITY));
        for a in [[f32::NAN; 4], [0.0, f32::NAN, 0.0, 1.0], [1.0, f32::NAN, 0.0, 1.0]] {
            det_of(&a, 2, &mut d[..1]);
            slogdet_of(&a, 2, &mut s[..1], &mut l[..1]);
            assert!(d[0].is_nan() && s[0].is_nan() && l[0].is_nan(), "{a:?}: {d:?} {s:?} {l:?}");
        }
    }
}
