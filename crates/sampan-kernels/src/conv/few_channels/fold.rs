//! The gradient by data from a convolution whose kernels are single columns.

use super::WIDEST;
use crate::conv::ConvShape;
use pulp::{Simd, WithSimd};

/// Adds up the outputs of [`by_columns`](super::by_columns) of one image and group.
pub(super) struct Fold<'a> {
    pub(super) s: &'a ConvShape,
    pub(super) columns: &'a [f32],
    /// Rows of input with a vector more than each has.
    pub(super) lines: &'a mut [f32],
    pub(super) dx: &'a mut [f32],
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
