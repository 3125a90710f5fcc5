//! OpenCV's arithmetic: what Paddle does to NumPy arrays, where it does otherwise to Pillow's pictures.
//!
//! Bytes are mixed in OpenCV's fixed-point numbers and come out with its bits; other values are mixed in floats.

pub(super) mod colour;
mod kernel;
pub(super) mod resize;
pub(super) mod warp;

use sampan_core::{Error, Ordered, Result, Tensor};

/// A value that can be mixed with its neighbours.
pub(super) trait Sample: Ordered {
    /// The nearest value of this type; halves go to the even one.
    fn nearest(v: f64) -> Self;
    /// Is it a byte, which has arithmetic of its own?
    const BYTE: bool = false;
}

impl Sample for u8 {
    fn nearest(v: f64) -> u8 {
        v.round_ties_even() as u8
    }
    const BYTE: bool = true;
}

impl Sample for i16 {
    fn nearest(v: f64) -> i16 {
        v.round_ties_even() as i16
    }
}

impl Sample for f32 {
    fn nearest(v: f64) -> f32 {
        v as f32
    }
}

impl Sample for f64 {
    fn nearest(v: f64) -> f64 {
        v
    }
}

/// The error for a dtype that OpenCV does not mix.
pub(super) fn need_samples<T>(tensor: &Tensor) -> Result<T> {
    Err(Error::dtype("an array must be uint8, int16, float32 or float64 for this")
        .received(super::image::describe(tensor))
        .hint("cast it; copies and interpolation='nearest' take every dtype"))
}

/// Calls `$f` with the sample type of a tensor.
macro_rules! on_samples {
    ($tensor:ident, $p:ident => $f:expr) => {
        sampan_kernels::match_dtype!($tensor.dtype(), $p in [u8, i16, f32, f64] => $f,
            else => $crate::vision::transforms::opencv::need_samples($tensor))
    };
}
pub(super) use on_samples;
