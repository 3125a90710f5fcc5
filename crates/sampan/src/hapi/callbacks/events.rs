//! Scalars for TensorBoard.

use super::super::{Callback, Logs, Model};
use sampan_core::Result;
use sampan_io::events::EventWriter;
use std::path::PathBuf;

/// Writes loss, metrics and learning rate into an event file that TensorBoard reads.
pub struct EventLogger {
    folder: PathBuf,
    done: usize,
    writer: Option<EventWriter>,
}

impl EventLogger {
    /// Event files go into this folder, one for each run: `tensorboard --logdir FOLDER`.
    pub fn new(folder: impl Into<PathBuf>) -> EventLogger {
        EventLogger { folder: folder.into(), done: 0, writer: None }
    }

    /// Goes on after `done` steps of a run that was stopped: what it wrote beyond is dropped.
    pub fn resuming(folder: impl Into<PathBuf>, done: usize) -> EventLogger {
        EventLogger { folder: folder.into(), done, writer: None }
    }

    fn write(&mut self, mode: &str, step: usize, logs: &Logs) -> Result<()> {
        if self.writer.is_none() {
            self.writer = Some(match self.done {
                0 => EventWriter::create(&self.folder)?,
                done => EventWriter::resume(&self.folder, done as i64)?,
            });
        }
        let writer = self.writer.as_mut().expect("made above");
        for (name, value) in &logs.values {
            writer.scalar(&format!("{mode}/{name}"), *value as f32, step as i64)?;
        }
        if mode == "train" {
            writer.scalar("train/lr", logs.lr as f32, step as i64)?;
        }
        Ok(())
    }
}

impl Callback for EventLogger {
    fn on_train_batch_end(&mut self, model: &mut Model, _: usize, logs: &Logs) -> Result<()> {
        self.write("train", model.global_step(), logs)
    }
    fn on_eval_end(&mut self, model: &mut Model, logs: &Logs) -> Result<()> {
        self.write("eval", model.global_step(), logs)?;
        self.writer.as_mut().map_or(Ok(()), |w| w.flush())
    }
    fn on_train_end(&mut self, _: &mut Model, _: &Logs) -> Result<()> {
        self.writer.as_mut().map_or(Ok(()), |w| w.flush())
    }
}
