//! A pass over a data set that is read by index: free workers take the next batch, results are put in order.

use super::fetch::{Fetcher, Tasks};
use super::worker::Pass;
use crate::dataset::Batch;
use parking_lot::{Condvar, Mutex};
use sampan_core::{Error, Result};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

pub(super) struct MapPass {
    fetch: Fetcher,
    /// Batches that may be made before they are asked for.
    ahead: usize,
    state: Mutex<State>,
    /// There may be a batch to give.
    ready: Condvar,
    /// There may be room for another one.
    room: Condvar,
    stopped: AtomicBool,
}

struct State {
    tasks: Tasks,
    /// Batches handed to workers.
    taken: usize,
    /// Batches given to the user.
    given: usize,
    done: BTreeMap<usize, Result<Batch>>,
    /// No more tasks.
    ended: bool,
    failed: Option<Error>,
}

impl MapPass {
    pub fn new(fetch: Fetcher, tasks: Tasks, ahead: usize) -> MapPass {
        let state = State { tasks, taken: 0, given: 0, done: BTreeMap::new(), ended: false, failed: None };
        let (ready, room) = (Condvar::new(), Condvar::new());
        MapPass { fetch, ahead, state: Mutex::new(state), ready, room, stopped: AtomicBool::new(false) }
    }

    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }
}

impl Pass for MapPass {
    fn work(&self, worker: usize) {
        loop {
            let mut state = self.state.lock();
            while !self.is_stopped() && !state.ended && state.taken >= state.given.saturating_add(self.ahead) {
                self.room.wait(&mut state);
            }
            if self.is_stopped() || state.ended {
                return;
            }
            let task = match state.tasks.next() {
                Ok(Some(task)) => task,
                end => {
                    state.ended = true;
                    if let Err(error) = end {
                        let number = state.taken;
                        state.done.insert(number, Err(error));
                        state.taken += 1;
                    }
                    self.ready.notify_all();
                    self.room.notify_all();
                    return;
                }
            };
            state.taken += 1;
            drop(state);
            let batch = self.fetch.load(&task, &self.stopped).map_err(|e| e.in_layer(format!("worker {worker}")));
            self.state.lock().done.insert(task.number, batch);
            self.ready.notify_all();
        }
    }

    fn next(&self, deadline: Option<Instant>) -> Option<Result<Batch>> {
        let mut state = self.state.lock();
        loop {
            if let Some(error) = state.failed.take() {
                return Some(Err(error));
            }
            let number = state.given;
            if let Some(batch) = state.done.remove(&number) {
                state.given += 1;
                self.room.notify_one();
                return Some(batch);
            }
            if self.is_stopped() || (state.ended && state.given == state.taken) {
                return None;
            }
            if !wait(&self.ready, &mut state, deadline) {
                return Some(Err(too_late(self.fetch.dataset.name(), number)));
            }
        }
    }

    fn stop(&self, why: Option<Error>) {
        self.stopped.store(true, Ordering::Relaxed);
        let mut state = self.state.lock();
        state.failed = why;
        let waste = std::mem::take(&mut state.done);
        drop(state);
        drop(waste);
        self.ready.notify_all();
        self.room.notify_all();
    }

    fn seed(&self) -> u64 {
        self.fetch.seed
    }
}

/// Waits; false when the time is over.
pub(super) fn wait<T>(signal: &Condvar, state: &mut parking_lot::MutexGuard<'_, T>, deadline: Option<Instant>) -> bool {
    match deadline {
        Some(deadline) => !signal.wait_until(state, deadline).timed_out(),
        None => {
            signal.wait(state);
            true
        }
    }
}

pub(super) fn too_late(name: &str, number: usize) -> Error {
    use sampan_core::error::Kind;
    Error::new(Kind::Unavailable, format!("batch {number} of this pass over {name} did not come within the timeout"))
        .hint("raise timeout, or look at what holds up the data set")
        .in_op("DataLoader")
}
