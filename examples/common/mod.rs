//! What the programs of the course share: a cut of the data for a quick look, the digits, one pass of training, one of
//! judging, and a folder for results.

// Each program uses a part of it.
#![allow(dead_code)]

use sampan::prelude::*;
use std::path::PathBuf;

/// How many samples to use, where `--limit N` or the variable `SAMPAN_EXAMPLE_LIMIT` says so; otherwise all.
pub fn limit() -> Option<usize> {
    let argument = std::env::args().skip_while(|a| a != "--limit").nth(1);
    let text = argument.or_else(|| std::env::var("SAMPAN_EXAMPLE_LIMIT").ok())?;
    Some(text.parse().unwrap_or_else(|_| panic!("the limit must be a number of samples, got {text:?}")))
}

/// `full`, or `quick` where the data is limited.
pub fn full_or_quick(full: usize, quick: usize) -> usize {
    if limit().is_some() { quick } else { full }
}

/// Handwritten digits as float32 `[1, 28, 28]` from -1 to 1, with labels `[1]`.
pub fn digits(split: Split) -> Result<Mnist> {
    Mnist::new(split)?.take(limit().unwrap_or(usize::MAX)).normalized(&[127.5], &[127.5])
}

/// The digits in batches; those to train on in a new order each time.
pub fn batches(split: Split, batch_size: usize) -> Result<DataLoader> {
    DataLoader::new(digits(split)?, batch_size, split == Split::Train)
}

/// One pass over the data with a step of the optimizer for each batch: the mean loss.
pub fn train_epoch(
    net: &impl Layer,
    opt: &mut Optimizer,
    data: &DataLoader,
    loss_of: impl Fn(&Tensor, &Tensor) -> Tensor,
) -> Result<f64> {
    net.train();
    let (mut sum, mut count) = (0.0, 0);
    for batch in data {
        let [images, labels] = fields(batch?)?;
        let loss = loss_of(&net.call(&images)?, &labels);
        loss.backward();
        opt.step()?;
        opt.clear_grad();
        sum += loss.to_f64();
        count += 1;
    }
    Ok(sum / f64::from(count.max(1)))
}

/// The share of samples whose label has the highest score.
pub fn accuracy(net: &impl Layer, data: &DataLoader) -> Result<f64> {
    net.eval();
    let mut metric = Accuracy::new();
    for batch in data {
        let [images, labels] = fields(batch?)?;
        let scores = no_grad(|| net.call(&images))?;
        let hits = metric.compute(&[scores], &[labels])?;
        metric.update(&hits)?;
    }
    Ok(metric.accumulate()[0])
}

/// The share of samples for which a network with one output comes nearer to the right digit than to any other.
pub fn rounded_accuracy(net: &impl Layer, data: &DataLoader) -> Result<f64> {
    net.eval();
    let (mut right, mut count) = (0.0, 0);
    for batch in data {
        let [images, labels] = fields(batch?)?;
        let answers = no_grad(|| net.call(&images))?.round(0);
        right += answers.equal(labels.cast(DType::Float32)).cast(DType::Float32).sum(()).to_f64();
        count += labels.numel();
    }
    Ok(right / count.max(1) as f64)
}

/// A folder for what a program leaves behind: `runs/NAME`.
pub fn folder(name: &str) -> Result<PathBuf> {
    let path = PathBuf::from("runs").join(name);
    std::fs::create_dir_all(&path)?;
    Ok(path)
}
