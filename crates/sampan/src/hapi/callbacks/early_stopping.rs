//! Stops when evaluations no longer improve.

use super::super::{Callback, Logs, Model};
use super::{Better, watch_settings, watched};
use crate::progress::mention;
use sampan_core::Result;
use std::path::PathBuf;

/// Ends training when the watched figure has not improved for `patience` evaluations.
#[derive(Clone, Debug)]
pub struct EarlyStopping {
    monitor: String,
    better: Better,
    patience: usize,
    min_delta: f64,
    baseline: Option<f64>,
    save_best: Option<PathBuf>,
    verbose: bool,
    best: f64,
    waited: usize,
    evaluations: usize,
}

impl EarlyStopping {
    /// Watches a figure of the evaluation: `"loss"`, or a metric's name.
    pub fn new(monitor: impl Into<String>) -> EarlyStopping {
        EarlyStopping {
            monitor: monitor.into(),
            better: Better::Auto,
            patience: 0,
            min_delta: 0.0,
            baseline: None,
            save_best: None,
            verbose: true,
            best: 0.0,
            waited: 0,
            evaluations: 0,
        }
    }
    watch_settings!();
    /// The value to beat from the start.
    pub fn baseline(mut self, value: f64) -> Self {
        self.baseline = Some(value);
        self
    }
    /// Keeps the best model as `best_model.pdparams` and `best_model.pdopt` in this folder.
    pub fn save_best_model(mut self, folder: impl Into<PathBuf>) -> Self {
        self.save_best = Some(folder.into());
        self
    }

    fn is_over(&self) -> bool {
        self.waited > 0 && self.waited >= self.patience
    }
}

impl Callback for EarlyStopping {
    fn on_train_begin(&mut self, _: &mut Model, _: &Logs) -> Result<()> {
        self.waited = 0;
        self.evaluations = 0;
        self.best = self.baseline.unwrap_or(self.better.worst(&self.monitor));
        Ok(())
    }

    fn on_eval_end(&mut self, model: &mut Model, logs: &Logs) -> Result<()> {
        let Some(value) = watched("EarlyStopping", &self.monitor, logs) else { return Ok(()) };
        self.evaluations += 1;
        if self.better.than(&self.monitor, value, self.best, self.min_delta) {
            self.best = value;
            self.waited = 0;
            if let Some(folder) = &self.save_best {
                model.save(folder.join("best_model"), true)?;
            }
        } else {
            self.waited += 1;
        }
        if self.is_over() {
            model.stop_training = true;
            if self.verbose {
                mention(format!(
                    "Epoch {}: early stopping, {} was best at {:.4}",
                    self.evaluations, self.monitor, self.best
                ));
            }
        }
        Ok(())
    }

    fn state(&self) -> Vec<f64> {
        vec![self.best, self.waited as f64, self.evaluations as f64]
    }

    fn set_state(&mut self, model: &mut Model, state: &[f64]) {
        if let &[best, waited, evaluations] = state {
            (self.best, self.waited, self.evaluations) = (best, waited as usize, evaluations as usize);
            // A run that had ended is not trained further, unless there is more patience now.
            model.stop_training |= self.is_over();
        }
    }
}
