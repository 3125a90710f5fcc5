//! Work in the order it was given, on a thread that starts when it is first needed.

use crate::interrupt;
use crate::wire::unavailable;
use parking_lot::{Condvar, Mutex};
use sampan_core::{Error, Result};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

/// A waiter looks this often whether it should still wait.
const LOOK: Duration = Duration::from_millis(50);

/// A piece of work.
pub type Job = Box<dyn FnOnce() -> Result<()> + Send>;

/// Work that was begun. Dropping it does not stop the work.
#[derive(Clone)]
#[must_use = "wait() says whether it went well"]
pub struct Task(Arc<Outcome>);

struct Outcome {
    result: Mutex<Option<Result<()>>>,
    done: Condvar,
}

impl Task {
    fn new(result: Option<Result<()>>) -> Task {
        Task(Arc::new(Outcome { result: Mutex::new(result), done: Condvar::new() }))
    }

    /// Work that is done.
    pub fn done(result: Result<()>) -> Task {
        Task::new(Some(result))
    }

    /// Waits until it is done.
    pub fn wait(&self) -> Result<()> {
        let mut result = self.0.result.lock();
        while result.is_none() {
            if self.0.done.wait_for(&mut result, LOOK).timed_out() {
                drop(result);
                interrupt::check()?;
                result = self.0.result.lock();
            }
        }
        result.clone().unwrap_or(Ok(()))
    }

    /// Is it done?
    pub fn is_completed(&self) -> bool {
        self.0.result.lock().is_some()
    }

    fn finish(&self, result: Result<()>) {
        *self.0.result.lock() = Some(result);
        self.0.done.notify_all();
    }
}

#[derive(Default)]
struct State {
    waiting: VecDeque<(Job, Task)>,
    /// Somebody works on a job now.
    busy: bool,
    /// There is a thread.
    started: bool,
    closed: bool,
}

/// A queue of work.
#[derive(Default)]
pub struct Lane(Arc<(Mutex<State>, Condvar)>);

/// Runs a job; what unwinds becomes an error.
fn run(job: Job) -> Result<()> {
    catch_unwind(AssertUnwindSafe(job)).unwrap_or_else(|payload| {
        Err(match payload.downcast::<Error>() {
            Ok(error) => *error,
            Err(payload) => {
                let text = payload.downcast_ref::<String>().map(String::as_str);
                unavailable(text.or(payload.downcast_ref::<&str>().copied()).unwrap_or("the call failed"))
            }
        })
    })
}

impl Lane {
    /// Does a job after those given before, and waits for it; on this thread, if there are none.
    pub fn run(&self, job: Job) -> Result<()> {
        let (state, changed) = &*self.0;
        {
            let mut state = state.lock();
            if state.busy || !state.waiting.is_empty() {
                drop(state);
                return self.start(job).wait();
            }
            state.busy = true;
        }
        let result = run(job);
        state.lock().busy = false;
        changed.notify_all();
        result
    }

    /// Does a job after those given before, on the lane's thread.
    pub fn start(&self, job: Job) -> Task {
        let task = Task::new(None);
        let (state, changed) = &*self.0;
        let mut held = state.lock();
        if !held.started {
            let lane = self.0.clone();
            let spawned = std::thread::Builder::new().name("sampan-group".into()).spawn(move || Self::work(&lane));
            if let Err(e) = spawned {
                return Task::done(Err(e.into()));
            }
            held.started = true;
        }
        held.waiting.push_back((job, task.clone()));
        drop(held);
        changed.notify_all();
        task
    }

    fn work((state, changed): &(Mutex<State>, Condvar)) {
        interrupt::never_here();
        let mut held = state.lock();
        loop {
            match held.waiting.is_empty() || held.busy {
                true if held.closed && held.waiting.is_empty() => return,
                true => changed.wait(&mut held),
                false => {
                    let Some((job, task)) = held.waiting.pop_front() else { continue };
                    held.busy = true;
                    drop(held);
                    task.finish(run(job));
                    held = state.lock();
                    held.busy = false;
                    changed.notify_all();
                }
            }
        }
    }
}

impl Drop for Lane {
    /// The thread ends when its work is done.
    fn drop(&mut self) {
        self.0.0.lock().closed = true;
        self.0.1.notify_all();
    }
}
