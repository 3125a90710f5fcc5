//! Copies of the input rows, one for each column of the kernel.

use super::WIDEST;
use super::layout::Layout;
use crate::conv::{ConvShape, take_every};
use crate::simd::each;
use pulp::{Simd, WithSimd};
use std::ops::Range;

/// Packs the input of a band from output row `first`; `x` begins at the first channel of the group in the first image.
pub(super) struct Pack<'a> {
    pub(super) s: &'a ConvShape,
    pub(super) layout: &'a Layout,
    pub(super) x: &'a [f32],
    pub(super) first: usize,
    pub(super) lines: &'a mut [f32],
    pub(super) out: &'a mut [f32],
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
        if s.stride == [1; 3] {
            macro_rules! sizes {
                ($($v:literal)*) => {
                    match width.div_ceil(S::F32_LANES) {
                        $($v => return pack_rows::<S, $v>(simd, s, layout, x, first, out),)*
                        _ => {}
                    }
                };
            }
            sizes! { 1 2 3 4 5 6 7 8 }
        }
        let mut to = 0;
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

/// [`Pack`] where no step is taken and rows of output are `V` vectors: each row goes from where it lies to all of its places,
/// under masks that leave zeros in the padding.
#[inline(always)]
fn pack_rows<S: Simd, const V: usize>(
    simd: S,
    s: &ConvShape,
    layout: &Layout,
    x: &[f32],
    first: usize,
    out: &mut [f32],
) {
    let ([id, ih, iw], width, pad) = (s.input, s.output[2], s.pad_begin);
    // The last vector ends where the row does. Only that of a row shorter than a vector writes too much, over what is
    // written next.
    let at: [usize; V] = each!(v => (v * S::F32_LANES).min(width.saturating_sub(S::F32_LANES)));
    let row = layout.images * width;
    // Rows of the band that lie inside the input.
    let above = pad[1].saturating_sub(first).min(layout.rows);
    let below = (ih + pad[1]).saturating_sub(first).clamp(above, layout.rows);
    assert!(x.len() >= ((layout.images - 1) * s.in_channels + s.group_in()) * s.x_plane());
    let image = s.in_channels * s.x_plane();
    let mut to = 0;
    for c in 0..s.group_in() {
        for w in (0..s.kernel[2]).map(|w| w * s.dilation[2]) {
            let (low, high) = (pad[2].saturating_sub(w), (iw + pad[2]).saturating_sub(w));
            let masks: [S::m32s; V] = each!(v => lanes_of(simd, at[v], low..high));
            for d in 0..layout.depth {
                let out = &mut out[to..to + layout.rows * row + WIDEST];
                to += layout.rows * row;
                let inside = d.checked_sub(pad[0]).filter(|&d| d < id);
                let (above, below) = if inside.is_some() { (above, below) } else { (layout.rows, layout.rows) };
                // SAFETY: whole rows, after which there is a vector more; as all that is written too much, what goes there
                // is written again by the next row.
                unsafe { zeros(simd, out.as_mut_ptr(), above * row) };
                let from = (c * id + inside.unwrap_or(0)) * ih + (first + above).saturating_sub(pad[1]);
                let mut line = x.as_ptr().wrapping_add(from * iw + w).wrapping_sub(pad[2]);
                let mut to = out.as_mut_ptr().wrapping_add(above * row);
                let rows = below - above;
                // Of one image all rows are one run, of several their rows side by side.
                let (runs, run, step) = if layout.images == 1 { (1, rows, iw) } else { (rows, layout.images, image) };
                for _ in 0..runs {
                    let mut from = line;
                    for _ in 0..run {
                        for v in 0..V {
                            // SAFETY: lanes of the mask are elements of a row of `x`, whose length was checked; a row of
                            // `out`, after which there is a vector more.
                            unsafe {
                                let values = simd.mask_load_ptr_f32s(masks[v].into(), from.wrapping_add(at[v]));
                                to.add(at[v]).cast::<S::f32s>().write_unaligned(values);
                            }
                        }
                        (from, to) = (from.wrapping_add(step), to.wrapping_add(width));
                    }
                    line = line.wrapping_add(iw);
                }
                // SAFETY: as above.
                unsafe { zeros(simd, out[below * row..].as_mut_ptr(), (layout.rows - below) * row) };
            }
        }
    }
}

/// The lanes of a vector at column `at` whose columns lie in a range.
#[inline(always)]
pub(super) fn lanes_of<S: Simd>(simd: S, at: usize, columns: Range<usize>) -> S::m32s {
    let lane = |column: usize| column.saturating_sub(at).min(S::F32_LANES) as u32;
    let (low, high) = (lane(columns.start), lane(columns.end));
    // Of two ends beyond the vector no mask can be asked for.
    let (low, high) = if low < high { (low, high) } else { (0, 0) };
    simd.mask_between_m32s(low, high).mask()
}

/// Copies `len` elements in whole vectors, up to one vector less one element too many.
///
/// # Safety
/// That much is valid to read and to write.
#[inline(always)]
pub(super) unsafe fn copy<S: Simd>(simd: S, from: *const f32, to: *mut f32, len: usize) {
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
