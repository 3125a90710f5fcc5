//! Whole rows by one index: index_select, index_add, embedding.

use super::{BadIndex, Num, at, check};
use crate::shared::Shared;
use crate::simd::simd_fn;
use crate::sort::{Axis, order_of_indices};
use crate::{DType, Element, parallel};
use sampan_macros::by_dtype;
use std::ops::Range;

/// Elements copied per task.
const CHUNK: usize = 1 << 15;

/// Rows `idx` along the axis: `dst` is `outer × idx.len() × inner`.
#[by_dtype(T in bytes)]
pub fn index_select<T: Element>(x: &[T], axis: Axis, idx: &[i64], wrap: bool, dst: &mut [T]) -> Result<(), BadIndex> {
    check(idx, axis.n, wrap)?;
    copy_rows(x, axis, idx, dst, |_, _| true);
    Ok(())
}

/// Copies rows for which `keep(position, index)`, clears the others.
fn copy_rows<T: Element>(
    x: &[T],
    axis: Axis,
    idx: &[i64],
    dst: &mut [T],
    keep: impl Fn(usize, i64) -> bool + Sync + Send,
) {
    let Axis { outer, n, inner } = axis;
    let k = idx.len();
    assert_eq!(dst.len(), outer * k * inner);
    if dst.is_empty() {
        return;
    }
    let rows = (CHUNK / inner).max(1);
    parallel::for_each_chunk_mut(dst, rows * inner, 1, |c, piece| {
        for (r, row) in piece.chunks_exact_mut(inner).enumerate() {
            let line = c * rows + r;
            let (o, j) = if outer == 1 { (0, line) } else { (line / k, line % k) };
            if keep(j, idx[j]) {
                let from = (o * n + at(idx[j], n)) * inner;
                row.copy_from_slice(&x[from..from + inner]);
            } else {
                row.fill(T::default());
            }
        }
    });
}

/// Positions of equal indices side by side, in order: `(row, range into order)` for each row in use, ascending.
struct Runs {
    order: Vec<usize>,
    runs: Vec<(usize, Range<usize>)>,
}

impl Runs {
    fn new(idx: &[i64], n: usize) -> Runs {
        if n <= 8 * idx.len() && n <= u32::MAX as usize {
            return Runs::counted(idx, n);
        }
        let keys: Vec<i64> = idx.iter().map(|&i| at(i, n) as i64).collect();
        let order = order_of_indices(&keys);
        let mut start = 0;
        let runs = order
            .chunk_by(|&a, &b| keys[a] == keys[b])
            .map(|run| {
                start += run.len();
                (keys[run[0]] as usize, start - run.len()..start)
            })
            .collect();
        Runs { order, runs }
    }

    /// By counting, where there are not many more rows than indices.
    fn counted(idx: &[i64], n: usize) -> Runs {
        let mut counts = vec![0u32; n];
        idx.iter().for_each(|&i| counts[at(i, n)] += 1);
        let mut runs = Vec::with_capacity(n.min(idx.len()));
        let mut start = 0;
        for (row, count) in counts.iter_mut().enumerate() {
            let end = start + *count as usize;
            if end > start {
                runs.push((row, start..end));
            }
            *count = start as u32;
            start = end;
        }
        let mut order = vec![0; idx.len()];
        for (j, &i) in idx.iter().enumerate() {
            let next = &mut counts[at(i, n)];
            order[*next as usize] = j;
            *next += 1;
        }
        Runs { order, runs }
    }
}

/// Adds `alpha` times rows of `src` onto `row`, in order, in the accumulator's precision.
fn add_rows<T: Num>(row: &mut [T], src: &[T], positions: &[usize], alpha: T::Acc) {
    let width = row.len();
    if let [p] = positions {
        for (d, s) in row.iter_mut().zip(&src[p * width..]) {
            *d = T::narrow(d.widen() + s.widen() * alpha);
        }
        return;
    }
    // A strip at a time keeps the sums in registers and near memory.
    const STRIP: usize = 64;
    for (c, strip) in row.chunks_mut(STRIP).enumerate() {
        let mut sums = [T::count(0); STRIP];
        let sums = &mut sums[..strip.len()];
        sums.iter_mut().zip(&*strip).for_each(|(a, d)| *a = d.widen());
        for p in positions {
            let from = &src[p * width + c * STRIP..][..strip.len()];
            sums.iter_mut().zip(from).for_each(|(a, s)| *a = *a + s.widen() * alpha);
        }
        strip.iter_mut().zip(&*sums).for_each(|(d, a)| *d = T::narrow(*a));
    }
}

/// Elements of the destination that belong to a task of [`add_positions`].
const PART: usize = 1 << 15;
/// The most tasks it is cut into.
const PARTS: usize = 256;

/// Positions by the part of the destination that they add to, in order within each: `order[starts[p]..starts[p + 1]]`.
struct Parts {
    /// A part is `1 << shift` rows.
    shift: u32,
    order: Vec<u32>,
    starts: Vec<u32>,
}

impl Parts {
    fn new(idx: &[i64], n: usize, inner: usize) -> Parts {
        let rows = (PART / inner.max(1)).max(n.div_ceil(PARTS)).max(1);
        let shift = rows.next_power_of_two().ilog2();
        let mut starts = vec![0u32; (n >> shift) + 2];
        idx.iter().for_each(|&i| starts[(at(i, n) >> shift) + 1] += 1);
        (1..starts.len()).for_each(|p| starts[p] += starts[p - 1]);
        let mut next = starts.clone();
        let mut order = vec![0u32; idx.len()];
        for (j, &i) in idx.iter().enumerate() {
            let next = &mut next[at(i, n) >> shift];
            order[*next as usize] = j as u32;
            *next += 1;
        }
        Parts { shift, order, starts }
    }
}

simd_fn! {
    /// Adds `alpha` times the rows `positions` of `src` onto rows of `part`, which begins with row `first`.
    fn add_positions[T: Num](
        part: &'a mut [T], first: usize, axis: Axis, idx: &'a [i64], positions: &'a [u32], src: &'a [T], alpha: T::Acc,
        skip: Option<usize>
    ) {
        let Axis { n, inner, .. } = axis;
        for &j in positions {
            let row = at(idx[j as usize], n);
            if Some(row) == skip {
                continue;
            }
            let to = &mut part[(row - first) * inner..][..inner];
            let from = &src[j as usize * inner..][..inner];
            for (d, s) in to.iter_mut().zip(from) {
                *d = T::narrow(d.widen() + s.widen() * alpha);
            }
        }
    }
}

/// `dst[idx[j]] += alpha · src[j]` for rows, duplicates in order of `j`; what goes to row `skip` is left out. Each task has
/// a part of the destination for itself.
fn add_rows_at<T: Num>(dst: &mut [T], axis: Axis, idx: &[i64], src: &[T], alpha: T::Acc, skip: Option<usize>) {
    // Sums of the narrow types are formed in a wider one, which needs the positions of a row side by side.
    let narrow = matches!(T::DTYPE, DType::Float16 | DType::BFloat16 | DType::Bool);
    if narrow || axis.outer != 1 || idx.len() > u32::MAX as usize {
        let mut runs = Runs::new(idx, axis.n);
        runs.runs.retain(|(row, _)| Some(*row) != skip);
        return add_runs(dst, axis, idx.len(), &runs, src, alpha);
    }
    if !parallel::worth_it(src.len()) {
        let all: Vec<u32> = (0..idx.len() as u32).collect();
        return add_positions(dst, 0, axis, idx, &all, src, alpha, skip);
    }
    let parts = Parts::new(idx, axis.n, axis.inner);
    let len = axis.inner << parts.shift;
    let cost = (src.len() / dst.len()).max(1);
    parallel::for_each_chunk_mut(&mut dst[..axis.n * axis.inner], len, cost, |p, part| {
        let positions = &parts.order[parts.starts[p] as usize..parts.starts[p + 1] as usize];
        add_positions(part, p << parts.shift, axis, idx, positions, src, alpha, skip);
    });
}

fn add_runs<T: Num>(dst: &mut [T], axis: Axis, k: usize, runs: &Runs, src: &[T], alpha: T::Acc) {
    let Axis { outer, n, inner } = axis;
    let each = |row: &mut [T], src: &[T], range: &Range<usize>| {
        add_rows(row, src, &runs.order[range.clone()], alpha);
    };
    if outer == 1 {
        assert!(runs.runs.last().is_none_or(|(row, _)| (row + 1) * inner <= dst.len()), "rows inside the destination");
        let cost = (k * inner / runs.runs.len().max(1)).max(1);
        let dst = Shared::new(dst);
        parallel::for_each_range(runs.runs.len(), (CHUNK / cost).max(1), cost, |piece| {
            for (row, range) in &runs.runs[piece] {
                // SAFETY: the rows of runs ascend, so each is another one, and the last was found inside `dst`.
                let row = unsafe { std::slice::from_raw_parts_mut(dst.get().add(row * inner), inner) };
                each(row, src, range);
            }
        });
    } else {
        parallel::for_each_chunk_mut(dst, n * inner, (k / n).max(1), |o, slab| {
            let src = &src[o * k * inner..(o + 1) * k * inner];
            for (row, range) in &runs.runs {
                each(&mut slab[row * inner..(row + 1) * inner], src, range);
            }
        });
    }
}

/// `dst[:, idx[j], :] += alpha · src[:, j, :]`, duplicates in order of `j`.
#[by_dtype(T in any)]
pub fn index_add<T: Num>(
    dst: &mut [T],
    axis: Axis,
    idx: &[i64],
    wrap: bool,
    src: &[T],
    alpha: f64,
) -> Result<(), BadIndex> {
    check(idx, axis.n, wrap)?;
    assert_eq!(src.len(), axis.outer * idx.len() * axis.inner);
    if !src.is_empty() {
        add_rows_at(dst, axis, idx, src, T::from_f64(alpha).widen(), None);
    }
    Ok(())
}

/// Rows of `weight` (`rows × width`) for each id; the row `padding` reads as zeros.
#[by_dtype(T in bytes)]
pub fn embedding<T: Element>(
    weight: &[T],
    width: usize,
    ids: &[i64],
    padding: Option<i64>,
    dst: &mut [T],
) -> Result<(), BadIndex> {
    let axis = Axis { outer: 1, n: weight.len() / width.max(1), inner: width };
    check(ids, axis.n, false)?;
    copy_rows(weight, axis, ids, dst, |_, id| Some(id) != padding);
    Ok(())
}

/// Adds the gradient of [`embedding`] onto `grad_weight`: only rows in use are touched, the padding row never.
#[by_dtype(T in real)]
pub fn embedding_grad<T: Num>(
    grad_weight: &mut [T],
    width: usize,
    ids: &[i64],
    padding: Option<i64>,
    grad: &[T],
) -> Result<(), BadIndex> {
    let axis = Axis { outer: 1, n: grad_weight.len() / width.max(1), inner: width };
    check(ids, axis.n, false)?;
    assert_eq!(grad.len(), ids.len() * width);
    if !grad.is_empty() {
        let skip = padding.and_then(|row| usize::try_from(row).ok());
        add_rows_at(grad_weight, axis, ids, grad, T::count(1), skip);
    }
    Ok(())
}

/// Turns `m` index tuples of length `d` (`idx` is `m × d`) over the first `d` axes of `shape` into row numbers; the
/// rows have `shape[d..].product()` elements. With it `gather_nd` is [`index_select`] and `scatter_nd_add` is
/// [`index_add`] on `Axis { outer: 1, n: shape[..d].product(), inner: shape[d..].product() }`.
pub fn flatten_nd(idx: &[i64], shape: &[usize], d: usize, m: usize, wrap: bool) -> Result<Vec<i64>, BadIndex> {
    assert_eq!(idx.len(), m * d);
    let mut rows = vec![0i64; m];
    for (r, row) in rows.iter_mut().enumerate() {
        for (a, &n) in shape[..d].iter().enumerate() {
            let position = r * d + a;
            check(&idx[position..=position], n, wrap).map_err(|e| BadIndex { position, ..e })?;
            *row = *row * n as i64 + at(idx[position], n) as i64;
        }
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn select_and_add_are_transposes() {
        let axis = Axis { outer: 2, n: 3, inner: 2 };
        let x: Vec<i32> = (0..12).collect();
        let mut y = vec![0; 16];
        index_select_of(&x, axis, &[2, 0, -1, 1], true, &mut y).unwrap();
        assert_eq!(y, [4, 5, 0, 1, 4, 5, 2, 3, 10, 11, 6, 7, 10, 11, 8, 9]);
        let mut g = vec![100; 12];
        index_add_of(&mut g, axis, &[2, 0, -1, 1], true, &y, 1.0).unwrap();
        assert_eq!(g, [100, 101, 102, 103, 108, 110, 106, 107, 108, 109, 120, 122]);
        let e = index_select_of(&x, axis, &[0, 3], true, &mut y).unwrap_err();
        assert_eq!(e, BadIndex { position: 1, value: 3, limit: 3 });
        assert!(index_select_of(&x, axis, &[-1], false, &mut y).is_err());
    }

    #[test]
    fn duplicates_have_the_same_bits_for_any_threads() {
        // Many indices to a row in one part, and few to each in several.
        for (n, k, width) in [(50, 5000, 70), (3000, 5000, 70), (70_000, 40_000, 1)] {
            let (mut idx, mut src) = (vec![0i64; k], vec![0f32; k * width]);
            crate::rng::randint(1, 0, idx.as_mut_slice().into(), -(n as i64), n as i64);
            crate::rng::normal(1, 0, src.as_mut_slice().into(), 0.0, 1.0);
            let mut want = vec![0f32; n * width];
            for (j, &i) in idx.iter().enumerate() {
                for c in 0..width {
                    want[at(i, n) * width + c] += src[j * width + c];
                }
            }
            let axis = Axis { outer: 1, n, inner: width };
            let before = parallel::num_threads();
            for threads in [1, 4] {
                parallel::set_num_threads(threads);
                let mut got = vec![0f32; n * width];
                index_add_of(&mut got, axis, &idx, true, &src, 1.0).unwrap();
                assert_eq!(got, want);
            }
            parallel::set_num_threads(before);
        }
    }

    #[test]
    fn embedding_keeps_padding_still() {
        let w: Vec<f32> = (0..8).map(|v| v as f32).collect();
        let ids = [3, 1, 3, 0];
        let mut y = [9f32; 8];
        embedding_of(&w, 2, &ids, Some(1), &mut y).unwrap();
        assert_eq!(y, [6.0, 7.0, 0.0, 0.0, 6.0, 7.0, 0.0, 1.0]);
        let mut g = [0f32; 8];
        embedding_grad_of(&mut g, 2, &ids, Some(1), &[1.0; 8]).unwrap();
        assert_eq!(g, [1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 2.0, 2.0]);
        assert!(embedding_of(&w, 2, &[4], None, &mut [0f32; 2]).is_err());
    }

    #[test]
    fn nd_and_half() {
        assert_eq!(flatten_nd(&[1, 2, 0, -1], &[2, 3, 4], 2, 2, true), Ok(vec![5, 2]));
        assert_eq!(
            flatten_nd(&[1, 2, 0, 3], &[2, 3, 4], 2, 2, true),
            Err(BadIndex { position: 3, value: 3, limit: 3 })
        );
        let mut h = [crate::f16::ZERO];
        let ones = vec![crate::f16::from_f32(1.0); 4096];
        index_add_of(&mut h, Axis { outer: 1, n: 1, inner: 1 }, &[0; 4096], false, &ones, 1.0).unwrap();
        assert_eq!(h[0].to_f32(), 4096.0);
    }
}
