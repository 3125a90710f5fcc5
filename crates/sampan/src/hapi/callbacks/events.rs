//! Scalars for TensorBoard.

use super::super::{Callback, Logs, Model};
use sampan_core::Result;
use sampan_io::events::EventWriter;
use std::path::PathBuf;

/// Writes loss, metrics and learning rate into an event file that TensorBoard reads.
pub struct EventLogger {
    folder: PathBuf,
    /// Steps of an earlier run in this folder that count; none if there was no such run.
    resumed: Option<usize>,
    /// The last step that was written.
    last: usize,
    writer: Option<EventWriter>,
}

impl EventLogger {
    /// Event files go into this folder, one for each run: `tensorboard --logdir FOLDER`.
    pub fn new(folder: impl Into<PathBuf>) -> EventLogger {
        EventLogger { folder: folder.into(), resumed: None, last: 0, writer: None }
    }

    /// Goes on after `done` steps of a run that was stopped: what was written beyond is cut off, or everything for 0.
    pub fn resuming(folder: impl Into<PathBuf>, done: usize) -> EventLogger {
        EventLogger { folder: folder.into(), resumed: Some(done), last: done, writer: None }
    }

    fn write(&mut self, mode: &str, step: usize, logs: &Logs) -> Result<()> {
        if self.writer.is_none() {
            self.writer = Some(match self.resumed {
                None => EventWriter::create(&self.folder)?,
                // The first that is written again; steps are counted from one.
                Some(done) => EventWriter::resume(&self.folder, done as i64 + 1)?,
            });
        }
        self.last = step;
        let writer = self.writer.as_mut().expect("made above");
        for (name, value) in &logs.values {
            writer.scalar(&format!("{mode}/{name}"), *value as f32, step as i64)?;
        }
        if mode == "train" {
            writer.scalar("train/lr", logs.lr as f32, step as i64)?;
        }
        // At once: a step that a checkpoint holds must not be missing after a kill.
        writer.flush()
    }
}

impl Callback for EventLogger {
    fn on_train_batch_end(&mut self, model: &mut Model, _: usize, logs: &Logs) -> Result<()> {
        self.write("train", model.global_step(), logs)
    }
    fn state(&self) -> Vec<f64> {
        vec![self.last as f64]
    }
    fn set_state(&mut self, _: &mut Model, state: &[f64]) {
        if let [last] = state {
            (self.resumed, self.last, self.writer) = (Some(*last as usize), *last as usize, None);
        }
    }
    fn on_eval_end(&mut self, model: &mut Model, logs: &Logs) -> Result<()> {
        self.write("eval", model.global_step(), logs)
    }
}
