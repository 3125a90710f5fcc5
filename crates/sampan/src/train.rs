//! The main job: LeNet on the bundled MNIST.

use crate::checkpoint::{self, Position};
use crate::lenet::LeNet;
use crate::progress::Progress;
use sampan_core::{Result, Tensor, no_grad, random};
use sampan_data::mnist::Split;
use sampan_data::{DataLoader, Mnist};
use sampan_nn::{Adam, Layer, Members};
use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

/// Settings of a run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Passes over the training images.
    pub epochs: usize,
    /// Images in a batch.
    pub batch_size: usize,
    /// Adam's learning rate.
    pub lr: f64,
    /// Seed of everything random.
    pub seed: u64,
    /// Use only the first images.
    pub limit: Option<usize>,
    /// Where files go.
    pub out: PathBuf,
    /// Go on from the checkpoint there.
    pub resume: bool,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Outcome {
    /// All epochs done, with the share of test images read correctly.
    Finished(f64),
    /// Stopped by `stop`; the checkpoint holds the rest.
    Stopped(Position),
}

/// Share of correct answers.
fn accuracy(scores: &Tensor, labels: &Tensor) -> f64 {
    let answers = scores.detach().argmax(-1).to_vec::<i64>();
    let right = answers.iter().zip(labels.to_vec::<i64>()).filter(|(a, l)| **a == *l).count();
    right as f64 / labels.numel().max(1) as f64
}

/// The share of a data set that the network reads correctly.
pub fn evaluate(net: &dyn Layer, data: &DataLoader) -> Result<f64> {
    net.eval();
    let mut right = 0.0;
    for (images, labels) in data.iter() {
        let scores = no_grad(|| net.call(&images))?;
        right += accuracy(&scores, &labels) * labels.numel() as f64;
    }
    net.train();
    Ok(right / data.samples().max(1) as f64)
}

/// Trains until the end or until `stop` is set, and keeps a checkpoint and a log in `settings.out`.
pub fn train(settings: &Settings, stop: &AtomicBool) -> Result<Outcome> {
    let cut = |data: Mnist| match settings.limit {
        Some(n) => data.take(n),
        None => data,
    };
    random::seed(settings.seed);
    let net = LeNet::new()?;
    let mut optimizer = Adam::new(settings.lr, net.parameters());
    let training = DataLoader::new(cut(Mnist::bundled(Split::Train)?), settings.batch_size, true);
    let test = DataLoader::new(cut(Mnist::bundled(Split::Test)?), settings.batch_size, false);

    let file = settings.out.join("checkpoint.safetensors");
    let mut at = Position { epoch_rng: random::state(), rng: random::state(), ..Default::default() };
    if settings.resume {
        at = checkpoint::load(&file, &net, Some(&mut optimizer))?;
        println!("going on after epoch {} and {} steps", at.epoch, at.step);
    }
    std::fs::create_dir_all(&settings.out)?;
    let mut log = std::fs::OpenOptions::new().create(true).append(true).open(settings.out.join("log.jsonl"))?;

    let mut test_accuracy = None;
    while at.epoch < settings.epochs {
        println!("Epoch {}/{}", at.epoch + 1, settings.epochs);
        random::set_state(at.epoch_rng);
        let batches = training.iter();
        if at.step > 0 {
            random::set_state(at.rng);
        }
        let mut bar = Progress::new(training.len());
        for (images, labels) in batches.skip(at.step) {
            let scores = net.call(&images)?;
            let loss = scores.try_cross_entropy(&labels)?;
            loss.try_backward(None, false)?;
            optimizer.step()?;
            optimizer.clear_grad();
            at.step += 1;
            let (loss, acc) = (loss.to_f64(), accuracy(&scores, &labels));
            bar.step(at.step, &[("loss", loss), ("acc", acc)]);
            writeln!(log, "{}", serde_json::json!({"epoch": at.epoch, "step": at.step, "loss": loss, "acc": acc}))?;
            if stop.load(Ordering::Relaxed) {
                at.rng = random::state();
                checkpoint::save(&file, &net, &optimizer, at)?;
                return Ok(Outcome::Stopped(at));
            }
        }
        at = Position { epoch: at.epoch + 1, step: 0, epoch_rng: random::state(), rng: random::state() };
        checkpoint::save(&file, &net, &optimizer, at)?;
        let acc = evaluate(&net, &test)?;
        println!("test accuracy after epoch {}: {:.2} %", at.epoch, acc * 100.0);
        writeln!(log, "{}", serde_json::json!({"epoch": at.epoch, "test_accuracy": acc}))?;
        test_accuracy = Some(acc);
    }
    match test_accuracy {
        Some(acc) => Ok(Outcome::Finished(acc)),
        None => evaluate(&net, &test).map(Outcome::Finished),
    }
}
