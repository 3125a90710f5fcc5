//! What can be done between the steps of training.

use super::Model;
use sampan_core::Result;

/// Figures of a step, an epoch or an evaluation, and how long they took.
#[derive(Clone, Debug, Default)]
pub struct Logs {
    /// Batches done in this pass.
    pub step: usize,
    /// Batches in this pass, where that is known.
    pub steps: Option<usize>,
    /// Passes over the data in all; zero outside of training.
    pub epochs: usize,
    /// Samples in the last batch.
    pub batch_size: usize,
    /// Samples so far in this pass.
    pub samples: usize,
    /// Seconds the last batch was waited for.
    pub reader_cost: f64,
    /// Seconds the last batch took, waiting included.
    pub batch_cost: f64,
    /// The learning rate that the last step used.
    pub lr: f64,
    /// Loss of the last batch and metrics so far, by name.
    pub values: Vec<(String, f64)>,
}

impl Logs {
    /// A figure by its name.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.values.iter().find(|(n, _)| n == name).map(|(_, v)| *v)
    }

    /// Samples a second in the last batch.
    pub fn ips(&self) -> f64 {
        if self.batch_cost > 0.0 { self.batch_size as f64 / self.batch_cost } else { 0.0 }
    }
}

/// Is called at the turns of training, evaluation and prediction. Everything does nothing unless implemented; an error ends
/// the run and reaches the caller. Setting `model.stop_training` ends training after the step.
#[allow(unused_variables)]
pub trait Callback: Send {
    /// Training begins.
    fn on_train_begin(&mut self, model: &mut Model, logs: &Logs) -> Result<()> {
        Ok(())
    }
    /// Training is over.
    fn on_train_end(&mut self, model: &mut Model, logs: &Logs) -> Result<()> {
        Ok(())
    }
    /// An epoch begins, counted from zero.
    fn on_epoch_begin(&mut self, model: &mut Model, epoch: usize, logs: &Logs) -> Result<()> {
        Ok(())
    }
    /// An epoch is over.
    fn on_epoch_end(&mut self, model: &mut Model, epoch: usize, logs: &Logs) -> Result<()> {
        Ok(())
    }
    /// A batch is about to be trained on, counted from zero.
    fn on_train_batch_begin(&mut self, model: &mut Model, step: usize, logs: &Logs) -> Result<()> {
        Ok(())
    }
    /// A batch was trained on.
    fn on_train_batch_end(&mut self, model: &mut Model, step: usize, logs: &Logs) -> Result<()> {
        Ok(())
    }
    /// An evaluation begins.
    fn on_eval_begin(&mut self, model: &mut Model, logs: &Logs) -> Result<()> {
        Ok(())
    }
    /// An evaluation is over; the logs hold its loss and metrics.
    fn on_eval_end(&mut self, model: &mut Model, logs: &Logs) -> Result<()> {
        Ok(())
    }
    /// A batch was evaluated.
    fn on_eval_batch_end(&mut self, model: &mut Model, step: usize, logs: &Logs) -> Result<()> {
        Ok(())
    }
    /// A prediction begins.
    fn on_predict_begin(&mut self, model: &mut Model, logs: &Logs) -> Result<()> {
        Ok(())
    }
    /// A prediction is over.
    fn on_predict_end(&mut self, model: &mut Model, logs: &Logs) -> Result<()> {
        Ok(())
    }
    /// A batch was predicted.
    fn on_predict_batch_end(&mut self, model: &mut Model, step: usize, logs: &Logs) -> Result<()> {
        Ok(())
    }
    /// What must be kept in a checkpoint so that a resumed run goes on as if it had not been stopped.
    fn state(&self) -> Vec<f64> {
        Vec::new()
    }
    /// Goes on from a kept state; called after `on_train_begin`.
    fn set_state(&mut self, model: &mut Model, state: &[f64]) {}
    /// Under which its state is kept: callbacks of a resumed run take over what those of the same name left.
    fn name(&self) -> &'static str {
        std::any::type_name::<Self>()
    }
    /// Does it move the learning rate's schedule on? Otherwise `fit` does, after every batch.
    fn moves_schedule(&self) -> bool {
        false
    }
}

/// A callback that others may ask afterwards: what it learnt stays in the shared place.
impl<C: Callback> Callback for std::sync::Arc<std::sync::Mutex<C>> {
    fn on_train_begin(&mut self, model: &mut Model, logs: &Logs) -> Result<()> {
        locked(self).on_train_begin(model, logs)
    }
    fn on_train_end(&mut self, model: &mut Model, logs: &Logs) -> Result<()> {
        locked(self).on_train_end(model, logs)
    }
    fn on_epoch_begin(&mut self, model: &mut Model, epoch: usize, logs: &Logs) -> Result<()> {
        locked(self).on_epoch_begin(model, epoch, logs)
    }
    fn on_epoch_end(&mut self, model: &mut Model, epoch: usize, logs: &Logs) -> Result<()> {
        locked(self).on_epoch_end(model, epoch, logs)
    }
    fn on_train_batch_begin(&mut self, model: &mut Model, step: usize, logs: &Logs) -> Result<()> {
        locked(self).on_train_batch_begin(model, step, logs)
    }
    fn on_train_batch_end(&mut self, model: &mut Model, step: usize, logs: &Logs) -> Result<()> {
        locked(self).on_train_batch_end(model, step, logs)
    }
    fn on_eval_begin(&mut self, model: &mut Model, logs: &Logs) -> Result<()> {
        locked(self).on_eval_begin(model, logs)
    }
    fn on_eval_end(&mut self, model: &mut Model, logs: &Logs) -> Result<()> {
        locked(self).on_eval_end(model, logs)
    }
    fn on_eval_batch_end(&mut self, model: &mut Model, step: usize, logs: &Logs) -> Result<()> {
        locked(self).on_eval_batch_end(model, step, logs)
    }
    fn on_predict_begin(&mut self, model: &mut Model, logs: &Logs) -> Result<()> {
        locked(self).on_predict_begin(model, logs)
    }
    fn on_predict_end(&mut self, model: &mut Model, logs: &Logs) -> Result<()> {
        locked(self).on_predict_end(model, logs)
    }
    fn on_predict_batch_end(&mut self, model: &mut Model, step: usize, logs: &Logs) -> Result<()> {
        locked(self).on_predict_batch_end(model, step, logs)
    }
    fn state(&self) -> Vec<f64> {
        locked(self).state()
    }
    fn set_state(&mut self, model: &mut Model, state: &[f64]) {
        locked(self).set_state(model, state)
    }
    fn name(&self) -> &'static str {
        locked(self).name()
    }
    fn moves_schedule(&self) -> bool {
        locked(self).moves_schedule()
    }
}

fn locked<C>(shared: &std::sync::Mutex<C>) -> std::sync::MutexGuard<'_, C> {
    shared.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
