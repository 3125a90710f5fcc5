//! Where the extremes lie along one axis.

use crate::nest::{check_bounds, gather};
use crate::parallel::CHUNK;
use crate::reduce::{FoldOf, Max, Min, Number, fold_row, split};
use crate::simd::simd_fn;
use crate::widen::BLOCK;
use crate::{Element, Ordered, View, parallel};
use bytemuck::Zeroable;
use sampan_macros::by_dtype;
use std::marker::PhantomData;

/// Outputs that are worked on side by side where `axis` is not the contiguous one.
const WIDTH: usize = 512;

/// Index of the largest element along `axis`: the first one, and the first NaN before any number.
#[by_dtype(T in number)]
pub fn argmax<T: Number>(src: View<'_, T>, axis: usize, dst: &mut [i64]) {
    arg(src, axis, dst, |x: T, best: T| x > best, &|x| position(x, extreme(Max(PhantomData), x)));
}

/// Index of the smallest element along `axis`: the first one, and the first NaN before any number.
#[by_dtype(T in number)]
pub fn argmin<T: Number>(src: View<'_, T>, axis: usize, dst: &mut [i64]) {
    arg(src, axis, dst, |x: T, best: T| x < best, &|x| position(x, extreme(Min(PhantomData), x)));
}

/// What a fold that chooses one of the elements chooses. Halves are widened block by block.
fn extreme<T: Number>(fold: impl FoldOf<T::Acc>, x: &[T]) -> T {
    let mut chosen = [T::zeroed()];
    if T::DTYPE == T::Acc::DTYPE {
        T::store(&[fold_row(fold, bytemuck::cast_slice(x))], &mut chosen);
        return chosen[0];
    }
    let (mut wide, mut best) = ([T::Acc::zeroed(); BLOCK], fold.init());
    for block in x.chunks(BLOCK) {
        let wide = &mut wide[..block.len()];
        T::load(block, wide);
        best = fold.join(best, fold_row(fold, wide));
    }
    T::store(&[best], &mut chosen);
    chosen[0]
}

simd_fn! {
    fn contains[T: Ordered](x: &'a [T], value: T) -> bool {
        x.iter().fold(false, |found, &v| found | (v == value))
    }
}

/// Where a value that is there lies first.
pub(crate) fn position<T: Ordered>(x: &[T], value: T) -> usize {
    if value.is_nan() {
        return x.iter().position(|v| v.is_nan()).unwrap_or(0);
    }
    // Block by block without branches, then within the block.
    let block = x.chunks(BLOCK).position(|b| contains(b, value)).unwrap_or(0) * BLOCK;
    block + x[block..].iter().position(|&v| v == value).unwrap_or(0)
}

fn arg<T: Number>(
    src: View<'_, T>,
    axis: usize,
    dst: &mut [i64],
    better: impl Fn(T, T) -> bool + Sync + Send,
    find: &(dyn Fn(&[T]) -> usize + Sync),
) {
    check_bounds(&src);
    let (n, step) = (src.shape[axis], src.strides[axis]);
    let reduced: Vec<bool> = (0..src.shape.len()).map(|i| i == axis).collect();
    let (kept, _) = split(src.shape, src.strides, &reduced);
    if dst.is_empty() {
        return;
    }
    assert!(n > 0, "arg reduction over an empty axis");
    assert_eq!(kept.len(), dst.len(), "arg reduction: the destination has another size than the kept axes");
    let columns = step != 1 && kept.rank > 0 && kept.inner_stride(0) == 1;
    let chunk = (CHUNK / n).max(if columns { 256 } else { 1 });
    parallel::for_each_chunk_mut(dst, chunk, n, |i, out| {
        let mut walk = kept.walk([src.offset], i * chunk, i * chunk + out.len());
        let mut done = 0;
        let mut best = [T::zeroed(); WIDTH];
        let mut row = Vec::new();
        while let Some((run, [at])) = walk.next_run(if columns { WIDTH } else { 1 }) {
            let out = &mut out[done..done + run];
            done += run;
            // SAFETY (each read below): `check_bounds` covered the whole view.
            if columns {
                let line = |k: usize| {
                    let from = (at + k as isize * step) as usize;
                    // SAFETY: as above.
                    unsafe { src.data.get_unchecked(from..from + run) }
                };
                best[..run].copy_from_slice(line(0));
                out.fill(0);
                for k in 1..n {
                    for ((b, o), &x) in best.iter_mut().zip(out.iter_mut()).zip(line(k)) {
                        if better(x, *b) || (x.is_nan() && !b.is_nan()) {
                            *b = x;
                            *o = k as i64;
                        }
                    }
                }
            } else if step == 1 {
                // SAFETY: as above.
                out[0] = find(unsafe { src.data.get_unchecked(at as usize..at as usize + n) }) as i64;
            } else {
                row.resize(n, T::zeroed());
                // SAFETY: as above.
                unsafe { gather(src.data, at, step, &mut row) };
                out[0] = find(&row) as i64;
            }
        }
    });
}
