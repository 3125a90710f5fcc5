//! Moves the learning rate's schedule on.

use super::super::{Callback, Logs, Model};
use sampan_core::{Result, ensure};

/// Steps the optimizer's schedule after every batch, or after every epoch.
#[derive(Clone, Copy, Debug)]
pub struct LRScheduler {
    by_epoch: bool,
}

impl LRScheduler {
    /// Exactly one of the two must be true.
    pub fn new(by_step: bool, by_epoch: bool) -> Result<LRScheduler> {
        ensure!(by_step != by_epoch, "exactly one of by_step and by_epoch must be true");
        Ok(LRScheduler { by_epoch })
    }
    /// After every batch, as `fit` does unless told otherwise.
    pub fn by_step() -> LRScheduler {
        LRScheduler { by_epoch: false }
    }
    /// After every epoch.
    pub fn by_epoch() -> LRScheduler {
        LRScheduler { by_epoch: true }
    }
}

fn step(model: &mut Model) -> Result<()> {
    // One that follows a measured value is moved by whoever measures.
    let schedule = model.optimizer().and_then(|o| o.lr_scheduler()).filter(|s| !s.needs_metric());
    schedule.map_or(Ok(()), |s| s.try_step(None))
}

impl Callback for LRScheduler {
    fn moves_schedule(&self) -> bool {
        true
    }
    fn on_train_batch_end(&mut self, model: &mut Model, _: usize, _: &Logs) -> Result<()> {
        if self.by_epoch { Ok(()) } else { step(model) }
    }
    fn on_epoch_end(&mut self, model: &mut Model, _: usize, _: &Logs) -> Result<()> {
        if self.by_epoch { step(model) } else { Ok(()) }
    }
}
