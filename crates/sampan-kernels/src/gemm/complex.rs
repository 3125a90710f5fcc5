//! Products of complex matrices, as products of real ones twice as wide and deep: `[re im]` of a row times
//! `[re im; -im re]` of a column are the two parts of an element.

use super::lane::Lane;
use super::pack::Lines;
use super::{Product, engine, is_small, microkernel};
use crate::Complex;
use crate::shared::Shared;
use std::ops::Range;

/// The lines of one factor; two numbers stand for each element of a line.
struct Parts<T> {
    base: Shared<Complex<T>>,
    line: isize,
    depth: isize,
}

impl<T: Lane> Parts<T> {
    /// # Safety
    /// It is an element of the factor.
    unsafe fn at(&self, line: usize, depth: usize) -> Complex<T> {
        // SAFETY: promised by the caller.
        unsafe { *self.base.get().offset(line as isize * self.line + depth as isize * self.depth) }
    }
}

/// The left factor: a line has the two parts of each element.
struct Left<T>(Parts<T>);

impl<T: Lane> Lines<T> for Left<T> {
    fn pack(&self, first: usize, count: usize, depth: Range<usize>, width: usize, out: &mut [T]) {
        for (pair, out) in out.chunks_exact_mut(2 * width).take(depth.len() / 2).enumerate() {
            let (re, im) = out.split_at_mut(width);
            re[count..].fill(T::ZERO);
            im[count..].fill(T::ZERO);
            for l in 0..count {
                // SAFETY: lines and depths of the factor, of which each has two here.
                let value = unsafe { self.0.at(first + l, depth.start / 2 + pair) };
                (re[l], im[l]) = (value.re, value.im);
            }
        }
    }
}

/// The right factor: two lines for each of its columns, one gives the real part, one the other.
struct Right<T>(Parts<T>);

impl<T: Lane> Lines<T> for Right<T> {
    fn pack(&self, first: usize, count: usize, depth: Range<usize>, width: usize, out: &mut [T]) {
        for (pair, out) in out.chunks_exact_mut(2 * width).take(depth.len() / 2).enumerate() {
            let (even, odd) = out.split_at_mut(width);
            even[count..].fill(T::ZERO);
            odd[count..].fill(T::ZERO);
            for l in 0..count {
                // SAFETY: lines and depths of the factor, of which each has two here.
                let value = unsafe { self.0.at((first + l) / 2, depth.start / 2 + pair) };
                (even[l], odd[l]) =
                    if (first + l).is_multiple_of(2) { (value.re, -value.im) } else { (value.im, value.re) };
            }
        }
    }
}

/// # Safety
/// As [`Gemm::product`](super::Gemm::product).
pub(super) unsafe fn product<T: Lane>(
    p: Product,
    a: *const Complex<T>,
    b: *const Complex<T>,
    c: *mut Complex<T>,
    threads: bool,
) {
    if is_small(&p) {
        // SAFETY: promised by the caller.
        return unsafe { small(p, a, b, c) };
    }
    let left = Left(Parts { base: Shared::new_const(a), line: p.a.0, depth: p.a.1 });
    let right = Right(Parts { base: Shared::new_const(b), line: p.b.1, depth: p.b.0 });
    let (row, col) = (p.c.0 as usize, p.c.1 as usize);
    let out = microkernel::Out {
        ptr: c.cast::<T>(),
        row_stride: 2 * row,
        col_stride: 1,
        // The two parts lie side by side, and where columns do, so do all of a row.
        plane: if col == 1 { 2 * p.n } else { 2 },
        image_stride: 2 * col,
        accumulate: p.accumulate,
        bias: None,
    };
    // SAFETY: promised by the caller; a complex number is its two parts.
    unsafe { engine::multiply((p.m, 2 * p.n, 2 * p.k), &left, &right, 2, out, threads) }
}

/// A small product, element by element.
///
/// # Safety
/// As [`Gemm::product`](super::Gemm::product).
unsafe fn small<T: Lane>(p: Product, a: *const Complex<T>, b: *const Complex<T>, c: *mut Complex<T>) {
    for i in 0..p.m as isize {
        for j in 0..p.n as isize {
            let (mut re, mut im) = (T::ZERO, T::ZERO);
            for l in 0..p.k as isize {
                // SAFETY: promised by the caller.
                let (x, y) = unsafe { (*a.offset(i * p.a.0 + l * p.a.1), *b.offset(l * p.b.0 + j * p.b.1)) };
                re += x.re * y.re - x.im * y.im;
                im += x.re * y.im + x.im * y.re;
            }
            // SAFETY: promised by the caller.
            let out = unsafe { &mut *c.offset(i * p.c.0 + j * p.c.1) };
            *out = if p.accumulate { Complex::new(out.re + re, out.im + im) } else { Complex::new(re, im) };
        }
    }
}
