//! Direct convolution in `f32` for few input channels, where unfolding costs more than the sums.
//!
//! A band of input rows is copied with its padding, and, for strides, with each row dealt out into as many phases; so
//! whatever the stride, padding and dilation, a kernel element reads consecutive memory at a fixed offset.

use crate::conv::{ConvShape, take_every};
use crate::float::Shared;
use crate::{Buffer, parallel};
use pulp::{Arch, Simd, WithSimd};
use std::ops::Range;

/// Output channels summed at once.
const BLOCK: usize = 8;
/// Elements of a packed band, so that it stays in the second-level cache.
const BAND: usize = 96 << 10;
/// Elements after a band that a vector may read past its end.
const SLACK: usize = 64;
/// Weights of a group up to which they stay in cache while all rows of a band pass.
const MAX_WEIGHTS: usize = 160 << 10;

/// Is this the fastest path for that shape? It wastes the part of the last vector of a row that lies outside; a product
/// wastes the unfolding, which is worst for few output channels.
pub(crate) fn suits(s: &ConvShape) -> bool {
    let width = s.output[2];
    let full = 4 * width >= 3 * width.next_multiple_of(16);
    let few = s.group_out() <= 16 || s.k() <= 32;
    s.taps() > 1 && s.group_out() * s.k() <= MAX_WEIGHTS && (full || few && width >= 6)
}

/// How a band is laid out: `[channel, depth, row, phase, column]`.
struct Layout {
    channels: usize,
    depth: usize,
    /// Output rows of a band.
    band: usize,
    rows: usize,
    columns: usize,
}

impl Layout {
    fn new(s: &ConvShape) -> Layout {
        let span = |out: usize, axis: usize| (out - 1) * s.stride[axis] + (s.kernel[axis] - 1) * s.dilation[axis] + 1;
        let columns = span(s.output[2], 2).div_ceil(s.stride[2]);
        let (channels, depth) = (s.group_in(), span(s.output[0], 0));
        let row = channels * depth * columns * s.stride[2];
        let fit = (BAND / row.max(1)).saturating_sub(span(1, 1)) / s.stride[1];
        let band = fit.clamp(BLOCK, s.output[1].max(BLOCK)).min(s.output[1]);
        Layout { channels, depth, band, rows: span(band, 1), columns }
    }

    fn row_len(&self, s: &ConvShape) -> usize {
        self.columns * s.stride[2]
    }

    fn len(&self, s: &ConvShape) -> usize {
        self.channels * self.depth * self.rows * self.row_len(s)
    }

    /// Where each kernel element of each channel begins.
    fn offsets(&self, s: &ConvShape) -> Vec<usize> {
        let mut out = Vec::with_capacity(s.k());
        for c in 0..self.channels {
            for d in 0..s.kernel[0] {
                for h in 0..s.kernel[1] {
                    for w in 0..s.kernel[2] {
                        let row = (c * self.depth + d * s.dilation[0]) * self.rows + h * s.dilation[1];
                        let w = w * s.dilation[2];
                        out.push(row * self.row_len(s) + w % s.stride[2] * self.columns + w / s.stride[2]);
                    }
                }
            }
        }
        out
    }

    /// Copies the rows that output rows `first..` of a band read; `x` begins at the first channel. `out` was zero when it
    /// was new, and columns of padding stay so.
    fn pack(&self, s: &ConvShape, x: &[f32], first: usize, out: &mut [f32]) {
        let [id, ih, iw] = s.input;
        let (pad, step) = (s.pad_begin[2], s.stride[2]);
        for (i, row) in out[..self.len(s)].chunks_exact_mut(self.row_len(s)).enumerate() {
            let (c, d, h) = (i / (self.rows * self.depth), i / self.rows % self.depth, i % self.rows);
            let d = d.checked_sub(s.pad_begin[0]).filter(|&d| d < id);
            let h = (first * s.stride[1] + h).checked_sub(s.pad_begin[1]).filter(|&h| h < ih);
            let (Some(d), Some(h)) = (d, h) else {
                row.fill(0.0);
                continue;
            };
            let x = &x[((c * id + d) * ih + h) * iw..][..iw];
            for (phase, out) in row.chunks_exact_mut(self.columns).enumerate() {
                // Column q holds input column q * step + phase - pad.
                let low = pad.saturating_sub(phase).div_ceil(step).min(out.len());
                let high = (iw + pad).saturating_sub(phase).div_ceil(step).clamp(low, out.len());
                if low < high {
                    take_every(&x[low * step + phase - pad..], step, &mut out[low..high]);
                }
            }
        }
    }
}

/// One band of one image and group.
struct Band<'a> {
    s: &'a ConvShape,
    layout: &'a Layout,
    offsets: &'a [usize],
    x: &'a [f32],
    /// Weights of the group, block by block as `[k, channels of the block]`.
    w: &'a [f32],
    bias: Option<&'a [f32]>,
    /// The first output channel of the group in this image.
    y: *mut f32,
    rows: Range<usize>,
}

impl WithSimd for Band<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let s = self.s;
        let row_len = self.layout.row_len(s);
        for d in 0..s.output[0] {
            let x = d * s.stride[0] * self.layout.rows * row_len;
            for h in self.rows.clone() {
                let x = x + (h - self.rows.start) * s.stride[1] * row_len;
                for o in (0..s.group_out()).step_by(BLOCK) {
                    self.block(simd, BLOCK.min(s.group_out() - o), x, o, d * s.output[1] + h);
                }
            }
        }
    }
}

impl Band<'_> {
    /// A row of output of `n` channels.
    #[inline(always)]
    fn block<S: Simd>(&self, simd: S, n: usize, x: usize, o: usize, row: usize) {
        let mut w = 0;
        while w < self.s.output[2] {
            let two = self.s.output[2] - w > S::F32_LANES;
            macro_rules! sizes {
                ($($n:literal),*) => {
                    match n {
                        $($n if two => self.sums::<S, $n, 2>(simd, x + w, o, row, w),)*
                        $($n => self.sums::<S, $n, 1>(simd, x + w, o, row, w),)*
                        _ => unreachable!("a block has at most {BLOCK} parts"),
                    }
                };
            }
            sizes!(1, 2, 3, 4, 5, 6, 7, 8);
            w += if two { 2 * S::F32_LANES } else { S::F32_LANES };
        }
    }

    #[inline(always)]
    fn sums<S: Simd, const N: usize, const V: usize>(&self, simd: S, x: usize, o: usize, row: usize, column: usize) {
        let s = self.s;
        let k = self.offsets.len();
        let mut sum = [[simd.splat_f32s(0.0); V]; N];
        if let Some(bias) = self.bias {
            for n in 0..N {
                sum[n] = [simd.splat_f32s(bias[o + n]); V];
            }
        }
        let w = &self.w[o * k..][..N * k];
        for (t, &offset) in self.offsets.iter().enumerate() {
            let load = |place: usize| {
                debug_assert!(place + S::F32_LANES <= self.x.len());
                // SAFETY: a kernel element of a window inside the packed band, or at most two vectors after it, which
                // the slack covers.
                unsafe { self.x.as_ptr().add(place).cast::<S::f32s>().read_unaligned() }
            };
            let x: [S::f32s; V] = std::array::from_fn(|v| load(x + offset + v * S::F32_LANES));
            for n in 0..N {
                let w = simd.splat_f32s(w[t * N + n]);
                for v in 0..V {
                    sum[n][v] = simd.mul_add_e_f32s(w, x[v], sum[n][v]);
                }
            }
        }
        for n in 0..N {
            let place = (o + n) * s.y_plane() + row * s.output[2];
            for v in 0..V {
                let column = column + v * S::F32_LANES;
                let len = (s.output[2] - column).min(S::F32_LANES);
                // SAFETY: `len` elements of one row of one output channel of this band, which no other task writes.
                let out = unsafe { std::slice::from_raw_parts_mut(self.y.add(place + column), len) };
                if len == S::F32_LANES {
                    // SAFETY: as many elements as a vector has.
                    unsafe { out.as_mut_ptr().cast::<S::f32s>().write_unaligned(sum[n][v]) };
                } else {
                    simd.partial_store_f32s(out, sum[n][v]);
                }
            }
        }
    }
}

pub(crate) fn forward(s: &ConvShape, x: &[f32], w: &[f32], bias: Option<&[f32]>, y: &mut [f32]) {
    let layout = Layout::new(s);
    let offsets = layout.offsets(s);
    let (k, gi, go) = (s.k(), s.group_in(), s.group_out());
    let mut packed = Buffer::uninit(std::mem::size_of_val(w));
    for (group, out) in w.chunks_exact(go * k).zip(packed.as_mut_slice::<f32>().chunks_exact_mut(go * k)) {
        for (block, out) in group.chunks(BLOCK * k).zip(out.chunks_mut(BLOCK * k)) {
            let n = block.len() / k;
            for (t, out) in out.chunks_exact_mut(n).enumerate() {
                out.iter_mut().enumerate().for_each(|(i, o)| *o = block[i * k + t]);
            }
        }
    }
    let packed = packed.as_slice::<f32>();
    let bands = s.output[1].div_ceil(layout.band);
    let cost = 2 * go * k * s.output[0] * layout.band * s.output[2];
    // Enough bands to a task that handing it over is cheap.
    let per_task = ((1 << 18) / cost.max(1)).max(1);
    let y = Shared::new(y);
    parallel::for_each_range(s.batch * s.groups * bands, per_task, cost, |tasks| {
        let mut band = Buffer::zeroed(4 * (layout.len(s) + SLACK));
        for task in tasks {
            let (at, first) = (task / bands, task % bands * layout.band);
            let (image, group) = (at / s.groups, at % s.groups);
            let x = &x[(image * s.in_channels + group * gi) * s.x_plane()..][..gi * s.x_plane()];
            layout.pack(s, x, first, band.as_mut_slice());
            // SAFETY: the first channel of a group of an image lies inside `y`, whose length was checked.
            let y = unsafe { y.get().add((image * s.out_channels + group * go) * s.y_plane()) };
            Arch::new().dispatch(Band {
                s,
                layout: &layout,
                offsets: &offsets,
                x: band.as_slice(),
                w: &packed[group * go * k..][..go * k],
                bias: bias.map(|b| &b[group * go..][..go]),
                y,
                rows: first..(first + layout.band).min(s.output[1]),
            });
        }
    });
}

/// Part of the gradient by the weights of one group: `dw[o, t] += Σ dy[o] · x` shifted by kernel element `t`, over one
/// band of one image. The gradient comes packed in stretches of whole vectors with zeros where it has no element, so
/// what the vectors read of `x` beyond a row does not count.
struct WeightSums<'a> {
    taps: usize,
    offsets: &'a [usize],
    x: &'a [f32],
    dy: &'a [f32],
    stretches: &'a Stretches,
    dw: &'a mut [f32],
}

/// How the gradient of a band is packed: `[channel, stretch, len]`, where stretch `i` meets `x` at `starts[i]`.
struct Stretches {
    starts: Vec<usize>,
    len: usize,
    /// Rows of output in a stretch, and from one to the next.
    rows: usize,
    pitch: usize,
}

/// Elements of the widest vector.
const WIDEST: usize = 16;

impl Stretches {
    fn new(s: &ConvShape, layout: &Layout) -> Stretches {
        let (row_len, width) = (layout.row_len(s), s.output[2]);
        let depth = |d: usize| d * s.stride[0] * layout.rows * row_len;
        if s.stride[1] == 1 && s.stride[2] == 1 {
            // Rows at the pitch of `x`, the gaps between them zero: one long stretch.
            let starts = (0..s.output[0]).map(depth).collect();
            let len = ((layout.band - 1) * row_len + width).next_multiple_of(WIDEST);
            return Stretches { starts, len, rows: layout.band, pitch: row_len };
        }
        let starts = (0..s.output[0] * layout.band)
            .map(|i| depth(i / layout.band) + i % layout.band * s.stride[1] * row_len)
            .collect();
        Stretches { starts, len: width.next_multiple_of(WIDEST), rows: 1, pitch: width }
    }

    /// Packs output rows `rows` of `go` channels; `out` was zero when it was new, and gaps stay so.
    fn pack(&self, s: &ConvShape, band: usize, rows: Range<usize>, dy: &[f32], out: &mut [f32]) {
        let width = s.output[2];
        for (o, dy) in dy.chunks_exact(s.y_plane()).enumerate() {
            for d in 0..s.output[0] {
                for h in 0..band {
                    let row = d * band + h;
                    let at = (o * self.starts.len() + row / self.rows) * self.len + row % self.rows * self.pitch;
                    let out = &mut out[at..at + width];
                    if h < rows.len() {
                        out.copy_from_slice(&dy[(d * s.output[1] + rows.start + h) * width..][..width]);
                    } else {
                        out.fill(0.0);
                    }
                }
            }
        }
    }
}

impl WithSimd for WeightSums<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let k = self.offsets.len();
        let go = self.dw.len() / k;
        // Blocks of nearly equal size, so that none is left with a single kernel element.
        let taps = self.taps;
        let step = taps.div_ceil(taps.div_ceil(4));
        for o in (0..go).step_by(6) {
            for channel in (0..k).step_by(taps) {
                for t in (channel..channel + taps).step_by(step) {
                    macro_rules! sizes {
                        ($($n:literal),*) => {
                            match (6.min(go - o), step.min(channel + taps - t)) {
                                $(
                                    ($n, 1) => self.block::<S, $n, 1>(simd, o, t),
                                    ($n, 2) => self.block::<S, $n, 2>(simd, o, t),
                                    ($n, 3) => self.block::<S, $n, 3>(simd, o, t),
                                    ($n, 4) => self.block::<S, $n, 4>(simd, o, t),
                                )*
                                _ => unreachable!("blocks are at most 6 by 4"),
                            }
                        };
                    }
                    sizes!(1, 2, 3, 4, 5, 6);
                }
            }
        }
    }
}

impl WeightSums<'_> {
    #[inline(always)]
    fn block<S: Simd, const N: usize, const K: usize>(&mut self, simd: S, o: usize, t: usize) {
        let Stretches { starts, len, .. } = self.stretches;
        let offsets = &self.offsets[t..t + K];
        let step = starts.len() * len;
        let mut sum = [[simd.splat_f32s(0.0); K]; N];
        let far = starts.iter().max().unwrap_or(&0) + offsets.iter().max().unwrap_or(&0);
        assert!(far + len <= self.x.len() && (o + N) * step <= self.dy.len() && len.is_multiple_of(WIDEST));
        for (i, start) in starts.iter().enumerate() {
            let mut w = 0;
            while w < *len {
                // SAFETY: vectors divide the length of a stretch, and all stretches were just found inside both slices.
                unsafe {
                    let mut x = [simd.splat_f32s(0.0); K];
                    for k in 0..K {
                        x[k] = self.x.as_ptr().add(start + offsets[k] + w).cast::<S::f32s>().read_unaligned();
                    }
                    for n in 0..N {
                        let dy = self.dy.as_ptr().add((o + n) * step + i * len + w);
                        let dy = dy.cast::<S::f32s>().read_unaligned();
                        for k in 0..K {
                            sum[n][k] = simd.mul_add_e_f32s(dy, x[k], sum[n][k]);
                        }
                    }
                }
                w += S::F32_LANES;
            }
        }
        for n in 0..N {
            for k in 0..K {
                self.dw[(o + n) * self.offsets.len() + t + k] += simd.reduce_sum_f32s(sum[n][k]);
            }
        }
    }
}

/// Is [`backward_weight`] the fastest path for that shape?
pub(crate) fn suits_weight(s: &ConvShape) -> bool {
    s.taps() > 1 && s.output[2] >= 6 && s.k() <= if s.stride == [1; 3] { 600 } else { 256 }
}

/// Gradient by the weights.
pub(crate) fn backward_weight(s: &ConvShape, x: &[f32], dy: &[f32], dw: &mut [f32]) {
    let layout = Layout::new(s);
    let offsets = layout.offsets(s);
    let (gi, go) = (s.group_in(), s.group_out());
    let stretches = Stretches::new(s, &layout);
    let bands = s.output[1].div_ceil(layout.band);
    let units = s.batch * bands;
    // Independent sums over ranges of bands, added up in order at the end.
    let per_part = units.div_ceil(16usize.div_ceil(s.groups).min(units));
    let parts = units.div_ceil(per_part);
    let mut sums = Buffer::zeroed(parts * std::mem::size_of_val(dw));
    let cost = 2 * per_part * s.output[0] * layout.band * s.output[2];
    let one = dw.len() / s.groups;
    parallel::for_each_chunk_mut(sums.as_mut_slice::<f32>(), one, cost, |task, dw| {
        let (part, group) = (task / s.groups, task % s.groups);
        let mut band = Buffer::zeroed(4 * (layout.len(s) + SLACK));
        let mut grad = Buffer::zeroed(4 * go * stretches.starts.len() * stretches.len);
        for unit in part * per_part..((part + 1) * per_part).min(units) {
            let (image, first) = (unit / bands, unit % bands * layout.band);
            let x = &x[(image * s.in_channels + group * gi) * s.x_plane()..][..gi * s.x_plane()];
            layout.pack(s, x, first, band.as_mut_slice());
            let rows = first..(first + layout.band).min(s.output[1]);
            let dy = &dy[(image * s.out_channels + group * go) * s.y_plane()..][..go * s.y_plane()];
            stretches.pack(s, layout.band, rows, dy, grad.as_mut_slice());
            Arch::new().dispatch(WeightSums {
                taps: s.taps(),
                offsets: &offsets,
                x: band.as_slice(),
                dy: grad.as_slice(),
                stretches: &stretches,
                dw,
            });
        }
    });
    let sums = sums.as_slice::<f32>();
    let (first, rest) = sums.split_at(dw.len());
    dw.copy_from_slice(first);
    for part in rest.chunks_exact(dw.len()) {
        dw.iter_mut().zip(part).for_each(|(o, v)| *o += *v);
    }
}
