//! Photographs with a class for every pixel.

use super::{ImageFn, Remote, Split, tar};
use crate::dataset::{Dataset, Sample, check_index};
use crate::vision::image::{decode, decode_labels};
use crate::vision::transforms::Transform;
use sampan_core::error::Kind;
use sampan_core::{Error, Result};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Pascal VOC 2012 segmentation: images in different sizes, and for each a uint8 tensor of height and width with the
/// class of every pixel (255 at borders). Images are read from the archive one by one. As in Paddle, `Train` is the
/// authors' `trainval` part and `Test` their `train` part.
///
/// ```no_run
/// # use sampan_data::{Dataset, Split, Voc2012};
/// let sample = Voc2012::new(Split::Valid)?.get(0)?;
/// assert_eq!(sample[0].shape()[..2], sample[1].shape()[..]);
/// # Ok::<(), sampan_core::Error>(())
/// ```
pub struct Voc2012 {
    archive: PathBuf,
    /// Place and size of the image and of the labels.
    samples: Vec<[(u64, u64); 2]>,
    transform: Option<ImageFn>,
}

impl Voc2012 {
    /// Downloads the set, unless it lies in the cache.
    pub fn new(split: Split) -> Result<Voc2012> {
        Voc2012::new_in(None, split)
    }

    /// The same with another folder for the file.
    pub fn new_in(root: Option<&Path>, split: Split) -> Result<Voc2012> {
        let remote = Remote {
            folder: "voc2012",
            url: "https://dataset.bj.bcebos.com/voc/VOCtrainval_11-May-2012.tar",
            md5: "6cd6e144f989b92b3379bac3b3de84fd",
        };
        Voc2012::open(remote.fetch(root)?, split)
    }

    /// The archive.
    pub fn open(data_file: impl AsRef<Path>, split: Split) -> Result<Voc2012> {
        let archive = data_file.as_ref().to_path_buf();
        let part = match split {
            Split::Train => "trainval",
            Split::Test => "train",
            Split::Valid => "val",
        };
        let places: HashMap<String, (u64, u64)> =
            tar::table_of_contents(&archive)?.into_iter().map(|(name, start, size)| (name, (start, size))).collect();
        let find = |name: String| {
            let name = format!("VOCdevkit/VOC2012/{name}");
            places.get(&name).copied().ok_or_else(|| {
                Error::new(Kind::NotFound, format!("{} has no file {name}", archive.display())).in_op("Voc2012")
            })
        };
        let (start, size) = find(format!("ImageSets/Segmentation/{part}.txt"))?;
        let list = tar::read_at(&archive, start, size)?;
        let list = String::from_utf8_lossy(&list);
        let samples = list
            .lines()
            .map(str::trim)
            .filter(|name| !name.is_empty())
            .map(|name| Ok([find(format!("JPEGImages/{name}.jpg"))?, find(format!("SegmentationClass/{name}.png"))?]))
            .collect::<Result<_>>()?;
        Ok(Voc2012 { archive, samples, transform: None })
    }

    /// Changes every image by `f` when it is read; the classes stay as they are.
    pub fn with_transform(mut self, transform: impl Transform + 'static) -> Voc2012 {
        self.transform = Some(Arc::new(transform));
        self
    }
}

impl Dataset for Voc2012 {
    fn len(&self) -> usize {
        self.samples.len()
    }
    fn get(&self, index: usize) -> Result<Sample> {
        check_index(self.name(), index, self.len())?;
        let [image, labels] = self.samples[index].map(|(start, size)| tar::read_at(&self.archive, start, size));
        let mut image = decode(&image?)?;
        if let Some(f) = &self.transform {
            image = f.apply(&image)?;
        }
        Ok(vec![image, decode_labels(&labels?)?])
    }
}
