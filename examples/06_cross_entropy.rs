//! 06 · The loss for classes: softmax and cross entropy.
//!
//! A 3 is not "nearer" to a 4 than to an 8: digits are classes, not numbers. So the network gives ten scores, softmax makes
//! probabilities of them, and cross entropy asks how probable the right class was. First by hand on three scores, then for
//! the digits, where this one change takes the errors down to a few in a hundred.

mod common;
use sampan::prelude::*;

/// The same number in two ways.
fn by_hand() {
    let scores = Tensor::new([[2.0f32, 1.0, 0.1]]).requires_grad_();
    let label = Tensor::new([0i64]);

    let exponents = scores.exp();
    let probabilities = &exponents / exponents.sum(());
    println!("scores {:?}", scores.to_vec::<f32>());
    println!("softmax by hand {:?}", probabilities.to_vec::<f32>());
    println!("softmax         {:?}", scores.softmax(-1).to_vec::<f32>());

    let loss = -probabilities.get((0, 0)).log();
    println!("cross entropy by hand {:.6}", loss.to_f64());
    println!("cross entropy         {:.6}", scores.cross_entropy(&label).to_f64());

    // Its gradient is as simple as can be: the probabilities, less one at the right class.
    loss.backward();
    println!("gradient {:?}", scores.grad().expect("it was asked for").to_vec::<f32>());
}

fn main() -> Result<()> {
    by_hand();

    random::seed(0);
    let (train, test) = (common::batches(Split::Train, 64)?, common::batches(Split::Test, 256)?);
    let net = LeNet::new();
    let mut opt = SGD::new(0.05, net.parameters());
    for epoch in 0..common::full_or_quick(3, 1) {
        let loss = common::train_epoch(&net, &mut opt, &train, |scores, labels| scores.cross_entropy(labels))?;
        println!("epoch {epoch}: loss {loss:.4}");
    }
    println!("test accuracy {:.2} %", 100.0 * common::accuracy(&net, &test)?);

    // One picture, with how sure the network is of each class.
    let [image, label] = fields(common::digits(Split::Test)?.get(0)?)?;
    let probabilities = no_grad(|| net.call(&image.unsqueeze(0)))?.softmax(-1);
    println!("a {}: {:.3?}", label.item().to_i64(), probabilities.to_vec::<f32>());
    println!("read as {}", probabilities.argmax(-1).item().to_i64());
    Ok(())
}
