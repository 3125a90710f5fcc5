//! Indices in groups.

use super::{Indices, RandomSampler, Sampler, SequenceSampler, expect_state};
use sampan_core::{Error, Result};
use std::sync::Arc;

/// Which samples make up each batch; write your own by implementing this.
///
/// ```
/// use sampan_core::{Result, Tensor};
/// use sampan_data::{DataLoader, FnDataset, IndexBatches};
/// struct Pairs;
/// impl IndexBatches for Pairs {
///     fn len(&self) -> usize {
///         2
///     }
///     fn iter(&self) -> Result<Box<dyn Iterator<Item = Vec<usize>> + Send>> {
///         Ok(Box::new([vec![0, 3], vec![1, 2]].into_iter()))
///     }
/// }
/// let data = FnDataset::new(4, |i| Ok(vec![Tensor::new(i as i64)]));
/// let loader = DataLoader::builder(data).batch_sampler(Pairs).build()?;
/// assert_eq!(loader.iter().next().unwrap()?[0].to_vec::<i64>(), [0, 3]);
/// # Ok::<(), sampan_core::Error>(())
/// ```
pub trait IndexBatches: Send + Sync {
    /// Batches in a pass.
    fn len(&self) -> usize;

    /// Are there none?
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// One pass. Whatever is random is drawn here, before the first batch.
    fn iter(&self) -> Result<Box<dyn Iterator<Item = Vec<usize>> + Send>>;

    /// What [`iter`](IndexBatches::iter) depends on besides the process's generator, to be kept with a checkpoint.
    fn state(&self) -> Vec<u64> {
        Vec::new()
    }

    /// Goes back to a kept state.
    fn set_state(&self, state: &[u64]) -> Result<()> {
        expect_state("BatchSampler", state, 0)
    }
}

impl<B: IndexBatches + ?Sized> IndexBatches for Arc<B> {
    fn len(&self) -> usize {
        (**self).len()
    }
    fn iter(&self) -> Result<Box<dyn Iterator<Item = Vec<usize>> + Send>> {
        (**self).iter()
    }
    fn state(&self) -> Vec<u64> {
        (**self).state()
    }
    fn set_state(&self, state: &[u64]) -> Result<()> {
        (**self).set_state(state)
    }
}

/// Cuts the indices of a sampler into batches.
///
/// ```
/// # use sampan_data::{BatchSampler, IndexBatches, SequenceSampler};
/// let batches = BatchSampler::new(SequenceSampler::new(5), 2, false)?;
/// assert_eq!(batches.iter()?.collect::<Vec<_>>(), [vec![0, 1], vec![2, 3], vec![4]]);
/// # Ok::<(), sampan_core::Error>(())
/// ```
pub struct BatchSampler {
    sampler: Box<dyn Sampler>,
    batch_size: usize,
    drop_last: bool,
}

impl BatchSampler {
    /// Batches of `batch_size`; the last may be smaller, or is left out with `drop_last`.
    pub fn new(sampler: impl Sampler + 'static, batch_size: usize, drop_last: bool) -> Result<BatchSampler> {
        check_batch_size("BatchSampler", batch_size)?;
        Ok(BatchSampler { sampler: Box::new(sampler), batch_size, drop_last })
    }

    /// Batches of a data set of `len` samples, in order or shuffled.
    pub fn of(len: usize, shuffle: bool, batch_size: usize, drop_last: bool) -> Result<BatchSampler> {
        if shuffle {
            BatchSampler::new(RandomSampler::new(len)?, batch_size, drop_last)
        } else {
            BatchSampler::new(SequenceSampler::new(len), batch_size, drop_last)
        }
    }
}

pub(super) fn check_batch_size(what: &str, batch_size: usize) -> Result<()> {
    if batch_size > 0 {
        return Ok(());
    }
    Err(Error::invalid("batch_size must be positive, got 0").in_op(what))
}

/// Number of batches of `batch_size` in `samples`.
pub(super) fn count(samples: usize, batch_size: usize, drop_last: bool) -> usize {
    if drop_last { samples / batch_size } else { samples.div_ceil(batch_size) }
}

/// Takes `batch_size` at a time.
pub(super) fn cut(
    mut indices: Indices,
    batch_size: usize,
    drop_last: bool,
) -> Box<dyn Iterator<Item = Vec<usize>> + Send> {
    let smallest = if drop_last { batch_size } else { 1 };
    Box::new(std::iter::from_fn(move || {
        let batch: Vec<usize> = indices.by_ref().take(batch_size).collect();
        (batch.len() >= smallest).then_some(batch)
    }))
}

impl IndexBatches for BatchSampler {
    fn len(&self) -> usize {
        count(self.sampler.len(), self.batch_size, self.drop_last)
    }
    fn iter(&self) -> Result<Box<dyn Iterator<Item = Vec<usize>> + Send>> {
        Ok(cut(self.sampler.iter()?, self.batch_size, self.drop_last))
    }
    fn state(&self) -> Vec<u64> {
        self.sampler.state()
    }
    fn set_state(&self, state: &[u64]) -> Result<()> {
        self.sampler.set_state(state)
    }
}
