//! 12 · Stop today, go on tomorrow: a checkpoint that continues to the bit.
//!
//! Weights alone are not enough. A run also is its optimizer (moments, steps), its learning rate's place on the schedule,
//! the random numbers still to come and the place in the data. A checkpoint holds all of it in one file: a run that was cut
//! in two ends with exactly the weights of one that was not.

mod common;
use sampan::prelude::*;
use std::path::Path;

/// A model as a new process would build it.
fn build() -> Model {
    random::seed(0);
    // Names of parameters are counted; a guard starts the count anew, as a new process does.
    let net = sampan::nn::unique_name::guard(LeNet::new);
    let schedule = lr::StepDecay::with(0.002, 1, |o| o.gamma(0.5));
    let mut model = Model::new(net);
    model.prepare(Adam::new(&schedule, model.parameters()), CrossEntropyLoss::new(), [Accuracy::new()]);
    model
}

fn train(model: &mut Model, epochs: usize, checkpoint: &Path, resume: bool) -> Result<()> {
    let mut fit = model.fit(common::digits(Split::Train)?).batch_size(64).epochs(epochs).verbose(0);
    fit = fit.callback(callbacks::LRScheduler::by_epoch()).checkpoint(checkpoint);
    if resume {
        fit = fit.resume(checkpoint);
    }
    fit.run()?;
    let lr = model.optimizer().map_or(0.0, |o| o.get_lr());
    println!("  after epoch {}: {} steps, learning rate {lr}", model.position().epoch, model.global_step());
    Ok(())
}

fn weights(model: &Model) -> Vec<u32> {
    model.parameters().iter().flat_map(|p| p.tensor().to_vec::<f32>()).map(f32::to_bits).collect()
}

fn main() -> Result<()> {
    let folder = common::folder("12_resume")?;

    println!("in one go:");
    let mut whole = build();
    train(&mut whole, 2, &folder.join("whole.safetensors"), false)?;

    println!("stopped after one epoch …");
    let file = folder.join("halves.safetensors");
    train(&mut build(), 1, &file, false)?;

    println!("… and gone on with the next day:");
    let mut second = build();
    random::seed(12345); // whatever this process has drawn so far does not matter
    train(&mut second, 2, &file, true)?;

    assert_eq!(weights(&whole), weights(&second));
    println!("all {} weights are the same to the bit", weights(&whole).len());

    // For others, weights and optimizer in Paddle's own files.
    second.save(folder.join("lenet"), true)?;
    println!("saved {}/lenet.pdparams and .pdopt", folder.display());
    let logs = second.evaluate(common::digits(Split::Test)?, 256, 0)?;
    println!("test accuracy {:.2} %", 100.0 * logs.get("acc").unwrap_or(0.0));
    Ok(())
}
