//! Matrix products on strided matrices, single and in batches.

use crate::parallel::CHUNK;
use crate::shared::Shared;
use crate::simd::each;
use crate::vmath::Real;
use crate::widen::RealElement;
use crate::{Buffer, Complex64, Complex128, Element, View, bf16, f16, parallel};
use pulp::{Arch, Simd, WithSimd};
use sampan_macros::by_dtype;

mod complex;
mod dots;
pub(crate) mod engine;
mod lane;
pub(crate) mod microkernel;
mod narrow;
pub(crate) mod pack;
mod rows;
mod vector;
use lane::Lane;

/// Products whose right factor has at most this extent in both directions are computed on the stack, up to so many rows.
const SMALL: usize = 16;
const TALL: usize = 8 * SMALL;
/// Below this many multiplications a product stays on one thread.
const SERIAL_BELOW: usize = 1 << 17;

/// A strided matrix to read: element `(i, j)` is `data[offset + i * row_stride + j * col_stride]`.
#[derive(Clone, Copy)]
pub(crate) struct Mat<'a, T> {
    /// The storage.
    pub data: &'a [T],
    /// Where element `(0, 0)` lies.
    pub offset: usize,
    /// From one row to the next.
    pub row_stride: isize,
    /// From one column to the next.
    pub col_stride: isize,
}

impl<'a, T> Mat<'a, T> {
    /// Row-major with `cols` columns.
    pub fn rows(data: &'a [T], cols: usize) -> Self {
        Mat { data, offset: 0, row_stride: cols as isize, col_stride: 1 }
    }

    /// The first matrix of a stack.
    fn first(view: View<'a, T>) -> Self {
        let [.., row_stride, col_stride] = *view.strides else { panic!("product: both must be matrices") };
        Mat { data: view.data, offset: view.offset, row_stride, col_stride }
    }

    /// The same storage with rows and columns swapped.
    pub fn t(self) -> Self {
        Mat { row_stride: self.col_stride, col_stride: self.row_stride, ..self }
    }
}

/// A strided matrix to write; no two elements may share a place.
pub(crate) struct MatMut<'a, T> {
    /// The storage.
    pub data: &'a mut [T],
    /// Where element `(0, 0)` lies.
    pub offset: usize,
    /// From one row to the next; not negative.
    pub row_stride: isize,
    /// From one column to the next; not negative.
    pub col_stride: isize,
}

impl<'a, T> MatMut<'a, T> {
    /// Row-major with `cols` columns.
    pub fn rows(data: &'a mut [T], cols: usize) -> Self {
        MatMut { data, offset: 0, row_stride: cols as isize, col_stride: 1 }
    }
}

/// Extents and strides `(row, column)` of one product, for [`Gemm::product`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Product {
    m: usize,
    n: usize,
    k: usize,
    a: (isize, isize),
    b: (isize, isize),
    c: (isize, isize),
    accumulate: bool,
}

/// An element that matrices are made of: every dtype but bool. Integers wrap.
pub(crate) trait Gemm: Element {
    /// Computes `c = a · b` (`+ c`), on several threads if `threads`; none of the extents is zero.
    ///
    /// # Safety
    /// Every element of the three matrices must lie in memory that is valid to read (`a`, `b`) or write (`c`), and no
    /// two elements of `c` may share a place or be read through `a` or `b`.
    unsafe fn product(p: Product, a: *const Self, b: *const Self, c: *mut Self, threads: bool);
}

/// `c = a · b`, or `c += a · b` if `accumulate`, where `a` is m×k and `b` is k×n.
pub(crate) fn matmul<T: Gemm>(m: usize, n: usize, k: usize, a: Mat<T>, b: Mat<T>, c: MatMut<T>, accumulate: bool) {
    run(m, n, k, a, b, c, accumulate, m * n * k >= SERIAL_BELOW && parallel::num_threads() > 1);
}

/// [`matmul`] on the calling thread alone, for use inside parallel work.
pub(crate) fn matmul_serial<T: Gemm>(
    m: usize,
    n: usize,
    k: usize,
    a: Mat<T>,
    b: Mat<T>,
    c: MatMut<T>,
    accumulate: bool,
) {
    run(m, n, k, a, b, c, accumulate, false);
}

fn run<T: Gemm>(m: usize, n: usize, k: usize, a: Mat<T>, b: Mat<T>, c: MatMut<T>, accumulate: bool, threads: bool) {
    if m == 0 || n == 0 {
        return;
    }
    let (c_strides, c_offset) = ((c.row_stride, c.col_stride), c.offset);
    check_distinct(m, n, c_strides);
    check_bounds("c", c.data.len(), c_offset, m, n, c_strides);
    if k == 0 {
        if !accumulate {
            for i in 0..m {
                for j in 0..n {
                    c.data[c_offset + i * c_strides.0 as usize + j * c_strides.1 as usize] = T::default();
                }
            }
        }
        return;
    }
    check_bounds("a", a.data.len(), a.offset, m, k, (a.row_stride, a.col_stride));
    check_bounds("b", b.data.len(), b.offset, k, n, (b.row_stride, b.col_stride));
    let p =
        Product { m, n, k, a: (a.row_stride, a.col_stride), b: (b.row_stride, b.col_stride), c: c_strides, accumulate };
    // SAFETY: the extremes of all three matrices were just found inside their slices, the elements of `c` are
    // distinct, and `c` is borrowed mutably so it overlaps neither `a` nor `b`.
    unsafe {
        T::product(
            p,
            a.data.as_ptr().add(a.offset),
            b.data.as_ptr().add(b.offset),
            c.data.as_mut_ptr().add(c_offset),
            threads,
        )
    }
}

/// Where the matrices of a batch lie: `shape` is the shape of the batch, the strides say how far one step along each
/// of its axes moves in `a` and in `b` (zero repeats a matrix). The matrices of `c` follow each other in row-major order
/// of `shape`, `c_stride` apart.
#[derive(Clone, Copy)]
pub(crate) struct Batch<'a> {
    /// Shape of the batch.
    pub shape: &'a [usize],
    /// Steps in `a`.
    pub a_strides: &'a [isize],
    /// Steps in `b`.
    pub b_strides: &'a [isize],
    /// From one matrix of `c` to the next.
    pub c_stride: usize,
}

impl Batch<'_> {
    fn offsets(&self, mut index: usize) -> (isize, isize) {
        let (mut a, mut b) = (0, 0);
        for axis in (0..self.shape.len()).rev() {
            let i = (index % self.shape[axis]) as isize;
            index /= self.shape[axis];
            a += i * self.a_strides[axis];
            b += i * self.b_strides[axis];
        }
        (a, b)
    }
}

/// [`matmul`] for every matrix of a batch.
pub(crate) fn batched_matmul<T: Gemm>(
    batch: Batch,
    m: usize,
    n: usize,
    k: usize,
    a: Mat<T>,
    b: Mat<T>,
    c: MatMut<T>,
    accumulate: bool,
) {
    let count: usize = batch.shape.iter().product();
    if count == 0 || m == 0 || n == 0 {
        return;
    }
    let (rs, cs) = (c.row_stride as usize, c.col_stride as usize);
    assert!(batch.a_strides.len() == batch.shape.len() && batch.b_strides.len() == batch.shape.len());
    if count == 1 {
        return matmul(m, n, k, a, b, c, accumulate);
    }
    // One `b` for all and the rows of all `a` evenly spaced: a single tall product.
    if let [len] = *batch.shape
        && batch.b_strides[0] == 0
        && batch.a_strides[0] == m as isize * a.row_stride
        && batch.c_stride == m * rs
    {
        return matmul(len * m, n, k, a, b, c, accumulate);
    }
    assert!(
        batch.c_stride > (m - 1) * rs + (n - 1) * cs,
        "batched_matmul: the matrices of c overlap: stride {} with extents {m}×{n} and strides {rs}, {cs}",
        batch.c_stride
    );
    assert!(c.offset + (count - 1) * batch.c_stride + (m - 1) * rs + (n - 1) * cs < c.data.len());
    let one = |index: usize, threads: bool, c: &mut [T]| {
        let (da, db) = batch.offsets(index);
        let at = |offset: usize, d: isize| offset.checked_add_signed(d).expect("batched_matmul: offset out of bounds");
        let a = Mat { offset: at(a.offset, da), ..a };
        let b = Mat { offset: at(b.offset, db), ..b };
        let c = MatMut { data: c, offset: 0, row_stride: rs as isize, col_stride: cs as isize };
        run(m, n, k, a, b, c, accumulate, threads);
    };
    let data = &mut c.data[c.offset..];
    let work = m * n * k;
    // Both ways give the same bits, so the choice may look at the number of threads.
    if count >= 4 * parallel::num_threads() || work < SERIAL_BELOW {
        // Enough matrices to a task that handing it over is cheap against doing it.
        let per_task = (SERIAL_BELOW / work.max(1)).clamp(1, 256).min(count);
        let len = data.len().min(count * batch.c_stride);
        parallel::for_each_chunk_mut(
            &mut data[..len],
            per_task * batch.c_stride,
            work.div_ceil(m * n),
            |task, piece| {
                for (i, c) in piece.chunks_mut(batch.c_stride).enumerate() {
                    one(task * per_task + i, false, c);
                }
            },
        );
    } else {
        for (i, c) in data.chunks_mut(batch.c_stride).take(count).enumerate() {
            one(i, parallel::num_threads() > 1, c);
        }
    }
}

/// The products of two stacks of matrices, `[…, m, k]` and `[…, k, n]`, in front of which both have the same axes.
#[by_dtype(T in [u8, i8, i16, i32, i64, f16, bf16, f32, f64, Complex64, Complex128])]
pub fn product<T: Gemm>(a: View<T>, b: View<T>, out: &mut [T]) {
    let batch = a.shape.len() - 2;
    assert!(a.shape[..batch] == b.shape[..b.shape.len() - 2], "product: stacks of different shapes");
    let (m, n, k) = extents(&a, &b);
    let stack = Batch {
        shape: &a.shape[..batch],
        a_strides: &a.strides[..batch],
        b_strides: &b.strides[..batch],
        c_stride: m * n,
    };
    batched_matmul(stack, m, n, k, Mat::first(a), Mat::first(b), MatMut::rows(out, n), false);
}

/// The product of two matrices, on top of `bias` in every row.
#[by_dtype(T in number)]
pub fn affine<T: Gemm>(a: View<T>, b: View<T>, bias: Option<&[T]>, out: &mut [T]) {
    let (m, n, k) = extents(&a, &b);
    if let Some(bias) = bias.filter(|b| !b.is_empty()) {
        let rows = (CHUNK / n).max(1);
        parallel::for_each_chunk_mut(out, rows * n, 1, |_, out| {
            // Rows may be short: what is there already is copied, twice as much each time.
            if let [one] = bias {
                return out.fill(*one);
            }
            out[..n].copy_from_slice(bias);
            let mut done = n;
            while done < out.len() {
                let more = done.min(out.len() - done);
                out.copy_within(..more, done);
                done += more;
            }
        });
    }
    matmul(m, n, k, Mat::first(a), Mat::first(b), MatMut::rows(out, n), bias.is_some());
}

/// Rows, columns and depth of a product.
fn extents<T>(a: &View<T>, b: &View<T>) -> (usize, usize, usize) {
    let ([.., m, k], [.., depth, n]) = (a.shape, b.shape) else { panic!("product: both must be matrices") };
    assert_eq!(k, depth, "product: columns of a and rows of b");
    (*m, *n, *k)
}

fn check_bounds(name: &str, len: usize, offset: usize, rows: usize, cols: usize, (rs, cs): (isize, isize)) {
    let (r, c) = ((rows as isize - 1) * rs, (cols as isize - 1) * cs);
    let low = offset as isize + r.min(0) + c.min(0);
    let high = offset as isize + r.max(0) + c.max(0);
    assert!(
        low >= 0 && (high as usize) < len,
        "matmul: {name} ({rows}×{cols}, strides {rs} and {cs}, offset {offset}) leaves its storage of {len} elements"
    );
}

fn check_distinct(rows: usize, cols: usize, (rs, cs): (isize, isize)) {
    let (m, n) = (rows as isize, cols as isize);
    let ok = rs >= 0
        && cs >= 0
        && match (m, n) {
            (1, 1) => true,
            (1, _) => cs > 0,
            (_, 1) => rs > 0,
            _ => rs > (n - 1) * cs && cs > 0 || cs > (m - 1) * rs && rs > 0,
        };
    assert!(ok, "matmul: elements of c ({rows}×{cols}, strides {rs} and {cs}) share places");
}

/// A product whose operands are copied to the stack, so that the loop over columns is one vector.
struct Small<T> {
    p: Product,
    a: *const T,
    b: *const T,
    c: *mut T,
}

impl<T: Real> WithSimd for Small<T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Small { p, a, b, c } = self;
        let mut bp = [[T::ZERO; SMALL]; SMALL];
        for (i, row) in bp.iter_mut().enumerate().take(p.k) {
            // SAFETY: the caller of `product` promised that all elements of the matrices are valid.
            unsafe {
                let b = b.offset(i as isize * p.b.0);
                if p.b.1 == 1 && p.n == SMALL {
                    *row = b.cast::<[T; SMALL]>().read();
                } else {
                    (0..p.n).for_each(|j| row[j] = *b.offset(j as isize * p.b.1));
                }
            }
        }
        // Four rows at a time keep four independent sums in flight.
        let mut i = 0;
        while i < p.m {
            let mut sum = [[T::ZERO; SMALL]; 4];
            let rows: [isize; 4] = each!(r => (i + r).min(p.m - 1) as isize * p.a.0);
            for (l, row) in bp.iter().enumerate().take(p.k) {
                for r in 0..4 {
                    // SAFETY: as above.
                    let x = unsafe { *a.offset(rows[r] + l as isize * p.a.1) };
                    for j in 0..SMALL {
                        sum[r][j] = if S::IS_SCALAR { sum[r][j] + x * row[j] } else { x.mul_add(row[j], sum[r][j]) };
                    }
                }
            }
            for r in 0..4.min(p.m - i) {
                // SAFETY: as above.
                unsafe {
                    let c = c.offset((i + r) as isize * p.c.0);
                    let (row, left) = ((p.n as isize, 1), (p.m - i - r) * p.n);
                    if p.c == row && left >= SMALL && !p.accumulate {
                        // What is written beyond the row is written again by the next one.
                        c.cast::<[T; SMALL]>().write(sum[r]);
                        continue;
                    }
                    for j in 0..p.n {
                        let out = c.offset(j as isize * p.c.1);
                        *out = if p.accumulate { *out + sum[r][j] } else { sum[r][j] };
                    }
                }
            }
            i += 4;
        }
    }
}

/// # Safety
/// As [`Gemm::product`].
unsafe fn small<T: Real>(p: Product, a: *const T, b: *const T, c: *mut T) {
    Arch::new().dispatch(Small { p, a, b, c });
}

/// From this depth on it pays to transpose a result rather than leave parts of vectors unused.
const TRANSPOSE_FROM: usize = 32;

/// # Safety
/// As [`Gemm::product`].
unsafe fn float<T: Lane + rows::Term>(p: Product, a: *const T, b: *const T, c: *mut T, threads: bool) {
    let lanes = microkernel::TileSize::here::<T>().lanes;
    // SAFETY: promised by the caller.
    unsafe {
        let rows = if p.n.min(p.k) > 2 { TALL } else { SMALL };
        if p.m <= rows && p.n <= SMALL && p.k <= SMALL {
            small(p, a, b, c)
        } else if p.m.min(p.n) == 1 {
            if !vector::multiply(p, a, b, c, threads) {
                rows::multiply(p, a, b, c, threads)
            }
        } else if p.k <= 2 {
            rows::multiply(p, a, b, c, threads)
        } else if dots::suits(&p, lanes) {
            dots::multiply(p, a, b, c, threads)
        } else if narrow::suits(&p) {
            narrow::multiply(p, a, b, c, threads)
        } else {
            tiles(p, lanes, a, b, c, threads)
        }
    }
}

/// A product by tiles of vectors.
///
/// # Safety
/// As [`Gemm::product`].
unsafe fn tiles<T: Lane>(p: Product, lanes: usize, a: *const T, b: *const T, c: *mut T, threads: bool) {
    let Product { m, n, k, .. } = p;
    // The vectors lie along the columns. Swapped, they lie along the rows.
    let as_is = m * n.next_multiple_of(lanes);
    let swapped = n * m.next_multiple_of(lanes);
    let swap = if p.c.1 == 1 { k >= TRANSPOSE_FROM && 8 * swapped < 7 * as_is } else { p.c.0 == 1 || swapped < as_is };
    // SAFETY: promised by the caller.
    let (rows, cols) = unsafe { (pack::Strided::new(a, p.a.0, p.a.1), pack::Strided::new(b, p.b.1, p.b.0)) };
    let (rs, cs) = (p.c.0 as usize, p.c.1 as usize);
    let out = |row_stride, col_stride, plane| microkernel::Out {
        ptr: c,
        row_stride,
        col_stride,
        plane,
        image_stride: 0,
        accumulate: p.accumulate,
        bias: None,
    };
    // SAFETY: promised by the caller.
    unsafe {
        if swap {
            engine::multiply((n, m, k), &cols, &rows, 1, out(cs, rs, m), threads);
        } else {
            engine::multiply((m, n, k), &rows, &cols, 1, out(rs, cs, n), threads);
        }
    }
}

macro_rules! gemm {
    ($($t:ty: $product:expr;)*) => {$(
        impl Gemm for $t {
            unsafe fn product(p: Product, a: *const $t, b: *const $t, c: *mut $t, threads: bool) {
                let product: unsafe fn(Product, *const $t, *const $t, *mut $t, bool) = $product;
                // SAFETY: promised by the caller.
                unsafe { product(p, a, b, c, threads) }
            }
        }
    )*};
}
gemm! {
    f32: float;
    f64: float;
    Complex64: complex::product;
    Complex128: complex::product;
    u8: rows::multiply;
    i8: rows::multiply;
    i16: rows::multiply;
    i32: rows::multiply;
    i64: rows::multiply;
}

/// A row-major `f32` copy of a strided matrix.
///
/// # Safety
/// Every element must be valid to read.
unsafe fn widen<T: RealElement<Wide = f32>>(
    src: *const T,
    rows: usize,
    cols: usize,
    (rs, cs): (isize, isize),
) -> Buffer {
    let mut out = Buffer::uninit(4 * rows * cols);
    let src = Shared::new_const(src);
    parallel::for_each_chunk_mut(out.as_mut_slice::<f32>(), cols, 2, move |i, row| {
        for (j, v) in row.iter_mut().enumerate() {
            // SAFETY: promised by the caller.
            *v = unsafe { *src.get().offset(i as isize * rs + j as isize * cs) }.wide();
        }
    });
    out
}

macro_rules! half_gemm {
    ($($t:ty),*) => {$(
        impl Gemm for $t {
            unsafe fn product(p: Product, a: *const $t, b: *const $t, c: *mut $t, threads: bool) {
                let Product { m, n, k, .. } = p;
                // SAFETY: promised by the caller.
                let (a, b) = unsafe { (widen(a, m, k, p.a), widen(b, k, n, p.b)) };
                let mut sum = Buffer::uninit(4 * m * n);
                let (x, y) = (Mat::rows(a.as_slice::<f32>(), k), Mat::rows(b.as_slice::<f32>(), n));
                run(m, n, k, x, y, MatMut::rows(sum.as_mut_slice(), n), false, threads);
                let (sum, c) = (sum.as_slice::<f32>(), Shared::from_ptr(c));
                parallel::for_each_range(m, 1, 2 * n, move |r| {
                    let i = r.start;
                    for (j, v) in sum[i * n..(i + 1) * n].iter().enumerate() {
                        // SAFETY: promised by the caller; rows are disjoint.
                        let out = unsafe { &mut *c.get().offset(i as isize * p.c.0 + j as isize * p.c.1) };
                        *out = <$t>::narrow(if p.accumulate { out.wide() + v } else { *v });
                    }
                });
            }
        }
    )*};
}
half_gemm!(f16, bf16);

#[cfg(test)]
mod tests;
