//! Batches, made ahead on a thread of their own.

use crate::Mnist;
use sampan_core::{Tensor, random};
use sampan_kernels::rng;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};

/// Images and labels.
pub type Batch = (Tensor, Tensor);

/// Batches waiting to be used at most.
const AHEAD: usize = 4;

/// Cuts a data set into batches, in order or shuffled by the process's generator.
pub struct DataLoader {
    data: Arc<Mnist>,
    batch_size: usize,
    shuffle: bool,
}

impl DataLoader {
    /// Batches of `batch_size`; the last may be smaller.
    pub fn new(data: Mnist, batch_size: usize, shuffle: bool) -> DataLoader {
        DataLoader { data: Arc::new(data), batch_size: batch_size.max(1), shuffle }
    }

    /// Number of batches.
    pub fn len(&self) -> usize {
        self.data.len().div_ceil(self.batch_size)
    }

    /// Has it no batches?
    pub fn is_empty(&self) -> bool {
        self.data.is_empty()
    }

    /// Number of samples.
    pub fn samples(&self) -> usize {
        self.data.len()
    }

    /// One pass over the data. A shuffled one draws its order from the generator now.
    pub fn iter(&self) -> impl Iterator<Item = Batch> + use<> {
        let mut order: Vec<i64> = (0..self.data.len() as i64).collect();
        if self.shuffle {
            let (seed, start) = random::reserve(order.len());
            rng::randperm(seed, start, &mut order);
        }
        let (data, size) = (self.data.clone(), self.batch_size);
        let (send, receive): (_, Receiver<Batch>) = sync_channel(AHEAD);
        std::thread::spawn(move || {
            for chunk in order.chunks(size) {
                let indices: Vec<usize> = chunk.iter().map(|&i| i as usize).collect();
                if send.send(data.batch(&indices)).is_err() {
                    // Whoever iterated has stopped early.
                    return;
                }
            }
        });
        receive.into_iter()
    }
}
