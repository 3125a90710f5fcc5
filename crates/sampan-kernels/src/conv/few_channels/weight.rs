//! The gradient by the weights.

use super::layout::{BAND, Layout};
use super::pack::{Pack, copy};
use super::{WIDEST, even, possible};
use crate::conv::ConvShape;
use crate::simd::each;
use crate::{Buffer, parallel};
use pulp::{Arch, Simd, WithSimd};
use std::ops::Range;

/// Kernel elements whose gradients are summed at once, and output channels for so many of them.
const TAPS: usize = 5;
const WEIGHT_CHANNELS: [usize; TAPS + 1] = [0, 8, 8, 8, 6, 5];
/// Gradient elements of a block of channels that stay in the first-level cache while all kernel elements pass.
const NEAR: usize = 4 << 10;

/// Operations of an independent part of the gradient by the weights.
const PART: usize = 1 << 21;
/// Positions of a part that make adding up lanes cheap.
const LONG: usize = 768;

/// Packs the gradient of a band of some images as `[channel, depth, row, image, column]`.
struct PackGrad<'a> {
    s: &'a ConvShape,
    images: usize,
    rows: Range<usize>,
    /// From the first channel of the group in the first image.
    dy: &'a [f32],
    out: &'a mut [f32],
}

impl WithSimd for PackGrad<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let PackGrad { s, images, rows, dy, out } = self;
        let [depth, height, width] = s.output;
        // The rows of one image follow each other.
        let (lines, len) = if images == 1 { (1, rows.len() * width) } else { (rows.len(), width) };
        let mut to = 0;
        for o in 0..s.group_out() {
            for d in 0..depth {
                for line in 0..lines {
                    for image in 0..images {
                        let plane = (image * s.out_channels + o) * depth + d;
                        let from = (plane * height + rows.start) * width + line * len;
                        if from + len + WIDEST <= dy.len() {
                            let out = &mut out[to..to + len + WIDEST];
                            // SAFETY: both slices have a vector more than is copied, and rows are written in order.
                            unsafe { copy(simd, dy.as_ptr().add(from), out.as_mut_ptr(), len) };
                        } else {
                            out[to..to + len].copy_from_slice(&dy[from..from + len]);
                        }
                        to += len;
                    }
                }
            }
        }
    }
}

/// Part of the gradient by the weights of one group: `dw[o, t] += Σ dy[o] · x` shifted by kernel element `t`, over one
/// band of some images.
struct WeightSums<'a> {
    /// Kernel elements, those of one kernel column after each other: their place in `dw` and where they begin in `x`.
    taps: &'a [(usize, usize)],
    /// Taps of a block.
    step: usize,
    /// Output channels.
    channels: usize,
    /// The packed input and the packed gradient of one depth, where the channels of the gradient are `stride` apart.
    x: &'a [f32],
    dy: &'a [f32],
    stride: usize,
    /// Positions.
    len: usize,
    dw: &'a mut [f32],
}

impl WithSimd for WeightSums<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let far = self.taps.iter().map(|t| t.1).max().unwrap_or(0) + self.len;
        assert!(far <= self.x.len() && self.len >= S::F32_LANES);
        assert!((self.channels - 1) * self.stride + self.len <= self.dy.len());
        let tail = tail(simd, self.len);
        for block in even(self.channels, WEIGHT_CHANNELS[self.step]) {
            for taps in self.taps.chunks(self.step) {
                macro_rules! sizes {
                    ($($t:literal: $($n:literal)*;)*) => {
                        match (taps.len(), block.len()) {
                            $($(($t, $n) => self.block::<S, $n, $t>(simd, block.start, taps, tail),)*)*
                            _ => unreachable!("blocks are as wide as registers allow"),
                        }
                    };
                }
                sizes! {
                    1: 1 2 3 4 5 6 7 8; 2: 1 2 3 4 5 6 7 8; 3: 1 2 3 4 5 6 7 8; 4: 1 2 3 4 5 6; 5: 1 2 3 4 5;
                }
            }
        }
    }
}

/// A mask of the lanes at the end of a vector that `len` has beyond its whole vectors.
#[inline(always)]
fn tail<S: Simd>(simd: S, len: usize) -> S::f32s {
    let mut lanes = [0u32; 2 * WIDEST];
    lanes[WIDEST..].fill(u32::MAX);
    let _ = simd;
    let skip = WIDEST + len % S::F32_LANES - S::F32_LANES;
    // SAFETY: a vector has at most `WIDEST` lanes, so it ends before the array does.
    unsafe { lanes.as_ptr().add(skip).cast::<S::f32s>().read_unaligned() }
}

impl WeightSums<'_> {
    #[inline(always)]
    fn block<S: Simd, const N: usize, const T: usize>(
        &mut self,
        simd: S,
        o: usize,
        taps: &[(usize, usize)],
        tail: S::f32s,
    ) {
        let x: [*const f32; T] = each!(t => self.x[taps[t].1..].as_ptr());
        let dy: [*const f32; N] = each!(n => self.dy[(o + n) * self.stride..].as_ptr());
        let mut sum = [[simd.splat_f32s(0.0); T]; N];
        // All positions were found inside both slices.
        macro_rules! load {
            ($from:expr, $at:expr) => {
                // SAFETY: as the last vector of the band does, this one ends inside its slice.
                unsafe { $from.add($at).cast::<S::f32s>().read_unaligned() }
            };
        }
        let whole = self.len / S::F32_LANES * S::F32_LANES;
        let mut p = 0;
        while p < whole {
            let x: [S::f32s; T] = each!(t => load!(x[t], p));
            for n in 0..N {
                let dy = load!(dy[n], p);
                for t in 0..T {
                    sum[n][t] = simd.mul_add_e_f32s(dy, x[t], sum[n][t]);
                }
            }
            p += S::F32_LANES;
        }
        if whole < self.len {
            // The last vector ends where the band does; what the one before it had is taken out of both factors, so that
            // an infinite element does not count either.
            let p = self.len - S::F32_LANES;
            let mut x: [S::f32s; T] = each!(t => load!(x[t], p));
            for t in 0..T {
                x[t] = simd.and_f32s(x[t], tail);
            }
            for n in 0..N {
                let dy = simd.and_f32s(load!(dy[n], p), tail);
                for t in 0..T {
                    sum[n][t] = simd.mul_add_e_f32s(dy, x[t], sum[n][t]);
                }
            }
        }
        let k = self.taps.len();
        for n in 0..N {
            let dw = &mut self.dw[(o + n) * k..][..k];
            for t in 0..T {
                dw[taps[t].0] += simd.reduce_sum_f32s(sum[n][t]);
            }
        }
    }
}

/// Kernel elements in the order of [`WeightSums`].
fn taps_by_column(s: &ConvShape, layout: &Layout) -> Vec<(usize, usize)> {
    let [kd, kh, kw] = s.kernel;
    let mut taps = Vec::with_capacity(s.k());
    for c in 0..s.group_in() {
        for (d, w) in (0..kd).flat_map(|d| (0..kw).map(move |w| (d, w))) {
            taps.extend((0..kh).map(|h| (((c * kd + d) * kh + h) * kw + w, layout.offset(s, c, [d, h, w]))));
        }
    }
    taps
}

/// How the gradient by the weights is cut: in parts of so many images each.
fn images_per_part(s: &ConvShape, layout: &Layout) -> usize {
    let work = 2 * s.k() * s.out_channels * s.batch * s.y_plane();
    let parts = (work / PART).clamp(1, 16).next_power_of_two().div_ceil(s.groups * layout.bands);
    s.batch.div_ceil(parts.min(s.batch))
}

/// Is [`backward_weight`] the fastest path for that shape? Adding up lanes in the end must be cheap against the sums.
pub(crate) fn suits_weight(s: &ConvShape) -> bool {
    let layout = Layout::new(s);
    let positions = images_per_part(s, &layout) * s.y_plane() / layout.bands;
    s.taps() > 1 && s.group_in() * s.group_out() > 1 && s.k() <= 600 && positions >= 256 && possible(s)
}

/// The gradient by the weights.
pub(crate) fn backward_weight(s: &ConvShape, x: &[f32], dy: &[f32], dw: &mut [f32]) {
    let layout = Layout::new(s);
    let (gi, go, kh) = (s.group_in(), s.group_out(), s.kernel[1]);
    // Blocks of one column of the kernel read the same rows; other blocks are of nearly equal size.
    let step = if (2..=TAPS).contains(&kh) { kh } else { s.taps().div_ceil(s.taps().div_ceil(4)) };
    // With few positions to a part there would be more to add up than to multiply; but there are two parts at least.
    let long = (LONG * layout.bands).div_ceil(s.y_plane()).min(s.batch.div_ceil(2));
    let per_part = images_per_part(s, &layout).max(long);
    // Images at once: enough that adding up lanes in the end is cheap, so few that the gradient stays near.
    let near = NEAR / (WEIGHT_CHANNELS[step].min(go) * s.y_plane() / layout.bands).max(1);
    let together = near.min(4 * BAND / (gi * layout.channel)).clamp(1, per_part);
    let layout = layout.of_images(together);
    let taps = taps_by_column(s, &layout);
    let parts = s.batch.div_ceil(per_part) * layout.bands;
    // Independent sums over ranges of images and bands, added up in order at the end.
    let mut sums = Buffer::zeroed(parts * std::mem::size_of_val(dw));
    let one = dw.len() / s.groups;
    let cost = 2 * per_part * s.y_plane() / layout.bands;
    parallel::for_each_chunk_mut(sums.as_mut_slice::<f32>(), one, cost, |task, dw| {
        let (part, group) = (task / s.groups, task % s.groups);
        let (images, rows) = (part / layout.bands, layout.band(s, part % layout.bands));
        let images = images * per_part..((images + 1) * per_part).min(s.batch);
        let (room, lines) = layout.room(s);
        let grad = go * s.output[0] * rows.len() * together * s.output[2] + WIDEST;
        let mut buffer = Buffer::uninit(4 * (room + lines + grad));
        let (packed, more) = buffer.as_mut_slice::<f32>().split_at_mut(room);
        let (lines, grad) = more.split_at_mut(lines);
        let mut add = |layout: &Layout, taps: &[(usize, usize)], first: usize| {
            let x = &x[(first * s.in_channels + group * gi) * s.x_plane()..];
            Arch::new().dispatch(Pack { s, layout, x, first: rows.start, lines, out: packed });
            let dy = &dy[(first * s.out_channels + group * go) * s.y_plane()..];
            Arch::new().dispatch(PackGrad { s, images: layout.images, rows: rows.clone(), dy, out: grad });
            let len = rows.len() * layout.images * s.output[2];
            for d in 0..s.output[0] {
                Arch::new().dispatch(WeightSums {
                    taps,
                    step,
                    channels: go,
                    x: &packed[d * layout.depth_step(s)..],
                    dy: &grad[d * len..],
                    stride: s.output[0] * len,
                    len,
                    dw,
                });
            }
        };
        let mut first = images.start;
        while first + together <= images.end {
            add(&layout, &taps, first);
            first += together;
        }
        if first < images.end {
            let fewer = layout.of_images(images.end - first);
            add(&fewer, &taps_by_column(s, &fewer), first);
        }
    });
    let sums = sums.as_slice::<f32>();
    let len = dw.len();
    let (first, rest) = sums.split_at(len);
    parallel::for_each_chunk_mut(dw, 1024, parts, |i, dw| {
        dw.copy_from_slice(&first[i * 1024..][..dw.len()]);
        for part in rest.chunks_exact(len) {
            dw.iter_mut().zip(&part[i * 1024..]).for_each(|(o, v)| *o += *v);
        }
    });
}
