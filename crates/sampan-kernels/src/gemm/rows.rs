//! Products row by row, as sums of rows of the right factor: of integers, which wrap, and of what reads each element of its
//! factors but once or twice, so that memory decides.

use super::Product;
use crate::Element;
use crate::parallel;
use crate::shared::Shared;
use pulp::{Arch, Simd, WithSimd};
use std::ops::Range;

/// Multiplies and adds.
pub(super) trait Term: Element {
    /// `self + x * y`; `fused` where the instruction set rounds once.
    fn plus(self, x: Self, y: Self, fused: bool) -> Self;
}

macro_rules! terms {
    ($($int:ty)*; $($float:ty)*) => {
        $(impl Term for $int {
            #[inline(always)]
            fn plus(self, x: $int, y: $int, _: bool) -> $int {
                self.wrapping_add(x.wrapping_mul(y))
            }
        })*
        $(impl Term for $float {
            #[inline(always)]
            fn plus(self, x: $float, y: $float, fused: bool) -> $float {
                if fused { x.mul_add(y, self) } else { self + x * y }
            }
        })*
    };
}
terms!(u8 i8 i16 i32 i64; f32 f64);

/// Some rows and columns of a product.
struct Rows<'a, T> {
    p: &'a Product,
    rows: Range<usize>,
    a: *const T,
    /// The first of these columns; rows of them lie in one piece.
    b: *const T,
    b_step: isize,
    c: *mut T,
    /// A row, where the result has none in one piece.
    line: &'a mut [T],
    columns: usize,
}

impl<T: Term> WithSimd for Rows<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Rows { p, rows, a, b, b_step, c, line, columns } = self;
        for i in rows {
            let at = i as isize * p.c.0;
            // SAFETY: an element of `a`, and a row of `b` of so many elements.
            let term = |l: usize| unsafe {
                let x = *a.offset(i as isize * p.a.0 + l as isize * p.a.1);
                (x, std::slice::from_raw_parts(b.offset(l as isize * b_step), columns))
            };
            if p.c.1 == 1 {
                // SAFETY: these columns of a row of `c`, which are this task's.
                let sum = unsafe { std::slice::from_raw_parts_mut(c.offset(at), columns) };
                add_up(sum, p.k, !p.accumulate, !S::IS_SCALAR, term);
                continue;
            }
            add_up(line, p.k, true, !S::IS_SCALAR, term);
            for (j, v) in line.iter().enumerate() {
                // SAFETY: an element of `c`, which is this task's.
                let out = unsafe { &mut *c.offset(at + j as isize * p.c.1) };
                *out = if p.accumulate { out.plus(T::from_i64(1), *v, false) } else { *v };
            }
        }
    }
}

/// Adds `k` rows, each times an element, to `sum`, or to nothing if it is `new`.
#[inline(always)]
fn add_up<'a, T: Term>(sum: &mut [T], k: usize, new: bool, fused: bool, term: impl Fn(usize) -> (T, &'a [T])) {
    let mut l = 0;
    if new {
        let (x, row) = term(0);
        sum.iter_mut().zip(row).for_each(|(s, y)| *s = T::default().plus(x, *y, false));
        l = 1;
    }
    // Four at a time, so that the sum is read and written less.
    while l + 4 <= k {
        let ((x0, r0), (x1, r1), (x2, r2), (x3, r3)) = (term(l), term(l + 1), term(l + 2), term(l + 3));
        for ((((s, y0), y1), y2), y3) in sum.iter_mut().zip(r0).zip(r1).zip(r2).zip(r3) {
            *s = s.plus(x0, *y0, fused).plus(x1, *y1, fused).plus(x2, *y2, fused).plus(x3, *y3, fused);
        }
        l += 4;
    }
    for l in l..k {
        let (x, row) = term(l);
        sum.iter_mut().zip(row).for_each(|(s, y)| *s = s.plus(x, *y, fused));
    }
}

/// Rows that a task takes, or columns where there are more of these: more of them, because the rows of `b` are read in pieces.
const ROWS: usize = 64;
const COLUMNS: usize = 512;

/// # Safety
/// As [`Gemm::product`](super::Gemm::product).
pub(super) unsafe fn multiply<T: Term>(p: Product, a: *const T, b: *const T, c: *mut T, threads: bool) {
    // Rows are to be long, and those of the result in one piece.
    let mirror = p.n == 1 || p.c.1 != 1 && p.c.0 == 1;
    let (p, a, b) = if mirror { (p.mirrored(), b, a) } else { (p, a, b) };
    let packed: Vec<T>;
    let (b, b_step) = if p.b.1 == 1 {
        (b, p.b.0)
    } else {
        // SAFETY: promised by the caller.
        let at = |l: usize, j: usize| unsafe { *b.offset(l as isize * p.b.0 + j as isize * p.b.1) };
        packed = (0..p.k).flat_map(|l| (0..p.n).map(move |j| (l, j))).map(|(l, j)| at(l, j)).collect();
        (packed.as_ptr(), p.n as isize)
    };
    let (a, b, c) = (Shared::new_const(a), Shared::new_const(b), Shared::from_ptr(c));
    let by_rows = p.m >= p.n;
    let (side, chunk) = if by_rows { (p.m, ROWS) } else { (p.n, COLUMNS) };
    let cost = if threads { p.m.min(p.n) * p.k } else { 0 };
    parallel::for_each_range(side, chunk, cost, |part| {
        let (rows, columns) = if by_rows { (part, 0..p.n) } else { (0..p.m, part) };
        let mut line = vec![T::default(); if p.c.1 == 1 { 0 } else { columns.len() }];
        let first = columns.start as isize;
        // SAFETY: the first of these columns in `b` and `c`.
        let (b, c) = unsafe { (b.get().offset(first), c.get().offset(first * p.c.1)) };
        Arch::new().dispatch(Rows { p: &p, rows, a: a.get(), b, b_step, c, line: &mut line, columns: columns.len() });
    });
}
