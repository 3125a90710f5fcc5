//! One pass over a parameter, its gradient and the optimizer's state for each step.

use crate::parallel;
use crate::vmath::Real;

/// Elements a task takes.
const CHUNK: usize = 1 << 14;

/// `p -= lr * g`.
pub fn sgd<T: Real>(p: &mut [T], g: &[T], lr: T) {
    parallel::for_each_chunk_mut(p, CHUNK, 2, |i, p| {
        let g = &g[i * CHUNK..][..p.len()];
        for (p, &g) in p.iter_mut().zip(g) {
            *p = *p - lr * g;
        }
    });
}

/// `v = mu * v + g`, then `p -= lr * v`, or `p -= lr * (g + mu * v)` for Nesterov.
pub fn momentum<T: Real>(p: &mut [T], g: &[T], v: &mut [T], lr: T, mu: T, nesterov: bool) {
    parallel::for_each_chunks_mut([p, v], CHUNK, 4, |i, [p, v]| {
        let g = &g[i * CHUNK..][..p.len()];
        for ((p, v), &g) in p.iter_mut().zip(v).zip(g) {
            *v = mu * *v + g;
            let step = if nesterov { g + mu * *v } else { *v };
            *p = *p - lr * step;
        }
    });
}

/// The numbers of an Adam step. `step_size` and `epsilon` hold the bias corrections.
#[derive(Clone, Copy, Debug)]
pub struct Adam {
    /// Decay of the first moment.
    pub beta1: f64,
    /// Decay of the second moment.
    pub beta2: f64,
    /// Added to the root of the second moment.
    pub epsilon: f64,
    /// Learning rate with both bias corrections.
    pub step_size: f64,
    /// Share of the parameter taken off before the step (decoupled weight decay times learning rate).
    pub shrink: f64,
}

/// One Adam or AdamW step.
pub fn adam<T: Real>(p: &mut [T], g: &[T], m: &mut [T], v: &mut [T], a: Adam) {
    let (b1, b2, eps, lr) = (T::of(a.beta1), T::of(a.beta2), T::of(a.epsilon), T::of(a.step_size));
    let (c1, c2, keep) = (T::of(1.0 - a.beta1), T::of(1.0 - a.beta2), T::of(1.0 - a.shrink));
    parallel::for_each_chunks_mut([p, m, v], CHUNK, 8, |i, [p, m, v]| {
        let g = &g[i * CHUNK..][..p.len()];
        for (((p, m), v), &g) in p.iter_mut().zip(m).zip(v).zip(g) {
            *m = b1 * *m + c1 * g;
            *v = b2 * *v + c2 * g * g;
            *p = *p * keep - lr * *m / ((*v).sqrt() + eps);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_match_their_formulas() {
        let (g, n) = (0.5f64, 3);
        let mut p = vec![1.0; n];
        sgd(&mut p, &vec![g; n], 0.1);
        assert_eq!(p, [0.95; 3]);

        let (mut p, mut v) = (vec![1.0; n], vec![1.0; n]);
        momentum(&mut p, &vec![g; n], &mut v, 0.1, 0.9, true);
        assert!((v[0] - 1.4).abs() < 1e-15 && (p[0] - (1.0 - 0.1 * (0.5 + 0.9 * 1.4))).abs() < 1e-15);

        let (mut p, mut m, mut v) = (vec![1.0; n], vec![0.0; n], vec![0.0; n]);
        let a = Adam { beta1: 0.9, beta2: 0.999, epsilon: 1e-8, step_size: 0.01, shrink: 0.1 };
        adam(&mut p, &vec![g; n], &mut m, &mut v, a);
        let (em, ev) = (0.05, 0.001 * 0.25f64);
        assert!((p[0] - (0.9 - 0.01 * em / (ev.sqrt() + 1e-8))).abs() < 1e-12);
    }
}
