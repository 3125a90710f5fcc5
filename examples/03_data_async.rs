//! 03 · Data in the background: a `Dataset` of your own, and a `DataLoader` with workers.
//!
//! A data set answers two questions: how many samples are there, and what is the i-th? The loader does the rest: order,
//! batches, threads that prepare the next batches while the network learns from this one. Random changes of the images
//! (here: a small turn) are the same bits for any number of workers.

mod common;
use sampan::data::vision::transforms::{Compose, RandomRotation, ToTensor, Transform};
use sampan::prelude::*;
use std::time::Instant;

/// Digits that are turned a little, each time another way: more pictures than there are.
struct TurnedDigits {
    digits: Mnist,
    change: Compose,
}

impl Dataset for TurnedDigits {
    fn len(&self) -> usize {
        self.digits.len()
    }

    fn get(&self, index: usize) -> Result<Sample> {
        let [image, label] = fields(self.digits.get(index)?)?;
        Ok(vec![self.change.apply(&image)?, label])
    }
}

fn loader(workers: usize) -> Result<DataLoader> {
    let digits = Mnist::new(Split::Train)?.take(common::limit().unwrap_or(10_000));
    let change = Compose::new(transforms![RandomRotation::new(15), ToTensor::new()]);
    let data = TurnedDigits { digits, change };
    DataLoader::builder(data).batch_size(64).shuffle(true).drop_last(true).num_workers(workers).build()
}

fn main() -> Result<()> {
    let mut sums = Vec::new();
    for workers in [0, 1, 2] {
        random::seed(7);
        let net = sequential![Flatten::new(), Linear::new(784, 100), ReLU::new(), Linear::new(100, 10)];
        let mut opt = Adam::new(0.001, net.parameters());
        let data = loader(workers)?;
        let started = Instant::now();
        let loss = common::train_epoch(&net, &mut opt, &data, |scores, labels| scores.cross_entropy(labels))?;
        println!(
            "{workers} workers: {:.2} s for {:?} batches, loss {loss:.6}",
            started.elapsed().as_secs_f64(),
            data.len()
        );
        sums.push(loss);
    }
    assert!(sums.iter().all(|s| s.to_bits() == sums[0].to_bits()), "the same data whoever reads it: {sums:?}");
    println!("the same bits for any number of workers");
    Ok(())
}
