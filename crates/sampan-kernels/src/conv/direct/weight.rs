//! The gradient by the weights.

use super::{Layout, Lines, NOWHERE, by_place, images_at_a_time, turn};
use crate::conv::ConvShape;
use crate::conv::winograd::product::{BLOCK, ROWS};
use crate::gemm::pack::transpose_to;
use crate::shared::Shared;
use crate::{Buffer, parallel};
use pulp::{Arch, Simd, WithSimd};

/// Rows summed at once with 16 registers.
const FEW_ROWS: usize = 4;
/// Outputs that are summed for all kernel elements before the next ones: they and their inputs stay in the second-level
/// cache.
const STRETCH: usize = 512;
/// Tasks for each thread that are enough.
const TASKS_EACH: usize = 2;

/// Sums `[kernel element, output channel, input channel]` for some output channels and one block of input channels.
struct Sums<'a> {
    lines: &'a Lines,
    /// Outputs of a line.
    len: usize,
    /// Turned gradient from the first of the output channels on, and turned input.
    grad: &'a [f32],
    channels: usize,
    x: &'a [f32],
    cols: usize,
    sums: &'a mut [f32],
}

impl WithSimd for Sums<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let (lines, taps) = (self.lines.places.len() / self.lines.taps, self.lines.taps);
        let channels = self.channels.next_multiple_of(ROWS);
        assert!(self.sums.len() >= taps * channels * BLOCK);
        assert!((lines * self.len - 1) * BLOCK + channels <= self.grad.len());
        for &place in self.lines.places.iter().filter(|&&p| p != NOWHERE) {
            assert!((place + (self.len - 1) * self.lines.step + 1) * BLOCK <= self.x.len());
        }
        let each = (STRETCH / self.len).max(1);
        let most = if S::F32_LANES >= 16 { ROWS } else { FEW_ROWS };
        for start in (0..lines).step_by(each) {
            let end = lines.min(start + each);
            for tap in 0..taps {
                for channel in (0..channels).step_by(most) {
                    for col in (0..self.cols).step_by(2 * S::F32_LANES) {
                        match (S::F32_LANES >= 16, self.cols - col > S::F32_LANES) {
                            (true, true) => self.tile::<S, ROWS, 2>(simd, start, end, tap, channel, col),
                            (true, false) => self.tile::<S, ROWS, 1>(simd, start, end, tap, channel, col),
                            (false, true) => self.tile::<S, FEW_ROWS, 2>(simd, start, end, tap, channel, col),
                            (false, false) => self.tile::<S, FEW_ROWS, 1>(simd, start, end, tap, channel, col),
                        }
                    }
                }
            }
        }
    }
}

impl Sums<'_> {
    #[inline(always)]
    fn tile<S: Simd, const R: usize, const V: usize>(
        &mut self,
        simd: S,
        start: usize,
        end: usize,
        tap: usize,
        channel: usize,
        col: usize,
    ) {
        let (lanes, channels) = (S::F32_LANES, self.channels.next_multiple_of(ROWS));
        let step = self.lines.step * BLOCK;
        let mut sum = [[simd.splat_f32s(0.0); V]; R];
        // SAFETY: lines and places were found inside, and there are so many sums.
        unsafe {
            let to = self.sums.as_mut_ptr().add((tap * channels + channel) * BLOCK + col);
            if start > 0 {
                for r in 0..R {
                    for v in 0..V {
                        sum[r][v] = to.add(r * BLOCK + v * lanes).cast::<S::f32s>().read_unaligned();
                    }
                }
            }
            for line in start..end {
                let place = *self.lines.places.get_unchecked(line * self.lines.taps + tap);
                if place == NOWHERE {
                    continue;
                }
                let mut a = self.grad.as_ptr().add(line * self.len * BLOCK + channel);
                let mut b = self.x.as_ptr().add(place * BLOCK + col);
                for _ in 0..self.len {
                    let mut bv = [simd.splat_f32s(0.0); V];
                    for v in 0..V {
                        bv[v] = b.add(v * lanes).cast::<S::f32s>().read_unaligned();
                    }
                    for r in 0..R {
                        let av = simd.splat_f32s(*a.add(r));
                        for v in 0..V {
                            sum[r][v] = simd.mul_add_e_f32s(av, bv[v], sum[r][v]);
                        }
                    }
                    (a, b) = (a.wrapping_add(BLOCK), b.wrapping_add(step));
                }
            }
            for r in 0..R {
                for v in 0..V {
                    to.add(r * BLOCK + v * lanes).cast::<S::f32s>().write_unaligned(sum[r][v]);
                }
            }
        }
    }
}

/// The gradient by the weights of as many images as are turned at a time.
fn run(s: &ConvShape, x: &[f32], dy: &[f32], dw: &mut [f32]) {
    let lines = Lines::forward(s);
    let (taps, inputs) = (lines.taps, s.in_channels);
    let [_, oh, ow] = s.output;
    let (len, out_layout) = match by_place(s) {
        true => (s.batch, Layout::places(s.batch, oh, ow)),
        false => (ow, Layout::rows(s.batch, oh, 0, ow)),
    };
    let x = turn(x, inputs, s.batch, [s.input[1], s.input[2]], &lines.layout);
    let grad = turn(dy, s.out_channels, s.batch, [oh, ow], &out_layout);
    let (x, grad) = (x.as_slice::<f32>(), grad.as_slice::<f32>());
    let (in_blocks, out_blocks) = (inputs.div_ceil(BLOCK), s.out_channels.div_ceil(BLOCK));
    // Every sum is made by one task, so how many there are does not change it.
    let enough = TASKS_EACH * parallel::num_threads();
    let parts = [1, 2].into_iter().find(|parts| in_blocks * out_blocks * parts >= enough).unwrap_or(BLOCK / ROWS);
    let channels = BLOCK / parts;
    let dw = Shared::new(dw);
    let cost = taps * channels * BLOCK * s.batch * s.y_plane() / 16;
    parallel::for_each_range(in_blocks * out_blocks * parts, 1, cost, |task| {
        let (block, part, i) = (task.start / parts / in_blocks, task.start / in_blocks % parts, task.start % in_blocks);
        let (o, c) = (block * BLOCK + part * channels, i * BLOCK);
        if o >= s.out_channels {
            return;
        }
        let real = channels.min(s.out_channels - o);
        let count = (inputs - c).min(BLOCK);
        let filled = real.next_multiple_of(ROWS) * BLOCK;
        let mut buffer = Buffer::uninit(4 * taps * filled);
        let sums = buffer.as_mut_slice::<f32>();
        let (x_block, grad_block) = (lines.layout.len * BLOCK, out_layout.len * BLOCK);
        Arch::new().dispatch(Sums {
            lines: &lines,
            len,
            grad: &grad[block * grad_block..][..grad_block][part * channels..],
            channels: real,
            x: &x[i * x_block..][..x_block],
            cols: count.next_multiple_of(16),
            sums,
        });
        for r in 0..real {
            // SAFETY: the weights of one output channel and so many input channels, which only this task writes.
            unsafe {
                let (from, to) = (sums.as_ptr().add(r * BLOCK), dw.get().add(((o + r) * inputs + c) * taps));
                transpose_to(from, filled as isize, taps, count, to, taps);
            }
        }
    });
}

/// The gradient by the weights.
pub(crate) fn backward_weight(s: &ConvShape, x: &[f32], dy: &[f32], dw: &mut [f32]) {
    let most = images_at_a_time(s);
    let (x_each, y_each) = (s.x_len() / s.batch, s.y_len() / s.batch);
    let (mut part, len) = (Buffer::uninit(if most < s.batch { 4 * dw.len() } else { 0 }), dw.len());
    for (i, (x, dy)) in x.chunks(most * x_each).zip(dy.chunks(most * y_each)).enumerate() {
        let s = &ConvShape { batch: x.len() / x_each, ..*s };
        if i == 0 {
            run(s, x, dy, dw);
            continue;
        }
        let part = &mut part.as_mut_slice::<f32>()[..len];
        run(s, x, dy, part);
        dw.iter_mut().zip(&*part).for_each(|(o, v)| *o += *v);
    }
}
