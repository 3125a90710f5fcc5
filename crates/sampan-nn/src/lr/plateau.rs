//! A learning rate that falls when nothing gets better.

use super::{Clock, LRScheduler, Schedule, missing, object};
use sampan_core::value::Arg;
use sampan_core::{Dict, Error, Result, Value, ensure};
use sampan_macros::class;

/// Falls when a measured value stops getting better.
pub struct ReduceOnPlateau {
    lower_is_better: bool,
    factor: f64,
    patience: i64,
    threshold: f64,
    relative: bool,
    cooldown: i64,
    min_lr: f64,
    epsilon: f64,
    cooldown_counter: i64,
    best: Option<f64>,
    num_bad_epochs: i64,
}

#[class(module = "optimizer.lr", object = object)]
impl ReduceOnPlateau {
    /// Falls to its share `factor` when `step_with(value)` brought nothing better for more than `patience` epochs. Better
    /// is lower (`mode="min"`) or higher by `threshold`, relative or absolute; after a fall `cooldown` epochs do not
    /// count; it stays above `min_lr`, and falls of less than `epsilon` are left out.
    ///
    /// ```
    /// let lr = sampan_nn::lr::ReduceOnPlateau::with(1.0, |o| o.patience(1).factor(0.5));
    /// [3.0, 2.0, 2.0, 2.0].into_iter().try_for_each(|loss| lr.step_with(loss))?;
    /// assert_eq!(lr.last_lr(), 0.5);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    fn build(
        learning_rate: f64,
        #[opt("min")] mode: &str,
        #[opt(0.1)] factor: f64,
        #[opt(10)] patience: i64,
        #[opt(1e-4)] threshold: f64,
        #[opt("rel")] threshold_mode: &str,
        #[opt(0)] cooldown: i64,
        #[opt(0.0)] min_lr: f64,
        #[opt(1e-8)] epsilon: f64,
        #[opt(false)] verbose: bool,
    ) -> Result<Schedule> {
        let one_of = |what: &str, given: &str, [first, second]: [&str; 2]| {
            let lower = given.to_lowercase();
            let known = lower == first || lower == second;
            known
                .then_some(lower == first)
                .ok_or_else(|| Error::invalid(format!("{what} must be {first:?} or {second:?}, got {given:?}")))
        };
        ensure!(factor < 1.0, "factor must be below 1, got {factor}");
        let scheduler = ReduceOnPlateau {
            lower_is_better: one_of("mode", mode, ["min", "max"])?,
            relative: one_of("threshold_mode", threshold_mode, ["rel", "abs"])?,
            factor,
            patience,
            threshold,
            cooldown,
            min_lr,
            epsilon,
            cooldown_counter: 0,
            best: None,
            num_bad_epochs: 0,
        };
        Schedule::standing(scheduler, learning_rate, 0, verbose)
    }
}

impl ReduceOnPlateau {
    fn is_better(&self, now: f64, best: f64) -> bool {
        let margin = if self.relative { best * self.threshold } else { self.threshold };
        if self.lower_is_better { now < best - margin } else { now > best + margin }
    }
}

impl LRScheduler for ReduceOnPlateau {
    fn get_lr(&self, clock: &Clock) -> Result<f64> {
        Ok(clock.last_lr)
    }
    fn needs_metric(&self) -> bool {
        true
    }
    fn observe(&mut self, clock: &mut Clock, metric: f64) {
        if self.cooldown_counter > 0 {
            self.cooldown_counter -= 1;
            return;
        }
        if self.best.is_none_or(|best| self.is_better(metric, best)) {
            (self.best, self.num_bad_epochs) = (Some(metric), 0);
        } else {
            self.num_bad_epochs += 1;
        }
        if self.num_bad_epochs > self.patience {
            (self.cooldown_counter, self.num_bad_epochs) = (self.cooldown, 0);
            let lr = (clock.last_lr * self.factor).max(self.min_lr);
            if clock.last_lr - lr > self.epsilon {
                clock.last_lr = lr;
            }
        }
    }
    fn save(&self, state: &mut Dict) {
        state.insert("cooldown_counter", self.cooldown_counter);
        state.insert("best", Value::optional(self.best));
        state.insert("num_bad_epochs", self.num_bad_epochs);
    }
    fn load(&mut self, state: &Dict) -> Result<()> {
        let value = |key: &str| state.get(key).ok_or_else(|| missing(key));
        // Paddle keeps the best value as a tensor where a tensor was measured.
        self.best = match value("best")? {
            Value::Tensor(t) => Some(t.try_item()?.to_f64()),
            other => Option::<f64>::get(other, "best")?,
        };
        self.cooldown_counter = i64::get(value("cooldown_counter")?, "cooldown_counter")?;
        self.num_bad_epochs = i64::get(value("num_bad_epochs")?, "num_bad_epochs")?;
        Ok(())
    }
}
