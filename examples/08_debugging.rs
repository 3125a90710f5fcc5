//! 08 · Looking inside: shapes, values, gradients, frozen parts, and the op that made a NaN.
//!
//! Every line runs as it is written, so a `println!` anywhere is a debugger. For what is not yours to print in there are
//! observers (see every layer at work), hooks (see a gradient as it passes), the gradients of parameters, and a switch that
//! names the first op whose result is not a number. The errors themselves say where they arose.

mod common;
use sampan::nn::{LayerId, Observer, observe};
use sampan::prelude::*;
use std::rc::Rc;

/// Prints what goes into each layer and what comes out.
struct Shapes;

impl Observer for Shapes {
    fn exit(&self, _: LayerId, layer: &'static str, inputs: &[Tensor], outputs: &[Tensor]) {
        let (x, y) = (&inputs[0], &outputs[0]);
        println!("  {layer:<10} {:?} -> {:?}, mean {:+.4}", x.shape(), y.shape(), y.mean(()).to_f64());
    }
}

fn main() -> Result<()> {
    random::seed(0);
    let net = LeNet::new();
    let batch = common::batches(Split::Train, 8)?.iter().next().expect("there is a batch")?;
    let [images, labels] = fields(batch)?;

    println!("each layer:");
    let scores = observe(Rc::new(Shapes), || net.call(&images))?;

    println!("a gradient on its way back:");
    let _hook = scores.register_hook(|g| {
        println!("  at the scores: {:?}, largest {:.4}", g.shape(), g.abs().max(()).to_f64());
        Ok(None)
    })?;
    scores.cross_entropy(&labels).backward();

    println!("the parameters and their gradients:");
    for (name, p) in net.named_parameters() {
        let grad = p.grad().expect("all of them were used");
        println!(
            "  {name:<18} {:<14} |w| {:.4}  |g| {:.6}",
            format!("{:?}", p.shape()),
            norm(&p.tensor()),
            norm(&grad)
        );
    }
    println!("the first filter: {}", net.parameters()[0].tensor().get((0, 0)));

    // A frozen parameter keeps its values, and no gradient is computed for it. A tensor stops gradients by itself.
    net.clear_gradients();
    net.parameters()[0].set_trainable(false);
    net.call(&images)?.cross_entropy(&labels).backward();
    let with = net.parameters().iter().filter(|p| p.grad().is_some()).count();
    println!("with the first weight frozen, {with} of {} parameters have a gradient", net.parameters().len());
    println!("an image has stop_gradient={}, its scores {}", images.stop_gradient(), scores.stop_gradient());

    // A shape that does not fit: the error names op, shapes and the layer in the network.
    println!("a wrong shape: {}", net.call(&images.get((.., .., ..20))).expect_err("too small"));

    // Where does the NaN come from? The switch makes the op that computes it the one that fails.
    sampan::flags::set_check_nan_inf(true);
    let nan = images.try_log().expect_err("pixels are negative");
    sampan::flags::set_check_nan_inf(false);
    println!("a NaN: {nan}");
    Ok(())
}

fn norm(x: &Tensor) -> f64 {
    x.square().sum(()).to_f64().sqrt()
}
