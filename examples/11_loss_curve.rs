//! 11 · A picture of learning: the loss curve as PNG, and event files for TensorBoard.
//!
//! Single batches jump; their running mean shows where it goes. The picture needs nothing but this program. The event files
//! are watched while training runs: `tensorboard --logdir runs/11_loss_curve`.

mod common;
use sampan::io::events::EventWriter;
use sampan::plot::{self, Curve};
use sampan::prelude::*;

fn main() -> Result<()> {
    random::seed(0);
    let (train, test) = (common::batches(Split::Train, 64)?, common::batches(Split::Test, 256)?);
    let folder = common::folder("11_loss_curve")?;
    let mut events = EventWriter::create(&folder)?;

    let net = LeNet::new();
    let mut opt = Adam::new(0.001, net.parameters());
    let (mut losses, mut accuracies) = (Vec::new(), Vec::new());
    let mut step = 0;
    for epoch in 0..common::full_or_quick(3, 1) {
        net.train();
        for batch in &train {
            let [images, labels] = fields(batch?)?;
            let scores = net.call(&images)?;
            let loss = scores.cross_entropy(&labels);
            loss.backward();
            opt.step()?;
            opt.clear_grad();
            losses.push((step as f64, loss.to_f64()));
            events.scalar("train/loss", loss.to_f64() as f32, step)?;
            step += 1;
        }
        let accuracy = common::accuracy(&net, &test)?;
        accuracies.push((step as f64, accuracy));
        events.scalar("test/accuracy", accuracy as f32, step)?;
        events.histogram("fc weight", &net.parameters()[4].tensor(), step)?;
        println!("epoch {epoch}: loss {:.4}, test accuracy {:.2} %", losses[losses.len() - 1].1, 100.0 * accuracy);
    }
    events.flush()?;

    let mut curves = Curve::new("training loss", losses).smoothed(50).to_vec();
    curves.push(Curve::new("test accuracy", accuracies));
    let picture = folder.join("loss.png");
    plot::curves(&picture, "LeNet on MNIST", "step", "loss, accuracy", &curves)?;
    println!("drawn: {}", picture.display());
    println!("events: {}", events.path().display());
    Ok(())
}
