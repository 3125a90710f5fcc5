//! Dense linear algebra on batches of contiguous matrices. Everything is computed in float64, whatever the element
//! type, one matrix per task. Nothing panics on singular or non-finite input: an error names the matrix and the kind.

mod eig;
mod eigh;
mod factor;
mod qr;
mod svd;

pub use eig::eig;
pub use eigh::eigh;
pub use factor::{Triangle, cholesky, det, inverse, lu, slogdet, solve, solve_triangular};
pub use qr::qr;
pub use svd::svd;

use crate::{Ordered, parallel};
use std::fmt;

/// Why a decomposition failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A leading minor is not positive; the number is its order, from 1.
    NotPositiveDefinite(usize),
    /// A pivot is zero; the number counts from 1.
    Singular(usize),
    /// NaN or infinity in the input.
    NonFinite,
    /// The iteration did not settle.
    NoConvergence,
}

/// A failed decomposition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinalgError {
    /// Which matrix of the batch.
    pub matrix: usize,
    /// Why.
    pub kind: Kind,
}

impl fmt::Display for LinalgError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "matrix {} of the batch ", self.matrix)?;
        match self.kind {
            Kind::NotPositiveDefinite(n) => {
                write!(f, "is not positive definite: its leading minor of order {n} is not positive")
            }
            Kind::Singular(n) => write!(f, "is singular: pivot {n} is zero"),
            Kind::NonFinite => write!(f, "holds NaN or infinity"),
            Kind::NoConvergence => write!(f, "did not converge"),
        }
    }
}
impl std::error::Error for LinalgError {}

/// A row-major matrix in working precision.
#[derive(Clone, Debug, PartialEq)]
struct Mat {
    rows: usize,
    cols: usize,
    data: Vec<f64>,
}

impl Mat {
    fn zeros(rows: usize, cols: usize) -> Mat {
        Mat { rows, cols, data: vec![0.0; rows * cols] }
    }

    fn identity(n: usize) -> Mat {
        let mut m = Mat::zeros(n, n);
        (0..n).for_each(|i| m.row_mut(i)[i] = 1.0);
        m
    }

    /// Matrix number `i` of a batch.
    fn load<T: Ordered>(x: &[T], i: usize, rows: usize, cols: usize) -> Mat {
        let data = x[i * rows * cols..(i + 1) * rows * cols].iter().map(|v| v.to_f64()).collect();
        Mat { rows, cols, data }
    }

    /// The same, refusing NaN and infinity.
    fn load_finite<T: Ordered>(x: &[T], i: usize, rows: usize, cols: usize) -> Result<Mat, Kind> {
        let m = Mat::load(x, i, rows, cols);
        if m.data.iter().all(|v| v.is_finite()) { Ok(m) } else { Err(Kind::NonFinite) }
    }

    fn row(&self, i: usize) -> &[f64] {
        &self.data[i * self.cols..(i + 1) * self.cols]
    }

    fn row_mut(&mut self, i: usize) -> &mut [f64] {
        &mut self.data[i * self.cols..(i + 1) * self.cols]
    }

    /// Two different rows, the first to read and the second to change.
    fn row_pair(&mut self, from: usize, to: usize) -> (&[f64], &mut [f64]) {
        let (a, b) = self.rows_mut(from, to);
        (a, b)
    }

    fn rows_mut(&mut self, a: usize, b: usize) -> (&mut [f64], &mut [f64]) {
        let n = self.cols;
        if a < b {
            let (low, high) = self.data.split_at_mut(b * n);
            (&mut low[a * n..(a + 1) * n], &mut high[..n])
        } else {
            let (low, high) = self.data.split_at_mut(a * n);
            (&mut high[..n], &mut low[b * n..(b + 1) * n])
        }
    }

    fn swap_rows(&mut self, a: usize, b: usize) {
        if a != b {
            let (x, y) = self.rows_mut(a, b);
            x.swap_with_slice(y);
        }
    }

    fn transposed(&self) -> Mat {
        let mut t = Mat::zeros(self.cols, self.rows);
        for i in 0..self.rows {
            for j in 0..self.cols {
                t.data[j * self.rows + i] = self.data[i * self.cols + j];
            }
        }
        t
    }

    fn mul(&self, other: &Mat) -> Mat {
        let mut out = Mat::zeros(self.rows, other.cols);
        for i in 0..self.rows {
            for (k, &a) in self.row(i).iter().enumerate() {
                axpy(&mut out.data[i * other.cols..(i + 1) * other.cols], a, other.row(k));
            }
        }
        out
    }

    fn max_abs(&self) -> f64 {
        self.data.iter().fold(0.0, |m: f64, v| m.max(v.abs()))
    }
}

/// Runs a loop over `len` elements, compiled for the widest vectors this processor has where that is worth a call. No
/// step is fused, so the bits do not depend on the processor.
#[inline(always)]
fn wide<R>(len: usize, f: impl FnOnce() -> R) -> R {
    if len < 32 { f() } else { pulp::Arch::new().dispatch(f) }
}

/// `y += a x`.
#[inline]
fn axpy(y: &mut [f64], a: f64, x: &[f64]) {
    wide(
        y.len(),
        #[inline(always)]
        || y.iter_mut().zip(x).for_each(|(y, x)| *y += a * x),
    );
}

/// Sum of products, in eight lanes so that it vectorises.
#[inline]
fn dot(x: &[f64], y: &[f64]) -> f64 {
    wide(
        x.len(),
        #[inline(always)]
        || {
            let mut lanes = [0.0; 8];
            let (xs, ys) = (x.chunks_exact(8), y.chunks_exact(8));
            let tail: f64 = xs.remainder().iter().zip(ys.remainder()).map(|(a, b)| a * b).sum();
            for (a, b) in xs.zip(ys) {
                for l in 0..8 {
                    lanes[l] += a[l] * b[l];
                }
            }
            lanes.iter().sum::<f64>() + tail
        },
    )
}

/// Plane rotation of two rows: `(a, b) ← (c a − s b, s a + c b)`.
#[inline]
fn rotate(a: &mut [f64], b: &mut [f64], c: f64, s: f64) {
    wide(
        a.len(),
        #[inline(always)]
        || {
            for (x, y) in a.iter_mut().zip(b) {
                (*x, *y) = (c * *x - s * *y, s * *x + c * *y);
            }
        },
    );
}

/// Runs `f` on each matrix of a batch; the first error (by number) is given back.
fn batch<R: Send>(
    count: usize,
    cost: usize,
    f: impl Fn(usize) -> Result<R, Kind> + Sync + Send,
) -> Result<Vec<R>, LinalgError> {
    let results = parallel::map(count, cost, |i| f(i).map_err(|kind| LinalgError { matrix: i, kind }));
    results.into_iter().collect()
}

/// Writes working precision back.
fn store<T: Ordered>(dst: &mut [T], i: usize, values: &[f64]) {
    let n = values.len();
    for (d, v) in dst[i * n..(i + 1) * n].iter_mut().zip(values) {
        *d = T::from_f64(*v);
    }
}

/// How many matrices of `each` elements `len` elements are.
fn count(len: usize, each: usize) -> usize {
    len.checked_div(each).unwrap_or(0)
}

#[cfg(test)]
mod testing {
    use super::Mat;

    pub fn random(seed: u64, rows: usize, cols: usize) -> Mat {
        let mut m = Mat::zeros(rows, cols);
        crate::rng::normal(seed, 0, m.data.as_mut_slice().into(), 0.0, 1.0);
        m
    }

    #[track_caller]
    pub fn close(a: &Mat, b: &Mat, tolerance: f64) {
        assert_eq!((a.rows, a.cols), (b.rows, b.cols));
        let worst = a.data.iter().zip(&b.data).map(|(x, y)| (x - y).abs()).fold(0.0, f64::max);
        assert!(worst <= tolerance, "differs by {worst}\n{a:?}\n{b:?}");
    }

    #[track_caller]
    pub fn orthonormal_columns(q: &Mat) {
        close(&q.transposed().mul(q), &Mat::identity(q.cols), 1e-12);
    }
}
