//! Arithmetic on pixels: bytes as Pillow does it, in whole numbers, and floats.

use sampan_core::{DType, Element, Error, Result, Tensor};

/// A picture's values, row-major, channels innermost.
#[derive(Clone, Copy)]
pub(super) struct Pixels<'a, T> {
    pub data: &'a [T],
    pub height: usize,
    pub width: usize,
    pub channels: usize,
}

impl<'a, T> Pixels<'a, T> {
    /// The values of a contiguous `[H, W, C]` tensor.
    pub fn new(data: &'a [T], shape: &[usize]) -> Pixels<'a, T> {
        Pixels { data, height: shape[0], width: shape[1], channels: shape[2] }
    }

    /// All channels of one pixel.
    pub fn at(&self, y: usize, x: usize) -> &'a [T] {
        let start = (y * self.width + x) * self.channels;
        &self.data[start..start + self.channels]
    }
}

/// A value that weighted means can be made of.
pub(super) trait Pixel: Element {
    /// How a weight is kept: bytes use whole numbers of `2^-22`.
    type Weight: Copy;
    /// A sum in progress.
    type Sum: Copy;
    /// The empty sum.
    const ZERO: Self::Sum;
    fn weight(w: f64) -> Self::Weight;
    fn add(sum: Self::Sum, pixel: Self, weight: Self::Weight) -> Self::Sum;
    fn finish(sum: Self::Sum) -> Self;
    /// A value computed between pixels: bytes are cut to their range and truncated.
    fn cut(v: f64) -> Self;
    /// Multiplies colours by their alpha, the last channel, or undoes it. Only bytes carry alpha.
    fn premultiply(_data: &mut [Self], _channels: usize) {}
    fn unmultiply(_data: &mut [Self], _channels: usize) {}
}

const PRECISION: u32 = 22;

impl Pixel for u8 {
    type Weight = i32;
    type Sum = i32;
    const ZERO: i32 = 1 << (PRECISION - 1);

    fn weight(w: f64) -> i32 {
        let scaled = w * (1 << PRECISION) as f64;
        (if w < 0.0 { scaled - 0.5 } else { scaled + 0.5 }) as i32
    }

    #[inline(always)]
    fn add(sum: i32, pixel: u8, weight: i32) -> i32 {
        sum + pixel as i32 * weight
    }

    #[inline(always)]
    fn finish(sum: i32) -> u8 {
        (sum >> PRECISION).clamp(0, 255) as u8
    }

    #[inline(always)]
    fn cut(v: f64) -> u8 {
        // A cast from float saturates and truncates.
        v as u8
    }

    fn premultiply(data: &mut [u8], channels: usize) {
        for pixel in data.chunks_exact_mut(channels) {
            let (colours, alpha) = pixel.split_at_mut(channels - 1);
            for c in colours {
                let t = *c as u32 * alpha[0] as u32 + 128;
                *c = (((t >> 8) + t) >> 8) as u8;
            }
        }
    }

    fn unmultiply(data: &mut [u8], channels: usize) {
        for pixel in data.chunks_exact_mut(channels) {
            let (colours, alpha) = pixel.split_at_mut(channels - 1);
            let alpha = alpha[0] as u32;
            if alpha != 0 && alpha != 255 {
                colours.iter_mut().for_each(|c| *c = (255 * *c as u32 / alpha).min(255) as u8);
            }
        }
    }
}

impl Pixel for f32 {
    type Weight = f64;
    type Sum = f64;
    const ZERO: f64 = 0.0;

    fn weight(w: f64) -> f64 {
        w
    }

    #[inline(always)]
    fn add(sum: f64, pixel: f32, weight: f64) -> f64 {
        sum + pixel as f64 * weight
    }

    #[inline(always)]
    fn finish(sum: f64) -> f32 {
        sum as f32
    }

    #[inline(always)]
    fn cut(v: f64) -> f32 {
        v as f32
    }
}

/// Runs `f` with colours multiplied by alpha where the last of 2 or 4 channels is alpha, so that transparent pixels do
/// not bleed into their neighbours.
pub(super) fn with_alpha<P: Pixel>(source: Pixels<'_, P>, f: impl FnOnce(Pixels<'_, P>) -> Vec<P>) -> Vec<P> {
    if P::DTYPE != DType::UInt8 || !matches!(source.channels, 2 | 4) {
        return f(source);
    }
    let mut data = source.data.to_vec();
    P::premultiply(&mut data, source.channels);
    let mut out = f(Pixels { data: &data, ..source });
    P::unmultiply(&mut out, source.channels);
    out
}

/// The error for a dtype that cannot be interpolated.
pub(super) fn need_pixels<T>(tensor: &Tensor) -> Result<T> {
    Err(Error::dtype("the picture must be uint8 or float for this")
        .received(super::image::describe(tensor))
        .hint("cast it; copies and interpolation='nearest' take every dtype"))
}

/// Does `f` to a tensor; floats of other widths are float32 meanwhile.
pub(super) fn as_pixels(t: &Tensor, f: impl Fn(&Tensor) -> Result<Tensor>) -> Result<Tensor> {
    match t.dtype() {
        DType::Float64 | DType::Float16 | DType::BFloat16 => f(&t.try_cast(DType::Float32)?)?.try_cast(t.dtype()),
        _ => f(t),
    }
}

/// Calls `$f` with the pixel type of a tensor.
macro_rules! on_pixels {
    ($tensor:ident, $p:ident => $f:expr) => {
        $crate::vision::transforms::pixel::as_pixels($tensor, |$tensor| {
            sampan_kernels::match_dtype!($tensor.dtype(), $p in [u8, f32] => $f,
                else => $crate::vision::transforms::pixel::need_pixels($tensor))
        })
    };
}
pub(super) use on_pixels;
