//! Products with few columns, such as the layer before the classes: the right factor becomes one vector (or two) for
//! each step of the depth, and the left one is read where it lies. Packing it would take longer than the sums.

use super::Product;
use super::lane::Lane;
use crate::shared::Shared;
use crate::{Buffer, parallel};
use pulp::{Arch, Simd, WithSimd};
use std::ops::Range;

/// Columns of the packed right factor: a vector of the widest kind.
const WIDTH: usize = 16;
/// Rows summed at once; enough sums that none waits for another.
const ROWS: usize = 8;
/// Blocks of rows that a task takes.
const BLOCKS: usize = 2;

/// Is this the fastest path for that product? The rows of `a` must lie in one piece and be read often enough to pay for
/// the packing of `b`; the rows of `c` must lie in one piece.
pub(super) fn suits(p: &Product) -> bool {
    (2..=WIDTH).contains(&p.n) && p.m >= ROWS && p.k >= 64 && p.a.1 == 1 && p.c.1 == 1
}

/// Rows `rows` of a product.
struct Narrow<'a, T> {
    p: Product,
    rows: Range<usize>,
    a: *const T,
    /// `[k, WIDTH]`.
    b: &'a [T],
    c: *mut T,
}

impl<T: Lane> WithSimd for Narrow<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        for first in self.rows.clone().step_by(ROWS) {
            let n = ROWS.min(self.rows.end - first);
            match T::lanes::<S>() {
                16 => self.block::<S, 1>(simd, first, n),
                8 => self.block::<S, 2>(simd, first, n),
                4 => self.block::<S, 4>(simd, first, n),
                2 => self.block::<S, 8>(simd, first, n),
                _ => self.block::<S, WIDTH>(simd, first, n),
            }
        }
    }
}

impl<T: Lane> Narrow<'_, T> {
    /// `n` rows from `first` on, in `V` vectors that have `WIDTH` lanes together. Rows that are missing repeat the last one.
    #[inline(always)]
    fn block<S: Simd, const V: usize>(&self, simd: S, first: usize, n: usize) {
        let p = &self.p;
        let mut rows = [self.a; ROWS];
        for (i, row) in rows.iter_mut().enumerate() {
            // SAFETY: the beginning of a row of `a`, whose elements are valid.
            *row = unsafe { self.a.offset((first + i.min(n - 1)) as isize * p.a.0) };
        }
        let mut sums = [[T::ZERO.splat(simd); V]; ROWS];
        for (l, b) in self.b.chunks_exact(WIDTH).enumerate() {
            let mut column = [T::ZERO.splat(simd); V];
            for v in 0..V {
                // SAFETY: `V` vectors are `WIDTH` elements, as many as `b` has.
                column[v] = unsafe { b.as_ptr().add(v * T::lanes::<S>()).cast::<T::Vector<S>>().read_unaligned() };
            }
            for i in 0..ROWS {
                // SAFETY: element `l` of a row of `a`, which has `k` of them side by side, as many as `b` has rows.
                let x = unsafe { *rows[i].add(l) }.splat(simd);
                for v in 0..V {
                    sums[i][v] = T::times_plus(simd, x, column[v], sums[i][v]);
                }
            }
        }
        for i in 0..n {
            let mut line = [T::ZERO; WIDTH];
            for v in 0..V {
                // SAFETY: `V` vectors are `WIDTH` elements.
                unsafe {
                    line.as_mut_ptr().add(v * T::lanes::<S>()).cast::<T::Vector<S>>().write_unaligned(sums[i][v])
                };
            }
            // SAFETY: a row of `c`, whose `n` elements lie side by side and belong to this task.
            let out = unsafe { std::slice::from_raw_parts_mut(self.c.offset((first + i) as isize * p.c.0), p.n) };
            if p.accumulate {
                out.iter_mut().zip(line).for_each(|(o, v)| *o += v);
            } else {
                out.copy_from_slice(&line[..p.n]);
            }
        }
    }
}

/// # Safety
/// As [`Gemm::product`](super::Gemm::product), for a product that [`suits`].
pub(super) unsafe fn multiply<T: Lane>(p: Product, a: *const T, b: *const T, c: *mut T, threads: bool) {
    let mut packed = Buffer::zeroed(size_of::<T>() * p.k * WIDTH);
    for (l, out) in packed.as_mut_slice::<T>().chunks_exact_mut(WIDTH).enumerate() {
        for (j, out) in out[..p.n].iter_mut().enumerate() {
            // SAFETY: promised by the caller.
            *out = unsafe { *b.offset(l as isize * p.b.0 + j as isize * p.b.1) };
        }
    }
    let b = packed.as_slice::<T>();
    let (a, c) = (Shared::new_const(a), Shared::from_ptr(c));
    // A vector at a time.
    let cost = if threads { p.k } else { 0 };
    parallel::for_each_range(p.m, ROWS * BLOCKS, cost, |rows| {
        Arch::new().dispatch(Narrow { p, rows, a: a.get(), b, c: c.get() });
    });
}
