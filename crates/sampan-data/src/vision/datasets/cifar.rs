//! Small colour photographs.

use super::image_set::image_set;
use super::{ImageSet, Remote, Split, no_valid_part, tar};
use sampan_core::{DType, Error, Result};
use sampan_io::{Dict, Object, pickle};
use std::path::Path;

const EXTENTS: [usize; 3] = [3, 32, 32];
const SIZE: usize = 3 * 32 * 32;

/// Photographs of 32 by 32 in 10 classes: 50,000 to train and 10,000 to test. A label has no axes.
///
/// ```no_run
/// # use sampan_data::{Cifar10, Dataset, Split};
/// let train = Cifar10::new(Split::Train)?.normalized(&[125.3, 123.0, 113.9], &[63.0, 62.1, 66.7])?;
/// assert_eq!(train.batch(&[0, 1]).unwrap()?[0].shape(), [2, 3, 32, 32]);
/// # Ok::<(), sampan_core::Error>(())
/// ```
pub struct Cifar10(ImageSet);
image_set!(Cifar10);

/// Photographs of 32 by 32 in 100 classes: 50,000 to train and 10,000 to test. A label has no axes.
pub struct Cifar100(ImageSet);
image_set!(Cifar100);

impl Cifar10 {
    /// Downloads the set, unless it lies in the cache.
    pub fn new(split: Split) -> Result<Cifar10> {
        Cifar10::new_in(None, split)
    }

    /// The same with another folder for the file.
    pub fn new_in(root: Option<&Path>, split: Split) -> Result<Cifar10> {
        let remote = Remote {
            folder: "cifar",
            url: "https://dataset.bj.bcebos.com/cifar/cifar-10-python.tar.gz",
            md5: "c58f30108f718f92721af3b95e74349a",
        };
        Cifar10::open(remote.fetch(root)?, split)
    }

    /// The archive of the Python version or of the binary version.
    pub fn open(data_file: impl AsRef<Path>, split: Split) -> Result<Cifar10> {
        let prefix = match split {
            Split::Train => "data_batch",
            Split::Test => "test_batch",
            Split::Valid => return Err(no_valid_part("Cifar10")),
        };
        load("Cifar10", data_file.as_ref(), 1, |name| name.starts_with(prefix)).map(Cifar10)
    }
}

impl Cifar100 {
    /// Downloads the set, unless it lies in the cache.
    pub fn new(split: Split) -> Result<Cifar100> {
        Cifar100::new_in(None, split)
    }

    /// The same with another folder for the file.
    pub fn new_in(root: Option<&Path>, split: Split) -> Result<Cifar100> {
        let remote = Remote {
            folder: "cifar",
            url: "https://dataset.bj.bcebos.com/cifar/cifar-100-python.tar.gz",
            md5: "eb9058c3a382ffc7106e4002c42a8d85",
        };
        Cifar100::open(remote.fetch(root)?, split)
    }

    /// The archive of the Python version or of the binary version.
    pub fn open(data_file: impl AsRef<Path>, split: Split) -> Result<Cifar100> {
        let wanted = match split {
            Split::Train => "train",
            Split::Test => "test",
            Split::Valid => return Err(no_valid_part("Cifar100")),
        };
        load("Cifar100", data_file.as_ref(), 2, |name| name.strip_suffix(".bin").unwrap_or(name) == wanted)
            .map(Cifar100)
    }
}

/// Reads the files that are `wanted` by their names. In the binary version `labels` bytes stand before each image; the
/// last of them counts.
fn load(set: &'static str, path: &Path, labels: usize, wanted: impl Fn(&str) -> bool) -> Result<ImageSet> {
    let mut parts = Vec::new();
    tar::for_each_file(path, |name, reader| {
        let base = name.rsplit('/').next().unwrap_or(name);
        if wanted(base) {
            let bytes = tar::read_all(path, reader)?;
            let part = if base.ends_with(".bin") { binary(&bytes, labels) } else { pickled(&bytes) };
            parts.push((name.to_string(), part.map_err(|e| e.in_layer(format!("{}/{name}", path.display())))?));
        }
        Ok(())
    })?;
    if parts.is_empty() {
        let error = Error::invalid(format!("{} holds no batches of this part of the set", path.display())).in_op(set);
        return Err(error.hint("expected the archive of the Python version or of the binary version"));
    }
    parts.sort_by(|a, b| a.0.cmp(&b.0));
    let (mut pixels, mut labels) = (Vec::new(), Vec::new());
    for (_, (p, l)) in parts {
        pixels.extend(p);
        labels.extend(l);
    }
    ImageSet::new(set, EXTENTS, pixels, labels, &[])
}

/// Pixels and labels of one file of CIFAR-10 or CIFAR-100 (the fine labels) in the Python version.
fn pickled(bytes: &[u8]) -> Result<(Vec<u8>, Vec<u8>)> {
    let bad = |why: &str| Error::invalid(format!("not a batch of CIFAR images: {why}"));
    let object = pickle::from_bytes(bytes)?;
    let batch: &Dict = object.as_dict().ok_or_else(|| bad("expected a dict"))?;
    let pixels = batch.get("data").and_then(Object::as_tensor).filter(|t| t.dtype() == DType::UInt8);
    let pixels = pixels.ok_or_else(|| bad("'data' is no array of bytes"))?.try_to_vec::<u8>()?;
    let labels = batch.get("labels").or_else(|| batch.get("fine_labels")).and_then(Object::as_slice);
    let labels = labels.ok_or_else(|| bad("there is no list 'labels' or 'fine_labels'"))?;
    let label = |o: &Object| o.as_int().and_then(|i| u8::try_from(i).ok());
    let labels =
        labels.iter().map(label).collect::<Option<Vec<u8>>>().ok_or_else(|| bad("a label is no small number"))?;
    if pixels.len() != labels.len() * SIZE {
        return Err(bad(&format!("{} bytes of pixels for {} labels", pixels.len(), labels.len())));
    }
    Ok((pixels, labels))
}

fn binary(bytes: &[u8], labels: usize) -> Result<(Vec<u8>, Vec<u8>)> {
    let record = labels + SIZE;
    if !bytes.len().is_multiple_of(record) {
        let error = Error::invalid(format!("records have {record} bytes each"));
        return Err(error.received(format!("{} bytes", bytes.len())));
    }
    let pixels = bytes.chunks_exact(record).flat_map(|r| &r[labels..]).copied().collect();
    Ok((pixels, bytes.chunks_exact(record).map(|r| r[labels - 1]).collect()))
}
