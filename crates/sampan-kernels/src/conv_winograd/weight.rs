//! The gradient by the weights: transformed tiles of the input times transformed tiles of the gradient, summed over all
//! tiles before they are transformed back, once for each kernel.

use super::lines::{Gradient, Input, KernelGradient, square};
use super::product::{BLOCK, Product, ROWS};
use super::tiles::{GAP, Images, Rows, vectors};
use super::{Plan, input_images, spread};
use crate::conv::ConvShape;
use crate::float::Shared;
use crate::gemm::pack::transpose_to;
use crate::{Buffer, parallel};
use pulp::{Arch, Simd, WithSimd};

/// Elements of both transformed factors at a time, and the fewest tiles.
const FACTORS: usize = 2 << 20;
const FEWEST_TILES: usize = 64;
/// Tiles that a task transforms.
const SPREAD: usize = 32;
/// Tasks for each thread that are enough.
const TASKS_EACH: usize = 2;

/// Sums for some output channels, and one block of input channels.
struct Sums<'a, const N: usize> {
    rows: &'a Rows,
    plan: &'a Plan,
    /// Transformed gradient of the output channels' block, `[point, tile, channel]`, and which of its channels.
    grad: &'a [f32],
    channel: usize,
    channels: usize,
    /// Transformed input, and how many channels it has.
    input: &'a [f32],
    inputs: usize,
    /// `[point, output channel, input channel]`.
    sums: &'a mut [f32],
    add: bool,
    /// Where the weights of these channels begin, if this was all, and from one output channel to the next.
    dw: Option<(*mut f32, usize)>,
}

/// From one point of sums to the next.
fn sums_step(channels: usize) -> usize {
    channels.next_multiple_of(ROWS) * BLOCK + GAP
}

impl<const N: usize> WithSimd for Sums<'_, N> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Sums { rows, plan, grad, channel, channels, input, inputs, sums, add, dw } = self;
        let (points, step, sums_step) = (N * N, rows.step(plan), sums_step(channels));
        let tiles = rows.0.len() * plan.across;
        let count = vectors::<S>(inputs);
        assert!(grad.len() >= points * step && input.len() >= points * step && sums.len() >= points * sums_step);
        assert!(channel + channels.next_multiple_of(ROWS) <= BLOCK);
        for p in 0..points {
            let product = Product {
                rows: channels.next_multiple_of(ROWS),
                cols: count * S::F32_LANES,
                depth: tiles,
                a: grad[p * step + channel..].as_ptr(),
                a_block: 0,
                b: input[p * step..].as_ptr(),
                to: sums[p * sums_step..].as_mut_ptr(),
                add,
            };
            // SAFETY: points have the tiles and channels that were just checked.
            unsafe { product.run::<S, 1, BLOCK>(simd) };
        }
        let Some((dw, pitch)) = dw else { return };
        let mut kernels = [0f32; 9 * BLOCK];
        for o in 0..channels {
            for v in 0..count {
                let at = v * S::F32_LANES;
                let steps = [(N * sums_step) as isize, sums_step as isize];
                // SAFETY: all points of the channel, and nine elements for so many kernels.
                unsafe {
                    let (from, to) = (sums.as_ptr().add(o * BLOCK + at), kernels.as_mut_ptr().add(at));
                    square::<S, KernelGradient<N>>(simd, from, steps, to, [3 * BLOCK, BLOCK]);
                }
            }
            // SAFETY: the weights of one output channel and so many input channels.
            unsafe { transpose_to(kernels.as_ptr(), BLOCK as isize, 9, inputs, dw.add(o * pitch), 9) };
        }
    }
}

pub(super) fn run<const N: usize>(s: &ConvShape, plan: &Plan, x: &[f32], dy: &[f32], dw: &mut [f32]) {
    let (points, all, inputs) = (N * N, s.batch * plan.down, s.in_channels);
    let input = input_images(s, plan, x);
    let grad = Images { data: dy, channels: s.out_channels, extent: [s.output[1], s.output[2]], pad: [0; 2] };
    let (in_blocks, out_blocks) = (input.blocks(), grad.blocks());
    let tiles = (FACTORS / (points * (in_blocks + out_blocks) * BLOCK)).max(FEWEST_TILES);
    let at_a_time = all.div_ceil(all.div_ceil((tiles / plan.across).max(1)));

    // Every sum is made by one task, so how many there are does not change it.
    let enough = TASKS_EACH * parallel::num_threads();
    let few = |parts: &usize| in_blocks * out_blocks * parts >= enough;
    let parts = [1, 2].into_iter().find(few).unwrap_or(BLOCK / ROWS);
    let channels = BLOCK / parts;
    let room = points * sums_step(channels);
    let once = at_a_time == all;
    let mut kept = Buffer::uninit(if once { 0 } else { 4 * in_blocks * out_blocks * parts * room });
    let kept = Shared::new(kept.as_mut_slice::<f32>());
    let dw = Shared::new(dw);
    for start in (0..all).step_by(at_a_time) {
        let rows = Rows(start..all.min(start + at_a_time));
        let per_block = points * rows.step(plan);
        let mut factors = Buffer::uninit(4 * (in_blocks + out_blocks) * per_block);
        let (v, d) = factors.as_mut_slice::<f32>().split_at_mut(in_blocks * per_block);
        spread::<Input<N>>(input, plan, &rows, Some(SPREAD), v);
        spread::<Gradient<N>>(grad, plan, &rows, Some(SPREAD), d);
        let (v, d) = (&*v, &*d);
        let cost = points * channels * BLOCK * rows.filled(plan) / 8;
        parallel::for_each_range(in_blocks * out_blocks * parts, 1, cost, |task| {
            let (block, part, i) =
                (task.start / parts / in_blocks, task.start / in_blocks % parts, task.start % in_blocks);
            let (o, c) = (block * BLOCK + part * channels, i * BLOCK);
            if o >= s.out_channels {
                return;
            }
            let mut own = Buffer::uninit(if once { 4 * room } else { 0 });
            let sums = match once {
                true => own.as_mut_slice::<f32>(),
                // SAFETY: the task's part of what is kept.
                false => unsafe { std::slice::from_raw_parts_mut(kept.get().add(task.start * room), room) },
            };
            // SAFETY: weights that only this task writes.
            let place = unsafe { dw.get().add((o * inputs + c) * 9) };
            Arch::new().dispatch(Sums::<N> {
                rows: &rows,
                plan,
                grad: &d[block * per_block..][..per_block],
                channel: part * channels,
                channels: channels.min(s.out_channels - o),
                input: &v[i * per_block..][..per_block],
                inputs: (inputs - c).min(BLOCK),
                sums,
                add: start > 0,
                dw: (rows.0.end == all).then_some((place, inputs * 9)),
            });
        });
    }
}
