//! Convolution in `f32` as a matrix product whose factors are packed straight from images and weights: no unfolded copy
//! exists beyond the panels that the product is working on. Tiles run across images, so small images fill them too.

use crate::conv::{ConvShape, take_every};
use crate::gemm::engine::multiply;
use crate::gemm::microkernel::{Out, TileSize};
use crate::gemm::pack::{Lines, Strided, transpose};
use crate::shared::Shared;
use crate::simd::simd_fn;
use crate::{Buffer, parallel};
use std::ops::Range;

/// From so many groups on they are handed to threads whole.
const MANY_GROUPS: usize = 8;
/// Elements of both packed factors of a gradient by the weights: longer sums are made in several goes.
const FACTORS: usize = 1 << 20;
/// The same for one of the parts that threads sum independently: both factors stay in the second-level cache.
const OWN_FACTORS: usize = 160 << 10;
/// Positions that are at least worth a part or a go of their own; the fewest and the most parts.
const SHORTEST: usize = 512;
const FEW_PARTS: usize = 4;
const MOST_PARTS: usize = 16;
/// Positions that are unfolded before they are transposed into a panel.
const STRETCH: usize = 64;
/// The widest panel.
const WIDEST: usize = 32;

/// Kernel elements and the range of output columns for which they read inside a row.
struct Tap {
    place: [usize; 3],
    columns: Range<usize>,
}

/// The windows of the images, as lines of a matrix: `x` begins at the first channel of the group.
struct Windows<'a> {
    s: &'a ConvShape,
    x: &'a [f32],
    taps: Vec<Tap>,
}

/// Output positions in one row of one image.
struct Stretch {
    /// The first one's place among those asked for.
    at: usize,
    len: usize,
    image: usize,
    /// Where its windows begin along the first two axes; wraps around where that is in the padding.
    corner: [usize; 2],
    column: usize,
}

/// Elements of `x` for consecutive positions from `at` on.
struct Run {
    at: usize,
    len: usize,
    from: usize,
}

impl<'a> Windows<'a> {
    fn new(s: &'a ConvShape, x: &'a [f32]) -> Windows<'a> {
        let [_, kh, kw] = s.kernel;
        let tap = |t: usize| {
            let place = [t / (kh * kw), t / kw % kh, t % kw];
            let (shift, pad) = (place[2] * s.dilation[2], s.pad_begin[2]);
            let first = pad.saturating_sub(shift).div_ceil(s.stride[2]);
            let last = (s.input[2] + pad).saturating_sub(shift).div_ceil(s.stride[2]);
            Tap { place, columns: first..last.max(first) }
        };
        Windows { s, x, taps: (0..s.taps()).map(tap).collect() }
    }

    /// Cuts positions, counted through all images, at the ends of rows.
    #[inline(always)]
    fn stretches(&self, start: usize, count: usize, out: &mut Vec<Stretch>) {
        let s = self.s;
        let [_, oh, ow] = s.output;
        let plane = s.y_plane();
        let (mut image, p) = (start / plane, start % plane);
        let (mut d, mut h, mut column) = (p / (oh * ow), p / ow % oh, p % ow);
        let mut at = 0;
        out.clear();
        while at < count {
            let len = (count - at).min(ow - column);
            let corner = [d * s.stride[0], h * s.stride[1]];
            let corner = [corner[0].wrapping_sub(s.pad_begin[0]), corner[1].wrapping_sub(s.pad_begin[1])];
            out.push(Stretch { at, len, image, corner, column });
            at += len;
            (column, h) = (0, h + 1);
            if h == oh {
                (h, d) = (0, d + 1);
                if d == s.output[0] {
                    (d, image) = (0, image + 1);
                }
            }
        }
    }

    /// What a kernel element reads for a stretch, if that is not all padding, in channel 0.
    #[inline(always)]
    fn run(&self, g: &Stretch, tap: &Tap) -> Option<Run> {
        let s = self.s;
        let d = g.corner[0].wrapping_add(tap.place[0] * s.dilation[0]);
        let h = g.corner[1].wrapping_add(tap.place[1] * s.dilation[1]);
        let low = tap.columns.start.max(g.column);
        let high = tap.columns.end.min(g.column + g.len);
        if d >= s.input[0] || h >= s.input[1] || low >= high {
            return None;
        }
        let row = (g.image * s.in_channels * s.input[0] + d) * s.input[1] + h;
        let from = row * s.input[2] + low * s.stride[2] + tap.place[2] * s.dilation[2] - s.pad_begin[2];
        Some(Run { at: g.at + low - g.column, len: high - low, from })
    }
}

/// Copies a run of elements that are `step` apart. (Short ones are not worth a call of `memcpy`.)
#[inline(always)]
fn copy_run(x: &[f32], step: usize, out: &mut [f32]) {
    if step > 1 {
        return take_every(x, step, out);
    }
    let (eights, rest) = out.as_chunks_mut::<8>();
    let (from, from_rest) = x[..8 * eights.len() + rest.len()].as_chunks::<8>();
    eights.iter_mut().zip(from).for_each(|(o, v)| *o = *v);
    let (fours, rest) = rest.as_chunks_mut::<4>();
    let (from, from_rest) = from_rest.as_chunks::<4>();
    fours.iter_mut().zip(from).for_each(|(o, v)| *o = *v);
    match (rest, from_rest) {
        ([a], [x]) => *a = *x,
        ([a, b], [x, y]) => (*a, *b) = (*x, *y),
        ([a, b, c], [x, y, z]) => (*a, *b, *c) = (*x, *y, *z),
        _ => {}
    }
}

simd_fn! {
    /// A panel `[channel, kernel element, position]` for positions from `first` on.
    fn pack_positions[](w: &'a Windows<'a>, first: usize, count: usize, channels: Range<usize>, width: usize, out: &'a mut [f32]) {
        let (x_plane, step, taps) = (w.s.x_plane(), w.s.stride[2], w.taps.len());
        let mut stretches = Vec::with_capacity(WIDEST);
        w.stretches(first, count, &mut stretches);
        let mut runs: Vec<Run> = Vec::with_capacity(WIDEST);
        for (t, tap) in w.taps.iter().enumerate() {
            runs.clear();
            let mut covered = 0;
            for run in stretches.iter().filter_map(|g| w.run(g, tap)) {
                covered += run.len;
                match runs.last_mut() {
                    Some(last) if last.at + last.len == run.at && last.from + last.len * step == run.from => {
                        last.len += run.len;
                    }
                    _ => runs.push(run),
                }
            }
            for c in channels.clone() {
                let row = &mut out[((c - channels.start) * taps + t) * width..][..width];
                if let ([run], Ok(row), 1) = (runs.as_slice(), <&mut [f32; WIDEST]>::try_from(&mut *row), step)
                    && run.len == WIDEST
                    && let Some(from) = w.x[run.from + c * x_plane..].first_chunk()
                {
                    *row = *from;
                    continue;
                }
                if covered < width {
                    row.fill(0.0);
                }
                for run in &runs {
                    copy_run(&w.x[run.from + c * x_plane..], step, &mut row[run.at..run.at + run.len]);
                }
            }
        }
    }
}

impl Lines for Windows<'_> {
    fn pack(&self, first: usize, count: usize, depth: Range<usize>, width: usize, out: &mut [f32]) {
        let taps = self.taps.len();
        debug_assert!(depth.start.is_multiple_of(taps) && depth.end.is_multiple_of(taps));
        pack_positions(self, first, count, depth.start / taps..depth.end / taps, width, out);
    }
}

/// The same matrix transposed: a line for each channel and kernel element, as long as there are positions from `start` on.
struct Unfolded<'a> {
    windows: &'a Windows<'a>,
    start: usize,
}

simd_fn! {
    /// Rows `[line, position]` of [`STRETCH`] elements.
    fn unfold_lines[](w: &'a Windows<'a>, lines: Range<usize>, stretches: &'a [Stretch], out: &'a mut [f32]) {
        let (x_plane, step) = (w.s.x_plane(), w.s.stride[2]);
        for (line, out) in lines.zip(out.chunks_exact_mut(STRETCH)) {
            let (c, tap) = (line / w.taps.len(), &w.taps[line % w.taps.len()]);
            for g in stretches {
                let out = &mut out[g.at..g.at + g.len];
                match w.run(g, tap) {
                    Some(run) => {
                        let low = run.at - g.at;
                        out[..low].fill(0.0);
                        out[low + run.len..].fill(0.0);
                        copy_run(&w.x[run.from + c * x_plane..], step, &mut out[low..low + run.len]);
                    }
                    None => out.fill(0.0),
                }
            }
        }
    }
}

impl Lines for Unfolded<'_> {
    fn pack(&self, first: usize, count: usize, depth: Range<usize>, width: usize, out: &mut [f32]) {
        let mut rows = [0f32; WIDEST * STRETCH];
        let mut stretches = Vec::with_capacity(STRETCH);
        for d in depth.clone().step_by(STRETCH) {
            let len = STRETCH.min(depth.end - d);
            self.windows.stretches(self.start + d, len, &mut stretches);
            unfold_lines(self.windows, first..first + count, &stretches, &mut rows);
            let out = &mut out[(d - depth.start) * width..][..len * width];
            // SAFETY: `count` rows of `STRETCH` elements lie in `rows`, and no panel is wider than it has room for.
            unsafe { transpose(rows[..count * STRETCH].as_ptr(), STRETCH as isize, count, len, width, out) };
        }
    }
}

/// The planes of channels, as lines that go on from image to image.
struct Planes<'a> {
    /// Begins at the first channel and image.
    data: &'a [f32],
    plane: usize,
    image_step: usize,
    /// The position at depth 0.
    start: usize,
}

impl Lines for Planes<'_> {
    fn pack(&self, first: usize, count: usize, depth: Range<usize>, width: usize, out: &mut [f32]) {
        let mut d = depth.start;
        while d < depth.end {
            let (image, p) = ((self.start + d) / self.plane, (self.start + d) % self.plane);
            let len = (self.plane - p).min(depth.end - d);
            let from = &self.data[image * self.image_step + first * self.plane + p..];
            assert!((count - 1) * self.plane + len <= from.len());
            let out = &mut out[(d - depth.start) * width..][..len * width];
            // SAFETY: just checked.
            unsafe { transpose(from.as_ptr(), self.plane as isize, count, len, width, out) };
            d += len;
        }
    }
}

/// Weights with the channels of the result as lines.
pub(crate) struct Weights<'a> {
    w: &'a [f32],
    /// From one channel of the result to the next, from one channel that is summed over to the next, and from one group
    /// to the next.
    line: usize,
    channel: usize,
    group: usize,
    /// Which kernel elements, in which order; `None` for all as they are.
    taps: Option<&'a [usize]>,
}

impl<'a> Weights<'a> {
    /// Those of a convolution as they are.
    pub(crate) fn plain(s: &ConvShape, w: &'a [f32]) -> Weights<'a> {
        Weights { w, line: s.k(), channel: s.taps(), group: s.group_out() * s.k(), taps: None }
    }

    /// Those of a backward by data of `s`, with the kernel elements that it uses.
    pub(crate) fn transposed(s: &ConvShape, w: &'a [f32], taps: &'a [usize]) -> Weights<'a> {
        Weights { w, line: s.taps(), channel: s.k(), group: s.group_out() * s.k(), taps: Some(taps) }
    }
}

/// The weights of one group.
struct GroupWeights<'a>(&'a Weights<'a>, &'a [f32]);

impl Lines for GroupWeights<'_> {
    fn pack(&self, first: usize, count: usize, depth: Range<usize>, width: usize, out: &mut [f32]) {
        let GroupWeights(&Weights { line, channel, taps, .. }, w) = *self;
        let one_row = |w, step| Strided::of(w, first + count, line, depth.end, step);
        let taps = match taps {
            None => return one_row(w, 1).pack(first, count, depth, width, out),
            Some([tap]) => return one_row(&w[*tap..], channel).pack(first, count, depth, width, out),
            Some(taps) => taps,
        };
        let n = taps.len();
        for (c, out) in (depth.start / n..depth.end / n).zip(out.chunks_exact_mut(n * width)) {
            for l in 0..count {
                let from = &w[(first + l) * line + c * channel..];
                for (out, &t) in out.chunks_exact_mut(width).zip(taps) {
                    out[l] = from[t];
                }
            }
            if count < width {
                out.chunks_exact_mut(width).for_each(|out| out[count..].fill(0.0));
            }
        }
    }
}

/// `y = x ⋆ w + bias`.
pub(crate) fn forward(s: &ConvShape, x: &[f32], w: &Weights, bias: Option<&[f32]>, y: &mut [f32]) {
    let (go, gi, k, plane) = (s.group_out(), s.group_in(), s.k(), s.y_plane());
    let n = s.batch * plane;
    if k == 0 {
        let value = |channel: usize| bias.map_or(0.0, |b| b[channel]);
        return y.chunks_exact_mut(plane).enumerate().for_each(|(i, y)| y.fill(value(i % s.out_channels)));
    }
    let y = Shared::new(y);
    let lanes = TileSize::here::<f32>().lanes;
    // Where one image fills vectors badly, they lie along the channels.
    let swap =
        s.batch == 1 && bias.is_none() && 8 * n * go.next_multiple_of(lanes) < 7 * go * n.next_multiple_of(lanes);
    let one = |group: usize| {
        let windows = Windows::new(s, &x[group * gi * s.x_plane()..]);
        let weights = GroupWeights(w, &w.w[group * w.group..][..w.group]);
        let bias = bias.map(|b| &b[group * go..][..go]);
        // SAFETY: the first channel of a group in `y`, whose length was checked.
        let ptr = unsafe { y.get().add(group * go * plane) };
        let image_stride = s.out_channels * plane;
        let out = Out { ptr, row_stride: plane, col_stride: 1, plane, image_stride, accumulate: false, bias };
        // SAFETY: the channels of this group in all images; no other group has them.
        unsafe {
            if swap {
                let out = Out { row_stride: 1, col_stride: plane, plane: go, image_stride: 0, ..out };
                multiply((n, go, k), &windows, &weights, s.taps(), out, true);
            } else {
                multiply((go, n, k), &weights, &windows, s.taps(), out, true);
            }
        }
    };
    if s.groups < MANY_GROUPS {
        (0..s.groups).for_each(one);
    } else {
        parallel::for_each_range(s.groups, 1, go * n * k / 8, |g| one(g.start));
    }
}

/// The gradient by the weights of one group, summed over some of the positions. Packed factors have about `factors`
/// elements at a time.
fn weight_sums(
    s: &ConvShape,
    x: &[f32],
    dy: &[f32],
    group: usize,
    positions: Range<usize>,
    factors: usize,
    dw: &mut [f32],
) {
    let (go, gi, k, plane) = (s.group_out(), s.group_in(), s.k(), s.y_plane());
    let goes = positions.len().div_ceil((factors / (go + k)).max(SHORTEST));
    let each = positions.len().div_ceil(goes).next_multiple_of(STRETCH);
    let windows = Windows::new(s, &x[group * gi * s.x_plane()..]);
    for start in positions.clone().step_by(each) {
        let len = each.min(positions.end - start);
        let data = &dy[group * go * plane..];
        let grad = Planes { data, plane, image_step: s.out_channels * plane, start };
        let unfolded = Unfolded { windows: &windows, start };
        let planes = Planes { data: &x[group * gi * s.x_plane()..], plane, image_step: s.in_channels * plane, start };
        // Where every output reads its own place there is nothing to unfold.
        let input: &dyn Lines = if s.is_pointwise() { &planes } else { &unfolded };
        let (ptr, accumulate) = (dw.as_mut_ptr(), start > positions.start);
        let out = Out { ptr, row_stride: k, col_stride: 1, plane: k, image_stride: 0, accumulate, bias: None };
        // SAFETY: the result has `go` rows of `k` elements, and is ours alone.
        unsafe { multiply((go, k, len), &grad, input, 1, out, true) };
    }
}

/// The gradient by the weights.
pub(crate) fn backward_weight(s: &ConvShape, x: &[f32], dy: &[f32], dw: &mut [f32]) {
    let (one, positions) = (s.group_out() * s.k(), s.batch * s.y_plane());
    // Few weights and many positions: independent sums over parts of these, added up in order at the end, as long as
    // reading the sums again is little against reading the factors.
    let parts = (positions / SHORTEST).min(positions * (s.group_out() + s.k()) / (4 * one)).min(MOST_PARTS);
    let (parts, factors) = if parts < FEW_PARTS { (1, FACTORS) } else { (parts, OWN_FACTORS) };
    let each = positions.div_ceil(parts).next_multiple_of(STRETCH);
    let parts = positions.div_ceil(each);
    let len = dw.len();
    let mut rest = Buffer::uninit(4 * (parts - 1) * len);
    let (first, others) = (Shared::new(dw), Shared::new(rest.as_mut_slice::<f32>()));
    let task = |task: usize| {
        let (part, group) = (task / s.groups, task % s.groups);
        // SAFETY: the weights of one group, in the result or the buffer of the other parts; no other task has them.
        let dw = unsafe {
            let base = if part == 0 { first.get() } else { others.get().add((part - 1) * len) };
            std::slice::from_raw_parts_mut(base.add(group * one), one)
        };
        weight_sums(s, x, dy, group, part * each..positions.min((part + 1) * each), factors, dw);
    };
    if parts > 1 || s.groups >= MANY_GROUPS {
        parallel::for_each_range(parts * s.groups, 1, one * each / 8, |t| task(t.start));
    } else {
        (0..s.groups).for_each(task);
    }
    let rest = rest.as_slice::<f32>();
    parallel::for_each_chunk_mut(dw, 4096, parts, |i, dw| {
        for part in rest.chunks_exact(len) {
            dw.iter_mut().zip(&part[i * 4096..]).for_each(|(o, v)| *o += *v);
        }
    });
}
