//! The innermost loops: a tile of the result in registers, and the walk over a block of tiles.

use super::lane::Lane;
use super::pack::transpose_to;
use crate::simd::each;
use pulp::{Arch, Simd, WithSimd};
use std::marker::PhantomData;

/// Rows of a tile with 32 vector registers, and with 16: two vectors of sums to a row, two of `b` and one of `a`.
const ROWS_OF_32: usize = 12;
const ROWS_OF_16: usize = 6;
/// Vectors in a row of a tile.
const VECTORS: usize = 2;
/// Elements of the largest tile, where the widest vectors have 16.
const LARGEST: usize = ROWS_OF_32 * VECTORS * 16;

/// What a tile measures on this machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TileSize {
    pub(crate) rows: usize,
    /// Elements of a vector; a tile has two of them, or one where the matrix ends.
    pub(crate) lanes: usize,
}

impl TileSize {
    /// For numbers of type `T`.
    pub(crate) fn here<T: Lane>() -> TileSize {
        struct Ask<T>(PhantomData<T>);
        impl<T: Lane> WithSimd for Ask<T> {
            type Output = TileSize;
            #[inline(always)]
            fn with_simd<S: Simd>(self, _: S) -> TileSize {
                TileSize { rows: rows::<S>(), lanes: T::lanes::<S>() }
            }
        }
        Arch::new().dispatch(Ask(PhantomData::<T>))
    }

    /// Columns of a whole tile.
    pub(crate) fn columns(self) -> usize {
        VECTORS * self.lanes
    }
}

const fn rows<S: Simd>() -> usize {
    if S::F32_LANES >= 16 { ROWS_OF_32 } else { ROWS_OF_16 }
}

/// Where the result goes. Element `(i, j)` lies at `i * row_stride`, plus `image_stride` for each whole `plane` in `j`, plus
/// `col_stride` for each of the rest: a matrix is one plane, a batch of images several.
#[derive(Clone, Copy)]
pub(crate) struct Out<'a, T = f32> {
    pub(crate) ptr: *mut T,
    pub(crate) row_stride: usize,
    pub(crate) col_stride: usize,
    pub(crate) plane: usize,
    pub(crate) image_stride: usize,
    /// Add to what is there?
    pub(crate) accumulate: bool,
    /// Added to every element of row `i`.
    pub(crate) bias: Option<&'a [T]>,
}

// SAFETY: whoever writes through it sees to it that no two threads write one element.
unsafe impl<T: Lane> Sync for Out<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Lane> Send for Out<'_, T> {}

/// A block of the result: `rows` × `cols` from `(row, col)` on, over `depth` products.
pub(crate) struct Block<'a, T> {
    pub(crate) row: usize,
    pub(crate) rows: usize,
    pub(crate) col: usize,
    pub(crate) cols: usize,
    pub(crate) depth: usize,
    /// Panels of [`TileSize::rows`] rows, one after the other, each `[depth, rows]`.
    pub(crate) a: *const T,
    /// Panels of [`TileSize::columns`] columns, each `[depth, columns]`, the last one as narrow as whole vectors allow.
    pub(crate) b: *const T,
    /// Where `b` is not packed: from one of `depth` to the next, and only whole panels.
    pub(crate) b_step: Option<usize>,
    pub(crate) out: Out<'a, T>,
}

impl<T: Lane> Block<'_, T> {
    /// # Safety
    /// `a` and `b` point to as many elements as rows, columns and depth say; the elements of the block in `out` may be
    /// written and nobody else touches them.
    pub(crate) unsafe fn run(self) {
        Arch::new().dispatch(self);
    }
}

impl<T: Lane> WithSimd for Block<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let columns = VECTORS * T::lanes::<S>();
        let mut sums = Sums([T::ZERO; LARGEST]);
        for i in (0..self.rows).step_by(rows::<S>()) {
            let height = rows::<S>().min(self.rows - i);
            for j in (0..self.cols).step_by(columns) {
                let width = columns.min(self.cols - j);
                if width > T::lanes::<S>() {
                    self.pick::<S, VECTORS>(simd, i, height, j, &mut sums);
                    self.store(simd, i, height, j, width, columns, &sums.0);
                } else {
                    self.pick::<S, 1>(simd, i, height, j, &mut sums);
                    self.store(simd, i, height, j, width, T::lanes::<S>(), &sums.0);
                }
            }
        }
    }
}

/// A tile on its way from the registers to its place.
#[repr(align(64))]
struct Sums<T>([T; LARGEST]);

impl<T: Lane> Block<'_, T> {
    #[inline(always)]
    fn pick<S: Simd, const V: usize>(&self, simd: S, i: usize, height: usize, j: usize, sums: &mut Sums<T>) {
        macro_rules! heights {
            ($($n:literal),*) => {
                match height {
                    $($n => self.tile::<S, $n, V>(simd, i, j, sums),)*
                    _ => unreachable!("a tile has no more rows than that"),
                }
            };
        }
        if S::F32_LANES >= 16 {
            heights!(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12);
        } else {
            heights!(1, 2, 3, 4, 5, 6);
        }
    }

    #[inline(always)]
    fn tile<S: Simd, const R: usize, const V: usize>(&self, simd: S, i: usize, j: usize, sums: &mut Sums<T>) {
        const { assert!(R * V * S::F32_LANES <= LARGEST) };
        let lanes = T::lanes::<S>();
        let step = self.b_step.unwrap_or(V * lanes);
        let mut sum = [[T::ZERO.splat(simd); V]; R];
        // SAFETY: the panels of rows `i..` and columns `j..`, which the block's pointers cover.
        unsafe {
            let mut a = self.a.add(i * self.depth);
            let mut b = self.b.add(if self.b_step.is_some() { j } else { j * self.depth });
            for _ in 0..self.depth {
                let bv: [T::Vector<S>; V] = each!(v => b.add(v * lanes).cast::<T::Vector<S>>().read_unaligned());
                for r in 0..R {
                    let av = (*a.add(r)).splat(simd);
                    for v in 0..V {
                        sum[r][v] = T::times_plus(simd, av, bv[v], sum[r][v]);
                    }
                }
                (a, b) = (a.add(R), b.add(step));
            }
        }
        // All at once and first to memory: sums that are looked at one by one would not stay in registers above.
        // SAFETY: there is room for so many vectors, as was checked.
        unsafe { sums.0.as_mut_ptr().cast::<[[T::Vector<S>; V]; R]>().write_unaligned(sum) };
    }

    /// Writes a tile, whose rows are `pitch` apart in `sums`, to its place.
    #[inline(always)]
    fn store<S: Simd>(
        &self,
        simd: S,
        i: usize,
        height: usize,
        j: usize,
        width: usize,
        pitch: usize,
        sums: &[T; LARGEST],
    ) {
        let out = &self.out;
        let (row, col) = (self.row + i, self.col + j);
        let bias = |r: usize| out.bias.map_or(T::ZERO, |b| b[row + r]);
        let mut c = 0;
        while c < width {
            // Columns of one plane.
            let place = (col + c) % out.plane;
            let len = (out.plane - place).min(width - c);
            let at = row * out.row_stride + (col + c) / out.plane * out.image_stride + place * out.col_stride;
            if out.col_stride == 1 {
                for (r, sums) in sums.chunks_exact(pitch).take(height).enumerate() {
                    // SAFETY: `len` elements of one row of the block, side by side.
                    let to = unsafe { std::slice::from_raw_parts_mut(out.ptr.add(at + r * out.row_stride), len) };
                    let add = bias(r).splat(simd);
                    for (to, from) in to.chunks_mut(T::lanes::<S>()).zip(sums[c..c + len].chunks(T::lanes::<S>())) {
                        let mut value = T::plus(simd, load(simd, from), add);
                        if out.accumulate {
                            value = T::plus(simd, load(simd, to), value);
                        }
                        store(simd, to, value);
                    }
                }
            } else if out.row_stride == 1 && !out.accumulate && out.bias.is_none() {
                // SAFETY: `len` elements of so many rows of the tile, and their places in the block.
                unsafe {
                    let from = sums[c..].as_ptr();
                    transpose_to(from, pitch as isize, height, len, out.ptr.add(at), out.col_stride);
                }
            } else {
                for l in 0..len {
                    for r in 0..height {
                        let value = sums[r * pitch + c + l] + bias(r);
                        // SAFETY: an element of the block.
                        unsafe {
                            let to = out.ptr.add(at + r * out.row_stride + l * out.col_stride);
                            *to = if out.accumulate { *to + value } else { value };
                        }
                    }
                }
            }
            c += len;
        }
    }
}

/// The elements of a slice, in a vector that may be longer.
#[inline(always)]
fn load<T: Lane, S: Simd>(simd: S, from: &[T]) -> T::Vector<S> {
    match from.len() {
        // SAFETY: the slice is a vector.
        n if n == T::lanes::<S>() => unsafe { from.as_ptr().cast::<T::Vector<S>>().read_unaligned() },
        _ => T::load(simd, from),
    }
}

/// The first elements of a vector to a slice.
#[inline(always)]
fn store<T: Lane, S: Simd>(simd: S, to: &mut [T], value: T::Vector<S>) {
    match to.len() {
        // SAFETY: the slice is a vector.
        n if n == T::lanes::<S>() => unsafe { to.as_mut_ptr().cast::<T::Vector<S>>().write_unaligned(value) },
        _ => T::store(simd, to, value),
    }
}
