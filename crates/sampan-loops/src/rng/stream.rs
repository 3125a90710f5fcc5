//! Distributions by rejection or search: every element reads its own endless stream of blocks.

use super::fill::{open64, unit64};
use super::philox;
use crate::{Ordered, parallel};
use sampan_macros::by_dtype;

/// Elements per task.
const CHUNK: usize = 1 << 10;

/// The words of one element: blocks `(ctr, 0), (ctr, 1), …`.
pub struct Stream {
    seed: u64,
    ctr: u64,
    step: u64,
    block: [u32; 4],
    used: usize,
}

impl Stream {
    /// The stream of counter `ctr`.
    pub fn new(seed: u64, ctr: u64) -> Stream {
        Stream { seed, ctr, step: 0, block: [0; 4], used: 4 }
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        if self.used == 4 {
            self.block = philox(self.seed, self.ctr, self.step);
            self.step += 1;
            self.used = 0;
        }
        let at = self.used;
        self.used += 2;
        self.block[at] as u64 | (self.block[at + 1] as u64) << 32
    }

    /// Uniform in [0, 1).
    pub fn unit(&mut self) -> f64 {
        unit64(self.bits())
    }

    /// Uniform in (0, 1].
    pub fn open(&mut self) -> f64 {
        open64(self.bits())
    }

    /// Standard normal.
    pub fn normal(&mut self) -> f64 {
        let r = (-2.0 * libm::log(self.open())).sqrt();
        r * libm::cos(std::f64::consts::TAU * self.unit())
    }

    /// Gamma of shape `a` and scale 1 (Marsaglia and Tsang, 2000).
    pub fn gamma(&mut self, a: f64) -> f64 {
        if a.is_nan() || a < 0.0 {
            return f64::NAN;
        }
        if a == 0.0 || a == f64::INFINITY {
            return a;
        }
        if a < 1.0 {
            return self.gamma(a + 1.0) * libm::pow(self.open(), 1.0 / a);
        }
        let d = a - 1.0 / 3.0;
        let c = 1.0 / (9.0 * d).sqrt();
        loop {
            let x = self.normal();
            let v = (1.0 + c * x).powi(3);
            if v > 0.0 && libm::log(self.open()) < 0.5 * x * x + d - d * v + d * libm::log(v) {
                return d * v;
            }
        }
    }

    /// Poisson of the given rate: products of uniforms for small rates, transformed rejection (Hörmann, 1993) above.
    pub fn poisson(&mut self, rate: f64) -> f64 {
        if rate.is_nan() || rate < 0.0 {
            return f64::NAN;
        }
        if rate == f64::INFINITY {
            return rate;
        }
        if rate < 10.0 {
            let limit = libm::exp(-rate);
            let (mut n, mut product) = (0.0, self.open());
            while product > limit {
                n += 1.0;
                product *= self.open();
            }
            return n;
        }
        let b = 0.931 + 2.53 * rate.sqrt();
        let a = -0.059 + 0.02483 * b;
        let inv_alpha = 1.1239 + 1.1328 / (b - 3.4);
        let v_r = 0.9277 - 3.6224 / (b - 2.0);
        let ln_rate = libm::log(rate);
        loop {
            let u = self.unit() - 0.5;
            let v = self.open();
            let us = 0.5 - u.abs();
            let k = ((2.0 * a / us + b) * u + rate + 0.43).floor();
            if us >= 0.07 && v <= v_r {
                return k;
            }
            if k < 0.0 || (us < 0.013 && v > us) {
                continue;
            }
            if libm::log(v * inv_alpha / (a / (us * us) + b)) <= k * ln_rate - rate - libm::lgamma(k + 1.0) {
                return k;
            }
        }
    }

    /// Successes in `n` trials: search through the distribution for a small mean, transformed rejection (Hörmann,
    /// 1993) above.
    pub fn binomial(&mut self, n: f64, p: f64) -> f64 {
        if n.is_nan() || !(0.0..=1.0).contains(&p) {
            return f64::NAN;
        }
        let n = n.floor();
        if n < 1.0 || p == 0.0 {
            return 0.0;
        }
        if n == f64::INFINITY || p == 1.0 {
            return n;
        }
        if p > 0.5 {
            return n - self.binomial(n, 1.0 - p);
        }
        let odds = p / (1.0 - p);
        if n * p < 10.0 {
            let mut k = 0.0;
            let mut f = libm::exp(n * libm::log1p(-p));
            let mut u = self.unit();
            // Rounding may leave a rest of u that no probability is left for.
            while u >= f && f > 0.0 && k < n {
                u -= f;
                k += 1.0;
                f *= odds * (n - k + 1.0) / k;
            }
            return k;
        }
        let spq = (n * p * (1.0 - p)).sqrt();
        let b = 1.15 + 2.53 * spq;
        let a = -0.0873 + 0.0248 * b + 0.01 * p;
        let c = n * p + 0.5;
        let v_r = 0.92 - 4.2 / b;
        let alpha = (2.83 + 5.1 / b) * spq;
        let m = ((n + 1.0) * p).floor();
        let ln_odds = libm::log(odds);
        loop {
            let u = self.unit() - 0.5;
            let v = self.open();
            let us = 0.5 - u.abs();
            let k = ((2.0 * a / us + b) * u + c).floor();
            if us >= 0.07 && v <= v_r {
                return k;
            }
            if k < 0.0 || k > n {
                continue;
            }
            let bound =
                libm::lgamma(m + 1.0) + libm::lgamma(n - m + 1.0) - libm::lgamma(k + 1.0) - libm::lgamma(n - k + 1.0)
                    + (k - m) * ln_odds;
            if libm::log(v * alpha / (a / (us * us) + b)) <= bound {
                return k;
            }
        }
    }

    /// Standard normal kept inside [a, b]: rejection from whichever of normal, uniform and exponential fits the
    /// interval, so that far tails cost no more than the middle.
    pub fn truncated(&mut self, a: f64, b: f64) -> f64 {
        if a >= b {
            return a;
        }
        if b <= 0.0 {
            return -self.truncated(-b, -a);
        }
        // From here b > 0, and the density is highest at `peak`.
        let peak = a.max(0.0);
        loop {
            let x = if b - a <= 2.0 / peak.max(1.0) {
                let x = a + self.unit() * (b - a);
                if self.open() > libm::exp(0.5 * (peak * peak - x * x)) {
                    continue;
                }
                x
            } else if a < 0.5 {
                self.normal()
            } else {
                let x = a - libm::log(self.open()) / a;
                if self.open() > libm::exp(-0.5 * (x - a) * (x - a)) {
                    continue;
                }
                x
            };
            if (a..=b).contains(&x) {
                return x;
            }
        }
    }
}

fn each<T: Ordered>(seed: u64, ctr: u64, dst: &mut [T], f: impl Fn(usize, &mut Stream) -> f64 + Sync + Send) {
    parallel::for_each_chunk_mut(dst, CHUNK, 64, |c, piece| {
        for (j, v) in piece.iter_mut().enumerate() {
            let i = c * CHUNK + j;
            *v = T::from_f64(f(i, &mut Stream::new(seed, ctr.wrapping_add(i as u64))));
        }
    });
}

/// Gamma with shape `alpha[i]` and scale 1; NaN for a negative shape.
#[by_dtype(T in float)]
pub fn gamma<T: Ordered>(seed: u64, ctr: u64, alpha: &[T], dst: &mut [T]) {
    assert_eq!(alpha.len(), dst.len());
    each(seed, ctr, dst, |i, s| s.gamma(alpha[i].to_f64()));
}

/// Poisson with rate `rate[i]`; NaN for a negative rate.
#[by_dtype(T in float)]
pub fn poisson<T: Ordered>(seed: u64, ctr: u64, rate: &[T], dst: &mut [T]) {
    assert_eq!(rate.len(), dst.len());
    each(seed, ctr, dst, |i, s| s.poisson(rate[i].to_f64()));
}

/// Successes in `count[i]` trials of probability `prob[i]`.
pub fn binomial(seed: u64, ctr: u64, count: &[f64], prob: &[f64], dst: &mut [i64]) {
    assert!(count.len() == dst.len() && prob.len() == dst.len());
    each(seed, ctr, dst, |i, s| s.binomial(count[i], prob[i]));
}

/// Normal kept inside [lo, hi] (absolute bounds, not in units of `std`).
#[by_dtype(T in float)]
pub fn truncated_normal<T: Ordered>(seed: u64, ctr: u64, dst: &mut [T], mean: f64, std: f64, lo: f64, hi: f64) {
    if std == 0.0 {
        return dst.fill(T::from_f64(mean.clamp(lo.min(hi), hi.max(lo))));
    }
    let (a, b) = ((lo - mean) / std, (hi - mean) / std);
    // Rounding to T may step over a bound by one unit in the last place; the clamp takes that back where T allows.
    each(seed, ctr, dst, |_, s| (mean + std * s.truncated(a, b)).clamp(lo.min(hi), hi.max(lo)));
}

/// Cauchy with median `loc` and half width `scale`.
#[by_dtype(T in float)]
pub fn cauchy<T: Ordered>(seed: u64, ctr: u64, dst: &mut [T], loc: f64, scale: f64) {
    each(seed, ctr, dst, |_, s| loc + scale * libm::tan(std::f64::consts::PI * (s.unit() - 0.5)));
}

/// `ln u / ln(1 − p)`, the continuous form that Paddle's `geometric_` gives; round up for trials until success.
#[by_dtype(T in float)]
pub fn geometric<T: Ordered>(seed: u64, ctr: u64, dst: &mut [T], p: f64) {
    let scale = 1.0 / libm::log1p(-p);
    each(seed, ctr, dst, |_, s| libm::log(s.open()) * scale);
}

/// A random order of `0..dst.len()` (Fisher and Yates on one word pair per position).
pub fn randperm(seed: u64, ctr: u64, dst: &mut [i64]) {
    super::random_bits(seed, ctr, dst);
    let bits: Vec<u64> = dst.iter().map(|&b| b as u64).collect();
    for (i, &b) in bits.iter().enumerate() {
        let j = ((b as u128 * (i as u128 + 1)) >> 64) as usize;
        dst[i] = dst[j];
        dst[j] = i as i64;
    }
}

/// The first element that is no probability.
#[by_dtype(T in float)]
pub fn no_probability<T: Ordered>(x: &[T]) -> Option<f64> {
    x.iter().map(|v| v.to_f64()).find(|p| !(0.0..=1.0).contains(p))
}

/// Why a row cannot be sampled from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadProbs {
    /// A negative, infinite or NaN weight.
    Invalid {
        /// Which row.
        row: usize,
        /// Which class.
        class: usize,
    },
    /// No weight is positive.
    AllZero {
        /// Which row.
        row: usize,
    },
    /// Fewer positive weights than samples asked for without replacement.
    TooFew {
        /// Which row.
        row: usize,
        /// Positive weights there.
        positive: usize,
    },
}

/// Draws `k` classes for each row of `classes` weights (they need not sum to 1) into `dst` (rows × k). Counters used:
/// rows × max(k, classes).
#[by_dtype(T in float)]
pub fn multinomial<T: Ordered>(
    seed: u64,
    ctr: u64,
    probs: &[T],
    classes: usize,
    k: usize,
    replacement: bool,
    dst: &mut [i64],
) -> Result<(), BadProbs> {
    if classes == 0 || k == 0 {
        return Ok(());
    }
    for (row, p) in probs.chunks(classes).enumerate() {
        if let Some(class) = p.iter().position(|v| !(0.0..f64::INFINITY).contains(&v.to_f64())) {
            return Err(BadProbs::Invalid { row, class });
        }
        let positive = p.iter().filter(|v| v.to_f64() > 0.0).count();
        if positive == 0 {
            return Err(BadProbs::AllZero { row });
        }
        if !replacement && positive < k {
            return Err(BadProbs::TooFew { row, positive });
        }
    }
    let stride = k.max(classes) as u64;
    parallel::for_each_chunk_mut(dst, k, classes, |row, out| {
        let p = &probs[row * classes..(row + 1) * classes];
        let draw = |j: usize| Stream::new(seed, ctr.wrapping_add(row as u64 * stride + j as u64)).open();
        if replacement {
            let mut sum = 0.0;
            let cdf: Vec<f64> = p.iter().map(|v| (sum += v.to_f64(), sum).1).collect();
            for (j, o) in out.iter_mut().enumerate() {
                let u = draw(j) * sum;
                *o = cdf.partition_point(|&c| c < u) as i64;
            }
        } else {
            // Exponential clocks: the k that ring first are a draw without replacement.
            let mut clocks: Vec<(f64, usize)> = (0..classes)
                .filter(|&c| p[c].to_f64() > 0.0)
                .map(|c| (-libm::log(draw(c)) / p[c].to_f64(), c))
                .collect();
            clocks.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            for (o, c) in out.iter_mut().zip(clocks) {
                *o = c.1 as i64;
            }
        }
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean_var(x: &[f64]) -> (f64, f64) {
        let n = x.len() as f64;
        let m = x.iter().sum::<f64>() / n;
        (m, x.iter().map(|v| (v - m).powi(2)).sum::<f64>() / n)
    }

    #[test]
    fn moments_are_right() {
        let n = 20_000;
        let mut x = vec![0f64; n];
        for a in [0.3, 1.0, 5.0] {
            gamma_of(1, 0, &vec![a; n], &mut x);
            let (m, v) = mean_var(&x);
            assert!((m - a).abs() < 0.05 * a.max(1.0) && (v - a).abs() < 0.1 * a.max(1.0), "gamma {a}: {m} {v}");
        }
        for r in [0.5, 4.0, 40.0] {
            poisson_of(2, 0, &vec![r; n], &mut x);
            let (m, v) = mean_var(&x);
            assert!((m - r).abs() < 0.03 * r + 0.02 && (v - r).abs() < 0.05 * r + 0.02, "poisson {r}: {m} {v}");
        }
        for (c, p) in [(10.0, 0.3), (100.0, 0.4), (200.0, 0.9)] {
            let mut drawn = vec![0; n];
            binomial(3, 0, &vec![c; n], &vec![p; n], &mut drawn);
            let (m, v) = mean_var(&drawn.iter().map(|&d| d as f64).collect::<Vec<_>>());
            let (em, ev) = (c * p, c * p * (1.0 - p));
            assert!((m - em).abs() < 0.02 * em && (v - ev).abs() < 0.05 * ev, "binomial {c} {p}: {m} {v}");
        }
        truncated_normal_of(4, 0, &mut x, 1.0, 2.0, -3.0, 5.0);
        let (m, v) = mean_var(&x);
        assert!((m - 1.0).abs() < 0.05 && (v.sqrt() - 2.0 * 0.8796).abs() < 0.03, "{m} {v}");
        truncated_normal_of(4, 0, &mut x[..4], 0.5, 0.0, 0.0, 2.0);
        assert_eq!(x[..4], [0.5; 4], "no spread leaves the mean");
        truncated_normal_of(4, 0, &mut x, 0.0, 1.0, 6.0, 100.0);
        assert!(x.iter().all(|&v| (6.0..8.5).contains(&v)) && (mean_var(&x).0 - 6.158).abs() < 0.01);
        cauchy_of(5, 0, &mut x, 3.0, 1.0);
        let below = x.iter().filter(|&&v| v < 3.0).count() as f64 / n as f64;
        assert!((below - 0.5).abs() < 0.02);
        geometric_of(5, 0, &mut x, 0.25);
        assert!((mean_var(&x).0 + 1.0 / 0.75f64.ln()).abs() < 0.1);
    }

    #[test]
    fn randperm_is_a_permutation() {
        let mut p = vec![0; 1000];
        randperm(8, 0, &mut p);
        assert_ne!(p[..5], [0, 1, 2, 3, 4]);
        p.sort_unstable();
        assert!(p.iter().enumerate().all(|(i, &v)| i as i64 == v));
        // All six orders of three come up equally often.
        let mut counts = std::collections::BTreeMap::new();
        for s in 0..6000 {
            let mut p = [0; 3];
            randperm(s, 0, &mut p);
            *counts.entry(p).or_insert(0) += 1;
        }
        assert!(counts.len() == 6 && counts.values().all(|c| (850..1150).contains(c)), "{counts:?}");
    }

    #[test]
    fn multinomial_follows_its_weights() {
        let mut dst = vec![0; 30_000];
        multinomial_of(1, 0, &[1.0f32, 0.0, 3.0], 3, 30_000, true, &mut dst).unwrap();
        let ones = dst.iter().filter(|&&c| c == 0).count() as f64 / 30_000.0;
        assert!((ones - 0.25).abs() < 0.01 && !dst.contains(&1));
        let mut dst = vec![0; 4];
        multinomial_of(1, 0, &[1.0f32, 0.0, 3.0, 0.0, 1.0, 1.0], 3, 2, false, &mut dst).unwrap();
        dst[..2].sort_unstable();
        dst[2..].sort_unstable();
        assert_eq!(dst, [0, 2, 1, 2]);
        let bad = |p: &[f32], k| multinomial_of(1, 0, p, p.len(), k, false, &mut vec![0; k]);
        assert_eq!(bad(&[0.0, 0.0], 1), Err(BadProbs::AllZero { row: 0 }));
        assert_eq!(bad(&[0.0, 1.0], 2), Err(BadProbs::TooFew { row: 0, positive: 1 }));
        assert_eq!(bad(&[f32::NAN, 1.0], 1), Err(BadProbs::Invalid { row: 0, class: 0 }));
    }
}
