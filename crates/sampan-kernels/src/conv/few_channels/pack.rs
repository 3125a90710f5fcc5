//! Copies of the input rows, one for each column of the kernel.

use super::WIDEST;
use super::layout::Layout;
use crate::conv::{ConvShape, take_every};
use pulp::{Simd, WithSimd};

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
