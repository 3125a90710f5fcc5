//! Direct convolution in `f32` for images that are small or have few channels, where unfolding costs more than the sums.
//!
//! Only the columns of the kernel are unfolded: for each of them there is a copy of the input rows, padded, shifted, and
//! cut to the width of the output. The rows of a copy follow each other without gaps. So kernel rows, kernel columns and
//! channels are fixed offsets, the positions of an output plane are consecutive in all of them, and vectors run across
//! the ends of rows: whatever the width, no lane is idle.

use crate::conv::{ConvShape, take_every};
use crate::float::Shared;
use crate::gemm::pack::transpose;
use crate::{Buffer, parallel};
use pulp::{Arch, Simd, WithSimd};
use std::ops::Range;

/// Elements of the packed input of a band, so that it stays in the second-level cache.
const BAND: usize = 64 << 10;
/// Fewest output rows of a band, so that rows which two bands share do not count.
const LEAST_ROWS: usize = 8;
/// Elements of the widest vector: as many may be written past the end of a row, and a band has at least that many
/// positions.
const WIDEST: usize = 16;
/// Output channels summed at once.
const CHANNELS: usize = 8;
/// Sums kept in registers: what 32 registers hold beside the operands.
const SUMS: usize = 24;
/// Weights of a group up to which they stay in cache while the positions of a band pass.
const MAX_WEIGHTS: usize = 160 << 10;
/// Operations that make a task worth handing over.
const TASK: usize = 1 << 19;

/// How the rows of a band of some images are packed: `[channel, kernel column, depth, row phase, row, image, output
/// column]`. Rows are dealt out into as many phases as the stride has steps.
struct Layout {
    images: usize,
    bands: usize,
    depth: usize,
    /// Rows of a phase.
    rows: usize,
    /// Elements between channels.
    channel: usize,
    /// Elements of one padded row of input, dealt out into the phases of the columns, and of each phase.
    line: usize,
    phase: usize,
}

impl Layout {
    fn new(s: &ConvShape) -> Layout {
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
    fn of_images(&self, images: usize) -> Layout {
        Layout { images, channel: self.channel / self.images * images, ..*self }
    }

    /// Output rows of a band: nearly as many in each.
    fn band(&self, s: &ConvShape, i: usize) -> Range<usize> {
        i * s.output[1] / self.bands..(i + 1) * s.output[1] / self.bands
    }

    /// Elements of a packed band with room for the last vector, and of the padded rows of one channel.
    fn room(&self, s: &ConvShape) -> (usize, usize) {
        let lines = self.depth * s.stride[1] * self.rows * self.images * self.line;
        (s.group_in() * self.channel + WIDEST, lines + WIDEST)
    }

    /// Where element `(d, h, w)` of the kernel of channel `c` begins.
    fn offset(&self, s: &ConvShape, c: usize, [d, h, w]: [usize; 3]) -> usize {
        let h = h * s.dilation[1];
        let plane = (w * self.depth + d * s.dilation[0]) * s.stride[1] + h % s.stride[1];
        c * self.channel + (plane * self.rows + h / s.stride[1]) * self.images * s.output[2]
    }

    /// Where all kernel elements begin, in their order in memory.
    fn offsets(&self, s: &ConvShape) -> Vec<usize> {
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

    /// Is it one image, with every window inside it and one step from the next?
    fn is_plain(&self, s: &ConvShape) -> bool {
        let inside = |a: usize| s.output[a] + (s.kernel[a] - 1) * s.dilation[a] <= s.input[a];
        self.images == 1 && s.stride == [1; 3] && s.pad_begin == [0; 3] && (0..3).all(inside)
    }

    /// From one output plane of a volume to the next.
    fn depth_step(&self, s: &ConvShape) -> usize {
        s.stride[0] * s.stride[1] * self.rows * self.images * s.output[2]
    }
}

/// Packs the input of a band from output row `first`; `x` begins at the first channel of the group in the first image.
struct Pack<'a> {
    s: &'a ConvShape,
    layout: &'a Layout,
    x: &'a [f32],
    first: usize,
    lines: &'a mut [f32],
    out: &'a mut [f32],
}

impl WithSimd for Pack<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Pack { s, layout, x, first, lines, out } = self;
        let (channels, width) = (s.group_in(), s.output[2]);
        let (packed, padded) = layout.room(s);
        assert!(out.len() >= packed && lines.len() >= padded && layout.line >= width);
        let count = layout.depth * s.stride[1] * layout.rows * layout.images;
        let mut to = 0;
        if layout.is_plain(s) {
            return pack_plain(simd, s, layout, x, first, out);
        }
        for c in 0..channels {
            let mut row = 0;
            for d in 0..layout.depth {
                for phase in 0..s.stride[1] {
                    for h in 0..layout.rows {
                        for image in 0..layout.images {
                            let x = &x[(image * s.in_channels + c) * s.x_plane()..];
                            let line = &mut lines[row..][..layout.line + WIDEST];
                            pad_row(simd, s, layout, x, d, (first + h) * s.stride[1] + phase, line);
                            row += layout.line;
                        }
                    }
                }
            }
            for kw in 0..s.kernel[2] {
                let w = kw * s.dilation[2];
                let from = w % s.stride[2] * layout.phase + w / s.stride[2];
                for i in 0..count {
                    // SAFETY: `width` elements from a padded row and one vector more, both inside the slices as was
                    // checked. Rows are written in order, so what a vector writes too much is overwritten.
                    unsafe {
                        let from = lines.as_ptr().add(i * layout.line + from);
                        copy(simd, from, out.as_mut_ptr().add(to), width);
                    }
                    to += width;
                }
            }
        }
    }
}

/// [`Pack`] of one image where nothing is padded and no step is taken: the rows are copied from where they lie.
#[inline(always)]
fn pack_plain<S: Simd>(simd: S, s: &ConvShape, layout: &Layout, x: &[f32], first: usize, out: &mut [f32]) {
    let ([_, ih, iw], width) = (s.input, s.output[2]);
    // The last band may be shorter than others; what they have more nobody reads in it.
    let rows = layout.rows.min(ih - first);
    let mut to = 0;
    for c in 0..s.group_in() {
        for w in (0..s.kernel[2]).map(|w| w * s.dilation[2]) {
            for d in 0..layout.depth {
                let x = &x[c * s.x_plane() + (d * ih + first) * iw + w..];
                // Rows after which there is a vector more, in both.
                let fast = match (x.len().checked_sub(width + WIDEST), out.len().checked_sub(to + width + WIDEST)) {
                    (Some(x), Some(out)) => (x / iw + 1).min(out / width + 1).min(rows),
                    _ => 0,
                };
                let (mut from, mut into) = (x.as_ptr(), out[to..].as_mut_ptr());
                for _ in 0..fast {
                    // SAFETY: a row and a vector more, as was found. Rows are written in order, so what a vector writes too
                    // much is overwritten.
                    unsafe { copy(simd, from, into, width) };
                    (from, into) = (from.wrapping_add(iw), into.wrapping_add(width));
                }
                for h in fast..rows {
                    out[to + h * width..][..width].copy_from_slice(&x[h * iw..][..width]);
                }
                to += layout.rows * width;
            }
        }
    }
}

/// Copies `len` elements in whole vectors, up to one vector less one element too many.
///
/// # Safety
/// That much is valid to read and to write.
#[inline(always)]
pub(crate) unsafe fn copy<S: Simd>(simd: S, from: *const f32, to: *mut f32, len: usize) {
    let _ = simd;
    let mut i = 0;
    while i < len {
        // SAFETY: promised by the caller.
        unsafe { to.add(i).cast::<S::f32s>().write_unaligned(from.add(i).cast::<S::f32s>().read_unaligned()) };
        i += S::F32_LANES;
    }
}

/// Writes `len` zeros in whole vectors, up to one vector less one element too many.
///
/// # Safety
/// That much is valid to write.
#[inline(always)]
unsafe fn zeros<S: Simd>(simd: S, to: *mut f32, len: usize) {
    let mut i = 0;
    while i < len {
        // SAFETY: promised by the caller.
        unsafe { to.add(i).cast::<S::f32s>().write_unaligned(simd.splat_f32s(0.0)) };
        i += S::F32_LANES;
    }
}

/// One row of input with its padding, in phases; `line` has one vector more than that.
#[inline(always)]
fn pad_row<S: Simd>(simd: S, s: &ConvShape, layout: &Layout, x: &[f32], d: usize, h: usize, line: &mut [f32]) {
    let [id, ih, iw] = s.input;
    let (pad, step) = (s.pad_begin[2], s.stride[2]);
    let d = d.checked_sub(s.pad_begin[0]).filter(|&d| d < id);
    let h = h.checked_sub(s.pad_begin[1]).filter(|&h| h < ih);
    let (Some(d), Some(h)) = (d, h) else {
        // SAFETY: `line` has a vector more than that.
        return unsafe { zeros(simd, line[..layout.line + WIDEST].as_mut_ptr(), layout.line) };
    };
    let start = (d * ih + h) * iw;
    for phase in 0..step {
        // Column q holds input column q * step + phase - pad.
        let low = pad.saturating_sub(phase).div_ceil(step).min(layout.phase);
        let high = (iw + pad).saturating_sub(phase).div_ceil(step).clamp(low, layout.phase);
        let out = &mut line[phase * layout.phase..][..layout.phase + WIDEST];
        // SAFETY: `out` has a vector more than a phase; what is written too much is written again below.
        unsafe { zeros(simd, out.as_mut_ptr(), low) };
        if low < high {
            let from = start + low * step + phase - pad;
            if step == 1 && from + high - low + WIDEST <= x.len() {
                // SAFETY: both slices have a vector more than is copied; what it writes too much is written again below
                // or by the next row.
                unsafe { copy(simd, x.as_ptr().add(from), out.as_mut_ptr().add(low), high - low) };
            } else {
                take_every(&x[from..], step, &mut out[low..high]);
            }
        }
        // SAFETY: as above; what is written too much belongs to the next phase or row, which is written later.
        unsafe { zeros(simd, out[high..].as_mut_ptr(), layout.phase - high) };
    }
}

/// `len` cut into the fewest pieces of at most `most`, nearly equal: where piece `i` begins.
pub(crate) fn even(len: usize, most: usize) -> impl Iterator<Item = Range<usize>> {
    let pieces = len.div_ceil(most).max(1);
    (0..pieces).map(move |i| i * len / pieces..(i + 1) * len / pieces)
}

/// The output of one band of one image and group.
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
        let [depth, height, width] = self.s.output;
        let len = self.rows.len() * width;
        let vectors = len.div_ceil(S::F32_LANES);
        let reach = self.offsets.iter().max().unwrap_or(&0) + (depth - 1) * self.layout.depth_step(self.s) + len;
        assert!(reach <= self.x.len() && len >= S::F32_LANES && self.offsets.len() == self.s.k());
        for block in even(self.s.group_out(), CHANNELS) {
            for d in 0..depth {
                let x = &self.x[d * self.layout.depth_step(self.s)..];
                let place = (d * height + self.rows.start) * width;
                for piece in even(vectors, (SUMS / block.len()).min(4)) {
                    let rows = self.rows_of(piece.start * S::F32_LANES, (piece.end * S::F32_LANES).min(len));
                    macro_rules! sizes {
                        ($($n:literal: $($v:literal)*;)*) => {
                            match (block.len(), piece.len()) {
                                $($(($n, $v) => {
                                    self.sums::<S, $n, $v>(simd, x, rows, block.start, piece.start, place, len)
                                })*)*
                                _ => unreachable!("blocks are at most {CHANNELS} channels and {SUMS} sums"),
                            }
                        };
                    }
                    sizes! {
                        1: 1 2 3 4; 2: 1 2 3 4; 3: 1 2 3 4; 4: 1 2 3 4; 5: 1 2 3 4; 6: 1 2 3 4; 7: 1 2 3; 8: 1 2 3;
                    }
                }
            }
        }
    }
}

impl Band<'_> {
    /// The rows of the kernel that some of the positions `first..end` of the band need: the others are all in the padding
    /// above or below.
    #[inline(always)]
    fn rows_of(&self, first: usize, end: usize) -> Range<usize> {
        let s = self.s;
        // The last vector begins before its turn where the band ends.
        let first = first.min(end.saturating_sub(WIDEST)) / s.output[2] + self.rows.start;
        let last = (end - 1) / s.output[2] + self.rows.start;
        let (step, pad) = (s.dilation[1], s.pad_begin[1]);
        let from = pad.saturating_sub(last * s.stride[1]).div_ceil(step).min(s.kernel[1]);
        let to = (s.input[1] + pad).saturating_sub(first * s.stride[1]).div_ceil(step).clamp(from, s.kernel[1]);
        from..to
    }

    /// `V` vectors of positions from vector `first` of `N` channels. The last vector of a band ends where the band does:
    /// it computes some positions again.
    #[inline(always)]
    fn sums<S: Simd, const N: usize, const V: usize>(
        &self,
        simd: S,
        x: &[f32],
        rows: Range<usize>,
        o: usize,
        first: usize,
        place: usize,
        len: usize,
    ) {
        let k = self.offsets.len();
        let at: [usize; V] = std::array::from_fn(|v| ((first + v) * S::F32_LANES).min(len - S::F32_LANES));
        let mut sum = [[simd.splat_f32s(0.0); V]; N];
        if let Some(bias) = self.bias {
            for n in 0..N {
                sum[n] = [simd.splat_f32s(bias[o + n]); V];
            }
        }
        let x: [*const f32; V] = at.map(|at| x[at..].as_ptr());
        let weights = &self.w[o * k..(o + N) * k];
        // With all rows of the kernel its elements are one run, else there is one for each channel and depth.
        let [_, kh, kw] = self.s.kernel;
        let (runs, run) = if rows.len() == kh { (1, 0..k) } else { (k / (kh * kw), rows.start * kw..rows.end * kw) };
        for i in 0..runs {
            let run = run.start + i * kh * kw..run.end + i * kh * kw;
            let weights = weights[run.start * N..run.end * N].chunks_exact(N);
            for (&offset, w) in self.offsets[run].iter().zip(weights) {
                // SAFETY: every kernel element has `len` positions inside `x`, as was checked for the farthest.
                let x: [S::f32s; V] =
                    std::array::from_fn(|v| unsafe { x[v].add(offset).cast::<S::f32s>().read_unaligned() });
                for n in 0..N {
                    let w = simd.splat_f32s(w[n]);
                    for v in 0..V {
                        sum[n][v] = simd.mul_add_e_f32s(w, x[v], sum[n][v]);
                    }
                }
            }
        }
        for n in 0..N {
            for v in 0..V {
                // SAFETY: positions of this band of one output channel, which no other task writes.
                unsafe {
                    let y = self.y.add((o + n) * self.s.y_plane() + place + at[v]);
                    y.cast::<S::f32s>().write_unaligned(sum[n][v]);
                }
            }
        }
    }
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

/// Adds up the outputs of [`by_columns`] of one image and group.
struct Fold<'a> {
    s: &'a ConvShape,
    columns: &'a [f32],
    /// Rows of input with a vector more than each has.
    lines: &'a mut [f32],
    dx: &'a mut [f32],
}

impl WithSimd for Fold<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Fold { s, columns, lines, dx } = self;
        let ([_, ih, iw], ow, kw) = (s.input, s.output[2], s.kernel[2]);
        let (rows, pitch) = (s.group_in() * ih, iw + 2 * WIDEST);
        lines[..rows * pitch].fill(0.0);
        assert!(columns.len() >= rows * kw * ow + WIDEST && lines.len() >= rows * pitch);
        let last = tail_of(simd, ow);
        for k in 0..kw {
            // Column `w` of these outputs belongs to column `w + k * dilation - pad` of the input.
            let shift = k * s.dilation[2];
            let skip = s.pad_begin[2].saturating_sub(shift).min(ow);
            let to = (shift + skip).saturating_sub(s.pad_begin[2]).min(iw);
            let len = (ow - skip).min(iw - to);
            let last = if skip == 0 && len == ow { last } else { tail_of(simd, len) };
            let (mut row, mut from) = (0, k * ih * ow + skip);
            while row < rows {
                let mut i = 0;
                while i < len {
                    // SAFETY: up to a vector after the row, which both slices have.
                    unsafe {
                        let out = lines.as_mut_ptr().add(row * pitch + to + i).cast::<S::f32s>();
                        let mut v = columns.as_ptr().add(from + i).cast::<S::f32s>().read_unaligned();
                        if i + S::F32_LANES > len {
                            v = simd.and_f32s(v, last);
                        }
                        out.write_unaligned(simd.add_f32s(out.read_unaligned(), v));
                    }
                    i += S::F32_LANES;
                }
                row += 1;
                // The columns of one channel lie between those of the next.
                from += if row % ih == 0 { ((kw - 1) * ih + 1) * ow } else { ow };
            }
        }
        for (dx, line) in dx.chunks_exact_mut(iw).zip(lines.chunks_exact(pitch)) {
            dx.copy_from_slice(&line[..iw]);
        }
    }
}

/// A mask of the first lanes of a vector, which `len` has beyond its whole vectors.
#[inline(always)]
fn tail_of<S: Simd>(simd: S, len: usize) -> S::f32s {
    let mut lanes = [u32::MAX; 2 * WIDEST];
    lanes[WIDEST..].fill(0);
    let _ = simd;
    // SAFETY: a vector has at most `WIDEST` lanes, so it ends before the array does.
    unsafe { lanes.as_ptr().add(WIDEST - len % S::F32_LANES).cast::<S::f32s>().read_unaligned() }
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
        let folded =
            fold.map_or(0, |f| go * s.y_plane() + WIDEST + f.group_in() * f.input[1] * (f.input[2] + 2 * WIDEST));
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
                let (columns, lines) = folded.split_at_mut(go * s.y_plane() + WIDEST);
                let len = f.group_in() * f.x_plane();
                // SAFETY: one group of one image of `y`, whose length was checked; no other task has it.
                let dx = unsafe { std::slice::from_raw_parts_mut(y.get().add(at * len), len) };
                Arch::new().dispatch(Fold { s: f, columns, lines, dx });
            }
        }
    });
}

/// Kernel elements whose gradients are summed at once, and output channels for so many of them.
const TAPS: usize = 5;
const WEIGHT_CHANNELS: [usize; TAPS + 1] = [0, 8, 8, 8, 6, 5];
/// Gradient elements of a block of channels that stay in the first-level cache while all kernel elements pass.
const NEAR: usize = 4 << 10;

/// Operations of an independent part of the gradient by the weights.
const PART: usize = 1 << 21;

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
        let mut to = 0;
        for o in 0..s.group_out() {
            for d in 0..depth {
                for h in rows.clone() {
                    for image in 0..images {
                        let from = ((image * s.out_channels + o) * depth + d) * height * width + h * width;
                        if from + width + WIDEST <= dy.len() {
                            let out = &mut out[to..to + width + WIDEST];
                            // SAFETY: both slices have a vector more than is copied, and rows are written in order.
                            unsafe { copy(simd, dy.as_ptr().add(from), out.as_mut_ptr(), width) };
                        } else {
                            out[to..to + width].copy_from_slice(&dy[from..from + width]);
                        }
                        to += width;
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
        let x: [*const f32; T] = std::array::from_fn(|t| self.x[taps[t].1..].as_ptr());
        let dy: [*const f32; N] = std::array::from_fn(|n| self.dy[(o + n) * self.stride..].as_ptr());
        let mut sum = [[simd.splat_f32s(0.0); T]; N];
        // SAFETY: all positions were found inside both slices.
        let load = |p: *const f32, at: usize| unsafe { p.add(at).cast::<S::f32s>().read_unaligned() };
        let whole = self.len / S::F32_LANES * S::F32_LANES;
        let mut p = 0;
        while p < whole {
            let x: [S::f32s; T] = std::array::from_fn(|t| load(x[t], p));
            for n in 0..N {
                let dy = load(dy[n], p);
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
            let mut x: [S::f32s; T] = std::array::from_fn(|t| load(x[t], p));
            for t in 0..T {
                x[t] = simd.and_f32s(x[t], tail);
            }
            for n in 0..N {
                let dy = simd.and_f32s(load(dy[n], p), tail);
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
    let per_part = images_per_part(s, &layout);
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
