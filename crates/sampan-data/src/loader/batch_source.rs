//! What a training loop can be given.

use super::DataLoader;
use crate::dataset::Dataset;
use sampan_core::Result;
use std::sync::Arc;

/// A loader as it is, or a data set that is yet to be cut into batches.
pub enum BatchSource {
    /// A loader with settings of its own.
    Loader(DataLoader),
    /// A data set.
    Dataset(Arc<dyn Dataset>),
}

impl From<DataLoader> for BatchSource {
    fn from(loader: DataLoader) -> BatchSource {
        BatchSource::Loader(loader)
    }
}

impl<D: Dataset + 'static> From<D> for BatchSource {
    fn from(dataset: D) -> BatchSource {
        BatchSource::Dataset(Arc::new(dataset))
    }
}

impl BatchSource {
    /// Is it known to hold nothing?
    pub fn is_empty(&self) -> bool {
        match self {
            BatchSource::Loader(loader) => loader.is_empty(),
            BatchSource::Dataset(data) => data.is_empty(),
        }
    }

    /// A loader; the settings apply to a data set only.
    pub fn into_loader(self, batch_size: usize, shuffle: bool, drop_last: bool, workers: usize) -> Result<DataLoader> {
        match self {
            BatchSource::Loader(loader) => Ok(loader),
            BatchSource::Dataset(data) => DataLoader::builder(data)
                .batch_size(batch_size)
                .shuffle(shuffle)
                .drop_last(drop_last)
                .num_workers(workers)
                .build(),
        }
    }
}
