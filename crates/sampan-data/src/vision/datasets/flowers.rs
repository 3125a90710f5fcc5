//! Photographs of flowers.

use super::{ImageFn, Remote, Split, mat, tar};
use crate::dataset::{Dataset, Sample, check_index};
use crate::files::{file_error, read_file};
use crate::vision::image;
use crate::vision::transforms::Transform;
use sampan_core::{Error, Result, Tensor};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Photographs of 102 kinds of flowers in different sizes, with labels from 1 to 102 of shape `[1]`. As in Paddle, the
/// larger part that the authors named the test part is the one to train with.
///
/// ```no_run
/// # use sampan_data::{Dataset, Flowers, Split};
/// println!("{} images to train with", Flowers::new(Split::Train)?.len());
/// # Ok::<(), sampan_core::Error>(())
/// ```
pub struct Flowers {
    folder: PathBuf,
    labels: Vec<i64>,
    indexes: Vec<usize>,
    transform: Option<ImageFn>,
}

impl Flowers {
    /// Downloads the set, unless it lies in the cache.
    pub fn new(split: Split) -> Result<Flowers> {
        Flowers::new_in(None, split)
    }

    /// The same with another folder for the files.
    pub fn new_in(root: Option<&Path>, split: Split) -> Result<Flowers> {
        let fetch = |url, md5| Remote { folder: "flowers", url, md5 }.fetch(root);
        Flowers::open(
            fetch("http://paddlemodels.bj.bcebos.com/flowers/102flowers.tgz", "52808999861908f626f3c1f4e79d11fa")?,
            fetch("http://paddlemodels.bj.bcebos.com/flowers/imagelabels.mat", "e0620be6f572b9609742df49c70aed4d")?,
            fetch("http://paddlemodels.bj.bcebos.com/flowers/setid.mat", "a5357ecc9cb78c4bef273ce3793fc85c")?,
            split,
        )
    }

    /// The archive of images, the labels and the parts. The archive is unpacked beside itself the first time.
    pub fn open(
        data_file: impl AsRef<Path>,
        label_file: impl AsRef<Path>,
        setid_file: impl AsRef<Path>,
        split: Split,
    ) -> Result<Flowers> {
        let part = match split {
            Split::Train => "tstid",
            Split::Test => "trnid",
            Split::Valid => "valid",
        };
        let labels = column(label_file.as_ref(), "labels")?;
        let indexes = column(setid_file.as_ref(), part)?;
        if let Some(i) = indexes.iter().find(|&&i| i < 1 || i as usize > labels.len()) {
            let error = Error::invalid(format!("{part} names image {i}, there are labels for 1 to {}", labels.len()));
            return Err(error.in_op("Flowers"));
        }
        let folder = unpack(data_file.as_ref())?;
        Ok(Flowers { folder, labels, indexes: indexes.iter().map(|&i| i as usize).collect(), transform: None })
    }

    /// The files and the labels of this part, in order.
    pub fn files(&self) -> impl Iterator<Item = (PathBuf, i64)> {
        self.indexes.iter().map(|&number| (self.file(number), self.labels[number - 1]))
    }

    fn file(&self, number: usize) -> PathBuf {
        self.folder.join(format!("jpg/image_{number:05}.jpg"))
    }

    /// Changes every image by `f` when it is read.
    pub fn with_transform(mut self, transform: impl Transform + 'static) -> Flowers {
        self.transform = Some(Arc::new(transform));
        self
    }
}

/// One array of whole numbers of a MATLAB file.
fn column(path: &Path, name: &str) -> Result<Vec<i64>> {
    let arrays = mat::read(&read_file(path)?).map_err(|e| e.in_layer(path.display().to_string()))?;
    let values = arrays.get(name).ok_or_else(|| {
        let names: Vec<_> = arrays.keys().collect();
        Error::invalid(format!("{} has no array {name:?}", path.display())).received(format!("{names:?}"))
    })?;
    Ok(values.iter().map(|&v| v as i64).collect())
}

/// The folder with the images, unpacked under another name first so that it is whole or not there.
fn unpack(archive: &Path) -> Result<PathBuf> {
    let folder = archive.with_extension("");
    if folder == archive {
        return Err(Error::invalid(format!("{} needs an extension, such as .tgz", archive.display())));
    }
    if folder.join("jpg").is_dir() {
        return Ok(folder);
    }
    let partial = folder.with_extension("partial");
    let lock_file = folder.with_extension("lock");
    let lock = File::create(&lock_file).map_err(|e| file_error(&lock_file, e))?;
    lock.lock().map_err(|e| file_error(&lock_file, e))?;
    if folder.join("jpg").is_dir() {
        return Ok(folder);
    }
    let inner = partial.join("jpg");
    fs::create_dir_all(&inner).map_err(|e| file_error(&inner, e))?;
    let mut count = 0;
    tar::for_each_file(archive, |name, reader| {
        // Only the last part of a name is used: an archive cannot write elsewhere.
        let base = name.rsplit(['/', '\\']).next().unwrap_or_default();
        if base.ends_with(".jpg") {
            let path = inner.join(base);
            fs::write(&path, tar::read_all(archive, reader)?).map_err(|e| file_error(&path, e))?;
            count += 1;
        }
        Ok(())
    })?;
    if count == 0 {
        return Err(Error::invalid(format!("{} holds no .jpg files", archive.display())).in_op("Flowers"));
    }
    fs::rename(&partial, &folder).map_err(|e| file_error(&folder, e))?;
    Ok(folder)
}

impl Dataset for Flowers {
    fn len(&self) -> usize {
        self.indexes.len()
    }
    fn get(&self, index: usize) -> Result<Sample> {
        check_index(self.name(), index, self.len())?;
        let number = self.indexes[index];
        let mut image = image::load(self.file(number))?;
        if let Some(f) = &self.transform {
            image = f.apply(&image)?;
        }
        Ok(vec![image, Tensor::try_from_slice(&[self.labels[number - 1]], [1])?])
    }
}
