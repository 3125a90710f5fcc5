//! Convolution (cross-correlation, as everywhere in deep learning) over up to three spatial axes, and its two
//! transposes. Images are `[batch, channels, spatial…]`, weights `[out, in / groups, kernel…]`.
//!
//! The general path is a matrix product of the weights with a tile of unfolded input. Only one tile per thread exists at
//! a time, small enough to stay in the second-level cache. Work is cut by shape alone, so results have the same bits for
//! any number of threads.

mod depthwise;
mod direct;
pub(crate) mod few_channels;
mod implicit_gemm;
mod simplify;
pub(crate) mod winograd;

use crate::gemm::{Batch, Gemm, Mat, MatMut, batched_matmul, matmul_serial};
use crate::shared::Shared;
use crate::vmath::Real;
use crate::widen::{RealElement, Room, narrowed, widened};
use crate::{Buffer, DType, parallel};
use sampan_macros::by_dtype;

pub use winograd::{Winograd, set_winograd, winograd};

/// Elements of a tile of unfolded input.
const TILE: usize = 96 << 10;
/// Output positions of a tile are a multiple of this, which suits every micro-kernel.
const STEP: usize = 48;

/// Elements of an image's plane from which on a kernel of one element goes through images one by one: its rows are then
/// read in place.
const WHOLE_IMAGES: usize = 400;

/// Everything that describes a convolution. Fewer than three spatial axes are filled up with leading ones.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ConvShape {
    /// Number of images.
    pub batch: usize,
    /// Channels of the input.
    pub in_channels: usize,
    /// Channels of the output.
    pub out_channels: usize,
    /// Groups; both channel counts are multiples of it.
    pub groups: usize,
    /// Spatial extents of the input.
    pub input: [usize; 3],
    /// Extents of the kernel.
    pub kernel: [usize; 3],
    /// Spatial extents of the output.
    pub output: [usize; 3],
    /// Step between windows.
    pub stride: [usize; 3],
    /// Step between the elements of a window.
    pub dilation: [usize; 3],
    /// Zeros before the first element of each axis. (Those after the last follow from `output`.)
    pub pad_begin: [usize; 3],
}

/// A list of up to three numbers, one per spatial axis, filled up at the front.
pub fn lift(values: &[usize], fill: usize) -> [usize; 3] {
    assert!(values.len() <= 3, "at most three spatial axes, received {}", values.len());
    let mut out = [fill; 3];
    out[3 - values.len()..].copy_from_slice(values);
    out
}

impl ConvShape {
    /// Computes the output extents; `None` where the kernel does not fit into the padded input.
    pub fn new(
        batch: usize,
        in_channels: usize,
        out_channels: usize,
        groups: usize,
        input: [usize; 3],
        kernel: [usize; 3],
        stride: [usize; 3],
        dilation: [usize; 3],
        pad_begin: [usize; 3],
        pad_end: [usize; 3],
    ) -> Option<ConvShape> {
        let mut output = [0; 3];
        for i in 0..3 {
            let window = dilation[i] * (kernel[i].checked_sub(1)?) + 1;
            output[i] = (input[i] + pad_begin[i] + pad_end[i]).checked_sub(window)?.checked_div(stride[i])? + 1;
        }
        let s =
            ConvShape { batch, in_channels, out_channels, groups, input, kernel, output, stride, dilation, pad_begin };
        (groups > 0 && in_channels.is_multiple_of(groups) && out_channels.is_multiple_of(groups)).then_some(s)
    }

    /// Elements of the input.
    pub fn x_len(&self) -> usize {
        self.batch * self.in_channels * self.x_plane()
    }

    /// Elements of the weights.
    pub fn w_len(&self) -> usize {
        self.out_channels * self.k()
    }

    /// Elements of the output.
    pub fn y_len(&self) -> usize {
        self.batch * self.out_channels * self.y_plane()
    }

    pub(crate) fn x_plane(&self) -> usize {
        self.input.iter().product()
    }

    pub(crate) fn y_plane(&self) -> usize {
        self.output.iter().product()
    }

    pub(crate) fn taps(&self) -> usize {
        self.kernel.iter().product()
    }

    pub(crate) fn group_in(&self) -> usize {
        self.in_channels / self.groups
    }

    pub(crate) fn group_out(&self) -> usize {
        self.out_channels / self.groups
    }

    /// Inputs that one output sums over.
    pub(crate) fn k(&self) -> usize {
        self.group_in() * self.taps()
    }

    /// Does every output read exactly the input at its own place?
    pub(crate) fn is_pointwise(&self) -> bool {
        self.kernel == [1; 3] && self.stride == [1; 3] && self.pad_begin == [0; 3] && self.input == self.output
    }

    /// The convolution whose forward is this one's backward by data, for unit strides and not too much padding.
    pub(crate) fn mirrored(&self) -> Option<ConvShape> {
        let mut pad_begin = [0; 3];
        for i in 0..3 {
            pad_begin[i] = (self.dilation[i] * (self.kernel[i] - 1)).checked_sub(self.pad_begin[i])?;
        }
        (self.stride == [1; 3]).then_some(ConvShape {
            in_channels: self.out_channels,
            out_channels: self.in_channels,
            input: self.output,
            output: self.input,
            pad_begin,
            ..*self
        })
    }

    /// Output positions of a tile that unfolds to `rows` rows.
    fn tile(&self, rows: usize) -> usize {
        (TILE / rows.max(1) / STEP * STEP).max(2 * STEP).min((self.batch * self.y_plane()).max(1))
    }
}

/// Walks a tile of unfolded input: `rows` (channel, then kernel element) times the output positions
/// `start..start + len`, counted through all images. Calls `f(at, len, low, high, x)` for each stretch of a row that
/// lies in one row of output: it begins at `at` in the tile, has `len` elements, of which `low..high` lie inside the
/// input and come from `x`, `x + stride` …; the others are padding. `x` counts from the first channel of the block in
/// image 0.
#[inline(always)]
fn walk(
    s: &ConvShape,
    channels: usize,
    start: usize,
    len: usize,
    mut f: impl FnMut(usize, usize, usize, usize, usize),
) {
    let [_, oh, ow] = s.output;
    let [id, ih, iw] = s.input;
    let (x_plane, y_plane) = (s.x_plane(), s.y_plane());
    let image_step = s.in_channels * x_plane;
    let inside = |o: usize, k: usize, axis: usize, extent: usize| {
        (o * s.stride[axis] + k * s.dilation[axis]).checked_sub(s.pad_begin[axis]).filter(|&i| i < extent)
    };
    let mut at = 0;
    for c in 0..channels {
        for kd in 0..s.kernel[0] {
            for kh in 0..s.kernel[1] {
                for kw in 0..s.kernel[2] {
                    // Columns first..last read inside the input for this kernel column.
                    let (shift, pad) = (kw * s.dilation[2], s.pad_begin[2]);
                    let first = pad.saturating_sub(shift).div_ceil(s.stride[2]).min(ow);
                    let last = (iw + pad).saturating_sub(shift).div_ceil(s.stride[2]).min(ow).max(first);
                    let (mut image, p) = (start / y_plane, start % y_plane);
                    let (mut d, mut h, mut w) = (p / (oh * ow), p / ow % oh, p % ow);
                    let mut left = len;
                    while left > 0 {
                        let n = left.min(ow - w);
                        match (inside(d, kd, 0, id), inside(h, kh, 1, ih)) {
                            (Some(i), Some(j)) => {
                                let low = first.clamp(w, w + n);
                                let high = last.clamp(low, w + n);
                                let x = if low < high { low * s.stride[2] + shift - pad } else { 0 };
                                f(at, n, low - w, high - w, image * image_step + c * x_plane + (i * ih + j) * iw + x);
                            }
                            _ => f(at, n, 0, 0, 0),
                        }
                        at += n;
                        left -= n;
                        (w, h) = (0, h + 1);
                        if h == oh {
                            (h, d) = (0, d + 1);
                            if d == s.output[0] {
                                (d, image) = (0, image + 1);
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Copies `x[0]`, `x[step]`, `x[2 * step]` … until `out` is full.
pub(crate) fn take_every<T: Copy>(x: &[T], step: usize, out: &mut [T]) {
    let Some(last) = out.len().checked_sub(1) else { return };
    match step {
        1 => out.copy_from_slice(&x[..last + 1]),
        // Pairs become vector code; the last one may lack its second half.
        2 => {
            out[last] = x[2 * last];
            out[..last].iter_mut().zip(x.chunks_exact(2)).for_each(|(o, pair)| *o = pair[0]);
        }
        _ => out.iter_mut().zip(x.iter().step_by(step)).for_each(|(o, v)| *o = *v),
    }
}

/// Unfolds a tile of `x` (which begins at the first channel of the block) into `cols`.
fn unfold<T: Real>(s: &ConvShape, x: &[T], channels: usize, start: usize, len: usize, cols: &mut [T]) {
    let step = s.stride[2];
    walk(s, channels, start, len, |at, n, low, high, src| {
        let out = &mut cols[at..at + n];
        out[..low].fill(T::ZERO);
        out[high..].fill(T::ZERO);
        if low < high {
            take_every(&x[src..], step, &mut out[low..high]);
        }
    });
}

/// Adds a tile back where [`unfold`] would have taken it from.
fn fold<T: Real>(s: &ConvShape, cols: &[T], channels: usize, start: usize, len: usize, dx: &mut [T]) {
    let step = s.stride[2];
    walk(s, channels, start, len, |at, n, low, high, dst| {
        let cols = &cols[at..at + n][low..high];
        if step == 1 && low < high {
            dx[dst..dst + high - low].iter_mut().zip(cols).for_each(|(o, v)| *o += *v);
        } else if low < high {
            dx[dst..].iter_mut().step_by(step).zip(cols).for_each(|(o, v)| *o += *v);
        }
    });
}

/// Calls `f(image, position, at, len)` for the stretches of a tile that lie in one image.
fn by_image(s: &ConvShape, start: usize, len: usize, mut f: impl FnMut(usize, usize, usize, usize)) {
    let plane = s.y_plane();
    let mut at = 0;
    while at < len {
        let (image, p) = ((start + at) / plane, (start + at) % plane);
        let n = (plane - p).min(len - at);
        f(image, p, at, n);
        at += n;
    }
}

fn check(s: &ConvShape, x: usize, w: usize, y: usize) {
    let divides = |n: usize| s.groups > 0 && n.is_multiple_of(s.groups);
    assert!(divides(s.in_channels) && divides(s.out_channels), "conv: groups in {s:?}");
    assert!(s.kernel.iter().chain(&s.stride).chain(&s.dilation).all(|&v| v > 0), "conv: zero extent in {s:?}");
    assert!((x, w, y) == (s.x_len(), s.w_len(), s.y_len()), "conv: {x}, {w} and {y} elements for {s:?}");
}

/// [`simplify::trimmed`], except for a path that leaves out kernel elements itself.
fn trimmed<T: Real>(s: &ConvShape) -> Option<(ConvShape, [std::ops::Range<usize>; 3])> {
    let itself = T::DTYPE == DType::Float32 && s.stride != [1; 3] && direct::suits(s);
    if itself { None } else { simplify::trimmed(s) }
}

/// A path for some shapes in `f32`.
type Forward = fn(&ConvShape, &[f32], &[f32], Option<&[f32]>, &mut [f32]);

/// The path that is faster than a product for that shape, if one is.
fn direct(s: &ConvShape) -> Option<Forward> {
    match s {
        s if depthwise::is_depthwise(s) => Some(depthwise::forward),
        s if winograd::suits(s) => Some(|s, x, w, bias, y| winograd::forward(s, x, w, false, bias, y)),
        s if direct::suits(s) => Some(direct::forward),
        s if few_channels::suits(s) => Some(few_channels::forward),
        _ => None,
    }
}

/// A kernel of one element: in each image and group the product of the weights `w` (of the first group; those of the others
/// follow) with the channels.
fn pointwise<T: Real + Gemm>(s: &ConvShape, x: &[T], w: Mat<T>, y: &mut [T], accumulate: bool) {
    let (gi, go, plane) = (s.group_in(), s.group_out(), s.y_plane());
    let batch = Batch {
        shape: &[s.batch, s.groups],
        a_strides: &[0, (go * gi) as isize],
        b_strides: &[(s.in_channels * plane) as isize, (gi * plane) as isize],
        c_stride: go * plane,
    };
    batched_matmul(batch, go, plane, gi, w, Mat::rows(x, plane), MatMut::rows(y, plane), accumulate)
}

fn forward<T: Real + Gemm>(s: &ConvShape, x: &[T], w: &[T], bias: Option<&[T]>, y: &mut [T]) {
    let (k, go, gi, plane) = (s.k(), s.group_out(), s.group_in(), s.y_plane());
    if y.is_empty() {
        return;
    }
    if let Some((small, kept)) = trimmed::<T>(s) {
        return forward(&small, x, simplify::trim_weights(s, &kept, w).as_slice(), bias, y);
    }
    if T::DTYPE == DType::Float32
        && let Some(direct) = direct(s)
    {
        let bias = bias.map(bytemuck::cast_slice);
        return direct(s, bytemuck::cast_slice(x), bytemuck::cast_slice(w), bias, bytemuck::cast_slice_mut(y));
    }
    let whole_images = s.is_pointwise() && plane >= WHOLE_IMAGES;
    if T::DTYPE == DType::Float32 && !whole_images {
        let w = implicit_gemm::Weights::plain(s, bytemuck::cast_slice(w));
        let bias = bias.map(bytemuck::cast_slice);
        return implicit_gemm::forward(s, bytemuck::cast_slice(x), &w, bias, bytemuck::cast_slice_mut(y));
    }
    if s.is_pointwise() {
        if let Some(bias) = bias {
            parallel::for_each_chunk_mut(y, plane, 1, |i, y| y.fill(bias[i % s.out_channels]));
        }
        return pointwise(s, x, Mat::rows(w, gi), y, bias.is_some());
    }
    let (positions, tile) = (s.batch * plane, s.tile(k));
    let tiles = positions.div_ceil(tile);
    let y = Shared::new(y);
    parallel::for_each_range(s.groups * tiles, 1, go * k * tile, |task| {
        let (group, start) = (task.start / tiles, task.start % tiles * tile);
        let len = tile.min(positions - start);
        let mut buffer = Buffer::uninit((k + go) * len * size_of::<T>());
        let (cols, sums) = buffer.as_mut_slice::<T>().split_at_mut(k * len);
        unfold(s, &x[group * gi * s.x_plane()..], gi, start, len, cols);
        let a = Mat { offset: group * go * k, ..Mat::rows(w, k) };
        matmul_serial(go, len, k, a, Mat::rows(cols, len), MatMut::rows(sums, len), false);
        by_image(s, start, len, |image, p, at, n| {
            for (o, sums) in sums.chunks_exact(len).enumerate() {
                let channel = group * go + o;
                let place = (image * s.out_channels + channel) * plane + p;
                // SAFETY: `place + n` is within image `image` and channel `channel` of `y`, whose length was checked;
                // groups and tiles are disjoint, so no two tasks write one element.
                let out = unsafe { std::slice::from_raw_parts_mut(y.get().add(place), n) };
                match bias {
                    Some(bias) => out.iter_mut().zip(&sums[at..]).for_each(|(o, v)| *o = *v + bias[channel]),
                    None => out.copy_from_slice(&sums[at..at + n]),
                }
            }
        });
    });
}

/// The convolution of `dy` that gives `dx`, or the elements of it that `shape` says, with the kernel elements `taps`.
fn transposed<T: Real + Gemm>(s: &ConvShape, shape: &ConvShape, w: &[T], taps: &[usize], dy: &[T], dx: &mut [T]) {
    // Other paths want the weights as an array.
    if T::DTYPE == DType::Float32 && direct(shape).is_none() && simplify::trimmed(shape).is_none() {
        let w = implicit_gemm::Weights::transposed(s, bytemuck::cast_slice(w), taps);
        return implicit_gemm::forward(shape, bytemuck::cast_slice(dy), &w, None, bytemuck::cast_slice_mut(dx));
    }
    forward(shape, dy, simplify::transpose_weights(s, w, taps).as_slice(), None, dx);
}

fn backward_data<T: Real + Gemm>(s: &ConvShape, w: &[T], dy: &[T], dx: &mut [T]) {
    if dx.is_empty() {
        return;
    }
    if w.is_empty() || dy.is_empty() {
        return dx.fill(T::ZERO);
    }
    if let Some((small, kept)) = trimmed::<T>(s) {
        return backward_data(&small, simplify::trim_weights(s, &kept, w).as_slice(), dy, dx);
    }
    if T::DTYPE == DType::Float32 {
        let (w, dy) = (bytemuck::cast_slice(w), bytemuck::cast_slice(dy));
        if let Some(mirrored) = s.mirrored().filter(winograd::suits) {
            return winograd::forward(&mirrored, dy, w, true, None, bytemuck::cast_slice_mut(dx));
        }
        let direct: Option<fn(&ConvShape, &[f32], &[f32], &mut [f32])> = match s {
            s if direct::suits(s) => Some(direct::backward_data),
            s if few_channels::suits_data(s) => Some(few_channels::backward_data),
            s if depthwise::is_depthwise(s) => Some(depthwise::backward_data),
            _ => None,
        };
        if let Some(direct) = direct {
            return direct(s, w, dy, bytemuck::cast_slice_mut(dx));
        }
    }
    if let Some(mirrored) = s.mirrored() {
        if s.is_pointwise() && s.y_plane() >= WHOLE_IMAGES {
            return pointwise(&mirrored, dy, Mat::rows(w, s.group_in()).t(), dx, false);
        }
        let backwards: Vec<usize> = (0..s.taps()).rev().collect();
        return transposed(s, &mirrored, w, &backwards, dy, dx);
    }
    if simplify::by_residues(s, dx, |shape, taps, dx| transposed(s, shape, w, taps, dy, dx)) {
        return;
    }
    let (k, go, gi, taps, plane, x_plane) = (s.k(), s.group_out(), s.group_in(), s.taps(), s.y_plane(), s.x_plane());
    // A few channels to a task, and at least four tasks where there are channels enough.
    let channels = (512 / taps).min(gi.div_ceil(4usize.div_ceil(s.batch * s.groups))).clamp(1, gi);
    let blocks = gi.div_ceil(channels);
    let tile = s.tile(channels * taps).min(plane);
    let dx = Shared::new(dx);
    // Image by image: one that does all its tiles alone needs no locks, and the order of additions is fixed.
    let one = ConvShape { batch: 1, ..*s };
    parallel::for_each_range(s.batch * s.groups * blocks, 1, channels * taps * go * plane, |task| {
        let (at, block) = (task.start / blocks, task.start % blocks);
        let (image, group) = (at / s.groups, at % s.groups);
        let first = block * channels;
        let n = channels.min(gi - first);
        let place = (image * s.in_channels + group * gi + first) * x_plane;
        // SAFETY: these are the planes of `n` channels of one image inside `dx`, whose length was checked; every task
        // has other planes.
        let dx = unsafe { std::slice::from_raw_parts_mut(dx.get().add(place), n * x_plane) };
        dx.fill(T::ZERO);
        let mut buffer = Buffer::uninit(n * taps * tile * size_of::<T>());
        let cols = buffer.as_mut_slice::<T>();
        let a = Mat { offset: group * go * k + first * taps, ..Mat::rows(w, k) }.t();
        for start in (0..plane).step_by(tile) {
            let len = tile.min(plane - start);
            let b = Mat { offset: (image * s.out_channels + group * go) * plane + start, ..Mat::rows(dy, plane) };
            matmul_serial(n * taps, len, go, a, b, MatMut::rows(cols, len), false);
            fold(&one, cols, n, start, len, dx);
        }
    });
}

fn backward_weight<T: Real + Gemm>(s: &ConvShape, x: &[T], dy: &[T], dw: &mut [T]) {
    let (k, go, gi, taps, plane) = (s.k(), s.group_out(), s.group_in(), s.taps(), s.y_plane());
    let positions = s.batch * plane;
    if dw.is_empty() || positions == 0 || x.is_empty() {
        return dw.fill(T::ZERO);
    }
    if let Some((small, kept)) = trimmed::<T>(s) {
        let mut part = Buffer::uninit(small.w_len() * size_of::<T>());
        backward_weight(&small, x, dy, part.as_mut_slice::<T>());
        return simplify::untrim_weights(s, &kept, part.as_slice::<T>(), dw);
    }
    if T::DTYPE == DType::Float32 {
        let (x, dy) = (bytemuck::cast_slice(x), bytemuck::cast_slice(dy));
        if depthwise::is_depthwise(s) {
            depthwise::backward_weight(s, x, dy, bytemuck::cast_slice_mut(dw));
            // That path adds 0 · x for neighbours that do not count. Where x is infinite these are NaN, and only then is
            // a product, which reads no neighbours, worth its time.
            if dw.iter().all(|v| !v.is_nan()) {
                return;
            }
        } else if winograd::suits_weight(s) {
            return winograd::backward_weight(s, x, dy, bytemuck::cast_slice_mut(dw));
        } else if direct::suits(s) {
            return direct::backward_weight(s, x, dy, bytemuck::cast_slice_mut(dw));
        } else if few_channels::suits_weight(s) {
            return few_channels::backward_weight(s, x, dy, bytemuck::cast_slice_mut(dw));
        }
        return implicit_gemm::backward_weight(s, x, dy, bytemuck::cast_slice_mut(dw));
    }
    let channels = (576 / taps).clamp(1, gi);
    let blocks = gi.div_ceil(channels);
    let tile = s.tile((channels * taps + go) / 2);
    let tiles = positions.div_ceil(tile);
    // Independent sums over ranges of tiles, as many as shape and memory suggest, added up in order at the end.
    let parts = 16usize.div_ceil(s.groups * blocks).min((4 << 20) / dw.len()).clamp(1, tiles);
    let (parts, per_part) = (tiles.div_ceil(tiles.div_ceil(parts)), tiles.div_ceil(parts));
    let w_len = dw.len();
    let mut partial = Buffer::uninit(if parts > 1 { (parts - 1) * std::mem::size_of_val(dw) } else { 0 });
    let (first_part, rest) = (Shared::new(dw), Shared::new(partial.as_mut_slice::<T>()));
    parallel::for_each_range(parts * s.groups * blocks, 1, channels * taps * go * tile * per_part, |task| {
        let (part, at) = (task.start / (s.groups * blocks), task.start % (s.groups * blocks));
        let (group, block) = (at / blocks, at % blocks);
        let first = block * channels;
        let n = channels.min(gi - first);
        let rows = n * taps;
        let mut buffer = Buffer::uninit((rows * tile + go * tile + go * rows) * size_of::<T>());
        let (cols, more) = buffer.as_mut_slice::<T>().split_at_mut(rows * tile);
        let (grad, sums) = more.split_at_mut(go * tile);
        let begin = part * per_part;
        for t in begin..(begin + per_part).min(tiles) {
            let start = t * tile;
            let len = tile.min(positions - start);
            unfold(s, &x[(group * gi + first) * s.x_plane()..], n, start, len, cols);
            by_image(s, start, len, |image, p, at, n| {
                for o in 0..go {
                    let from = (image * s.out_channels + group * go + o) * plane + p;
                    grad[o * len + at..][..n].copy_from_slice(&dy[from..from + n]);
                }
            });
            let c = MatMut::rows(sums, rows);
            matmul_serial(go, rows, len, Mat::rows(grad, len), Mat::rows(cols, len).t(), c, t > begin);
        }
        for (o, sums) in sums.chunks_exact(rows).enumerate() {
            let place = (group * go + o) * k + first * taps;
            // SAFETY: one row of one block of part `part`, inside `dw` or the buffer of the other parts; no other task
            // has it.
            let out = unsafe {
                let base = if part == 0 { first_part.get() } else { rest.get().add((part - 1) * w_len) };
                std::slice::from_raw_parts_mut(base.add(place), rows)
            };
            out.copy_from_slice(sums);
        }
    });
    let partial = partial.as_slice::<T>();
    parallel::for_each_chunk_mut(dw, 4096, parts, |i, dw| {
        for part in partial.chunks_exact(w_len) {
            dw.iter_mut().zip(&part[i * 4096..]).for_each(|(o, v)| *o += *v);
        }
    });
}

/// `y = x ⋆ w`, plus `bias[channel]` where there is one.
#[by_dtype(T in float)]
pub fn conv_forward<T: RealElement<Wide: Gemm>>(s: &ConvShape, x: &[T], w: &[T], bias: Option<&[T]>, y: &mut [T]) {
    check(s, x.len(), w.len(), y.len());
    assert!(bias.is_none_or(|b| b.len() == s.out_channels), "conv: one bias per output channel");
    let [rx, rw, rb, ry] = &mut <[Room; 4]>::default();
    let (x, w, bias) = (widened(x, rx), widened(w, rw), bias.map(|b| widened(b, rb)));
    narrowed(y, ry, |y| forward(s, x, w, bias, y));
}

/// The gradient by `x` of [`conv_forward`]; also transposed convolution, of `dy` to `dx`.
#[by_dtype(T in float)]
pub fn conv_backward_data<T: RealElement<Wide: Gemm>>(s: &ConvShape, w: &[T], dy: &[T], dx: &mut [T]) {
    check(s, dx.len(), w.len(), dy.len());
    let [rw, ry, rx] = &mut <[Room; 3]>::default();
    let (w, dy) = (widened(w, rw), widened(dy, ry));
    narrowed(dx, rx, |dx| backward_data(s, w, dy, dx));
}

/// Adds `bias[channel]` to the result of [`conv_backward_data`].
#[by_dtype(T in float)]
pub fn add_bias<T: RealElement>(s: &ConvShape, bias: &[T], dx: &mut [T]) {
    assert!(bias.len() == s.in_channels && dx.len() == s.x_len(), "conv: one bias per channel");
    if !dx.is_empty() {
        parallel::for_each_chunk_mut(dx, s.x_plane(), 1, |i, plane| {
            let b = bias[i % s.in_channels].wide();
            plane.iter_mut().for_each(|v| *v = T::narrow(v.wide() + b));
        });
    }
}

/// The gradient by `w` of [`conv_forward`].
#[by_dtype(T in float)]
pub fn conv_backward_weight<T: RealElement<Wide: Gemm>>(s: &ConvShape, x: &[T], dy: &[T], dw: &mut [T]) {
    check(s, x.len(), dw.len(), dy.len());
    let [rx, ry, rw] = &mut <[Room; 3]>::default();
    let (x, dy) = (widened(x, rx), widened(dy, ry));
    narrowed(dw, rw, |dw| backward_weight(s, x, dy, dw));
}

#[cfg(test)]
mod tests;
