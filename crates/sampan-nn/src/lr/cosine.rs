//! Learning rates along a cosine.
#![allow(non_snake_case)]

use super::{Clock, LRScheduler, Schedule, object};
use sampan_core::{Result, ensure};
use sampan_macros::class;
use std::f64::consts::PI;

/// Falls and rises along a cosine.
pub struct CosineAnnealingDecay {
    half_period: f64,
    eta_min: f64,
}

#[class(module = "optimizer.lr", object = object)]
impl CosineAnnealingDecay {
    /// From `learning_rate` to `eta_min` in `T_max` epochs along half a cosine, and back again if it goes on.
    ///
    /// ```
    /// let lr = sampan_nn::lr::CosineAnnealingDecay::new(0.5, 10);
    /// lr.step_to(5);
    /// assert!((lr.last_lr() - 0.25).abs() < 1e-12);
    /// ```
    fn build(
        learning_rate: f64,
        T_max: i64,
        #[opt(0.0)] eta_min: f64,
        #[opt(-1)] last_epoch: i64,
        #[opt(false)] verbose: bool,
    ) -> Result<Schedule> {
        ensure!(T_max > 0, "T_max must be positive, got {T_max}");
        let scheduler = CosineAnnealingDecay { half_period: T_max as f64, eta_min };
        Schedule::new(scheduler, learning_rate, last_epoch, verbose)
    }
}

impl LRScheduler for CosineAnnealingDecay {
    /// From the rate before, so that a rate that was changed on the way stays changed.
    fn get_lr(&self, c: &Clock) -> Result<f64> {
        let (t, min, epoch) = (self.half_period, self.eta_min, c.last_epoch as f64);
        if c.last_epoch == 0 {
            return Ok(c.base_lr);
        }
        if (epoch - 1.0 - t).rem_euclid(2.0 * t) == 0.0 {
            return Ok(c.last_lr + (c.base_lr - min) * (1.0 - (PI / t).cos()) / 2.0);
        }
        let height = |epoch: f64| 1.0 + (PI * epoch / t).cos();
        Ok(height(epoch) / height(epoch - 1.0) * (c.last_lr - min) + min)
    }
    fn closed_form_lr(&self, c: &Clock) -> Result<f64> {
        let height = 1.0 + (PI * c.last_epoch as f64 / self.half_period).cos();
        Ok(self.eta_min + (c.base_lr - self.eta_min) * height / 2.0)
    }
}

/// Falls along a cosine again and again.
pub struct CosineAnnealingWarmRestarts;

#[class(module = "optimizer.lr", object = object)]
impl CosineAnnealingWarmRestarts {
    /// From `learning_rate` to `eta_min` in `T_0` epochs, then from the top again, each time `T_mult` times as long.
    ///
    /// ```
    /// let lr = sampan_nn::lr::CosineAnnealingWarmRestarts::new(0.5, 4);
    /// lr.step_to(6.0);
    /// assert!((lr.last_lr() - 0.25).abs() < 1e-12);
    /// ```
    fn build(
        learning_rate: f64,
        T_0: i64,
        #[opt(1)] T_mult: i64,
        #[opt(0.0)] eta_min: f64,
        #[opt(-1)] last_epoch: i64,
        #[opt(false)] verbose: bool,
    ) -> Result<Schedule> {
        ensure!(T_0 > 0, "T_0 must be positive, got {T_0}");
        ensure!(T_mult >= 1, "T_mult must be at least 1, got {T_mult}");
        Schedule::of("CosineAnnealingWarmRestarts", learning_rate, last_epoch, verbose, move |c| {
            ensure!(c.last_epoch >= 0, "an epoch must not be negative, got {}", c.last_epoch);
            let (mut at, mut period) = (c.last_epoch, T_0);
            if T_mult == 1 {
                at %= period;
            }
            while at >= period {
                at -= period;
                period = period.saturating_mul(T_mult);
            }
            let height = 1.0 + (PI * (at as f64 + c.fraction) / period as f64).cos();
            Ok(eta_min + (c.base_lr - eta_min) * height / 2.0)
        })
    }
}
