//! A part of the picture.

use super::args::{reasonable, square_or_pair};
use super::{Image, Key, Keys, Numbers, Transform, draw, pad};
use sampan_core::{Error, Index, Ints, Result, Tensor, ensure};
use sampan_kernels::match_dtype;
use sampan_macros::{class, function};

/// The part of `height` by `width` pixels whose first pixel is at `(top, left)`. What lies beyond the picture is 0; a part
/// of an array ([`Image::opencv`]) that begins inside ends where the array does, as in NumPy.
///
/// ```
/// use sampan_core::Tensor;
/// use sampan_data::vision::transforms::crop;
/// let x = Tensor::new([[1u8, 2, 3], [4, 5, 6]]);
/// assert_eq!(crop(&x, 0, 1, 2, 2)?.to_vec::<u8>(), [2, 3, 5, 6]);
/// assert_eq!(crop(&x, -1, 2, 2, 2)?.to_vec::<u8>(), [0, 0, 3, 0]);
/// # Ok::<(), sampan_core::Error>(())
/// ```
#[function(module = "vision.transforms")]
pub fn crop(img: impl Into<Image>, top: i64, left: i64, height: i64, width: i64) -> Result<Tensor> {
    let image = img.into();
    (|| {
        ensure!(height > 0 && width > 0, "height and width must be positive, got {height} and {width}");
        reasonable(height as f64, width as f64)?;
        let (mut bottom, mut right) = (top.saturating_add(height), left.saturating_add(width));
        let [h, w, _] = image.extents()?.map(|n| n as i64);
        if image.is_opencv() && (0..h).contains(&top) && (0..w).contains(&left) {
            (bottom, right) = (bottom.min(h), right.min(w));
        }
        if top >= 0 && left >= 0 && bottom <= h && right <= w {
            let (rows, columns) = (Index::from(top..bottom), Index::from(left..right));
            let mut index = vec![Index::Ellipsis, rows, columns];
            if image.axes() == (-3, -2) {
                index.push(Index::ALL);
            }
            return Ok(image.tensor().detach().try_get(index)?.contiguous());
        }
        image.map(|t| {
            match_dtype!(t.dtype(), T => {
                let (data, c) = (t.data::<T>(), t.shape()[2] as i64);
                let mut out = vec![T::default(); (height * width * c) as usize];
                let (first, last) = (left.max(0), right.min(w));
                for y in top.max(0)..bottom.min(h) {
                    if first < last {
                        let from = ((y * w + first) * c) as usize..((y * w + last) * c) as usize;
                        let to = (((y - top) * width + first - left) * c) as usize;
                        out[to..to + from.len()].copy_from_slice(&data.slice()[from]);
                    }
                }
                Tensor::try_from_slice(&out, [height as usize, width as usize, c as usize])
            })
        })
    })()
    .map_err(|e| e.in_op("crop"))
}

/// The middle part: `output_size` is `(height, width)` or one number for both. Where the picture is smaller, 0 stands
/// around it.
///
/// ```
/// use sampan_core::Tensor;
/// use sampan_data::vision::transforms::center_crop;
/// let x = Tensor::new([[1u8, 2, 3], [4, 5, 6]]);
/// assert_eq!(center_crop(&x, [2, 1])?.to_vec::<u8>(), [2, 5]);
/// # Ok::<(), sampan_core::Error>(())
/// ```
#[function(module = "vision.transforms")]
pub fn center_crop(img: impl Into<Image>, output_size: impl Into<Ints>) -> Result<Tensor> {
    let image = img.into();
    (|| {
        let (height, width) = square_or_pair(&output_size.into().0, "output_size")?;
        let [h, w, _] = image.extents()?;
        let start = |all: usize, part: usize| ((all as f64 - part as f64) / 2.0).round_ties_even() as i64;
        crop(&image, start(h, height), start(w, width), height as i64, width as i64)
    })()
    .map_err(|e: Error| e.in_op("center_crop"))
}

/// The middle part.
#[derive(Clone, Debug)]
pub struct CenterCrop {
    size: [i64; 2],
    keys: Keys,
}

#[class(module = "vision.transforms", object = super::object)]
impl CenterCrop {
    /// The middle part: `size` is `(height, width)` or one number for both. See [`center_crop`].
    ///
    /// ```
    /// use sampan_core::Tensor;
    /// use sampan_data::vision::transforms::{CenterCrop, Transform};
    /// assert_eq!(CenterCrop::new(2).apply(&Tensor::from_vec(vec![0u8; 75], [5, 5, 3]))?.shape(), [2, 2, 3]);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    fn build(size: &[i64], #[opt(None)] keys: Option<Keys>) -> Result<CenterCrop> {
        let (h, w) = square_or_pair(size, "size")?;
        Ok(CenterCrop { size: [h as i64, w as i64], keys: Keys::or_image(keys) })
    }
}

impl Transform for CenterCrop {
    fn apply_image(&self, image: &Image) -> Result<Tensor> {
        center_crop(image, self.size)
    }
    fn keys(&self) -> &[Key] {
        &self.keys
    }
}

/// A part at a random place.
#[derive(Clone, Debug)]
pub struct RandomCrop {
    size: (usize, usize),
    padding: Option<Vec<i64>>,
    pad_if_needed: bool,
    fill: Numbers,
    padding_mode: String,
    keys: Keys,
}

#[class(module = "vision.transforms", object = super::object)]
impl RandomCrop {
    /// A part of `size` at a random place, after [`pad`] by `padding`. With `pad_if_needed` a smaller picture is first
    /// padded on both sides by what is missing; without, it is an error.
    ///
    /// ```
    /// use sampan_core::Tensor;
    /// use sampan_data::vision::transforms::{RandomCrop, Transform};
    /// let x = Tensor::from_vec(vec![0u8; 32 * 32 * 3], [32, 32, 3]);
    /// assert_eq!(RandomCrop::with(32, |o| o.padding(4)).apply(&x)?.shape(), [32, 32, 3]);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    fn build(
        size: &[i64],
        #[opt(None)] padding: Option<&[i64]>,
        #[opt(false)] pad_if_needed: bool,
        #[opt(0)] fill: Numbers,
        #[opt("constant")] padding_mode: &str,
        #[opt(None)] keys: Option<Keys>,
    ) -> Result<RandomCrop> {
        let size = square_or_pair(size, "size")?;
        if let Some(padding) = padding {
            pad::sides(padding)?;
        }
        pad::Mode::parse(padding_mode)?;
        Ok(RandomCrop {
            size,
            padding: padding.map(<[i64]>::to_vec),
            pad_if_needed,
            fill,
            padding_mode: padding_mode.into(),
            keys: Keys::or_image(keys),
        })
    }
}

impl Transform for RandomCrop {
    fn apply_image(&self, image: &Image) -> Result<Tensor> {
        let mut image = image.clone();
        let widen = |image: &Image, by: &[i64]| {
            pad::pad(image, by, &self.fill, &self.padding_mode)
                .map(|t| image.with(t))
                .map_err(|e| e.in_op("RandomCrop"))
        };
        if let Some(padding) = &self.padding {
            image = widen(&image, padding)?;
        }
        let (height, width) = self.size;
        let [h, w, _] = image.extents().map_err(|e| e.in_op("RandomCrop"))?;
        if self.pad_if_needed && w < width {
            image = widen(&image, &[(width - w) as i64, 0])?;
        }
        if self.pad_if_needed && h < height {
            image = widen(&image, &[0, (height - h) as i64])?;
        }
        let [h, w, _] = image.extents()?;
        if h < height || w < width {
            return Err(Error::invalid(format!("a part of {height} by {width} does not fit a picture of {h} by {w}"))
                .hint("set pad_if_needed, or resize first")
                .in_op("RandomCrop"));
        }
        let (mut top, mut left) = (0, 0);
        if (h, w) != (height, width) {
            (top, left) = (draw::integer(0, h - height), draw::integer(0, w - width));
        }
        crop(&image, top as i64, left as i64, height as i64, width as i64)
    }
    fn keys(&self) -> &[Key] {
        &self.keys
    }
}
