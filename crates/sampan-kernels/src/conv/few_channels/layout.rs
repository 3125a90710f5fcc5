//! How the input of a band lies in memory once it is packed.

use super::WIDEST;
use crate::conv::ConvShape;
use std::ops::Range;

/// Elements of the packed input of a band, so that it stays in the second-level cache.
pub(super) const BAND: usize = 64 << 10;
/// Fewest output rows of a band, so that rows which two bands share do not count.
const LEAST_ROWS: usize = 8;

/// How the rows of a band of some images are packed: `[channel, kernel column, depth, row phase, row, image, output
/// column]`. Rows are dealt out into as many phases as the stride has steps.
pub(super) struct Layout {
    pub(super) images: usize,
    pub(super) bands: usize,
    pub(super) depth: usize,
    /// Rows of a phase.
    pub(super) rows: usize,
    /// Elements between channels.
    pub(super) channel: usize,
    /// Elements of one padded row of input, dealt out into the phases of the columns, and of each phase.
    pub(super) line: usize,
    pub(super) phase: usize,
}

impl Layout {
    pub(super) fn new(s: &ConvShape) -> Layout {
        let window = |axis: usize| (s.kernel[axis] - 1) * s.dilation[axis];
        let depth = (s.output[0] - 1) * s.stride[0] + window(0) + 1;
        let size = |band: usize| {
            let rows = band + window(1) / s.stride[1];
            (rows, s.kernel[2] * depth * s.stride[1] * rows * s.output[2])
        };
        let row = s.group_in() * size(1).1 / size(1).0;
        let fit = (BAND / row.max(1)).saturating_sub(window(1) / s.stride[1]);
        let bands = s.output[1].div_ceil(fit.max(LEAST_ROWS));
        let (rows, channel) = size(s.output[1].div_ceil(bands));
        let phase = s.output[2] + window(2) / s.stride[2];
        Layout { images: 1, bands, depth, rows, channel, line: phase * s.stride[2], phase }
    }

    /// The same bands of that many images side by side.
    pub(super) fn of_images(&self, images: usize) -> Layout {
        Layout { images, channel: self.channel / self.images * images, ..*self }
    }

    /// Output rows of a band: nearly as many in each.
    pub(super) fn band(&self, s: &ConvShape, i: usize) -> Range<usize> {
        i * s.output[1] / self.bands..(i + 1) * s.output[1] / self.bands
    }

    /// Elements of a packed band with room for the last vector, and of the padded rows of one channel.
    pub(super) fn room(&self, s: &ConvShape) -> (usize, usize) {
        let lines = self.depth * s.stride[1] * self.rows * self.images * self.line;
        (s.group_in() * self.channel + WIDEST, lines + WIDEST)
    }

    /// Where element `(d, h, w)` of the kernel of channel `c` begins.
    pub(super) fn offset(&self, s: &ConvShape, c: usize, [d, h, w]: [usize; 3]) -> usize {
        let h = h * s.dilation[1];
        let plane = (w * self.depth + d * s.dilation[0]) * s.stride[1] + h % s.stride[1];
        c * self.channel + (plane * self.rows + h / s.stride[1]) * self.images * s.output[2]
    }

    /// Where all kernel elements begin, in their order in memory.
    pub(super) fn offsets(&self, s: &ConvShape) -> Vec<usize> {
        let [kd, kh, kw] = s.kernel;
        let mut offsets = Vec::with_capacity(s.k());
        // All channels are alike, and so are all columns.
        let column = self.depth * s.stride[1] * self.rows * self.images * s.output[2];
        for d in 0..kd {
            for h in 0..kh {
                let first = self.offset(s, 0, [d, h, 0]);
                offsets.extend((0..kw).map(|w| first + w * column));
            }
        }
        for c in 1..s.group_in() {
            offsets.extend_from_within((c - 1) * s.taps()..c * s.taps());
            offsets[c * s.taps()..].iter_mut().for_each(|o| *o += self.channel);
        }
        offsets
    }

    /// From one output plane of a volume to the next.
    pub(super) fn depth_step(&self, s: &ConvShape) -> usize {
        s.stride[0] * s.stride[1] * self.rows * self.images * s.output[2]
    }
}
