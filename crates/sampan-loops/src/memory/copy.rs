//! Moving elements between layouts and types.

use crate::nest::{Nest, check_bounds, gather, within};
use crate::parallel::CHUNK;
use crate::{Element, View, parallel};
use sampan_macros::by_dtype;

/// A tile of a transposition: runs of `TILE` elements are read, runs of `RUN` are written. Few rows of the source and
/// some lines of each, for rows a power of two apart share few places of the cache.
const TILE: usize = 64;
const RUN: usize = 32;

/// A pointer that pieces of parallel work write through, each to its own elements.
#[derive(Clone, Copy)]
struct Shared<T>(*mut T);
// SAFETY: whoever uses it writes disjoint elements from different threads.
unsafe impl<T: Send> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Shared<T> {}

impl<T> Shared<T> {
    /// The pointer itself; a method, so that closures capture the whole wrapper.
    fn get(self) -> *mut T {
        self.0
    }
}

/// Copies a view into row-major order.
#[by_dtype(T in bytes)]
pub fn copy_strided<T: Element>(src: View<'_, T>, dst: &mut [T]) {
    assert_eq!(src.len(), dst.len(), "copy: the destination has another size");
    if let Some(x) = src.as_slice() {
        if dst.len() <= CHUNK {
            return dst.copy_from_slice(x);
        }
        return parallel::for_each_chunk_mut(dst, CHUNK, 1, |i, y| {
            y.copy_from_slice(&x[i * CHUNK..i * CHUNK + y.len()]);
        });
    }
    check_bounds(&src);
    let nest = Nest::new(src.shape, [src.strides]);
    let strides = &nest.strides[0][..nest.rank];
    // The axis that is contiguous in the source, where the innermost one is not.
    let unit = strides.iter().position(|&s| s == 1);
    match unit {
        Some(axis) if axis + 1 < nest.rank && dst.len() >= 1024 && nest.shape[axis] >= 4 && nest.inner() >= 4 => {
            transpose(src.data, src.offset, &nest, axis, dst);
        }
        _ => parallel::for_each_chunk_mut(dst, CHUNK, 2, |i, y| {
            let mut walk = nest.walk([src.offset], i * CHUNK, i * CHUNK + y.len());
            let stride = nest.inner_stride(0);
            let mut done = 0;
            while let Some((run, [at])) = walk.next_run(CHUNK) {
                // SAFETY: `check_bounds` covered every position of the walk.
                unsafe { gather(src.data, at, stride, &mut y[done..done + run]) };
                done += run;
            }
        }),
    }
}

/// Copies where `axis` has step 1 in the source and the innermost axis has step 1 in the destination, tile by tile.
fn transpose<T: Element>(data: &[T], offset: usize, nest: &Nest<1>, axis: usize, dst: &mut [T]) {
    let rank = nest.rank;
    let (shape, strides) = (&nest.shape[..rank], &nest.strides[0][..rank]);
    let (n, inner, step) = (shape[axis], shape[rank - 1], strides[rank - 1]);
    let between = Nest::<1>::new(&shape[axis + 1..rank - 1], [&strides[axis + 1..rank - 1]]);
    let outer = Nest::<1>::new(&shape[..axis], [&strides[..axis]]);
    let row = between.len() * inner;
    let bands = n.div_ceil(TILE);
    let out = Shared(dst.as_mut_ptr());
    let len = dst.len();
    let pieces = outer.len() * bands;
    let chunk = (CHUNK / (TILE * row)).max(1);
    parallel::for_each_range(pieces, chunk, len.div_ceil(pieces), |range| {
        for piece in range {
            let (o, band) = (piece / bands, piece % bands);
            let Some((_, [base])) = outer.walk([offset], o, o + 1).next_run(1) else { return };
            let (t0, t1) = (band * TILE, n.min(band * TILE + TILE));
            let mut middles = between.walk([0], 0, between.len());
            let mut m = 0;
            let mut tile = [[T::zeroed(); TILE]; RUN];
            while let Some((_, [middle])) = middles.next_run(1) {
                for j0 in (0..inner).step_by(RUN) {
                    let j1 = inner.min(j0 + RUN);
                    // Through a tile of our own: whole cache lines are read and written, and strides that are
                    // powers of two cannot evict each other's lines.
                    for (j, line) in (j0..j1).zip(tile.iter_mut()) {
                        let from = (base + middle + t0 as isize + j as isize * step) as usize;
                        // SAFETY: the source was checked as a whole, and its axis `t` has step 1.
                        line[..t1 - t0].copy_from_slice(unsafe { data.get_unchecked(from..from + (t1 - t0)) });
                    }
                    for t in t0..t1 {
                        let to = (o * n + t) * row + m * inner + j0;
                        // SAFETY: `to + j1 − j0 ≤ len`, and each piece has its own values of (o, t), hence its own
                        // destinations.
                        let line = unsafe { std::slice::from_raw_parts_mut(out.get().add(to), j1 - j0) };
                        for (d, column) in line.iter_mut().zip(&tile) {
                            *d = column[t - t0];
                        }
                    }
                }
                m += 1;
            }
        }
    });
}

/// Can no two indices of this layout meet in one element? May say no where they do not, never yes where they do.
fn injective(shape: &[usize], strides: &[isize]) -> bool {
    let mut axes: Vec<(usize, usize)> =
        shape.iter().zip(strides).filter(|&(&n, _)| n > 1).map(|(&n, &s)| (s.unsigned_abs(), n)).collect();
    axes.sort_unstable();
    let mut reach = 0;
    axes.iter().all(|&(s, n)| {
        let free = s > reach;
        reach += s * (n - 1);
        free
    })
}

/// Calls `f(position, element)` for every element of a region, in order; in parallel where elements cannot coincide.
fn for_each_strided<T: Element>(
    dst: &mut [T],
    shape: &[usize],
    strides: &[isize],
    offset: usize,
    f: impl Fn(usize, &mut T) + Sync + Send,
) {
    if let Err(why) = within(dst.len(), shape, strides, offset) {
        panic!("{why}");
    }
    let nest = Nest::new(shape, [strides]);
    let len = if shape.contains(&0) { 0 } else { nest.len() };
    let chunk = if len <= CHUNK || injective(shape, strides) { CHUNK } else { len };
    let out = Shared(dst.as_mut_ptr());
    parallel::for_each_range(len, chunk, 2, |range| {
        let mut at = range.start;
        let mut walk = nest.walk([offset], range.start, range.end);
        let stride = nest.inner_stride(0);
        while let Some((run, [first])) = walk.next_run(CHUNK) {
            for i in 0..run {
                // SAFETY: `within` covered every position; pieces run together only where the layout is injective.
                f(at + i, unsafe { &mut *out.get().offset(first + i as isize * stride) });
            }
            at += run;
        }
    });
}

/// Writes row-major values into a strided region of `dst`. Where elements of the region coincide the last value stays.
#[by_dtype(T in bytes)]
pub fn scatter_strided<T: Element>(src: &[T], dst: &mut [T], shape: &[usize], strides: &[isize], offset: usize) {
    assert_eq!(src.len(), shape.iter().product::<usize>(), "scatter: the source has another size than the region");
    if crate::view::is_contiguous(shape, strides) {
        return dst[offset..offset + src.len()].copy_from_slice(src);
    }
    for_each_strided(dst, shape, strides, offset, |i, d| *d = src[i]);
}

/// Writes one value into a strided region of `dst`.
#[by_dtype(T in bytes)]
pub fn fill_strided<T: Element>(value: T, dst: &mut [T], shape: &[usize], strides: &[isize], offset: usize) {
    if crate::view::is_contiguous(shape, strides) {
        let len: usize = shape.iter().product();
        return dst[offset..offset + len].fill(value);
    }
    for_each_strided(dst, shape, strides, offset, |_, d| *d = value);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list<T: Element>(v: View<'_, T>) -> Vec<T> {
        (0..v.len())
            .map(|mut i| {
                let mut at = v.offset as isize;
                for (&n, &s) in v.shape.iter().zip(v.strides).rev() {
                    at += (i % n) as isize * s;
                    i /= n;
                }
                v.data[at as usize]
            })
            .collect()
    }

    #[test]
    fn copies_any_layout_and_scatters_it_back() {
        let data: Vec<i32> = (0..70_000).collect();
        let cases: &[(&[usize], &[isize], usize)] = &[
            (&[100, 300], &[1, 100], 0),
            (&[2, 50, 70, 3], &[10500, 1, 150, 50], 5),
            (&[33, 40, 45], &[1, 33, 1320], 0),
            (&[3, 70, 65], &[4550, 1, 70], 0),
            (&[100, 300], &[-300, 1], 29_700),
            (&[100, 300], &[1, -100], 29_900),
            (&[7, 5, 3], &[60, 9, 2], 11),
        ];
        for &(shape, strides, offset) in cases {
            let v = View { data: &data, shape, strides, offset };
            let mut y = vec![0; v.len()];
            copy_strided_of(v, &mut y);
            assert_eq!(y, list(v), "{shape:?} {strides:?}");
            let mut back = vec![-1; data.len()];
            scatter_strided_of(&y, &mut back, shape, strides, offset);
            assert_eq!(list(View { data: &back, ..v }), y);
            assert_eq!(back.iter().filter(|&&b| b != -1).count(), y.len());
            fill_strided_of(-1, &mut back, shape, strides, offset);
            assert!(back.iter().all(|&b| b == -1));
        }
        let y = vec![9; 40_000];
        let mut one = vec![0; 200];
        scatter_strided_of(&y, &mut one, &[200, 200], &[0, 1], 0);
        assert_eq!(one, vec![9; 200]);
    }
}
