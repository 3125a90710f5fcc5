//! From bytes to what a network takes: float planes, mean and deviation.

use super::image::{DataFormat, describe};
use super::{Image, Key, Keys, Numbers, Role, Transform};
use sampan_core::{DType, Error, Result, Tensor, ensure};
use sampan_macros::{class, function};

/// The picture as a network takes it: bytes become float32 from 0 to 1, other dtypes stay as they are, and the axes are
/// `data_format`: `"CHW"` or `"HWC"`. `[H, W]` gets one channel.
///
/// ```
/// use sampan_core::Tensor;
/// use sampan_data::vision::transforms::to_tensor;
/// let x = to_tensor(&Tensor::new([[[0u8, 51, 255]]]), "CHW")?;
/// assert_eq!((x.shape(), x.to_vec::<f32>()), (&[3, 1, 1][..], vec![0.0, 0.2, 1.0]));
/// # Ok::<(), sampan_core::Error>(())
/// ```
#[function(module = "vision.transforms")]
pub fn to_tensor(pic: impl Into<Image>, #[default("CHW")] data_format: &str) -> Result<Tensor> {
    DataFormat::parse(data_format).and_then(|to| convert(&pic.into(), to)).map_err(|e| e.in_op("to_tensor"))
}

fn convert(image: &Image, to: DataFormat) -> Result<Tensor> {
    image.extents()?;
    let t = image.tensor().detach();
    let t = if t.ndim() == 2 { t.try_unsqueeze(-1)? } else { t };
    // The axis in front of many pictures stays there.
    let n = t.ndim() as i64;
    let order = match (image.format(), to) {
        (DataFormat::Hwc, DataFormat::Chw) => Some([n - 1, n - 3, n - 2]),
        (DataFormat::Chw, DataFormat::Hwc) => Some([n - 2, n - 1, n - 3]),
        _ => None,
    };
    let t = match order {
        Some(order) => t.try_transpose((0..n - 3).chain(order).collect::<Vec<i64>>())?,
        None => t,
    };
    match t.dtype() {
        // Order and scale in one pass where the copy is needed anyway.
        DType::UInt8 if n == 3 && order.is_some() && to == DataFormat::Chw => scaled(image, None),
        DType::UInt8 => Ok(t.try_cast(DType::Float32)? / 255.0),
        DType::Bool => Ok(t.try_cast(DType::Float32)?.contiguous()),
        _ => Ok(t.contiguous()),
    }
}

/// Bytes `[H, W, C]` to floats `[C, H, W]` by one table for each channel.
fn scaled(image: &Image, normalize: Option<(&[f32], &[f32])>) -> Result<Tensor> {
    let [h, w, c] = image.extents()?;
    let t = image.tensor().detach().contiguous();
    let data = t.data::<u8>();
    let mut out = vec![0f32; h * w * c];
    for (k, plane) in out.chunks_exact_mut(h * w).enumerate() {
        let table: [f32; 256] = std::array::from_fn(|v| {
            let v = v as f32 / 255.0;
            normalize.map_or(v, |(mean, std)| (v - mean[k % mean.len()]) / std[k % std.len()])
        });
        for (to, from) in plane.iter_mut().zip(data.slice()[k..].iter().step_by(c)) {
            *to = table[*from as usize];
        }
    }
    Tensor::try_from_slice(&out, [c, h, w])
}

/// `(img - mean) / std`, channel by channel, in float32 (float64 stays). `mean` and `std` hold one number for all
/// channels or one for each; a picture with one channel is repeated where they hold more. The channels stand where
/// `data_format` says; with `to_rgb` their order is turned round first.
///
/// ```
/// use sampan_core::Tensor;
/// use sampan_data::vision::transforms::normalize;
/// let x = Tensor::new([[[1.0f32, 3.0]], [[5.0, 7.0]]]);
/// assert_eq!(normalize(&x, [1, 5], [2, 4], "CHW", false)?.to_vec::<f32>(), [0.0, 1.0, 0.0, 0.5]);
/// # Ok::<(), sampan_core::Error>(())
/// ```
#[function(module = "vision.transforms")]
pub fn normalize(
    img: &Tensor,
    mean: impl Into<Numbers>,
    std: impl Into<Numbers>,
    #[default("CHW")] data_format: &str,
    #[default(false)] to_rgb: bool,
) -> Result<Tensor> {
    let (mean, std) = (mean.into(), std.into());
    Normalize::build(mean, std, data_format, to_rgb, None).and_then(|n| n.run(img)).map_err(|e| e.in_op("normalize"))
}

/// Bytes to floats, channels first.
#[derive(Clone, Debug)]
pub struct ToTensor {
    data_format: DataFormat,
    keys: Keys,
}

#[class(module = "vision.transforms", object = super::object)]
impl ToTensor {
    /// The picture as a network takes it, see [`to_tensor`].
    ///
    /// ```
    /// use sampan_core::Tensor;
    /// use sampan_data::vision::transforms::{ToTensor, Transform};
    /// let x = Tensor::from_vec(vec![255u8; 24], [2, 4, 3]);
    /// assert_eq!(ToTensor::new().apply(&x)?.shape(), [3, 2, 4]);
    /// assert_eq!(ToTensor::with(|o| o.data_format("HWC")).apply(&x)?.shape(), [2, 4, 3]);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    fn build(#[opt("CHW")] data_format: &str, #[opt(None)] keys: Option<Keys>) -> Result<ToTensor> {
        Ok(ToTensor { data_format: DataFormat::parse(data_format)?, keys: Keys::or_image(keys) })
    }

    /// The order of the axes that it gives.
    pub fn data_format(&self) -> DataFormat {
        self.data_format
    }
}

impl Transform for ToTensor {
    fn apply_image(&self, image: &Image) -> Result<Tensor> {
        convert(image, self.data_format).map_err(|e| e.in_op("ToTensor"))
    }
    fn keys(&self) -> &[Key] {
        &self.keys
    }
    fn role(&self) -> Role<'_> {
        Role::ToTensor(self)
    }
}

/// Mean and deviation taken out.
#[derive(Clone, Debug)]
pub struct Normalize {
    mean: Vec<f32>,
    std: Vec<f32>,
    data_format: DataFormat,
    to_rgb: bool,
    keys: Keys,
}

#[class(module = "vision.transforms", object = super::object)]
impl Normalize {
    /// `(img - mean) / std`, channel by channel, see [`normalize`].
    ///
    /// ```
    /// use sampan_core::Tensor;
    /// use sampan_data::vision::transforms::{Normalize, Transform};
    /// let x = Tensor::from_vec(vec![255u8; 12], [2, 2, 3]);
    /// let to_unit = Normalize::with(|o| o.mean(127.5).std(127.5).data_format("HWC"));
    /// assert_eq!(to_unit.apply(&x)?.to_vec::<f32>(), [1.0; 12]);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    fn build(
        #[opt(0.0)] mean: Numbers,
        #[opt(1.0)] std: Numbers,
        #[opt("CHW")] data_format: &str,
        #[opt(false)] to_rgb: bool,
        #[opt(None)] keys: Option<Keys>,
    ) -> Result<Normalize> {
        let floats = |v: &Numbers| v.values().iter().map(|&v| v as f32).collect::<Vec<f32>>();
        let (mean, std) = (floats(&mean), floats(&std));
        let agree = mean.len() == std.len() || mean.len() == 1 || std.len() == 1;
        ensure!(
            agree && !mean.is_empty() && !std.is_empty(),
            "mean and std must hold one number or as many as each other, got {} and {}",
            mean.len(),
            std.len()
        );
        ensure!(std.iter().all(|&s| s != 0.0), "std must not be 0, got {std:?}");
        let data_format = DataFormat::parse(data_format)?;
        Ok(Normalize { mean, std, data_format, to_rgb, keys: Keys::or_image(keys) })
    }

    /// How many channels come out of `channels`.
    fn channels(&self, channels: usize) -> Option<usize> {
        let named = self.mean.len().max(self.std.len());
        if named == 1 || named == channels {
            Some(channels)
        } else if channels == 1 {
            Some(named)
        } else {
            None
        }
    }

    fn run(&self, image: &Tensor) -> Result<Tensor> {
        let t = match (image.ndim(), self.data_format) {
            (2, DataFormat::Chw) => image.detach().try_unsqueeze(0)?,
            (2, DataFormat::Hwc) => image.detach().try_unsqueeze(-1)?,
            _ => image.detach(),
        };
        let (whole, last) = match self.data_format {
            DataFormat::Hwc => (Image::hwc(&t), true),
            DataFormat::Chw => (Image::chw(&t), false),
        };
        let [h, w, c] = whole.extents()?;
        let Some(channels) = self.channels(c) else {
            let (named, format) = (self.mean.len().max(self.std.len()), if last { "HWC" } else { "CHW" });
            return Err(Error::invalid(format!("{named} means or deviations for {c} channels of a {format} picture"))
                .received(describe(image))
                .hint("data_format says where the channels stand; ToTensor puts them first"));
        };
        if t.dtype() == DType::Float64 {
            return self.in_float64(&t, last);
        }
        let t = if t.dtype() == DType::UInt8 { t.contiguous() } else { t.try_cast(DType::Float32)?.contiguous() };
        let batch = t.numel() / (h * w * c);
        let mut out = vec![0f32; batch * h * w * channels];
        // How far it is from one pixel of a channel to the next, and from one channel to the next.
        let (pixel, plane) = if last { (c, 1) } else { (1, h * w) };
        let (out_pixel, out_plane) = if last { (channels, 1) } else { (1, h * w) };
        for (b, k) in (0..batch).flat_map(|b| (0..channels).map(move |k| (b, k))) {
            let (mean, std) = (self.mean[k % self.mean.len()], self.std[k % self.std.len()]);
            let from = b * h * w * c + if self.to_rgb { c - 1 - k % c } else { k % c } * plane;
            let to = out[b * h * w * channels + k * out_plane..].iter_mut().step_by(out_pixel).take(h * w);
            let scale = |v: f32| (v - mean) / std;
            if t.dtype() == DType::UInt8 {
                to.zip(t.data::<u8>().slice()[from..].iter().step_by(pixel)).for_each(|(to, &v)| *to = scale(v as f32));
            } else {
                to.zip(t.data::<f32>().slice()[from..].iter().step_by(pixel)).for_each(|(to, &v)| *to = scale(v));
            }
        }
        let mut shape = t.shape().to_vec();
        let axis = if last { shape.len() - 1 } else { shape.len() - 3 };
        shape[axis] = channels;
        Tensor::try_from_slice(&out, shape)
    }

    /// The same in ops, for a precision that is rare.
    fn in_float64(&self, t: &Tensor, last: bool) -> Result<Tensor> {
        let shape: &[i64] = if last { &[-1] } else { &[-1, 1, 1] };
        let row = |v: &[f32]| Tensor::try_from_slice(v, [v.len()])?.try_cast(DType::Float64)?.try_reshape(shape);
        let t = if self.to_rgb { t.try_flip([if last { -1 } else { -3 }])? } else { t.clone() };
        t.try_subtract(row(&self.mean)?)?.try_divide(row(&self.std)?)
    }
}

impl Transform for Normalize {
    fn apply_image(&self, image: &Image) -> Result<Tensor> {
        self.run(image.tensor()).map_err(|e| e.in_op("Normalize"))
    }
    fn keys(&self) -> &[Key] {
        &self.keys
    }
    fn role(&self) -> Role<'_> {
        Role::Normalize(self)
    }
}

/// [`ToTensor`] and [`Normalize`] in one pass.
pub(super) struct Scaled {
    first: ToTensor,
    then: Normalize,
}

impl Scaled {
    /// Both as one, where both mean channels first and the same fields.
    pub fn join(first: &ToTensor, then: &Normalize) -> Option<Scaled> {
        let chw = first.data_format == DataFormat::Chw && then.data_format == DataFormat::Chw;
        let same = chw && !then.to_rgb && first.keys == then.keys;
        same.then(|| Scaled { first: first.clone(), then: then.clone() })
    }
}

impl Transform for Scaled {
    fn apply_image(&self, image: &Image) -> Result<Tensor> {
        let [_, _, c] = image.extents().map_err(|e| e.in_op("ToTensor"))?;
        let t = image.tensor();
        let bytes = t.dtype() == DType::UInt8 && t.ndim() < 4 && image.format() == DataFormat::Hwc;
        if bytes && self.then.channels(c) == Some(c) {
            return scaled(image, Some((&self.then.mean, &self.then.std)));
        }
        self.then.apply(&self.first.apply_image(image)?)
    }
    fn keys(&self) -> &[Key] {
        &self.first.keys
    }
}
