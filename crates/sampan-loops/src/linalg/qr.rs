//! QR by Householder reflections.

use super::{Kind, LinalgError, Mat, axpy, batch, count, dot, store};
use crate::Ordered;
use sampan_macros::by_dtype;

/// A reflection `H = I − β v vᵀ` that maps `x` to `(value, 0, …)`; `x` becomes `v`. β is 0 where `x` is already so.
pub(super) fn reflector(x: &mut [f64]) -> (f64, f64) {
    // Scaling first keeps squares from overflowing or vanishing.
    let scale = x.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
    if x[1..].iter().all(|&v| v == 0.0) {
        return (0.0, x[0]);
    }
    x.iter_mut().for_each(|v| *v /= scale);
    let norm = dot(x, x).sqrt();
    let value = -norm.copysign(x[0]);
    x[0] -= value;
    (2.0 / dot(x, x), value * scale)
}

/// Reflects a vector.
pub(super) fn reflect(v: &[f64], beta: f64, y: &mut [f64]) {
    let c = -beta * dot(v, y);
    axpy(y, c, v);
}

/// Reflections of `aᵀ` (columns are rows here): `columns[j]` ends as column `j` of R, reflector `j` starts at row `j`.
pub(super) struct Reflections {
    vectors: Vec<(Vec<f64>, f64)>,
    /// R, transposed: row `j` is column `j`.
    pub(super) columns: Mat,
}

pub(super) fn factor(a: &Mat) -> Reflections {
    let mut columns = a.transposed();
    let steps = a.rows.min(a.cols);
    let mut vectors = Vec::with_capacity(steps);
    for j in 0..steps {
        let mut v = columns.row(j)[j..].to_vec();
        let (beta, value) = reflector(&mut v);
        columns.row_mut(j)[j + 1..].fill(0.0);
        columns.row_mut(j)[j] = value;
        if beta != 0.0 {
            (j + 1..a.cols).for_each(|c| reflect(&v, beta, &mut columns.row_mut(c)[j..]));
        }
        vectors.push((v, beta));
    }
    Reflections { vectors, columns }
}

impl Reflections {
    /// The first `k` columns of Q, transposed: row `j` is column `j`.
    pub(super) fn q_columns(&self, k: usize) -> Mat {
        let mut q = Mat::zeros(k, self.columns.cols);
        for c in 0..k {
            q.row_mut(c)[c] = 1.0;
            for (j, (v, beta)) in self.vectors.iter().enumerate().rev() {
                // Above its own row a unit vector is still zero, so earlier reflections alone can move it.
                if *beta != 0.0 && (j <= c) {
                    reflect(v, *beta, &mut q.row_mut(c)[j..]);
                }
            }
        }
        q
    }
}

/// `a = Q R` for `m × n` matrices. Reduced: Q is `m × k`, R is `k × n` with `k = min(m, n)`; complete: `k = m`. With
/// `q` empty only R is given.
#[by_dtype(T in [f32, f64])]
pub fn qr<T: Ordered>(
    a: &[T],
    m: usize,
    n: usize,
    complete: bool,
    q: &mut [T],
    r: &mut [T],
) -> Result<(), LinalgError> {
    let k = if complete { m } else { m.min(n) };
    let wanted = !q.is_empty();
    let found = batch(count(a.len(), m * n), 2 * m * n * k, |i| {
        let f = factor(&Mat::load(a, i, m, n));
        let mut r = f.columns.transposed();
        r.data.truncate(k * n);
        let q = if wanted { f.q_columns(k).transposed().data } else { Vec::new() };
        Ok::<_, Kind>((q, r.data))
    })?;
    for (i, (qi, ri)) in found.iter().enumerate() {
        store(q, i, qi);
        store(r, i, ri);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::testing::{close, orthonormal_columns, random};
    use super::*;

    #[test]
    fn rebuilds_in_every_shape() {
        for (m, n) in [(5, 5), (20, 7), (7, 20), (1, 3), (3, 1)] {
            for complete in [false, true] {
                let a = random(1, m, n);
                let k = if complete { m } else { m.min(n) };
                let (mut q, mut r) = (Mat::zeros(m, k), Mat::zeros(k, n));
                qr_of(&a.data, m, n, complete, &mut q.data, &mut r.data).unwrap();
                orthonormal_columns(&q);
                close(&q.mul(&r), &a, 1e-12);
                for i in 0..k {
                    assert!(r.row(i)[..i.min(n)].iter().all(|&v| v == 0.0));
                }
            }
        }
    }

    #[test]
    fn rank_deficient_and_non_finite_do_not_panic() {
        let (mut q, mut r) = ([0f32; 4], [0f32; 4]);
        qr_of(&[0f32; 4], 2, 2, false, &mut q, &mut r).unwrap();
        assert_eq!((q, r), ([1.0, 0.0, 0.0, 1.0], [0.0; 4]));
        qr_of(&[f32::NAN, 1.0, 2.0, f32::INFINITY], 2, 2, false, &mut q, &mut r).unwrap();
        assert!(r[0].is_nan());
        qr_of(&[0.0, 1.0, f32::NAN, 2.0], 2, 2, false, &mut q, &mut r).unwrap();
        assert!(r[0].is_nan() && q[0].is_nan(), "a NaN below zeros counts too");
    }
}
