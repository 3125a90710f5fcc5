//! A table on one server.

use super::rows::Rows;
use super::rule::Rule;
use parking_lot::Mutex;
use sampan_core::{Error, Result};
use std::collections::BTreeMap;
use std::path::PathBuf;
use tokio::sync::watch;

/// What a table is.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// Its name.
    pub name: String,
    /// Values in a row.
    pub dim: usize,
    /// What a gradient does.
    pub rule: Rule,
    /// The share of a value that is added to its gradient.
    pub l2: f64,
    /// New values lie between minus this and this.
    pub range: f64,
    /// Draws new values.
    pub seed: u64,
    /// The most rows that a server keeps in memory; the others wait on disk.
    pub limit: usize,
}

/// The largest row.
const WIDEST: usize = 1 << 22;

impl Spec {
    /// As numbers on the wire.
    pub fn numbers(&self) -> Vec<f64> {
        // A seed has more bits than one number.
        let (high, low) = ((self.seed >> 32) as f64, (self.seed & 0xFFFF_FFFF) as f64);
        let mut found = vec![self.dim as f64, self.l2, self.range, high, low, self.limit as f64];
        found.extend(self.rule.numbers());
        found
    }

    /// From numbers on the wire.
    pub fn from_numbers(name: &str, n: &[f64]) -> Result<Spec> {
        let wrong = || Error::invalid(format!("table {name:?} was described by numbers that say nothing"));
        let (&[dim, l2, range, high, low, limit], rule) = n.split_first_chunk::<6>().ok_or_else(wrong)?;
        let rule = Rule::from_numbers(rule).ok_or_else(wrong)?;
        if !(1.0..=WIDEST as f64).contains(&dim)
            || name.is_empty()
            || !name.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
        {
            return Err(Error::invalid(format!(
                "table {name:?} with rows of {dim} values; rows have up to {WIDEST}, and names letters, digits, . _ and -"
            )));
        }
        let seed = ((high as u64) << 32) | low as u64;
        Ok(Spec { name: name.into(), dim: dim as usize, rule, l2, range, seed, limit: limit as usize })
    }
}

/// Gradients that wait for those of other workers.
#[derive(Default)]
struct Round {
    /// The pieces of each worker.
    pieces: Vec<Vec<(Vec<u64>, Vec<f32>)>>,
    done: Vec<bool>,
}

/// A table.
pub struct Table {
    pub spec: Spec,
    pub rows: Mutex<Rows>,
    round: Mutex<Round>,
    /// How many rounds were applied.
    version: watch::Sender<u64>,
}

impl Table {
    /// An empty one.
    pub fn new(spec: Spec, workers: usize, folder: PathBuf) -> Table {
        let rows = Rows::new(spec.dim, spec.rule, spec.range, spec.seed, spec.limit, folder);
        let round = Round { pieces: vec![Vec::new(); workers], done: vec![false; workers] };
        Table { spec, rows: Mutex::new(rows), round: Mutex::new(round), version: watch::Sender::new(0) }
    }

    /// Does the number of values fit the ids?
    pub fn check(&self, ids: &[u64], values: &[f32]) -> Result<()> {
        if ids.len().checked_mul(self.spec.dim) != Some(values.len()) {
            return Err(Error::invalid(format!(
                "table {:?}: {} values for {} rows of {}",
                self.spec.name,
                values.len(),
                ids.len(),
                self.spec.dim
            )));
        }
        Ok(())
    }

    /// Does something with each row and its values.
    pub fn each(&self, ids: &[u64], values: &[f32], act: impl Fn(&mut Rows, u64, &[f32]) -> Result<()>) -> Result<()> {
        self.check(ids, values)?;
        let mut rows = self.rows.lock();
        ids.iter().zip(values.chunks_exact(self.spec.dim)).try_for_each(|(id, row)| act(&mut rows, *id, row))
    }

    /// Takes the gradients of a worker, in pieces; with the last piece of the last worker the mean of all is applied, in the
    /// order of the workers.
    pub fn push_together(&self, worker: usize, ids: Vec<u64>, values: Vec<f32>, last: bool, lr: f64) -> Result<()> {
        self.check(&ids, &values)?;
        let mut round = self.round.lock();
        let workers = round.done.len();
        if worker >= workers {
            return Err(Error::invalid(format!("worker {worker} of {workers} pushed to table {:?}", self.spec.name)));
        }
        if round.done[worker] {
            return Err(Error::invalid(format!(
                "worker {worker} pushed to table {:?} twice before the others did",
                self.spec.name
            )));
        }
        round.pieces[worker].push((ids, values));
        round.done[worker] = last;
        if !round.done.iter().all(|d| *d) {
            return Ok(());
        }
        let mut sums: BTreeMap<u64, Vec<f32>> = BTreeMap::new();
        for (ids, values) in round.pieces.iter_mut().flat_map(std::mem::take) {
            for (id, grad) in ids.into_iter().zip(values.chunks_exact(self.spec.dim)) {
                match sums.entry(id) {
                    std::collections::btree_map::Entry::Vacant(e) => drop(e.insert(grad.to_vec())),
                    std::collections::btree_map::Entry::Occupied(e) => {
                        e.into_mut().iter_mut().zip(grad).for_each(|(a, b)| *a += b);
                    }
                }
            }
        }
        round.done.fill(false);
        let mut rows = self.rows.lock();
        for (id, mut grad) in sums {
            grad.iter_mut().for_each(|g| *g /= workers as f32);
            rows.learn(id, lr, self.spec.l2, &grad)?;
        }
        drop(rows);
        self.version.send_modify(|v| *v += 1);
        Ok(())
    }

    /// Waits until so many rounds were applied.
    pub async fn reached(&self, version: u64) {
        let mut changes = self.version.subscribe();
        let _ = changes.wait_for(|v| *v >= version).await;
    }

    /// Which workers a round still waits for.
    pub fn missing(&self) -> Vec<usize> {
        let round = self.round.lock();
        round.done.iter().enumerate().filter(|(_, done)| !**done).map(|(worker, _)| worker).collect()
    }
}
