//! Masks, diagonals and other fills by position.

use super::{BadIndex, check};
use crate::{Bool, Element, parallel};

const CHUNK: usize = 1 << 15;

/// Concatenates what `f` collects from fixed pieces of `0..len`.
fn collect<R: Send + Copy>(len: usize, f: impl Fn(usize, &mut Vec<R>) + Sync + Send) -> Vec<R> {
    let parts = parallel::map(len.div_ceil(CHUNK), CHUNK, |c| {
        let mut part = Vec::new();
        (c * CHUNK..((c + 1) * CHUNK).min(len)).for_each(|i| f(i, &mut part));
        part
    });
    parts.concat()
}

/// Coordinates of the elements that are not zero, `count × shape.len()` (one empty row per element for rank 0).
pub fn nonzero<T: Element>(x: &[T], shape: &[usize]) -> Vec<i64> {
    let zero = T::default();
    collect(x.len(), |i, out: &mut Vec<i64>| {
        if x[i] != zero {
            let end = out.len() + shape.len();
            out.resize(end, 0);
            let mut rest = i;
            for (a, &n) in shape.iter().enumerate().rev() {
                out[end - shape.len() + a] = (rest % n) as i64;
                rest /= n;
            }
        }
    })
}

/// The elements where the mask is true.
pub fn masked_select<T: Element>(x: &[T], mask: &[Bool]) -> Vec<T> {
    assert_eq!(x.len(), mask.len());
    collect(x.len(), |i, out| {
        if mask[i].get() {
            out.push(x[i]);
        }
    })
}

/// Writes `value` where the mask is true.
pub fn masked_fill<T: Element>(dst: &mut [T], mask: &[Bool], value: T) {
    assert_eq!(dst.len(), mask.len());
    parallel::for_each_chunk_mut(dst, CHUNK, 1, |c, piece| {
        for (d, m) in piece.iter_mut().zip(&mask[c * CHUNK..]) {
            *d = if m.get() { value } else { *d };
        }
    });
}

/// Writes successive values where the mask is true. If they run out: how many were needed.
pub fn masked_scatter<T: Element>(dst: &mut [T], mask: &[Bool], values: &[T]) -> Result<(), usize> {
    assert_eq!(dst.len(), mask.len());
    let needed = mask.iter().filter(|m| m.get()).count();
    if needed > values.len() {
        return Err(needed);
    }
    let places = dst.iter_mut().zip(mask).filter(|(_, m)| m.get());
    places.zip(values).for_each(|((d, _), v)| *d = *v);
    Ok(())
}

/// `dst` (`idx.len() × classes`) is one at each row's index and zero elsewhere.
pub fn one_hot<T: Element>(idx: &[i64], classes: usize, dst: &mut [T]) -> Result<(), BadIndex> {
    check(idx, classes, false)?;
    assert_eq!(dst.len(), idx.len() * classes);
    dst.fill(T::default());
    for (row, &i) in idx.iter().enumerate() {
        dst[row * classes + i as usize] = T::from_i64(1);
    }
    Ok(())
}

/// Keeps the upper (or lower) triangle of each `rows × cols` matrix, counted from a diagonal; the rest becomes zero.
pub fn triangle<T: Element>(x: &[T], rows: usize, cols: usize, diagonal: i64, upper: bool, dst: &mut [T]) {
    assert_eq!(x.len(), dst.len());
    if dst.is_empty() {
        return;
    }
    let lines = (CHUNK / cols).max(1);
    parallel::for_each_chunk_mut(dst, lines * cols, 1, |c, piece| {
        for (l, out) in piece.chunks_mut(cols).enumerate() {
            let line = c * lines + l;
            let from = &x[line * cols..(line + 1) * cols];
            // The diagonal belongs to both triangles.
            let edge = (line % rows) as i64 + diagonal + !upper as i64;
            let edge = edge.clamp(0, cols as i64) as usize;
            let (keep, clear) = if upper { (edge..cols, 0..edge) } else { (0..edge, edge..cols) };
            out[keep.clone()].copy_from_slice(&from[keep]);
            out[clear].fill(T::default());
        }
    });
}

/// Writes `values` (one, or `batch × length of the diagonal`) on a diagonal of each `rows × cols` matrix.
pub fn fill_diagonal<T: Element>(dst: &mut [T], rows: usize, cols: usize, offset: i64, values: &[T]) {
    let (r0, c0) = ((-offset).max(0) as usize, offset.max(0) as usize);
    let length = rows.saturating_sub(r0).min(cols.saturating_sub(c0));
    if length == 0 {
        return;
    }
    for (b, matrix) in dst.chunks_mut(rows * cols).enumerate() {
        for i in 0..length {
            let v = if values.len() == 1 { values[0] } else { values[b * length + i] };
            matrix[(r0 + i) * cols + c0 + i] = v;
        }
    }
}

/// Square matrices of side `n + |offset|` with rows of `x` (`batch × n`) on a diagonal and zero elsewhere.
pub fn diag_embed<T: Element>(x: &[T], n: usize, offset: i64, dst: &mut [T]) {
    let side = n + offset.unsigned_abs() as usize;
    dst.fill(T::default());
    if !x.is_empty() {
        fill_diagonal(dst, side, side, offset, x);
    }
}

/// Index for `repeat_interleave`: position `i` stands `repeats[i]` times. Give it to `index_select`.
pub fn repeat_indices(repeats: &[i64]) -> Result<Vec<i64>, BadIndex> {
    if let Some(position) = repeats.iter().position(|&r| r < 0) {
        return Err(BadIndex { position, value: repeats[position], limit: usize::MAX });
    }
    Ok(repeats.iter().enumerate().flat_map(|(i, &r)| std::iter::repeat_n(i as i64, r as usize)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks() {
        assert_eq!(nonzero(&[0f32, 1.0, 0.0, f32::NAN, 2.0, 0.0], &[2, 3]), [0, 1, 1, 0, 1, 1]);
        let mask = [Bool(0), Bool(1), Bool(9)];
        assert_eq!(masked_select(&[1, 2, 3], &mask), [2, 3]);
        let mut d = [1, 2, 3];
        masked_fill(&mut d, &mask, 7);
        assert_eq!(d, [1, 7, 7]);
        assert_eq!(masked_scatter(&mut d, &mask, &[4]), Err(2));
        masked_scatter(&mut d, &mask, &[4, 5, 6]).unwrap();
        assert_eq!(d, [1, 4, 5]);
        assert_eq!(nonzero(&vec![1u8; 100_000], &[100_000]), (0..100_000).collect::<Vec<i64>>());
    }

    #[test]
    fn fills() {
        let mut h = [9f32; 6];
        one_hot(&[2, 0], 3, &mut h).unwrap();
        assert_eq!(h, [0.0, 0.0, 1.0, 1.0, 0.0, 0.0]);
        assert!(one_hot(&[3], 3, &mut [0f32; 3]).is_err());
        let x = [1, 2, 3, 4, 5, 6];
        let tri = |diagonal, upper| {
            let mut d = [0; 6];
            triangle(&x, 2, 3, diagonal, upper, &mut d);
            d
        };
        assert_eq!(tri(0, true), [1, 2, 3, 0, 5, 6]);
        assert_eq!(tri(0, false), [1, 0, 0, 4, 5, 0]);
        assert_eq!(tri(1, true), [0, 2, 3, 0, 0, 6]);
        assert_eq!(tri(-1, false), [0, 0, 0, 4, 0, 0]);
        assert_eq!(tri(-9, false), [0; 6]);
        assert_eq!(tri(9, false), x);
        let mut d = [0; 9];
        diag_embed(&[1, 2], 2, -1, &mut d);
        assert_eq!(d, [0, 0, 0, 1, 0, 0, 0, 2, 0]);
        fill_diagonal(&mut d, 3, 3, 2, &[5]);
        assert_eq!(d, [0, 0, 5, 1, 0, 0, 0, 2, 0]);
        assert_eq!(repeat_indices(&[2, 0, 1]), Ok(vec![0, 0, 2]));
        assert!(repeat_indices(&[2, -1]).is_err());
    }
}
