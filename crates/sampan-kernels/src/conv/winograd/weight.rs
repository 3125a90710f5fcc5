//! The gradient by the weights: transformed tiles of the input times transformed tiles of the gradient, summed over all
//! tiles before they are transformed back, once for each kernel.

use super::lines::{Gradient, Input, KernelGradient, square};
use super::product::{BLOCK, Product, ROWS};
use super::tiles::{GAP, Images, Rows, vectors};
use super::{Own, Plan, input_images, spread};
use crate::conv::ConvShape;
use crate::gemm::pack::transpose_to;
use crate::shared::Shared;
use crate::{Buffer, parallel};
use pulp::{Arch, Simd, WithSimd};

/// Elements of both transformed factors at a time, and the fewest tiles.
const FACTORS: usize = 2 << 20;
const FEWEST_TILES: usize = 64;
/// Tiles that a task transforms.
const SPREAD: usize = 32;
/// The same for each part of the tiles, whose factors stay in the second-level cache; the fewest and the most parts.
const OWN_FACTORS: usize = 160 << 10;
const FEWEST_PARTS: usize = 4;
const MOST_PARTS: usize = 16;
/// Output channels for each thread from which on it transforms all the input for itself: a little more work, and nothing
/// travels from core to core.
const OWN_INPUT: usize = 32;
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
}

/// From one point of sums to the next.
fn sums_step(channels: usize) -> usize {
    channels.next_multiple_of(ROWS) * BLOCK + GAP
}

impl<const N: usize> WithSimd for Sums<'_, N> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Sums { rows, plan, grad, channel, channels, input, inputs, sums, add } = self;
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
    }
}

/// The weights that sums transform back to.
struct Back<'a, const N: usize> {
    sums: &'a [f32],
    channels: usize,
    inputs: usize,
    /// Where the weights of these channels begin, and from one output channel to the next.
    dw: *mut f32,
    pitch: usize,
}

impl<const N: usize> WithSimd for Back<'_, N> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Back { sums, channels, inputs, dw, pitch } = self;
        let sums_step = sums_step(channels);
        assert!(sums.len() >= N * N * sums_step);
        let mut kernels = [0f32; 9 * BLOCK];
        for o in 0..channels {
            for v in 0..vectors::<S>(inputs) {
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

/// A convolution whose gradient is asked for.
struct Job<'a> {
    s: &'a ConvShape,
    plan: &'a Plan,
    input: Images<'a>,
    grad: Images<'a>,
    dw: Shared<f32>,
}

impl Job<'_> {
    /// Rows of tiles of which both transformed factors have about so many elements, as equal as can be.
    fn rows_at_a_time(&self, all: usize, elements: usize, fewest: usize) -> usize {
        let each = self.plan.points() * (self.input.blocks() + self.grad.blocks()) * BLOCK;
        let rows = ((elements / each).max(fewest) / self.plan.across).max(1);
        all.div_ceil(all.div_ceil(rows))
    }

    /// Writes the weights of `channels` output channels from `o` on, and the block of input channels from `c` on.
    fn back<const N: usize>(&self, sums: &[f32], o: usize, channels: usize, c: usize) {
        let (inputs, pitch) = (self.s.in_channels, self.s.in_channels * 9);
        // SAFETY: the beginning of weights that only the caller's task writes.
        let dw = unsafe { self.dw.get().add((o * inputs + c) * 9) };
        Arch::new().dispatch(Back::<N> { sums, channels, inputs: (inputs - c).min(BLOCK), dw, pitch });
    }

    /// Many tiles and few channels: parts of the tiles, each with sums of its own that are added up at the end. Nothing but
    /// these travels from core to core.
    fn by_parts<const N: usize>(&self, parts: usize) {
        let Job { s, plan, input, grad, .. } = *self;
        let (points, all) = (N * N, s.batch * plan.down);
        let (in_blocks, out_blocks) = (input.blocks(), grad.blocks());
        let channels = |block: usize| (s.out_channels - block * BLOCK).min(BLOCK);
        let room = points * sums_step(BLOCK);
        let per_part = in_blocks * out_blocks * room;
        let each = all.div_ceil(parts);
        let at_a_time = self.rows_at_a_time(each, OWN_FACTORS, 1);
        let mut sums = Buffer::uninit(4 * parts * per_part);
        let cost = points * s.in_channels * s.out_channels * each * plan.across / 8;
        parallel::for_each_chunk_mut(sums.as_mut_slice::<f32>(), per_part, cost / per_part + 1, |part, sums| {
            let part = (part * each).min(all)..((part + 1) * each).min(all);
            if part.is_empty() {
                return sums.fill(0.0);
            }
            for start in part.clone().step_by(at_a_time) {
                let rows = Rows(start..part.end.min(start + at_a_time));
                let per_block = points * rows.step(plan);
                let mut factors = Buffer::uninit(4 * (in_blocks + out_blocks) * per_block);
                let (v, d) = factors.as_mut_slice::<f32>().split_at_mut(in_blocks * per_block);
                spread::<Input<N>>(input, plan, &rows, None, v);
                spread::<Gradient<N>>(grad, plan, &rows, None, d);
                for (i, sums) in sums.chunks_exact_mut(room).enumerate() {
                    let (block, c) = (i / in_blocks, i % in_blocks);
                    Arch::new().dispatch(Sums::<N> {
                        rows: &rows,
                        plan,
                        grad: &d[block * per_block..][..per_block],
                        channel: 0,
                        channels: channels(block),
                        input: &v[c * per_block..][..per_block],
                        inputs: (s.in_channels - c * BLOCK).min(BLOCK),
                        sums,
                        add: start > part.start,
                    });
                }
            }
        });
        let shared = Shared::new(sums.as_mut_slice::<f32>());
        parallel::for_each_range(in_blocks * out_blocks, 1, parts * room / 4, |task| {
            let (block, c) = (task.start / in_blocks, task.start % in_blocks);
            // SAFETY: the sums of this block of kernels in each part, which no other task touches.
            let part = |p: usize| unsafe {
                std::slice::from_raw_parts_mut(shared.get().add(p * per_part + task.start * room), room)
            };
            let sums = part(0);
            for p in 1..parts {
                sums.iter_mut().zip(part(p)).for_each(|(o, v)| *o += *v);
            }
            self.back::<N>(sums, block * BLOCK, channels(block), c * BLOCK);
        });
    }

    /// Kernels are shared out, for all tiles at once or as many as fit.
    fn by_kernels<const N: usize>(&self) {
        let Job { s, plan, input, grad, .. } = *self;
        let (points, all, inputs) = (N * N, s.batch * plan.down, s.in_channels);
        let (in_blocks, out_blocks) = (input.blocks(), grad.blocks());
        let at_a_time = self.rows_at_a_time(all, FACTORS, FEWEST_TILES);
        // Every sum is made by one task, so how many there are does not change it.
        let threads = parallel::num_threads();
        let few = |parts: &usize| in_blocks * out_blocks * parts >= TASKS_EACH * threads;
        let parts = [1, 2].into_iter().find(few).unwrap_or(BLOCK / ROWS);
        let channels = BLOCK / parts;
        let room = points * sums_step(channels);
        let once = at_a_time == all;
        let mut kept = Buffer::uninit(if once { 0 } else { 4 * in_blocks * out_blocks * parts * room });
        let kept = Shared::new(kept.as_mut_slice::<f32>());
        for start in (0..all).step_by(at_a_time) {
            let rows = Rows(start..all.min(start + at_a_time));
            let per_block = points * rows.step(plan);
            let mut factor = Buffer::uninit(4 * out_blocks * per_block);
            spread::<Gradient<N>>(grad, plan, &rows, Some(SPREAD), factor.as_mut_slice());
            let d = factor.as_slice::<f32>();
            let v = Own::new(s.out_channels >= threads * OWN_INPUT, || {
                let mut v = Buffer::uninit(4 * in_blocks * per_block);
                spread::<Input<N>>(input, plan, &rows, Some(SPREAD), v.as_mut_slice());
                v
            });
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
                let channels = channels.min(s.out_channels - o);
                Arch::new().dispatch(Sums::<N> {
                    rows: &rows,
                    plan,
                    grad: &d[block * per_block..][..per_block],
                    channel: o - block * BLOCK,
                    channels,
                    input: &v.get().as_slice::<f32>()[i * per_block..][..per_block],
                    inputs: (inputs - c).min(BLOCK),
                    sums,
                    add: start > 0,
                });
                if rows.0.end == all {
                    self.back::<N>(sums, o, channels, c);
                }
            });
        }
    }
}

pub(super) fn run<const N: usize>(s: &ConvShape, plan: &Plan, x: &[f32], dy: &[f32], dw: &mut [f32]) {
    let grad = Images { data: dy, channels: s.out_channels, extent: [s.output[1], s.output[2]], pad: [0; 2] };
    let job = Job { s, plan, input: input_images(s, plan, x), grad, dw: Shared::new(dw) };
    // As many parts that all their sums have half as many elements as the factors, which would travel otherwise.
    let tiles = s.batch * plan.down * plan.across;
    let parts = tiles * (s.in_channels + s.out_channels) / (2 * s.in_channels * s.out_channels);
    match parts.min(s.batch * plan.down) {
        few if few < FEWEST_PARTS => job.by_kernels::<N>(),
        // A power of two, so that threads have equally many.
        many => job.by_parts::<N>(1 << many.min(MOST_PARTS).ilog2()),
    }
}
