//! How large the numbers are that flow through a network, and which of them codes should reach.

/// How the range of codes is chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Method {
    /// The largest magnitude that was seen.
    MinMax,
    /// So much of all magnitudes, in percent, lies inside; what is larger is cut off.
    Percentile(f64),
    /// The range with which codes tell most about the distribution of the numbers (Kullback and Leibler's divergence).
    Entropy,
    /// The largest magnitudes of the batches, averaged: so much of the average so far stays with each of them.
    MovingAverage(f64),
}

/// Bins of a histogram, and levels on one side of zero.
const BINS: usize = 2048;
const LEVELS: usize = 128;

/// Magnitudes in bins of one width from zero on. Where a larger one comes, pairs of bins become one.
#[derive(Clone, Debug)]
struct Histogram {
    width: f64,
    counts: Vec<f64>,
}

impl Histogram {
    fn add(&mut self, largest: f32, values: &[f32]) {
        if largest == 0.0 {
            self.counts[0] += values.len() as f64;
            return;
        }
        if self.width == 0.0 {
            self.width = f64::from(largest) / BINS as f64;
        }
        while self.width * (BINS as f64) < f64::from(largest) {
            for i in 0..BINS / 2 {
                self.counts[i] = self.counts[2 * i] + self.counts[2 * i + 1];
            }
            self.counts[BINS / 2..].fill(0.0);
            self.width *= 2.0;
        }
        for v in values {
            let at = (f64::from(v.abs()) / self.width) as usize;
            self.counts[at.min(BINS - 1)] += 1.0;
        }
    }

    fn percentile(&self, percent: f64) -> f64 {
        let all: f64 = self.counts.iter().sum();
        let mut sum = 0.0;
        for (i, n) in self.counts.iter().enumerate() {
            sum += n;
            if sum >= all * percent / 100.0 {
                return self.width * (i + 1) as f64;
            }
        }
        self.width * BINS as f64
    }

    fn entropy(&self) -> f64 {
        // Zeros have a code of their own in any range, and after an activation there may be so many of them that nothing
        // else would count.
        let mut without = self.clone();
        without.counts[0] = without.counts[1];
        without.least_divergent()
    }

    fn least_divergent(&self) -> f64 {
        let used = self.counts.iter().rposition(|&n| n > 0.0).map_or(0, |i| i + 1);
        let best = (LEVELS..=used.max(LEVELS)).min_by(|&a, &b| {
            let divergence = |n| self.divergence(n).unwrap_or(f64::INFINITY);
            divergence(a).total_cmp(&divergence(b))
        });
        self.width * best.unwrap_or(LEVELS) as f64
    }

    /// What is lost with codes for the first `n` bins: those above go into the last one of them.
    fn divergence(&self, n: usize) -> Option<f64> {
        let mut p = self.counts[..n].to_vec();
        p[n - 1] += self.counts[n..].iter().sum::<f64>();
        let mut q = vec![0.0; n];
        for level in 0..LEVELS {
            let bins = level * n / LEVELS..(level + 1) * n / LEVELS;
            let sum: f64 = self.counts[bins.clone()].iter().sum();
            let filled = self.counts[bins.clone()].iter().filter(|&&c| c > 0.0).count();
            for i in bins.filter(|&i| self.counts[i] > 0.0) {
                q[i] = sum / filled as f64;
            }
        }
        let (all_p, all_q): (f64, f64) = (p.iter().sum(), q.iter().sum());
        if all_p == 0.0 || all_q == 0.0 {
            return None;
        }
        // A bin that codes have nothing for, but the numbers have, is a heavy loss and no infinite one.
        let term = |(&p, &q): (&f64, &f64)| {
            let (p, q) = (p / all_p, (q / all_q).max(1e-12));
            if p > 0.0 { p * (p / q).ln() } else { 0.0 }
        };
        Some(p.iter().zip(&q).map(term).sum())
    }
}

/// What was seen of one value.
#[derive(Clone, Debug)]
pub(super) struct Observer {
    method: Method,
    largest: f64,
    average: Option<f64>,
    histogram: Option<Histogram>,
}

impl Observer {
    pub fn new(method: Method) -> Observer {
        let counts = matches!(method, Method::Percentile(_) | Method::Entropy);
        let histogram = counts.then(|| Histogram { width: 0.0, counts: vec![0.0; BINS] });
        Observer { method, largest: 0.0, average: None, histogram }
    }

    /// Looks at values; false if one of them is NaN or infinite.
    pub fn see(&mut self, values: &[f32]) -> bool {
        let mut largest = 0f32;
        for v in values {
            if !v.is_finite() {
                return false;
            }
            largest = largest.max(v.abs());
        }
        self.largest = self.largest.max(f64::from(largest));
        if let Some(histogram) = &mut self.histogram {
            histogram.add(largest, values);
        }
        if let (Method::MovingAverage(rate), false) = (self.method, values.is_empty()) {
            let now = f64::from(largest);
            self.average = Some(self.average.map_or(now, |a| rate * a + (1.0 - rate) * now));
        }
        true
    }

    /// The step between codes. Values that were all zero have any.
    pub fn step(&self) -> f32 {
        let range = match (self.method, &self.histogram) {
            (Method::Percentile(p), Some(h)) => h.percentile(p).min(self.largest),
            (Method::Entropy, Some(h)) => h.entropy().min(self.largest),
            (Method::MovingAverage(_), _) => self.average.unwrap_or(0.0),
            _ => self.largest,
        };
        if range > 0.0 { ((range / 127.0) as f32).max(f32::MIN_POSITIVE) } else { 1.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(method: Method, batches: &[&[f32]]) -> f32 {
        let mut observer = Observer::new(method);
        assert!(batches.iter().all(|b| observer.see(b)));
        observer.step() * 127.0
    }

    #[test]
    fn ranges() {
        let close = |a: f32, b: f32| assert!((a - b).abs() <= 1e-3 * b, "{a} instead of {b}");
        close(step(Method::MinMax, &[&[1.0, -3.0], &[0.5]]), 3.0);
        close(step(Method::MovingAverage(0.5), &[&[1.0, -3.0], &[1.0], &[]]), 2.0);
        let many: Vec<f32> = (0..1000).map(|i| i as f32 / 1000.0).collect();
        close(step(Method::Percentile(99.0), &[&many, &[0.0; 0]]), 0.99);
        close(step(Method::Percentile(100.0), &[&[0.001], &many, &[40.0]]), 40.0);
        // One number far away is not worth a grid too coarse for what the others are like; without it all are kept.
        let decaying: Vec<f32> = many[1..].iter().map(|u| -u.ln()).collect();
        assert!(step(Method::Entropy, &[&decaying, &decaying, &[300.0]]) < 100.0);
        assert!(step(Method::Entropy, &[&many]) > 0.9);
    }

    #[test]
    fn nothing_and_nonsense() {
        for method in [Method::MinMax, Method::Percentile(99.9), Method::Entropy, Method::MovingAverage(0.9)] {
            assert_eq!(Observer::new(method).step(), 1.0);
            assert_eq!(step(method, &[&[0.0, -0.0], &[]]), 127.0);
            assert!(!Observer::new(method).see(&[1.0, f32::NAN]));
            assert!(!Observer::new(method).see(&[f32::INFINITY]));
            assert!(step(method, &[&[1e-30, 1e38]]).is_finite());
        }
    }
}
