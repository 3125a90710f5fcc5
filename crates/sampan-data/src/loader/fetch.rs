//! Reads the samples of one batch.

use super::worker::guarded;
use super::{CollateFn, default_collate};
use crate::dataset::{Batch, Dataset, Sample, check_index};
use sampan_core::error::Kind;
use sampan_core::{Error, Result, random};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// One batch to be made.
pub(super) struct Task {
    /// Its number in the pass.
    pub number: usize,
    /// Samples of the pass before it.
    pub before: u64,
    pub indices: Vec<usize>,
}

/// The batches of a pass that are still to be made.
pub(super) struct Tasks {
    batches: Box<dyn Iterator<Item = Vec<usize>> + Send>,
    number: usize,
    before: u64,
}

impl Tasks {
    /// Starts at batch `skip`: those before it are counted, not read.
    pub fn new(batches: Box<dyn Iterator<Item = Vec<usize>> + Send>, skip: usize) -> Result<Tasks> {
        let mut tasks = Tasks { batches, number: 0, before: 0 };
        for _ in 0..skip {
            if tasks.next()?.is_none() {
                break;
            }
        }
        tasks.number = 0;
        Ok(tasks)
    }

    pub fn next(&mut self) -> Result<Option<Task>> {
        let next = guarded(|| Ok(self.batches.next())).map_err(|e| e.in_layer("the sampler"))?;
        Ok(next.map(|indices| {
            let task = Task { number: self.number, before: self.before, indices };
            self.number += 1;
            self.before += task.indices.len() as u64;
            task
        }))
    }
}

/// How samples become batches.
pub(super) struct Fetcher {
    pub dataset: Arc<dyn Dataset>,
    pub collate: Option<CollateFn>,
    /// Without batching the one sample is the result.
    pub stacked: bool,
    pub seed: u64,
}

impl Fetcher {
    /// The batch of a task. `stopped` is looked at before each sample.
    pub fn load(&self, task: &Task, stopped: &AtomicBool) -> Result<Batch> {
        let (data, name) = (&self.dataset, self.dataset.name());
        let len = data.len();
        task.indices.iter().try_for_each(|&i| check_index(name, i, len))?;
        if self.stacked && self.collate.is_none() {
            let whole = self.scoped(task, 0, || guarded(|| data.batch(&task.indices).transpose()));
            if let Some(batch) = whole.map_err(|e| e.in_layer(format!("{name}{:?}", Short(&task.indices))))? {
                return Ok(batch);
            }
        }
        let mut samples = Vec::with_capacity(task.indices.len());
        for (slot, &index) in task.indices.iter().enumerate() {
            if stopped.load(Ordering::Relaxed) {
                return Err(Error::new(Kind::PreconditionNotMet, "the pass was stopped"));
            }
            let sample = self.scoped(task, slot, || guarded(|| data.get(index)));
            samples.push(sample.map_err(|e| e.in_layer(format!("{name}[{index}]")))?);
        }
        combine(samples, self.stacked, self.collate.as_ref())
            .map_err(|e| e.in_layer(format!("{name}{:?}", Short(&task.indices))))
    }

    /// Runs `f` with the generator of one sample of the pass: it depends on which sample and on its place in the order.
    fn scoped<R>(&self, task: &Task, slot: usize, f: impl FnOnce() -> R) -> R {
        let index = task.indices.get(slot).copied().unwrap_or(0) as u64;
        random::with_state((random::derive(self.seed, index, task.before + slot as u64), 0), f)
    }
}

/// Samples to what the loader gives.
pub(super) fn combine(samples: Vec<Sample>, stacked: bool, collate: Option<&CollateFn>) -> Result<Batch> {
    guarded(|| match collate {
        Some(collate) => collate(samples),
        None if stacked => default_collate(samples),
        None => samples.into_iter().next().ok_or_else(|| Error::invalid("expected one sample, got none")),
    })
}

/// Prints the first of many indices.
struct Short<'a>(&'a [usize]);

impl std::fmt::Debug for Short<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            [a, b, c, _, .., z] => write!(f, "[{a}, {b}, {c}, …, {z}]"),
            few => write!(f, "{few:?}"),
        }
    }
}
