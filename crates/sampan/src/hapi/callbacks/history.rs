//! Remembers the figures of a run.

use super::super::{Callback, Logs, Model};
use sampan_core::Result;

/// Figures of each step and each evaluation, for curves; share it with `Arc<Mutex<…>>` to read it afterwards.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// (step from the start of the run, its figures).
    pub train: Vec<(usize, Vec<(String, f64)>)>,
    /// The same at each evaluation.
    pub eval: Vec<(usize, Vec<(String, f64)>)>,
}

impl History {
    /// The points of one training figure.
    pub fn train_curve(&self, name: &str) -> Vec<(f64, f64)> {
        curve(&self.train, name)
    }

    /// The points of one evaluation figure.
    pub fn eval_curve(&self, name: &str) -> Vec<(f64, f64)> {
        curve(&self.eval, name)
    }
}

fn curve(rows: &[(usize, Vec<(String, f64)>)], name: &str) -> Vec<(f64, f64)> {
    let point = |(step, values): &(usize, Vec<(String, f64)>)| {
        values.iter().find(|(n, _)| n == name).map(|(_, v)| (*step as f64, *v))
    };
    rows.iter().filter_map(point).collect()
}

impl Callback for History {
    fn on_train_batch_end(&mut self, model: &mut Model, _: usize, logs: &Logs) -> Result<()> {
        self.train.push((model.global_step(), logs.values.clone()));
        Ok(())
    }
    fn on_eval_end(&mut self, model: &mut Model, logs: &Logs) -> Result<()> {
        self.eval.push((model.global_step(), logs.values.clone()));
        Ok(())
    }
}
