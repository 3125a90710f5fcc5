//! The sums of the forward pass.

use super::layout::Layout;
use super::{CHANNELS, WIDEST, even};
use crate::conv::ConvShape;
use crate::simd::each;
use pulp::{Simd, WithSimd};
use std::ops::Range;

/// Sums kept in registers: what 32 registers hold beside the operands.
const SUMS: usize = 24;

/// The output of one band of one image and group.
pub(super) struct Band<'a> {
    pub(super) s: &'a ConvShape,
    pub(super) layout: &'a Layout,
    pub(super) offsets: &'a [usize],
    pub(super) x: &'a [f32],
    /// Weights of the group, block by block as `[k, channels of the block]`.
    pub(super) w: &'a [f32],
    pub(super) bias: Option<&'a [f32]>,
    /// The first output channel of the group in this image.
    pub(super) y: *mut f32,
    pub(super) rows: Range<usize>,
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
        let at: [usize; V] = each!(v => ((first + v) * S::F32_LANES).min(len - S::F32_LANES));
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
                let x: [S::f32s; V] = each!(v => unsafe { x[v].add(offset).cast::<S::f32s>().read_unaligned() });
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
