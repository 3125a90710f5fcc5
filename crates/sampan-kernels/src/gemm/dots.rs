//! Products with few columns over a long depth: every element is the sum of products of two lines that lie in one
//! piece. The vectors run along the lines, so that no lane is idle whatever the number of columns, and the left factor is
//! read where it lies; lanes are added up once, in the end.

use super::lane::Lane;
use super::{Product, pack};
use crate::conv::few_channels::even;
use crate::shared::Shared;
use crate::{Buffer, parallel};
use pulp::{Arch, Simd, WithSimd};
use std::ops::Range;

/// The most columns.
const MOST_COLUMNS: usize = 12;
/// Columns that are summed at once: with four rows, their sums and operands fill 32 registers. They also stay in the
/// first-level cache while the rows pass, up to a depth of a thousand.
const COLUMNS: usize = 6;
/// Rows that are summed at once with 32 registers, and with 16 where there are many columns. More rows would only compete
/// for the same places in the cache where the distance between them is a power of two.
const ROWS: usize = 4;
const FEWER_ROWS: usize = 2;
/// Elements of the widest vector.
const WIDEST: usize = 16;
/// Multiplications of a task.
const TASK: usize = 1 << 16;
/// What adding up the lanes of a sum costs, in vectors.
const ADDING_UP: usize = 8;
/// Multiplications to an elementary operation, as the thread pool counts. Half of what a product of large matrices has: a
/// thread that is woken for this one is still awake for the next.
const PER_OPERATION: usize = 4;
/// The shortest lines: with shorter ones there is more to add up than to multiply.
const SHORTEST: usize = 64;

/// Is this faster than vectors along the columns, of which as many as a vector has lanes cost the same as one?
pub(super) fn suits(p: &Product, lanes: usize) -> bool {
    let along_columns = p.n.div_ceil(lanes) * p.k;
    let here = p.n * (p.k.div_ceil(lanes) + ADDING_UP);
    p.a.1 == 1 && p.n <= MOST_COLUMNS && p.k >= SHORTEST && 9 * along_columns > 10 * here
}

/// Rows `rows` of a product.
struct Dots<T> {
    p: Product,
    rows: Range<usize>,
    a: *const T,
    /// The columns, `step` apart.
    b: *const T,
    step: isize,
    c: *mut T,
}

impl<T: Lane> WithSimd for Dots<T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        for columns in even(self.p.n, COLUMNS) {
            let j = columns.start;
            macro_rules! sizes {
                ($($n:literal: $wide:expr, $narrow:expr, $u:literal;)*) => {
                    match columns.len() {
                        $($n if S::F32_LANES >= 16 => self.all::<S, $n, { $wide }, $u>(simd, j),
                        $n => self.all::<S, $n, { $narrow }, $u>(simd, j),)*
                        _ => unreachable!("no more than {COLUMNS} columns at once"),
                    }
                };
            }
            // With few columns there are two sums to an element, so that none waits for another.
            sizes! {
                1: ROWS, ROWS, 2; 2: ROWS, FEWER_ROWS, 2; 3: ROWS, FEWER_ROWS, 1;
                4: ROWS, FEWER_ROWS, 1; 5: ROWS, FEWER_ROWS, 1; 6: ROWS, FEWER_ROWS, 1;
            }
        }
    }
}

/// A vector from element `l` of a line on.
///
/// # Safety
/// It is valid to read.
#[inline(always)]
unsafe fn load<T: Lane, S: Simd>(line: *const T, l: usize) -> T::Vector<S> {
    // SAFETY: promised by the caller.
    unsafe { line.add(l).cast::<T::Vector<S>>().read_unaligned() }
}

impl<T: Lane> Dots<T> {
    /// `N` columns from `column` on.
    #[inline(always)]
    fn all<S: Simd, const N: usize, const R: usize, const U: usize>(&self, simd: S, column: usize) {
        for first in self.rows.clone().step_by(R) {
            self.block::<S, N, R, U>(simd, first, column);
        }
    }

    /// `R` rows from `first` on, with every `U`th vector into the same sum. Rows that are missing repeat the last one.
    #[inline(always)]
    fn block<S: Simd, const N: usize, const R: usize, const U: usize>(&self, simd: S, first: usize, column: usize) {
        let (p, lanes) = (&self.p, T::lanes::<S>());
        let last = self.rows.end - 1;
        let (mut a, mut b) = ([self.a; R], [self.b; N]);
        // SAFETY: the beginnings of rows of `a` and of columns of `b`.
        unsafe {
            for i in 0..R {
                a[i] = self.a.offset((first + i).min(last) as isize * p.a.0);
            }
            for j in 0..N {
                b[j] = self.b.offset((column + j) as isize * self.step);
            }
        }
        let mut sums = [[[T::ZERO.splat(simd); N]; R]; U];
        let whole = p.k / lanes * lanes;
        let mut l = 0;
        while l + U * lanes <= whole {
            for u in 0..U {
                // SAFETY: the vectors end within the `k` elements of every line.
                unsafe { add::<T, S, N, R>(simd, &a, &b, l + u * lanes, &mut sums[u]) };
            }
            l += U * lanes;
        }
        if l < whole {
            // SAFETY: as above.
            unsafe { add::<T, S, N, R>(simd, &a, &b, l, &mut sums[0]) };
        }
        if whole < p.k {
            let mut x = [T::ZERO.splat(simd); R];
            for i in 0..R {
                // SAFETY: what is left of a line.
                x[i] = T::load(simd, unsafe { std::slice::from_raw_parts(a[i].add(whole), p.k - whole) });
            }
            for j in 0..N {
                // SAFETY: what is left of a line.
                let y = T::load(simd, unsafe { std::slice::from_raw_parts(b[j].add(whole), p.k - whole) });
                for i in 0..R {
                    sums[0][i][j] = T::times_plus(simd, x[i], y, sums[0][i][j]);
                }
            }
        }
        for u in 1..U {
            for i in 0..R {
                for j in 0..N {
                    sums[0][i][j] = T::plus(simd, sums[0][i][j], sums[u][i][j]);
                }
            }
        }
        const { assert!(S::F32_LANES <= WIDEST) };
        let mut memory = [[[T::ZERO; WIDEST]; N]; R];
        // All at once and first to memory: sums that are looked at one by one would not stay in registers above.
        // SAFETY: there is room for so many vectors, as was checked.
        unsafe { memory.as_mut_ptr().cast::<[[T::Vector<S>; N]; R]>().write_unaligned(sums[0]) };
        for i in 0..R.min(self.rows.end - first) {
            for j in 0..N {
                // SAFETY: one of the vectors just written; an element of `c` in a row of this task.
                unsafe {
                    let sum = T::total(simd, load::<T, S>(memory.as_ptr().cast(), (i * N + j) * lanes));
                    let out = self.c.offset((first + i) as isize * p.c.0 + (column + j) as isize * p.c.1);
                    *out = if p.accumulate { *out + sum } else { sum };
                }
            }
        }
    }
}

/// Adds the products of the vectors at `l`.
///
/// # Safety
/// They are valid to read.
#[inline(always)]
unsafe fn add<T: Lane, S: Simd, const N: usize, const R: usize>(
    simd: S,
    a: &[*const T; R],
    b: &[*const T; N],
    l: usize,
    sums: &mut [[T::Vector<S>; N]; R],
) {
    let mut x = [T::ZERO.splat(simd); R];
    for i in 0..R {
        // SAFETY: promised by the caller.
        x[i] = unsafe { load::<T, S>(a[i], l) };
    }
    for j in 0..N {
        // SAFETY: promised by the caller.
        let y = unsafe { load::<T, S>(b[j], l) };
        for i in 0..R {
            sums[i][j] = T::times_plus(simd, x[i], y, sums[i][j]);
        }
    }
}

/// # Safety
/// As [`Gemm::product`](super::Gemm::product), for a product whose rows of `a` lie in one piece and that has at most
/// [`MOST_COLUMNS`] columns.
pub(super) unsafe fn multiply<T: Lane>(p: Product, a: *const T, b: *const T, c: *mut T, threads: bool) {
    assert!(p.a.1 == 1 && (1..=MOST_COLUMNS).contains(&p.n));
    // Packed columns are not a power of two apart, for then they would compete for the same places in the cache.
    let pitch = p.k.next_multiple_of(WIDEST) + WIDEST;
    let mut columns = (p.b.0 != 1).then(|| Buffer::uninit(size_of::<T>() * p.n * pitch));
    let (b, step) = if let Some(columns) = &mut columns {
        let out = columns.as_mut_slice::<T>();
        // SAFETY: promised by the caller.
        unsafe {
            if p.b.1 == 1 {
                pack::transpose(b, p.b.0, p.k, p.n, pitch, out);
            } else {
                for (j, out) in out.chunks_exact_mut(pitch).enumerate() {
                    let b = b.offset(j as isize * p.b.1);
                    out[..p.k].iter_mut().enumerate().for_each(|(l, o)| *o = *b.offset(l as isize * p.b.0));
                }
            }
        }
        (out.as_ptr(), pitch as isize)
    } else {
        (b, p.b.1)
    };
    let (a, b, c) = (Shared::new_const(a), Shared::new_const(b), Shared::from_ptr(c));
    let cost = if threads { p.n * p.k / PER_OPERATION } else { 0 };
    let rows = (TASK / (ROWS * p.n * p.k)).clamp(2, 16) * ROWS;
    parallel::for_each_range(p.m, rows, cost, |rows| {
        Arch::new().dispatch(Dots { p, rows, a: a.get(), b: b.get(), step, c: c.get() });
    });
}
