//! What the high-level API costs over a loop by hand, on the main job's network: `cargo bench -p sampan-bench --bench fit`.
//!
//! Both train LeNet-5 on the same 12,800 images in batches of 64. Rounds are interleaved and the order within a round
//! alternates, so that a busy machine disturbs both alike.

use sampan::hapi::Model;
use sampan::lenet::LeNet5;
use sampan::prelude::*;
use std::time::Instant;

const ROUNDS: usize = 9;

fn data() -> Result<Mnist> {
    Ok(Mnist::new(Split::Train)?.normalized(&[127.5], &[127.5])?.take(12_800))
}

/// Seconds of one epoch, batch by batch. The accuracy is counted as `fit` counts it.
fn by_hand() -> Result<f64> {
    random::seed(0);
    let net = LeNet5::new();
    let mut adam = Adam::new(0.001, net.parameters());
    let loader = DataLoader::new(data()?, 64, true)?;
    let mut accuracy = Accuracy::new();
    let began = Instant::now();
    let mut total = 0.0;
    for batch in &loader {
        let [images, labels] = fields(batch?)?;
        let scores = net.call(&images)?;
        let loss = scores.try_cross_entropy(&labels)?;
        loss.try_backward(None, false)?;
        adam.step()?;
        adam.clear_grad();
        total += loss.to_f64();
        let hits = accuracy.compute(&[scores.detach()], &[labels])?;
        accuracy.update(&hits)?;
    }
    let seconds = began.elapsed().as_secs_f64();
    assert!(total.is_finite());
    Ok(seconds)
}

fn by_fit() -> Result<f64> {
    random::seed(0);
    let net = LeNet5::new();
    let adam = Adam::new(0.001, net.parameters());
    let mut model = Model::new(net);
    model.prepare(adam, CrossEntropyLoss::new(), [Accuracy::new()]);
    let loader = DataLoader::new(data()?, 64, true)?;
    let began = Instant::now();
    model.fit(loader).verbose(0).run()?;
    Ok(began.elapsed().as_secs_f64())
}

/// The shortest and the middle time of a step, in milliseconds; an epoch has 200 steps.
fn step_times(mut seconds: Vec<f64>) -> (f64, f64) {
    seconds.sort_by(f64::total_cmp);
    (seconds[0] * 5.0, seconds[seconds.len() / 2] * 5.0)
}

fn main() -> Result<()> {
    by_hand()?;
    let (mut hand, mut fit) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        if round % 2 == 0 {
            hand.push(by_hand()?);
            fit.push(by_fit()?);
        } else {
            fit.push(by_fit()?);
            hand.push(by_hand()?);
        }
    }
    let (hand, fit) = (step_times(hand), step_times(fit));
    for (what, hand, fit) in [("shortest", hand.0, fit.0), ("median", hand.1, fit.1)] {
        println!("{what}: by hand {hand:.3} ms a step, fit {fit:.3} ms, {:+.2} %", (fit / hand - 1.0) * 100.0);
    }
    Ok(())
}
