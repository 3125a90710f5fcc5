//! Planar convolution in `f32` as direct sums over images whose channels lie side by side in blocks, for many channels and
//! what Winograd's method does not know, above all strides.
//!
//! Outputs are computed in lines. Their elements read inputs at one distance from each other, so a kernel element and a
//! block of input channels make one small matrix product without any unfolding. Where images are wide, a line is a row of
//! an image; where they are small and many, it is one place in all images. Kernel elements that meet only padding are left
//! out.

use crate::conv::ConvShape;
use crate::conv::winograd::product::BLOCK;
use crate::gemm::pack::transpose_to;
use crate::shared::Shared;
use crate::{Buffer, parallel};

mod forward;
mod weight;

pub(crate) use forward::{backward_data, forward};
pub(crate) use weight::backward_weight;

/// Rows of outputs shorter than this are worth lines through all images, from as many images on.
const SHORT: usize = 8;
/// The fewest channels.
const CHANNELS: usize = 32;
/// The fewest outputs of a channel for which it pays to turn the weights, and the most weights.
const POSITIONS: usize = 16;
const WEIGHTS: usize = 16 << 20;
/// Elements of images that are turned at a time.
const TURNED: usize = 4 << 20;

/// Is this the fastest path for that shape, of those that make direct sums? (The same for all three directions.)
pub(crate) fn suits(s: &ConvShape) -> bool {
    let planar = s.input[0] == 1 && s.output[0] == 1 && s.kernel[0] == 1 && s.pad_begin[0] == 0;
    let many = s.in_channels >= CHANNELS && s.out_channels >= CHANNELS && s.groups == 1;
    let positions = s.batch * s.y_plane();
    // A kernel of one element pays too little for turning the images.
    let worth_it = s.taps() > 1 && positions >= POSITIONS && s.w_len() <= WEIGHTS;
    // All taps of kernels that are mostly in the padding would be turned.
    planar && many && worth_it && (s.stride != [1; 3] || s.y_plane() > 1) && s.x_len() > 0
}

/// Where the elements of turned images lie, in blocks of channels.
#[derive(Clone, Copy)]
struct Layout {
    /// From one image, row and column to the next.
    image: usize,
    row: usize,
    column: usize,
    /// Zero columns before each row.
    left: usize,
    /// All of them.
    len: usize,
}

impl Layout {
    /// Rows one after the other, with zeros around them so that each is `left + columns` long.
    fn rows(batch: usize, height: usize, left: usize, columns: usize) -> Layout {
        let row = left + columns;
        Layout { image: height * row, row, column: 1, left, len: batch * height * row }
    }

    /// Each place in all images.
    fn places(batch: usize, height: usize, width: usize) -> Layout {
        Layout { image: 1, row: width * batch, column: batch, left: 0, len: batch * height * width }
    }

    fn at(&self, image: usize, row: usize, column: usize) -> usize {
        image * self.image + row * self.row + (self.left + column) * self.column
    }
}

/// Is a line one place in all images?
fn by_place(s: &ConvShape) -> bool {
    s.output[2] < SHORT && s.batch >= SHORT
}

/// Images that are done at a time.
fn images_at_a_time(s: &ConvShape) -> usize {
    let most = (TURNED / (s.x_len().max(s.y_len()) / s.batch)).max(1);
    s.batch.div_ceil(s.batch.div_ceil(most))
}

/// `[block of channels, place in the layout, channel]` of images `[image, channel, row, column]`.
fn turn(data: &[f32], channels: usize, batch: usize, [height, width]: [usize; 2], layout: &Layout) -> Buffer {
    let (blocks, plane) = (channels.div_ceil(BLOCK), height * width);
    assert!(data.len() == batch * channels * plane);
    let mut out = Buffer::uninit(4 * blocks * layout.len * BLOCK);
    let shared = Shared::new(out.as_mut_slice::<f32>());
    parallel::for_each_range(blocks * batch, 1, plane * BLOCK / 2, |task| {
        let (block, image) = (task.start / batch, task.start % batch);
        let count = (channels - block * BLOCK).min(BLOCK);
        // SAFETY: the channels of one block of one image, and the places in the layout that are theirs alone.
        unsafe {
            let from = data.as_ptr().add((image * channels + block * BLOCK) * plane);
            let to = shared.get().add(block * layout.len * BLOCK);
            if layout.left == 0 && layout.row == width * layout.column {
                let to = to.add(layout.at(image, 0, 0) * BLOCK);
                return transpose_to(from, plane as isize, count, plane, to, layout.column * BLOCK);
            }
            let inside = width.min(layout.row - layout.left);
            for h in 0..height {
                let start = layout.at(image, h, 0) - layout.left;
                let row = std::slice::from_raw_parts_mut(to.add(start * BLOCK), layout.row * BLOCK);
                let (before, row) = row.split_at_mut(layout.left * BLOCK);
                let (middle, after) = row.split_at_mut(inside * BLOCK);
                before.fill(0.0);
                transpose_to(from.add(h * width), plane as isize, count, inside, middle.as_mut_ptr(), BLOCK);
                after.fill(0.0);
            }
        }
    });
    out
}

/// Which inputs the lines of a result read.
struct Lines {
    /// For each line and kernel element the place of the first input, or [`NOWHERE`].
    places: Vec<usize>,
    taps: usize,
    /// From one input to the next.
    step: usize,
    /// How the input must lie.
    layout: Layout,
}

const NOWHERE: usize = usize::MAX;

impl Lines {
    /// What line `line` reads: kernel elements and places.
    fn of(&self, line: usize) -> impl Iterator<Item = (usize, usize)> {
        let places = &self.places[line * self.taps..][..self.taps];
        places.iter().copied().enumerate().filter(|&(_, place)| place != NOWHERE)
    }

    /// The lines of the output of a convolution, `[image, row]` or `[row, column]`.
    fn forward(s: &ConvShape) -> Lines {
        let ([_, ih, iw], [_, oh, ow], [_, kh, kw]) = (s.input, s.output, s.kernel);
        let taps = kh * kw;
        let read = |axis: usize, o: usize, k: usize| o * s.stride[axis] + k * s.dilation[axis];
        let inside = |axis: usize, o: usize, k: usize| {
            read(axis, o, k).checked_sub(s.pad_begin[axis]).filter(|&i| i < s.input[axis])
        };
        let mut places = Vec::with_capacity(taps * s.batch.max(ow) * oh);
        if by_place(s) {
            let layout = Layout::places(s.batch, ih, iw);
            for o in 0..oh * ow {
                places.extend((0..taps).map(|t| match (inside(1, o / ow, t / kw), inside(2, o % ow, t % kw)) {
                    (Some(h), Some(w)) => layout.at(0, h, w),
                    _ => NOWHERE,
                }));
            }
            return Lines { places, taps, step: 1, layout };
        }
        let left = s.pad_begin[2];
        let layout = Layout::rows(s.batch, ih, left, (read(2, ow - 1, kw - 1) + 1).saturating_sub(left));
        for o in 0..s.batch * oh {
            places.extend((0..taps).map(|t| match inside(1, o % oh, t / kw) {
                Some(h) => layout.at(o / oh, h, 0) - left + t % kw * s.dilation[2],
                None => NOWHERE,
            }));
        }
        Lines { places, taps, step: s.stride[2], layout }
    }

    /// The lines of the gradient by data, `[image, row, residue of the stride]` or `[row, column]`, which read the gradient.
    fn backward(s: &ConvShape) -> Lines {
        let ([_, ih, iw], [_, oh, ow], [_, kh, kw]) = (s.input, s.output, s.kernel);
        let (taps, stride) = (kh * kw, s.stride[2]);
        // The output that reads input `i` with kernel element `k`, which may lie outside.
        let reader = |axis: usize, i: usize, k: usize| {
            let o = (i + s.pad_begin[axis]) as isize - (k * s.dilation[axis]) as isize;
            let stride = s.stride[axis] as isize;
            (o.rem_euclid(stride) == 0).then(|| o.div_euclid(stride))
        };
        let inside = |axis: usize, i: usize, k: usize| {
            reader(axis, i, k).and_then(|o| usize::try_from(o).ok()).filter(|&o| o < s.output[axis])
        };
        let mut places = Vec::new();
        if by_place(s) {
            let layout = Layout::places(s.batch, oh, ow);
            for i in 0..ih * iw {
                places.extend((0..taps).map(|t| match (inside(1, i / iw, t / kw), inside(2, i % iw, t % kw)) {
                    (Some(h), Some(w)) => layout.at(0, h, w),
                    _ => NOWHERE,
                }));
            }
            return Lines { places, taps, step: 1, layout };
        }
        let firsts = |k: usize| (0..stride).filter_map(move |r| reader(2, r, k));
        let lowest = (0..kw).flat_map(firsts).min().unwrap_or(0);
        let highest = (0..kw).flat_map(firsts).max().unwrap_or(0);
        let left = lowest.min(0).unsigned_abs();
        let last = highest + iw.div_ceil(stride) as isize;
        let layout = Layout::rows(s.batch, oh, left, usize::try_from(last).unwrap_or(0).max(1));
        for line in 0..s.batch * ih * stride {
            let (image, i, residue) = (line / stride / ih, line / stride % ih, line % stride);
            places.extend((0..taps).map(|t| match (inside(1, i, t / kw), reader(2, residue, t % kw)) {
                (Some(h), Some(w)) => (layout.at(image, h, 0) as isize + w) as usize,
                _ => NOWHERE,
            }));
        }
        Lines { places, taps, step: 1, layout }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conv::{conv_backward_data_of, conv_backward_weight_of, conv_forward_of};

    /// Against sums in `f64`, exactly: all numbers are small and whole.
    #[test]
    fn as_other_paths() {
        let whole = |len: usize, seed: usize| -> Vec<f32> {
            (0..len).map(|i| ((i * 7919 + i / 7 + seed * 104_729) % 9) as f32 - 4.0).collect()
        };
        let up = |v: &[f32]| v.iter().map(|&v| v as f64).collect::<Vec<_>>();
        let same = |a: &[f32], b: &[f64]| a.iter().zip(b).all(|(a, b)| *a as f64 == *b);
        for (batch, ci, co, input, kernel, stride, dilation, begin, end) in [
            (2, 32, 40, [9, 20], [3, 3], [2, 2], [1, 1], [1, 1], [1, 1]),
            (3, 33, 70, [8, 8], [3, 3], [2, 2], [1, 1], [1, 1], [0, 1]),
            (9, 40, 33, [8, 7], [3, 3], [2, 2], [1, 1], [1, 1], [1, 0]),
            (17, 32, 32, [4, 4], [3, 3], [2, 2], [1, 1], [1, 1], [1, 1]),
            (8, 32, 32, [2, 2], [3, 3], [2, 2], [1, 1], [1, 1], [1, 1]),
            (8, 32, 32, [1, 1], [3, 3], [2, 1], [1, 1], [1, 1], [1, 1]),
            (2, 32, 32, [21, 30], [5, 4], [3, 2], [1, 2], [2, 3], [4, 0]),
            (1, 34, 32, [12, 25], [1, 1], [2, 2], [1, 1], [0, 0], [0, 0]),
            (10, 34, 32, [6, 5], [1, 1], [2, 2], [1, 1], [0, 0], [0, 0]),
            (2, 32, 32, [5, 40], [2, 2], [3, 4], [1, 1], [0, 0], [0, 0]),
            (2, 32, 65, [6, 3], [3, 3], [2, 2], [1, 2], [5, 6], [3, 4]),
            (1, 32, 32, [9, 33], [2, 3], [1, 1], [2, 3], [0, 4], [1, 1]),
        ] {
            let three = |v: [usize; 2], fill: usize| [fill, v[0], v[1]];
            let (stride, dilation, begin, end) = (three(stride, 1), three(dilation, 1), three(begin, 0), three(end, 0));
            let (input, kernel) = (three(input, 1), three(kernel, 1));
            let s = ConvShape::new(batch, ci, co, 1, input, kernel, stride, dilation, begin, end).unwrap();
            let (x, w, bias, dy) = (whole(s.x_len(), 1), whole(s.w_len(), 2), whole(co, 3), whole(s.y_len(), 4));
            let (mut y, mut dx, mut dw) = (vec![0f64; s.y_len()], vec![0f64; s.x_len()], vec![0f64; s.w_len()]);
            conv_forward_of(&s, &up(&x), &up(&w), Some(&up(&bias)), &mut y);
            conv_backward_data_of(&s, &up(&w), &up(&dy), &mut dx);
            conv_backward_weight_of(&s, &up(&x), &up(&dy), &mut dw);
            let junk = |len: usize| vec![f32::NAN; len];
            let (mut fy, mut fx, mut fw) = (junk(s.y_len()), junk(s.x_len()), junk(s.w_len()));
            forward(&s, &x, &w, Some(&bias), &mut fy);
            backward_data(&s, &w, &dy, &mut fx);
            backward_weight(&s, &x, &dy, &mut fw);
            assert!(same(&fy, &y), "forward {s:?}");
            assert!(same(&fx, &dx), "by data {s:?}");
            assert!(same(&fw, &dw), "by weights {s:?}");
        }
    }
}
