//! Convolution: transformed tiles times transformed kernels, and back.

use super::lines::{Input, Kernel, square};
use super::product::{BLOCK, Product};
use super::tiles::{GAP, Gather, Images, Rows, vectors};
use super::{Own, Plan, input_images};
use crate::conv::ConvShape;
use crate::gemm::pack::transpose;
use crate::shared::Shared;
use crate::{Buffer, parallel};
use pulp::{Arch, Simd, WithSimd};
use std::ops::Range;

/// Input channels whose kernels are transformed and multiplied at a time.
const DEPTH: usize = 2 * BLOCK;
/// Kernels that are put side by side before they are transformed.
const GROUP: usize = 8;
/// Elements of the transformed input of a task, so that it stays in the second-level cache, and its fewest tiles.
const OWN_TILES: usize = 96 << 10;
const FEWEST_TILES: usize = 32;
/// Tasks from which on each has tiles of its own, as long as the kernels of all are no more elements than that.
const MANY: usize = 4;
const ALL_KERNELS: usize = 1 << 20;
/// Elements of the transformed input that tasks share, and its fewest tiles.
const SHARED_TILES: usize = 1 << 20;
const FEWEST_SHARED: usize = 96;
/// Output channels for each thread from which on it transforms all the input for itself, and tiles from which on all the
/// kernels: a little more work, and nothing travels from core to core.
const OWN_INPUT: usize = 64;
const OWN_KERNELS: usize = 64;
/// Tiles whose input a task transforms for all.
const SPREAD: usize = 32;

/// The kernels of a convolution.
#[derive(Clone, Copy)]
pub(super) struct Weights<'a> {
    pub(super) w: &'a [f32],
    /// Are they those of the convolution that this one mirrors: channels swapped, elements in reverse?
    pub(super) mirrored: bool,
}

/// Transformed kernels of one block of output channels: `[point, input channel, output channel]`.
struct Kernels<'a, const N: usize> {
    s: &'a ConvShape,
    weights: Weights<'a>,
    block: usize,
    depth: Range<usize>,
    /// From one point to the next.
    step: usize,
    out: *mut f32,
}

impl<'a, const N: usize> Kernels<'a, N> {
    /// # Safety
    /// All points of these channels may be written to `out`, and nobody else touches them.
    #[inline(always)]
    unsafe fn new(
        s: &'a ConvShape,
        weights: Weights<'a>,
        block: usize,
        depth: Range<usize>,
        step: usize,
        out: *mut f32,
    ) -> Self {
        Kernels { s, weights, block, depth, step, out }
    }
}

impl<const N: usize> WithSimd for Kernels<'_, N> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Kernels { s, weights: Weights { w, mirrored }, block, depth, step, out } = self;
        let (first, inputs) = (block * BLOCK, s.in_channels);
        let count = (s.out_channels - first).min(BLOCK);
        let mut side_by_side = [0f32; GROUP * 9 * BLOCK];
        for c in depth.clone().step_by(GROUP) {
            let group = GROUP.min(depth.end - c);
            if mirrored {
                for (i, out) in side_by_side.chunks_exact_mut(9 * BLOCK).take(group).enumerate() {
                    let from = &w[((c + i) * s.out_channels + first) * 9..][..count * 9];
                    // SAFETY: `count` kernels of nine elements.
                    unsafe { transpose(from.as_ptr(), 9, count, 9, BLOCK, out) };
                }
            } else {
                let from = &w[(first * inputs + c) * 9..];
                assert!(((count - 1) * inputs + group) * 9 <= from.len());
                // SAFETY: just checked.
                unsafe {
                    transpose(from.as_ptr(), (inputs * 9) as isize, count, group * 9, BLOCK, &mut side_by_side);
                }
            }
            let block = BLOCK as isize;
            // In reverse from the last element on.
            let (start, steps) = if mirrored { (8 * BLOCK, [-3 * block, -block]) } else { (0, [3 * block, block]) };
            for i in 0..group {
                for v in 0..vectors::<S>(count) {
                    // SAFETY: a kernel of `side_by_side`, and its points in `out`, as was promised.
                    unsafe {
                        let from = side_by_side.as_ptr().add(i * 9 * BLOCK + start + v * S::F32_LANES);
                        let to = out.add((c + i - depth.start) * BLOCK + v * S::F32_LANES);
                        square::<S, Kernel<N>>(simd, from, steps, to, [N * step, step]);
                    }
                }
            }
        }
    }
}

/// Outputs of one block of channels in some rows of tiles.
struct Outputs<'a, const N: usize> {
    s: &'a ConvShape,
    plan: &'a Plan,
    rows: &'a Rows,
    block: usize,
    /// Transformed input, `[block of channels, point, tile, channel]`.
    v: &'a [f32],
    weights: Weights<'a>,
    /// Transformed kernels of the block, or room for those of [`DEPTH`] input channels.
    kernels: Result<&'a [f32], &'a mut [f32]>,
    bias: Option<&'a [f32]>,
    /// Room for sums, and for outputs.
    sums: &'a mut [f32],
    places: &'a mut [f32],
    y: *mut f32,
}

impl<const N: usize> WithSimd for Outputs<'_, N> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Outputs { s, plan, rows, block, v, weights, mut kernels, bias, sums, places, y } = self;
        let (points, step, filled) = (N * N, rows.step(plan), rows.filled(plan));
        let real = (s.out_channels - block * BLOCK).min(BLOCK);
        let cols = vectors::<S>(real) * S::F32_LANES;
        assert!(v.len() >= s.in_channels.div_ceil(BLOCK) * points * step && sums.len() >= points * step);
        for start in (0..s.in_channels).step_by(DEPTH) {
            let depth = start..s.in_channels.min(start + DEPTH);
            let (u, u_step) = match &mut kernels {
                Ok(all) => (&all[start * BLOCK..], kernel_step(s.in_channels)),
                Err(room) => {
                    let (depth, step) = (depth.clone(), kernel_step(DEPTH));
                    assert!(room.len() >= points * step);
                    // SAFETY: just checked, and the room is ours alone.
                    unsafe { Kernels::<N>::new(s, weights, block, depth, step, room.as_mut_ptr()) }.with_simd(simd);
                    (&room[..], step)
                }
            };
            assert!(u.len() >= (points - 1) * u_step + depth.len() * BLOCK);
            for p in 0..points {
                let product = Product {
                    rows: filled,
                    cols,
                    depth: depth.len(),
                    a: v[(start / BLOCK * points + p) * step..].as_ptr(),
                    a_block: points * step,
                    b: u[p * u_step..].as_ptr(),
                    to: sums[p * step..].as_mut_ptr(),
                    add: start > 0,
                };
                // SAFETY: points have the tiles and channels that were just checked.
                unsafe { product.run::<S, BLOCK, 1>(simd) };
            }
        }
        if let Some(bias) = bias {
            // Point (1, 1), or (0, 0) where there are but three, is part of every output as it is.
            let all = if N == 3 { 0 } else { N + 1 };
            let bias = &bias[block * BLOCK..][..real];
            for tile in sums[all * step..][..filled * BLOCK].chunks_exact_mut(BLOCK) {
                tile.iter_mut().zip(bias).for_each(|(o, b)| *o += b);
            }
        }
        let (channels, extent) = (s.out_channels, [s.output[1], s.output[2]]);
        // SAFETY: promised by whoever made this.
        unsafe { Gather::<N> { plan, rows, block, channels, extent, sums, places, y }.run(simd) };
    }
}

/// From one point of transformed kernels to the next.
fn kernel_step(inputs: usize) -> usize {
    inputs * BLOCK + GAP
}

/// Rows of tiles of which about `elements` are transformed at a time, at least `fewest` tiles, as equal as can be.
fn rows_at_a_time(s: &ConvShape, plan: &Plan, elements: usize, fewest: usize) -> usize {
    let tiles = (elements / (plan.points() * s.in_channels)).max(fewest);
    let all = s.batch * plan.down;
    all.div_ceil(all.div_ceil((tiles / plan.across).max(1)))
}

pub(super) fn run<const N: usize>(
    s: &ConvShape,
    plan: &Plan,
    x: &[f32],
    weights: Weights,
    bias: Option<&[f32]>,
    y: &mut [f32],
) {
    let (inputs, points, all) = (s.in_channels, N * N, s.batch * plan.down);
    let (in_blocks, out_blocks) = (inputs.div_ceil(BLOCK), s.out_channels.div_ceil(BLOCK));
    let images = input_images(s, plan, x);
    let y = Shared::new(y);
    let outputs = |rows: &Rows, block: usize, v: &[f32], kernels: Option<&[f32]>| {
        let (sums, room) = (points * rows.step(plan), if kernels.is_none() { points * kernel_step(DEPTH) } else { 0 });
        let mut buffer = Buffer::uninit(4 * (sums + room + Gather::<N>::places(plan, rows, s.output[2])));
        let (sums, rest) = buffer.as_mut_slice::<f32>().split_at_mut(sums);
        let (room, places) = rest.split_at_mut(room);
        let kernels = kernels.ok_or(room);
        let y = y.get();
        // (Every call has a block of channels in some rows for itself.)
        Arch::new().dispatch(Outputs::<N> { s, plan, rows, block, v, weights, kernels, bias, sums, places, y });
    };
    let rows = rows_at_a_time(s, plan, OWN_TILES, FEWEST_TILES);
    let threads = parallel::num_threads();
    if all.div_ceil(rows) >= MANY && points * inputs * s.out_channels <= ALL_KERNELS {
        let per_block = points * kernel_step(inputs);
        let kernels = Own::new(all * plan.across >= threads * OWN_KERNELS, || all_kernels::<N>(s, weights));
        parallel::for_each_range(all, rows, points * inputs * s.out_channels * plan.across / 8, |range| {
            let rows = Rows(range);
            let kernels = kernels.get().as_slice::<f32>();
            let mut v = Buffer::uninit(4 * in_blocks * points * rows.step(plan));
            spread::<N>(images, plan, &rows, false, v.as_mut_slice());
            for block in 0..out_blocks {
                outputs(&rows, block, v.as_slice(), Some(&kernels[block * per_block..][..per_block]));
            }
        });
        return;
    }
    let rows = rows_at_a_time(s, plan, SHARED_TILES, FEWEST_SHARED);
    for start in (0..all).step_by(rows) {
        let rows = Rows(start..all.min(start + rows));
        let v = Own::new(s.out_channels >= threads * OWN_INPUT, || {
            let mut v = Buffer::uninit(4 * in_blocks * points * rows.step(plan));
            spread::<N>(images, plan, &rows, true, v.as_mut_slice());
            v
        });
        let cost = points * inputs * BLOCK * rows.filled(plan) / 8;
        parallel::for_each_range(out_blocks, 1, cost, |block| outputs(&rows, block.start, v.get().as_slice(), None));
    }
}

/// The transformed kernels of all blocks of output channels.
fn all_kernels<const N: usize>(s: &ConvShape, weights: Weights) -> Buffer {
    let (points, inputs) = (N * N, s.in_channels);
    let (groups, out_blocks) = (inputs.div_ceil(BLOCK), s.out_channels.div_ceil(BLOCK));
    let per_block = points * kernel_step(inputs);
    let mut kernels = Buffer::uninit(4 * out_blocks * per_block);
    let shared = Shared::new(kernels.as_mut_slice::<f32>());
    parallel::for_each_range(out_blocks * groups, 1, points * BLOCK * BLOCK / 4, |task| {
        let (block, first) = (task.start / groups, task.start % groups * BLOCK);
        let depth = first..inputs.min(first + BLOCK);
        // SAFETY: the block's kernels from the first of this group on; no other task writes those of this group.
        let kernels = unsafe {
            let out = shared.get().add(block * per_block + first * BLOCK);
            Kernels::<N>::new(s, weights, block, depth, kernel_step(inputs), out)
        };
        Arch::new().dispatch(kernels);
    });
    kernels
}

/// Transforms the tiles of all channels, on several threads if `apart`.
fn spread<const N: usize>(images: Images, plan: &Plan, rows: &Rows, apart: bool, v: &mut [f32]) {
    super::spread::<Input<N>>(images, plan, rows, apart.then_some(SPREAD), v);
    // What fills up the tiles is multiplied too.
    let (tiles, step) = (rows.0.len() * plan.across * BLOCK, rows.step(plan));
    v.chunks_exact_mut(step).for_each(|point| point[tiles..].fill(0.0));
}
