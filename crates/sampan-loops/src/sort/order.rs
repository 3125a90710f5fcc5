//! Sorting and selecting along one axis.

use super::{Packed, flip_mask, key, key_bits, pack_all, sort_packed, with_packed};
use crate::simd::simd_fn;
use crate::{Ordered, parallel};
use sampan_macros::by_dtype;

/// Contiguous data seen along one axis: `outer × n × inner` elements, the axis in the middle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Axis {
    /// Product of the extents before the axis.
    pub outer: usize,
    /// Extent of the axis.
    pub n: usize,
    /// Product of the extents after the axis.
    pub inner: usize,
}

impl Axis {
    /// Splits a shape at an axis.
    pub fn of(shape: &[usize], axis: usize) -> Axis {
        let product = |s: &[usize]| s.iter().product();
        Axis { outer: product(&shape[..axis]), n: shape[axis], inner: product(&shape[axis + 1..]) }
    }

    /// Lines along the axis.
    pub fn lines(&self) -> usize {
        self.outer * self.inner
    }

    /// The elements of one line.
    pub(crate) fn line<'a, T: Copy>(&self, x: &'a [T], line: usize) -> impl Iterator<Item = T> + 'a {
        let start = line / self.inner * self.n * self.inner + line % self.inner;
        let (n, inner) = (self.n, self.inner);
        (0..n).map(move |j| x[start + j * inner])
    }
}

/// Fills `k` results for each line; `f(line, out)` gets them one after the other, they are then laid along the axis.
fn per_line<R: Copy + Default + Send + Sync>(
    axis: Axis,
    k: usize,
    dst: &mut [R],
    f: impl Fn(usize, &mut [R]) + Sync + Send,
) {
    assert_eq!(dst.len(), axis.lines() * k);
    if dst.is_empty() {
        return;
    }
    let cost = (8 * axis.n / k).max(1);
    if axis.inner == 1 {
        return parallel::for_each_chunk_mut(dst, k, cost, f);
    }
    let mut lines = vec![R::default(); dst.len()];
    parallel::for_each_chunk_mut(&mut lines, k, cost, f);
    parallel::for_each_chunk_mut(dst, k * axis.inner, 1, |o, slab| {
        for (j, row) in slab.chunks_mut(axis.inner).enumerate() {
            for (i, v) in row.iter_mut().enumerate() {
                *v = lines[(o * axis.inner + i) * k + j];
            }
        }
    });
}

/// Values at positions along the axis: `k` of them for each line.
fn take<T: Ordered>(x: &[T], axis: Axis, k: usize, indices: &[i64], values: &mut [T]) {
    if values.is_empty() {
        return;
    }
    assert_eq!(values.len(), indices.len());
    let inner = axis.inner;
    if inner == 1 {
        const CHUNK: usize = 1 << 14;
        return parallel::for_each_chunk_mut(values, CHUNK, 4, |c, mut piece| {
            let mut at = c * CHUNK;
            // A piece may hold the end of one line and the start of the next.
            while !piece.is_empty() {
                let (line, left) = (at / k, k - at % k);
                let (now, later) = piece.split_at_mut(left.min(piece.len()));
                let x = &x[line * axis.n..(line + 1) * axis.n];
                now.iter_mut().zip(&indices[at..]).for_each(|(v, &p)| *v = x[p as usize]);
                at += now.len();
                piece = later;
            }
        });
    }
    parallel::for_each_chunk_mut(values, inner * k, 2, |o, slab| {
        let x = &x[o * axis.n * inner..(o + 1) * axis.n * inner];
        let idx = &indices[o * k * inner..(o + 1) * k * inner];
        for (rv, ri) in slab.chunks_mut(inner).zip(idx.chunks(inner)) {
            for (i, (v, &p)) in rv.iter_mut().zip(ri).enumerate() {
                *v = x[p as usize * inner + i];
            }
        }
    });
}

/// Positions that would sort each line; stable.
#[by_dtype(T in real)]
pub fn argsort<T: Ordered>(x: &[T], axis: Axis, descending: bool, indices: &mut [i64]) {
    per_line(axis, axis.n, indices, |line, out| {
        with_packed!(T, axis.n, P => {
            let mut pairs: Vec<P> = pack_all(axis.line(x, line), descending);
            sort_packed(&mut pairs, key_bits::<T>());
            for (o, p) in out.iter_mut().zip(pairs) {
                *o = p.position() as i64;
            }
        })
    });
}

/// Each line in order, with the positions the values came from; stable.
#[by_dtype(T in real)]
pub fn sort<T: Ordered>(x: &[T], axis: Axis, descending: bool, values: &mut [T], indices: &mut [i64]) {
    argsort_of(x, axis, descending, indices);
    take(x, axis, axis.n, indices, values);
}

/// Up to one in so many is picked by keeping the best in hand while the line passes.
const FEW: usize = 32;
/// Pairs that are looked at together.
const GLANCE: usize = 32;

/// The `k` smallest pairs in order. The further the walk, the rarer a pair that belongs among them: most blocks pass with
/// one comparison.
fn first_few<P: Packed>(pairs: &[P], k: usize) -> Vec<P> {
    let (first, rest) = pairs.split_at(k);
    let mut best = first.to_vec();
    best.sort_unstable();
    for block in rest.chunks(GLANCE) {
        if k == 0 || least(block) > best[k - 1] {
            continue;
        }
        for &p in block {
            if p < best[k - 1] {
                let at = best.partition_point(|&b| b < p);
                best.copy_within(at..k - 1, at + 1);
                best[at] = p;
            }
        }
    }
    best
}

simd_fn! {
    fn least[P: Packed](block: &'a [P]) -> P {
        block.iter().fold(block[0], |m, &p| if p < m { p } else { m })
    }
}

simd_fn! {
    /// [`pack_all`] of a row, as vectors.
    fn pack_row[T: Ordered, P: Packed](x: &'a [T], flip: bool) -> Vec<P> {
        let mask = flip_mask::<T>(flip);
        let mut pairs = vec![P::pack(0, 0); x.len()];
        for (i, (pair, &v)) in pairs.iter_mut().zip(x).enumerate() {
            *pair = P::pack(key(v) ^ mask, i);
        }
        pairs
    }
}

/// The `k` largest (or smallest) of each line, best first, with their positions; of equals the first comes first. The
/// order is always the sorted one, which `sorted = false` allows too.
#[by_dtype(T in real)]
pub fn topk<T: Ordered>(x: &[T], axis: Axis, k: usize, largest: bool, values: &mut [T], indices: &mut [i64]) {
    per_line(axis, k, indices, |line, out| {
        with_packed!(T, axis.n, P => {
            let mut pairs: Vec<P> = match axis.inner {
                1 => pack_row(&x[line * axis.n..][..axis.n], largest),
                _ => pack_all(axis.line(x, line), largest),
            };
            if k < pairs.len() {
                if k * FEW <= pairs.len() {
                    pairs = first_few(&pairs, k);
                } else {
                    pairs.select_nth_unstable(k);
                    pairs.truncate(k);
                }
            }
            pairs.sort_unstable();
            for (o, p) in out.iter_mut().zip(pairs) {
                *o = p.position() as i64;
            }
        })
    });
    take(x, axis, k, indices, values);
}

/// The `k`-th smallest of each line (`k` counts from 1) and its position.
#[by_dtype(T in real)]
pub fn kthvalue<T: Ordered>(x: &[T], axis: Axis, k: usize, values: &mut [T], indices: &mut [i64]) {
    per_line(axis, 1, indices, |line, out| {
        with_packed!(T, axis.n, P => {
            let mut pairs: Vec<P> = pack_all(axis.line(x, line), false);
            out[0] = pairs.select_nth_unstable(k - 1).1.position() as i64;
        })
    });
    take(x, axis, 1, indices, values);
}

/// The most frequent value of each line, the smallest of several, and its last position (as Paddle gives it).
#[by_dtype(T in real)]
pub fn mode<T: Ordered>(x: &[T], axis: Axis, values: &mut [T], indices: &mut [i64]) {
    per_line(axis, 1, indices, |line, out| {
        with_packed!(T, axis.n, P => {
            let mut pairs: Vec<P> = pack_all(axis.line(x, line), false);
            sort_packed(&mut pairs, key_bits::<T>());
            let mut best = 0;
            for run in pairs.chunk_by(|a, b| a.key() == b.key()) {
                if run.len() > best {
                    best = run.len();
                    out[0] = run[run.len() - 1].position() as i64;
                }
            }
        })
    });
    take(x, axis, 1, indices, values);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Element;

    const LINE: Axis = Axis { outer: 1, n: 6, inner: 1 };
    const X: [f32; 6] = [3.0, f32::NAN, 1.0, 2.0, f32::NEG_INFINITY, f32::INFINITY];

    #[test]
    fn a_few_of_many_are_the_first_of_all() {
        let mut x: Vec<f32> = (0..1500).map(|i| (i * 7919 % 101) as f32).collect();
        (x[3], x[700]) = (f32::NAN, -0.0);
        let axis = Axis { outer: 2, n: 750, inner: 1 };
        for (k, largest) in [(1, true), (10, true), (10, false), (23, false)] {
            let (mut v, mut i, mut order) = (vec![0.0; 2 * k], vec![0; 2 * k], vec![0; x.len()]);
            topk_of(&x, axis, k, largest, &mut v, &mut i);
            argsort_of(&x, axis, largest, &mut order);
            assert!(i[..k] == order[..k] && i[k..] == order[750..750 + k], "{k} {largest}");
        }
    }

    #[test]
    fn nan_is_last_or_first() {
        let (mut v, mut i) = ([0f32; 6], [0; 6]);
        sort_of(&X, LINE, false, &mut v, &mut i);
        assert_eq!(i, [4, 2, 3, 0, 5, 1]);
        assert!(v[5].is_nan() && v[0] == f32::NEG_INFINITY);
        argsort_of(&X, LINE, true, &mut i);
        assert_eq!(i, [1, 5, 0, 3, 2, 4]);
        let (mut v, mut i) = ([0f32; 3], [0; 3]);
        topk_of(&X, LINE, 3, true, &mut v, &mut i);
        assert_eq!(i, [1, 5, 0]);
        topk_of(&X, LINE, 3, false, &mut v, &mut i);
        assert_eq!((i, v), ([4, 2, 3], [f32::NEG_INFINITY, 1.0, 2.0]));
        let (mut v, mut i) = ([0f32], [0]);
        kthvalue_of(&X, LINE, 4, &mut v, &mut i);
        assert_eq!((i, v), ([0], [3.0]));
    }

    #[test]
    fn stable_both_ways() {
        let x = [1i32, 1, 1, 2, 2];
        let axis = Axis { outer: 1, n: 5, inner: 1 };
        let mut i = [0; 5];
        argsort_of(&x, axis, true, &mut i);
        assert_eq!(i, [3, 4, 0, 1, 2]);
        argsort_of(&x, axis, false, &mut i);
        assert_eq!(i, [0, 1, 2, 3, 4]);
    }

    #[test]
    fn along_a_middle_axis() {
        // Shape [2, 3, 2].
        let x = [3i64, 30, 1, 10, 2, 20, 5, 60, 6, 50, 4, 40];
        let axis = Axis::of(&[2, 3, 2], 1);
        let (mut v, mut i) = ([0; 12], [0; 12]);
        sort_of(&x, axis, false, &mut v, &mut i);
        assert_eq!(v, [1, 10, 2, 20, 3, 30, 4, 40, 5, 50, 6, 60]);
        assert_eq!(i, [1, 1, 2, 2, 0, 0, 2, 2, 0, 1, 1, 0]);
        let (mut v, mut i) = ([0; 4], [0; 4]);
        topk_of(&x, axis, 1, true, &mut v, &mut i);
        assert_eq!((v, i), ([3, 30, 6, 60], [0, 0, 1, 0]));
    }

    #[test]
    fn many_short_lines() {
        let axis = Axis { outer: 9000, n: 5, inner: 1 };
        let mut x = vec![0i32; 45_000];
        crate::rng::randint(2, 0, x.as_mut_slice().into(), 0, 1000);
        let (mut v, mut i) = (vec![0; 45_000], vec![0; 45_000]);
        sort_of(&x, axis, true, &mut v, &mut i);
        for (line, sorted) in x.chunks_mut(5).zip(v.chunks(5)) {
            line.sort_by(|a, b| b.cmp(a));
            assert_eq!(line, sorted);
        }
    }

    #[test]
    fn mode_is_smallest_and_last() {
        let x = [2f64, 2.0, 3.0, 3.0, 1.0, 1.0, 0.0, 1.0, 0.0, 5.0];
        let (mut v, mut i) = ([0.0; 2], [0; 2]);
        mode_of(&x, Axis { outer: 2, n: 5, inner: 1 }, &mut v, &mut i);
        assert_eq!((v, i), ([2.0, 0.0], [1, 3]));
    }

    #[test]
    fn every_dtype_against_the_library() {
        for dtype in crate::DType::ALL.into_iter().filter(|d| !d.is_complex()) {
            crate::match_dtype!(dtype, T => {
                let mut raw = vec![0i64; 4000];
                crate::rng::randint(5, 0, raw.as_mut_slice().into(), -120, 120);
                let x: Vec<T> = raw.iter().map(|&v| T::from_i64(v)).collect();
                let axis = Axis { outer: 1, n: x.len(), inner: 1 };
                let (mut v, mut i) = (vec![T::default(); x.len()], vec![0; x.len()]);
                sort_of(&x, axis, false, &mut v, &mut i);
                let mut want: Vec<usize> = (0..x.len()).collect();
                want.sort_by(|&a, &b| x[a].to_f64().total_cmp(&x[b].to_f64()));
                assert!(i.iter().zip(&want).all(|(&a, &b)| a as usize == b), "{dtype}");
                assert!(v.windows(2).all(|w| w[0].to_f64() <= w[1].to_f64()), "{dtype}");
            });
        }
    }
}
