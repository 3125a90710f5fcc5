//! Lowers the learning rate when evaluations no longer improve.

use super::super::{Callback, Logs, Model};
use super::{Better, watch_settings, watched};
use crate::progress::mention;
use sampan_core::{Result, ensure};

/// Multiplies the learning rate by `factor` when the watched figure has not improved for `patience` evaluations.
#[derive(Clone, Debug)]
pub struct ReduceLROnPlateau {
    monitor: String,
    factor: f64,
    patience: usize,
    better: Better,
    min_delta: f64,
    cooldown: usize,
    min_lr: f64,
    verbose: bool,
    best: f64,
    waited: usize,
    cooling: usize,
}

impl ReduceLROnPlateau {
    /// Watches a figure of the evaluation; a factor of 0.1 after 10 evaluations without improvement.
    pub fn new(monitor: impl Into<String>) -> ReduceLROnPlateau {
        ReduceLROnPlateau {
            monitor: monitor.into(),
            factor: 0.1,
            patience: 10,
            better: Better::Auto,
            min_delta: 1e-4,
            cooldown: 0,
            min_lr: 0.0,
            verbose: true,
            best: 0.0,
            waited: 0,
            cooling: 0,
        }
    }
    /// What the learning rate is multiplied by; less than one.
    pub fn factor(mut self, factor: f64) -> Result<Self> {
        ensure!(factor < 1.0, "a factor of {factor} would not lower the learning rate; it must be less than 1");
        self.factor = factor;
        Ok(self)
    }
    watch_settings!();
    /// Evaluations to leave out after each reduction.
    pub fn cooldown(mut self, evaluations: usize) -> Self {
        self.cooldown = evaluations;
        self
    }
    /// The learning rate never goes below this.
    pub fn min_lr(mut self, lr: f64) -> Self {
        self.min_lr = lr;
        self
    }
}

impl Callback for ReduceLROnPlateau {
    fn on_train_begin(&mut self, _: &mut Model, _: &Logs) -> Result<()> {
        self.best = self.better.worst(&self.monitor);
        self.waited = 0;
        self.cooling = 0;
        Ok(())
    }

    fn on_eval_end(&mut self, model: &mut Model, logs: &Logs) -> Result<()> {
        let Some(value) = watched("ReduceLROnPlateau", &self.monitor, logs) else { return Ok(()) };
        let Some(optimizer) = model.optimizer_mut() else { return Ok(()) };
        if self.cooling > 0 {
            self.cooling -= 1;
            self.waited = 0;
        }
        if self.better.than(&self.monitor, value, self.best, self.min_delta) {
            self.best = value;
            self.waited = 0;
        } else if self.cooling == 0 {
            self.waited += 1;
            let lr = optimizer.get_lr();
            if self.waited >= self.patience && lr > self.min_lr {
                let lower = (lr * self.factor).max(self.min_lr);
                optimizer.set_lr(lower)?;
                if self.verbose {
                    mention(format!("ReduceLROnPlateau: learning rate from {lr:.3e} to {lower:.3e}"));
                }
                self.cooling = self.cooldown;
                self.waited = 0;
            }
        }
        Ok(())
    }

    fn state(&self) -> Vec<f64> {
        vec![self.best, self.waited as f64, self.cooling as f64]
    }

    fn set_state(&mut self, _: &mut Model, state: &[f64]) {
        if let &[best, waited, cooling] = state {
            (self.best, self.waited, self.cooling) = (best, waited as usize, cooling as usize);
        }
    }
}
