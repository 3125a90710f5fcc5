//! Requests of one model that share runs.

use crate::metrics::Metrics;
use crate::protocol::{Given, Wrong};
use sampan_core::{Error, Tensor};
use sampan_graph::Predictor;
use sampan_kernels::parallel;
use std::collections::VecDeque;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// What a request becomes.
pub(crate) type Answer = Result<Vec<Tensor>, Wrong>;

struct Waiting {
    inputs: Vec<Given>,
    since: Instant,
    answer: oneshot::Sender<Answer>,
}

impl Waiting {
    /// Rows, if it can share a run.
    fn rows(&self) -> Option<usize> {
        let rows = *self.inputs.first()?.shape.first()?;
        self.inputs.iter().all(|t| t.shape.first() == Some(&rows)).then_some(rows)
    }

    /// Do both have the same dtypes, and the same shapes but for the rows?
    fn fits(&self, other: &Waiting) -> bool {
        self.inputs.iter().zip(&other.inputs).all(|(a, b)| a.dtype == b.dtype && a.shape.get(1..) == b.shape.get(1..))
    }
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Waiting>,
    /// Workers that have a run.
    running: usize,
    closed: bool,
}

struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
    metrics: Arc<Metrics>,
    workers: usize,
    how: Sharing,
}

/// A model runs so often at the same time, at most.
const WORKERS: usize = 4;

/// The queue of a model and the threads that work on it. Dropping it lets what waits be answered first.
pub(crate) struct Batcher(Arc<Shared>);

/// How requests share runs.
#[derive(Clone, Copy)]
pub(crate) struct Sharing {
    pub(crate) max_batch: usize,
    pub(crate) max_delay: Duration,
    pub(crate) queue: usize,
}

impl Batcher {
    /// `batches` says whether the first axis of all inputs and outputs is free.
    pub(crate) fn new(
        predictor: Predictor,
        batches: bool,
        how: Sharing,
        metrics: Arc<Metrics>,
    ) -> std::io::Result<Batcher> {
        let max_batch = if batches { how.max_batch.max(1) } else { 1 };
        let how = Sharing { max_batch, queue: how.queue.max(1), ..how };
        let workers = parallel::num_threads().min(WORKERS);
        let batcher =
            Batcher(Arc::new(Shared { queue: Mutex::default(), changed: Condvar::new(), metrics, workers, how }));
        for _ in 0..workers {
            let (own, predictor) = (batcher.0.clone(), predictor.clone());
            let work = move || {
                while let Some((group, alone)) = next(&own) {
                    let run = || answer(&predictor, group, &own.metrics);
                    if alone {
                        parallel::alone(run)
                    } else {
                        run()
                    }
                    own.lock().running -= 1;
                }
            };
            std::thread::Builder::new().name("sampan-batch".into()).spawn(work)?;
        }
        Ok(batcher)
    }

    /// Why a request would be refused now, if it would be: asked before its body is read.
    pub(crate) fn full(&self) -> Option<Wrong> {
        self.refusal(&self.0.lock())
    }

    fn refusal(&self, queue: &Queue) -> Option<Wrong> {
        if queue.closed {
            return Some(Wrong(503, "the model is being unloaded".into()));
        }
        (queue.waiting.len() >= self.0.how.queue).then(|| {
            self.0.metrics.refused.fetch_add(1, Relaxed);
            Wrong(429, format!("{} requests wait already; try again later", queue.waiting.len()))
        })
    }

    /// Puts a request into the queue; one that finds it full is refused at once.
    pub(crate) fn ask(&self, inputs: Vec<Given>) -> Result<oneshot::Receiver<Answer>, Wrong> {
        let (answer, answered) = oneshot::channel();
        let mut queue = self.0.lock();
        if let Some(refusal) = self.refusal(&queue) {
            return Err(refusal);
        }
        queue.waiting.push_back(Waiting { inputs, since: Instant::now(), answer });
        self.0.metrics.waiting.fetch_add(1, Relaxed);
        drop(queue);
        self.0.changed.notify_one();
        Ok(answered)
    }
}

impl Drop for Batcher {
    fn drop(&mut self) {
        // (What waits is answered; nobody waits for that here, where a handler may be running.)
        self.0.lock().closed = true;
        self.0.changed.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The requests of the next run, and whether it is to keep to its thread: the oldest one and those behind it that fit, within
/// the limits. Other workers get their part of what waits, now or when they are done.
fn next(shared: &Shared) -> Option<(Vec<Waiting>, bool)> {
    let Sharing { max_batch, max_delay, .. } = shared.how;
    let mut queue = shared.lock();
    loop {
        let Some(first) = queue.waiting.front() else {
            if queue.closed {
                return None;
            }
            queue = shared.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
            continue;
        };
        let rows = |w: &Waiting| w.rows().unwrap_or(usize::MAX);
        let mut total = rows(first);
        let mut count = 1;
        while let Some(other) = queue.waiting.get(count) {
            let more = total.saturating_add(rows(other));
            if more > max_batch || !first.fits(other) {
                break;
            }
            (total, count) = (more, count + 1);
        }
        // Whoever waits behind fills the run, or cannot: then there is nothing to wait for.
        let full = total >= max_batch || count < queue.waiting.len() || queue.closed;
        let waited = first.since.elapsed();
        if full || waited >= max_delay {
            let count = count.min(queue.waiting.len().div_ceil(shared.workers));
            let group = queue.waiting.drain(..count).collect();
            queue.running += 1;
            if !queue.waiting.is_empty() {
                shared.changed.notify_one();
            }
            // Where there are no more threads than workers, each has its own as soon as there is something for another one.
            let alone = shared.workers >= parallel::num_threads() && (queue.running > 1 || !queue.waiting.is_empty());
            return Some((group, alone));
        }
        let wait = shared.changed.wait_timeout(queue, max_delay - waited);
        queue = wait.map_or_else(|e| e.into_inner().0, |(queue, _)| queue);
    }
}

/// Runs a group and answers its requests.
fn answer(predictor: &Predictor, group: Vec<Waiting>, metrics: &Metrics) {
    // Whoever has gone away needs no answer.
    let gone = group.iter().filter(|w| w.answer.is_closed()).count() as u64;
    metrics.waiting.fetch_sub(gone, Relaxed);
    let group: Vec<Waiting> = group.into_iter().filter(|w| !w.answer.is_closed()).collect();
    if group.is_empty() {
        return;
    }
    let rows: Vec<usize> = group.iter().map(|w| w.rows().unwrap_or(1)).collect();
    let begin = Instant::now();
    let results = guarded(|| run(predictor, &group, &rows));
    metrics.run(rows.iter().sum(), begin.elapsed());
    let one_by_one = results.is_err() && group.len() > 1;
    metrics.waiting.fetch_sub(group.len() as u64, Relaxed);
    for (i, waiting) in group.into_iter().enumerate() {
        let answer = match &results {
            // One bad request must not fail the others.
            Err(_) if one_by_one => guarded(|| run_one(predictor, &waiting)),
            Err(e) => Err(e.clone()),
            Ok(parts) => Ok(parts[i].clone()),
        };
        match answer.is_ok() {
            true => metrics.answer(waiting.since.elapsed()),
            false => _ = metrics.failed.fetch_add(1, Relaxed),
        }
        // The caller may be gone, which is no matter.
        let _ = waiting.answer.send(answer);
    }
}

/// A panic is a mistake of ours; it must take neither the other requests nor the worker with it.
fn guarded<T>(run: impl FnOnce() -> Result<T, Wrong>) -> Result<T, Wrong> {
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
    result.unwrap_or_else(|_| Err(Wrong(500, "the model panicked".into())))
}

fn wrong(error: Error) -> Wrong {
    Wrong(400, error.to_string())
}

/// The outputs of one request alone.
fn run_one(predictor: &Predictor, one: &Waiting) -> Answer {
    let inputs = one.inputs.iter().map(|given| Given::together(&[given])).collect::<Result<Vec<_>, _>>()?;
    predictor.run(&inputs).map_err(wrong)
}

/// The outputs of each request.
fn run(predictor: &Predictor, group: &[Waiting], rows: &[usize]) -> Result<Vec<Vec<Tensor>>, Wrong> {
    if let [one] = group {
        return Ok(vec![run_one(predictor, one)?]);
    }
    let together = (0..group[0].inputs.len()).map(|i| {
        let parts: Vec<&Given> = group.iter().map(|w| &w.inputs[i]).collect();
        Given::together(&parts)
    });
    let outputs = predictor.run(&together.collect::<Result<Vec<_>, _>>()?).map_err(wrong)?;
    let all: usize = rows.iter().sum();
    if outputs.iter().any(|t| t.shape().first() != Some(&all)) {
        return Err(Wrong(500, "an output does not have the rows of the inputs".into()));
    }
    let mut start = 0;
    let mut parts = Vec::with_capacity(rows.len());
    for &count in rows {
        let part = outputs.iter().map(|t| t.try_narrow(0, start as i64, count as i64).map_err(wrong));
        parts.push(part.collect::<Result<Vec<_>, _>>()?);
        start += count;
    }
    Ok(parts)
}
