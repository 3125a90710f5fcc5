//! The settings of a loader and their checks.

use super::{DataLoader, Source, worker};
use crate::dataset::{Batch, Dataset, IterableDataset, Sample};
use crate::sampler::{BatchSampler, IndexBatches, RandomSampler, SequenceSampler};
use parking_lot::Mutex;
use sampan_core::{Error, Result};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

/// Makes a batch of samples.
pub type CollateFn = Arc<dyn Fn(Vec<Sample>) -> Result<Batch> + Send + Sync>;
/// Runs in each worker before its first sample; it is given the worker's number.
pub type WorkerInitFn = Arc<dyn Fn(usize) -> Result<()> + Send + Sync>;

#[derive(Clone)]
enum Data {
    Map(Arc<dyn Dataset>),
    Stream(Arc<dyn IterableDataset>),
}

/// The arguments of Paddle's `DataLoader`, with its defaults.
///
/// ```
/// # use sampan_data::{DataLoader, Mnist, Split};
/// let digits = Mnist::new(Split::Test)?.normalized(&[127.5], &[127.5])?;
/// let loader = DataLoader::builder(digits).batch_size(64).shuffle(true).drop_last(true).num_workers(2).build()?;
/// assert_eq!(loader.len(), Some(156));
/// assert_eq!(loader.iter().next().unwrap()?[0].shape(), [64, 1, 28, 28]);
/// # Ok::<(), sampan_core::Error>(())
/// ```
#[must_use = "call build()"]
pub struct LoaderBuilder {
    data: Data,
    batch_sampler: Option<Arc<dyn IndexBatches>>,
    batch_size: Option<usize>,
    shuffle: bool,
    drop_last: bool,
    collate_fn: Option<CollateFn>,
    num_workers: usize,
    use_buffer_reader: bool,
    prefetch_factor: usize,
    timeout: Duration,
    worker_init_fn: Option<WorkerInitFn>,
    persistent_workers: bool,
}

impl LoaderBuilder {
    pub(super) fn map(dataset: Arc<dyn Dataset>) -> LoaderBuilder {
        LoaderBuilder::new(Data::Map(dataset))
    }

    pub(super) fn stream(dataset: Arc<dyn IterableDataset>) -> LoaderBuilder {
        LoaderBuilder::new(Data::Stream(dataset))
    }

    fn new(data: Data) -> LoaderBuilder {
        LoaderBuilder {
            data,
            batch_sampler: None,
            batch_size: Some(1),
            shuffle: false,
            drop_last: false,
            collate_fn: None,
            num_workers: 0,
            use_buffer_reader: true,
            prefetch_factor: 2,
            timeout: Duration::ZERO,
            worker_init_fn: None,
            persistent_workers: false,
        }
    }

    /// Samples in a batch (1), or `None` for samples as they are, not stacked.
    pub fn batch_size(mut self, batch_size: impl Into<Option<usize>>) -> Self {
        self.batch_size = batch_size.into();
        self
    }

    /// A new random order in every pass (no).
    pub fn shuffle(mut self, shuffle: bool) -> Self {
        self.shuffle = shuffle;
        self
    }

    /// Leave out a last batch that is not full (no).
    pub fn drop_last(mut self, drop_last: bool) -> Self {
        self.drop_last = drop_last;
        self
    }

    /// Which samples make up each batch, instead of `batch_size`, `shuffle` and `drop_last`.
    pub fn batch_sampler(mut self, batches: impl IndexBatches + 'static) -> Self {
        self.batch_sampler = Some(Arc::new(batches));
        self
    }

    /// Makes a batch of samples, instead of [`default_collate`](super::default_collate). Without batching
    /// (`batch_size(None)`) it is given one sample at a time.
    pub fn collate_fn(mut self, collate: impl Fn(Vec<Sample>) -> Result<Batch> + Send + Sync + 'static) -> Self {
        self.collate_fn = Some(Arc::new(collate));
        self
    }

    /// Threads that read ahead (0).
    pub fn num_workers(mut self, num_workers: usize) -> Self {
        self.num_workers = num_workers;
        self
    }

    /// Without workers: let one thread read ahead (yes), or read on the calling thread when a batch is asked for.
    pub fn use_buffer_reader(mut self, buffered: bool) -> Self {
        self.use_buffer_reader = buffered;
        self
    }

    /// Batches that each worker may be ahead (2).
    pub fn prefetch_factor(mut self, prefetch_factor: usize) -> Self {
        self.prefetch_factor = prefetch_factor;
        self
    }

    /// How long to wait for a batch before that is an error; zero for as long as it takes (zero).
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Runs in each worker before its first sample.
    pub fn worker_init_fn(mut self, init: impl Fn(usize) -> Result<()> + Send + Sync + 'static) -> Self {
        self.worker_init_fn = Some(Arc::new(init));
        self
    }

    /// Keep the worker threads from one pass to the next (no). A new pass then ends the one before it.
    pub fn persistent_workers(mut self, persistent: bool) -> Self {
        self.persistent_workers = persistent;
        self
    }

    /// The loader, or what is wrong with the settings.
    pub fn build(self) -> Result<DataLoader> {
        let source = self.source().map_err(|e| e.in_op("DataLoader"))?;
        let workers = self.num_workers.max(1);
        Ok(DataLoader {
            source,
            collate: self.collate_fn,
            num_workers: self.num_workers,
            ahead: self.prefetch_factor.saturating_mul(workers),
            buffered: self.use_buffer_reader,
            timeout: (self.timeout > Duration::ZERO).then_some(self.timeout),
            worker_init: self.worker_init_fn,
            persistent: (self.persistent_workers && self.num_workers > 0).then(|| Mutex::new(worker::Pool::default())),
            epoch: AtomicU64::new(0),
        })
    }

    fn source(&self) -> Result<Source> {
        let (shuffle, drop_last) = (self.shuffle, self.drop_last);
        if self.prefetch_factor == 0 {
            return Err(Error::invalid("prefetch_factor must be positive, got 0"));
        }
        if self.batch_size == Some(0) {
            return Err(Error::invalid("batch_size must be positive, or None for no batching").received("0"));
        }
        let dataset = match &self.data {
            Data::Stream(_) if shuffle || self.batch_sampler.is_some() => {
                let what = if shuffle { "shuffle" } else { "batch_sampler" };
                let error =
                    Error::invalid(format!("an iterable data set decides its own order, {what} must not be set"));
                return Err(error.hint("shuffle within the data set's iterator"));
            }
            Data::Stream(dataset) => {
                return Ok(Source::Stream { dataset: dataset.clone(), batch_size: self.batch_size, drop_last });
            }
            Data::Map(dataset) => dataset.clone(),
        };
        if let Some(batches) = self.batch_sampler.clone() {
            if self.batch_size != Some(1) || shuffle || drop_last {
                let error = Error::invalid("batch_size, shuffle and drop_last must not be set beside batch_sampler");
                return Err(error.received(format!("{:?}, {shuffle}, {drop_last}", self.batch_size)));
            }
            return Ok(Source::Map { dataset, batches });
        }
        let len = dataset.len();
        match self.batch_size {
            Some(n) => {
                let batches = Arc::new(BatchSampler::of(len, shuffle, n, drop_last)?);
                Ok(Source::Map { dataset, batches })
            }
            None => {
                let order = if shuffle {
                    BatchSampler::new(RandomSampler::new(len)?, 1, false)?
                } else {
                    BatchSampler::new(SequenceSampler::new(len), 1, false)?
                };
                Ok(Source::Single { dataset, order: Arc::new(order) })
            }
        }
    }
}
