//! Filling, joining and masking whole arrays.

use crate::index::Num;
use crate::nest::{Nest, within};
use crate::parallel::{self, CHUNK};
use crate::simd::simd_fn;
use crate::vmath::Real;
use crate::{Element, Ordered};
use sampan_macros::by_dtype;

simd_fn! {
    fn add_loop[T: Real](x: &'a [T], y: &'a mut [T]) {
        for (y, &x) in y.iter_mut().zip(x) {
            *y += x;
        }
    }
}

/// `dst += src`.
#[by_dtype(T in [f32, f64])]
pub fn add_assign<T: Real>(src: &[T], dst: &mut [T]) {
    assert_eq!(src.len(), dst.len(), "sums of different lengths");
    parallel::for_each_chunk_mut(dst, CHUNK, 1, |i, y| add_loop(&src[i * CHUNK..][..y.len()], y));
}

/// Every element one value.
#[by_dtype(T in bytes)]
pub fn fill<T: Element>(dst: &mut [T], value: T) {
    parallel::for_each_chunk_mut(dst, CHUNK, 1, |_, y| y.fill(value));
}

/// `dst[i] = start + i · step`, wrapping.
#[by_dtype(T in real)]
pub fn arange_ints<T: Ordered>(dst: &mut [T], start: i64, step: i64) {
    fill_with(dst, |i| T::from_i64(start.wrapping_add(step.wrapping_mul(i as i64))));
}

/// `dst[i] = start + i · step`.
#[by_dtype(T in real)]
pub fn arange_floats<T: Ordered>(dst: &mut [T], start: f64, step: f64) {
    fill_with(dst, |i| T::from_f64(start + step * i as f64));
}

/// Evenly spaced numbers from `start` to `stop`, both included, or `base` to the power of them.
#[by_dtype(T in real)]
pub fn spaced<T: Ordered>(dst: &mut [T], start: f64, stop: f64, base: Option<f64>) {
    let n = dst.len();
    let step = if n > 1 { (stop - start) / (n - 1) as f64 } else { 0.0 };
    // From both ends, so that the last number is `stop` itself.
    let at = |i: usize| if i < n / 2 || n == 1 { start + step * i as f64 } else { stop - step * (n - 1 - i) as f64 };
    match base {
        None => fill_with(dst, |i| T::from_f64(at(i))),
        Some(base) => fill_with(dst, |i| T::from_f64(base.powf(at(i)))),
    }
}

/// `dst[i] = f(i)`.
fn fill_with<T: Element>(dst: &mut [T], f: impl Fn(usize) -> T + Sync + Send) {
    parallel::for_each_chunk_mut(dst, CHUNK, 2, |i, y| {
        y.iter_mut().enumerate().for_each(|(j, v)| *v = f(i * CHUNK + j));
    });
}

/// Writes a value on a diagonal of matrices of `cols` columns whose main diagonals have an element every `step`, the last
/// of them before `end`: `offset` places to the right, where the row goes on as far.
#[by_dtype(T in bytes)]
pub fn fill_diagonal<T: Element>(dst: &mut [T], cols: usize, step: usize, end: usize, offset: i64, value: T) {
    for at in (0..end).step_by(step) {
        let column = (at % cols) as i64;
        if (0..cols as i64).contains(&column.saturating_add(offset)) {
            dst[(at as i64 + offset) as usize] = value;
        }
    }
}

/// Rows of `n` elements, ones before each row's length and zeros from there on.
#[by_dtype(T in real)]
pub fn length_mask<T: Ordered>(dst: &mut [T], n: usize, lengths: &[f64]) {
    for (row, &len) in dst.chunks_exact_mut(n.max(1)).zip(lengths) {
        for (i, d) in row.iter_mut().enumerate() {
            *d = T::from_i64(((i as f64) < len) as i64);
        }
    }
}

/// Joins arrays along an axis with `outer` positions before it: row after row, one run of every part.
#[by_dtype(T in bytes)]
pub fn concat<T: Element>(parts: &[&[T]], outer: usize, dst: &mut [T]) {
    if dst.is_empty() {
        return;
    }
    let widths: Vec<usize> = parts.iter().map(|p| p.len() / outer).collect();
    let width: usize = widths.iter().sum();
    assert_eq!(width * outer, dst.len(), "concat: the destination has another size");
    parallel::for_each_chunk_mut(dst, CHUNK, 1, |i, y| {
        let (mut row, mut column) = (i * CHUNK / width, i * CHUNK % width);
        // The part in which this piece begins, and the place in it.
        let mut part = 0;
        while column >= widths[part] {
            column -= widths[part];
            part += 1;
        }
        let mut done = 0;
        while done < y.len() {
            let run = (widths[part] - column).min(y.len() - done);
            let from = row * widths[part] + column;
            y[done..done + run].copy_from_slice(&parts[part][from..from + run]);
            done += run;
            column = 0;
            part += 1;
            if part == parts.len() {
                part = 0;
                row += 1;
            }
        }
    });
}

/// Adds row-major values onto a strided region of `dst`, in order; elements of the region may coincide.
#[by_dtype(T in any)]
pub fn add_strided<T: Num>(src: &[T], dst: &mut [T], shape: &[usize], strides: &[isize], offset: usize) {
    assert_eq!(src.len(), shape.iter().product::<usize>(), "add: the source has another size than the region");
    if src.is_empty() {
        return;
    }
    if let Err(why) = within(dst.len(), shape, strides, offset) {
        panic!("{why}");
    }
    let nest = Nest::new(shape, [strides]);
    let stride = nest.inner_stride(0);
    let mut walk = nest.walk([offset], 0, src.len());
    let mut done = 0;
    while let Some((run, [at])) = walk.next_run(CHUNK) {
        for (j, &v) in src[done..done + run].iter().enumerate() {
            let d = &mut dst[(at + j as isize * stride) as usize];
            *d = T::narrow(d.widen() + v.widen());
        }
        done += run;
    }
}

/// Copies matrices of `rows × cols`, keeping one side of a diagonal and zeros beyond it.
#[by_dtype(T in bytes)]
pub fn triangle<T: Element>(src: &[T], dst: &mut [T], rows: usize, cols: usize, diagonal: i64, lower: bool) {
    assert_eq!(src.len(), dst.len(), "triangle: the destination has another size");
    if dst.is_empty() {
        return;
    }
    let lines = (CHUNK / cols).max(1);
    parallel::for_each_chunk_mut(dst, lines * cols, 1, |i, piece| {
        for (j, y) in piece.chunks_mut(cols).enumerate() {
            let line = i * lines + j;
            let x = &src[line * cols..(line + 1) * cols];
            let at = ((line % rows) as i64).saturating_add(diagonal);
            let kept = if lower {
                0..at.saturating_add(1).clamp(0, cols as i64) as usize
            } else {
                at.clamp(0, cols as i64) as usize..cols
            };
            y[..kept.start].fill(T::zeroed());
            y[kept.end..].fill(T::zeroed());
            y[kept.clone()].copy_from_slice(&x[kept]);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joins_rows_of_any_width() {
        for (outer, widths) in [(3, vec![2, 0, 5]), (1, vec![40_000, 3]), (700, vec![64, 1, 37]), (2, vec![0, 30_001])]
        {
            let parts: Vec<Vec<i32>> = widths
                .iter()
                .enumerate()
                .map(|(p, &w)| (0..(outer * w) as i32).map(|i| i * 10 + p as i32).collect())
                .collect();
            let slices: Vec<&[i32]> = parts.iter().map(|p| p.as_slice()).collect();
            let mut expected = Vec::new();
            for r in 0..outer {
                for (p, &w) in parts.iter().zip(&widths) {
                    expected.extend_from_slice(&p[r * w..(r + 1) * w]);
                }
            }
            let mut y = vec![0; expected.len()];
            concat_of(&slices, outer, &mut y);
            assert_eq!(y, expected);
        }
    }

    #[test]
    fn adds_where_elements_coincide() {
        let mut y = [0f32; 5];
        add_strided_of(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &mut y, &[3, 2], &[1, 1], 1);
        assert_eq!(y, [0.0, 1.0, 5.0, 9.0, 6.0]);
        let mut y = [7i64; 3];
        add_strided_of(&[], &mut y, &[0, 2], &[1, 1], 0);
        assert_eq!(y, [7; 3]);
    }

    #[test]
    fn keeps_triangles() {
        let x: Vec<i32> = (1..=12).collect();
        let mut y = vec![0; 12];
        triangle_of(&x, &mut y, 2, 3, 0, true);
        assert_eq!(y, [1, 0, 0, 4, 5, 0, 7, 0, 0, 10, 11, 0]);
        triangle_of(&x, &mut y, 2, 3, 1, false);
        assert_eq!(y, [0, 2, 3, 0, 0, 6, 0, 8, 9, 0, 0, 12]);
        triangle_of(&x, &mut y, 2, 3, i64::MAX, true);
        assert_eq!(y, x);
        triangle_of(&x, &mut y, 2, 3, i64::MIN, true);
        assert_eq!(y, [0; 12]);
    }
}
