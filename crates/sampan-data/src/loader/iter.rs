//! One pass over the data, and where it stands.

use super::fetch::{Fetcher, Tasks};
use super::map::MapPass;
use super::stream::{Cut, Reader, StreamPass};
use super::worker::{Crew, Pass};
use super::{DataLoader, Source};
use crate::dataset::Batch;
use sampan_core::{Error, Result, profiler, random};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// Where a pass stands: enough to make its order again and to go on with the batch that comes next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoaderState {
    /// Passes that this loader had begun before.
    pub epoch: u64,
    /// Batches given so far.
    pub batch: usize,
    /// The generator when the pass began.
    pub random: (u64, u64),
    /// The state of the sampler when the pass began.
    pub sampler: Vec<u64>,
}

impl LoaderState {
    /// As plain numbers, to be kept in any file.
    ///
    /// ```
    /// # use sampan_data::LoaderState;
    /// let state = LoaderState { epoch: 2, batch: 5, random: (7, 64), sampler: vec![1] };
    /// assert_eq!(LoaderState::from_numbers(&state.to_numbers())?, state);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    pub fn to_numbers(&self) -> Vec<u64> {
        let mut numbers = vec![self.epoch, self.batch as u64, self.random.0, self.random.1];
        numbers.extend(&self.sampler);
        numbers
    }

    /// From [`to_numbers`](LoaderState::to_numbers).
    pub fn from_numbers(numbers: &[u64]) -> Result<LoaderState> {
        let [epoch, batch, seed, offset, sampler @ ..] = numbers else {
            let error = Error::invalid("the state of a loader has at least 4 numbers").in_op("DataLoader");
            return Err(error.received(format!("{} numbers", numbers.len())));
        };
        Ok(LoaderState { epoch: *epoch, batch: *batch as usize, random: (*seed, *offset), sampler: sampler.to_vec() })
    }
}

/// Who makes the batches.
enum Maker {
    Threads(Arc<dyn Pass>),
    /// The calling thread, by index.
    Map(Box<(Fetcher, Tasks)>),
    /// The calling thread, one after the other.
    Stream(Box<Reader>),
    /// It could not be started.
    Failed(Option<Error>),
}

/// The batches of one pass. It ends after an error.
pub struct LoaderIter {
    maker: Maker,
    timeout: Option<Duration>,
    state: LoaderState,
    total: Option<usize>,
    ended: bool,
}

type Order = Option<Result<Box<dyn Iterator<Item = Vec<usize>> + Send>>>;

impl LoaderIter {
    pub(super) fn start(loader: &DataLoader, state: LoaderState, order: Order) -> LoaderIter {
        let (seed, offset) = state.random;
        let maker = make(loader, random::derive(seed, offset, state.epoch), state.batch, order)
            .unwrap_or_else(|error| Maker::Failed(Some(error.in_op("DataLoader"))));
        let skip = if loader.source.batches().is_none() { state.batch } else { 0 };
        let (timeout, total) = (loader.timeout, loader.len());
        let mut pass = LoaderIter { maker, timeout, state, total, ended: false };
        // A stream has no index to start from.
        for _ in 0..skip {
            match pass.make_next() {
                Some(Ok(_)) => {}
                Some(Err(error)) => {
                    pass.maker = Maker::Failed(Some(error));
                    break;
                }
                None => break,
            }
        }
        pass
    }

    /// Where the pass stands now, to be continued by [`DataLoader::resume`].
    pub fn state(&self) -> LoaderState {
        self.state.clone()
    }

    fn make_next(&mut self) -> Option<Result<Batch>> {
        let running = AtomicBool::new(false);
        match &mut self.maker {
            Maker::Threads(pass) => pass.next(self.timeout.and_then(|t| Instant::now().checked_add(t))),
            Maker::Map(inline) => {
                let (fetch, tasks) = &mut **inline;
                match tasks.next() {
                    Ok(task) => task.map(|task| fetch.load(&task, &running)),
                    Err(error) => Some(Err(error)),
                }
            }
            Maker::Stream(reader) => reader.next(&running),
            Maker::Failed(error) => error.take().map(Err),
        }
    }
}

fn make(loader: &DataLoader, seed: u64, skip: usize, order: Order) -> Result<Maker> {
    let workers = loader.num_workers.max(1);
    let inline = loader.num_workers == 0 && !loader.buffered;
    let pass: Arc<dyn Pass> = match &loader.source {
        Source::Map { dataset, .. } | Source::Single { dataset, .. } => {
            let stacked = matches!(loader.source, Source::Map { .. });
            let fetch = Fetcher { dataset: dataset.clone(), collate: loader.collate.clone(), stacked, seed };
            let order = order.expect("a data set read by index has an order")?;
            let tasks = Tasks::new(order, skip)?;
            if inline {
                return Ok(Maker::Map(Box::new((fetch, tasks))));
            }
            Arc::new(MapPass::new(fetch, tasks, loader.ahead))
        }
        Source::Stream { dataset, batch_size, drop_last } => {
            let (dataset, collate) = (dataset.clone(), loader.collate.clone());
            let cut = Cut { dataset, batch_size: *batch_size, drop_last: *drop_last, collate, seed };
            if inline {
                return Ok(Maker::Stream(Box::new(Reader::new(cut, 0)?)));
            }
            Arc::new(StreamPass::new(cut, workers, loader.ahead))
        }
    };
    let crew = Crew { num_workers: loader.num_workers, init: loader.worker_init.clone() };
    let started = match &loader.persistent {
        Some(pool) => pool.lock().start(&crew, &pass),
        None => crew.start(&pass),
    };
    if let Err(error) = started {
        // Those that did start leave again.
        pass.stop(None);
        return Err(error);
    }
    Ok(Maker::Threads(pass))
}

impl Iterator for LoaderIter {
    type Item = Result<Batch>;

    fn next(&mut self) -> Option<Result<Batch>> {
        if self.ended {
            return None;
        }
        let waiting = profiler::range_of(profiler::Kind::Loader, "DataLoader");
        let next = self.make_next();
        drop(waiting);
        match &next {
            Some(Ok(_)) => self.state.batch += 1,
            _ => {
                self.ended = true;
                self.stop();
            }
        }
        next.map(|batch| batch.map_err(|e| e.in_layer("DataLoader")))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, self.total.map(|n| n.saturating_sub(self.state.batch)))
    }
}

impl LoaderIter {
    fn stop(&self) {
        if let Maker::Threads(pass) = &self.maker {
            pass.stop(None);
        }
    }
}

impl Drop for LoaderIter {
    fn drop(&mut self) {
        self.stop();
    }
}
