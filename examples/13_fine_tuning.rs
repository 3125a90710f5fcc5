//! 13 · Fine-tuning: what was learnt for one task helps with the next.
//!
//! A network learns the digits 0 to 4 from many images. Its body is frozen, and a new head learns 5 to 9 from very few: the
//! strokes it knows are those of all digits. The same few images from scratch do worse. This is how large networks are put
//! to new uses.

mod common;
use sampan::prelude::*;

/// Convolutions, which find strokes: 400 numbers that describe a picture.
fn body() -> Sequential {
    sequential![
        Conv2D::with(1, 8, 5, |o| o.padding(2)),
        ReLU::new(),
        MaxPool2D::new(2),
        Conv2D::new(8, 16, 5),
        ReLU::new(),
        MaxPool2D::new(2),
        Flatten::new(),
    ]
}

/// The digits from `first` to `first + 4`, numbered from zero; at most `most` of them.
fn five_digits(split: Split, first: i64, most: usize) -> Result<impl Dataset> {
    let digits = common::digits(split)?.take(12_000);
    let labels = digits.labels().into_iter().enumerate();
    let chosen = labels.filter(|(_, label)| (first..first + 5).contains(label)).map(|(i, _)| i).take(most).collect();
    Ok(Subset::new(digits, chosen)?.map(move |sample| {
        let [image, label] = fields(sample)?;
        Ok(vec![image, label - first])
    }))
}

/// Trains what is not frozen and tells the test accuracy.
fn train(name: &str, net: &Sequential, first: i64, images: usize, epochs: usize) -> Result<()> {
    let train = DataLoader::new(five_digits(Split::Train, first, images)?, 20, true)?;
    let test = DataLoader::new(five_digits(Split::Test, first, usize::MAX)?, 250, false)?;
    let mut opt = Adam::new(0.002, net.parameters());
    for _ in 0..epochs {
        common::train_epoch(net, &mut opt, &train, |scores, labels| scores.cross_entropy(labels))?;
    }
    println!("{name}: test accuracy {:.1} %", 100.0 * common::accuracy(net, &test)?);
    Ok(())
}

fn main() -> Result<()> {
    random::seed(0);
    let few = 30;
    let epochs = common::full_or_quick(30, 5);

    let first = body().push_named("head", Linear::new(400, 5));
    train("0 to 4 from many images", &first, 0, usize::MAX, common::full_or_quick(3, 1))?;

    // Everything but the head, shared with the first network, and a head that knows nothing yet.
    let trained = first.slice(..first.len() - 1);
    trained.freeze();
    let before = trained.parameters()[0].tensor().to_vec::<f32>();
    let tuned = trained.push_named("head", Linear::new(400, 5));
    let free = tuned.parameters().iter().filter(|p| p.trainable()).count();
    println!("{free} of {} parameters are trained", tuned.parameters().len());
    train(&format!("5 to 9 from {few} images, frozen body"), &tuned, 5, few, epochs)?;
    assert_eq!(before, tuned.parameters()[0].tensor().to_vec::<f32>(), "frozen is frozen");

    let scratch = body().push_named("head", Linear::new(400, 5));
    train(&format!("5 to 9 from {few} images, from scratch"), &scratch, 5, few, epochs)
}
