//! 07 · Optimizers, and a learning rate that falls.
//!
//! Four ways to use the same gradients: plain steps (SGD), steps with a memory of their direction (Momentum), steps that
//! shrink where gradients were large (Adagrad), and both together (Adam). Then the learning rate itself: large steps first,
//! small ones at the end, along a schedule that optimizer and program share.

mod common;
use sampan::prelude::*;

fn main() -> Result<()> {
    let (train, test) = (common::batches(Split::Train, 64)?, common::batches(Split::Test, 256)?);
    let cross_entropy = |scores: &Tensor, labels: &Tensor| scores.cross_entropy(labels);

    let optimizers: [(&str, fn(Vec<Parameter>) -> Optimizer); 4] = [
        ("SGD", |p| SGD::new(0.01, p)),
        ("Momentum", |p| Momentum::with(0.01, p, |o| o.momentum(0.9))),
        ("Adagrad", |p| Adagrad::new(0.01, p)),
        ("Adam", |p| Adam::new(0.001, p)),
    ];
    for (name, make) in optimizers {
        // The same first weights and the same order of the images for all.
        random::seed(0);
        let net = LeNet::new();
        let mut opt = make(net.parameters());
        let loss = common::train_epoch(&net, &mut opt, &train, cross_entropy)?;
        println!("{name:>8}: loss {loss:.4}, test accuracy {:.2} %", 100.0 * common::accuracy(&net, &test)?);
    }

    println!("Adam with a learning rate that falls to a hundredth:");
    random::seed(0);
    let epochs = common::full_or_quick(3, 1);
    let steps = epochs * train.len().expect("a data set has a length");
    let schedule = lr::PolynomialDecay::with(0.002, steps as i64, |o| o.end_lr(0.00002));
    let net = LeNet::new();
    let mut opt = Adam::with(&schedule, net.parameters(), |o| o.grad_clip(ClipGradByGlobalNorm::new(5.0)));
    for epoch in 0..epochs {
        for batch in &train {
            let [images, labels] = fields(batch?)?;
            net.call(&images)?.cross_entropy(&labels).backward();
            opt.step()?;
            opt.clear_grad();
            schedule.step();
        }
        let accuracy = common::accuracy(&net, &test)?;
        println!("epoch {epoch}: learning rate {:.6}, test accuracy {:.2} %", opt.get_lr(), 100.0 * accuracy);
    }
    Ok(())
}
