//! The MNIST digits, bundled whole, and other data sets in the idx format.

use super::image_set::image_set;
use super::{ImageSet, Remote, Split, no_valid_part};
use crate::files::read_file;
use flate2::read::GzDecoder;
use sampan_core::{Error, Result};
use std::io::Read;
use std::path::Path;

static TRAIN_IMAGES: &[u8] = include_bytes!("../../../../../data/mnist/train-images-idx3-ubyte.gz");
static TRAIN_LABELS: &[u8] = include_bytes!("../../../../../data/mnist/train-labels-idx1-ubyte.gz");
static TEST_IMAGES: &[u8] = include_bytes!("../../../../../data/mnist/t10k-images-idx3-ubyte.gz");
static TEST_LABELS: &[u8] = include_bytes!("../../../../../data/mnist/t10k-labels-idx1-ubyte.gz");

/// Handwritten digits: images of 28 by 28 with labels from 0 to 9 of shape `[1]`.
///
/// ```
/// # use sampan_data::{Dataset, Mnist, Split};
/// let digits = Mnist::new(Split::Test)?;
/// assert_eq!(digits.len(), 10_000);
/// assert_eq!(digits.get(0)?[0].shape(), [28, 28, 1]);
/// assert_eq!(digits.labels()[..3], [7, 2, 1]);
/// let digits = digits.normalized(&[127.5], &[127.5])?;
/// assert_eq!(digits.batch(&[0, 1]).unwrap()?[0].shape(), [2, 1, 28, 28]);
/// # Ok::<(), sampan_core::Error>(())
/// ```
pub struct Mnist(ImageSet);
image_set!(Mnist);

impl Mnist {
    /// The bundled set: 60,000 images to train, 10,000 to test.
    pub fn new(split: Split) -> Result<Mnist> {
        match split {
            Split::Train => Mnist::parse(TRAIN_IMAGES, TRAIN_LABELS),
            Split::Test => Mnist::parse(TEST_IMAGES, TEST_LABELS),
            Split::Valid => Err(no_valid_part("Mnist")),
        }
    }

    /// Two files in the idx format, compressed with gzip or not.
    pub fn open(image_path: impl AsRef<Path>, label_path: impl AsRef<Path>) -> Result<Mnist> {
        open("Mnist", image_path.as_ref(), label_path.as_ref()).map(Mnist)
    }

    /// The contents of an image file and a label file. Every length is checked before it is believed.
    pub fn parse(images: &[u8], labels: &[u8]) -> Result<Mnist> {
        parse("Mnist", images, labels).map(Mnist)
    }
}

/// Pieces of clothing: images of 28 by 28 with labels from 0 to 9 of shape `[1]`.
pub struct FashionMnist(ImageSet);
image_set!(FashionMnist);

macro_rules! fashion {
    ($name:literal, $md5:literal) => {
        Remote {
            folder: "fashion-mnist",
            url: concat!("https://dataset.bj.bcebos.com/fashion_mnist/", $name),
            md5: $md5,
        }
    };
}

impl FashionMnist {
    /// Downloads the set, unless it lies in the cache.
    pub fn new(split: Split) -> Result<FashionMnist> {
        FashionMnist::new_in(None, split)
    }

    /// The same with another folder for the files.
    pub fn new_in(root: Option<&Path>, split: Split) -> Result<FashionMnist> {
        let (images, labels) = match split {
            Split::Train => (
                fashion!("train-images-idx3-ubyte.gz", "8d4fb7e6c68d591d4c3dfef9ec88bf0d"),
                fashion!("train-labels-idx1-ubyte.gz", "25c81989df183df01b3e8a0aad5dffbe"),
            ),
            Split::Test => (
                fashion!("t10k-images-idx3-ubyte.gz", "bef4ecab320f06d8554ea6380940ec79"),
                fashion!("t10k-labels-idx1-ubyte.gz", "bb300cfdad3c16e7a12a480ee83cd310"),
            ),
            Split::Valid => return Err(no_valid_part("FashionMnist")),
        };
        FashionMnist::open(images.fetch(root)?, labels.fetch(root)?)
    }

    /// Two files in the idx format, compressed with gzip or not.
    pub fn open(image_path: impl AsRef<Path>, label_path: impl AsRef<Path>) -> Result<FashionMnist> {
        open("FashionMnist", image_path.as_ref(), label_path.as_ref()).map(FashionMnist)
    }
}

fn open(name: &'static str, images: &Path, labels: &Path) -> Result<ImageSet> {
    parse(name, &read_file(images)?, &read_file(labels)?)
        .map_err(|e| e.in_layer(format!("{} and {}", images.display(), labels.display())))
}

fn parse(name: &'static str, images: &[u8], labels: &[u8]) -> Result<ImageSet> {
    let (images, shape) = idx(images, 3).map_err(|e| e.in_layer("images"))?;
    let (labels, count) = idx(labels, 1).map_err(|e| e.in_layer("labels"))?;
    if shape[0] != count[0] {
        return Err(Error::invalid(format!("{} images but {} labels", shape[0], count[0])).in_op(name));
    }
    ImageSet::new(name, [1, shape[1], shape[2]], images, labels, &[1])
}

/// The bytes and extents of an idx file of unsigned bytes with `rank` axes.
fn idx(raw: &[u8], rank: usize) -> Result<(Vec<u8>, Vec<usize>)> {
    let bad = |why: String| Error::invalid(format!("not an idx file of bytes: {why}"));
    let mut bytes = Vec::new();
    if raw.starts_with(&[0x1f, 0x8b]) {
        // Enough for any set of this kind; a hostile file stops there.
        GzDecoder::new(raw).take(1 << 30).read_to_end(&mut bytes).map_err(|e| bad(format!("gzip: {e}")))?;
    } else {
        bytes.extend_from_slice(raw);
    }
    let header = 4 + 4 * rank;
    if bytes.len() < header {
        return Err(bad(format!("{} bytes are too few for a header", bytes.len())));
    }
    if bytes[..4] != [0, 0, 8, rank as u8] {
        return Err(bad(format!("it starts with {:?}, expected {:?}", &bytes[..4], [0, 0, 8, rank as u8])));
    }
    let extents: Vec<usize> =
        bytes[4..header].chunks_exact(4).map(|b| u32::from_be_bytes([b[0], b[1], b[2], b[3]]) as usize).collect();
    let wanted = extents.iter().try_fold(1usize, |n, &d| n.checked_mul(d));
    let data = bytes.split_off(header);
    if wanted != Some(data.len()) {
        return Err(bad(format!("extents {extents:?} do not fit {} bytes of data", data.len())));
    }
    Ok((data, extents))
}
