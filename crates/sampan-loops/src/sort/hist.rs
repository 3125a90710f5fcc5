//! Histograms and counts.

use crate::index::BadIndex;
use crate::{Ordered, parallel};
use sampan_macros::by_dtype;

/// Elements per partial histogram; fixed, so that weighted sums have the same bits for any number of threads.
const CHUNK: usize = 1 << 16;

/// The range of a histogram: the one given, or that of the data where both ends are equal (one more on each side where
/// the data are all equal too). `None` if the data has a NaN or an infinity in the way.
#[by_dtype(T in real)]
pub fn histogram_range<T: Ordered>(x: &[T], lo: f64, hi: f64) -> Option<(f64, f64)> {
    let (mut lo, mut hi) = (lo, hi);
    if lo == hi && !x.is_empty() {
        (lo, hi) = (f64::INFINITY, f64::NEG_INFINITY);
        for v in x {
            let v = v.to_f64();
            if v.is_nan() {
                return None;
            }
            (lo, hi) = (lo.min(v), hi.max(v));
        }
    }
    if lo == hi {
        (lo, hi) = (lo - 1.0, hi + 1.0);
    }
    (lo.is_finite() && hi.is_finite()).then_some((lo, hi))
}

/// Adds partial sums made from fixed pieces of `0..len` in order.
fn accumulate<D: Ordered>(len: usize, dst: &mut [D], f: impl Fn(usize, &mut [f64]) + Sync + Send) {
    let bins = dst.len();
    let chunk = CHUNK.max(4 * bins);
    let parts = parallel::map(len.div_ceil(chunk), chunk * 2, |c| {
        let mut sums = vec![0.0; bins];
        (c * chunk..((c + 1) * chunk).min(len)).for_each(|i| f(i, &mut sums));
        sums
    });
    for (b, d) in dst.iter_mut().enumerate() {
        *d = D::from_f64(parts.iter().map(|p| p[b]).sum());
    }
}

/// Counts (or sums of weights) of the elements in `dst.len()` equal bins over [lo, hi]; others are left out.
#[by_dtype(T in real)]
pub fn histogram<T: Ordered>(x: &[T], weights: Option<&[T]>, lo: f64, hi: f64, dst: &mut [f64]) {
    let bins = dst.len();
    accumulate(x.len(), dst, |i, sums| {
        let v = x[i].to_f64();
        if v >= lo && v <= hi {
            let b = ((v - lo) * bins as f64 / (hi - lo)) as usize;
            sums[b.min(bins - 1)] += weights.map_or(1.0, |w| w[i].to_f64());
        }
    });
}

/// Bins that `bincount` needs; an error names the first negative element.
pub fn bincount_len(x: &[i64], minlength: usize) -> Result<usize, BadIndex> {
    match x.iter().position(|&v| v < 0) {
        Some(position) => Err(BadIndex { position, value: x[position], limit: usize::MAX }),
        None => Ok(x.iter().max().map_or(0, |&m| m as usize + 1).max(minlength)),
    }
}

/// Occurrences (or sums of weights) of each number below `dst.len()`, which [`bincount_len`] gave.
#[by_dtype(D in [i64, f32, f64])]
pub fn bincount<D: Ordered>(x: &[i64], weights: Option<&[f64]>, dst: &mut [D]) {
    accumulate(x.len(), dst, |i, sums| sums[x[i] as usize] += weights.map_or(1.0, |w| w[i]));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histograms_and_counts() {
        let x = [1f32, 2.0, 1.0, 5.0];
        let mut h = [0.0; 4];
        histogram_of(&x, None, 0.0, 3.0, &mut h);
        assert_eq!(h, [0.0, 2.0, 1.0, 0.0]);
        assert_eq!(histogram_range_of(&[1f32, 1.0], 0.0, 0.0), Some((0.0, 2.0)));
        assert_eq!(histogram_range_of(&[1f32, f32::NAN], 0.0, 0.0), None);
        histogram_of(&x, Some(&[1.0, 2.0, 3.0, 4.0]), 0.0, 5.0, &mut h);
        assert_eq!(h, [4.0, 2.0, 0.0, 4.0]);
        let x = [0, 3, 3, 1];
        let mut c = vec![0i64; bincount_len(&x, 0).unwrap()];
        bincount_of(&x, None, &mut c);
        assert_eq!(c, [1, 1, 0, 2]);
        assert_eq!(bincount_len(&[0, -2], 0).unwrap_err().position, 1);
        assert_eq!(bincount_len(&[], 3), Ok(3));
    }
}
