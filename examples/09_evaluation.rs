//! 09 · How good is it? Validation, test, and which digits are mixed up.
//!
//! The training loss says how well the network knows what it has seen. A validation part that is never trained on says how
//! far to train; the test set is looked at once. Accuracy is gathered batch by batch by a metric, also as "among the best
//! three", and a table of right and given answers shows where the mistakes are.

mod common;
use sampan::prelude::*;

/// The metric over all batches; `each` sees the scores and labels of every batch on the way.
fn judge(
    net: &impl Layer,
    data: &DataLoader,
    metric: &mut Accuracy,
    mut each: impl FnMut(&Tensor, &Tensor),
) -> Result<Vec<f64>> {
    // Dropout and batch norm behave differently while learning; gradients are not needed here.
    net.eval();
    metric.reset();
    for batch in data {
        let [images, labels] = fields(batch?)?;
        let scores = no_grad(|| net.call(&images))?;
        each(&scores, &labels);
        let hits = metric.compute(&[scores], &[labels])?;
        metric.update(&hits)?;
    }
    Ok(metric.accumulate())
}

fn main() -> Result<()> {
    random::seed(0);
    let mut parts = random_split(common::digits(Split::Train)?, [0.9, 0.1])?.into_iter();
    let (train, valid) = (parts.next().expect("two parts"), parts.next().expect("two parts"));
    let (train, valid) = (DataLoader::new(train, 64, true)?, DataLoader::new(valid, 256, false)?);
    let test = common::batches(Split::Test, 256)?;

    let net = LeNet::new();
    let mut opt = Adam::new(0.001, net.parameters());
    let mut accuracy = Accuracy::new();
    let mut best = 0.0;
    let file = common::folder("09_evaluation")?.join("best.pdparams");
    for epoch in 0..common::full_or_quick(3, 1) {
        let loss = common::train_epoch(&net, &mut opt, &train, |scores, labels| scores.cross_entropy(labels))?;
        let valid = judge(&net, &valid, &mut accuracy, |_, _| {})?[0];
        println!("epoch {epoch}: training loss {loss:.4}, validation accuracy {:.2} %", 100.0 * valid);
        if valid >= best {
            best = valid;
            save(&file, &net.state_dict().into())?;
        }
    }

    // The best network of all epochs, and the one look at the test set.
    net.set_state_dict(&load(&file)?.tensors())?;
    let mut table = [[0usize; 10]; 10];
    let mut top = Accuracy::with(|o| o.topk([1, 3]));
    let shares = judge(&net, &test, &mut top, |scores, labels| {
        let given = scores.argmax(-1).to_vec::<i64>();
        labels.to_vec::<i64>().iter().zip(given).for_each(|(&right, given)| table[right as usize][given as usize] += 1);
    })?;
    println!("test accuracy {:.2} %, right digit among the best three {:.2} %", 100.0 * shares[0], 100.0 * shares[1]);
    println!("right digit down, answer across:");
    for (digit, row) in table.iter().enumerate() {
        println!("  {digit} | {}", row.iter().map(|n| format!("{n:5}")).collect::<String>());
    }
    Ok(())
}
