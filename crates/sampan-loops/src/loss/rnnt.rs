//! The transducer of recurrent networks: the likelihood of a label sequence, summed over all ways through a lattice of
//! frames and labels. In each cell a way either emits a blank and goes on to the next frame, or emits the next label. All in
//! log space.

use crate::ctc::log_add;
use crate::parallel;
use crate::widen::RealElement;
use sampan_macros::by_dtype;

/// One batch of lattices `[batch, frames, columns]`, which hold the log-probability of the blank and of the next label in
/// each cell: how many frames and labels each sequence has. A sequence has at least one frame, and fewer labels than columns.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct Rnnt<'a> {
    pub frames: usize,
    pub columns: usize,
    pub input_lengths: &'a [i64],
    pub label_lengths: &'a [i64],
}

/// One sequence, its lattice cut out.
struct Lattice<'a, T> {
    blanks: &'a [T],
    emits: &'a [T],
    columns: usize,
    /// The last frame and the last column.
    end: (usize, usize),
}

impl<T: RealElement> Lattice<'_, T> {
    fn blank(&self, t: usize, u: usize) -> f64 {
        self.blanks[t * self.columns + u].to_f64()
    }

    fn emit(&self, t: usize, u: usize) -> f64 {
        self.emits[t * self.columns + u].to_f64()
    }

    /// ln of the probability of all ways from the first cell to each.
    fn forward(&self) -> Vec<f64> {
        let width = self.end.1 + 1;
        let mut alpha = vec![f64::NEG_INFINITY; (self.end.0 + 1) * width];
        alpha[0] = 0.0;
        for t in 0..=self.end.0 {
            for u in 0..width {
                let mut sum = alpha[t * width + u];
                if t > 0 {
                    sum = log_add(sum, alpha[(t - 1) * width + u] + self.blank(t - 1, u));
                }
                if u > 0 {
                    sum = log_add(sum, alpha[t * width + u - 1] + self.emit(t, u - 1));
                }
                alpha[t * width + u] = sum;
            }
        }
        alpha
    }

    /// ln of the likelihood, from the forward sums: a last blank leaves the lattice.
    fn total(&self, alpha: &[f64]) -> f64 {
        alpha[alpha.len() - 1] + self.blank(self.end.0, self.end.1)
    }

    /// Calls `put(cell, blank, emit)` with the posterior of both steps out of every cell.
    fn posteriors(&self, mut put: impl FnMut(usize, f64, f64)) {
        let alpha = self.forward();
        let total = self.total(&alpha);
        if total == f64::NEG_INFINITY {
            return;
        }
        let (last, width) = (self.end.0, self.end.1 + 1);
        // ln of the probability of all ways from each cell of the frame, and of the frame after it, to the end.
        let mut after = vec![f64::NEG_INFINITY; width];
        for t in (0..=last).rev() {
            let mut beta = vec![f64::NEG_INFINITY; width];
            for u in (0..width).rev() {
                let leaves = (t, u) == self.end;
                let blank = self.blank(t, u) + if leaves { 0.0 } else { after[u] };
                let emit = if u + 1 < width { self.emit(t, u) + beta[u + 1] } else { f64::NEG_INFINITY };
                beta[u] = log_add(blank, emit);
                let reached = alpha[t * width + u] - total;
                put(t * self.columns + u, (reached + blank).exp(), (reached + emit).exp());
            }
            after = beta;
        }
    }
}

/// A batch with its log-probabilities.
#[derive(Clone, Copy)]
struct Given<'a, T> {
    s: &'a Rnnt<'a>,
    blanks: &'a [T],
    emits: &'a [T],
}

impl<T: RealElement> Given<'_, T> {
    fn lattice(&self, n: usize) -> Lattice<'_, T> {
        let size = self.s.frames * self.s.columns;
        Lattice {
            blanks: &self.blanks[n * size..][..size],
            emits: &self.emits[n * size..][..size],
            columns: self.s.columns,
            end: (self.s.input_lengths[n] as usize - 1, self.s.label_lengths[n] as usize),
        }
    }

    fn loss(&self, loss: &mut [T]) {
        let values = parallel::map(loss.len(), self.s.frames * self.s.columns * 32, |n| {
            let lattice = self.lattice(n);
            lattice.total(&lattice.forward())
        });
        loss.iter_mut().zip(values).for_each(|(loss, total)| *loss = T::from_f64(-total));
    }

    fn backward(&self, g: &[T], d_blanks: &mut [T], d_emits: &mut [T]) {
        d_blanks.fill(T::from_f64(0.0));
        d_emits.fill(T::from_f64(0.0));
        let size = self.s.frames * self.s.columns;
        let found = parallel::map(g.len(), size * 64, |n| {
            let mut cells = Vec::new();
            self.lattice(n).posteriors(|at, blank, emit| cells.push((at, blank, emit)));
            cells
        });
        for (n, cells) in found.iter().enumerate() {
            let g = g[n].to_f64();
            for &(at, blank, emit) in cells {
                d_blanks[n * size + at] = T::from_f64(-blank * g);
                d_emits[n * size + at] = T::from_f64(-emit * g);
            }
        }
    }
}

/// The negative log-likelihood of each sequence.
#[by_dtype(T in float)]
pub fn loss<T: RealElement>(s: &Rnnt, blanks: &[T], emits: &[T], loss: &mut [T]) {
    Given { s, blanks, emits }.loss(loss);
}

/// The gradient of [`loss`] with respect to the blanks and the labels, times `g` of each sequence: minus how probable each
/// step is, given the labels.
#[by_dtype(T in float)]
pub fn backward<T: RealElement>(s: &Rnnt, blanks: &[T], emits: &[T], g: &[T], d_blanks: &mut [T], d_emits: &mut [T]) {
    Given { s, blanks, emits }.backward(g, d_blanks, d_emits);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sums over every way one by one.
    fn slow(blanks: &[f64], emits: &[f64], columns: usize, at: (usize, usize), end: (usize, usize)) -> f64 {
        let cell = at.0 * columns + at.1;
        if at == end {
            return blanks[cell].exp();
        }
        let mut sum = 0.0;
        if at.0 < end.0 {
            sum += blanks[cell].exp() * slow(blanks, emits, columns, (at.0 + 1, at.1), end);
        }
        if at.1 < end.1 {
            sum += emits[cell].exp() * slow(blanks, emits, columns, (at.0, at.1 + 1), end);
        }
        sum
    }

    #[test]
    fn likelihood_and_gradient() {
        let (frames, columns) = (4, 3);
        let numbers = |step: usize| (0..frames * columns).map(|i| -0.3 - (i * step % 11) as f64 / 7.0).collect();
        let (blanks, emits): (Vec<f64>, Vec<f64>) = (numbers(7), numbers(5));
        for (t, u) in [(4, 2), (2, 1), (1, 2), (3, 0)] {
            let run = |blanks: &[f64], emits: &[f64]| {
                let job = Rnnt { frames, columns, input_lengths: &[t as i64], label_lengths: &[u as i64] };
                let (mut loss, mut db, mut de) = ([0.0], vec![9.0; 12], vec![9.0; 12]);
                loss_of(&job, blanks, emits, &mut loss);
                backward_of(&job, blanks, emits, &[1.0], &mut db, &mut de);
                (loss[0], [db, de].concat())
            };
            let (loss, grad) = run(&blanks, &emits);
            let want = -slow(&blanks, &emits, columns, (0, 0), (t - 1, u)).ln();
            assert!((loss - want).abs() < 1e-12, "{t} {u}: {loss} {want}");
            for (i, grad) in grad.iter().enumerate() {
                let moved = |by: f64| {
                    let mut both = [blanks.clone(), emits.clone()];
                    both[i / 12][i % 12] += by;
                    run(&both[0], &both[1]).0
                };
                let want = (moved(1e-5) - moved(-1e-5)) / 2e-5;
                assert!((grad - want).abs() < 1e-8, "{t} {u} {i}: {grad} {want}");
            }
        }
    }
}
