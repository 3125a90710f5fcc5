//! The gradient by data from a convolution whose kernels are single columns.

use super::pack::lanes_of;
use crate::conv::ConvShape;
use pulp::{Simd, WithSimd};

/// Adds up the outputs of [`by_columns`](super::by_columns) of one image and group.
pub(super) struct Fold<'a> {
    pub(super) s: &'a ConvShape,
    pub(super) columns: &'a [f32],
    pub(super) dx: &'a mut [f32],
}

impl WithSimd for Fold<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Fold { s, columns, dx } = self;
        let ([_, ih, iw], ow, kw) = (s.input, s.output[2], s.kernel[2]);
        let rows = s.group_in() * ih;
        assert!(columns.len() >= rows * kw * ow && dx.len() == rows * iw);
        let mut masks = Vec::with_capacity(kw);
        for v in 0..iw.div_ceil(S::F32_LANES) {
            // The last vector ends where the row does; in a row shorter than a vector it goes on into the next one, which
            // is written later.
            let at = (v * S::F32_LANES).min(iw.saturating_sub(S::F32_LANES));
            masks.clear();
            // Column `w` of these outputs belongs to column `w + k * dilation - pad` of the input.
            let lines = (0..kw).map(|k| k * s.dilation[2]);
            masks.extend(lines.map(|shift| lanes_of(simd, at + s.pad_begin[2], shift..shift + ow)));
            for row in 0..rows {
                let (channel, h) = (row / ih, row % ih);
                let mut sum = simd.splat_f32s(0.0);
                for (k, &mask) in masks.iter().enumerate() {
                    let line = ((channel * kw + k) * ih + h) * ow;
                    let from = columns.as_ptr().wrapping_add(line + s.pad_begin[2] + at);
                    // SAFETY: lanes of the mask are elements of this line, which the slice was found to hold.
                    let part = unsafe { simd.mask_load_ptr_f32s(mask.into(), from.wrapping_sub(k * s.dilation[2])) };
                    sum = simd.add_f32s(sum, part);
                }
                let out = &mut dx[row * iw + at..];
                if out.len() >= S::F32_LANES {
                    // SAFETY: a vector, as was just found.
                    unsafe { out.as_mut_ptr().cast::<S::f32s>().write_unaligned(sum) };
                } else {
                    simd.partial_store_f32s(out, sum);
                }
            }
        }
    }
}
