//! Products of a few rows with one matrix, over and over: the matrix is laid out once so that the inner loop reads it in
//! order. An element of a product is a sum in the order of the inner index, however many rows are taken at once.

use crate::gemm::Mat;
use crate::gemm::pack::transpose_to;
use crate::vmath::Real;
use crate::{Buffer, parallel};
use pulp::{Arch, Simd, WithSimd};

/// Bytes of a panel's row: two of the widest vectors, which with [`ROWS`] rows leave half of the registers free.
const PANEL_BYTES: usize = 128;
/// Rows taken at once where vectors have 64 bytes; half as many where there are only sixteen registers.
const ROWS: usize = 8;

/// What the inner loop needs of a number.
pub trait Lanes: Real {
    /// A vector of them.
    type Vector<S: Simd>: Copy;
    /// One value in all lanes.
    fn splat<S: Simd>(simd: S, v: Self) -> Self::Vector<S>;
    /// `a * b + c`, rounded once where the machine can.
    fn fused<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>, c: Self::Vector<S>) -> Self::Vector<S>;
    /// `a + b`.
    fn sum<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S>;
    /// Lines of `len` elements, one after the other, become columns of `to`, whose rows are `pitch` apart.
    fn turn(lines: &[Self], len: usize, to: &mut [Self], pitch: usize) {
        for (j, line) in lines.chunks_exact(len.max(1)).enumerate() {
            line.iter().enumerate().for_each(|(i, &v)| to[i * pitch + j] = v);
        }
    }
}

macro_rules! lanes {
    ($t:ty, $vector:ident, $splat:ident, $fused:ident, $sum:ident $(, $turn:item)?) => {
        impl Lanes for $t {
            type Vector<S: Simd> = S::$vector;
            #[inline(always)]
            fn splat<S: Simd>(simd: S, v: $t) -> S::$vector {
                simd.$splat(v)
            }
            #[inline(always)]
            fn fused<S: Simd>(simd: S, a: S::$vector, b: S::$vector, c: S::$vector) -> S::$vector {
                simd.$fused(a, b, c)
            }
            #[inline(always)]
            fn sum<S: Simd>(simd: S, a: S::$vector, b: S::$vector) -> S::$vector {
                simd.$sum(a, b)
            }
            $($turn)?
        }
    };
}
lanes!(
    f32,
    f32s,
    splat_f32s,
    mul_add_e_f32s,
    add_f32s,
    fn turn(lines: &[f32], len: usize, to: &mut [f32], pitch: usize) {
        let count = lines.len() / len.max(1);
        assert!(lines.is_empty() || (len - 1) * pitch + count <= to.len(), "columns leave their matrix");
        // SAFETY: so many lines, and the rows were just found.
        unsafe { transpose_to(lines.as_ptr(), len as isize, count, len, to.as_mut_ptr(), pitch) };
    }
);
lanes!(f64, f64s, splat_f64s, mul_add_e_f64s, add_f64s);

/// A k×n matrix in panels of a few columns, each row by row; the last one is filled up with zeros.
pub(super) struct Packed<T> {
    k: usize,
    n: usize,
    panels: Buffer,
    element: std::marker::PhantomData<T>,
}

impl<T: Lanes> Packed<T> {
    const WIDTH: usize = PANEL_BYTES / size_of::<T>();

    pub(super) fn new(k: usize, n: usize, b: Mat<T>) -> Packed<T> {
        let mut panels = Buffer::uninit(n.div_ceil(Self::WIDTH) * k * PANEL_BYTES);
        parallel::for_each_chunk_mut(panels.as_mut_slice::<T>(), k * Self::WIDTH, 1, |p, panel| {
            let first = p * Self::WIDTH;
            let columns = Self::WIDTH.min(n - first);
            if columns < Self::WIDTH {
                panel.fill(T::ZERO);
            }
            let at = |i: usize, j: usize| {
                (b.offset as isize + i as isize * b.row_stride + (first + j) as isize * b.col_stride) as usize
            };
            // A panel fits into the cache, the matrix may not: it is read in the order in which it lies.
            if b.row_stride == 1 && b.col_stride == k as isize {
                T::turn(&b.data[b.offset + first * k..][..columns * k], k, panel, Self::WIDTH);
            } else if b.col_stride == 1 {
                // Lines that lie in one piece are copied as such: element by element it took several times as long.
                for (i, line) in panel.chunks_exact_mut(Self::WIDTH).enumerate() {
                    line[..columns].copy_from_slice(&b.data[at(i, 0)..][..columns]);
                }
            } else if b.row_stride.unsigned_abs() < b.col_stride.unsigned_abs() {
                for j in 0..columns {
                    (0..k).for_each(|i| panel[i * Self::WIDTH + j] = b.data[at(i, j)]);
                }
            } else {
                for i in 0..k {
                    (0..columns).for_each(|j| panel[i * Self::WIDTH + j] = b.data[at(i, j)]);
                }
            }
        });
        Packed { k, n, panels, element: std::marker::PhantomData }
    }

    /// `out += a · b` for rows `a` of `k` elements and rows `out` of `n`, each after the other.
    pub(super) fn add_product(&self, a: &[T], out: &mut [T]) {
        self.multiply(a, None, out);
    }

    /// `out = bias + a · b`, with the same `bias` for each row.
    pub(super) fn product_and(&self, bias: &[T], a: &[T], out: &mut [T]) {
        assert_eq!(bias.len(), self.n, "a bias for each column");
        self.multiply(a, Some(bias), out);
    }

    fn multiply(&self, a: &[T], bias: Option<&[T]>, out: &mut [T]) {
        let rows = out.len() / self.n.max(1);
        assert!(out.len() == rows * self.n && a.len() == rows * self.k, "rows of a and out belong together");
        Arch::new().dispatch(Multiply { b: self, a, bias, out, rows });
    }
}

struct Multiply<'a, T> {
    b: &'a Packed<T>,
    a: &'a [T],
    /// What the products are added to; without it, to what is in `out`.
    bias: Option<&'a [T]>,
    out: &'a mut [T],
    rows: usize,
}

impl<T: Lanes> WithSimd for Multiply<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let lanes = size_of::<T::Vector<S>>() / size_of::<T>();
        let most = if size_of::<T::Vector<S>>() == 64 { ROWS } else { ROWS / 2 };
        for first in (0..self.b.n).step_by(2 * lanes) {
            let mut row = 0;
            while row < self.rows {
                let left = (self.rows - row).min(most);
                row += match left {
                    8.. => self.tile::<S, 8>(simd, first, row),
                    4.. => self.tile::<S, 4>(simd, first, row),
                    2.. => self.tile::<S, 2>(simd, first, row),
                    _ => self.tile::<S, 1>(simd, first, row),
                };
            }
        }
    }
}

impl<T: Lanes> Multiply<'_, T> {
    /// Two vectors of columns of `R` rows; gives `R`.
    #[inline(always)]
    fn tile<S: Simd, const R: usize>(&mut self, simd: S, first: usize, row: usize) -> usize {
        let (k, n) = (self.b.k, self.b.n);
        let lanes = size_of::<T::Vector<S>>() / size_of::<T>();
        let width = Packed::<T>::WIDTH;
        let panel = &self.b.panels.as_slice::<T>()[first / width * width * k..][..width * k];
        let a = &self.a[row * k..][..R * k];
        let mut sums = [[T::splat(simd, T::ZERO); 2]; R];
        for i in 0..k {
            // SAFETY: `first` is a multiple of two vectors, which divide a panel's row, so both lie in row `i < k` of the
            // panel; `a` holds `R` rows of `k` elements.
            unsafe {
                let b = panel.as_ptr().add(i * width + first % width);
                let b = [0, 1].map(|v| b.add(v * lanes).cast::<T::Vector<S>>().read_unaligned());
                for r in 0..R {
                    let x = T::splat(simd, *a.as_ptr().add(r * k + i));
                    sums[r] = [T::fused(simd, x, b[0], sums[r][0]), T::fused(simd, x, b[1], sums[r][1])];
                }
            }
        }
        for (r, sums) in sums.into_iter().enumerate() {
            let out = &mut self.out[(row + r) * n + first..(row + r + 1) * n];
            let bias = self.bias.map(|bias| &bias[first..]);
            for (v, sum) in sums.into_iter().enumerate() {
                let at = v * lanes;
                if at + lanes <= out.len() {
                    // SAFETY: a whole vector lies inside `out`, as was just found, and a bias is as long.
                    unsafe {
                        let before = bias.map_or(out.as_ptr(), <[T]>::as_ptr).add(at).cast::<T::Vector<S>>();
                        let sum = T::sum(simd, before.read_unaligned(), sum);
                        out.as_mut_ptr().add(at).cast::<T::Vector<S>>().write_unaligned(sum);
                    }
                } else if at < out.len() {
                    // SAFETY: a vector is as many elements, one after the other.
                    let sum = unsafe { std::slice::from_raw_parts((&raw const sum).cast::<T>(), lanes) };
                    for (i, &s) in (at..out.len()).zip(sum) {
                        out[i] = bias.map_or(out[i], |bias| bias[i]) + s;
                    }
                }
            }
        }
        R
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<T: Lanes>(tolerance: f64) {
        let data =
            |len: usize, k: usize| (0..len).map(|i| T::of(((i * 7919 + k) % 31) as f64 - 15.0)).collect::<Vec<T>>();
        for (rows, n, k) in [(1, 1, 1), (3, 5, 2), (16, 64, 33), (13, 71, 20), (9, 32, 0), (0, 3, 3), (31, 17, 8)] {
            let (a, b, c) = (data(rows * k, 1), data(k * n, 2), data(rows * n, 3));
            let packed = Packed::new(k, n, Mat { data: &b, offset: 0, row_stride: 1, col_stride: k as isize });
            let mut out = c.clone();
            packed.add_product(&a, &mut out);
            if n > 0 && rows > 0 {
                // With the first row for all, and whatever was there before.
                let (bias, mut with_bias) = (&c[..n], c.iter().rev().copied().collect::<Vec<_>>());
                packed.product_and(bias, &a, &mut with_bias);
                let mut added: Vec<T> = (0..rows * n).map(|i| bias[i % n]).collect();
                packed.add_product(&a, &mut added);
                assert!(with_bias.iter().zip(&added).all(|(x, y)| x == y), "{rows}×{n}×{k}");
            }
            for (i, j) in (0..rows).flat_map(|i| (0..n).map(move |j| (i, j))) {
                let sum: f64 = (0..k).map(|l| a[i * k + l].to_f64() * b[j * k + l].to_f64()).sum();
                let got = out[i * n + j].to_f64();
                assert!((got - sum - c[i * n + j].to_f64()).abs() <= tolerance, "{rows}×{n}×{k}: {got} {sum}");
            }
        }
    }

    #[test]
    fn as_the_definition() {
        check::<f32>(1e-3);
        check::<f64>(1e-9);
    }
}
