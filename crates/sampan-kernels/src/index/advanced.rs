//! Several index tensors at once: `x[:, i, j]` and its assignment.

use super::{BadIndex, Num, at, check, index_add};
use crate::sort::Axis;
use crate::{Element, View, parallel};

/// Offsets of an indexing expression, worked out once. The result has the extents `before × count × after`: the axes
/// left alone that come before the place of the index, the index itself, and the axes left alone after it.
#[derive(Debug)]
pub struct IndexPlan {
    before: Vec<isize>,
    index: Vec<isize>,
    after: Vec<isize>,
    dense: bool,
}

impl IndexPlan {
    /// `indices[a]` (already broadcast to one length) runs along `axes[a]`; the index stands after the first `place`
    /// of the axes left alone. An error's `position` counts within the index tensor that failed.
    pub fn new(
        shape: &[usize],
        strides: &[isize],
        axes: &[usize],
        indices: &[&[i64]],
        place: usize,
    ) -> Result<IndexPlan, BadIndex> {
        let count = indices.first().map_or(1, |i| i.len());
        let mut index = vec![0isize; count];
        for (&a, &idx) in axes.iter().zip(indices) {
            check(idx, shape[a], true)?;
            assert_eq!(idx.len(), count);
            index.iter_mut().zip(idx).for_each(|(o, &i)| *o += at(i, shape[a]) as isize * strides[a]);
        }
        let rest: Vec<usize> = (0..shape.len()).filter(|a| !axes.contains(a)).collect();
        let offsets = |axes: &[usize]| {
            axes.iter().fold(vec![0isize], |table, &a| {
                let steps = |&o: &isize| (0..shape[a] as isize).map(move |i| o + i * strides[a]);
                table.iter().flat_map(steps).collect()
            })
        };
        let (before, after) = (offsets(&rest[..place]), offsets(&rest[place..]));
        let dense = after.iter().enumerate().all(|(i, &o)| o == i as isize);
        Ok(IndexPlan { before, index, after, dense })
    }

    /// Elements of the result.
    pub fn len(&self) -> usize {
        self.before.len() * self.index.len() * self.after.len()
    }

    /// Has the result no elements?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn row(&self, row: usize) -> isize {
        self.before[row / self.index.len()] + self.index[row % self.index.len()]
    }
}

/// Reads the elements of a plan made for `x`'s shape and strides.
pub fn index_get<T: Element>(x: View<'_, T>, plan: &IndexPlan, dst: &mut [T]) {
    assert_eq!(dst.len(), plan.len());
    if dst.is_empty() {
        return;
    }
    let width = plan.after.len();
    let rows = ((1 << 14) / width).max(1);
    let origin = x.offset as isize;
    parallel::for_each_chunk_mut(dst, rows * width, 2, |c, piece| {
        for (r, out) in piece.chunks_mut(width).enumerate() {
            let base = origin + plan.row(c * rows + r);
            if plan.dense {
                out.copy_from_slice(&x.data[base as usize..base as usize + width]);
            } else {
                for (o, &a) in out.iter_mut().zip(&plan.after) {
                    *o = x.data[(base + a) as usize];
                }
            }
        }
    });
}

/// Writes (or adds) `values` to the elements of a plan made for `dst`'s contiguous shape. `values` has the result's
/// elements or just one; of duplicates the last one written stays, sums go in order.
pub fn index_put<T: Num>(dst: &mut [T], plan: &IndexPlan, values: &[T], accumulate: bool) {
    if plan.is_empty() {
        return;
    }
    let width = plan.after.len();
    let scalar = values.len() == 1;
    assert!(scalar || values.len() == plan.len());
    if accumulate && plan.dense && !scalar {
        // Whole rows of a contiguous array: sums in the accumulator's precision, in parallel.
        let rows: Vec<i64> =
            (0..plan.before.len() * plan.index.len()).map(|r| plan.row(r) as i64 / width as i64).collect();
        let axis = Axis { outer: 1, n: dst.len() / width, inner: width };
        return index_add(dst, axis, &rows, false, values, 1.0).expect("a plan's rows lie inside its array");
    }
    for row in 0..plan.before.len() * plan.index.len() {
        let base = plan.row(row);
        let at = |i: usize| if scalar { values[0] } else { values[row * width + i] };
        if plan.dense && !accumulate && !scalar {
            dst[base as usize..base as usize + width].copy_from_slice(&values[row * width..(row + 1) * width]);
            continue;
        }
        for (i, &a) in plan.after.iter().enumerate() {
            let d = &mut dst[(base + a) as usize];
            *d = if accumulate { T::narrow(d.widen() + at(i).widen()) } else { at(i) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn middle_axes_and_separated_axes() {
        // x has shape [2, 3, 2, 2]; x[:, [2, 0], [1, 0]] has shape [2, 2, 2].
        let x: Vec<i32> = (0..24).collect();
        let (shape, strides) = ([2, 3, 2, 2], [12, 4, 2, 1]);
        let plan = IndexPlan::new(&shape, &strides, &[1, 2], &[&[2, 0], &[1, -2]], 1).unwrap();
        let mut y = vec![0; plan.len()];
        index_get(View::contiguous(&x, &shape, &strides), &plan, &mut y);
        assert_eq!(y, [10, 11, 0, 1, 22, 23, 12, 13]);
        // x[[1, 0], :, [0, 1]] has shape [2, 3, 2]: the index goes first.
        let plan = IndexPlan::new(&shape, &strides, &[0, 2], &[&[1, 0], &[0, 1]], 0).unwrap();
        let mut y = vec![0; plan.len()];
        index_get(View::contiguous(&x, &shape, &strides), &plan, &mut y);
        assert_eq!(y, [12, 13, 16, 17, 20, 21, 2, 3, 6, 7, 10, 11]);
    }

    #[test]
    fn transposed_source() {
        // The transpose of [[0, 1, 2], [3, 4, 5]], rows 2 and 0.
        let x: Vec<i32> = (0..6).collect();
        let (shape, strides) = ([3, 2], [1, 3]);
        let plan = IndexPlan::new(&shape, &strides, &[0], &[&[2, 0]], 0).unwrap();
        let mut y = vec![0; 4];
        index_get(View { data: &x, shape: &shape, strides: &strides, offset: 0 }, &plan, &mut y);
        assert_eq!(y, [2, 5, 0, 3]);
    }

    #[test]
    fn put_and_accumulate() {
        let mut d = [0f32; 6];
        let plan = IndexPlan::new(&[3, 2], &[2, 1], &[0], &[&[1, 1, -1]], 0).unwrap();
        index_put(&mut d, &plan, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], true);
        assert_eq!(d, [0.0, 0.0, 4.0, 6.0, 5.0, 6.0]);
        index_put(&mut d, &plan, &[7.0], false);
        assert_eq!(d, [0.0, 0.0, 7.0, 7.0, 7.0, 7.0]);
        let e = IndexPlan::new(&[3, 2], &[2, 1], &[0, 1], &[&[1, 1], &[0, 2]], 0).unwrap_err();
        assert_eq!(e, BadIndex { position: 1, value: 2, limit: 2 });
    }
}
