//! The callbacks that come with sampan.

mod checkpoint;
mod early_stopping;
mod events;
mod history;
mod lr_scheduler;
mod plateau;
mod progress;
mod train_log;

pub use checkpoint::ModelCheckpoint;
pub use early_stopping::EarlyStopping;
pub use events::EventLogger;
pub use history::History;
pub use lr_scheduler::LRScheduler;
pub use plateau::ReduceLROnPlateau;
pub use progress::ProgBarLogger;
pub use train_log::TrainLog;

/// Is a smaller or a larger value of the watched figure better?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Larger for names with `acc` in them, smaller otherwise.
    Auto,
    /// Smaller, as for a loss.
    Smaller,
    /// Larger, as for an accuracy.
    Larger,
}

impl Better {
    /// Is `value` better than `best` by more than `delta`?
    fn than(self, monitor: &str, value: f64, best: f64, delta: f64) -> bool {
        if self.larger(monitor) { value - delta > best } else { value + delta < best }
    }

    fn worst(self, monitor: &str) -> f64 {
        if self.larger(monitor) { f64::NEG_INFINITY } else { f64::INFINITY }
    }

    fn larger(self, monitor: &str) -> bool {
        match self {
            Better::Auto => monitor.contains("acc"),
            Better::Smaller => false,
            Better::Larger => true,
        }
    }
}

/// The watched figure, or a sentence on standard error about what could be watched instead.
fn watched(who: &str, monitor: &str, logs: &super::Logs) -> Option<f64> {
    let value = logs.get(monitor);
    if value.is_none() {
        let names: Vec<&str> = logs.values.iter().map(|(n, _)| n.as_str()).collect();
        eprintln!("warning: {who} watches {monitor:?}, but the evaluation has only {names:?}");
    }
    value
}

/// The settings of callbacks that watch a figure of the evaluation and act when it no longer improves.
macro_rules! watch_settings {
    () => {
        /// Evaluations without improvement to wait for.
        pub fn patience(mut self, evaluations: usize) -> Self {
            self.patience = evaluations;
            self
        }
        /// Which direction is an improvement.
        pub fn mode(mut self, better: Better) -> Self {
            self.better = better;
            self
        }
        /// A smaller change does not count as an improvement.
        pub fn min_delta(mut self, delta: f64) -> Self {
            self.min_delta = delta.abs();
            self
        }
        /// Says when it acts.
        pub fn verbose(mut self, on: bool) -> Self {
            self.verbose = on;
            self
        }
    };
}
use watch_settings;
