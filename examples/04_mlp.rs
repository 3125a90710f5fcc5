//! 04 · A network with hidden layers: more than one weighted sum.
//!
//! Two hidden layers with a bend between them can follow what no straight line can. The task is still that of chapter 01
//! (the digit as a number), so that the only thing that changes is the network. Without the bend, layers upon layers would
//! still be one weighted sum: the program shows that too.

mod common;
use sampan::prelude::*;

/// 784 pixels, twice 100 numbers in between, one answer.
#[derive(Layer)]
struct Mlp {
    fc1: Linear,
    fc2: Linear,
    out: Linear,
    bend: bool,
}

impl Mlp {
    fn new(bend: bool) -> Mlp {
        Mlp { fc1: Linear::new(784, 100), fc2: Linear::new(100, 100), out: Linear::new(100, 1), bend }
    }

    fn activation(&self, x: Tensor) -> Tensor {
        if self.bend { x.relu() } else { x }
    }
}

impl Layer for Mlp {
    fn forward(&self, images: &Tensor) -> Result<Tensor> {
        let x = images.flatten(1, -1);
        let x = self.activation(x.apply(&self.fc1)?);
        let x = self.activation(x.apply(&self.fc2)?);
        x.apply(&self.out)
    }
}

fn main() -> Result<()> {
    let (train, test) = (common::batches(Split::Train, 64)?, common::batches(Split::Test, 256)?);
    for bend in [false, true] {
        random::seed(0);
        let net = Mlp::new(bend);
        // An optimizer that finds the right size of a step by itself; chapter 07 compares it with others.
        let mut opt = Adam::new(0.001, net.parameters());
        println!("{} hidden layers:", if bend { "bent" } else { "straight" });
        for epoch in 0..common::full_or_quick(5, 1) {
            let loss = common::train_epoch(&net, &mut opt, &train, |answers, labels| {
                answers.square_error_cost(&labels.cast(DType::Float32)).mean(())
            })?;
            println!("  epoch {epoch}: loss {loss:.3}");
        }
        println!("  nearest digit right: {:.1} %", 100.0 * common::rounded_accuracy(&net, &test)?);
    }
    Ok(())
}
