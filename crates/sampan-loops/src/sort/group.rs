//! Equal things: unique, unique_consecutive; and places in sorted data.

use super::{Packed, key, key_bits, pack_all, sort_packed, with_packed};
use crate::{Bool, Ordered, parallel};
use sampan_macros::by_dtype;
use std::cmp::Ordering;

/// Rows put into groups of equals. The values of the groups are the rows at `first`.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Groups {
    /// First row of each group.
    pub first: Vec<i64>,
    /// Group of each row.
    pub inverse: Vec<i64>,
    /// Rows in each group.
    pub counts: Vec<i64>,
}

impl Groups {
    fn from_order(order: &[usize], same: impl Fn(usize, usize) -> bool) -> Groups {
        let mut groups = Groups { inverse: vec![0; order.len()], ..Groups::default() };
        for run in order.chunk_by(|&a, &b| same(a, b)) {
            for &row in run {
                groups.inverse[row] = groups.first.len() as i64;
            }
            groups.first.push(run[0] as i64);
            groups.counts.push(run.len() as i64);
        }
        groups
    }
}

fn row<T>(x: &[T], width: usize, i: usize) -> &[T] {
    &x[i * width..(i + 1) * width]
}

fn compare<T: Ordered>(a: &[T], b: &[T]) -> Ordering {
    a.iter().zip(b).map(|(&a, &b)| key(a).cmp(&key(b))).find(|o| o.is_ne()).unwrap_or(Ordering::Equal)
}

/// Groups of equal elements, in ascending order of their values; NaNs are equal, as in NumPy.
#[by_dtype(T in real)]
pub fn unique<T: Ordered>(x: &[T]) -> Groups {
    with_packed!(T, x.len(), P => {
        let mut pairs: Vec<P> = pack_all(x.iter().copied(), false);
        sort_packed(&mut pairs, key_bits::<T>());
        let order: Vec<usize> = pairs.iter().map(|p| p.position()).collect();
        Groups::from_order(&order, |a, b| key(x[a]) == key(x[b]))
    })
}

// What follows compares elements, so halves and short integers come widened.

/// Groups of equal rows (`rows × width` elements), as [`unique`] has them.
#[by_dtype(T in [i32, i64, f32, f64])]
pub fn unique_rows<T: Ordered>(x: &[T], rows: usize, width: usize) -> Groups {
    let mut order: Vec<usize> = (0..rows).collect();
    order.sort_by(|&a, &b| compare(row(x, width, a), row(x, width, b)));
    Groups::from_order(&order, |a, b| compare(row(x, width, a), row(x, width, b)).is_eq())
}

/// Groups of equal neighbours among rows (`rows × width` elements), in their own order; a NaN equals nothing.
#[by_dtype(T in [i32, i64, f32, f64])]
pub fn unique_consecutive<T: Ordered>(x: &[T], rows: usize, width: usize) -> Groups {
    let order: Vec<usize> = (0..rows).collect();
    Groups::from_order(&order, |a, b| row(x, width, a) == row(x, width, b))
}

/// Is each element among the known ones, or with `invert` not? A NaN equals nothing, not even itself.
#[by_dtype(T in [i32, i64, f32, f64])]
pub fn isin<T: Ordered>(x: &[T], known: &[T], invert: bool, dst: &mut [Bool]) {
    let mut sorted: Vec<T> = known.iter().copied().filter(|v| !v.is_nan()).collect();
    let order = |a: &T, b: &T| a.partial_cmp(b).expect("no NaN is left");
    sorted.sort_unstable_by(order);
    let found = |v: &T| !v.is_nan() && sorted.binary_search_by(|k| order(k, v)).is_ok();
    for (d, v) in dst.iter_mut().zip(x) {
        *d = Bool::from(found(v) != invert);
    }
}

/// Where each value would go in its row of sorted data: `rows` rows of `m` sorted numbers and of `q` values. One
/// sorted row serves every value when `sorted` has just `m` numbers. `right`: after equals instead of before.
#[by_dtype(T in [i32, i64, f32, f64])]
pub fn searchsorted<T: Ordered>(sorted: &[T], m: usize, values: &[T], q: usize, right: bool, dst: &mut [i64]) {
    const CHUNK: usize = 1 << 12;
    let shared = sorted.len() == m;
    parallel::for_each_chunk_mut(dst, CHUNK, 16, |c, piece| {
        for (j, d) in piece.iter_mut().enumerate() {
            let i = c * CHUNK + j;
            let line = if shared { sorted } else { row(sorted, m, i / q) };
            let k = key(values[i]);
            *d = line.partition_point(|&s| if right { key(s) <= k } else { key(s) < k }) as i64;
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unique_flat_and_rows() {
        let g = unique_of(&[2f32, f32::NAN, 1.0, f32::NAN, 2.0]);
        assert_eq!(g.first, [2, 0, 1]);
        assert_eq!(g.inverse, [1, 2, 0, 2, 1]);
        assert_eq!(g.counts, [1, 2, 2]);
        let g = unique_rows_of(&[1, 2, 0, 9, 1, 2], 3, 2);
        assert_eq!((g.first, g.inverse, g.counts), (vec![1, 0], vec![1, 0, 1], vec![1, 2]));
        let g = unique_consecutive_of(&[1, 1, 2, 2, 2, 1], 6, 1);
        assert_eq!((g.first, g.inverse, g.counts), (vec![0, 2, 5], vec![0, 0, 1, 1, 1, 2], vec![2, 3, 1]));
        assert_eq!(unique_consecutive_of(&[1, 1, 1, 1, 2, 1], 3, 2).counts, [2, 1]);
        assert_eq!(unique_of::<f32>(&[]), Groups::default());
    }

    #[test]
    fn search_left_and_right() {
        let mut d = [0i64; 4];
        let values = [2f32, f32::NAN, 9.0, 0.0];
        searchsorted_of(&[1f32, 2.0, 3.0], 3, &values, 4, false, &mut d);
        assert_eq!(d, [1, 3, 3, 0]);
        searchsorted_of(&[1f32, 2.0, 3.0], 3, &values, 4, true, &mut d);
        assert_eq!(d, [2, 3, 3, 0]);
        searchsorted_of(&[1i64, 3, 5, 2, 4, 6], 3, &[3, 6, 3, 6], 2, false, &mut d);
        assert_eq!(d, [1, 3, 1, 2]);
    }
}
