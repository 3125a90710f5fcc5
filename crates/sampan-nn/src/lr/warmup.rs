//! Learning rates that begin small.

use super::{Clock, LRScheduler, LearningRate, Schedule, missing, object};
use sampan_core::value::Arg;
use sampan_core::{Dict, Result, ensure};
use sampan_macros::class;

/// A linear rise in front of another learning rate.
pub struct LinearWarmup {
    after: LearningRate,
    warmup_steps: i64,
    start_lr: f64,
    end_lr: f64,
}

#[class(module = "optimizer.lr", object = object)]
impl LinearWarmup {
    /// From `start_lr` to `end_lr` in `warmup_steps`, then `learning_rate`: a number, or another schedule from its first
    /// epoch on.
    ///
    /// ```
    /// use sampan_nn::lr::{LinearWarmup, StepDecay};
    /// let lr = LinearWarmup::new(StepDecay::new(0.5, 1), 10, 0.0, 0.5);
    /// lr.step_to(5);
    /// assert_eq!(lr.last_lr(), 0.25);
    /// lr.step_to(11);
    /// assert_eq!(lr.last_lr(), 0.05);
    /// ```
    fn build(
        learning_rate: LearningRate,
        warmup_steps: i64,
        start_lr: f64,
        end_lr: f64,
        #[opt(-1)] last_epoch: i64,
        #[opt(false)] verbose: bool,
    ) -> Result<Schedule> {
        ensure!(warmup_steps > 0, "warmup_steps must be positive, got {warmup_steps}");
        ensure!(end_lr > start_lr, "end_lr {end_lr} must be above start_lr {start_lr}");
        let scheduler = LinearWarmup { after: learning_rate, warmup_steps, start_lr, end_lr };
        Schedule::new(scheduler, start_lr, last_epoch, verbose)
    }
}

impl LRScheduler for LinearWarmup {
    fn get_lr(&self, c: &Clock) -> Result<f64> {
        if c.last_epoch < self.warmup_steps {
            let share = c.last_epoch as f64 / self.warmup_steps as f64;
            return Ok((self.end_lr - self.start_lr) * share + self.start_lr);
        }
        if let LearningRate::Scheduled(s) = &self.after {
            s.try_step(Some((c.last_epoch - self.warmup_steps) as f64))?;
        }
        Ok(self.after.get())
    }
    fn save(&self, state: &mut Dict) {
        if let LearningRate::Scheduled(s) = &self.after {
            state.insert("LinearWarmup_LR", s.state_dict());
        }
    }
    fn load(&mut self, state: &Dict) -> Result<()> {
        let LearningRate::Scheduled(s) = &self.after else { return Ok(()) };
        let inner = state.get("LinearWarmup_LR").ok_or_else(|| missing("LinearWarmup_LR"))?;
        s.set_state_dict(<&Dict>::get(inner, "LinearWarmup_LR")?)
    }
}

/// A factor that changes linearly.
pub struct LinearLR;

#[class(module = "optimizer.lr", object = object)]
impl LinearLR {
    /// From `learning_rate * start_factor` to `learning_rate * end_factor` in `total_steps`, then constant.
    ///
    /// ```
    /// let lr = sampan_nn::lr::LinearLR::with(0.5, 4, |o| o.start_factor(0.5));
    /// lr.step();
    /// assert_eq!(lr.last_lr(), 0.3125);
    /// ```
    fn build(
        learning_rate: f64,
        total_steps: i64,
        #[opt(1.0 / 3.0)] start_factor: f64,
        #[opt(1.0)] end_factor: f64,
        #[opt(-1)] last_epoch: i64,
        #[opt(false)] verbose: bool,
    ) -> Result<Schedule> {
        ensure!(start_factor > 0.0 && start_factor <= 1.0, "start_factor must lie in (0, 1], got {start_factor}");
        ensure!((0.0..=1.0).contains(&end_factor), "end_factor must lie in [0, 1], got {end_factor}");
        ensure!(total_steps > 0, "total_steps must be positive, got {total_steps}");
        Schedule::of("LinearLR", learning_rate, last_epoch, verbose, move |c| {
            if c.last_epoch == 0 {
                return Ok(c.base_lr * start_factor);
            }
            if c.last_epoch > total_steps {
                return Ok(c.last_lr);
            }
            let rise = end_factor - start_factor;
            let before = total_steps as f64 * start_factor + (c.last_epoch - 1) as f64 * rise;
            Ok(c.last_lr * (1.0 + rise / before))
        })
    }
}
