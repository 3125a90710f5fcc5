//! 01 · Linear regression: the shortest program that learns.
//!
//! A weighted sum of the 784 pixels is asked to be the digit itself, as a number. You see the four parts that every
//! program of the course has (data, network, optimizer, loop), how weights are saved and loaded, and why one sum is not
//! enough: the answers are numbers near the digit, not digits.

mod common;
use sampan::prelude::*;

#[derive(Layer)]
struct Regression {
    fc: Linear,
}

impl Regression {
    fn new() -> Regression {
        Regression { fc: Linear::new(784, 1) }
    }
}

impl Layer for Regression {
    fn forward(&self, images: &Tensor) -> Result<Tensor> {
        images.flatten(1, -1).apply(&self.fc)
    }
}

fn main() -> Result<()> {
    random::seed(0);
    let train = common::batches(Split::Train, 16)?;
    let net = Regression::new();
    let mut opt = SGD::new(0.001, net.parameters());

    for epoch in 0..common::full_or_quick(3, 1) {
        for (step, batch) in train.iter().enumerate() {
            let [images, labels] = fields(batch?)?;
            let answers = net.call(&images)?;
            let loss = answers.square_error_cost(&labels.cast(DType::Float32)).mean(());
            if step % 1000 == 0 {
                println!("epoch {epoch}, batch {step}: loss {:.3}", loss.to_f64());
            }
            loss.backward();
            opt.step()?;
            opt.clear_grad();
        }
    }

    // What was learnt is a file now, which Paddle loads as well …
    let file = common::folder("01_linear_regression")?.join("regression.pdparams");
    save(&file, &net.state_dict().into())?;

    // … and a network that has never been trained takes it over.
    let fresh = Regression::new();
    fresh.set_state_dict(&load(&file)?.tensors())?;
    let test = common::batches(Split::Test, 100)?;
    let [images, labels] = fields(common::digits(Split::Test)?.get(0)?)?;
    let answer = fresh.call(&images.unsqueeze(0))?.to_f64();
    println!("the first test image shows {}, the answer is {answer:.2}", labels.to_f64());
    println!("nearest digit right: {:.1} %", 100.0 * common::rounded_accuracy(&fresh, &test)?);
    Ok(())
}
