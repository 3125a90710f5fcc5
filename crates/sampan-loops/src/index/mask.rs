//! Elements that are not zero, and rows that are zero but for one element.

use super::{BadIndex, check};
use crate::{Element, parallel};
use sampan_macros::by_dtype;

/// Elements searched per task.
const CHUNK: usize = 1 << 15;

/// Coordinates of the elements that are not zero, `count × shape.len()` (one empty row per element for rank 0).
#[by_dtype(T in any)]
pub fn nonzero<T: Element>(x: &[T], shape: &[usize]) -> Vec<i64> {
    let zero = T::default();
    let parts = parallel::map(x.len().div_ceil(CHUNK), CHUNK, |c| {
        let mut out = Vec::new();
        for i in (c * CHUNK..((c + 1) * CHUNK).min(x.len())).filter(|&i| x[i] != zero) {
            let end = out.len() + shape.len();
            out.resize(end, 0);
            let mut rest = i;
            for (a, &n) in shape.iter().enumerate().rev() {
                out[end - shape.len() + a] = (rest % n) as i64;
                rest /= n;
            }
        }
        out
    });
    parts.concat()
}

/// `dst` (`idx.len() × classes`) is one at each row's index and zero elsewhere.
#[by_dtype(T in float)]
pub fn one_hot<T: Element>(idx: &[i64], classes: usize, dst: &mut [T]) -> Result<(), BadIndex> {
    check(idx, classes, false)?;
    assert_eq!(dst.len(), idx.len() * classes);
    dst.fill(T::default());
    for (row, &i) in idx.iter().enumerate() {
        dst[row * classes + i as usize] = T::from_i64(1);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions() {
        assert_eq!(nonzero_of(&[0f32, 1.0, 0.0, f32::NAN, 2.0, 0.0], &[2, 3]), [0, 1, 1, 0, 1, 1]);
        assert_eq!(nonzero_of(&vec![1u8; 100_000], &[100_000]), (0..100_000).collect::<Vec<i64>>());
    }

    #[test]
    fn one_in_a_row() {
        let mut h = [9f32; 6];
        one_hot_of(&[2, 0], 3, &mut h).unwrap();
        assert_eq!(h, [0.0, 0.0, 1.0, 1.0, 0.0, 0.0]);
        assert!(one_hot_of(&[3], 3, &mut [0f32; 3]).is_err());
    }
}
