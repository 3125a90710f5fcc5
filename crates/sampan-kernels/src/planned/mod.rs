//! Layers of networks that only run forward: weights are packed once, images lie in blocks of channels from one layer to the
//! next, and what follows a layer (a sum, an activation) is applied to its outputs before they leave the registers.
//!
//! A blocked image is `[image, block of channels, row, column, channel]` with [`BLOCK`] channels to a block. What fills up the
//! last block is unspecified and never read.

mod dense;
mod depthwise;
mod images;
pub mod int8;
mod lstm;
mod pool;
mod tile;
mod winograd;

#[cfg(test)]
mod tests;

pub use dense::{Conv, Linear, Packed, Way};
pub use depthwise::Depthwise;
pub use images::{block, blocked_len, gate, join, unblock};
pub use lstm::Lstm;
pub use pool::{Pooling, pool};

use pulp::Simd;

/// Channels that lie side by side: the lanes of the widest vectors.
pub const BLOCK: usize = 16;

/// What happens to an output before it is written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum After {
    /// Nothing.
    Same,
    /// `min(max(scale · x + shift, low), high)`: relu, relu6, hardsigmoid, hardtanh.
    Clamp(Clamp),
    /// `x` times that: hardswish.
    Gate(Clamp),
    /// `x` where it is positive, so many times `x` elsewhere.
    Leaky(f32),
}

/// A line between two limits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Clamp {
    /// The slope of the line.
    pub scale: f32,
    /// Its value at zero.
    pub shift: f32,
    /// The lower limit.
    pub low: f32,
    /// The upper limit.
    pub high: f32,
}

impl Clamp {
    #[inline(always)]
    fn of<S: Simd>(self, simd: S, x: S::f32s) -> S::f32s {
        let line = match (self.scale, self.shift) {
            (1.0, 0.0) => x,
            (scale, shift) => simd.mul_add_e_f32s(simd.splat_f32s(scale), x, simd.splat_f32s(shift)),
        };
        // The second operand is what a comparison with NaN gives.
        let line = simd.max_f32s(simd.splat_f32s(self.low), line);
        simd.min_f32s(simd.splat_f32s(self.high), line)
    }
}

impl After {
    #[inline(always)]
    fn of<S: Simd>(self, simd: S, x: S::f32s) -> S::f32s {
        match self {
            After::Same => x,
            After::Clamp(clamp) => clamp.of(simd, x),
            // Held away from minus infinity, which zero would make NaN.
            After::Gate(clamp) => simd.mul_f32s(simd.max_f32s(simd.splat_f32s(-1e4), x), clamp.of(simd, x)),
            After::Leaky(slope) => {
                let zero = simd.splat_f32s(0.0);
                let below = simd.mul_f32s(simd.splat_f32s(slope), simd.min_f32s(zero, x));
                simd.add_f32s(simd.max_f32s(zero, x), below)
            }
        }
    }
}
