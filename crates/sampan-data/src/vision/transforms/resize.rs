//! Another size.

use super::args::{reasonable, square_or_pair};
use super::image::DataFormat;
use super::opencv::{self, on_samples};
use super::pixel::{Pixels, on_pixels};
use super::resample::{self, Interpolation};
use super::{Image, Key, Keys, Numbers, Transform, crop, draw};
use sampan_core::ops::resample::InterpolateOpts;
use sampan_core::{Ints, Result, Tensor, bail, ensure};
use sampan_kernels::match_dtype;
use sampan_macros::{class, function};

/// The picture at another size: `(height, width)`, or one number for the shorter side, the other keeping its share.
///
/// `interpolation` is nearest, bilinear, bicubic, box, hamming, lanczos or area. The filters are Pillow's: they widen as
/// the picture shrinks, so that no pixel is lost; OpenCV's, for an image that asks for them ([`Image::opencv`]), do not,
/// and it has no box and hamming. As in Paddle, float `[C, H, W]` tensors go through
/// `nn.functional.interpolate` instead, which reads the nearest pixels only, where it knows the interpolation.
///
/// ```
/// use sampan_core::Tensor;
/// use sampan_data::vision::transforms::resize;
/// let x = Tensor::from_vec(vec![0u8, 100, 200, 40], [1, 4, 1]);
/// assert_eq!(resize(&x, [1, 2], "box")?.to_vec::<u8>(), [50, 120]);
/// assert_eq!(resize(&x, 2, "nearest")?.shape(), [2, 8, 1]);
/// # Ok::<(), sampan_core::Error>(())
/// ```
#[function(module = "vision.transforms")]
pub fn resize(
    img: impl Into<Image>,
    size: impl Into<Ints>,
    #[default("bilinear")] interpolation: &str,
) -> Result<Tensor> {
    to_size(&img.into(), &size.into().0, Interpolation::parse(interpolation)?).map_err(|e| e.in_op("resize"))
}

fn check(size: &[i64]) -> Result<()> {
    ensure!(matches!(size.len(), 1 | 2), "size must be a number or (height, width), got {size:?}");
    ensure!(size.iter().all(|&s| s > 0), "size must be positive, got {size:?}");
    Ok(())
}

fn to_size(image: &Image, size: &[i64], how: Interpolation) -> Result<Tensor> {
    check(size)?;
    let [h, w, _] = image.extents()?;
    let (hf, wf) = (h as f64, w as f64);
    let (height, width) = match *size {
        [s] if s as usize == h.min(w) => (hf, wf),
        [s] if w < h => ((s as f64 * hf / wf).floor(), s as f64),
        [s] => (s as f64, (s as f64 * wf / hf).floor()),
        [height, width] => (height as f64, width as f64),
        _ => unreachable!("checked above"),
    };
    let (height, width) = reasonable(height, width)?;
    if (height, width) == (h, w) {
        return Ok(image.tensor().clone());
    }
    let by_op = match how {
        Interpolation::Nearest => Some("nearest"),
        Interpolation::Bilinear => Some("bilinear"),
        Interpolation::Bicubic => Some("bicubic"),
        Interpolation::Area => Some("area"),
        _ => None,
    };
    if let (DataFormat::Chw, true, Some(mode)) = (image.format(), image.tensor().dtype().is_float(), by_op) {
        let t = image.tensor();
        let batch = if t.ndim() == 3 { t.try_unsqueeze(0)? } else { t.clone() };
        let out = batch.try_interpolate_with([height, width], InterpolateOpts::new().mode(mode))?;
        return if t.ndim() == 3 { out.try_squeeze(0) } else { Ok(out) };
    }
    let opencv = image.is_opencv();
    ensure!(
        !opencv || !matches!(how, Interpolation::Box | Interpolation::Hamming),
        "an array is resized by 'nearest', 'bilinear', 'bicubic', 'lanczos' or 'area'; '{how:?}' is Pillow's"
    );
    image.map(|t| {
        let shape = [height, width, t.shape()[2]];
        if how == Interpolation::Nearest {
            return match_dtype!(t.dtype(), T => {
                let data = t.data::<T>();
                let resize = if opencv { opencv::resize::nearest } else { resample::nearest };
                Tensor::try_from_slice(&resize(Pixels::new(data.slice(), t.shape()), height, width), shape)
            });
        }
        if opencv {
            return on_samples!(t, T => {
                let data = t.data::<T>();
                let source = Pixels::new(data.slice(), t.shape());
                Tensor::try_from_slice(&opencv::resize::mixed(source, height, width, how), shape)
            });
        }
        on_pixels!(t, P => {
            let data = t.data::<P>();
            Tensor::try_from_slice(&resample::filtered(Pixels::new(data.slice(), t.shape()), height, width, how), shape)
        })
    })
}

/// Another size.
#[derive(Clone, Debug)]
pub struct Resize {
    size: Vec<i64>,
    interpolation: Interpolation,
    keys: Keys,
}

#[class(module = "vision.transforms", object = super::object)]
impl Resize {
    /// Another size: `(height, width)`, or one number for the shorter side. See [`resize`].
    ///
    /// ```
    /// use sampan_core::Tensor;
    /// use sampan_data::vision::transforms::{Resize, Transform};
    /// let x = Tensor::from_vec(vec![0u8; 6 * 9 * 3], [6, 9, 3]);
    /// assert_eq!(Resize::new(4).apply(&x)?.shape(), [4, 6, 3]);
    /// assert_eq!(Resize::with([2, 5], |o| o.interpolation("lanczos")).apply(&x)?.shape(), [2, 5, 3]);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    fn build(size: &[i64], #[opt("bilinear")] interpolation: &str, #[opt(None)] keys: Option<Keys>) -> Result<Resize> {
        check(size)?;
        let interpolation = Interpolation::parse(interpolation)?;
        Ok(Resize { size: size.to_vec(), interpolation, keys: Keys::or_image(keys) })
    }
}

impl Transform for Resize {
    fn apply_image(&self, image: &Image) -> Result<Tensor> {
        to_size(image, &self.size, self.interpolation).map_err(|e| e.in_op("Resize"))
    }
    fn keys(&self) -> &[Key] {
        &self.keys
    }
}

/// A random part at a fixed size.
#[derive(Clone, Debug)]
pub struct RandomResizedCrop {
    size: [i64; 2],
    scale: [f64; 2],
    ratio: [f64; 2],
    interpolation: Interpolation,
    keys: Keys,
}

#[class(module = "vision.transforms", object = super::object)]
impl RandomResizedCrop {
    /// A random part of the picture, resized to `size`. The part's share of the area lies in `scale`, its width over its
    /// height in `ratio`; after ten parts that do not fit, it is the largest middle part whose ratio does.
    ///
    /// ```
    /// use sampan_core::Tensor;
    /// use sampan_data::vision::transforms::{RandomResizedCrop, Transform};
    /// let x = Tensor::from_vec(vec![0u8; 30 * 40 * 3], [30, 40, 3]);
    /// assert_eq!(RandomResizedCrop::with(24, |o| o.scale([0.5, 1.0])).apply(&x)?.shape(), [24, 24, 3]);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    fn build(
        size: &[i64],
        #[opt([0.08, 1.0])] scale: Numbers,
        #[opt([3.0 / 4.0, 4.0 / 3.0])] ratio: Numbers,
        #[opt("bilinear")] interpolation: &str,
        #[opt(None)] keys: Option<Keys>,
    ) -> Result<RandomResizedCrop> {
        let (h, w) = square_or_pair(size, "size")?;
        let (scale, ratio) = (scale.range("scale")?, ratio.range("ratio")?);
        if scale[0] < 0.0 || ratio[0] <= 0.0 {
            bail!("scale must not be negative and ratio must be positive, got {scale:?} and {ratio:?}");
        }
        let interpolation = Interpolation::parse(interpolation)?;
        Ok(RandomResizedCrop { size: [h as i64, w as i64], scale, ratio, interpolation, keys: Keys::or_image(keys) })
    }

    /// Top, left, height and width of a part.
    fn part(&self, height: usize, width: usize) -> [usize; 4] {
        let (h, w) = (height as f64, width as f64);
        for _ in 0..10 {
            let area = draw::uniform(self.scale) * h * w;
            let ratio = draw::uniform(self.ratio.map(f64::ln)).exp();
            let part_w = (area * ratio).sqrt().round_ties_even() as usize;
            let part_h = (area / ratio).sqrt().round_ties_even() as usize;
            if (1..=width).contains(&part_w) && (1..=height).contains(&part_h) {
                let (top, left) = (draw::integer(0, height - part_h), draw::integer(0, width - part_w));
                return [top, left, part_h, part_w];
            }
        }
        let [least, most] = self.ratio;
        let (part_h, part_w) = match w / h {
            r if r < least => ((w / least).round_ties_even(), w),
            r if r > most => (h, (h * most).round_ties_even()),
            _ => (h, w),
        };
        let (part_h, part_w) = ((part_h as usize).max(1), (part_w as usize).max(1));
        [(height - part_h) / 2, (width - part_w) / 2, part_h, part_w]
    }
}

impl Transform for RandomResizedCrop {
    fn apply_image(&self, image: &Image) -> Result<Tensor> {
        let [h, w, _] = image.extents().map_err(|e| e.in_op("RandomResizedCrop"))?;
        let [top, left, height, width] = self.part(h, w).map(|n| n as i64);
        let part = image.with(crop(image, top, left, height, width)?);
        to_size(&part, &self.size, self.interpolation).map_err(|e| e.in_op("RandomResizedCrop"))
    }
    fn keys(&self) -> &[Key] {
        &self.keys
    }
}
