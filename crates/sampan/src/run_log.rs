//! The figures of every step and evaluation, as JSON lines that survive a killed run.

use crate::hapi::{Callback, Logs, Model};
use sampan_core::error::Kind;
use sampan_core::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;

/// One line of the file.
#[derive(Default, Serialize, Deserialize)]
struct Row {
    step: usize,
    /// `train` or `eval`.
    mode: String,
    /// JSON has no word for a number that is not finite.
    values: BTreeMap<String, Option<f64>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lr: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reader_cost: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    batch_cost: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ips: Option<f64>,
}

type Curves = BTreeMap<String, Vec<(f64, f64)>>;

/// Appends to a file and remembers the curves in it.
pub struct RunLog {
    path: PathBuf,
    /// By mode and name: `train/loss`.
    curves: Curves,
    /// Not buffered: a step that a checkpoint holds must not be missing here after a kill.
    file: File,
}

impl RunLog {
    /// Goes on after `done` steps: what an interrupted run wrote beyond is dropped, as it will be done again.
    pub fn open(path: PathBuf, done: usize) -> Result<RunLog> {
        let text = if done > 0 { std::fs::read_to_string(&path).unwrap_or_default() } else { String::new() };
        let (mut kept, mut curves) = (String::new(), Curves::new());
        for line in text.lines() {
            // A line that was cut off by a kill is dropped as well.
            if let Ok(row) = serde_json::from_str::<Row>(line)
                && row.step <= done
            {
                kept += line;
                kept.push('\n');
                remember(&mut curves, &row);
            }
        }
        sampan_io::atomic::write(&path, kept.as_bytes())?;
        let file = std::fs::OpenOptions::new().append(true).open(&path).map_err(|e| failed(&path, e))?;
        Ok(RunLog { path, curves, file })
    }

    /// The points of a training figure.
    pub fn train(&self, name: &str) -> &[(f64, f64)] {
        self.curve(&format!("train/{name}"))
    }

    /// The points of an evaluation figure.
    pub fn eval(&self, name: &str) -> &[(f64, f64)] {
        self.curve(&format!("eval/{name}"))
    }

    fn curve(&self, name: &str) -> &[(f64, f64)] {
        self.curves.get(name).map_or(&[], Vec::as_slice)
    }

    fn add(&mut self, row: Row) -> Result<()> {
        let line = serde_json::to_string(&row).expect("numbers become JSON") + "\n";
        self.file.write_all(line.as_bytes()).map_err(|e| failed(&self.path, e))?;
        remember(&mut self.curves, &row);
        Ok(())
    }
}

fn remember(curves: &mut Curves, row: &Row) {
    for (name, value) in &row.values {
        let point = (row.step as f64, value.unwrap_or(f64::NAN));
        curves.entry(format!("{}/{name}", row.mode)).or_default().push(point);
    }
}

fn values(logs: &Logs) -> BTreeMap<String, Option<f64>> {
    logs.values.iter().map(|(name, v)| (name.clone(), v.is_finite().then_some(*v))).collect()
}

fn failed(path: &std::path::Path, e: std::io::Error) -> Error {
    Error::new(Kind::External, format!("cannot write {}: {e}", path.display())).in_op("RunLog")
}

impl Callback for RunLog {
    fn on_train_batch_end(&mut self, model: &mut Model, _: usize, logs: &Logs) -> Result<()> {
        self.add(Row {
            step: model.global_step(),
            mode: "train".into(),
            values: values(logs),
            lr: Some(logs.lr),
            reader_cost: Some(logs.reader_cost),
            batch_cost: Some(logs.batch_cost),
            ips: Some(logs.ips()),
        })
    }

    fn on_eval_end(&mut self, model: &mut Model, logs: &Logs) -> Result<()> {
        self.add(Row { step: model.global_step(), mode: "eval".into(), values: values(logs), ..Row::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_are_not_finite_or_cut_off() {
        let path = std::env::temp_dir().join(format!("sampan-run-log-{}.jsonl", std::process::id()));
        let row = |step, loss| Row {
            step,
            mode: "train".into(),
            values: values(&Logs { values: vec![("loss".into(), loss)], ..Logs::default() }),
            ..Row::default()
        };
        let mut log = RunLog::open(path.clone(), 0).unwrap();
        [row(1, 0.5), row(2, f64::NAN), row(3, 0.25)].into_iter().for_each(|r| log.add(r).unwrap());
        log.file.write_all(b"{\"step\": 4, \"mo").unwrap();
        let again = RunLog::open(path.clone(), 2).unwrap();
        let [first, second] = again.train("loss") else { panic!("{:?}", again.train("loss")) };
        assert!(*first == (1.0, 0.5) && second.0 == 2.0 && second.1.is_nan());
        std::fs::remove_file(path).unwrap();
    }
}
