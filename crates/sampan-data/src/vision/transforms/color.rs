//! Brightness, contrast, saturation, hue, and grey.
//!
//! Bytes are rounded as Pillow does; floats are colours from 0 to 1. Alpha, the last of 2 or 4 channels, stays. Images
//! that ask for it ([`Image::opencv`]) are changed by the rules that Paddle has for arrays.

use super::hue;
use super::opencv::colour;
use super::pixel::{Pixel, on_pixels};
use super::{Image, Key, Keys, Transform};
use sampan_core::{DType, Error, Result, Tensor, ensure};
use sampan_macros::{class, function};

/// Colour arithmetic on one kind of pixel.
pub(super) trait Tone: Pixel {
    /// How bright a colour is.
    fn grey(rgb: &[Self]) -> Self;
    /// The same as OpenCV has it.
    fn opencv_grey(rgb: [Self; 3]) -> Self;
    /// The middle of all grey values, in steps the pixel has.
    fn mean(sum: f64, count: usize) -> Self;
    /// From `other` (factor 0) over `self` (factor 1) and beyond, cut to the range of colours.
    fn away_from(self, other: Self, factor: f64) -> Self;
    /// The hue moved by a share of the circle.
    fn turn(rgb: [Self; 3], factor: f64) -> [Self; 3];
}

impl Tone for u8 {
    fn grey(rgb: &[u8]) -> u8 {
        ((rgb[0] as u32 * 19595 + rgb[1] as u32 * 38470 + rgb[2] as u32 * 7471 + 0x8000) >> 16) as u8
    }
    fn opencv_grey(rgb: [u8; 3]) -> u8 {
        colour::grey(rgb)
    }
    fn mean(sum: f64, count: usize) -> u8 {
        (sum / count as f64 + 0.5) as u8
    }
    #[inline(always)]
    fn away_from(self, other: u8, factor: f64) -> u8 {
        // A cast from float saturates and truncates.
        (other as f32 + factor as f32 * (self as i32 - other as i32) as f32) as u8
    }
    fn turn(rgb: [u8; 3], factor: f64) -> [u8; 3] {
        let [h, s, v] = hue::to_hsv(rgb);
        hue::to_rgb([h.wrapping_add((factor * 255.0) as i32 as u8), s, v])
    }
}

impl Tone for f32 {
    fn grey(rgb: &[f32]) -> f32 {
        0.2989 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2]
    }
    fn opencv_grey(rgb: [f32; 3]) -> f32 {
        colour::grey_float(rgb)
    }
    fn mean(sum: f64, count: usize) -> f32 {
        (sum / count as f64) as f32
    }
    #[inline(always)]
    fn away_from(self, other: f32, factor: f64) -> f32 {
        (other + factor as f32 * (self - other)).clamp(0.0, 1.0)
    }
    fn turn(rgb: [f32; 3], factor: f64) -> [f32; 3] {
        let [h, s, v] = hue::to_hsv_float(rgb);
        let h = h + factor as f32;
        hue::to_rgb_float([h - h.floor(), s, v])
    }
}

/// Does `f` to the values of a picture with 1 to 4 channels: all values, channels, and how many of them are colours.
macro_rules! on_colours {
    ($image:expr, $name:literal, |$data:ident, $channels:ident, $colours:ident| $body:expr) => {{
        let image: &Image = $image;
        image.extents().and_then(|[_, _, c]| {
            ensure!((1..=4).contains(&c), "a picture has 1 to 4 channels, this one has {c}");
            image.map(|t| {
                let $channels = c;
                let $colours = if c < 3 { 1 } else { 3 };
                on_pixels!(t, P => {
                    let mut values = t.data::<P>().slice().to_vec();
                    let $data = values.as_mut_slice();
                    $body;
                    Tensor::try_from_slice(&values, t.shape())
                })
            })
        }).map_err(|e: Error| e.in_op($name))
    }};
}

/// An array's values as bytes, through a table.
fn by_table(image: &Image, rule: impl Fn(f64) -> f64) -> Result<Tensor> {
    image.extents()?;
    // A cast from float saturates and truncates.
    let table: [u8; 256] = std::array::from_fn(|v| rule(v as f64) as u8);
    let t = image.tensor().detach().try_cast(DType::UInt8)?.contiguous();
    let out: Vec<u8> = t.data::<u8>().slice().iter().map(|&v| table[v as usize]).collect();
    Tensor::try_from_slice(&out, t.shape())
}

/// Does `f` to the colours of an array, blue first, as Paddle takes an array to hold them. Grey arrays stay.
fn on_blue_first<T: sampan_core::Element>(image: &Image, dtype: DType, f: impl Fn([T; 3]) -> [T; 3]) -> Result<Tensor> {
    let [_, _, c] = image.extents()?;
    ensure!((1..=4).contains(&c), "a picture has 1 to 4 channels, this one has {c}");
    if c < 3 {
        return Ok(image.tensor().clone());
    }
    let t = image.tensor().detach().try_cast(dtype)?.contiguous();
    let mut values = t.data::<T>().slice().to_vec();
    for pixel in values.chunks_exact_mut(c) {
        let [r, g, b] = f([pixel[2], pixel[1], pixel[0]]);
        pixel[..3].copy_from_slice(&[b, g, r]);
    }
    Tensor::try_from_slice(&values, t.shape())?.try_cast(image.tensor().dtype())
}

/// More or less colour. Paddle draws the factor at random from around 1 even here; it is taken as it is.
fn saturated(image: &Image, factor: f32) -> Result<Tensor> {
    on_blue_first(image, DType::Float32, |rgb: [f32; 3]| {
        let grey = colour::grey_float(rgb) * (1.0 - factor);
        rgb.map(|v| (v * factor + grey).clamp(0.0, 255.0))
    })
}

/// The hue moved by whole 256ths of the circle.
fn turned(image: &Image, factor: f64) -> Result<Tensor> {
    let shift = (factor * 255.0) as i32 as u8;
    on_blue_first(image, DType::UInt8, |rgb: [u8; 3]| {
        let [h, s, v] = colour::to_hsv(rgb);
        colour::to_rgb([h.wrapping_add(shift), s, v])
    })
}

fn factor_of(factor: f64, name: &str) -> Result<f64> {
    ensure!(factor >= 0.0, "{name} must not be negative, got {factor}");
    Ok(factor)
}

/// Each pixel moved towards or away from the colour that `other` gives for it.
fn blend<P: Tone>(data: &mut [P], channels: usize, colours: usize, factor: f64, other: impl Fn(&[P]) -> P) {
    for pixel in data.chunks_exact_mut(channels) {
        let other = other(pixel);
        pixel[..colours].iter_mut().for_each(|v| *v = v.away_from(other, factor));
    }
}

fn grey_of<P: Tone>(pixel: &[P], colours: usize) -> P {
    if colours == 3 { P::grey(pixel) } else { pixel[0] }
}

/// The picture brighter or darker: 0 is black, 1 leaves it, 2 is twice as bright.
///
/// ```
/// use sampan_core::Tensor;
/// use sampan_data::vision::transforms::adjust_brightness;
/// assert_eq!(adjust_brightness(&Tensor::new([[10u8, 200]]), 1.5)?.to_vec::<u8>(), [15, 255]);
/// # Ok::<(), sampan_core::Error>(())
/// ```
#[function(module = "vision.transforms")]
pub fn adjust_brightness(img: impl Into<Image>, brightness_factor: f64) -> Result<Tensor> {
    let factor = factor_of(brightness_factor, "brightness_factor").map_err(|e| e.in_op("adjust_brightness"))?;
    let image = img.into();
    if image.is_opencv() {
        return by_table(&image, |v| v * factor).map_err(|e| e.in_op("adjust_brightness"));
    }
    on_colours!(&image, "adjust_brightness", |data, channels, colours| {
        blend(data, channels, colours, factor, |_| Default::default())
    })
}

/// The picture with more or less contrast: 0 is all in its mean grey, 1 leaves it, 2 doubles the distance to the mean.
///
/// ```
/// use sampan_core::Tensor;
/// use sampan_data::vision::transforms::adjust_contrast;
/// assert_eq!(adjust_contrast(&Tensor::new([[10u8, 30]]), 0.5)?.to_vec::<u8>(), [15, 25]);
/// # Ok::<(), sampan_core::Error>(())
/// ```
#[function(module = "vision.transforms")]
pub fn adjust_contrast(img: impl Into<Image>, contrast_factor: f64) -> Result<Tensor> {
    let factor = factor_of(contrast_factor, "contrast_factor").map_err(|e| e.in_op("adjust_contrast"))?;
    let image = img.into();
    if image.is_opencv() {
        // Paddle's middle for arrays, whatever is in them.
        return by_table(&image, |v| (v - 74.0) * factor + 74.0).map_err(|e| e.in_op("adjust_contrast"));
    }
    on_colours!(&image, "adjust_contrast", |data, channels, colours| {
        let sum: f64 = data.chunks_exact(channels).map(|p| sampan_core::Ordered::to_f64(grey_of(p, colours))).sum();
        let mean = Tone::mean(sum, data.len() / channels);
        blend(data, channels, colours, factor, |_| mean)
    })
}

/// The picture with more or less colour: 0 is grey, 1 leaves it, 2 doubles the distance to grey.
///
/// ```
/// use sampan_core::Tensor;
/// use sampan_data::vision::transforms::adjust_saturation;
/// assert_eq!(adjust_saturation(&Tensor::new([[[100u8, 0, 0]]]), 0.0)?.to_vec::<u8>(), [30, 30, 30]);
/// # Ok::<(), sampan_core::Error>(())
/// ```
#[function(module = "vision.transforms.functional")]
pub fn adjust_saturation(img: impl Into<Image>, saturation_factor: f64) -> Result<Tensor> {
    let factor = factor_of(saturation_factor, "saturation_factor").map_err(|e| e.in_op("adjust_saturation"))?;
    let image = img.into();
    if image.is_opencv() {
        return saturated(&image, factor as f32).map_err(|e| e.in_op("adjust_saturation"));
    }
    on_colours!(&image, "adjust_saturation", |data, channels, colours| {
        if colours == 3 {
            blend(data, channels, colours, factor, Tone::grey)
        }
    })
}

/// The picture with its hue moved around the circle of colours: `hue_factor` is a share of the circle from -0.5 to 0.5.
/// Grey pictures stay.
///
/// ```
/// use sampan_core::Tensor;
/// use sampan_data::vision::transforms::{adjust_hue, Image};
/// let red = Tensor::new([[[1.0f32, 0.0, 0.0]]]);
/// assert_eq!(adjust_hue(Image::hwc(&red), 0.5)?.to_vec::<f32>(), [0.0, 1.0, 1.0]);
/// # Ok::<(), sampan_core::Error>(())
/// ```
#[function(module = "vision.transforms")]
pub fn adjust_hue(img: impl Into<Image>, hue_factor: f64) -> Result<Tensor> {
    if !(-0.5..=0.5).contains(&hue_factor) {
        return Err(
            Error::invalid(format!("hue_factor must lie between -0.5 and 0.5, got {hue_factor}")).in_op("adjust_hue")
        );
    }
    let image = img.into();
    if image.is_opencv() {
        return turned(&image, hue_factor).map_err(|e| e.in_op("adjust_hue"));
    }
    on_colours!(&image, "adjust_hue", |data, channels, colours| {
        if colours == 3 {
            for pixel in data.chunks_exact_mut(channels) {
                let turned = Tone::turn([pixel[0], pixel[1], pixel[2]], hue_factor);
                pixel[..3].copy_from_slice(&turned);
            }
        }
    })
}

/// The picture in grey, with 1 channel or 3 alike. Alpha goes.
///
/// ```
/// use sampan_core::Tensor;
/// use sampan_data::vision::transforms::to_grayscale;
/// let x = Tensor::new([[[255u8, 0, 0], [0, 255, 0]]]);
/// assert_eq!(to_grayscale(&x, 1)?.to_vec::<u8>(), [76, 150]);
/// # Ok::<(), sampan_core::Error>(())
/// ```
#[function(module = "vision.transforms")]
pub fn to_grayscale(img: impl Into<Image>, #[default(1)] num_output_channels: usize) -> Result<Tensor> {
    let image = img.into();
    (|| {
        check_outputs(num_output_channels)?;
        let [_, _, c] = image.extents()?;
        ensure!((1..=4).contains(&c), "a picture has 1 to 4 channels, this one has {c}");
        let opencv = image.is_opencv();
        image.map(|t| {
            on_pixels!(t, P => {
                let data = t.data::<P>();
                let grey_of = |pixel: &[P], colours: usize| match (opencv, colours) {
                    (true, 3) => P::opencv_grey([pixel[0], pixel[1], pixel[2]]),
                    _ => grey_of(pixel, colours),
                };
                let colours = if c < 3 { 1 } else { 3 };
                let grey = data.slice().chunks_exact(c).map(|p| grey_of(p, colours));
                let out: Vec<P> = grey.flat_map(|v| std::iter::repeat_n(v, num_output_channels)).collect();
                Tensor::try_from_slice(&out, [t.shape()[0], t.shape()[1], num_output_channels])
            })
        })
    })()
    .map_err(|e| e.in_op("to_grayscale"))
}

fn check_outputs(n: usize) -> Result<()> {
    ensure!(n == 1 || n == 3, "num_output_channels must be 1 or 3, got {n}");
    Ok(())
}

/// The picture in grey.
#[derive(Clone, Debug)]
pub struct Grayscale {
    num_output_channels: usize,
    keys: Keys,
}

#[class(module = "vision.transforms", object = super::object)]
impl Grayscale {
    /// The picture in grey, with 1 channel or 3 alike.
    ///
    /// ```
    /// use sampan_core::Tensor;
    /// use sampan_data::vision::transforms::{Grayscale, Transform};
    /// assert_eq!(Grayscale::new().apply(&Tensor::from_vec(vec![9u8; 12], [2, 2, 3]))?.shape(), [2, 2, 1]);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    fn build(#[opt(1)] num_output_channels: usize, #[opt(None)] keys: Option<Keys>) -> Result<Grayscale> {
        check_outputs(num_output_channels)?;
        Ok(Grayscale { num_output_channels, keys: Keys::or_image(keys) })
    }
}

impl Transform for Grayscale {
    fn apply_image(&self, image: &Image) -> Result<Tensor> {
        to_grayscale(image, self.num_output_channels)
    }
    fn keys(&self) -> &[Key] {
        &self.keys
    }
}
