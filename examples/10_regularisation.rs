//! 10 · Overfitting, and two things against it.
//!
//! A large network and few images: it learns them by heart, and the gap between what it knows (training) and what it can
//! (test) opens. An L2 penalty keeps weights small, dropout keeps single neurons from being relied on. Both narrow the gap;
//! more data would do it better than either.

mod common;
use sampan::prelude::*;

const IMAGES: usize = 1000;

fn network(dropout: f64) -> Sequential {
    let mut net = Sequential::new().push(Flatten::new());
    for (inputs, outputs) in [(784, 256), (256, 256)] {
        net = net.push(Linear::new(inputs, outputs)).push(ReLU::new()).push(Dropout::new(dropout));
    }
    net.push(Linear::new(256, 10))
}

fn main() -> Result<()> {
    let few = || common::digits(Split::Train).map(|digits| digits.take(IMAGES));
    let (train, seen) = (DataLoader::new(few()?, 50, true)?, DataLoader::new(few()?, 250, false)?);
    let test = common::batches(Split::Test, 250)?;
    let epochs = common::full_or_quick(40, 4);

    println!("{:>22} {:>14} {:>10} {:>10}", "", "training loss", "known", "test");
    for (name, decay, dropout) in [("nothing", 0.0, 0.0), ("L2 decay", 0.003, 0.0), ("L2 decay and dropout", 0.001, 0.5)] {
        random::seed(0);
        let net = network(dropout);
        let mut opt = Adam::with(0.001, net.parameters(), |o| o.weight_decay(L2Decay(decay)));
        let mut loss = 0.0;
        for _ in 0..epochs {
            loss = common::train_epoch(&net, &mut opt, &train, |scores, labels| scores.cross_entropy(labels))?;
        }
        let (known, able) = (common::accuracy(&net, &seen)?, common::accuracy(&net, &test)?);
        println!("{name:>22} {loss:>14.4} {:>8.1} % {:>8.1} %", 100.0 * known, 100.0 * able);
    }
    Ok(())
}
