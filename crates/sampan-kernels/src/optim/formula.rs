//! The formulas of the optimizers, on blocks of elements.

use super::STATES;
use crate::simd::simd_fn;
use crate::vmath::{Real, select};
use crate::widen::lane_sum;

/// How a step changes a parameter `p` by its gradient `g` and its states `s`. The numbers hold the bias corrections.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Formula {
    /// `p -= lr * g`.
    Sgd,
    /// `s0 = mu * s0 + g`, then `p -= lr * s0`, or `p -= lr * (g + mu * s0)` for Nesterov.
    Momentum { mu: f64, nesterov: bool },
    /// `s0 += g²`, then `p -= lr * g / (√s0 + epsilon)`.
    Adagrad { epsilon: f64 },
    /// States: running squares of gradients and of updates.
    Adadelta { rho: f64, epsilon: f64 },
    /// States: velocity, running square, and the running mean if `centered`.
    RmsProp { rho: f64, epsilon: f64, momentum: f64, centered: bool },
    /// States: two moments, and the largest second moment for `amsgrad`. `shrink` is the share of the parameter taken
    /// off before the step.
    Adam { beta1: f64, beta2: f64, epsilon: f64, shrink: f64, amsgrad: bool },
    /// States: first moment and infinity norm.
    Adamax { beta1: f64, beta2: f64, epsilon: f64 },
    /// Adam with a share of the gradient itself; the second moment is divided by `correction2`.
    NAdam { beta1: f64, beta2: f64, epsilon: f64, of_moment: f64, of_grad: f64, correction2: f64 },
    /// Adam whose second moment is left out while it is not `reliable`.
    RAdam { beta1: f64, beta2: f64, epsilon: f64, reliable: bool },
    /// Adam's direction plus decay, `p -= lr * direction`; [`lamb_norms`] has updated the moments before.
    Lamb { beta1: f64, beta2: f64, epsilon: f64, correction1: f64, correction2: f64, decay: f64 },
    /// States: sum of the last gradients, and the gradient that leaves it.
    Asgd,
    /// States: last gradient and a learning rate for each element.
    Rprop { shrink: f64, grow: f64, least: f64, most: f64 },
}

/// What happens to a gradient before the formula: limits, scale, then the penalties' gradients are added.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prepare {
    /// Smallest and largest value.
    pub limits: Option<(f64, f64)>,
    /// Factor.
    pub scale: f64,
    /// Adds `l1 * sign(p)`.
    pub l1: f64,
    /// Adds `l2 * p`.
    pub l2: f64,
}

impl Default for Prepare {
    fn default() -> Prepare {
        Prepare { limits: None, scale: 1.0, l1: 0.0, l2: 0.0 }
    }
}

/// A part of each array that a formula works on, of one length; states that it does not use may be empty.
pub(super) struct Block<'b, T> {
    pub p: &'b mut [T],
    pub g: &'b [T],
    pub s: [&'b mut [T]; STATES],
}

struct Loop<'a, 'b, T, F, const N: usize>(&'a mut Block<'b, T>, F);

impl<T: Real, F: Fn(T, T, [T; N]) -> (T, [T; N]), const N: usize> pulp::WithSimd for Loop<'_, '_, T, F, N> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) {
        let Loop(b, f) = self;
        let n = b.p.len();
        let (p, g) = (&mut b.p[..n], &b.g[..n]);
        let [s0, s1, s2] = &mut b.s;
        let mut s: [&mut [T]; STATES] = [&mut s0[..], &mut s1[..], &mut s2[..]];
        for s in &mut s[..N] {
            *s = &mut std::mem::take(s)[..n];
        }
        for i in 0..n {
            let mut old = [T::ZERO; N];
            for j in 0..N {
                old[j] = s[j][i];
            }
            let new = f(p[i], g[i], old);
            p[i] = new.0;
            for j in 0..N {
                s[j][i] = new.1[j];
            }
        }
    }
}

/// `(p, s) = f(p, g, s)` for the elements of a block.
fn each<T: Real, const N: usize>(b: &mut Block<T>, f: impl Fn(T, T, [T; N]) -> (T, [T; N])) {
    pulp::Arch::new().dispatch(Loop(b, f));
}

simd_fn! {
    /// Limits, scales and penalises the gradients `g` of the parameters `p`.
    pub(super) fn prepare[T: Real](plan: Prepare, p: &'a [T], g: &'a mut [T]) {
        if let Some((low, high)) = plan.limits {
            let (low, high) = (T::of(low), T::of(high));
            g.iter_mut().for_each(|g| *g = g.max(low).min(high));
        }
        if plan.scale != 1.0 {
            let scale = T::of(plan.scale);
            g.iter_mut().for_each(|g| *g *= scale);
        }
        if plan.l1 != 0.0 {
            let l1 = T::of(plan.l1);
            g.iter_mut().zip(p).for_each(|(g, p)| *g += l1 * p.sign());
        }
        if plan.l2 != 0.0 {
            let l2 = T::of(plan.l2);
            g.iter_mut().zip(p).for_each(|(g, &p)| *g += l2 * p);
        }
    }
}

simd_fn! {
    /// The sum of squares.
    pub(super) fn square_sum[T: Real](x: &'a [T]) -> f64 {
        lane_sum(x, |v| v * v).to_f64()
    }
}

impl Formula {
    /// How many states it works on.
    pub(super) fn states(&self) -> usize {
        match self {
            Formula::Sgd => 0,
            Formula::Momentum { .. } | Formula::Adagrad { .. } => 1,
            Formula::RmsProp { .. } | Formula::Adam { amsgrad: true, .. } => 3,
            _ => 2,
        }
    }

    /// Changes the elements of a block.
    pub(super) fn apply<T: Real>(&self, lr: f64, b: &mut Block<T>) {
        let lr = T::of(lr);
        match *self {
            Formula::Sgd => each(b, |p, g, []| (p - lr * g, [])),
            Formula::Momentum { mu, nesterov } => {
                let mu = T::of(mu);
                each(b, |p, g, [v]| {
                    let v = mu * v + g;
                    (p - lr * select(nesterov, g + mu * v, v), [v])
                });
            }
            Formula::Adagrad { epsilon } => {
                let eps = T::of(epsilon);
                each(b, |p, g, [m]| {
                    let m = m + g * g;
                    (p - lr * g / (m.sqrt() + eps), [m])
                });
            }
            Formula::Adadelta { rho, epsilon } => {
                let (rho, eps) = (T::of(rho), T::of(epsilon));
                let rest = T::ONE - rho;
                each(b, |p, g, [square, moved]| {
                    let square = rho * square + rest * g * g;
                    let step = ((moved + eps) / (square + eps)).sqrt() * g;
                    (p - lr * step, [square, rho * moved + rest * step * step])
                });
            }
            Formula::RmsProp { rho, epsilon, momentum, centered } => {
                let (rho, eps, mu) = (T::of(rho), T::of(epsilon), T::of(momentum));
                let rest = T::ONE - rho;
                each(b, |p, g, [v, square, mean]| {
                    let square = rho * square + rest * g * g;
                    let mean = select(centered, rho * mean + rest * g, mean);
                    let spread = select(centered, square - mean * mean, square);
                    let v = mu * v + lr * g / (spread + eps).sqrt();
                    (p - v, [v, square, mean])
                });
            }
            Formula::Adam { beta1, beta2, epsilon, shrink, amsgrad } => {
                let (b1, b2, eps, keep) = (T::of(beta1), T::of(beta2), T::of(epsilon), T::of(1.0 - shrink));
                let (c1, c2) = (T::ONE - b1, T::ONE - b2);
                if amsgrad {
                    each(b, |p, g, [m, v, most]| {
                        let (m, v) = (b1 * m + c1 * g, b2 * v + c2 * g * g);
                        let most = v.max(most);
                        (p * keep - lr * m / (most.sqrt() + eps), [m, v, most])
                    });
                } else {
                    each(b, |p, g, [m, v]| {
                        let (m, v) = (b1 * m + c1 * g, b2 * v + c2 * g * g);
                        (p * keep - lr * m / (v.sqrt() + eps), [m, v])
                    });
                }
            }
            Formula::Adamax { beta1, beta2, epsilon } => {
                let (b1, b2, eps) = (T::of(beta1), T::of(beta2), T::of(epsilon));
                let c1 = T::ONE - b1;
                each(b, |p, g, [m, norm]| {
                    let (m, norm) = (b1 * m + c1 * g, g.abs().max(b2 * norm + eps));
                    (p - lr * m / norm, [m, norm])
                });
            }
            Formula::NAdam { beta1, beta2, epsilon, of_moment, of_grad, correction2 } => {
                let (b1, b2, eps) = (T::of(beta1), T::of(beta2), T::of(epsilon));
                let (c1, c2) = (T::ONE - b1, T::ONE - b2);
                let (of_moment, of_grad, correction2) = (T::of(of_moment), T::of(of_grad), T::of(correction2));
                each(b, |p, g, [m, v]| {
                    let (m, v) = (b1 * m + c1 * g, b2 * v + c2 * g * g);
                    (p - lr * (of_moment * m + of_grad * g) / ((v / correction2).sqrt() + eps), [m, v])
                });
            }
            Formula::RAdam { beta1, beta2, epsilon, reliable } => {
                let (b1, b2, eps) = (T::of(beta1), T::of(beta2), T::of(epsilon));
                let (c1, c2) = (T::ONE - b1, T::ONE - b2);
                each(b, |p, g, [m, v]| {
                    let (m, v) = (b1 * m + c1 * g, b2 * v + c2 * g * g);
                    (p - lr * select(reliable, m / (v.sqrt() + eps), m), [m, v])
                });
            }
            Formula::Lamb { .. } => {
                let direction = self.lamb_direction();
                each(b, |p, _, [m, v]| (p - lr * direction(p, m, v), [m, v]));
            }
            Formula::Asgd => each(b, |p, g, [sum, old]| {
                let sum = sum - old + g;
                (p - lr * sum, [sum, g])
            }),
            Formula::Rprop { shrink, grow, least, most } => {
                let (shrink, grow, least, most) = (T::of(shrink), T::of(grow), T::of(least), T::of(most));
                each(b, |p, g, [last, rate]| {
                    let turn = g * last;
                    let factor = select(turn > T::ZERO, grow, select(turn < T::ZERO, shrink, T::ONE));
                    let g = select(turn < T::ZERO, T::ZERO, g);
                    let rate = (rate * factor).max(least).min(most);
                    (p - g.sign() * rate, [g, rate])
                });
            }
        }
    }

    /// The direction of a LAMB step from a parameter and its moments.
    fn lamb_direction<T: Real>(&self) -> impl Fn(T, T, T) -> T + use<T> {
        let Formula::Lamb { epsilon, correction1, correction2, decay, .. } = *self else {
            panic!("only LAMB scales a step by norms")
        };
        let (eps, decay) = (T::of(epsilon), T::of(decay));
        let (correction1, correction2) = (T::of(correction1), T::of(correction2));
        move |p, m, v| m / correction1 / ((v / correction2).sqrt() + eps) + decay * p
    }

    /// Updates the moments and leaves the direction in the last state's place; sums of squares of parameter and direction.
    pub(super) fn lamb_moments<T: Real>(&self, b: &mut Block<T>) -> (f64, f64) {
        let Formula::Lamb { beta1, beta2, .. } = *self else { panic!("only LAMB scales a step by norms") };
        let (b1, b2) = (T::of(beta1), T::of(beta2));
        let (c1, c2) = (T::ONE - b1, T::ONE - b2);
        let direction = self.lamb_direction();
        each(b, |p, g, [m, v, _]| {
            let (m, v) = (b1 * m + c1 * g, b2 * v + c2 * g * g);
            (p, [m, v, direction(p, m, v)])
        });
        (square_sum(b.p), square_sum(b.s[2]))
    }
}
