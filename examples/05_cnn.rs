//! 05 · A convolutional network: neighbouring pixels belong together.
//!
//! A convolution slides small windows over the picture and finds the same stroke wherever it is; pooling keeps what was
//! found and forgets where exactly. The loss is still the square error of chapter 01, so compare the numbers with those of
//! chapter 04. `summary` shows what each layer makes of the picture.

mod common;
use sampan::prelude::*;

#[derive(Layer)]
struct Cnn {
    conv1: Conv2D,
    pool1: MaxPool2D,
    conv2: Conv2D,
    pool2: MaxPool2D,
    fc: Linear,
}

impl Cnn {
    fn new() -> Cnn {
        Cnn {
            // One grey channel in, 20 kinds of strokes out; the padding keeps the size of 28 by 28.
            conv1: Conv2D::with(1, 20, 5, |o| o.padding(2)),
            pool1: MaxPool2D::with(2, |o| o.stride(2)),
            conv2: Conv2D::with(20, 20, 5, |o| o.padding(2)),
            pool2: MaxPool2D::with(2, |o| o.stride(2)),
            fc: Linear::new(20 * 7 * 7, 1),
        }
    }
}

impl Layer for Cnn {
    fn forward(&self, images: &Tensor) -> Result<Tensor> {
        let x = images.apply(&self.conv1)?.relu().apply(&self.pool1)?;
        let x = x.apply(&self.conv2)?.relu().apply(&self.pool2)?;
        x.flatten(1, -1).apply(&self.fc)
    }
}

fn main() -> Result<()> {
    random::seed(0);
    let (train, test) = (common::batches(Split::Train, 64)?, common::batches(Split::Test, 256)?);
    let net = Cnn::new();
    println!("{}", summary(&net, &[InputSpec::new([1, 1, 28, 28])])?);
    // An optimizer that finds the right size of a step by itself; chapter 07 compares it with others.
    let mut opt = Adam::new(0.001, net.parameters());
    for epoch in 0..common::full_or_quick(3, 1) {
        let loss = common::train_epoch(&net, &mut opt, &train, |answers, labels| {
            answers.square_error_cost(&labels.cast(DType::Float32)).mean(())
        })?;
        println!("epoch {epoch}: loss {loss:.3}");
    }
    println!("nearest digit right: {:.1} %", 100.0 * common::rounded_accuracy(&net, &test)?);
    Ok(())
}
