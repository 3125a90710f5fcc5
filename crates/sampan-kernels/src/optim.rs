//! One step of an optimizer: a single pass over all parameters, their gradients and states, whatever their number.
//!
//! The parameters are seen as one long row that is cut at fixed places, so many small ones cost no more than a large one.
//! Each piece is worked on in blocks that stay in the first-level cache: widen, clip and decay the gradient, apply the
//! formula, narrow. Half-precision parameters may have a `float32` master copy, which is then what the formula changes.

use crate::vmath::{Real, select};
use crate::widen::{BLOCK, RealElement, lane_sum};
use crate::{DType, Element, bf16, f16, parallel};
use std::ops::Range;

/// Elements a task takes.
const CHUNK: usize = 1 << 14;
/// The most states a formula has.
pub const STATES: usize = 3;

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

/// One parameter's part in a step. Bytes hold aligned elements: parameter and gradient of `dtype`, the others of the
/// type it is computed in (`f32`, or `f64` for itself). States that a formula lacks are empty.
pub struct Job<'a> {
    /// Float dtype of parameter and gradient.
    pub dtype: DType,
    /// What to do.
    pub formula: Formula,
    /// The step's size.
    pub lr: f64,
    /// What to do with the gradient first.
    pub prepare: Prepare,
    /// The parameter.
    pub param: &'a mut [u8],
    /// Its gradient.
    pub grad: &'a [u8],
    /// A wider copy of a half-precision parameter, or nothing.
    pub master: &'a mut [u8],
    /// What the optimizer remembers.
    pub states: [&'a mut [u8]; STATES],
}

/// A block of each array. One struct, so that the compiler knows the arrays apart.
struct Block<T> {
    p: [T; BLOCK],
    g: [T; BLOCK],
    s: [[T; BLOCK]; STATES],
}

struct Loop<'a, T, F, const N: usize>(&'a mut Block<T>, usize, F);

impl<T: Real, F: Fn(T, T, [T; N]) -> (T, [T; N]), const N: usize> pulp::WithSimd for Loop<'_, T, F, N> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) {
        let Loop(b, n, f) = self;
        for i in 0..n.min(BLOCK) {
            let (p, s) = f(b.p[i], b.g[i], std::array::from_fn(|j| b.s[j][i]));
            b.p[i] = p;
            for j in 0..N {
                b.s[j][i] = s[j];
            }
        }
    }
}

/// `(p, s) = f(p, g, s)` for the first `n` elements of a block.
fn each<T: Real, const N: usize>(b: &mut Block<T>, n: usize, f: impl Fn(T, T, [T; N]) -> (T, [T; N])) {
    pulp::Arch::new().dispatch(Loop(b, n, f));
}

impl Prepare {
    fn apply<T: Real>(&self, b: &mut Block<T>, n: usize) {
        let (p, g) = (&b.p[..n], &mut b.g[..n]);
        if let Some((low, high)) = self.limits {
            let (low, high) = (T::of(low), T::of(high));
            g.iter_mut().for_each(|g| *g = g.max(low).min(high));
        }
        if self.scale != 1.0 {
            let scale = T::of(self.scale);
            g.iter_mut().for_each(|g| *g *= scale);
        }
        if self.l1 != 0.0 {
            let l1 = T::of(self.l1);
            g.iter_mut().zip(p).for_each(|(g, p)| *g += l1 * p.sign());
        }
        if self.l2 != 0.0 {
            let l2 = T::of(self.l2);
            g.iter_mut().zip(p).for_each(|(g, &p)| *g += l2 * p);
        }
    }
}

impl Formula {
    fn apply<T: Real>(&self, lr: f64, b: &mut Block<T>, n: usize) {
        let lr = T::of(lr);
        match *self {
            Formula::Sgd => each(b, n, |p, g, []| (p - lr * g, [])),
            Formula::Momentum { mu, nesterov } => {
                let mu = T::of(mu);
                each(b, n, |p, g, [v]| {
                    let v = mu * v + g;
                    (p - lr * select(nesterov, g + mu * v, v), [v])
                });
            }
            Formula::Adagrad { epsilon } => {
                let eps = T::of(epsilon);
                each(b, n, |p, g, [m]| {
                    let m = m + g * g;
                    (p - lr * g / (m.sqrt() + eps), [m])
                });
            }
            Formula::Adadelta { rho, epsilon } => {
                let (rho, eps) = (T::of(rho), T::of(epsilon));
                let rest = T::ONE - rho;
                each(b, n, |p, g, [square, moved]| {
                    let square = rho * square + rest * g * g;
                    let step = ((moved + eps) / (square + eps)).sqrt() * g;
                    (p - lr * step, [square, rho * moved + rest * step * step])
                });
            }
            Formula::RmsProp { rho, epsilon, momentum, centered } => {
                let (rho, eps, mu) = (T::of(rho), T::of(epsilon), T::of(momentum));
                let rest = T::ONE - rho;
                each(b, n, |p, g, [v, square, mean]| {
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
                    each(b, n, |p, g, [m, v, most]| {
                        let (m, v) = (b1 * m + c1 * g, b2 * v + c2 * g * g);
                        let most = v.max(most);
                        (p * keep - lr * m / (most.sqrt() + eps), [m, v, most])
                    });
                } else {
                    each(b, n, |p, g, [m, v]| {
                        let (m, v) = (b1 * m + c1 * g, b2 * v + c2 * g * g);
                        (p * keep - lr * m / (v.sqrt() + eps), [m, v])
                    });
                }
            }
            Formula::Adamax { beta1, beta2, epsilon } => {
                let (b1, b2, eps) = (T::of(beta1), T::of(beta2), T::of(epsilon));
                let c1 = T::ONE - b1;
                each(b, n, |p, g, [m, norm]| {
                    let (m, norm) = (b1 * m + c1 * g, g.abs().max(b2 * norm + eps));
                    (p - lr * m / norm, [m, norm])
                });
            }
            Formula::NAdam { beta1, beta2, epsilon, of_moment, of_grad, correction2 } => {
                let (b1, b2, eps) = (T::of(beta1), T::of(beta2), T::of(epsilon));
                let (c1, c2) = (T::ONE - b1, T::ONE - b2);
                let (of_moment, of_grad, correction2) = (T::of(of_moment), T::of(of_grad), T::of(correction2));
                each(b, n, |p, g, [m, v]| {
                    let (m, v) = (b1 * m + c1 * g, b2 * v + c2 * g * g);
                    (p - lr * (of_moment * m + of_grad * g) / ((v / correction2).sqrt() + eps), [m, v])
                });
            }
            Formula::RAdam { beta1, beta2, epsilon, reliable } => {
                let (b1, b2, eps) = (T::of(beta1), T::of(beta2), T::of(epsilon));
                let (c1, c2) = (T::ONE - b1, T::ONE - b2);
                each(b, n, |p, g, [m, v]| {
                    let (m, v) = (b1 * m + c1 * g, b2 * v + c2 * g * g);
                    (p - lr * select(reliable, m / (v.sqrt() + eps), m), [m, v])
                });
            }
            Formula::Lamb { .. } => {
                let direction = self.lamb_direction();
                each(b, n, |p, _, [m, v]| (p - lr * direction(p, m, v), [m, v]));
            }
            Formula::Asgd => each(b, n, |p, g, [sum, old]| {
                let sum = sum - old + g;
                (p - lr * sum, [sum, g])
            }),
            Formula::Rprop { shrink, grow, least, most } => {
                let (shrink, grow, least, most) = (T::of(shrink), T::of(grow), T::of(least), T::of(most));
                each(b, n, |p, g, [last, rate]| {
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
    fn lamb_moments<T: Real>(&self, b: &mut Block<T>, n: usize) -> (f64, f64) {
        let Formula::Lamb { beta1, beta2, .. } = *self else { panic!("only LAMB scales a step by norms") };
        let (b1, b2) = (T::of(beta1), T::of(beta2));
        let (c1, c2) = (T::ONE - b1, T::ONE - b2);
        let direction = self.lamb_direction();
        each(b, n, |p, g, [m, v, _]| {
            let (m, v) = (b1 * m + c1 * g, b2 * v + c2 * g * g);
            (p, [m, v, direction(p, m, v)])
        });
        let sum = |x: &[T]| lane_sum(&x[..n], |v| v * v).to_f64();
        (sum(&b.p), sum(&b.s[2]))
    }
}

/// A job whose slices are handed out in disjoint pieces.
struct Shared<'a> {
    job: &'a Job<'a>,
    len: usize,
    param: *mut u8,
    master: *mut u8,
    states: [*mut u8; STATES],
}

// SAFETY: the pointers are used for pieces that no two tasks share (see `Shared::piece`).
unsafe impl Sync for Shared<'_> {}
// SAFETY: as above; the job itself is only read.
unsafe impl Send for Shared<'_> {}

/// Calls `$body` with `$t` as the float type of `$dtype`.
macro_rules! with_float {
    ($dtype:expr, $t:ident => $body:expr) => {
        match $dtype {
            DType::Float16 => {
                type $t = f16;
                $body
            }
            DType::BFloat16 => {
                type $t = bf16;
                $body
            }
            DType::Float32 => {
                type $t = f32;
                $body
            }
            DType::Float64 => {
                type $t = f64;
                $body
            }
            other => panic!("a {other} tensor is no parameter"),
        }
    };
}

impl<'a> Shared<'a> {
    fn new(job: &'a mut Job<'_>) -> Shared<'a> {
        let (param, master) = (job.param.as_mut_ptr(), job.master.as_mut_ptr());
        let states = job.states.each_mut().map(|s| if s.is_empty() { std::ptr::null_mut() } else { s.as_mut_ptr() });
        let len = job.param.len() / job.dtype.size();
        let wide = len * if job.dtype == DType::Float64 { 8 } else { 4 };
        let fits = |bytes: &[u8]| bytes.is_empty() || bytes.len() == wide;
        assert!(
            job.grad.len() == job.param.len() && fits(job.master) && job.states.iter().all(|s| fits(s)),
            "gradient, master and states have the parameter's length"
        );
        Shared { job, len, param, master, states }
    }

    /// Calls `f` for each block of a range with its values, and stores what `f` left there; the parameter only if
    /// `store`.
    ///
    /// # Safety
    /// No two calls that run at the same time have overlapping ranges.
    unsafe fn blocks<P: RealElement>(
        &self,
        range: Range<usize>,
        store: bool,
        mut f: impl FnMut(&Job, &mut Block<P::Wide>, usize),
    ) {
        assert!(range.end <= self.len);
        /// Part of an array; empty where there is none.
        ///
        /// # Safety
        /// `base` is null or points to at least `range.end` elements that nobody else uses in this range.
        unsafe fn part<'b, T>(base: *mut u8, range: &Range<usize>) -> &'b mut [T] {
            if base.is_null() {
                return &mut [];
            }
            // SAFETY: as promised by the caller; bytes of elements are aligned for them.
            unsafe { std::slice::from_raw_parts_mut(base.cast::<T>().add(range.start), range.len()) }
        }
        let has_master = !self.job.master.is_empty();
        let grad = &bytemuck::cast_slice::<u8, P>(self.job.grad)[range.clone()];
        // SAFETY: `Shared::new` compared the lengths; ranges do not overlap by the promise above.
        let param = unsafe { part::<P>(self.param, &range) };
        let master_base = if has_master { self.master } else { std::ptr::null_mut() };
        // SAFETY: as above.
        let master = unsafe { part::<P::Wide>(master_base, &range) };
        // SAFETY: as above.
        let mut states = self.states.map(|s| unsafe { part::<P::Wide>(s, &range) });
        let zero = [P::Wide::ZERO; BLOCK];
        let mut b = Block { p: zero, g: zero, s: [zero; STATES] };
        for start in (0..range.len()).step_by(BLOCK) {
            let n = BLOCK.min(range.len() - start);
            let at = start..start + n;
            match has_master {
                true => b.p[..n].copy_from_slice(&master[at.clone()]),
                false => P::widen_slice(&param[at.clone()], &mut b.p[..n]),
            }
            P::widen_slice(&grad[at.clone()], &mut b.g[..n]);
            for (block, state) in b.s.iter_mut().zip(&states).filter(|(_, s)| !s.is_empty()) {
                block[..n].copy_from_slice(&state[at.clone()]);
            }
            self.job.prepare.apply(&mut b, n);
            f(self.job, &mut b, n);
            for (block, state) in b.s.iter().zip(&mut states).filter(|(_, s)| !s.is_empty()) {
                state[at.clone()].copy_from_slice(&block[..n]);
            }
            if store {
                if has_master {
                    master[at.clone()].copy_from_slice(&b.p[..n]);
                }
                P::narrow_slice(&b.p[..n], &mut param[at]);
            }
        }
    }
}

/// One step of all jobs.
pub fn step(jobs: &mut [Job]) {
    let jobs: Vec<Shared> = jobs.iter_mut().map(|j| Shared::new(j)).collect();
    // Where each job begins in the row of all of them.
    let mut total = 0;
    let next = |j: &Shared| {
        total += j.len;
        total - j.len
    };
    let starts: Vec<usize> = jobs.iter().map(next).collect();
    parallel::for_each_range(total, CHUNK, 8, |range| {
        let mut i = starts.partition_point(|&s| s <= range.start) - 1;
        let mut at = range.start;
        while at < range.end {
            let (job, start) = (&jobs[i], starts[i]);
            let end = range.end.min(start + job.len);
            if end > at {
                let piece = at - start..end - start;
                // SAFETY: ranges of the row do not overlap, so neither do the pieces of a job.
                with_float!(job.job.dtype, P => unsafe {
                    job.blocks::<P>(piece, true, |job, b, n| job.formula.apply(job.lr, b, n))
                });
                at = end;
            }
            i += 1;
        }
    });
}

/// Pieces of fixed size of arrays with these lengths: (array, range).
fn pieces(lens: impl Iterator<Item = usize>) -> Vec<(usize, Range<usize>)> {
    lens.enumerate().flat_map(|(i, len)| (0..len).step_by(CHUNK).map(move |s| (i, s..len.min(s + CHUNK)))).collect()
}

/// The first half of a LAMB step: updates the moments of all jobs; squares of the norms of each parameter and its
/// direction.
pub fn lamb_norms(jobs: &mut [Job]) -> Vec<(f64, f64)> {
    let jobs: Vec<Shared> = jobs.iter_mut().map(|j| Shared::new(j)).collect();
    let pieces = pieces(jobs.iter().map(|j| j.len));
    let sums = parallel::map(pieces.len(), CHUNK, |i| {
        let (job, range) = (&jobs[pieces[i].0], pieces[i].1.clone());
        let mut sum = (0.0, 0.0);
        // SAFETY: the pieces do not overlap.
        with_float!(job.job.dtype, P => unsafe {
            job.blocks::<P>(range, false, |job, b, n| {
                let (p, d) = job.formula.lamb_moments(b, n);
                sum = (sum.0 + p, sum.1 + d);
            })
        });
        sum
    });
    let mut totals = vec![(0.0, 0.0); jobs.len()];
    for ((i, _), (p, d)) in pieces.iter().zip(sums) {
        totals[*i] = (totals[*i].0 + p, totals[*i].1 + d);
    }
    totals
}

/// The sum of squares of each array, given with its float dtype.
pub fn square_sums(arrays: &[(DType, &[u8])]) -> Vec<f64> {
    let pieces = pieces(arrays.iter().map(|(dtype, bytes)| bytes.len() / dtype.size()));
    let sums = parallel::map(pieces.len(), CHUNK, |i| {
        let ((dtype, bytes), range) = (arrays[pieces[i].0], pieces[i].1.clone());
        with_float!(dtype, P => squares::<P>(&bytemuck::cast_slice(bytes)[range]))
    });
    let mut totals = vec![0.0; arrays.len()];
    pieces.iter().zip(sums).for_each(|((i, _), sum)| totals[*i] += sum);
    totals
}

fn squares<P: RealElement>(x: &[P]) -> f64 {
    let mut sum = 0.0;
    crate::widen::blocks(x, |_, x| sum += lane_sum(x, |v| v * v).to_f64());
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_parameters_of_several_types_in_one_pass() {
        // Lengths around the cuts; the second is half precision with a master copy.
        let (n1, n2) = (CHUNK + 5, 3 * BLOCK + 1);
        let (mut p1, g1, mut v1) = (vec![1.0f32; n1], vec![0.5f32; n1], vec![1.0f32; n1]);
        let (mut p2, g2) = (vec![bf16::from_f32(1.0); n2], vec![bf16::from_f32(2.0); n2]);
        let (mut w2, mut v2) = (vec![1.001f32; n2], vec![0.0f32; n2]);
        let momentum = Formula::Momentum { mu: 0.9, nesterov: true };
        let prepare = Prepare { limits: Some((-1.0, 1.0)), scale: 0.5, l1: 0.25, l2: 0.0 };
        let job = |dtype, prepare| (dtype, momentum, 0.1, prepare);
        let mut jobs = [
            (job(DType::Float32, Prepare::default()), bytes(&mut p1), read(&g1), &mut [][..], bytes(&mut v1)),
            (job(DType::BFloat16, prepare), bytes(&mut p2), read(&g2), bytes(&mut w2), bytes(&mut v2)),
        ]
        .map(|((dtype, formula, lr, prepare), param, grad, master, state)| Job {
            dtype,
            formula,
            lr,
            prepare,
            param,
            grad,
            master,
            states: [state, &mut [], &mut []],
        });
        step(&mut jobs);
        let close = |a: f32, b: f32| (a - b).abs() < 1e-6;
        assert!(v1.iter().all(|&v| close(v, 1.4)) && p1.iter().all(|&p| close(p, 1.0 - 0.1 * (0.5 + 0.9 * 1.4))));
        let g = 1.0 * 0.5 + 0.25;
        let wanted = 1.001 - 0.1 * (g + 0.9 * g);
        assert!(v2.iter().all(|&v| close(v, g)) && w2.iter().all(|&w| close(w, wanted)));
        assert!(p2.iter().all(|&p| p == bf16::from_f32(w2[0])));
    }

    #[test]
    fn norms() {
        let x = vec![2.0f32; CHUNK + 1];
        let y = vec![f16::from_f32(3.0); 2];
        let sums = square_sums(&[(DType::Float32, read(&x)), (DType::Float16, read(&y)), (DType::Float64, &[])]);
        assert_eq!(sums, [4.0 * (CHUNK + 1) as f64, 18.0, 0.0]);
    }

    fn bytes<T: bytemuck::Pod>(v: &mut [T]) -> &mut [u8] {
        bytemuck::cast_slice_mut(v)
    }
    fn read<T: bytemuck::Pod>(v: &[T]) -> &[u8] {
        bytemuck::cast_slice(v)
    }
}
