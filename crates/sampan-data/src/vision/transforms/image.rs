//! A picture: a tensor and the order of its axes.

use sampan_core::ops::joining::try_stack;
use sampan_core::value::Arg;
use sampan_core::{DType, Device, Error, Result, Tensor, Value, bail};

/// Where the channels stand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DataFormat {
    /// Rows, columns, channels: what decoding gives.
    Hwc,
    /// Channels, rows, columns: what a network takes.
    Chw,
}

impl DataFormat {
    /// From `"HWC"` or `"CHW"`.
    pub(super) fn parse(word: &str) -> Result<DataFormat> {
        match word.to_ascii_uppercase().as_str() {
            "HWC" => Ok(DataFormat::Hwc),
            "CHW" => Ok(DataFormat::Chw),
            _ => bail!("data_format must be 'CHW' or 'HWC', got {word:?}"),
        }
    }
}

/// Shape and dtype, for errors.
pub(super) fn describe(tensor: &Tensor) -> String {
    format!("{:?} {}", tensor.shape(), tensor.dtype())
}

/// A picture: `[H, W]`, `[H, W, C]` or `[C, H, W]`, or several of one size with an axis in front.
///
/// A tensor that is given where an image is wanted is read like this: 1, 3 or 4 as the last extent but not as the first
/// means `[H, W, C]`, as the first but not as the last means `[C, H, W]`; where that decides nothing, bytes are
/// `[H, W, C]`, as decoding gives them, and all others `[C, H, W]`, as [`to_tensor`](super::to_tensor) gives them. Where
/// this is not what you mean, say it with [`Image::hwc`] or [`Image::chw`].
///
/// ```
/// use sampan_core::Tensor;
/// use sampan_data::vision::transforms::{hflip, Image};
/// let x = Tensor::new([[[1u8, 2, 3], [4, 5, 6]]]);
/// assert_eq!(hflip(&x)?.to_vec::<u8>(), [4, 5, 6, 1, 2, 3]);
/// assert_eq!(hflip(Image::chw(&x))?.to_vec::<u8>(), [3, 2, 1, 6, 5, 4]);
/// # Ok::<(), sampan_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Image {
    tensor: Tensor,
    format: DataFormat,
    opencv: bool,
}

impl From<&Tensor> for Image {
    fn from(tensor: &Tensor) -> Image {
        let like_channels = |n: Option<&usize>| matches!(n, Some(1 | 3 | 4));
        let extents = &tensor.shape()[tensor.ndim().saturating_sub(3)..];
        let format = match (like_channels(extents.first()), like_channels(extents.last())) {
            (false, true) => DataFormat::Hwc,
            (true, false) => DataFormat::Chw,
            _ if tensor.dtype() == DType::UInt8 => DataFormat::Hwc,
            _ => DataFormat::Chw,
        };
        let format = if tensor.ndim() == 2 { DataFormat::Hwc } else { format };
        Image { tensor: tensor.clone(), format, opencv: false }
    }
}

impl From<&Image> for Image {
    fn from(image: &Image) -> Image {
        image.clone()
    }
}

/// A tensor, or an [`Image`] of which the caller knows the order of the axes.
impl<'a> Arg<'a> for Image {
    const EXPECTED: &'static str = "a picture";
    fn read(v: &'a Value) -> Option<Self> {
        match v {
            Value::Tensor(t) => Some(t.into()),
            Value::Object(o) => o.downcast::<Image>().cloned(),
            _ => None,
        }
    }
}

impl Image {
    /// Rows, columns, channels (none for `[H, W]`).
    pub fn hwc(tensor: &Tensor) -> Image {
        Image { tensor: tensor.clone(), format: DataFormat::Hwc, opencv: false }
    }

    /// Channels, rows, columns.
    pub fn chw(tensor: &Tensor) -> Image {
        Image { tensor: tensor.clone(), format: DataFormat::Chw, opencv: false }
    }

    /// The same picture, to be changed by OpenCV's arithmetic instead of Pillow's. Paddle does that to NumPy arrays, and
    /// some transforms come out otherwise: [`resize`](super::resize) reads the nearest pixels only, places of
    /// [`rotate`](super::rotate), [`affine`](super::affine) and [`perspective`](super::perspective) count in 32nds of a
    /// pixel, colours have other rules and go up to 255 in floats as well.
    ///
    /// ```
    /// use sampan_core::Tensor;
    /// use sampan_data::vision::transforms::{resize, Image};
    /// let x = Tensor::new([[0u8, 100, 200, 40, 0, 0, 0, 0]]);
    /// assert_eq!(resize(Image::hwc(&x), [1, 2], "bilinear")?.to_vec::<u8>(), [82, 11]);
    /// assert_eq!(resize(Image::hwc(&x).opencv(), [1, 2], "bilinear")?.to_vec::<u8>(), [150, 0]);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    pub fn opencv(self) -> Image {
        Image { opencv: true, ..self }
    }

    /// Is it to be changed as OpenCV does it?
    pub(super) fn is_opencv(&self) -> bool {
        self.opencv
    }

    /// The tensor.
    pub fn tensor(&self) -> &Tensor {
        &self.tensor
    }

    /// Where the channels stand.
    pub fn format(&self) -> DataFormat {
        self.format
    }

    /// Height, width and channels, or an error if this is no picture.
    pub fn extents(&self) -> Result<[usize; 3]> {
        let error = |message: &str| Error::invalid(message).received(describe(&self.tensor));
        if self.tensor.device() == Device::Meta {
            return Err(error("a picture must hold values"));
        }
        let extents = match (self.tensor.shape(), self.format) {
            (&[h, w], DataFormat::Hwc) => [h, w, 1],
            (&[h, w, c] | &[_, h, w, c], DataFormat::Hwc) => [h, w, c],
            (&[c, h, w] | &[_, c, h, w], DataFormat::Chw) => [h, w, c],
            _ => {
                return Err(error(
                    "a picture has the axes [H, W], [H, W, C] or [C, H, W], with one more in front for many",
                ));
            }
        };
        if self.tensor.numel() == 0 {
            return Err(error("the picture is empty"));
        }
        Ok(extents)
    }

    /// The same tensor of pictures with other values.
    pub(super) fn with(&self, tensor: Tensor) -> Image {
        Image { tensor, ..*self }
    }

    /// Does `f` to each picture as a contiguous `[H, W, C]` tensor, and gives the results this image's arrangement.
    pub(super) fn map(&self, f: impl Fn(&Tensor) -> Result<Tensor> + Copy) -> Result<Tensor> {
        self.extents()?;
        let t = self.tensor.detach();
        if t.device() != Device::Cpu {
            let out = self.with(t.try_to_device("cpu")?).map(f)?;
            return out.try_to_device(&t.device().to_string());
        }
        match (t.ndim(), self.format) {
            (4, _) => {
                let each: Result<Vec<Tensor>> =
                    t.try_unbind(0)?.into_iter().map(|tensor| self.with(tensor).map(f)).collect();
                try_stack(&each?, 0)
            }
            (2, _) => {
                let out = f(&t.try_unsqueeze(-1)?.contiguous())?;
                if out.shape()[2] == 1 { out.try_squeeze(-1) } else { Ok(out) }
            }
            (_, DataFormat::Hwc) => f(&t.contiguous()),
            (_, DataFormat::Chw) => {
                let out = f(&t.try_transpose([1, 2, 0])?.contiguous())?;
                Ok(out.try_transpose([2, 0, 1])?.contiguous())
            }
        }
    }

    /// The axes of height and width, counted from the end.
    pub(super) fn axes(&self) -> (i64, i64) {
        match (self.tensor.ndim(), self.format) {
            (2, _) | (_, DataFormat::Chw) => (-2, -1),
            (_, DataFormat::Hwc) => (-3, -2),
        }
    }
}
