//! The formulas of the optimizers, on blocks of elements.

use super::STATES;
use super::rules::Scalar;
use crate::Ordered;
use crate::simd::simd_fn;
use crate::vmath::Real;
use crate::widen::lane_sum;
use sampan_formula::Number;
use std::sync::{Arc, Mutex};

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

/// A step of an optimizer as formulas over the parameter, its gradient and its states.
pub struct Written {
    /// The new parameter, then each new state.
    pub formulas: Arc<[sampan_formula::Formula]>,
    /// The values of their constants.
    pub constants: Vec<f64>,
}

impl Prepare {
    /// Which parts of it do something: limits, scale, the two penalties.
    fn parts(&self) -> [bool; 4] {
        [self.limits.is_some(), self.scale != 1.0, self.l1 != 0.0, self.l2 != 0.0]
    }

    /// The numbers of those parts, in order.
    fn constants(&self) -> impl Iterator<Item = f64> + use<> {
        let Prepare { limits, scale, l1, l2 } = *self;
        let [_, scaled, first, second] = self.parts();
        let limits = limits.into_iter().flat_map(|(low, high)| [low, high]);
        let rest = [(scaled, scale), (first, l1), (second, l2)];
        limits.chain(rest.into_iter().filter_map(|(used, number)| used.then_some(number)))
    }

    /// [`prepare`] as a formula; `c` are its constants.
    fn written(&self, c: &[Number], p: Number, g: Number) -> Number {
        let [limited, scaled, first, second] = self.parts();
        let mut c = c.iter().copied();
        let mut next = || c.next().expect("one number for each part");
        let mut g = g;
        if limited {
            let (low, high) = (next(), next());
            g = g.max(low).min(high);
        }
        if scaled {
            g = g * next();
        }
        if first {
            g = g + next() * p.sign();
        }
        if second {
            g = g + next() * p;
        }
        g
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

/// Calls `$go!(constants, rule)` for the rule of a formula; LAMB has none.
macro_rules! with_rule {
    ($formula:expr, $T:ident, $lr:expr, $go:ident) => {{
        let (of, lr) = (<$T as Real>::of, <$T as Real>::of($lr));
        let rest = |beta: f64| <$T as Real>::ONE - of(beta);
        match $formula {
            Formula::Sgd => $go!([lr], [lr], p, g, [], (p - lr * g, [])),
            Formula::Momentum { mu, nesterov: false } => $go!([lr, of(mu)], [lr, mu], p, g, [v], {
                let v = mu * v + g;
                (p - lr * v, [v])
            }),
            Formula::Momentum { mu, nesterov: true } => $go!([lr, of(mu)], [lr, mu], p, g, [v], {
                let v = mu * v + g;
                (p - lr * (g + mu * v), [v])
            }),
            Formula::Adagrad { epsilon } => $go!([lr, of(epsilon)], [lr, eps], p, g, [m], {
                let m = m + g * g;
                (p - lr * g / (m.sqrt() + eps), [m])
            }),
            Formula::Adadelta { rho, epsilon } => {
                $go!([lr, of(rho), rest(rho), of(epsilon)], [lr, rho, rest, eps], p, g, [square, moved], {
                    let square = rho * square + rest * g * g;
                    let step = ((moved + eps) / (square + eps)).sqrt() * g;
                    (p - lr * step, [square, rho * moved + rest * step * step])
                })
            }
            Formula::RmsProp { rho, epsilon, momentum, centered: false } => {
                let c = [lr, of(rho), rest(rho), of(epsilon), of(momentum)];
                $go!(c, [lr, rho, rest, eps, mu], p, g, [v, square, mean], {
                    let square = rho * square + rest * g * g;
                    let v = mu * v + lr * g / (square + eps).sqrt();
                    (p - v, [v, square, mean])
                })
            }
            Formula::RmsProp { rho, epsilon, momentum, centered: true } => {
                let c = [lr, of(rho), rest(rho), of(epsilon), of(momentum)];
                $go!(c, [lr, rho, rest, eps, mu], p, g, [v, square, mean], {
                    let square = rho * square + rest * g * g;
                    let mean = rho * mean + rest * g;
                    let v = mu * v + lr * g / (square - mean * mean + eps).sqrt();
                    (p - v, [v, square, mean])
                })
            }
            Formula::Adam { beta1, beta2, epsilon, shrink, amsgrad } => {
                let c = [lr, of(beta1), rest(beta1), of(beta2), rest(beta2), of(epsilon), of(1.0 - shrink)];
                if amsgrad {
                    $go!(c, [lr, b1, c1, b2, c2, eps, keep], p, g, [m, v, most], {
                        let (m, v) = (b1 * m + c1 * g, b2 * v + c2 * g * g);
                        let most = v.max(most);
                        (p * keep - lr * m / (most.sqrt() + eps), [m, v, most])
                    })
                } else {
                    $go!(c, [lr, b1, c1, b2, c2, eps, keep], p, g, [m, v], {
                        let (m, v) = (b1 * m + c1 * g, b2 * v + c2 * g * g);
                        (p * keep - lr * m / (v.sqrt() + eps), [m, v])
                    })
                }
            }
            Formula::Adamax { beta1, beta2, epsilon } => {
                let c = [lr, of(beta1), rest(beta1), of(beta2), of(epsilon)];
                $go!(c, [lr, b1, c1, b2, eps], p, g, [m, norm], {
                    let (m, norm) = (b1 * m + c1 * g, g.abs().max(b2 * norm + eps));
                    (p - lr * m / norm, [m, norm])
                })
            }
            Formula::NAdam { beta1, beta2, epsilon, of_moment, of_grad, correction2 } => {
                let moments = [of(beta1), rest(beta1), of(beta2), rest(beta2)];
                let [b1, c1, b2, c2] = moments;
                let c = [lr, b1, c1, b2, c2, of(epsilon), of(of_moment), of(of_grad), of(correction2)];
                $go!(c, [lr, b1, c1, b2, c2, eps, of_moment, of_grad, correction], p, g, [m, v], {
                    let (m, v) = (b1 * m + c1 * g, b2 * v + c2 * g * g);
                    (p - lr * (of_moment * m + of_grad * g) / ((v / correction).sqrt() + eps), [m, v])
                })
            }
            Formula::RAdam { beta1, beta2, epsilon, reliable } => {
                let c = [lr, of(beta1), rest(beta1), of(beta2), rest(beta2), of(epsilon)];
                if reliable {
                    $go!(c, [lr, b1, c1, b2, c2, eps], p, g, [m, v], {
                        let (m, v) = (b1 * m + c1 * g, b2 * v + c2 * g * g);
                        (p - lr * (m / (v.sqrt() + eps)), [m, v])
                    })
                } else {
                    $go!(c, [lr, b1, c1, b2, c2, _eps], p, g, [m, v], {
                        let (m, v) = (b1 * m + c1 * g, b2 * v + c2 * g * g);
                        (p - lr * m, [m, v])
                    })
                }
            }
            Formula::Lamb { .. } => {}
            Formula::Asgd => $go!([lr], [lr], p, g, [sum, old], {
                let sum = sum - old + g;
                (p - lr * sum, [sum, g])
            }),
            Formula::Rprop { shrink, grow, least, most } => {
                let c = [of(shrink), of(grow), of(least), of(most), <$T as Real>::ONE];
                $go!(c, [shrink, grow, least, most, one], p, g, [last, rate], {
                    let turn = g * last;
                    let factor = turn.by_sign(grow, one, shrink);
                    let g = turn.by_sign(g, g, g.zero());
                    let rate = (rate * factor).max(least).min(most);
                    (p - g.sign() * rate, [g, rate])
                })
            }
        }
    }};
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
        macro_rules! each_element {
            ($constants:expr, $c:pat, $p:ident, $g:ident, $s:pat, $new:expr) => {{
                let $c = $constants;
                each(b, |$p, $g, $s| $new);
            }};
        }
        with_rule!(*self, T, lr, each_element);
        if let Formula::Lamb { .. } = self {
            let (lr, direction) = (T::of(lr), self.lamb_direction());
            each(b, |p, _, [m, v]| (p - lr * direction(p, m, v), [m, v]));
        }
    }

    /// The step as formulas for another device, computed in the precision of `T`; nothing for LAMB, which needs norms first.
    pub fn written<T: Real>(&self, lr: f64, prepare: &Prepare) -> Option<Written> {
        let mut written = None;
        macro_rules! write_down {
            ($constants:expr, $c:pat, $p:ident, $g:ident, $s:pat, $new:expr) => {{
                let constants = $constants;
                let rule = |c: &[Number], $p: Number, $g: Number, s: &[Number]| -> Vec<Number> {
                    let $c = c[..] else { unreachable!("as many constants as the rule takes") };
                    let $s = s[..] else { unreachable!("as many states as the rule takes") };
                    let (p, s) = $new;
                    std::iter::once(p).chain(s).collect()
                };
                let formulas = self.formulas(constants.len(), prepare, &rule);
                let constants = constants.iter().map(|&c| Ordered::to_f64(c)).chain(prepare.constants()).collect();
                written = Some(Written { formulas, constants });
            }};
        }
        with_rule!(*self, T, lr, write_down);
        written
    }

    /// The formulas of the new parameter and of each new state, written once for every kind of step.
    fn formulas(
        &self,
        constants: usize,
        prepare: &Prepare,
        rule: &dyn Fn(&[Number], Number, Number, &[Number]) -> Vec<Number>,
    ) -> Arc<[sampan_formula::Formula]> {
        type Key = (std::mem::Discriminant<Formula>, bool, [bool; 4]);
        static KNOWN: Mutex<Vec<(Key, Arc<[sampan_formula::Formula]>)>> = Mutex::new(Vec::new());
        let variant = match *self {
            Formula::Momentum { nesterov: yes, .. }
            | Formula::RmsProp { centered: yes, .. }
            | Formula::Adam { amsgrad: yes, .. }
            | Formula::RAdam { reliable: yes, .. } => yes,
            _ => false,
        };
        let key = (std::mem::discriminant(self), variant, prepare.parts());
        let mut known = KNOWN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some((_, formulas)) = known.iter().find(|(k, _)| *k == key) {
            return formulas.clone();
        }
        let states = self.states();
        let all = constants + prepare.constants().count();
        let one = |which: usize| {
            sampan_formula::Formula::write(2 + states, all, &|inputs, c| {
                let (c, more) = c.split_at(constants);
                let grad = prepare.written(more, inputs[0], inputs[1]);
                rule(c, inputs[0], grad, &inputs[2..])[which]
            })
        };
        let formulas: Arc<[_]> = (0..=states).map(one).collect();
        known.push((key, formulas.clone()));
        formulas
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
