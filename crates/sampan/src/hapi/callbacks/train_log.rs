//! The training log: a line with figures and costs every so many steps.

use super::super::{Callback, Logs, Model};
use sampan_core::error::Kind;
use sampan_core::{Error, Result};
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;

/// Appends lines such as
/// `[epoch 0, iter 10][TRAIN]avg_samples: 64.0 , avg_reader_cost: 0.0001054 sec, avg_batch_cost: 0.0031110 sec, loss: 0.3450000 ,
/// lr: 0.0010000 , avg_ips: 20571.8 images/sec` to a file; costs are means since the line before.
pub struct TrainLog {
    path: PathBuf,
    every: usize,
    file: Option<File>,
    epoch: usize,
    steps: usize,
    samples: usize,
    reader: f64,
    batch: f64,
}

impl TrainLog {
    /// A line every `every` steps.
    pub fn new(path: impl Into<PathBuf>, every: usize) -> TrainLog {
        let (path, every) = (path.into(), every.max(1));
        TrainLog { path, every, file: None, epoch: 0, steps: 0, samples: 0, reader: 0.0, batch: 0.0 }
    }

    fn line(&mut self, text: &str) -> Result<()> {
        let failed = |path: &PathBuf, e: std::io::Error| {
            Error::new(Kind::External, format!("cannot write {}: {e}", path.display())).in_op("TrainLog")
        };
        if self.file.is_none() {
            let open = std::fs::OpenOptions::new().create(true).append(true).open(&self.path);
            self.file = Some(open.map_err(|e| failed(&self.path, e))?);
        }
        let file = self.file.as_mut().expect("opened above");
        writeln!(file, "{text}").map_err(|e| failed(&self.path, e))
    }
}

fn figures(logs: &Logs) -> String {
    logs.values.iter().map(|(name, v)| format!(", {name}: {v:.7} ")).collect()
}

impl Callback for TrainLog {
    fn on_epoch_begin(&mut self, _: &mut Model, epoch: usize, _: &Logs) -> Result<()> {
        self.epoch = epoch;
        Ok(())
    }

    fn on_train_batch_end(&mut self, _: &mut Model, step: usize, logs: &Logs) -> Result<()> {
        self.steps += 1;
        self.samples += logs.batch_size;
        self.reader += logs.reader_cost;
        self.batch += logs.batch_cost;
        let last = logs.steps == Some(step + 1);
        if !(step + 1).is_multiple_of(self.every) && !last {
            return Ok(());
        }
        let n = self.steps as f64;
        let text = format!(
            "[epoch {}, iter {}][TRAIN]avg_samples: {:.1} , avg_reader_cost: {:.7} sec, avg_batch_cost: {:.7} sec{}, lr: {:.7} , \
             avg_ips: {:.1} images/sec",
            self.epoch,
            step + 1,
            self.samples as f64 / n,
            self.reader / n,
            self.batch / n,
            figures(logs),
            logs.lr,
            if self.batch > 0.0 { self.samples as f64 / self.batch } else { 0.0 },
        );
        (self.steps, self.samples, self.reader, self.batch) = (0, 0, 0.0, 0.0);
        self.line(&text)
    }

    fn state(&self) -> Vec<f64> {
        let length = std::fs::metadata(&self.path).map_or(0, |m| m.len());
        vec![length as f64, self.epoch as f64, self.steps as f64, self.samples as f64, self.reader, self.batch]
    }

    /// What was written after the state was taken will be written again: the file is cut.
    fn set_state(&mut self, _: &mut Model, state: &[f64]) {
        let &[length, epoch, steps, samples, reader, batch] = state else { return };
        self.file = None;
        if let Ok(file) = std::fs::OpenOptions::new().write(true).open(&self.path)
            && file.metadata().is_ok_and(|m| m.len() > length as u64)
        {
            let _ = file.set_len(length as u64);
        }
        (self.epoch, self.steps, self.samples) = (epoch as usize, steps as usize, samples as usize);
        (self.reader, self.batch) = (reader, batch);
    }

    fn on_eval_end(&mut self, _: &mut Model, logs: &Logs) -> Result<()> {
        self.line(&format!("[epoch {}][EVAL]samples: {} {}", self.epoch, logs.samples, figures(logs)))
    }
}
