//! Connectionist temporal classification: the likelihood of a label sequence under per-frame log-probabilities, summed
//! over all alignments, and the posterior of each class in each frame. All in log space.

use crate::parallel;
use crate::widen::RealElement;
use sampan_macros::by_dtype;

/// One batch of sequences, whose log-probabilities are `[frames, batch, classes]`: labels `[batch, width]`, and both lengths.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct Ctc<'a> {
    pub batch: usize,
    pub classes: usize,
    pub labels: &'a [i64],
    pub width: usize,
    pub frames: &'a [i64],
    pub lengths: &'a [i64],
    pub blank: usize,
}

/// `ln(eᵃ + eᵇ)`.
pub(crate) fn log_add(a: f64, b: f64) -> f64 {
    let (hi, lo) = if a > b { (a, b) } else { (b, a) };
    if hi == f64::NEG_INFINITY { hi } else { hi + (lo - hi).exp().ln_1p() }
}

/// A batch with its log-probabilities.
#[derive(Clone, Copy)]
struct Given<'a, T> {
    s: &'a Ctc<'a>,
    log_probs: &'a [T],
}

impl<T: RealElement> Given<'_, T> {
    /// The labels of one sequence with blanks between and around them.
    fn states(&self, n: usize) -> Vec<usize> {
        let labels = &self.s.labels[n * self.s.width..][..self.s.lengths[n] as usize];
        let mut states = vec![self.s.blank; 2 * labels.len() + 1];
        labels.iter().enumerate().for_each(|(i, &l)| states[2 * i + 1] = l as usize);
        states
    }

    fn log_prob(&self, t: usize, n: usize, class: usize) -> f64 {
        self.log_probs[(t * self.s.batch + n) * self.s.classes + class].to_f64()
    }

    /// May state `s` be reached from `s - 2`, over the blank between two different labels?
    fn skips(&self, states: &[usize], s: usize) -> bool {
        s >= 2 && states[s] != self.s.blank && states[s] != states[s - 2]
    }

    /// ln of the probability of all beginnings that end in each state, frame by frame.
    fn forward(&self, n: usize, states: &[usize]) -> Vec<f64> {
        let (frames, width) = (self.s.frames[n] as usize, states.len());
        let mut alpha = vec![f64::NEG_INFINITY; frames * width];
        for t in 0..frames {
            for s in 0..width {
                let before = |k: usize| alpha[(t - 1) * width + k];
                let reach = if t == 0 {
                    if s < 2 { 0.0 } else { f64::NEG_INFINITY }
                } else {
                    let mut sum = before(s);
                    if s >= 1 {
                        sum = log_add(sum, before(s - 1));
                    }
                    if self.skips(states, s) {
                        sum = log_add(sum, before(s - 2));
                    }
                    sum
                };
                alpha[t * width + s] = reach + self.log_prob(t, n, states[s]);
            }
        }
        alpha
    }

    /// ln of the likelihood of the whole sequence.
    fn total(&self, n: usize, states: &[usize], alpha: &[f64]) -> f64 {
        let (frames, width) = (self.s.frames[n] as usize, states.len());
        if frames == 0 {
            return if width == 1 { 0.0 } else { f64::NEG_INFINITY };
        }
        let last = &alpha[(frames - 1) * width..];
        if width == 1 { last[0] } else { log_add(last[width - 1], last[width - 2]) }
    }

    fn loss(&self, loss: &mut [T]) {
        let cost = self.log_probs.len() / self.s.batch.max(1) * 16;
        let values = parallel::map(self.s.batch, cost, |n| {
            let states = self.states(n);
            self.total(n, &states, &self.forward(n, &states))
        });
        for (loss, total) in loss.iter_mut().zip(values) {
            *loss = T::from_f64(if total == f64::NEG_INFINITY { 0.0 } else { -total });
        }
    }

    fn backward(&self, g: &[T], out: &mut [T]) {
        let cost = self.log_probs.len() / self.s.batch.max(1) * 32;
        let posteriors = parallel::map(self.s.batch, cost, |n| self.posterior(n));
        out.fill(T::from_f64(0.0));
        for (n, posterior) in posteriors.iter().enumerate() {
            let g = g[n].to_f64();
            for (t, frame) in posterior.chunks_exact(self.s.classes.max(1)).enumerate() {
                let row = &mut out[(t * self.s.batch + n) * self.s.classes..][..self.s.classes];
                row.iter_mut().zip(frame).for_each(|(o, p)| *o = T::from_f64(-p * g));
            }
        }
    }

    /// How probable each class is in each frame, given the labels.
    fn posterior(&self, n: usize) -> Vec<f64> {
        let states = self.states(n);
        let (frames, width) = (self.s.frames[n] as usize, states.len());
        let alpha = self.forward(n, &states);
        let total = self.total(n, &states, &alpha);
        let mut out = vec![0.0; frames * self.s.classes];
        if total == f64::NEG_INFINITY {
            return out;
        }
        // ln of the probability of all endings after each state, from the last frame back.
        let mut beta = vec![f64::NEG_INFINITY; width];
        beta[width - 1] = 0.0;
        if width > 1 {
            beta[width - 2] = 0.0;
        }
        for t in (0..frames).rev() {
            for s in 0..width {
                out[t * self.s.classes + states[s]] += (alpha[t * width + s] + beta[s] - total).exp();
            }
            if t == 0 {
                break;
            }
            let ahead: Vec<f64> = (0..width).map(|s| beta[s] + self.log_prob(t, n, states[s])).collect();
            for s in 0..width {
                let mut sum = ahead[s];
                if s + 1 < width {
                    sum = log_add(sum, ahead[s + 1]);
                }
                if s + 2 < width && self.skips(&states, s + 2) {
                    sum = log_add(sum, ahead[s + 2]);
                }
                beta[s] = sum;
            }
        }
        out
    }
}

/// The negative log-likelihood of each sequence; 0 where no alignment fits into the frames.
#[by_dtype(T in float)]
pub fn loss<T: RealElement>(s: &Ctc, log_probs: &[T], loss: &mut [T]) {
    Given { s, log_probs }.loss(loss);
}

/// The gradient of [`loss`] with respect to the log-probabilities, times `g` of each sequence: minus the posterior of each
/// class.
#[by_dtype(T in float)]
pub fn backward<T: RealElement>(s: &Ctc, log_probs: &[T], g: &[T], out: &mut [T]) {
    Given { s, log_probs }.backward(g, out);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sums over every alignment one by one.
    fn slow(log_probs: &[f64], frames: usize, classes: usize, labels: &[i64]) -> f64 {
        let mut total = 0.0;
        for code in 0..classes.pow(frames as u32) {
            let path: Vec<usize> = (0..frames).map(|t| code / classes.pow(t as u32) % classes).collect();
            let mut seen: Vec<i64> = path.iter().map(|&c| c as i64).collect();
            seen.dedup();
            seen.retain(|&c| c != 0);
            if seen == labels {
                total += path.iter().enumerate().map(|(t, &c)| log_probs[t * classes + c]).sum::<f64>().exp();
            }
        }
        -total.ln()
    }

    #[test]
    fn likelihood_and_gradient() {
        let (frames, classes) = (5, 3);
        let log_probs: Vec<f64> = (0..frames * classes).map(|i| -0.3 - (i * 7 % 11) as f64 / 7.0).collect();
        for labels in [vec![1, 2], vec![1, 1], vec![2], vec![], vec![1, 2, 1, 2, 1]] {
            let make = |p: &[f64]| {
                let job = Ctc {
                    batch: 1,
                    classes,
                    labels: &labels,
                    width: labels.len(),
                    frames: &[frames as i64],
                    lengths: &[labels.len() as i64],
                    blank: 0,
                };
                let (mut loss, mut grad) = ([0.0], vec![0.0; p.len()]);
                loss_of(&job, p, &mut loss);
                backward_of(&job, p, &[1.0], &mut grad);
                (loss[0], grad)
            };
            let (loss, grad) = make(&log_probs);
            assert!((loss - slow(&log_probs, frames, classes, &labels)).abs() < 1e-10, "{labels:?}");
            for i in 0..grad.len() {
                let moved = |by: f64| {
                    let mut p = log_probs.clone();
                    p[i] += by;
                    make(&p).0
                };
                let want = (moved(1e-5) - moved(-1e-5)) / 2e-5;
                assert!((grad[i] - want).abs() < 1e-7, "{labels:?} {i}");
            }
        }
        let none = Ctc { batch: 1, classes, labels: &[1, 1], width: 2, frames: &[2], lengths: &[2], blank: 0 };
        let mut loss = [5.0];
        loss_of(&none, &log_probs[..2 * classes], &mut loss);
        assert_eq!(loss, [0.0]);
    }
}
