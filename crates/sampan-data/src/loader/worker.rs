//! Worker threads.

use super::WorkerInitFn;
use crate::dataset::Batch;
use sampan_core::error::Kind;
use sampan_core::{Error, Result};
use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Weak};
use std::time::Instant;

/// Which worker a thread is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkerInfo {
    /// Its number, from 0.
    pub id: usize,
    /// How many there are.
    pub num_workers: usize,
    /// The seed of this worker in this pass.
    pub seed: u64,
}

thread_local! {
    static WORKER: Cell<Option<WorkerInfo>> = const { Cell::new(None) };
}

/// The worker that runs this code, or none outside of workers. An iterable data set splits its samples by it.
///
/// ```
/// use sampan_core::Tensor;
/// use sampan_data::{DataLoader, FnIterable, get_worker_info};
/// let data = FnIterable::new(|| {
///     let (id, n) = get_worker_info().map_or((0, 1), |w| (w.id, w.num_workers));
///     (id..6).step_by(n).map(|i| Ok(vec![Tensor::new(i as i64)]))
/// });
/// let loader = DataLoader::iterable(data).num_workers(2).build()?;
/// let all: Vec<f64> = loader.iter().map(|b| b.unwrap()[0].to_f64_vec()[0]).collect();
/// assert_eq!(all, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
/// # Ok::<(), sampan_core::Error>(())
/// ```
pub fn get_worker_info() -> Option<WorkerInfo> {
    WORKER.get()
}

/// One pass over the data, worked on by threads.
pub(super) trait Pass: Send + Sync {
    /// Makes batches until there are no more or the pass is stopped.
    fn work(&self, worker: usize);
    /// The next batch in order; `None` at the end. An error if it does not come before `deadline`.
    fn next(&self, deadline: Option<Instant>) -> Option<Result<Batch>>;
    /// Lets every worker leave at the next sample. `why` is what a caller of `next` is told.
    fn stop(&self, why: Option<Error>);
    /// The seed of the pass.
    fn seed(&self) -> u64;
}

/// Runs `f` and turns a panic into an error.
pub(super) fn guarded<R>(f: impl FnOnce() -> Result<R>) -> Result<R> {
    catch_unwind(AssertUnwindSafe(f)).unwrap_or_else(|panic| Err(from_panic(panic)))
}

fn from_panic(panic: Box<dyn Any + Send>) -> Error {
    let text = match panic.downcast::<Error>() {
        Ok(error) => return *error,
        Err(other) => match other.downcast_ref::<String>() {
            Some(text) => text.clone(),
            None => other.downcast_ref::<&str>().map_or_else(|| "no message".into(), |s| s.to_string()),
        },
    };
    Error::new(Kind::PreconditionNotMet, format!("panicked: {text}"))
}

/// How the threads of a loader are set up.
#[derive(Clone)]
pub(super) struct Crew {
    /// Workers that the user asked for; 0 where one thread only reads ahead.
    pub num_workers: usize,
    pub init: Option<WorkerInitFn>,
}

impl Crew {
    /// The life of one worker: every pass that it is given.
    fn run(&self, id: usize, passes: impl Iterator<Item = Arc<dyn Pass>>) {
        let mut ready = None;
        for pass in passes {
            if self.num_workers > 0 {
                let seed = sampan_core::random::derive(pass.seed(), id as u64, u64::MAX);
                WORKER.set(Some(WorkerInfo { id, num_workers: self.num_workers, seed }));
            }
            let ready = ready.get_or_insert_with(|| match &self.init {
                Some(init) if self.num_workers > 0 => {
                    guarded(|| init(id)).map_err(|e| e.in_layer(format!("worker_init_fn({id})")))
                }
                _ => Ok(()),
            });
            match ready {
                Ok(()) => pass.work(id),
                Err(error) => pass.stop(Some(error.clone())),
            }
        }
    }

    fn spawn(&self, id: usize, passes: impl Iterator<Item = Arc<dyn Pass>> + Send + 'static) -> Result<()> {
        let crew = self.clone();
        let thread = std::thread::Builder::new().name(format!("sampan-data-{id}"));
        match thread.spawn(move || crew.run(id, passes)) {
            Ok(_) => Ok(()),
            Err(e) => Err(Error::new(Kind::External, format!("worker {id} could not start: {e}")).in_op("DataLoader")),
        }
    }

    /// Threads for one pass. They end with it; nobody waits for them, so a sample that hangs cannot hang its user.
    pub fn start(&self, pass: &Arc<dyn Pass>) -> Result<()> {
        (0..self.num_workers.max(1)).try_for_each(|id| self.spawn(id, std::iter::once(pass.clone())))
    }
}

/// Workers that live as long as their loader.
#[derive(Default)]
pub(super) struct Pool {
    workers: Vec<Sender<Arc<dyn Pass>>>,
    current: Option<Weak<dyn Pass>>,
}

impl Pool {
    /// Gives the workers a new pass and ends the one before it.
    pub fn start(&mut self, crew: &Crew, pass: &Arc<dyn Pass>) -> Result<()> {
        if let Some(earlier) = self.current.take().and_then(|weak| weak.upgrade()) {
            let error = Error::new(Kind::PreconditionNotMet, "a new pass over this loader ended the one before it");
            earlier.stop(Some(error.hint("persistent_workers serve one pass at a time").in_op("DataLoader")));
        }
        while self.workers.len() < crew.num_workers {
            let (send, receive) = channel::<Arc<dyn Pass>>();
            crew.spawn(self.workers.len(), receive.into_iter())?;
            self.workers.push(send);
        }
        self.current = Some(Arc::downgrade(pass));
        self.workers.iter().for_each(|w| drop(w.send(pass.clone())));
        Ok(())
    }
}
