//! Convolutions of each channel with a kernel of its own.

use super::dense::filled;
use super::images::blocked_len;
use super::{After, BLOCK};
use crate::conv::ConvShape;
use crate::shared::Shared;
use crate::{Buffer, parallel};
use pulp::{Arch, Simd, WithSimd};
use std::ops::Range;

/// Outputs of a row that are summed at once, with 32 and with 16 registers.
const COLUMNS: usize = 8;
const FEW_COLUMNS: usize = 4;

/// A convolution of each channel by itself, of one shape and ready to run.
pub struct Depthwise {
    s: ConvShape,
    /// `[block of channels, kernel element, channel]`.
    w: Buffer,
    bias: Option<Vec<f32>>,
    after: After,
}

impl Depthwise {
    /// `None` where that shape is not computed here.
    pub fn new(s: &ConvShape, w: &[f32], bias: Option<&[f32]>, after: After) -> Option<Depthwise> {
        let flat = s.input[0] == 1 && s.kernel[0] == 1 && s.output[0] == 1 && s.pad_begin[0] == 0;
        let alone = s.groups == s.in_channels && s.in_channels == s.out_channels;
        if !flat || !alone || s.y_len() == 0 {
            return None;
        }
        let taps = s.taps();
        assert_eq!(w.len(), s.w_len(), "the weights of {s:?}");
        let mut packed = Buffer::zeroed(4 * s.in_channels.next_multiple_of(BLOCK) * taps);
        let to = packed.as_mut_slice::<f32>();
        for (i, &value) in w.iter().enumerate() {
            let (c, t) = (i / taps, i % taps);
            to[(c / BLOCK * taps + t) * BLOCK + c % BLOCK] = value;
        }
        Some(Depthwise { s: *s, w: packed, bias: filled(bias, s.out_channels), after })
    }

    /// `y = after(x ⋆ w + bias + add)`; all are blocked.
    pub fn run(&self, x: &[f32], add: Option<&[f32]>, y: &mut [f32]) {
        let s = &self.s;
        let blocks = s.in_channels.div_ceil(BLOCK);
        let (x_plane, y_plane) = (s.x_plane() * BLOCK, s.y_plane() * BLOCK);
        assert!(x.len() == blocked_len(s.batch, s.in_channels, s.x_plane()), "images of {s:?}");
        assert!(y.len() == blocked_len(s.batch, s.in_channels, s.y_plane()), "images of {s:?}");
        assert!(add.is_none_or(|a| a.len() == y.len()), "what is added to the outputs of {s:?}");
        // Rows of a task: so many that handing it over does not count.
        let rows = s.output[1];
        let parts = (y_plane * s.taps() / BLOCK / 4096).clamp(1, rows.div_ceil(4)).min(4);
        let y = Shared::new(y);
        let cost = y_plane / parts * s.taps() / 16;
        parallel::for_each_range(s.batch * blocks * parts, 1, cost, |task| {
            let (at, part) = (task.start / parts, task.start % parts);
            let block = at % blocks;
            let w = &self.w.as_slice::<f32>()[block * s.taps() * BLOCK..][..s.taps() * BLOCK];
            let bias = self.bias.as_ref().map(|b| &b[block * BLOCK..][..BLOCK]);
            Arch::new().dispatch(Plane {
                s,
                rows: part * rows / parts..(part + 1) * rows / parts,
                x: &x[at * x_plane..][..x_plane],
                w,
                bias,
                add: add.map(|a| &a[at * y_plane..][..y_plane]),
                after: self.after,
                // SAFETY: the plane of this block, of which no other task writes these rows.
                y: unsafe { y.get().add(at * y_plane) },
            });
        });
    }
}

/// Some rows of one plane of a block.
struct Plane<'a> {
    s: &'a ConvShape,
    rows: Range<usize>,
    x: &'a [f32],
    w: &'a [f32],
    bias: Option<&'a [f32]>,
    add: Option<&'a [f32]>,
    after: After,
    y: *mut f32,
}

/// The kernel elements along an axis that output `o` finds inside the input.
#[inline(always)]
fn inside(s: &ConvShape, axis: usize, o: usize) -> Range<usize> {
    let (begin, step) = (o * s.stride[axis], s.dilation[axis]);
    let from = s.pad_begin[axis].saturating_sub(begin).div_ceil(step).min(s.kernel[axis]);
    let to = (s.input[axis] + s.pad_begin[axis]).saturating_sub(begin).div_ceil(step).clamp(from, s.kernel[axis]);
    from..to
}

impl WithSimd for Plane<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let s = self.s;
        let (width, all) = (s.output[2], s.kernel[2]);
        let whole = |o: usize| inside(s, 2, o).len() == all;
        // Columns whose windows lie inside are one run.
        let left = (0..width).find(|&o| whole(o)).unwrap_or(width);
        let right = (left..width).rev().find(|&o| whole(o)).map_or(left, |o| o + 1);
        let most = if S::F32_LANES >= 16 { COLUMNS } else { FEW_COLUMNS };
        for row in self.rows.clone() {
            let kh = inside(s, 1, row);
            for v in (0..BLOCK).step_by(S::F32_LANES) {
                for o in (0..left).chain(right..width) {
                    self.sums::<S, 1>(simd, row, kh.clone(), o, inside(s, 2, o), v);
                }
                let mut o = left;
                while o < right {
                    let n = (right - o).min(most);
                    macro_rules! columns {
                        ($($n:literal),*) => {
                            match n {
                                $($n => self.sums::<S, $n>(simd, row, kh.clone(), o, 0..all, v),)*
                                _ => unreachable!("no more columns than that"),
                            }
                        };
                    }
                    if S::F32_LANES >= 16 {
                        columns!(1, 2, 3, 4, 5, 6, 7, 8);
                    } else {
                        columns!(1, 2, 3, 4);
                    }
                    o += n;
                }
            }
        }
    }
}

impl Plane<'_> {
    /// `N` outputs of a row from `o` on, of which all read these elements of the kernel.
    #[inline(always)]
    fn sums<S: Simd, const N: usize>(
        &self,
        simd: S,
        row: usize,
        kh: Range<usize>,
        o: usize,
        kw: Range<usize>,
        v: usize,
    ) {
        let s = self.s;
        let ([_, ih, iw], step) = (s.input, s.stride[2] * BLOCK);
        let zero = simd.splat_f32s(0.0);
        let bias = match self.bias {
            // SAFETY: a bias of a whole block.
            Some(bias) => unsafe { bias.as_ptr().add(v).cast::<S::f32s>().read_unaligned() },
            None => zero,
        };
        let mut sum = [bias; N];
        for h in kh {
            let i = row * s.stride[1] + h * s.dilation[1] - s.pad_begin[1];
            debug_assert!(i < ih);
            for w in kw.clone() {
                let j = o * s.stride[2] + w * s.dilation[2] - s.pad_begin[2];
                // SAFETY: these elements of the kernel lie inside the input for all `N` outputs.
                unsafe {
                    let x = self.x.as_ptr().add((i * iw + j) * BLOCK + v);
                    let k = self.w.as_ptr().add((h * s.kernel[2] + w) * BLOCK + v).cast::<S::f32s>().read_unaligned();
                    for n in 0..N {
                        let x = x.add(n * step).cast::<S::f32s>().read_unaligned();
                        sum[n] = simd.mul_add_e_f32s(x, k, sum[n]);
                    }
                }
            }
        }
        let mut room = [0f32; COLUMNS * BLOCK];
        // SAFETY: room for so many vectors; then the outputs, which are ours.
        unsafe {
            room.as_mut_ptr().cast::<[S::f32s; N]>().write_unaligned(sum);
            for n in 0..N {
                let mut value = room.as_ptr().add(n * S::F32_LANES).cast::<S::f32s>().read_unaligned();
                let at = (row * s.output[2] + o + n) * BLOCK + v;
                if let Some(add) = self.add {
                    value = simd.add_f32s(value, add.as_ptr().add(at).cast::<S::f32s>().read_unaligned());
                }
                self.y.add(at).cast::<S::f32s>().write_unaligned(self.after.of(simd, value));
            }
        }
    }
}
