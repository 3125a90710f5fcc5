//! 10 · Overfitting, and two things against it.
//!
//! A large network and few images: it learns them by heart. Its training loss goes to nothing, while the loss on images it
//! has not seen first falls and then rises: it grows sure of itself where it is wrong. An L2 penalty keeps weights small,
//! dropout keeps single neurons from being relied on, and the second loss stays down. More data would do it better still.

mod common;
use sampan::prelude::*;

const IMAGES: usize = 500;

fn network(dropout: f64) -> Sequential {
    let mut net = Sequential::new().push(Flatten::new());
    for (inputs, outputs) in [(784, 256), (256, 256)] {
        net = net.push(Linear::new(inputs, outputs)).push(ReLU::new()).push(Dropout::new(dropout));
    }
    net.push(Linear::new(256, 10))
}

/// The mean loss on data, without learning from it.
fn loss_on(net: &impl Layer, data: &DataLoader) -> Result<f64> {
    net.eval();
    let mut losses = Vec::new();
    for batch in data {
        let [images, labels] = fields(batch?)?;
        losses.push(no_grad(|| net.call(&images))?.cross_entropy(&labels).to_f64());
    }
    Ok(losses.iter().sum::<f64>() / losses.len() as f64)
}

fn main() -> Result<()> {
    let few = || common::digits(Split::Train).map(|digits| digits.take(IMAGES));
    let (train, seen) = (DataLoader::new(few()?, 50, true)?, DataLoader::new(few()?, 250, false)?);
    let test = common::batches(Split::Test, 250)?;

    for (name, decay, dropout) in [("nothing", 0.0, 0.0), ("L2 decay", 0.01, 0.0), ("L2 decay and dropout", 0.01, 0.3)]
    {
        println!("against overfitting: {name}");
        random::seed(0);
        let net = network(dropout);
        let mut opt = Adam::with(0.001, net.parameters(), |o| o.weight_decay(L2Decay(decay)));
        for epoch in 1..=common::full_or_quick(60, 4) {
            common::train_epoch(&net, &mut opt, &train, |scores, labels| scores.cross_entropy(labels))?;
            if [4, 15, 30, 60].contains(&epoch) {
                let (known, new) = (loss_on(&net, &seen)?, loss_on(&net, &test)?);
                let accuracy = 100.0 * common::accuracy(&net, &test)?;
                println!(
                    "  epoch {epoch:2}: training loss {known:.4}, test loss {new:.4}, test accuracy {accuracy:.1} %"
                );
            }
        }
    }
    Ok(())
}
