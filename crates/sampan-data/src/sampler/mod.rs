//! In which order samples are read. All random orders come from `sampan_core::random`, so `seed` decides them.

mod batch;
mod distributed;
mod random;

pub use batch::{BatchSampler, IndexBatches};
pub use distributed::{DistributedBatchSampler, DistributedOptions};
pub(crate) use random::permutation;
pub use random::{RandomOptions, RandomSampler, SubsetRandomSampler, WeightedRandomSampler};
use sampan_core::{Error, Result};
use std::sync::Arc;

/// Indices one after the other.
pub type Indices = Box<dyn Iterator<Item = usize> + Send>;

/// An order of samples; write your own by implementing this.
///
/// ```
/// use sampan_core::Result;
/// use sampan_data::sampler::{Indices, Sampler};
/// struct Backwards(usize);
/// impl Sampler for Backwards {
///     fn len(&self) -> usize {
///         self.0
///     }
///     fn iter(&self) -> Result<Indices> {
///         Ok(Box::new((0..self.0).rev()))
///     }
/// }
/// assert_eq!(Backwards(3).iter()?.collect::<Vec<_>>(), [2, 1, 0]);
/// # Ok::<(), sampan_core::Error>(())
/// ```
pub trait Sampler: Send + Sync {
    /// Number of indices in a pass.
    fn len(&self) -> usize;

    /// Are there none?
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// One pass. Whatever is random is drawn here, before the first index, so that an order can be repeated from the
    /// state of the generator.
    fn iter(&self) -> Result<Indices>;

    /// What [`iter`](Sampler::iter) depends on besides the process's generator, to be kept with a checkpoint.
    fn state(&self) -> Vec<u64> {
        Vec::new()
    }

    /// Goes back to a kept state.
    fn set_state(&self, state: &[u64]) -> Result<()> {
        expect_state("Sampler", state, 0)
    }
}

/// Refuses a kept state of another length.
fn expect_state(what: &str, state: &[u64], len: usize) -> Result<()> {
    if state.len() == len {
        return Ok(());
    }
    let error = Error::invalid(format!("the state of this sampler has {len} numbers")).in_op(what);
    Err(error.received(format!("{} numbers", state.len())).hint("it was kept by another kind of sampler"))
}

impl<S: Sampler + ?Sized> Sampler for Arc<S> {
    fn len(&self) -> usize {
        (**self).len()
    }
    fn iter(&self) -> Result<Indices> {
        (**self).iter()
    }
    fn state(&self) -> Vec<u64> {
        (**self).state()
    }
    fn set_state(&self, state: &[u64]) -> Result<()> {
        (**self).set_state(state)
    }
}

/// 0, 1, 2, …
///
/// ```
/// # use sampan_data::{Sampler, SequenceSampler};
/// assert_eq!(SequenceSampler::new(3).iter()?.collect::<Vec<_>>(), [0, 1, 2]);
/// # Ok::<(), sampan_core::Error>(())
/// ```
pub struct SequenceSampler {
    len: usize,
}

impl SequenceSampler {
    /// All indices below `len`.
    pub fn new(len: usize) -> SequenceSampler {
        SequenceSampler { len }
    }
}

impl Sampler for SequenceSampler {
    fn len(&self) -> usize {
        self.len
    }
    fn iter(&self) -> Result<Indices> {
        Ok(Box::new(0..self.len))
    }
}
