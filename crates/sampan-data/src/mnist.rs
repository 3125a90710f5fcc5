//! The MNIST digits, bundled whole, and any other data set in the idx format.

use flate2::read::GzDecoder;
use sampan_core::error::Kind;
use sampan_core::{Error, Result, Tensor};
use std::io::Read;
use std::path::Path;

const TRAIN_IMAGES: &[u8] = include_bytes!("../../../data/mnist/train-images-idx3-ubyte.gz");
const TRAIN_LABELS: &[u8] = include_bytes!("../../../data/mnist/train-labels-idx1-ubyte.gz");
const TEST_IMAGES: &[u8] = include_bytes!("../../../data/mnist/t10k-images-idx3-ubyte.gz");
const TEST_LABELS: &[u8] = include_bytes!("../../../data/mnist/t10k-labels-idx1-ubyte.gz");

/// Which part of the set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Split {
    /// The 60,000 images to learn from.
    Train,
    /// The 10,000 images to judge by.
    Test,
}

/// Images of 28 by 28 bytes with labels from 0 to 9.
pub struct Mnist {
    images: Vec<u8>,
    labels: Vec<u8>,
    rows: usize,
    cols: usize,
}

impl Mnist {
    /// The bundled set.
    pub fn bundled(split: Split) -> Result<Mnist> {
        match split {
            Split::Train => Mnist::parse(TRAIN_IMAGES, TRAIN_LABELS),
            Split::Test => Mnist::parse(TEST_IMAGES, TEST_LABELS),
        }
    }

    /// Two files in the idx format, compressed with gzip or not.
    pub fn open(images: impl AsRef<Path>, labels: impl AsRef<Path>) -> Result<Mnist> {
        let read = |path: &Path| {
            std::fs::read(path).map_err(|e| Error::new(Kind::External, format!("{}: {e}", path.display())))
        };
        Mnist::parse(&read(images.as_ref())?, &read(labels.as_ref())?)
    }

    /// The contents of an image file and a label file. Every length is checked before it is believed.
    pub fn parse(images: &[u8], labels: &[u8]) -> Result<Mnist> {
        let (images, shape) = idx(images, 3)?;
        let (labels, count) = idx(labels, 1)?;
        if shape[0] != count[0] {
            return Err(Error::invalid(format!("{} images but {} labels", shape[0], count[0])));
        }
        Ok(Mnist { images, labels, rows: shape[1], cols: shape[2] })
    }

    /// Number of images.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Has it no images?
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// The first `n` images only.
    pub fn take(mut self, n: usize) -> Mnist {
        let n = n.min(self.len());
        self.labels.truncate(n);
        self.images.truncate(n * self.rows * self.cols);
        self
    }

    /// The images at `indices` as `[n, 1, rows, cols]` scaled to [-1, 1], and their labels as int64 `[n]`.
    pub fn batch(&self, indices: &[usize]) -> (Tensor, Tensor) {
        let size = self.rows * self.cols;
        let mut pixels = Vec::with_capacity(indices.len() * size);
        for &i in indices {
            let image = &self.images[i * size..(i + 1) * size];
            pixels.extend(image.iter().map(|&p| (p as f32 - 127.5) / 127.5));
        }
        let labels: Vec<i64> = indices.iter().map(|&i| self.labels[i] as i64).collect();
        (Tensor::from_vec(pixels, [indices.len(), 1, self.rows, self.cols]), Tensor::from_vec(labels, [indices.len()]))
    }
}

/// The bytes and extents of an idx file of unsigned bytes with `rank` axes.
fn idx(raw: &[u8], rank: usize) -> Result<(Vec<u8>, Vec<usize>)> {
    let bad = |why: String| Error::invalid(format!("not an idx file of bytes: {why}"));
    let mut bytes = Vec::new();
    if raw.starts_with(&[0x1f, 0x8b]) {
        GzDecoder::new(raw).read_to_end(&mut bytes).map_err(|e| bad(format!("gzip: {e}")))?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bundled_set_is_whole() {
        let train = Mnist::bundled(Split::Train).unwrap();
        assert_eq!(train.len(), 60_000);
        let (images, labels) = train.batch(&[0, 1]);
        assert_eq!(images.shape(), [2, 1, 28, 28]);
        assert_eq!(labels.to_vec::<i64>(), [5, 0]);
        assert_eq!(Mnist::bundled(Split::Test).unwrap().len(), 10_000);
    }

    #[test]
    fn broken_files_are_refused() {
        for bytes in
            [&b""[..], &[0, 0, 8, 3, 0, 0], &[0, 0, 8, 3, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255]]
        {
            assert!(Mnist::parse(bytes, bytes).is_err());
        }
        assert!(Mnist::parse(&TRAIN_IMAGES[..1000], TRAIN_LABELS).is_err());
    }
}
