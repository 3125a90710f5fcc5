//! One step of an optimizer: a single pass over all parameters, their gradients and states, whatever their number.
//!
//! The parameters are seen as one long row that is cut at fixed places, so many small ones cost no more than a large one.
//! Where nothing has to be converted the formula works on the arrays themselves. Else each piece is worked on in blocks
//! that stay in the first-level cache: widen, clip and decay the gradient, apply the formula, narrow. Half-precision parameters may have a `float32` master copy, which is then what the formula changes.

mod formula;
mod rules;

pub use formula::{Formula, Prepare, Written};

use crate::any::unsupported;
use crate::vmath::Real;
use crate::widen::{BLOCK, RealElement};
use crate::{DType, Ordered, match_dtype, parallel};
use formula::{Block, prepare, square_sum};
use smallvec::SmallVec;
use std::ops::Range;

/// Elements a task takes.
const CHUNK: usize = 1 << 14;
/// The most states a formula has.
pub const STATES: usize = 3;

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
        mut f: impl FnMut(&Job, &mut Block<P::Wide>),
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
        let used = states.iter().filter(|s| !s.is_empty()).count();
        let plain = !P::HALF && !has_master && self.job.prepare == Prepare::default();
        if plain && store && used == self.job.formula.states() {
            return f(
                self.job,
                &mut Block { p: bytemuck::cast_slice_mut(param), g: bytemuck::cast_slice(grad), s: states },
            );
        }
        let zero = [P::Wide::ZERO; BLOCK];
        let (mut p, mut g, mut s) = (zero, zero, [zero; STATES]);
        for start in (0..range.len()).step_by(BLOCK) {
            let n = BLOCK.min(range.len() - start);
            let at = start..start + n;
            match has_master {
                true => p[..n].copy_from_slice(&master[at.clone()]),
                false => P::widen_slice(&param[at.clone()], &mut p[..n]),
            }
            P::widen_slice(&grad[at.clone()], &mut g[..n]);
            for (block, state) in s.iter_mut().zip(&states).filter(|(_, s)| !s.is_empty()) {
                block[..n].copy_from_slice(&state[at.clone()]);
            }
            prepare(self.job.prepare, &p[..n], &mut g[..n]);
            f(self.job, &mut Block { p: &mut p[..n], g: &g[..n], s: s.each_mut().map(|s| &mut s[..n]) });
            for (block, state) in s.iter().zip(&mut states).filter(|(_, s)| !s.is_empty()) {
                state[at.clone()].copy_from_slice(&block[..n]);
            }
            if store {
                if has_master {
                    master[at.clone()].copy_from_slice(&p[..n]);
                }
                P::narrow_slice(&p[..n], &mut param[at]);
            }
        }
    }
}

/// One step of all jobs.
pub fn step(jobs: &mut [Job]) {
    let jobs: SmallVec<[Shared; 8]> = jobs.iter_mut().map(|j| Shared::new(j)).collect();
    // Where each job begins in the row of all of them.
    let mut total = 0;
    let next = |j: &Shared| {
        total += j.len;
        total - j.len
    };
    let starts: SmallVec<[usize; 8]> = jobs.iter().map(next).collect();
    parallel::for_each_range(total, CHUNK, 8, |range| {
        let mut i = starts.partition_point(|&s| s <= range.start) - 1;
        let mut at = range.start;
        while at < range.end {
            let (job, start) = (&jobs[i], starts[i]);
            let end = range.end.min(start + job.len);
            if end > at {
                let piece = at - start..end - start;
                // SAFETY: ranges of the row do not overlap, so neither do the pieces of a job.
                match_dtype!(job.job.dtype, P in float => unsafe {
                    job.blocks::<P>(piece, true, |job, b| job.formula.apply(job.lr, b))
                }, else => unsupported(job.job.dtype));
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
        match_dtype!(job.job.dtype, P in float => unsafe {
            job.blocks::<P>(range, false, |job, b| {
                let (p, d) = job.formula.lamb_moments(b);
                sum = (sum.0 + p, sum.1 + d);
            })
        }, else => unsupported(job.job.dtype));
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
        match_dtype!(dtype, P in float => squares::<P>(&bytemuck::cast_slice(bytes)[range]), else => unsupported(dtype))
    });
    let mut totals = vec![0.0; arrays.len()];
    pieces.iter().zip(sums).for_each(|((i, _), sum)| totals[*i] += sum);
    totals
}

fn squares<P: RealElement>(x: &[P]) -> f64 {
    let mut sum = 0.0;
    crate::widen::blocks(x, |_, x| {
        let squares = square_sum(x);
        // Squares that leave the range of f32 do not leave that of f64.
        sum += if squares.is_finite() { squares } else { x.iter().map(|x| Ordered::to_f64(*x).powi(2)).sum() };
    });
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{bf16, f16};

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
    fn arrays_and_blocks_of_them_give_the_same() {
        let adam = |amsgrad| Formula::Adam { beta1: 0.9, beta2: 0.99, epsilon: 1e-6, shrink: 0.01, amsgrad };
        let rms = |centered| Formula::RmsProp { rho: 0.9, epsilon: 1e-6, momentum: 0.5, centered };
        let momentum = Formula::Momentum { mu: 0.9, nesterov: false };
        let formulas =
            [(Formula::Sgd, 0), (momentum, 1), (adam(false), 2), (adam(true), 3), (rms(false), 2), (rms(true), 3)];
        let n = CHUNK + 3 * BLOCK + 5;
        let values = |seed: usize| (0..n).map(|i| 0.5 + ((i * 31 + seed) % 17) as f32 / 40.0).collect::<Vec<f32>>();
        // Limits that nothing reaches have the gradient copied.
        let wide = Prepare { limits: Some((-9.0, 9.0)), ..Prepare::default() };
        for (formula, states) in formulas {
            let run = |prepare| {
                let (mut p, g) = (values(1), values(2));
                let mut s: [Vec<f32>; STATES] =
                    std::array::from_fn(|j| if j < states { values(3 + j) } else { vec![] });
                let (param, grad, dtype) = (bytes(&mut p), read(&g), DType::Float32);
                let states = s.each_mut().map(|s| bytes(s));
                step(&mut [Job { dtype, formula, lr: 0.1, prepare, param, grad, master: &mut [], states }]);
                (p, s)
            };
            assert_eq!(run(Prepare::default()), run(wide), "{formula:?}");
        }
    }

    #[test]
    fn norms() {
        let x = vec![2.0f32; CHUNK + 1];
        let y = vec![f16::from_f32(3.0); 2];
        let sums = square_sums(&[(DType::Float32, read(&x)), (DType::Float16, read(&y)), (DType::Float64, &[])]);
        assert_eq!(sums, [4.0 * (CHUNK + 1) as f64, 18.0, 0.0]);
        assert!((square_sums(&[(DType::Float32, read(&[1e30f32, 1e30]))])[0] / 2e60 - 1.0).abs() < 1e-6);
    }

    fn bytes<T: bytemuck::Pod>(v: &mut [T]) -> &mut [u8] {
        bytemuck::cast_slice_mut(v)
    }
    fn read<T: bytemuck::Pod>(v: &[T]) -> &[u8] {
        bytemuck::cast_slice(v)
    }
}
