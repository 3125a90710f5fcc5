//! Squared differences, their sum and their gradient, each in one pass.

use crate::parallel;
use crate::simd::simd_fn;
use crate::vmath::Real;
use crate::widen::lane_sum2;
use sampan_macros::by_dtype;

/// Elements that are summed together; such sums are added up in order.
const CHUNK: usize = 4096;

simd_fn! {
    fn sum_chunk[T: Real](x: &'a [T], y: &'a [T]) -> T {
        lane_sum2(x, y, |x, y| (x - y) * (x - y))
    }
}

simd_fn! {
    fn each_chunk[T: Real](x: &'a [T], y: &'a [T], scale: T, out: &'a mut [T]) {
        for ((out, &x), &y) in out.iter_mut().zip(x).zip(y) {
            *out = (x - y) * (x - y) * scale;
        }
    }
}

simd_fn! {
    fn gradient_chunk[T: Real](x: &'a [T], y: &'a [T], grad: &'a [T], scale: T, out: &'a mut [T]) {
        if let [grad] = grad {
            let scale = *grad * scale;
            for ((out, &x), &y) in out.iter_mut().zip(x).zip(y) {
                *out = (x - y) * scale;
            }
        } else {
            for (((out, &x), &y), &grad) in out.iter_mut().zip(x).zip(y).zip(grad) {
                *out = (x - y) * (grad * scale);
            }
        }
    }
}

/// The sum of a chunk; squares that leave the range of `f32` do not leave that of `f64`.
fn whole_chunk<T: Real>(x: &[T], y: &[T]) -> f64 {
    let sum = sum_chunk(x, y).to_f64();
    if sum.is_finite() { sum } else { x.iter().zip(y).map(|(x, y)| (x.to_f64() - y.to_f64()).powi(2)).sum() }
}

/// `scale * Σ (x − y)²`, into the one element of `out`.
#[by_dtype(T in [f32, f64])]
pub fn sum<T: Real>(x: &[T], y: &[T], scale: f64, out: &mut [T]) {
    assert!(x.len() == y.len() && out.len() == 1, "squared_error: slices of different lengths");
    out[0] = T::of(scale * total(x, y));
}

/// Σ (x − y)².
fn total<T: Real>(x: &[T], y: &[T]) -> f64 {
    if x.len() <= CHUNK {
        return whole_chunk(x, y);
    }
    let mut sums = vec![0.0; x.len().div_ceil(CHUNK)];
    parallel::for_each_chunk_mut(&mut sums, 1, CHUNK, |i, sum| {
        let part = i * CHUNK..x.len().min((i + 1) * CHUNK);
        sum[0] = whole_chunk(&x[part.clone()], &y[part]);
    });
    sums.iter().sum()
}

/// `scale * (x − y)²`, element by element.
#[by_dtype(T in [f32, f64])]
pub fn each<T: Real>(x: &[T], y: &[T], scale: f64, out: &mut [T]) {
    assert!(x.len() == out.len() && y.len() == out.len(), "squared_error: slices of different lengths");
    parallel::for_each_chunk_mut(out, CHUNK, 1, |i, out| {
        let part = i * CHUNK..i * CHUNK + out.len();
        each_chunk(&x[part.clone()], &y[part], T::of(scale), out);
    });
}

/// `scale * grad * (x − y)`, with one gradient for each element or a single one for all.
#[by_dtype(T in [f32, f64])]
pub fn gradient<T: Real>(x: &[T], y: &[T], grad: &[T], scale: f64, out: &mut [T]) {
    assert!(x.len() == out.len() && y.len() == out.len(), "squared_error: slices of different lengths");
    assert!(grad.len() == 1 || grad.len() == out.len(), "squared_error: {} gradients", grad.len());
    parallel::for_each_chunk_mut(out, CHUNK, 1, |i, out| {
        let part = i * CHUNK..i * CHUNK + out.len();
        let grad = if grad.len() == 1 { grad } else { &grad[part.clone()] };
        gradient_chunk(&x[part.clone()], &y[part], grad, T::of(scale), out);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_sizes_match_the_definition() {
        for n in [0, 1, 5, 33, CHUNK, 3 * CHUNK + 17] {
            let x: Vec<f64> = (0..n).map(|i| (i % 13) as f64).collect();
            let y: Vec<f64> = (0..n).map(|i| (i % 7) as f64).collect();
            let squares: Vec<f64> = x.iter().zip(&y).map(|(x, y)| (x - y) * (x - y)).collect();
            assert_eq!(total(&x, &y), squares.iter().sum::<f64>());
            let mut out = vec![0.0; n];
            each_of(&x, &y, 2.0, &mut out);
            assert!(out.iter().zip(&squares).all(|(o, s)| *o == 2.0 * s));
            gradient_of(&x, &y, &[3.0], 2.0, &mut out);
            assert!((0..n).all(|i| out[i] == 6.0 * (x[i] - y[i])));
            gradient_of(&x, &y, &y, 2.0, &mut out);
            assert!((0..n).all(|i| out[i] == 2.0 * y[i] * (x[i] - y[i])));
        }
    }
}
