//! Progress on the screen.

use super::super::{Callback, Logs, Model};
use crate::progress::{Progress, mention};
use sampan_core::Result;

/// How much is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verbosity {
    /// Nothing.
    Silent,
    /// A bar that moves (a few lines, where the output is not a terminal).
    Bar,
    /// A line every `log_freq` steps.
    Lines,
}

/// Shows step, loss, metrics, remaining time and time a step.
pub struct ProgBarLogger {
    log_freq: usize,
    verbosity: Verbosity,
    bar: Progress,
}

impl ProgBarLogger {
    /// Shows a line every `log_freq` steps; `verbose` as in Paddle: 0 nothing, 1 a bar, 2 lines.
    pub fn new(log_freq: usize, verbose: usize) -> ProgBarLogger {
        let verbosity = match verbose {
            0 => Verbosity::Silent,
            1 => Verbosity::Bar,
            _ => Verbosity::Lines,
        };
        ProgBarLogger { log_freq: log_freq.max(1), verbosity, bar: Progress::new(None) }
    }

    fn begin(&mut self, title: String, steps: Option<usize>, done: usize) {
        if self.verbosity != Verbosity::Silent {
            mention(title);
        }
        self.bar = Progress::new(steps).starting_at(done);
    }

    fn batch(&mut self, logs: &Logs) {
        match self.verbosity {
            Verbosity::Silent => {}
            Verbosity::Bar => self.bar.bar(logs.step, &logs.values),
            Verbosity::Lines => self.bar.line_every(self.log_freq, logs.step, &logs.values),
        }
    }

    fn end(&mut self, logs: &Logs, samples: Option<&str>) {
        if self.verbosity == Verbosity::Silent {
            return;
        }
        self.bar.finish(logs.step, &logs.values, self.verbosity == Verbosity::Bar);
        if let Some(what) = samples {
            mention(format!("{what} samples: {}", logs.samples));
        }
    }
}

impl Callback for ProgBarLogger {
    fn on_train_begin(&mut self, _: &mut Model, _: &Logs) -> Result<()> {
        if self.verbosity != Verbosity::Silent {
            mention("The loss shown is that of the current step, metrics are means over the epoch so far.");
        }
        Ok(())
    }
    fn on_epoch_begin(&mut self, _: &mut Model, epoch: usize, logs: &Logs) -> Result<()> {
        self.begin(format!("Epoch {}/{}", epoch + 1, logs.epochs), logs.steps, logs.step);
        Ok(())
    }
    fn on_train_batch_end(&mut self, _: &mut Model, _: usize, logs: &Logs) -> Result<()> {
        self.batch(logs);
        Ok(())
    }
    fn on_epoch_end(&mut self, _: &mut Model, _: usize, logs: &Logs) -> Result<()> {
        self.end(logs, None);
        Ok(())
    }
    fn on_eval_begin(&mut self, _: &mut Model, logs: &Logs) -> Result<()> {
        self.begin("Eval begin...".into(), logs.steps, 0);
        Ok(())
    }
    fn on_eval_batch_end(&mut self, _: &mut Model, _: usize, logs: &Logs) -> Result<()> {
        self.batch(logs);
        Ok(())
    }
    fn on_eval_end(&mut self, _: &mut Model, logs: &Logs) -> Result<()> {
        self.end(logs, Some("Eval"));
        Ok(())
    }
    fn on_predict_begin(&mut self, _: &mut Model, logs: &Logs) -> Result<()> {
        self.begin("Predict begin...".into(), logs.steps, 0);
        Ok(())
    }
    fn on_predict_batch_end(&mut self, _: &mut Model, _: usize, logs: &Logs) -> Result<()> {
        self.batch(logs);
        Ok(())
    }
    fn on_predict_end(&mut self, _: &mut Model, logs: &Logs) -> Result<()> {
        self.end(logs, Some("Predict"));
        Ok(())
    }
}
