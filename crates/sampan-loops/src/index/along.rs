//! An index for every element along one axis: take_along_axis, put_along_axis.

use super::{BadIndex, Num, at, check};
use crate::view::contiguous_strides;
use crate::{Element, parallel};
use sampan_macros::by_dtype;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What happens where a value lands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Reduce {
    Assign,
    Add,
    Mul,
    Min,
    Max,
    Mean,
}

/// Walks the lines (last axis) of an index tensor over a contiguous array of the same rank.
struct Walk {
    shape: Vec<usize>,
    strides: Vec<usize>,
    axis: usize,
    n: usize,
}

impl Walk {
    fn new(shape: &[usize], axis: usize, idx_shape: &[usize]) -> Walk {
        assert_eq!(shape.len(), idx_shape.len());
        assert!(idx_shape.iter().zip(shape).enumerate().all(|(a, (i, n))| a == axis || i <= n));
        let strides = contiguous_strides(shape).iter().map(|&s| s as usize).collect();
        Walk { shape: idx_shape.to_vec(), strides, axis, n: shape[axis] }
    }

    fn width(&self) -> usize {
        self.shape[self.shape.len() - 1]
    }

    /// Offset of the first element of a line, the indexed axis left out.
    fn base(&self, mut line: usize) -> usize {
        let mut offset = 0;
        for a in (0..self.shape.len() - 1).rev() {
            let c = line % self.shape[a];
            line /= self.shape[a];
            if a != self.axis {
                offset += c * self.strides[a];
            }
        }
        offset
    }

    /// What the indices of a line, which were checked, pick from `x`.
    fn take<T: Element>(&self, line: usize, x: &[T], idx: &[i64], dst: &mut [T]) {
        let (base, step) = (self.base(line), self.strides[self.axis]);
        let column = (self.axis + 1 != self.shape.len()) as usize;
        let x = &x[base..=base + (self.n - 1) * step + (dst.len() - 1) * column];
        if column == 0 && step == 1 {
            for (d, &i) in dst.iter_mut().zip(idx) {
                debug_assert!(at(i, self.n) < self.n);
                // SAFETY: the index is below `n`, the length of `x`.
                *d = unsafe { *x.get_unchecked(at(i, self.n)) };
            }
            return;
        }
        for (c, (d, &i)) in dst.iter_mut().zip(idx).enumerate() {
            debug_assert!(at(i, self.n) < self.n);
            // SAFETY: the index is below `n`, the column below the length of `dst`, and `x` reaches as far as both do.
            *d = unsafe { *x.get_unchecked(at(i, self.n) * step + c * column) };
        }
    }

    /// Calls `f(column, offset)` for each element of a line.
    #[inline(always)]
    fn each(&self, line: usize, idx: &[i64], mut f: impl FnMut(usize, usize)) {
        let base = self.base(line);
        let last = self.axis + 1 == self.shape.len();
        let (step, column) = (self.strides[self.axis], if last { 0 } else { 1 });
        for (c, &i) in idx.iter().enumerate() {
            f(c, base + at(i, self.n) * step + c * column);
        }
    }
}

/// Indices a task of [`take_along_axis`] takes: they stay in the first-level cache between the check and the use.
const TAKEN: usize = 1 << 11;

/// `dst[…, j, …] = x[…, idx[…, j, …], …]`. `x` is contiguous; `idx` and `dst` have `idx_shape`, which along other axes
/// may be shorter than `x`. After an error `dst` holds some of the elements.
#[by_dtype(T in bytes)]
pub fn take_along_axis<T: Element>(
    x: &[T],
    shape: &[usize],
    axis: usize,
    idx: &[i64],
    idx_shape: &[usize],
    wrap: bool,
    dst: &mut [T],
) -> Result<(), BadIndex> {
    assert_eq!(idx.len(), dst.len());
    if dst.is_empty() {
        return Ok(());
    }
    let walk = Walk::new(shape, axis, idx_shape);
    let width = walk.width();
    let lines = (TAKEN / width).max(1);
    // Indices are checked by whoever uses them next, while they are in the cache; of several errors the first counts.
    let bad = AtomicUsize::new(usize::MAX);
    parallel::for_each_chunk_mut(dst, lines * width, 2, |c, piece| {
        let start = c * lines * width;
        let idx = &idx[start..][..piece.len()];
        if let Err(found) = check(idx, walk.n, wrap) {
            bad.fetch_min(start + found.position, Ordering::Relaxed);
            return;
        }
        for (l, (row, idx)) in piece.chunks_mut(width).zip(idx.chunks(width)).enumerate() {
            walk.take(c * lines + l, x, idx, row);
        }
    });
    match bad.into_inner() {
        usize::MAX => Ok(()),
        position => Err(BadIndex { position, value: idx[position], limit: shape[axis] }),
    }
}

/// Follows beams of a search from their ends back to the start: `ids` and `parents` are `times × batch × beams`, and a
/// parent is the beam of the step before that a beam came from.
#[by_dtype(T in bytes)]
pub fn gather_tree<T: Element>(
    ids: &[T],
    parents: &[i64],
    shape: (usize, usize, usize),
    dst: &mut [T],
) -> Result<(), BadIndex> {
    let (times, batch, beams) = shape;
    for (n, beam) in (0..batch).flat_map(|n| (0..beams).map(move |k| (n, k))) {
        let mut from = beam;
        for t in (0..times).rev() {
            let row = (t * batch + n) * beams;
            dst[row + beam] = ids[row + from];
            if t > 0 {
                let position = row + from;
                check(&parents[position..=position], beams, false).map_err(|e| BadIndex { position, ..e })?;
                from = parents[position] as usize;
            }
        }
    }
    Ok(())
}

/// `dst[…, idx[…, j, …], …] ⊕= values[…, j, …]`, duplicates in order. With `include_self` false the old element takes
/// no part where a value lands. `idx` and `values` have `idx_shape`, which along other axes may be shorter than `dst`.
#[by_dtype(T in any)]
pub fn put_along_axis<T: Num>(
    dst: &mut [T],
    shape: &[usize],
    axis: usize,
    idx: &[i64],
    idx_shape: &[usize],
    wrap: bool,
    values: &[T],
    reduce: Reduce,
    include_self: bool,
) -> Result<(), BadIndex> {
    check(idx, shape[axis], wrap)?;
    assert_eq!(idx.len(), values.len());
    if idx.is_empty() || dst.is_empty() {
        return Ok(());
    }
    // Slabs along the first axis are independent unless it is the indexed one.
    let slabs = if axis == 0 { 1 } else { shape[0] };
    let (slab, part) = (dst.len() / slabs, if axis == 0 { idx.len() } else { idx.len() / idx_shape[0] });
    let (slab_shape, part_shape) = match axis {
        0 => (shape.to_vec(), idx_shape.to_vec()),
        _ => ([&[1], &shape[1..]].concat(), [&[1], &idx_shape[1..]].concat()),
    };
    let walk = Walk::new(&slab_shape, axis, &part_shape);
    let width = walk.width();
    let counting = reduce == Reduce::Mean || (!include_self && reduce != Reduce::Assign);
    parallel::for_each_chunk_mut(dst, slab, (2 * part / slab).max(1), |s, slab| {
        if s * part >= idx.len() {
            return;
        }
        let mut landed = vec![0u32; if counting { slab.len() } else { 0 }];
        let (idx, values) = (&idx[s * part..(s + 1) * part], &values[s * part..(s + 1) * part]);
        for (line, (row, row_values)) in idx.chunks(width).zip(values.chunks(width)).enumerate() {
            walk.each(line, row, |c, offset| {
                let (d, v) = (&mut slab[offset], row_values[c]);
                let mut fresh = false;
                if counting {
                    fresh = landed[offset] == 0 && !include_self;
                    landed[offset] += 1;
                }
                let (old, new) = (d.widen(), v.widen());
                #[allow(clippy::eq_op)]
                let nan = new != new;
                *d = match reduce {
                    _ if fresh => v,
                    Reduce::Assign => v,
                    Reduce::Add | Reduce::Mean => T::narrow(old + new),
                    Reduce::Mul => T::narrow(old * new),
                    // A NaN on either side stays.
                    Reduce::Min => {
                        if T::below(new, old) || nan {
                            v
                        } else {
                            *d
                        }
                    }
                    Reduce::Max => {
                        if T::below(old, new) || nan {
                            v
                        } else {
                            *d
                        }
                    }
                };
            });
        }
        if reduce == Reduce::Mean {
            for (d, &count) in slab.iter_mut().zip(&landed).filter(|(_, c)| **c > 0) {
                *d = T::narrow(d.widen() / T::count(count as usize + include_self as usize));
            }
        }
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn take_along_each_axis() {
        let x: Vec<i32> = (0..6).collect();
        let mut y = [0; 4];
        take_along_axis_of(&x, &[2, 3], 1, &[2, -3, 1, 1], &[2, 2], true, &mut y).unwrap();
        assert_eq!(y, [2, 0, 4, 4]);
        let mut y = [0; 3];
        take_along_axis_of(&x, &[2, 3], 0, &[1, 0, 1], &[1, 3], true, &mut y).unwrap();
        assert_eq!(y, [3, 1, 5]);
        let mut y = [0; 2];
        take_along_axis_of(&x, &[2, 3], 1, &[2, 0], &[1, 2], true, &mut y).unwrap();
        assert_eq!(y, [2, 0]);
        assert_eq!(take_along_axis_of(&x, &[2, 3], 0, &[1, 2], &[1, 2], true, &mut y).unwrap_err().position, 1);
    }

    #[test]
    fn the_first_of_several_errors_is_told() {
        let (x, mut idx, mut y) = (vec![0i32; 5 * 4000], vec![-4000i64; 5 * 4000], vec![0; 5 * 4000]);
        assert!(take_along_axis_of(&x, &[5, 4000], 1, &idx, &[5, 4000], true, &mut y).is_ok());
        for (position, value) in [(19_999, 4000), (12_345, -4001), (12_346, 4001)] {
            idx[position] = value;
        }
        let e = take_along_axis_of(&x, &[5, 4000], 1, &idx, &[5, 4000], true, &mut y).unwrap_err();
        assert_eq!(e, BadIndex { position: 12_345, value: -4001, limit: 4000 });
        assert_eq!(check(&idx, 4000, true), Err(e));
        assert_eq!(check(&[0, i64::MIN], 4000, true).unwrap_err().position, 1);
        assert_eq!(check(&[0, -1, i64::MAX], 1, false).unwrap_err().position, 1);
    }

    #[test]
    fn put_with_every_reduction() {
        // The values Paddle 3 gives for a 2×3 array of twos.
        let put = |reduce, own, axis| {
            let mut d = [2f32; 6];
            put_along_axis_of(&mut d, &[2, 3], axis, &[0, 0, 1], &[1, 3], true, &[4.0, 6.0, 8.0], reduce, own).unwrap();
            d
        };
        assert_eq!(put(Reduce::Add, true, 0), [6.0, 8.0, 2.0, 2.0, 2.0, 10.0]);
        assert_eq!(put(Reduce::Add, true, 1), [12.0, 10.0, 2.0, 2.0, 2.0, 2.0]);
        assert_eq!(put(Reduce::Add, false, 1), [10.0, 8.0, 2.0, 2.0, 2.0, 2.0]);
        assert_eq!(put(Reduce::Mul, true, 1), [48.0, 16.0, 2.0, 2.0, 2.0, 2.0]);
        assert_eq!(put(Reduce::Mul, false, 1), [24.0, 8.0, 2.0, 2.0, 2.0, 2.0]);
        assert_eq!(put(Reduce::Min, true, 1), [2.0; 6]);
        assert_eq!(put(Reduce::Min, false, 1), [4.0, 8.0, 2.0, 2.0, 2.0, 2.0]);
        assert_eq!(put(Reduce::Max, true, 1), [6.0, 8.0, 2.0, 2.0, 2.0, 2.0]);
        assert_eq!(put(Reduce::Mean, true, 1), [4.0, 5.0, 2.0, 2.0, 2.0, 2.0]);
        assert_eq!(put(Reduce::Mean, false, 1), [5.0, 8.0, 2.0, 2.0, 2.0, 2.0]);
        assert_eq!(put(Reduce::Assign, true, 1), [6.0, 8.0, 2.0, 2.0, 2.0, 2.0]);
    }

    #[test]
    fn put_in_three_dimensions() {
        let mut d = [0i64; 8];
        put_along_axis_of(&mut d, &[2, 2, 2], 1, &[0, 1, 1, 0], &[2, 1, 2], true, &[1, 2, 3, 4], Reduce::Assign, true)
            .unwrap();
        assert_eq!(d, [1, 0, 0, 2, 0, 4, 3, 0]);
    }
}
