//! Saving while training.

use super::super::{Callback, Logs, Model};
use crate::progress::mention;
use sampan_core::Result;
use std::path::PathBuf;

/// Saves `FOLDER/<epoch>.pdparams` and `.pdopt` every so many epochs, and `FOLDER/final` at the end, as Paddle does.
#[derive(Clone, Debug)]
pub struct ModelCheckpoint {
    save_freq: usize,
    folder: PathBuf,
    verbose: bool,
}

impl ModelCheckpoint {
    /// Every `save_freq` epochs into a folder.
    pub fn new(save_freq: usize, folder: impl Into<PathBuf>) -> ModelCheckpoint {
        ModelCheckpoint { save_freq: save_freq.max(1), folder: folder.into(), verbose: true }
    }

    /// Says where it saved.
    pub fn verbose(mut self, on: bool) -> Self {
        self.verbose = on;
        self
    }

    fn save(&self, model: &Model, name: &str) -> Result<()> {
        let path = self.folder.join(name);
        if self.verbose {
            mention(format!("save checkpoint at {}", path.display()));
        }
        model.save(path, true)
    }
}

impl Callback for ModelCheckpoint {
    fn on_epoch_end(&mut self, model: &mut Model, epoch: usize, _: &Logs) -> Result<()> {
        if epoch.is_multiple_of(self.save_freq) { self.save(model, &epoch.to_string()) } else { Ok(()) }
    }
    fn on_train_end(&mut self, model: &mut Model, _: &Logs) -> Result<()> {
        self.save(model, "final")
    }
}
