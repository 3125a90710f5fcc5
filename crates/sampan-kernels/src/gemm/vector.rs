//! Products of a row with a matrix, or of a matrix with a column, which is the same in the mirror.

use super::lane::Lane;
use super::{Product, dots};
use crate::parallel;
use crate::shared::Shared;
use pulp::{Arch, Simd, WithSimd};
use std::ops::Range;

/// Vectors of columns whose sums are kept in registers while the depth passes.
const VECTORS: usize = 8;
/// Elements of the widest vector.
const WIDEST: usize = 16;
/// Columns that a task takes: a multiple of what is summed at once.
const TASK_COLUMNS: usize = 4 * VECTORS * WIDEST;
/// Elements of a matrix that stays in the second-level cache. A larger one is better read in whole rows.
const LARGEST: usize = 256 << 10;
/// Bytes of a matrix much of which is still in the first-level cache after a product that read it.
const BACKWARDS: usize = 64 << 10;
/// Multiplications to an elementary operation, as the thread pool counts: each of them reads an element of the matrix.
const PER_OPERATION: usize = 4;

impl Product {
    /// The same product with all three matrices transposed.
    pub(super) fn mirrored(self) -> Product {
        let swap = |(row, col): (isize, isize)| (col, row);
        Product { m: self.n, n: self.m, a: swap(self.b), b: swap(self.a), c: swap(self.c), ..self }
    }
}

/// Computes a product with one row or one column, if there is a fast way; says whether.
///
/// # Safety
/// As [`Gemm::product`](super::Gemm::product).
pub(super) unsafe fn multiply<T: Lane>(p: Product, a: *const T, b: *const T, c: *mut T, threads: bool) -> bool {
    let (row, x, matrix) = if p.m == 1 { (p, a, b) } else { (p.mirrored(), b, a) };
    let column = row.mirrored();
    // SAFETY: promised by the caller; a mirrored product has the same elements.
    unsafe {
        // Short rows too, where the other way has no columns in one piece.
        if column.a.1 == 1 && (column.k >= WIDEST || row.b.1 != 1) {
            dots::multiply(column, matrix, x, c, threads);
        } else if row.b.1 == 1 && row.k * row.n <= LARGEST {
            let (x, matrix, c) = (Shared::new_const(x), Shared::new_const(matrix), Shared::from_ptr(c));
            let cost = if threads { row.k.div_ceil(PER_OPERATION) } else { 0 };
            parallel::for_each_range(row.n, TASK_COLUMNS, cost, |columns| {
                Arch::new().dispatch(Row { p: row, columns, x: x.get(), matrix: matrix.get(), c: c.get() });
            });
        } else {
            return false;
        }
    }
    true
}

/// Columns `columns` of a row times a matrix whose rows lie in one piece: the rows, each times an element, are added up.
struct Row<T> {
    p: Product,
    columns: Range<usize>,
    x: *const T,
    matrix: *const T,
    c: *mut T,
}

impl<T: Lane> WithSimd for Row<T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let mut first = self.columns.start;
        while first < self.columns.end {
            let count = (self.columns.end - first).min(VECTORS * T::lanes::<S>());
            // Vectors, and sums for each of them: enough that none waits for another.
            macro_rules! sizes {
                ($($v:literal: $u:literal;)*) => {
                    match count.div_ceil(T::lanes::<S>()) {
                        $($v => self.sums::<S, $v, $u>(simd, first, count),)*
                        _ => unreachable!("there are at most {VECTORS} vectors"),
                    }
                };
            }
            sizes! { 1: 8; 2: 4; 3: 4; 4: 2; 5: 2; 6: 2; 7: 1; 8: 1; }
            first += count;
        }
    }
}

impl<T: Lane> Row<T> {
    /// `count` columns from `first` on in `V` vectors, every `U`th row into the same sum. A small matrix is read from its last row
    /// to the first: where this is the gradient of a weight, the product before it has left the last rows of the batch in the
    /// first-level cache. A large one comes from farther away, and the machine fetches ahead better forwards.
    #[inline(always)]
    fn sums<S: Simd, const V: usize, const U: usize>(&self, simd: S, first: usize, count: usize) {
        let (p, lanes) = (&self.p, T::lanes::<S>());
        // The last vector ends where the columns do, and has some of those before it again.
        let mut at = [0; V];
        for v in 0..V {
            at[v] = (v * lanes).min(count.saturating_sub(lanes));
        }
        let mut sums = [[T::ZERO.splat(simd); V]; U];
        let (mut x, mut row, mut step) = (self.x, self.matrix.wrapping_add(first), (p.a.1, p.b.0));
        if size_of::<T>() * p.k * p.n <= BACKWARDS {
            let last = p.k as isize - 1;
            (x, row, step) = (x.wrapping_offset(last * step.0), row.wrapping_offset(last * step.1), (-step.0, -step.1));
        }
        for _ in 0..p.k / U {
            for u in 0..U {
                // SAFETY: row `l` of the matrix has `count` elements from column `first` on, and the vectors end within.
                unsafe { add::<T, S, V>(simd, x, row, count, &at, &mut sums[u]) };
                (x, row) = (x.wrapping_offset(step.0), row.wrapping_offset(step.1));
            }
        }
        for _ in 0..p.k % U {
            // SAFETY: as above.
            unsafe { add::<T, S, V>(simd, x, row, count, &at, &mut sums[0]) };
            (x, row) = (x.wrapping_offset(step.0), row.wrapping_offset(step.1));
        }
        let mut sum = sums[0];
        for v in 0..V {
            for u in 1..U {
                sum[v] = T::plus(simd, sum[v], sums[u][v]);
            }
        }
        if p.c.1 == 1 && !p.accumulate && count >= lanes {
            for v in 0..V {
                // SAFETY: the columns of this task in `c`, within which all vectors end.
                unsafe { self.c.add(first + at[v]).cast::<T::Vector<S>>().write_unaligned(sum[v]) };
            }
            return;
        }
        let mut line = [T::ZERO; VECTORS * WIDEST];
        for v in 0..V {
            // SAFETY: `V` vectors fit into the line.
            unsafe { line[at[v]..].as_mut_ptr().cast::<T::Vector<S>>().write_unaligned(sum[v]) };
        }
        // SAFETY: the columns of this task in `c`.
        unsafe {
            let out = self.c.offset(first as isize * p.c.1);
            if p.c.1 == 1 {
                let out = std::slice::from_raw_parts_mut(out, count);
                if p.accumulate {
                    out.iter_mut().zip(line).for_each(|(o, v)| *o += v);
                } else {
                    out.copy_from_slice(&line[..count]);
                }
            } else {
                for (j, v) in line[..count].iter().enumerate() {
                    let out = out.offset(j as isize * p.c.1);
                    *out = if p.accumulate { *out + *v } else { *v };
                }
            }
        }
    }
}

/// Adds `count` elements of a row, each times `x`: in vectors from `at` on, or in a single one that is not full.
///
/// # Safety
/// All of them are valid to read.
#[inline(always)]
unsafe fn add<T: Lane, S: Simd, const V: usize>(
    simd: S,
    x: *const T,
    row: *const T,
    count: usize,
    at: &[usize; V],
    sums: &mut [T::Vector<S>; V],
) {
    // SAFETY: promised by the caller.
    unsafe {
        let x = (*x).splat(simd);
        for v in 0..V {
            let values = if V == 1 && count < T::lanes::<S>() {
                T::load(simd, std::slice::from_raw_parts(row, count))
            } else {
                row.add(at[v]).cast::<T::Vector<S>>().read_unaligned()
            };
            sums[v] = T::times_plus(simd, x, values, sums[v]);
        }
    }
}
