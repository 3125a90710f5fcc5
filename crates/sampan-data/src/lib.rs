//! Data sets, samplers, the loader and downloads: what Paddle has in `paddle.io` and `paddle.vision.datasets`.
//!
//! ```
//! use sampan_core::Tensor;
//! use sampan_data::{DataLoader, Dataset, FnDataset};
//! let squares = FnDataset::new(10, |i| Ok(vec![Tensor::new(i as f32), Tensor::new((i * i) as f32)]));
//! let loader = DataLoader::builder(squares).batch_size(4).build()?;
//! for batch in loader.iter() {
//!     let [x, y] = &batch?[..] else { unreachable!() };
//!     assert_eq!((x * x).to_vec::<f32>(), y.to_vec::<f32>());
//! }
//! # Ok::<(), sampan_core::Error>(())
//! ```

pub mod dataset;
pub mod download;
mod files;
pub mod loader;
pub mod sampler;
mod source;
pub mod text;
pub mod vision;

pub use dataset::{
    Batch, ChainDataset, ComposeDataset, ConcatDataset, Dataset, FnDataset, FnIterable, IterableDataset, Lengths,
    Sample, Subset, TensorDataset, random_split,
};
pub use loader::{
    BatchSource, DataLoader, LoaderBuilder, LoaderIter, LoaderState, WorkerInfo, default_collate, get_worker_info,
};
pub use sampler::{
    BatchSampler, DistributedBatchSampler, IndexBatches, RandomSampler, Sampler, SequenceSampler, SubsetRandomSampler,
    WeightedRandomSampler,
};
pub use source::Split;
pub use text::UciHousing;
pub use vision::datasets::{Cifar10, Cifar100, DatasetFolder, FashionMnist, Flowers, ImageFolder, Mnist, Voc2012};
