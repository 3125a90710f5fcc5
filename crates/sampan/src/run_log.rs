//! The figures of every step and evaluation, as JSON lines that survive a killed run.

use crate::hapi::{Callback, Logs, Model};
use sampan_core::error::Kind;
use sampan_core::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

/// One line of the file.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Row {
    step: usize,
    /// `train` or `eval`.
    mode: String,
    values: BTreeMap<String, f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lr: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reader_cost: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    batch_cost: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ips: Option<f64>,
}

/// Appends to a file and remembers what is in it.
pub struct RunLog {
    path: PathBuf,
    rows: Vec<Row>,
    file: BufWriter<File>,
}

impl RunLog {
    /// Goes on after `done` steps: what an interrupted run wrote beyond is dropped, as it will be done again.
    pub fn open(path: PathBuf, done: usize) -> Result<RunLog> {
        let text = if done > 0 { std::fs::read_to_string(&path).unwrap_or_default() } else { String::new() };
        // A line that was cut off by a kill is dropped as well.
        let parsed = text.lines().filter_map(|line| serde_json::from_str::<Row>(line).ok());
        let rows: Vec<Row> = parsed.filter(|row| row.step <= done).collect();
        let kept: String = rows.iter().map(line).collect();
        sampan_io::atomic::write(&path, kept.as_bytes())?;
        let file = std::fs::OpenOptions::new().append(true).open(&path).map_err(|e| failed(&path, e))?;
        Ok(RunLog { path, rows, file: BufWriter::new(file) })
    }

    /// The points of a training figure.
    pub fn train(&self, name: &str) -> Vec<(f64, f64)> {
        self.curve("train", name)
    }

    /// The points of an evaluation figure.
    pub fn eval(&self, name: &str) -> Vec<(f64, f64)> {
        self.curve("eval", name)
    }

    fn curve(&self, mode: &str, name: &str) -> Vec<(f64, f64)> {
        let rows = self.rows.iter().filter(|r| r.mode == mode);
        rows.filter_map(|r| r.values.get(name).map(|v| (r.step as f64, *v))).collect()
    }

    fn add(&mut self, row: Row) -> Result<()> {
        self.file.write_all(line(&row).as_bytes()).map_err(|e| failed(&self.path, e))?;
        self.rows.push(row);
        Ok(())
    }
}

fn line(row: &Row) -> String {
    serde_json::to_string(row).expect("numbers become JSON") + "\n"
}

fn failed(path: &std::path::Path, e: std::io::Error) -> Error {
    Error::new(Kind::External, format!("cannot write {}: {e}", path.display())).in_op("RunLog")
}

impl Callback for RunLog {
    fn on_train_batch_end(&mut self, model: &mut Model, _: usize, logs: &Logs) -> Result<()> {
        self.add(Row {
            step: model.global_step(),
            mode: "train".into(),
            values: logs.values.iter().cloned().collect(),
            lr: Some(logs.lr),
            reader_cost: Some(logs.reader_cost),
            batch_cost: Some(logs.batch_cost),
            ips: Some(logs.ips()),
        })
    }

    fn on_eval_end(&mut self, model: &mut Model, logs: &Logs) -> Result<()> {
        let values = logs.values.iter().cloned().collect();
        let (lr, cost) = (None, None);
        let row = Row {
            step: model.global_step(),
            mode: "eval".into(),
            values,
            lr,
            reader_cost: cost,
            batch_cost: cost,
            ips: cost,
        };
        self.add(row)?;
        self.file.flush().map_err(|e| failed(&self.path, e))
    }
}
