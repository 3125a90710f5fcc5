//! 14 · Your own pictures: a folder for each class.
//!
//! Most data lies in folders: `pets/cat/1.png`, `pets/dog/2.png`. Here the program first writes such a folder (digits as PNG
//! files), then reads it as a data set of classes, changes the pictures on the way by a list of transforms, trains, and at
//! last reads pictures without labels from a plain folder.

mod common;
use sampan::data::vision::{datasets::FolderBuilder, image};
use sampan::prelude::*;
use std::path::Path;

/// Writes the first digits of a split as `root/CLASS/NUMBER.png`.
fn write_pictures(split: Split, root: &Path, count: usize) -> Result<()> {
    let digits = Mnist::new(split)?.take(count);
    for i in 0..digits.len() {
        let [pixels, label] = fields(digits.get(i)?)?;
        let folder = root.join(format!("digit_{}", label.item().to_i64()));
        std::fs::create_dir_all(&folder)?;
        image::save(&pixels, folder.join(format!("{i}.png")))?;
    }
    Ok(())
}

/// Reads such a folder: grey pictures of 28 by 28, from -1 to 1.
fn read_pictures(root: &Path) -> Result<DatasetFolder> {
    let change = transforms::Compose::new(transforms![
        transforms::Resize::new([28, 28]),
        transforms::Grayscale::new(),
        transforms::ToTensor::new(),
        transforms::Normalize::with(|o| o.mean(0.5).std(0.5)),
    ]);
    FolderBuilder::new(root).transform(change).dataset_folder()
}

fn main() -> Result<()> {
    random::seed(0);
    let root = common::folder("14_image_folder")?;
    write_pictures(Split::Train, &root.join("train"), common::limit().unwrap_or(3000))?;
    write_pictures(Split::Test, &root.join("test"), common::limit().unwrap_or(500))?;

    let train = read_pictures(&root.join("train"))?;
    println!("{} pictures of the classes {:?}", train.len(), train.classes());
    println!("number 0 is {} of class {}", train.samples()[0].0.display(), train.samples()[0].1);
    let classes = train.classes().to_vec();
    let train = DataLoader::builder(train).batch_size(32).shuffle(true).num_workers(2).build()?;
    let test = DataLoader::new(read_pictures(&root.join("test"))?, 100, false)?;

    let net = LeNet::new();
    let mut opt = Adam::new(0.002, net.parameters());
    for epoch in 0..common::full_or_quick(4, 1) {
        let loss = common::train_epoch(&net, &mut opt, &train, |scores, labels| scores.cross_entropy(labels))?;
        println!("epoch {epoch}: loss {loss:.4}, test accuracy {:.1} %", 100.0 * common::accuracy(&net, &test)?);
    }

    // Pictures without labels, as they come.
    let unknown = ImageFolder::new(root.join("test"))?;
    for i in (0..unknown.len()).step_by(unknown.len().div_ceil(5).max(1)) {
        let [picture] = fields(unknown.get(i)?)?;
        let grey = picture.cast(DType::Float32).mean(-1) / 127.5 - 1.0;
        let answer = no_grad(|| net.call(&grey.reshape([1, 1, 28, 28])))?.argmax(-1).item().to_i64();
        println!("{} is a {}", unknown.samples()[i].display(), classes[answer as usize]);
    }
    Ok(())
}
