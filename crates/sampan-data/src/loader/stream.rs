//! A pass over an iterable data set: every worker runs its own iteration, and their batches come in turn.

use super::CollateFn;
use super::fetch::combine;
use super::map::{too_late, wait};
use super::worker::{Pass, guarded};
use crate::dataset::{Batch, IterableDataset, Samples};
use parking_lot::{Condvar, Mutex};
use sampan_core::{Error, Result, random};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// How a stream is cut into batches.
#[derive(Clone)]
pub(super) struct Cut {
    pub dataset: Arc<dyn IterableDataset>,
    pub batch_size: Option<usize>,
    pub drop_last: bool,
    pub collate: Option<CollateFn>,
    pub seed: u64,
}

/// One iteration, batch by batch.
pub(super) struct Reader {
    cut: Cut,
    samples: Samples,
    worker: u64,
    read: u64,
    ended: bool,
}

impl Reader {
    pub fn new(cut: Cut, worker: usize) -> Result<Reader> {
        let worker = worker as u64;
        let begin = || guarded(|| cut.dataset.iter());
        let samples = random::with_state((random::derive(cut.seed, worker, u64::MAX - 1), 0), begin);
        let samples = samples.map_err(|e| e.in_layer(cut.dataset.name()))?;
        Ok(Reader { cut, samples, worker, read: 0, ended: false })
    }

    pub fn next(&mut self, stopped: &AtomicBool) -> Option<Result<Batch>> {
        let size = self.cut.batch_size.unwrap_or(1);
        let mut samples = Vec::with_capacity(size.min(1 << 12));
        while samples.len() < size && !self.ended {
            if stopped.load(Ordering::Relaxed) {
                return None;
            }
            let seed = random::derive(self.cut.seed, self.worker, self.read);
            match random::with_state((seed, 0), || guarded(|| self.samples.next().transpose())) {
                Ok(Some(sample)) => samples.push(sample),
                Ok(None) => self.ended = true,
                Err(error) => {
                    self.ended = true;
                    let at = format!("{}, sample {} of worker {}", self.cut.dataset.name(), self.read, self.worker);
                    return Some(Err(error.in_layer(at)));
                }
            }
            self.read += 1;
        }
        if samples.is_empty() || (self.cut.drop_last && samples.len() < size) {
            return None;
        }
        let batch = combine(samples, self.cut.batch_size.is_some(), self.cut.collate.as_ref());
        Some(batch.map_err(|e| e.in_layer(self.cut.dataset.name())))
    }
}

pub(super) struct StreamPass {
    cut: Cut,
    /// Batches that each worker may be ahead.
    ahead: usize,
    state: Mutex<State>,
    ready: Condvar,
    room: Condvar,
    stopped: AtomicBool,
}

struct State {
    /// What each worker has made.
    lanes: Vec<Lane>,
    /// Whose batch comes next.
    turn: usize,
    given: usize,
    failed: Option<Error>,
}

#[derive(Default)]
struct Lane {
    batches: VecDeque<Result<Batch>>,
    ended: bool,
}

impl StreamPass {
    pub fn new(cut: Cut, workers: usize, ahead: usize) -> StreamPass {
        let lanes = (0..workers).map(|_| Lane::default()).collect();
        let state = Mutex::new(State { lanes, turn: 0, given: 0, failed: None });
        let (ready, room) = (Condvar::new(), Condvar::new());
        StreamPass { cut, ahead: (ahead / workers).max(1), state, ready, room, stopped: AtomicBool::new(false) }
    }

    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }
}

impl Pass for StreamPass {
    fn work(&self, worker: usize) {
        let mut reader = Some(Reader::new(self.cut.clone(), worker));
        loop {
            let next = match &mut reader {
                Some(Ok(reader)) => reader.next(&self.stopped),
                _ => reader.take().and_then(|r| r.err()).map(Err),
            };
            let mut state = self.state.lock();
            let ended = next.is_none();
            state.lanes[worker].batches.extend(next);
            state.lanes[worker].ended = ended;
            self.ready.notify_all();
            while !self.is_stopped() && state.lanes[worker].batches.len() >= self.ahead {
                self.room.wait(&mut state);
            }
            if ended || self.is_stopped() {
                return;
            }
        }
    }

    fn next(&self, deadline: Option<Instant>) -> Option<Result<Batch>> {
        let mut state = self.state.lock();
        loop {
            if let Some(error) = state.failed.take() {
                return Some(Err(error));
            }
            let workers = state.lanes.len();
            // Workers that have ended lose their turn.
            let open = (0..workers).map(|i| (state.turn + i) % workers);
            let open = open.into_iter().find(|&w| !(state.lanes[w].ended && state.lanes[w].batches.is_empty()));
            if self.is_stopped() {
                return None;
            }
            let lane = open?;
            if let Some(batch) = state.lanes[lane].batches.pop_front() {
                state.turn = (lane + 1) % workers;
                state.given += 1;
                self.room.notify_all();
                return Some(batch);
            }
            if !wait(&self.ready, &mut state, deadline) {
                return Some(Err(too_late(self.cut.dataset.name(), state.given)));
            }
        }
    }

    fn stop(&self, why: Option<Error>) {
        self.stopped.store(true, Ordering::Relaxed);
        let mut state = self.state.lock();
        state.failed = why;
        let waste: Vec<_> = state.lanes.iter_mut().map(|lane| std::mem::take(&mut lane.batches)).collect();
        drop(state);
        drop(waste);
        self.ready.notify_all();
        self.room.notify_all();
    }

    fn seed(&self) -> u64 {
        self.cut.seed
    }
}
