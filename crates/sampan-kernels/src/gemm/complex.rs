//! Products of complex matrices, as products of real ones: the right factor is written out as real columns, the left one is
//! read as the pairs of numbers that it is.

use super::lane::Lane;
use super::{Product, float, rows};
use crate::shared::Shared;
use crate::{Buffer, Complex, parallel};

/// Multiplications up to which a product is not worth the writing out.
const FEW: usize = 256;
/// So few rows that writing out the right factor would be much of the work.
const FEW_ROWS: usize = 8;

/// # Safety
/// As [`Gemm::product`](super::Gemm::product).
pub(super) unsafe fn product<T: Lane + rows::Term>(
    p: Product,
    a: *const Complex<T>,
    b: *const Complex<T>,
    c: *mut Complex<T>,
    threads: bool,
) {
    if p.m * p.n * p.k <= FEW {
        // SAFETY: promised by the caller.
        return unsafe { small(p, a, b, c) };
    }
    // A row times a matrix is better read the other way: the smaller factor is the one to write out.
    let (p, a, b) = if p.m < FEW_ROWS && p.n > p.m { (p.mirrored(), b, a) } else { (p, a, b) };
    let Product { m, n, k, .. } = p;
    // SAFETY: promised by the caller.
    let left = |i: usize, l: usize| unsafe { *a.offset(i as isize * p.a.0 + l as isize * p.a.1) };
    // SAFETY: promised by the caller.
    let right = |l: usize, j: usize| unsafe { *b.offset(l as isize * p.b.0 + j as isize * p.b.1) };

    // Where the columns of the left factor lie in one piece, and not its rows, its two parts are rows of a real matrix.
    let by_columns = p.a.0 == 1 && p.a.1 != 1;
    let copied: Vec<Complex<T>>;
    let (a, row) = if by_columns || p.a.1 == 1 {
        (a, p.a.0)
    } else {
        copied = (0..m * k).map(|i| left(i / k, i % k)).collect();
        (copied.as_ptr(), k as isize)
    };
    let (width, size) = (2 * n, size_of::<T>());
    let (rows, depth, a_steps) = if by_columns { (2 * m, k, (1, 2 * p.a.1)) } else { (m, 2 * k, (2 * row, 1)) };
    let mut matrix = Buffer::uninit(size * depth * width);
    let matrix = matrix.as_mut_slice::<T>();
    for (l, rows) in matrix.chunks_exact_mut(depth / k * width).enumerate() {
        let (first, second) = rows.split_at_mut(width);
        if p.b.1 == 1 {
            // SAFETY: promised by the caller: a row of the right factor, in one piece.
            let row = unsafe { std::slice::from_raw_parts(b.offset(l as isize * p.b.0).cast::<T>(), width) };
            first.copy_from_slice(row);
        } else {
            for (j, pair) in first.as_chunks_mut::<2>().0.iter_mut().enumerate() {
                let value = right(l, j);
                *pair = [value.re, value.im];
            }
        }
        // What the imaginary part of the left element is multiplied by.
        for (pair, first) in second.as_chunks_mut::<2>().0.iter_mut().zip(first.as_chunks::<2>().0) {
            *pair = [-first[1], first[0]];
        }
    }
    let (a, matrix) = (a.cast::<T>(), matrix.as_ptr());
    let steps = (width as isize, 1);
    let real = Product { m: rows, n: width, k: depth, a: a_steps, b: steps, c: steps, accumulate: false };
    if !by_columns && p.c.1 == 1 {
        let real = Product { c: (2 * p.c.0, 1), accumulate: p.accumulate, ..real };
        // SAFETY: promised by the caller, a complex number being its two parts; the right factor was just made.
        return unsafe { float(real, a, matrix, c.cast::<T>(), threads) };
    }
    let mut sums = Buffer::uninit(size * rows * width);
    // SAFETY: as above, and so was the result.
    unsafe { float(real, a, matrix, sums.as_mut_slice::<T>().as_mut_ptr(), threads) };
    let (sums, c) = (sums.as_slice::<T>(), Shared::from_ptr(c));
    parallel::for_each_range(m, 1, if threads { width } else { 0 }, |rows| {
        for i in rows {
            let line = |row: usize| sums[row * width..][..width].as_chunks::<2>().0;
            let (re, im) = if by_columns { (line(2 * i), Some(line(2 * i + 1))) } else { (line(i), None) };
            for (j, re) in re.iter().enumerate() {
                // The real part of the left element times both of the right one, and the imaginary part so.
                let value = im.map_or(*re, |im| [re[0] - im[j][1], re[1] + im[j][0]]);
                // SAFETY: promised by the caller; rows are disjoint.
                unsafe {
                    put(
                        c.get().offset(i as isize * p.c.0 + j as isize * p.c.1),
                        Complex::new(value[0], value[1]),
                        p.accumulate,
                    )
                };
            }
        }
    });
}

/// # Safety
/// `out` is valid to write.
unsafe fn put<T: Lane>(out: *mut Complex<T>, value: Complex<T>, accumulate: bool) {
    // SAFETY: promised by the caller.
    let out = unsafe { &mut *out };
    *out = if accumulate { Complex::new(out.re + value.re, out.im + value.im) } else { value };
}

/// Element by element.
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
            unsafe { put(c.offset(i * p.c.0 + j * p.c.1), Complex::new(re, im), p.accumulate) };
        }
    }
}
