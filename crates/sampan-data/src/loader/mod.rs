//! Batches from a data set, made ahead by worker threads, in an order that does not depend on their number.

mod batch_source;
mod builder;
mod collate;
mod fetch;
mod iter;
mod map;
mod stream;
mod worker;

pub use batch_source::BatchSource;
pub use builder::{CollateFn, LoaderBuilder, WorkerInitFn};
pub use collate::default_collate;
pub use iter::{LoaderIter, LoaderState};
pub use worker::{WorkerInfo, get_worker_info};

use crate::dataset::{Dataset, IterableDataset};
use crate::sampler::IndexBatches;
use parking_lot::Mutex;
use sampan_core::{Result, random};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Where samples come from, and in which groups.
#[derive(Clone)]
enum Source {
    /// By index, in batches.
    Map { dataset: Arc<dyn Dataset>, batches: Arc<dyn IndexBatches> },
    /// By index, one at a time and not stacked.
    Single { dataset: Arc<dyn Dataset>, order: Arc<dyn IndexBatches> },
    /// One after the other, in batches of a size unless there is none.
    Stream { dataset: Arc<dyn IterableDataset>, batch_size: Option<usize>, drop_last: bool },
}

impl Source {
    fn batches(&self) -> Option<&Arc<dyn IndexBatches>> {
        match self {
            Source::Map { batches, .. } => Some(batches),
            Source::Single { order, .. } => Some(order),
            Source::Stream { .. } => None,
        }
    }
}

/// Reads a data set in batches.
///
/// The order and every bit of every batch depend on the data set, the sampler and the seed alone: each sample is read
/// with a random generator of its own, so random transforms give the same values for any number of workers. A pass can be
/// kept and continued: see [`LoaderState`].
///
/// ```
/// # use sampan_core::Tensor;
/// # use sampan_data::{DataLoader, TensorDataset};
/// let data = TensorDataset::new(vec![Tensor::new([1i64, 2, 3, 4, 5])])?;
/// let loader = DataLoader::builder(data).batch_size(2).num_workers(2).build()?;
/// assert_eq!(loader.len(), Some(3));
/// let batches: Vec<Vec<i64>> = loader.iter().map(|b| Ok(b?[0].to_vec())).collect::<sampan_core::Result<_>>()?;
/// assert_eq!(batches, [vec![1, 2], vec![3, 4], vec![5]]);
/// # Ok::<(), sampan_core::Error>(())
/// ```
pub struct DataLoader {
    source: Source,
    collate: Option<CollateFn>,
    num_workers: usize,
    ahead: usize,
    buffered: bool,
    timeout: Option<Duration>,
    worker_init: Option<WorkerInitFn>,
    persistent: Option<Mutex<worker::Pool>>,
    epoch: AtomicU64,
}

impl DataLoader {
    /// Batches of `batch_size` samples, in order or shuffled; see [`builder`](DataLoader::builder) for the rest.
    pub fn new(dataset: impl Dataset + 'static, batch_size: usize, shuffle: bool) -> Result<DataLoader> {
        DataLoader::builder(dataset).batch_size(batch_size).shuffle(shuffle).build()
    }

    /// All settings, for a data set that is read by index.
    pub fn builder(dataset: impl Dataset + 'static) -> LoaderBuilder {
        LoaderBuilder::map(Arc::new(dataset))
    }

    /// All settings, for a data set that is read one sample after the other.
    pub fn iterable(dataset: impl IterableDataset + 'static) -> LoaderBuilder {
        LoaderBuilder::stream(Arc::new(dataset))
    }

    /// Number of batches in a pass, where the data set has a length.
    pub fn len(&self) -> Option<usize> {
        self.source.batches().map(|b| b.len())
    }

    /// Is it known to have no batches?
    pub fn is_empty(&self) -> bool {
        self.len() == Some(0)
    }

    /// One pass over the data. What is random in its order is drawn from the generator now. An iterator that is dropped
    /// early stops its workers.
    pub fn iter(&self) -> LoaderIter {
        let start = LoaderState {
            epoch: self.epoch.load(Ordering::Relaxed),
            batch: 0,
            random: random::state(),
            sampler: self.sampler_state(),
        };
        self.begin(start, |pass| pass())
    }

    /// The number of the next pass, from which random transforms draw. It counts up by itself; set it in a new process
    /// that starts with a later epoch.
    pub fn set_epoch(&self, epoch: u64) {
        self.epoch.store(epoch, Ordering::Relaxed);
    }

    /// What the order of the next pass depends on besides the process's generator: a sampler's own generator or epoch.
    pub fn sampler_state(&self) -> Vec<u64> {
        self.source.batches().map_or(Vec::new(), |b| b.state())
    }

    /// Goes back to a kept [`sampler_state`](DataLoader::sampler_state), so that the next pass has the same order.
    pub fn set_sampler_state(&self, state: &[u64]) -> Result<()> {
        self.source.batches().map_or(Ok(()), |b| b.set_state(state))
    }

    /// Continues a kept pass with the batch that came next. The order is made again, no earlier batch is read (but those
    /// of an iterable data set, which cannot be skipped in another way), and the process's generator is left alone.
    ///
    /// ```
    /// # use sampan_core::Tensor;
    /// # use sampan_data::{DataLoader, TensorDataset};
    /// let loader = DataLoader::new(TensorDataset::new(vec![Tensor::new([1i64, 2, 3, 4])])?, 1, true)?;
    /// let mut pass = loader.iter();
    /// pass.next();
    /// let kept = pass.state();
    /// let rest: Vec<f64> = pass.map(|b| b.unwrap()[0].to_f64()).collect();
    /// assert_eq!(rest, loader.resume(&kept)?.map(|b| b.unwrap()[0].to_f64()).collect::<Vec<_>>());
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    pub fn resume(&self, state: &LoaderState) -> Result<LoaderIter> {
        self.set_sampler_state(&state.sampler)?;
        let random = state.random;
        Ok(self.begin(state.clone(), move |pass| random::with_state(random, pass)))
    }

    /// Starts a pass at `state`; `draw` runs the part that draws the order.
    fn begin(&self, state: LoaderState, draw: impl FnOnce(&mut dyn FnMut())) -> LoaderIter {
        self.set_epoch(state.epoch.wrapping_add(1));
        let mut order = None;
        draw(&mut || order = self.source.batches().map(|b| b.iter()));
        LoaderIter::start(self, state, order)
    }
}

impl IntoIterator for &DataLoader {
    type Item = Result<crate::Batch>;
    type IntoIter = LoaderIter;
    fn into_iter(self) -> LoaderIter {
        self.iter()
    }
}
