//! Winograd's method over blocked images with kernels that were transformed before; see [`crate::conv`] for the method.

use super::tile::{Channels, Read, Rows, Tiles, packed_len, panel};
use super::{After, BLOCK};
use crate::conv::ConvShape;
use crate::conv::few_channels::even;
use crate::conv::winograd::lines::{Input, Kernel, Output, outputs, square};
use crate::conv::winograd::{Winograd, winograd};
use crate::shared::Shared;
use crate::{Buffer, parallel};
use pulp::{Arch, Simd, WithSimd};
use std::ops::Range;

/// Elements between points, beyond their data: at a distance that is a power of two they would share cache lines.
const GAP: usize = 16;
/// Elements of transformed input of a task that has its own, and of what tasks share.
const OWN: usize = 64 << 10;
const SHARED: usize = 1 << 20;
/// Elements of transformed kernels from which on tasks share the input and have kernels of their own.
const MANY_KERNELS: usize = 512 << 10;
/// Tiles that are multiplied at a time.
const TILES: usize = 36;

/// How an image is cut into tiles.
#[derive(Clone, Copy)]
struct Plan {
    m: usize,
    across: usize,
    down: usize,
}

impl Plan {
    fn new(s: &ConvShape, points: usize) -> Plan {
        let m = outputs(points);
        Plan { m, across: s.output[2].div_ceil(m), down: s.output[1].div_ceil(m) }
    }

    fn tiles(&self) -> usize {
        self.across * self.down
    }
}

/// Bytes that come from memory in a cycle.
const BYTES: usize = 6;

/// About how many cycles of two cores it takes: products, transforms, and kernels that come from memory.
fn cost(s: &ConvShape, points: usize) -> usize {
    let all = s.batch * Plan::new(s, points).tiles() * points * points;
    let (ci, co) = (s.in_channels, s.out_channels.next_multiple_of(BLOCK));
    all * (ci * co * 9 / 8 + 6 * (ci + co)) / (2 * BLOCK) + 4 * points * points * ci * co / BYTES
}

/// The points along an axis that are fastest for that shape; `None` where direct sums are.
pub(super) fn points(s: &ConvShape) -> Option<usize> {
    let fits = s.kernel == [1, 3, 3] && s.stride == [1; 3] && s.dilation == [1; 3] && s.groups == 1;
    if !fits || s.in_channels < BLOCK || s.out_channels < BLOCK {
        return None;
    }
    let sizes: &[usize] = match winograd() {
        Winograd::Off => return None,
        Winograd::Small => &[4],
        Winograd::Auto => &[6, 4],
    };
    let direct = s.batch * s.y_plane() * s.out_channels.next_multiple_of(BLOCK) * s.k() / (2 * BLOCK) * 9 / 8
        + 4 * s.w_len() / BYTES;
    let best = sizes.iter().copied().min_by_key(|&n| cost(s, n))?;
    (cost(s, best) < direct).then_some(best)
}

/// Transformed kernels: `[panel, point, input, output of the panel]`.
pub(super) fn pack(s: &ConvShape, points: usize, w: &[f32]) -> Buffer {
    match points {
        4 => pack_as::<4>(s, w),
        _ => pack_as::<6>(s, w),
    }
}

/// A part of the kernels of one panel.
struct Kernels<'a, const N: usize> {
    s: &'a ConvShape,
    w: &'a [f32],
    first: usize,
    width: usize,
    inputs: Range<usize>,
    out: *mut f32,
}

impl<const N: usize> WithSimd for Kernels<'_, N> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let (lanes, inputs) = (S::F32_LANES, self.s.in_channels);
        let mut taps = [0f32; 9 * BLOCK];
        for c in self.inputs.clone() {
            for v in (0..self.width).step_by(lanes) {
                let real = (self.s.out_channels - (self.first + v).min(self.s.out_channels)).min(lanes);
                taps.fill(0.0);
                for o in 0..real {
                    let kernel = &self.w[((self.first + v + o) * inputs + c) * 9..][..9];
                    kernel.iter().enumerate().for_each(|(t, k)| taps[t * lanes + o] = *k);
                }
                let (lane, step) = (lanes as isize, inputs * self.width);
                // SAFETY: nine vectors of taps, and all points of this input in the panel, as whoever made this promised.
                unsafe {
                    let to = self.out.add(c * self.width + v);
                    square::<S, Kernel<N>>(simd, taps.as_ptr(), [3 * lane, lane], to, [N * step, step]);
                }
            }
        }
    }
}

fn pack_as<const N: usize>(s: &ConvShape, w: &[f32]) -> Buffer {
    let (panel, lanes) = (panel(), panel() / 2);
    let (all, inputs) = (packed_len(s.out_channels, N * N * s.in_channels), s.in_channels);
    let mut out = Buffer::uninit(4 * all);
    let to = Shared::new(out.as_mut_slice::<f32>());
    let (panels, parts) = (s.out_channels.div_ceil(panel), inputs.div_ceil(BLOCK));
    parallel::for_each_range(panels * parts, 1, N * N * BLOCK * panel / 4, |task| {
        let (first, c) = (task.start / parts * panel, task.start % parts * BLOCK);
        let width = (s.out_channels - first).next_multiple_of(lanes).min(panel);
        let inputs = c..inputs.min(c + BLOCK);
        // SAFETY: the panels before this one are whole, and no other task writes these inputs of it.
        let out = unsafe { to.get().add(first * N * N * s.in_channels) };
        Arch::new().dispatch(Kernels::<N> { s, w, first, width, inputs, out });
    });
    out
}

/// Transforms the input of some tiles of one block of channels.
struct Spread<'a, const N: usize> {
    s: &'a ConvShape,
    plan: Plan,
    /// The block's plane.
    x: &'a [f32],
    tiles: Range<usize>,
    step: usize,
    /// The first point of the first tile.
    out: *mut f32,
}

impl<const N: usize> WithSimd for Spread<'_, N> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Spread { s, plan, x, tiles, step, out } = self;
        let ([_, ih, iw], [_, top, left]) = (s.input, s.pad_begin);
        let mut patch = [0f32; 6 * 6 * BLOCK];
        assert_eq!(x.len(), ih * iw * BLOCK);
        for (i, tile) in tiles.enumerate() {
            let (h, w) = (tile / plan.across * plan.m, tile % plan.across * plan.m);
            let inside = h >= top && w >= left && h + N <= ih + top && w + N <= iw + left;
            if !inside {
                patch.fill(0.0);
                let rows = top.saturating_sub(h)..N.min((ih + top).saturating_sub(h));
                let columns = left.saturating_sub(w)..N.min((iw + left).saturating_sub(w));
                if !columns.is_empty() {
                    for r in rows {
                        let from = ((h + r - top) * iw + w + columns.start - left) * BLOCK;
                        let to = (r * N + columns.start) * BLOCK;
                        patch[to..][..columns.len() * BLOCK].copy_from_slice(&x[from..][..columns.len() * BLOCK]);
                    }
                }
            }
            for v in (0..BLOCK).step_by(S::F32_LANES) {
                // SAFETY: the tile lies inside the plane, or in the patch; its points in `out` are ours.
                unsafe {
                    let to = out.add(i * BLOCK + v);
                    let block = BLOCK as isize;
                    if inside {
                        let from = x.as_ptr().add(((h - top) * iw + w - left) * BLOCK + v);
                        square::<S, Input<N>>(simd, from, [iw as isize * block, block], to, [N * step, step]);
                    } else {
                        let from = patch.as_ptr().add(v);
                        square::<S, Input<N>>(simd, from, [N as isize * block, block], to, [N * step, step]);
                    }
                }
            }
        }
    }
}

/// Outputs of some tiles of one image and one panel of channels.
struct Outputs<'a, const N: usize> {
    s: &'a ConvShape,
    plan: Plan,
    /// The tiles of the image, the first of which is tile `place` of the transformed input.
    tiles: Range<usize>,
    place: usize,
    /// `[block of channels, point, tile, channel]`.
    v: &'a [f32],
    step: usize,
    /// The kernels of the panel.
    w: *const f32,
    first: usize,
    sums: &'a mut [f32],
    bias: Option<&'a [f32]>,
    add: Option<*const f32>,
    after: After,
    /// The first output of the image.
    y: *mut f32,
}

impl<const N: usize> WithSimd for Outputs<'_, N> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Outputs { s, plan, tiles, place, v, step, w, first, sums, bias, add, after, y } = self;
        let (lanes, points, inputs) = (S::F32_LANES, N * N, s.in_channels);
        let width = (s.out_channels - first).next_multiple_of(lanes).min(2 * lanes);
        let reads: smallvec::SmallVec<[Read; 64]> = (0..inputs.div_ceil(BLOCK))
            .map(|b| Read { offset: b * points * step, depth: (inputs - b * BLOCK).min(BLOCK) })
            .collect();
        let sum_step = tiles.len() * width + GAP;
        assert!(sums.len() >= points * sum_step && v.len() >= inputs.div_ceil(BLOCK) * points * step);
        assert!((place + tiles.len()) * BLOCK <= step);
        for p in 0..points {
            let rows = Rows { lines: 1, count: tiles.len(), x_line: 0, x_row: BLOCK, y_line: 0, y_row: width };
            // SAFETY: the tiles of this point in all blocks, whose places were just checked; room for their sums.
            let product = unsafe {
                Tiles {
                    rows,
                    reads: &reads,
                    depth: inputs,
                    first: 0,
                    end: width,
                    all: width,
                    x: v.as_ptr().add(p * step + place * BLOCK),
                    w: w.add(p * inputs * width),
                    bias: None,
                    add: None,
                    after: After::Same,
                    channels: Channels::Row,
                    y: sums.as_mut_ptr().add(p * sum_step),
                }
            };
            // (Of its own: inside of this one it would be compiled again.)
            Arch::new().dispatch(product);
        }
        let m = plan.m;
        let ([_, oh, ow], plane) = (s.output, s.y_plane() * BLOCK);
        let mut corner = [0f32; 4 * 4 * BLOCK];
        for (i, tile) in tiles.enumerate() {
            let (h, w) = (tile / plan.across * m, tile % plan.across * m);
            let (high, wide) = (m.min(oh - h), m.min(ow - w));
            for v in (0..width).step_by(lanes) {
                let c = first + v;
                // SAFETY: all points of the tile lie in the sums; the outputs of the tile and of these channels are ours.
                unsafe {
                    let from = sums.as_ptr().add(i * width + v);
                    let steps = [(N * sum_step) as isize, sum_step as isize];
                    square::<S, Output<N>>(simd, from, steps, corner.as_mut_ptr(), [m * lanes, lanes]);
                    let bias = match bias {
                        Some(bias) => bias.as_ptr().add(c).cast::<S::f32s>().read_unaligned(),
                        None => simd.splat_f32s(0.0),
                    };
                    for a in 0..high {
                        for b in 0..wide {
                            let at = c / BLOCK * plane + ((h + a) * ow + w + b) * BLOCK + c % BLOCK;
                            let sum = corner.as_ptr().add((a * m + b) * lanes).cast::<S::f32s>().read_unaligned();
                            let mut value = simd.add_f32s(sum, bias);
                            if let Some(add) = add {
                                value = simd.add_f32s(value, add.add(at).cast::<S::f32s>().read_unaligned());
                            }
                            y.add(at).cast::<S::f32s>().write_unaligned(after.of(simd, value));
                        }
                    }
                }
            }
        }
    }
}

/// `y = after(x ⋆ w + bias + add)`.
pub(super) fn run(
    s: &ConvShape,
    points: usize,
    x: &[f32],
    w: &[f32],
    bias: Option<&[f32]>,
    add: Option<&[f32]>,
    after: After,
    y: &mut [f32],
) {
    match points {
        4 => run_as::<4>(s, x, w, bias, add, after, y),
        _ => run_as::<6>(s, x, w, bias, add, after, y),
    }
}

fn run_as<const N: usize>(
    s: &ConvShape,
    x: &[f32],
    w: &[f32],
    bias: Option<&[f32]>,
    add: Option<&[f32]>,
    after: After,
    y: &mut [f32],
) {
    let plan = Plan::new(s, N);
    let (points, inputs, tiles, panel) = (N * N, s.in_channels, plan.tiles(), panel());
    let blocks = inputs.div_ceil(BLOCK);
    let (x_block, y_image) = (s.x_plane() * BLOCK, y.len() / s.batch);
    let (y, add) = (Shared::new(y), add.map(|a| Shared::new_const(a.as_ptr())));
    let spread = |image: usize, tiles: Range<usize>, block: usize, step: usize, out: *mut f32| {
        let x = &x[(image * blocks + block) * x_block..][..x_block];
        Arch::new().dispatch(Spread::<N> { s, plan, x, tiles, step, out });
    };
    let outputs =
        |image: usize, tiles: Range<usize>, place: usize, v: &[f32], step: usize, first: usize, sums: &mut [f32]| {
            // SAFETY: the panels before this one are whole, and every image has so many outputs.
            let (w, y, add) = unsafe {
                let at = image * y_image;
                let add = add.map(|a| a.get().cast_const().add(at));
                (w.as_ptr().add(first * points * inputs), y.get().add(at), add)
            };
            Arch::new().dispatch(Outputs::<N> { s, plan, tiles, place, v, step, w, first, sums, bias, add, after, y });
        };
    let panels = s.out_channels.div_ceil(panel);
    let per_tile = points * inputs;
    if points * inputs * s.out_channels < MANY_KERNELS || s.batch * tiles * per_tile > SHARED {
        // Each task transforms the input of its own tiles, for all outputs.
        let most = (OWN / per_tile).clamp(8, TILES);
        let parts = tiles.div_ceil(most);
        parallel::for_each_range(s.batch * parts, 1, most * per_tile * s.out_channels / 16, |task| {
            let (image, part) = (task.start / parts, task.start % parts);
            let own = part * tiles / parts..(part + 1) * tiles / parts;
            let step = own.len() * BLOCK + GAP;
            let mut room = Buffer::uninit(4 * (blocks * points * step + points * (own.len() * panel + GAP)));
            let (v, sums) = room.as_mut_slice::<f32>().split_at_mut(blocks * points * step);
            for (block, out) in v.chunks_exact_mut(points * step).enumerate() {
                spread(image, own.clone(), block, step, out.as_mut_ptr());
            }
            for p in 0..panels {
                outputs(image, own.clone(), 0, v, step, p * panel, sums);
            }
        });
        return;
    }
    // All threads transform the input, and each then has kernels of its own.
    let step = s.batch * tiles * BLOCK + GAP;
    let mut v = Buffer::uninit(4 * blocks * points * step);
    let to = Shared::new(v.as_mut_slice::<f32>());
    parallel::for_each_range(s.batch * blocks, 1, points * tiles * BLOCK / 4, |task| {
        let (image, block) = (task.start / blocks, task.start % blocks);
        // SAFETY: the tiles of this image in this block, which no other task writes.
        let out = unsafe { to.get().add(block * points * step + image * tiles * BLOCK) };
        spread(image, 0..tiles, block, step, out);
    });
    let v = v.as_slice::<f32>();
    parallel::for_each_range(panels, 1, s.batch * tiles * per_tile * panel / 16, |task| {
        let mut sums = Buffer::uninit(4 * points * (TILES * panel + GAP));
        for image in 0..s.batch {
            for own in even(tiles, TILES) {
                let place = image * tiles + own.start;
                outputs(image, own, place, v, step, task.start * panel, sums.as_mut_slice());
            }
        }
    });
}
