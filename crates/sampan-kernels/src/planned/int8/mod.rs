//! Layers in eight bits: weights are signed, what flows between layers is unsigned with a code of zero, sums are whole numbers
//! of 32 bits and the same on every machine. What follows (steps, bias, a sum, an activation, codes again) happens in
//! float32 before an output leaves the registers, operation by operation in the same order everywhere.
//!
//! Images of codes are `[image, block of channels, row, column, channel]` with as many channels to a block as [`lane`] says;
//! what fills up the last block is unspecified and never counts.

mod conv;
mod convert;
mod finish;
mod tile;

#[cfg(test)]
mod tests;

pub use conv::{Conv, Linear, Packed};
pub use convert::{codes_of, codes_of_rows, largest, max_pool, numbers_of, numbers_of_rows, row_pitch};
pub use finish::{Add, Out};

use super::BLOCK;

/// Channels that lie side by side in images of codes.
pub fn lane(channels: usize) -> usize {
    match channels {
        0..=4 => 4,
        5..=8 => 8,
        _ => BLOCK,
    }
}

/// Bytes of images of codes with `plane` places each.
pub fn image_len(batch: usize, channels: usize, plane: usize) -> usize {
    batch * channels.next_multiple_of(lane(channels)) * plane
}

/// How codes stand for numbers: `(code - zero) · step`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Grid {
    /// The distance of two codes.
    pub step: f32,
    /// The code of zero.
    pub zero: u8,
}

/// Codes that lie in words, four to each.
pub fn bytes(words: &[f32]) -> &[u8] {
    bytemuck::cast_slice(words)
}

/// The same, to be written.
pub fn bytes_mut(words: &mut [f32]) -> &mut [u8] {
    bytemuck::cast_slice_mut(words)
}
