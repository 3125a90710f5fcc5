//! 02 · Data, step by step: read, divide, shuffle, check, cut into batches.
//!
//! Nothing here is hidden in a loader: an iterator of our own makes the batches while training waits for it. Data is
//! checked twice before it is believed: by the machine (counts, ranges, numbers that are not numbers) and by eye (shapes,
//! types, a picture in the terminal). A loss that falls is the third check.

mod common;
use sampan::prelude::*;

/// Images and labels of one part of the data, not yet in batches.
struct Part {
    data: Mnist,
    indices: Vec<usize>,
}

impl Part {
    /// The machine's check: fails with a sentence where something is wrong.
    fn check(&self) -> Result<()> {
        for &i in &self.indices {
            let [image, label] = fields(self.data.get(i)?)?;
            sampan::ensure!(image.shape() == [1, 28, 28], "image {i} has shape {:?}", image.shape());
            sampan::ensure!((0..10).contains(&label.item().to_i64()), "image {i} has the label {label}");
            let (low, high) = (image.min(()).to_f64(), image.max(()).to_f64());
            sampan::ensure!(low >= -1.0 && high <= 1.0, "image {i} has pixels from {low} to {high}");
        }
        Ok(())
    }

    /// One pass over the data, in random order if `shuffle`: the last batch may be smaller.
    fn batches(&self, size: usize, shuffle: bool) -> impl Iterator<Item = Result<(Tensor, Tensor)>> {
        let mut order = self.indices.clone();
        if shuffle {
            let places = randperm(order.len() as i64).to_vec::<i64>();
            order = places.iter().map(|&p| self.indices[p as usize]).collect();
        }
        let cuts: Vec<Vec<usize>> = order.chunks(size).map(<[usize]>::to_vec).collect();
        cuts.into_iter().map(|cut| {
            let (mut images, mut labels) = (Vec::new(), Vec::new());
            for i in cut {
                let [image, label] = fields(self.data.get(i)?)?;
                images.push(image);
                labels.push(label);
            }
            Ok((stack(&images, 0), stack(&labels, 0)))
        })
    }
}

/// A picture made of letters.
fn draw(image: &Tensor) {
    for row in image.get(0).iter().step_by(2) {
        let line: String =
            row.to_vec::<f32>().iter().map(|&p| [' ', '.', 'o', '#'][((p + 1.0) * 1.9) as usize]).collect();
        println!("  {line}");
    }
}

fn main() -> Result<()> {
    random::seed(0);
    // Parameters are learnt from the training part; choices are made on the validation part; the test set, which is not
    // read here, tells the truth once at the end.
    let all: Vec<usize> = (0..common::digits(Split::Train)?.len()).collect();
    let (train, valid) = all.split_at(all.len() * 5 / 6);
    let part =
        |indices: &[usize]| Ok::<_, Error>(Part { data: common::digits(Split::Train)?, indices: indices.to_vec() });
    let (train, valid) = (part(train)?, part(valid)?);
    println!("{} images to train on, {} to validate", train.indices.len(), valid.indices.len());

    train.check()?;
    valid.check()?;
    println!("checked by machine: every image and label is as it should be");

    let (images, labels) = train.batches(100, true).next().expect("there is a batch")?;
    println!(
        "checked by eye: images {:?} {}, labels {:?} {}",
        images.shape(),
        images.dtype(),
        labels.shape(),
        labels.dtype()
    );
    println!("this should be a {}:", labels.get(0).item().to_i64());
    draw(&images.get(0));

    let net = sequential![Flatten::new(), Linear::new(784, 1)];
    let mut opt = SGD::new(0.001, net.parameters());
    let loss_of = |images: &Tensor, labels: &Tensor| -> Result<Tensor> {
        Ok(net.call(images)?.square_error_cost(&labels.cast(DType::Float32)).mean(()))
    };
    for epoch in 0..common::full_or_quick(3, 1) {
        for batch in train.batches(100, true) {
            let (images, labels) = batch?;
            loss_of(&images, &labels)?.backward();
            opt.step()?;
            opt.clear_grad();
        }
        let (images, labels) = valid.batches(valid.indices.len(), false).next().expect("there is a batch")?;
        println!("epoch {epoch}: validation loss {:.3}", no_grad(|| loss_of(&images, &labels))?.to_f64());
    }
    Ok(())
}
