//! Each process its own part of every epoch.

use super::batch::{IndexBatches, check_batch_size, count, cut};
use super::{expect_state, permutation};
use sampan_core::{Error, Result, random};
use std::sync::atomic::{AtomicU64, Ordering};

/// Settings of a [`DistributedBatchSampler`].
#[derive(Clone, Debug, Default)]
pub struct DistributedOptions {
    /// Number of processes; from the launcher's `PADDLE_TRAINERS_NUM`, or 1, unless given.
    pub num_replicas: Option<usize>,
    /// This process among them; from the launcher's `PADDLE_TRAINER_ID`, or 0, unless given.
    pub rank: Option<usize>,
    /// Shuffle, differently in each epoch and alike in every process.
    pub shuffle: bool,
    /// Leave out a last batch that is not full.
    pub drop_last: bool,
    /// Seed of the order. It must be the same in every process, which is why the process's own generator is not used.
    pub seed: u64,
}

/// Batches for one of several processes. All processes get the same number of samples: the first samples come again
/// until the total can be divided. Share it with the loader in an `Arc` to call [`set_epoch`] later.
///
/// [`set_epoch`]: DistributedBatchSampler::set_epoch
///
/// ```
/// # use sampan_data::{DistributedBatchSampler, IndexBatches, sampler::DistributedOptions};
/// let options = DistributedOptions { num_replicas: Some(2), rank: Some(1), ..Default::default() };
/// let second = DistributedBatchSampler::new(7, 2, options)?;
/// assert_eq!(second.iter()?.collect::<Vec<_>>(), [vec![2, 3], vec![6, 0]]);
/// # Ok::<(), sampan_core::Error>(())
/// ```
pub struct DistributedBatchSampler {
    len: usize,
    batch_size: usize,
    ranks: usize,
    rank: usize,
    shuffle: bool,
    drop_last: bool,
    seed: u64,
    epoch: AtomicU64,
}

impl DistributedBatchSampler {
    /// Batches of a data set of `len` samples for this process.
    pub fn new(len: usize, batch_size: usize, options: DistributedOptions) -> Result<DistributedBatchSampler> {
        const NAME: &str = "DistributedBatchSampler";
        check_batch_size(NAME, batch_size)?;
        let from_launcher = |name: &str, default| match std::env::var(name) {
            Ok(value) => value.parse().map_err(|_| {
                Error::invalid(format!("{name} must be a whole number")).received(format!("{value:?}")).in_op(NAME)
            }),
            Err(_) => Ok(default),
        };
        let ranks = options.num_replicas.map_or_else(|| from_launcher("PADDLE_TRAINERS_NUM", 1), Ok)?;
        let rank = options.rank.map_or_else(|| from_launcher("PADDLE_TRAINER_ID", 0), Ok)?;
        if rank >= ranks {
            let error = Error::invalid("rank must be less than num_replicas").in_op(NAME);
            return Err(error.received(format!("rank {rank} of {ranks}")));
        }
        let DistributedOptions { shuffle, drop_last, seed, .. } = options;
        let epoch = AtomicU64::new(0);
        Ok(DistributedBatchSampler { len, batch_size, ranks, rank, shuffle, drop_last, seed, epoch })
    }

    /// Samples of each process.
    fn share(&self) -> usize {
        self.len.div_ceil(self.ranks)
    }

    /// The number of the next epoch, which decides its order. It counts up by itself; set it to repeat or to resume.
    pub fn set_epoch(&self, epoch: u64) {
        self.epoch.store(epoch, Ordering::Relaxed);
    }
}

impl IndexBatches for DistributedBatchSampler {
    fn len(&self) -> usize {
        count(self.share(), self.batch_size, self.drop_last)
    }

    fn iter(&self) -> Result<Box<dyn Iterator<Item = Vec<usize>> + Send>> {
        let total = self.share() * self.ranks;
        // Numbers past the end are the first samples again.
        let order: Vec<usize> = if self.shuffle {
            let epoch = self.epoch.fetch_add(1, Ordering::Relaxed);
            permutation(total, (random::derive(self.seed, epoch, 0), 0)).map(|i| i % self.len).collect()
        } else {
            (0..total).map(|i| i % self.len).collect()
        };
        // Processes take full batches in turn; the rest is divided evenly.
        let round = self.batch_size.saturating_mul(self.ranks);
        let whole = total - total % round;
        let rest = (total - whole) / self.ranks;
        let mut mine: Vec<usize> = Vec::with_capacity(self.share());
        for start in (self.rank.saturating_mul(self.batch_size)..whole).step_by(round) {
            mine.extend_from_slice(&order[start..start + self.batch_size]);
        }
        mine.extend_from_slice(&order[whole + self.rank * rest..whole + (self.rank + 1) * rest]);
        Ok(cut(Box::new(mine.into_iter()), self.batch_size, self.drop_last))
    }

    fn state(&self) -> Vec<u64> {
        vec![self.epoch.load(Ordering::Relaxed)]
    }

    fn set_state(&self, state: &[u64]) -> Result<()> {
        expect_state("DistributedBatchSampler", state, 1)?;
        self.set_epoch(state[0]);
        Ok(())
    }
}
