//! Small images of one size, all in memory.

use super::ImageFn;
use crate::dataset::{Batch, Dataset, Sample, check_index};
use sampan_core::{Error, Result, Tensor};
use std::sync::Arc;

/// What is done to an image when it is read.
#[derive(Clone)]
enum Transform {
    None,
    Custom(ImageFn),
    Table(Table),
}

/// What every byte of a channel becomes.
#[derive(Clone)]
struct Table {
    channels: Arc<Vec<[f32; 256]>>,
    /// The axes of an image that comes out.
    shape: Vec<usize>,
    channels_last: bool,
}

/// Images of one size with labels, in memory: what the sets of this kind are made of. Without a transform an image is
/// uint8 with the axes height, width and channels. A clone shares the memory.
#[derive(Clone)]
pub struct ImageSet {
    name: &'static str,
    /// Channels, height, width.
    extents: [usize; 3],
    /// Image after image, channels first.
    pixels: Arc<Vec<u8>>,
    labels: Vec<u8>,
    /// Shape of one label: `[1]` in MNIST, none in CIFAR, as in Paddle.
    label_shape: &'static [usize],
    transform: Transform,
}

impl ImageSet {
    /// Checks that images and labels fit.
    pub(super) fn new(
        name: &'static str,
        extents: [usize; 3],
        pixels: Vec<u8>,
        labels: Vec<u8>,
        label_shape: &'static [usize],
    ) -> Result<ImageSet> {
        let size: usize = extents.iter().product();
        if pixels.len() != size * labels.len() {
            let error = Error::invalid(format!("{} labels need {size} bytes each", labels.len())).in_op(name);
            return Err(error.received(format!("{} bytes of images", pixels.len())));
        }
        Ok(ImageSet { name, extents, pixels: Arc::new(pixels), labels, label_shape, transform: Transform::None })
    }

    pub(super) fn take(mut self, n: usize) -> ImageSet {
        let size: usize = self.extents.iter().product();
        let n = n.min(self.labels.len());
        self.labels.truncate(n);
        if n * size < self.pixels.len() {
            Arc::make_mut(&mut self.pixels).truncate(n * size);
        }
        self
    }

    /// The classes of all images.
    pub fn labels(&self) -> Vec<i64> {
        self.labels.iter().map(|&label| label.into()).collect()
    }

    /// Changes every image by `f` when it is read.
    pub fn with_transform(mut self, f: ImageFn) -> ImageSet {
        self.transform = Transform::Custom(f);
        self
    }

    pub(super) fn normalized(self, mean: &[f32], std: &[f32]) -> Result<ImageSet> {
        let channels = self.extents[0];
        let fits = |values: &[f32]| values.len() == 1 || values.len() == channels;
        if !fits(mean) || !fits(std) || std.contains(&0.0) {
            let error = Error::invalid(format!("expected one mean and one std other than 0, or {channels} of each"));
            return Err(error.received(format!("mean {mean:?}, std {std:?}")).in_op("normalized"));
        }
        // All values there are, once.
        let table = |c: usize| {
            let (mean, std) = (mean[c % mean.len()], std[c % std.len()]);
            std::array::from_fn(|p| (p as f32 - mean) / std)
        };
        let (tables, shape) = ((0..channels).map(table).collect(), self.extents.to_vec());
        self.tabulated(tables, shape, false)
    }

    /// Gives images as float32: each byte becomes what the table of its channel says, in images of `shape`, which holds
    /// as many values as there are bytes. Whole batches are made at once.
    pub fn tabulated(mut self, tables: Vec<[f32; 256]>, shape: Vec<usize>, channels_last: bool) -> Result<ImageSet> {
        let size: usize = self.extents.iter().product();
        if tables.len() != self.extents[0] || shape.iter().product::<usize>() != size {
            let error = Error::invalid(format!("expected {} tables and a shape of {size} values", self.extents[0]));
            return Err(error.received(format!("{} tables, {shape:?}", tables.len())).in_op("tabulated"));
        }
        self.transform = Transform::Table(Table { channels: Arc::new(tables), shape, channels_last });
        Ok(self)
    }

    /// Channels, height and width of an image.
    pub fn extents(&self) -> [usize; 3] {
        self.extents
    }

    /// The bytes of an image, pixel after pixel.
    pub fn bytes(&self, index: usize) -> Result<Vec<u8>> {
        check_index(self.name, index, self.labels.len())?;
        let mut out = Vec::new();
        self.push_bytes(index, &mut out);
        Ok(out)
    }

    fn image(&self, index: usize) -> &[u8] {
        let size: usize = self.extents.iter().product();
        &self.pixels[index * size..(index + 1) * size]
    }

    /// Appends an image with channels last.
    fn push_bytes(&self, index: usize, out: &mut Vec<u8>) {
        let image = self.image(index);
        let [channels, height, width] = self.extents;
        if channels == 1 {
            return out.extend_from_slice(image);
        }
        let plane = height * width;
        out.extend((0..plane).flat_map(|p| (0..channels).map(move |c| image[c * plane + p])));
    }

    fn push_values(&self, table: &Table, index: usize, out: &mut Vec<f32>) {
        let plane = self.extents[1] * self.extents[2];
        let (image, tables) = (self.image(index), &table.channels);
        if table.channels_last && tables.len() > 1 {
            let pixel = |p| tables.iter().enumerate().map(move |(c, t)| t[image[c * plane + p] as usize]);
            return out.extend((0..plane).flat_map(pixel));
        }
        for (values, table) in image.chunks(plane.max(1)).zip(tables.iter()) {
            out.extend(values.iter().map(|&p| table[p as usize]));
        }
    }

    /// Images and labels at `indices` in one piece of memory each; `leading` is the shape in front of an image's.
    fn gather(&self, indices: &[usize], leading: &[usize]) -> Result<Vec<Tensor>> {
        let [channels, height, width] = self.extents;
        let size = indices.len() * channels * height * width;
        let images = match &self.transform {
            Transform::Table(table) => {
                let mut values = Vec::with_capacity(size);
                indices.iter().for_each(|&i| self.push_values(table, i, &mut values));
                Tensor::try_from_slice(&values, [leading, &table.shape].concat())?
            }
            _ => {
                let mut values = Vec::with_capacity(size);
                indices.iter().for_each(|&i| self.push_bytes(i, &mut values));
                Tensor::try_from_slice(&values, [leading, &[height, width, channels]].concat())?
            }
        };
        let labels: Vec<i64> = indices.iter().map(|&i| self.labels[i] as i64).collect();
        Ok(vec![images, Tensor::try_from_slice(&labels, [leading, self.label_shape].concat())?])
    }
}

impl Dataset for ImageSet {
    fn name(&self) -> &str {
        self.name
    }
    fn len(&self) -> usize {
        self.labels.len()
    }
    fn get(&self, index: usize) -> Result<Sample> {
        check_index(self.name, index, self.len())?;
        let mut sample = self.gather(&[index], &[])?;
        if let Transform::Custom(f) = &self.transform {
            sample[0] = f.apply(&sample[0])?;
        }
        Ok(sample)
    }
    fn batch(&self, indices: &[usize]) -> Option<Result<Batch>> {
        if matches!(self.transform, Transform::Custom(_)) {
            return None;
        }
        let inside = indices.iter().try_for_each(|&i| check_index(self.name, i, self.len()));
        Some(inside.and_then(|()| self.gather(indices, &[indices.len()])))
    }
}

/// The methods that all sets of this kind have.
macro_rules! image_set {
    ($name:ident) => {
        impl $name {
            /// The first `n` images only.
            pub fn take(self, n: usize) -> Self {
                $name(self.0.take(n))
            }

            /// The classes of all images, without reading the images.
            pub fn labels(&self) -> Vec<i64> {
                self.0.labels()
            }

            /// Changes every image when it is read: by one of the [`transforms`](crate::vision::transforms), or by a
            /// function `|image: &Tensor| …`. It is given uint8 values with the axes height, width and channels.
            pub fn with_transform(self, transform: impl $crate::vision::transforms::Transform + 'static) -> Self {
                $name(self.0.with_transform(std::sync::Arc::new(transform)))
            }

            /// Gives images as float32 `(x - mean) / std` with channels first; `mean` and `std` hold one value, or one
            /// for each channel. Whole batches are made at once.
            pub fn normalized(self, mean: &[f32], std: &[f32]) -> sampan_core::Result<Self> {
                Ok($name(self.0.normalized(mean, std)?))
            }
        }

        impl From<$name> for ImageSet {
            fn from(set: $name) -> ImageSet {
                set.0
            }
        }

        impl $crate::dataset::Dataset for $name {
            fn name(&self) -> &str {
                self.0.name()
            }
            fn len(&self) -> usize {
                self.0.len()
            }
            fn get(&self, index: usize) -> sampan_core::Result<$crate::dataset::Sample> {
                self.0.get(index)
            }
            fn batch(&self, indices: &[usize]) -> Option<sampan_core::Result<$crate::dataset::Batch>> {
                self.0.batch(indices)
            }
        }
    };
}
pub(super) use image_set;
