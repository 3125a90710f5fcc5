//! Direct convolution in `f32` for images that are small or have few channels, where unfolding costs more than the sums.
//!
//! Only the columns of the kernel are unfolded: for each of them there is a copy of the input rows, padded, shifted, and
//! cut to the width of the output. The rows of a copy follow each other without gaps. So kernel rows, kernel columns and
//! channels are fixed offsets, the positions of an output plane are consecutive in all of them, and vectors run across
//! the ends of rows: whatever the width, no lane is idle.

mod band;
mod fold;
mod layout;
mod pack;
mod weight;

use crate::conv::ConvShape;
use crate::gemm::pack::transpose;
use crate::shared::Shared;
use crate::{Buffer, parallel};
use band::Band;
use fold::Fold;
use layout::{BAND, Layout};
use pack::Pack;
use pulp::Arch;
use std::ops::Range;

pub(crate) use weight::{backward_weight, suits_weight};

/// Elements of the widest vector: as many may be written past the end of a row, and a band has at least that many
/// positions.
const WIDEST: usize = 16;
/// Output channels summed at once.
const CHANNELS: usize = 8;
/// Weights of a group up to which they stay in cache while the positions of a band pass.
const MAX_WEIGHTS: usize = 160 << 10;
/// Operations that make a task worth handing over.
const TASK: usize = 1 << 19;

/// `len` cut into the fewest pieces of at most `most`, nearly equal: where piece `i` begins.
pub(crate) fn even(len: usize, most: usize) -> impl Iterator<Item = Range<usize>> {
    let pieces = len.div_ceil(most).max(1);
    (0..pieces).map(move |i| i * len / pieces..(i + 1) * len / pieces)
}

/// Are there enough positions for this way to work, and does a band of them fit into the cache?
fn possible(s: &ConvShape) -> bool {
    let layout = Layout::new(s);
    s.output[1] / layout.bands * s.output[2] >= WIDEST && s.group_in() * layout.channel <= 4 * BAND
}

/// Is [`forward`] the fastest path for that shape?
pub(crate) fn suits(s: &ConvShape) -> bool {
    s.taps() > 1 && s.group_out() * s.k() <= MAX_WEIGHTS && possible(s)
}

/// `y = x ⋆ w + bias`.
pub(crate) fn forward(s: &ConvShape, x: &[f32], w: &[f32], bias: Option<&[f32]>, y: &mut [f32]) {
    run(s, x, w, bias, None, y);
}

/// The convolution whose outputs, shifted and added up, are the gradient by data: one output channel for each input
/// channel and kernel column, from kernels of a single column. It reads no padding beside the rows of the gradient, which
/// for small images and large kernels is a good part of what the mirrored convolution reads.
fn by_columns(s: &ConvShape) -> ConvShape {
    let [_, kh, kw] = s.kernel;
    ConvShape {
        in_channels: s.out_channels,
        out_channels: s.in_channels * kw,
        input: s.output,
        kernel: [1, kh, 1],
        output: [1, s.input[1], s.output[2]],
        pad_begin: [0, (kh - 1) * s.dilation[1] - s.pad_begin[1], 0],
        ..*s
    }
}

/// Is [`backward_data`] the fastest path for that shape? It has to save enough width to pay for the additions.
pub(crate) fn suits_data(s: &ConvShape) -> bool {
    let planar = s.stride == [1; 3] && s.input[0] == 1 && s.output[0] == 1 && s.kernel[0] == 1 && s.pad_begin[0] == 0;
    let fits = s.pad_begin[1] <= (s.kernel[1] - 1) * s.dilation[1];
    let wide = 5 * s.input[2] >= 6 * s.output[2] && s.kernel[2] > 1 && s.group_out() * s.kernel[1] >= 32;
    if !planar || !fits || !wide || s.w_len() / s.groups > MAX_WEIGHTS {
        return false;
    }
    let columns = by_columns(s);
    possible(&columns) && Layout::new(&columns).bands == 1
}

/// The gradient by data.
pub(crate) fn backward_data(s: &ConvShape, w: &[f32], dy: &[f32], dx: &mut [f32]) {
    let columns = by_columns(s);
    let (gi, go, [_, kh, kw]) = (s.group_in(), s.group_out(), s.kernel);
    let mut turned = Buffer::uninit(std::mem::size_of_val(w));
    for (i, out) in turned.as_mut_slice::<f32>().chunks_exact_mut(go * kh).enumerate() {
        let (c, column) = (i / kw, i % kw);
        for (j, out) in out.iter_mut().enumerate() {
            let (o, h) = (c / gi * go + j / kh, kh - 1 - j % kh);
            *out = w[((o * gi + c % gi) * kh + h) * kw + column];
        }
    }
    run(&columns, dy, turned.as_slice(), None, Some(s), dx);
}

/// Computes a convolution, or, with `fold`, the gradient by data of `fold` from the convolution [`by_columns`] `s`.
fn run(s: &ConvShape, x: &[f32], w: &[f32], bias: Option<&[f32]>, fold: Option<&ConvShape>, y: &mut [f32]) {
    let layout = Layout::new(s);
    let (k, gi, go) = (s.k(), s.group_in(), s.group_out());
    let offsets = layout.offsets(s);
    let mut packed = Buffer::uninit(std::mem::size_of_val(w));
    for (group, out) in w.chunks_exact(go * k).zip(packed.as_mut_slice::<f32>().chunks_exact_mut(go * k)) {
        for block in even(go, CHANNELS) {
            let part = block.start * k..block.end * k;
            // SAFETY: the block has so many channels of `k` weights each.
            unsafe {
                let group = group[part.clone()].as_ptr();
                transpose(group, k as isize, block.len(), k, block.len(), &mut out[part]);
            }
        }
    }
    let packed = packed.as_slice::<f32>();
    let cost = 2 * go * k * s.y_plane() / layout.bands;
    let y = Shared::new(y);
    parallel::for_each_range(s.batch * s.groups * layout.bands, (TASK / cost.max(1)).max(1), cost, |tasks| {
        let (room, lines) = layout.room(s);
        let folded = if fold.is_some() { go * s.y_plane() } else { 0 };
        let mut buffer = Buffer::uninit(4 * (room + lines + folded));
        let (band, more) = buffer.as_mut_slice::<f32>().split_at_mut(room);
        let (lines, folded) = more.split_at_mut(lines);
        for task in tasks {
            let (at, rows) = (task / layout.bands, layout.band(s, task % layout.bands));
            let (image, group) = (at / s.groups, at % s.groups);
            let x = &x[(image * s.in_channels + group * gi) * s.x_plane()..][..gi * s.x_plane()];
            Arch::new().dispatch(Pack { s, layout: &layout, x, first: rows.start, lines, out: band });
            let to = match fold {
                Some(_) => folded.as_mut_ptr(),
                // SAFETY: the first channel of a group of an image lies inside `y`, whose length was checked.
                None => unsafe { y.get().add((image * s.out_channels + group * go) * s.y_plane()) },
            };
            Arch::new().dispatch(Band {
                s,
                layout: &layout,
                offsets: &offsets,
                x: band,
                w: &packed[group * go * k..][..go * k],
                bias: bias.map(|b| &b[group * go..][..go]),
                y: to,
                rows,
            });
            if let Some(f) = fold {
                let len = f.group_in() * f.x_plane();
                // SAFETY: one group of one image of `y`, whose length was checked; no other task has it.
                let dx = unsafe { std::slice::from_raw_parts_mut(y.get().add(at * len), len) };
                Arch::new().dispatch(Fold { s: f, columns: folded, dx });
            }
        }
    });
}
