//! Several index tensors at once: `x[:, i, j]` and its assignment.

use super::{BadIndex, Num, at, check, rows::index_add_of};
use crate::sort::Axis;
use crate::view::is_contiguous;
use crate::{Element, View, parallel};
use sampan_macros::by_dtype;

/// Offsets of an indexing expression, worked out once. The result has the extents `before × count × after`: the axes
/// left alone that come before the place of the index, the index itself, and the axes left alone after it.
#[derive(Debug)]
pub struct IndexPlan {
    before: Vec<isize>,
    index: Vec<isize>,
    width: usize,
    /// Offsets within a row; none where they are `0..width`.
    after: Option<Vec<isize>>,
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
        let pick = |axes: &[usize]| axes.iter().map(|&a| (shape[a], strides[a])).unzip::<_, _, Vec<_>, Vec<_>>();
        let (row_shape, row_strides) = pick(&rest[place..]);
        let dense = is_contiguous(&row_shape, &row_strides);
        Ok(IndexPlan {
            before: offsets(&rest[..place]),
            index,
            width: row_shape.iter().product(),
            after: (!dense).then(|| offsets(&rest[place..])),
        })
    }

    /// Elements of the result.
    pub fn len(&self) -> usize {
        self.before.len() * self.index.len() * self.width
    }

    /// Has the result no elements?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Offsets of the rows from number `first` on.
    fn rows(&self, first: usize) -> impl Iterator<Item = isize> {
        let count = self.index.len();
        let head = self.before[first / count];
        let first_run = self.index[first % count..].iter().map(move |i| head + i);
        let others = self.before[first / count + 1..].iter();
        first_run.chain(others.flat_map(move |&b| self.index.iter().map(move |i| b + i)))
    }
}

/// Reads the elements of a plan made for `x`'s shape and strides.
#[by_dtype(T in bytes)]
pub fn index_get<T: Element>(x: View<'_, T>, plan: &IndexPlan, dst: &mut [T]) {
    assert_eq!(dst.len(), plan.len());
    if dst.is_empty() {
        return;
    }
    let width = plan.width;
    let rows = ((1 << 14) / width).max(1);
    let origin = x.offset as isize;
    parallel::for_each_chunk_mut(dst, rows * width, 2, |c, piece| {
        let bases = plan.rows(c * rows).map(|o| origin + o);
        match &plan.after {
            None if width == 1 => piece.iter_mut().zip(bases).for_each(|(o, base)| *o = x.data[base as usize]),
            None => {
                for (out, base) in piece.chunks_mut(width).zip(bases) {
                    out.copy_from_slice(&x.data[base as usize..base as usize + width]);
                }
            }
            Some(after) => {
                for (out, base) in piece.chunks_mut(width).zip(bases) {
                    out.iter_mut().zip(after).for_each(|(o, &a)| *o = x.data[(base + a) as usize]);
                }
            }
        }
    });
}

/// Writes `values` to the elements of a plan made for an array that starts at `dst[origin]`. They are the result's
/// elements or just one; of duplicates the last one written stays.
#[by_dtype(T in bytes)]
pub fn index_put<T: Element>(dst: &mut [T], origin: usize, plan: &IndexPlan, values: &[T]) {
    assert!(values.len() == 1 || values.len() == plan.len());
    if plan.is_empty() {
        return;
    }
    let (width, one) = (plan.width, values.len() == 1);
    for (row, base) in plan.rows(0).enumerate() {
        let base = origin as isize + base;
        match &plan.after {
            None => {
                let target = &mut dst[base as usize..base as usize + width];
                if one { target.fill(values[0]) } else { target.copy_from_slice(&values[row * width..][..width]) }
            }
            Some(after) => {
                for (i, &a) in after.iter().enumerate() {
                    dst[(base + a) as usize] = if one { values[0] } else { values[row * width + i] };
                }
            }
        }
    }
}

/// Writes one value to all elements of a plan made for an array that starts at `dst[origin]`.
#[by_dtype(T in bytes)]
pub fn index_fill<T: Element>(dst: &mut [T], origin: usize, plan: &IndexPlan, value: T) {
    index_put_of(dst, origin, plan, &[value]);
}

/// Adds `values` (the result's elements) to the elements of a plan made for `dst`'s contiguous shape, duplicates in
/// order, summed in the accumulator's precision.
#[by_dtype(T in any)]
pub fn index_put_add<T: Num>(dst: &mut [T], plan: &IndexPlan, values: &[T]) {
    assert_eq!(values.len(), plan.len());
    if plan.is_empty() {
        return;
    }
    let width = plan.width;
    // A row of a contiguous array that has gaps is so many rows of single elements.
    let (rows, inner): (Vec<i64>, usize) = match &plan.after {
        None => (plan.rows(0).map(|o| o as i64 / width as i64).collect(), width),
        Some(after) => (plan.rows(0).flat_map(|o| after.iter().map(move |a| (o + a) as i64)).collect(), 1),
    };
    let axis = Axis { outer: 1, n: dst.len() / inner, inner };
    index_add_of(dst, axis, &rows, false, values, 1.0).expect("a plan's rows lie inside its array");
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
        index_get_of(View::contiguous(&x, &shape, &strides), &plan, &mut y);
        assert_eq!(y, [10, 11, 0, 1, 22, 23, 12, 13]);
        // x[[1, 0], :, [0, 1]] has shape [2, 3, 2]: the index goes first.
        let plan = IndexPlan::new(&shape, &strides, &[0, 2], &[&[1, 0], &[0, 1]], 0).unwrap();
        let mut y = vec![0; plan.len()];
        index_get_of(View::contiguous(&x, &shape, &strides), &plan, &mut y);
        assert_eq!(y, [12, 13, 16, 17, 20, 21, 2, 3, 6, 7, 10, 11]);
    }

    #[test]
    fn transposed_source() {
        // The transpose of [[0, 1, 2], [3, 4, 5]], rows 2 and 0.
        let x: Vec<i32> = (0..6).collect();
        let (shape, strides) = ([3, 2], [1, 3]);
        let plan = IndexPlan::new(&shape, &strides, &[0], &[&[2, 0]], 0).unwrap();
        let mut y = vec![0; 4];
        index_get_of(View { data: &x, shape: &shape, strides: &strides, offset: 0 }, &plan, &mut y);
        assert_eq!(y, [2, 5, 0, 3]);
    }

    #[test]
    fn put_and_accumulate() {
        let mut d = [0f32; 6];
        let plan = IndexPlan::new(&[3, 2], &[2, 1], &[0], &[&[1, 1, -1]], 0).unwrap();
        index_put_add_of(&mut d, &plan, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        assert_eq!(d, [0.0, 0.0, 4.0, 6.0, 5.0, 6.0]);
        index_put_of(&mut d, 0, &plan, &[7.0]);
        assert_eq!(d, [0.0, 0.0, 7.0, 7.0, 7.0, 7.0]);
        let e = IndexPlan::new(&[3, 2], &[2, 1], &[0, 1], &[&[1, 1], &[0, 2]], 0).unwrap_err();
        assert_eq!(e, BadIndex { position: 1, value: 2, limit: 2 });
    }

    #[test]
    fn put_through_strides_and_into_gaps() {
        // Columns of a reversed 2×3 array: rows run backwards from the second.
        let mut d = [0i32; 6];
        let plan = IndexPlan::new(&[2, 3], &[-3, 1], &[1], &[&[2, 0]], 1).unwrap();
        index_put_of(&mut d, 3, &plan, &[1, 2, 3, 4]);
        assert_eq!(d, [4, 0, 3, 2, 0, 1]);
        // x[[0, 0], :, [1, 1]] of a 2×2×2 array: the middle axis has gaps.
        let mut d = [0f32; 8];
        let plan = IndexPlan::new(&[2, 2, 2], &[4, 2, 1], &[0, 2], &[&[0, 0], &[1, 1]], 0).unwrap();
        index_put_add_of(&mut d, &plan, &[1.0, 2.0, 3.0, 4.0]);
        assert_eq!(d, [0.0, 4.0, 0.0, 6.0, 0.0, 0.0, 0.0, 0.0]);
    }
}
