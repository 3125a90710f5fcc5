//! Discrete Fourier transforms of many lines. Each line is transformed by one thread, so the bits do not depend on how
//! many there are.

use crate::complex::{Complex, Part};
use crate::shared::Shared;
use crate::{AnySliceMut, parallel};
use parking_lot::Mutex;
use realfft::{ComplexToReal, RealFftPlanner, RealToComplex};
use rustfft::{Fft, FftDirection, FftNum};
use sampan_macros::by_dtype;
use std::sync::{Arc, LazyLock};

/// Columns that are brought side by side when the transformed axis is not the innermost.
const COLUMNS: usize = 16;
/// Values that one task takes.
const TASK: usize = 1 << 14;
/// Plans kept for the next transform of the same length.
const PLANS: usize = 128;

/// A planner and how often it was asked: it never forgets a plan, so it is replaced when it may hold many.
pub(crate) struct Planner<T: FftNum> {
    real: RealFftPlanner<T>,
    complex: rustfft::FftPlanner<T>,
    lengths: Vec<usize>,
}

impl<T: FftNum> Planner<T> {
    fn new() -> Self {
        Planner { real: RealFftPlanner::new(), complex: rustfft::FftPlanner::new(), lengths: Vec::new() }
    }

    fn note(&mut self, n: usize) {
        if self.lengths.contains(&n) {
            return;
        }
        if self.lengths.len() == PLANS {
            *self = Planner::new();
        }
        self.lengths.push(n);
    }
}

/// A float whose transforms are known.
pub(crate) trait FftPart: Part + FftNum {
    /// The plans of this type.
    fn planner() -> &'static Mutex<Planner<Self>>;
}
macro_rules! fft_part {
    ($($t:ty),*) => {$(
        impl FftPart for $t {
            fn planner() -> &'static Mutex<Planner<$t>> {
                static PLANNER: LazyLock<Mutex<Planner<$t>>> = LazyLock::new(|| Mutex::new(Planner::new()));
                &PLANNER
            }
        }
    )*};
}
fft_part!(f32, f64);

fn plan<R: FftPart>(n: usize, inverse: bool) -> Arc<dyn Fft<R>> {
    let mut planner = R::planner().lock();
    planner.note(n);
    planner.complex.plan_fft(n, if inverse { FftDirection::Inverse } else { FftDirection::Forward })
}

/// Transforms every line along an axis of `n` with `inner` values behind it, in place:
/// `X[k] = scale · Σ x[t] e^(∓2πi k t / n)`, with the minus sign unless `inverse`.
pub fn transform(data: AnySliceMut<'_>, n: usize, inner: usize, inverse: bool, scale: f64) {
    let dtype = data.dtype();
    crate::match_dtype!(dtype.real_part(), R in [f32, f64] => {
        transform_of::<R>(data.of(), n, inner, inverse, scale as R)
    }, else => crate::any::unsupported(dtype))
}

fn transform_of<R: FftPart>(data: &mut [Complex<R>], n: usize, inner: usize, inverse: bool, scale: R) {
    if data.is_empty() {
        return;
    }
    let plan = plan::<R>(n, inverse);
    let zero = Complex::new(R::zero(), R::zero());
    let cost = 4 * (usize::BITS - n.leading_zeros()) as usize;
    if inner == 1 {
        let lines = (TASK / n).max(1);
        return parallel::for_each_chunk_mut(data, lines * n, cost, |_, piece| {
            let mut scratch = vec![zero; plan.get_inplace_scratch_len()];
            plan.process_with_scratch(piece, &mut scratch);
            piece.iter_mut().for_each(|z| *z = *z * scale);
        });
    }
    let (outer, blocks) = (data.len() / (n * inner), inner.div_ceil(COLUMNS));
    let out = Shared::new(data);
    parallel::for_each_range(outer * blocks, (TASK / (n * COLUMNS)).max(1), cost * n * COLUMNS, |range| {
        let mut scratch = vec![zero; plan.get_inplace_scratch_len()];
        let mut lines = vec![zero; n * COLUMNS];
        for piece in range {
            let (base, first) = (piece / blocks * n * inner, piece % blocks * COLUMNS);
            let width = COLUMNS.min(inner - first);
            for t in 0..n {
                for c in 0..width {
                    // SAFETY: inside the data, and read and written by this piece alone.
                    lines[c * n + t] = unsafe { *out.get().add(base + t * inner + first + c) };
                }
            }
            plan.process_with_scratch(&mut lines[..n * width], &mut scratch);
            for t in 0..n {
                for c in 0..width {
                    // SAFETY: as above.
                    unsafe { *out.get().add(base + t * inner + first + c) = lines[c * n + t] * scale };
                }
            }
        }
    });
}

/// Transforms rows of `n` real numbers into the first `n / 2 + 1` of their `n` complex coefficients, the others being
/// their mirror image: `X[k] = scale · Σ x[t] e^(-2πi k t / n)`, conjugated if `inverse`.
#[by_dtype(R in [f32, f64])]
pub fn real_to_complex<R: FftPart>(src: &[R], dst: &mut [Complex<R>], n: usize, inverse: bool, scale: R) {
    if dst.is_empty() {
        return;
    }
    let plan: Arc<dyn RealToComplex<R>> = {
        let mut planner = R::planner().lock();
        planner.note(n);
        planner.real.plan_fft_forward(n)
    };
    let half = n / 2 + 1;
    let lines = (TASK / n).max(1);
    let factor = Complex::new(scale, if inverse { -scale } else { scale });
    parallel::for_each_chunk_mut(dst, lines * half, 4 * (usize::BITS - n.leading_zeros()) as usize, |i, piece| {
        let mut scratch = plan.make_scratch_vec();
        // The library uses its input as room to work.
        let mut row = vec![R::zero(); n];
        for (j, out) in piece.chunks_mut(half).enumerate() {
            let at = (i * lines + j) * n;
            row.copy_from_slice(&src[at..at + n]);
            plan.process_with_scratch(&mut row, out, &mut scratch).expect("the lengths are the plan's");
            out.iter_mut().for_each(|z| *z = Complex::new(z.re * factor.re, z.im * factor.im));
        }
    });
}

/// Transforms rows of `n / 2 + 1` coefficients, which stand for `n` with their mirror image, into rows of `n` real numbers:
/// `x[t] = scale · Σ X[k] e^(2πi k t / n)`; the coefficients are conjugated first unless `inverse`. The imaginary parts of
/// the first one and, for even `n`, the last one are taken for zero.
#[by_dtype(R in [f32, f64])]
pub fn complex_to_real<R: FftPart>(src: &[Complex<R>], dst: &mut [R], n: usize, inverse: bool, scale: R) {
    if dst.is_empty() {
        return;
    }
    let plan: Arc<dyn ComplexToReal<R>> = {
        let mut planner = R::planner().lock();
        planner.note(n);
        planner.real.plan_fft_inverse(n)
    };
    let half = n / 2 + 1;
    let lines = (TASK / n).max(1);
    let zero = Complex::new(R::zero(), R::zero());
    parallel::for_each_chunk_mut(dst, lines * n, 4 * (usize::BITS - n.leading_zeros()) as usize, |i, piece| {
        let mut scratch = plan.make_scratch_vec();
        let mut row = vec![zero; half];
        for (j, out) in piece.chunks_mut(n).enumerate() {
            let at = (i * lines + j) * half;
            row.copy_from_slice(&src[at..at + half]);
            if !inverse {
                row.iter_mut().for_each(|z| *z = z.conj());
            }
            row[0].im = R::zero();
            if n.is_multiple_of(2) {
                row[half - 1].im = R::zero();
            }
            plan.process_with_scratch(&mut row, out, &mut scratch).expect("the lengths are the plan's");
            out.iter_mut().for_each(|v| *v = *v * scale);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Complex128;

    fn naive(x: &[Complex128], inverse: bool) -> Vec<Complex128> {
        let n = x.len();
        let sign = if inverse { 1.0 } else { -1.0 };
        (0..n)
            .map(|k| {
                let turn = |t: usize| sign * std::f64::consts::TAU * (k * t % n) as f64 / n as f64;
                (0..n).map(|t| x[t] * Complex::from_polar(1.0, turn(t))).sum()
            })
            .collect()
    }

    fn signal(len: usize) -> Vec<Complex128> {
        (0..len).map(|i| Complex::new((i as f64 * 0.7).sin(), (i as f64 * 1.3).cos())).collect()
    }

    #[test]
    fn any_length_and_any_axis() {
        for &(outer, n, inner) in &[(1, 1, 1), (3, 8, 1), (2, 7, 1), (2, 12, 5), (1, 30, 37), (3, 11, 16), (1, 97, 2)] {
            for inverse in [false, true] {
                let x = signal(outer * n * inner);
                let mut y = x.clone();
                transform_of(&mut y, n, inner, inverse, 0.5);
                for o in 0..outer {
                    for c in 0..inner {
                        let at = |t: usize| (o * n + t) * inner + c;
                        let line: Vec<_> = (0..n).map(|t| x[at(t)]).collect();
                        for (k, want) in naive(&line, inverse).into_iter().enumerate() {
                            assert!((y[at(k)] - want * 0.5).norm() < 1e-10, "{n} {inner} {inverse}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn real_lines_there_and_back() {
        for n in [1, 2, 3, 8, 9, 30] {
            for inverse in [false, true] {
                let x: Vec<f64> = signal(2 * n).iter().map(|z| z.re).collect();
                let half = n / 2 + 1;
                let mut y = vec![Complex128::default(); 2 * half];
                real_to_complex_of(&x, &mut y, n, inverse, 2.0);
                for row in 0..2 {
                    let line: Vec<_> = x[row * n..(row + 1) * n].iter().map(|&v| v.into()).collect();
                    for (k, want) in naive(&line, inverse).into_iter().take(half).enumerate() {
                        assert!((y[row * half + k] - want * 2.0).norm() < 1e-10, "{n} {inverse}");
                    }
                }
                // What the definition leaves open must not be read.
                y[0].im = 7.0;
                let mut back = vec![0.0; 2 * n];
                complex_to_real_of(&y, &mut back, n, !inverse, 0.5 / n as f64);
                assert!(x.iter().zip(&back).all(|(a, b)| (a - b).abs() < 1e-10), "{n} {inverse}");
            }
        }
    }
}
