//! Winograd's convolution for 3×3 kernels with unit steps in `f32`: tiles of m×m outputs from (m+2)×(m+2) inputs with one
//! product per input element instead of nine per output, so 2.25 (m = 2) or 4 (m = 4) times fewer.
//!
//! Input tiles and kernels are transformed, multiplied as one small matrix product over the channels for each of the
//! (m+2)² elements, and the sums transformed back. Sums of transformed numbers cancel, so results are a little less exact
//! than direct sums: relative to the largest output about 1e-6 for m = 2 and 1e-5 for m = 4. An infinity or NaN in the
//! input reaches all outputs of its tile.
//!
//! Lanes are tiles: rows of tiles of all images follow each other, and a block of some of them is done at a time.

use crate::conv::ConvShape;
use crate::conv_flat::{copy, even};
use crate::float::Shared;
use crate::{Buffer, parallel};
use pulp::{Arch, Simd, WithSimd};
use std::ops::Range;
use std::sync::atomic::{AtomicU8, Ordering};

/// Which 3×3 convolutions in `f32` (and half types) may be computed by Winograd's method, which is faster and a little
/// less exact. See [`set_winograd`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Winograd {
    /// None: every output is a direct sum of products.
    Off,
    /// Only with tiles of 2×2 outputs, whose errors are those of direct sums within a small factor.
    Small,
    /// With tiles of 4×4 or 2×2 outputs, whichever is faster, where they are faster than direct sums. The default; errors
    /// stay below 1e-4 of the largest output.
    Auto,
}

/// The setting plus one; zero before anybody asked.
static SETTING: AtomicU8 = AtomicU8::new(0);

/// Chooses which 3×3 convolutions may use Winograd's method. At start the environment variable `SAMPAN_WINOGRAD` (`off`,
/// `small` or `auto`) decides.
pub fn set_winograd(setting: Winograd) {
    SETTING.store(setting as u8 + 1, Ordering::Relaxed);
}

/// The setting of [`set_winograd`].
pub fn winograd() -> Winograd {
    match SETTING.load(Ordering::Relaxed) {
        0 => {
            set_winograd(match std::env::var("SAMPAN_WINOGRAD").as_deref() {
                Ok("off") => Winograd::Off,
                Ok("small") => Winograd::Small,
                _ => Winograd::Auto,
            });
            winograd()
        }
        1 => Winograd::Off,
        2 => Winograd::Small,
        _ => Winograd::Auto,
    }
}

/// Output channels multiplied at once; those of a kernel are filled up to a multiple of it.
const CHANNELS: usize = 8;
/// Vectors of tiles multiplied at once.
const VECTORS: usize = 3;
/// Lanes of the widest vector: tiles of a block are filled up to a multiple of it.
const WIDEST: usize = 16;
/// Elements of the transformed input of a block, so that it stays in the second-level cache.
const BLOCK: usize = 160 << 10;
/// Elements of the transformed kernels up to which they stay in the third-level cache; beyond that reading them costs more
/// than the method saves.
const KERNELS: usize = 3 << 20;
/// Elements between points, beyond their data: at a distance that is a power of two they would share cache lines.
const GAP: usize = 16;
/// Blocks from which each is a task of its own; fewer are done one after the other, each on all threads.
const MANY: usize = 4;

/// Input channels that a task transforms.
const TASK: usize = 16;

/// How a convolution is cut into tiles.
#[derive(Clone, Copy, Debug)]
struct Plan {
    /// Extent of a tile's output.
    m: usize,
    /// Tiles across and down an image.
    across: usize,
    down: usize,
    /// Rows of tiles of a block, and its tiles, filled up.
    rows: usize,
    tiles: usize,
    blocks: usize,
}

impl Plan {
    fn new(s: &ConvShape, m: usize) -> Plan {
        let (across, down) = (s.output[2].div_ceil(m), s.output[1].div_ceil(m));
        let all = s.batch * down;
        let filled = |rows: usize| (rows * across).next_multiple_of(WIDEST);
        let most = (BLOCK / ((m + 2) * (m + 2) * s.in_channels)).clamp(VECTORS * WIDEST, 4 * VECTORS * WIDEST);
        // As full as possible: fewest filled-up tiles over all blocks.
        let waste = |&rows: &usize| (all.div_ceil(rows) * filled(rows), all.div_ceil(rows));
        let fits = (1..=all).take_while(|&rows| rows == 1 || filled(rows) <= most);
        let rows = fits.min_by_key(waste).unwrap_or(1);
        Plan { m, across, down, rows, tiles: filled(rows), blocks: all.div_ceil(rows) }
    }

    fn points(&self) -> usize {
        (self.m + 2) * (self.m + 2)
    }

    /// About how many cycles of one core it takes.
    fn cost(&self, s: &ConvShape) -> usize {
        let (ci, co) = (s.in_channels, s.out_channels.next_multiple_of(CHANNELS));
        let tiles = self.blocks * self.tiles;
        let products = self.points() * ci * co * tiles / WIDEST;
        let transforms = self.points() * (ci + co) * tiles / 4;
        products * 9 / 8 + transforms + self.points() * ci * co * 3 / 2
    }
}

/// The cheapest plan for that shape, if one is cheaper than direct sums.
fn plan(s: &ConvShape) -> Option<Plan> {
    let planar = s.input[0] == 1 && s.output[0] == 1 && s.kernel == [1, 3, 3] && s.pad_begin[0] == 0;
    if !planar || s.stride != [1; 3] || s.dilation != [1; 3] || s.groups != 1 || s.in_channels < 16 {
        return None;
    }
    let direct = s.y_len() * s.k() / WIDEST * 5 / 4;
    let sizes: &[usize] = match winograd() {
        Winograd::Off => return None,
        Winograd::Small => &[2],
        Winograd::Auto => &[4, 2],
    };
    let fits = |p: &Plan| p.points() * s.in_channels * s.out_channels <= KERNELS;
    let best = sizes.iter().map(|&m| Plan::new(s, m)).filter(fits).min_by_key(|p| p.cost(s))?;
    (best.cost(s) < direct).then_some(best)
}

/// Is [`forward`] the fastest path for that shape?
pub(crate) fn suits(s: &ConvShape) -> bool {
    plan(s).is_some()
}

/// `k · a + b`. (A function: closures are not compiled for the wider instruction set.)
#[inline(always)]
fn scaled<S: Simd>(simd: S, k: f32, a: S::f32s, b: S::f32s) -> S::f32s {
    simd.mul_add_e_f32s(simd.splat_f32s(k), a, b)
}

/// Transforms one line of an input tile.
#[inline(always)]
fn input_line<S: Simd, const N: usize>(simd: S, d: [S::f32s; N]) -> [S::f32s; N] {
    let mut out = d;
    if N == 4 {
        out[0] = simd.sub_f32s(d[0], d[2]);
        out[1] = simd.add_f32s(d[1], d[2]);
        out[2] = simd.sub_f32s(d[2], d[1]);
        out[3] = simd.sub_f32s(d[1], d[3]);
    } else {
        let (even, odd) = (scaled(simd, -4.0, d[2], d[4]), scaled(simd, -4.0, d[1], d[3]));
        let (even2, odd2) = (simd.sub_f32s(d[4], d[2]), simd.sub_f32s(d[3], d[1]));
        out[0] = scaled(simd, 4.0, d[0], scaled(simd, -5.0, d[2], d[4]));
        out[1] = simd.add_f32s(even, odd);
        out[2] = simd.sub_f32s(even, odd);
        out[3] = scaled(simd, 2.0, odd2, even2);
        out[4] = scaled(simd, -2.0, odd2, even2);
        out[5] = scaled(simd, 4.0, d[1], scaled(simd, -5.0, d[3], d[5]));
    }
    out
}

/// Transforms one line of sums back; the first `N - 2` of the result count.
#[inline(always)]
fn output_line<S: Simd, const N: usize>(simd: S, m: [S::f32s; N]) -> [S::f32s; N] {
    let mut out = m;
    let (sum, difference) = (simd.add_f32s(m[1], m[2]), simd.sub_f32s(m[1], m[2]));
    if N == 4 {
        out[0] = simd.add_f32s(m[0], sum);
        out[1] = simd.sub_f32s(difference, m[3]);
    } else {
        let (sum2, difference2) = (simd.add_f32s(m[3], m[4]), simd.sub_f32s(m[3], m[4]));
        out[0] = simd.add_f32s(simd.add_f32s(m[0], sum), sum2);
        out[1] = scaled(simd, 2.0, difference2, difference);
        out[2] = scaled(simd, 4.0, sum2, sum);
        out[3] = simd.add_f32s(scaled(simd, 8.0, difference2, difference), m[5]);
    }
    out
}

/// Transforms one line of a kernel, for several channels at once.
#[inline(always)]
fn kernel_line<const N: usize>(g: [[f32; CHANNELS]; 3]) -> [[f32; CHANNELS]; N] {
    let mut out = [[0.0; CHANNELS]; N];
    for i in 0..CHANNELS {
        let [a, b, c] = [g[0][i], g[1][i], g[2][i]];
        if N == 4 {
            out[0][i] = a;
            out[1][i] = (a + b + c) / 2.0;
            out[2][i] = (a - b + c) / 2.0;
        } else {
            out[0][i] = a / 4.0;
            out[1][i] = -(a + b + c) * (1.0 / 6.0);
            out[2][i] = (b - a - c) * (1.0 / 6.0);
            out[3][i] = (a + 2.0 * b + 4.0 * c) * (1.0 / 24.0);
            out[4][i] = (a - 2.0 * b + 4.0 * c) * (1.0 / 24.0);
        }
        out[N - 1][i] = c;
    }
    out
}

/// Transformed kernels of one block of output channels: `[point, in channel, output channel]`.
struct Kernels<'a, const N: usize> {
    s: &'a ConvShape,
    w: &'a [f32],
    /// The weights are those of the convolution that this one mirrors: channels swapped, elements in reverse.
    mirrored: bool,
    channels: Range<usize>,
    out: &'a mut [f32],
}

impl<const N: usize> WithSimd for Kernels<'_, N> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let channels = self.s.in_channels;
        for c in 0..channels {
            let mut g = [[[0.0; CHANNELS]; 3]; 3];
            for (i, o) in self.channels.clone().enumerate() {
                let at = if self.mirrored { c * self.s.out_channels + o } else { o * channels + c };
                let w = &self.w[9 * at..9 * at + 9];
                for t in 0..9 {
                    g[t / 3][t % 3][i] = if self.mirrored { w[8 - t] } else { w[t] };
                }
            }
            let rows: [[[f32; CHANNELS]; N]; 3] = [kernel_line(g[0]), kernel_line(g[1]), kernel_line(g[2])];
            for j in 0..N {
                let column: [[f32; CHANNELS]; N] = kernel_line([rows[0][j], rows[1][j], rows[2][j]]);
                for i in 0..N {
                    self.out[(i * N + j) * (channels * CHANNELS + GAP) + c * CHANNELS..][..CHANNELS]
                        .copy_from_slice(&column[i]);
                }
            }
        }
    }
}

/// Deals a row out: `out[q][t] = row[t * M + q]`.
#[inline(always)]
fn deal<const M: usize>(row: &[f32], out: &mut [f32]) {
    let len = row.len() / M;
    for q in 0..M {
        for (out, chunk) in out[q * len..][..len].iter_mut().zip(row.chunks_exact(M)) {
            *out = chunk[q];
        }
    }
}

/// Transformed input of one channel of a block: `[point, channel, tile]`.
struct Inputs<'a, const N: usize, const M: usize> {
    s: &'a ConvShape,
    plan: &'a Plan,
    x: &'a [f32],
    channel: usize,
    /// The rows of tiles.
    rows: Range<usize>,
    scratch: &'a mut [f32],
    /// From point 0 of this channel.
    out: *mut f32,
}

/// Elements of the scratch of a task.
fn scratch(plan: &Plan) -> usize {
    let n = plan.m + 2;
    let line = plan.m * (plan.across + 1);
    (plan.down * plan.m + 3) * line + WIDEST + n * n * (plan.tiles + WIDEST)
}

impl<const N: usize, const M: usize> WithSimd for Inputs<'_, N, M> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Inputs { s, plan, x, channel, rows, scratch, out } = self;
        let ([_, ih, iw], [_, top, left]) = (s.input, s.pad_begin);
        let (pitch, line) = (plan.tiles + WIDEST, M * (plan.across + 1));
        let (spread, dealt) = scratch.split_at_mut(N * N * pitch);
        let (padded, dealt) = dealt.split_at_mut(line);
        let (mut q, mut tile) = (rows.start, 0);
        while q < rows.end {
            // The rows of tiles that lie in one image.
            let (image, first) = (q / plan.down, q % plan.down);
            let count = (plan.down - first).min(rows.end - q);
            let x = &x[(image * s.in_channels + channel) * ih * iw..][..ih * iw];
            for i in 0..M * count + 2 {
                let row = &mut dealt[i * line..][..line];
                match (first * M + i).checked_sub(top).filter(|&h| h < ih) {
                    Some(h) => {
                        let low = left.min(line);
                        let high = (left + iw).min(line);
                        padded[..low].fill(0.0);
                        padded[high..].fill(0.0);
                        padded[low..high].copy_from_slice(&x[h * iw..][..high - low]);
                        deal::<M>(padded, row);
                    }
                    None => row.fill(0.0),
                }
            }
            for r in 0..count {
                for i in 0..N {
                    for j in 0..N {
                        let from = (M * r + i) * line + j % M * (plan.across + 1) + j / M;
                        let (from, to) = (&dealt[from..], &mut spread[(i * N + j) * pitch + tile..]);
                        assert!(from.len() >= plan.across + WIDEST - 1 && to.len() >= plan.across + WIDEST - 1);
                        // SAFETY: both slices have a vector more than is copied. Rows of tiles are written in order, and
                        // what the last one writes too much lies in the gap between points.
                        unsafe { copy(simd, from.as_ptr(), to.as_mut_ptr(), plan.across) };
                    }
                }
                tile += plan.across;
            }
            q += count;
        }
        let zero = simd.splat_f32s(0.0);
        let step = s.in_channels * plan.tiles + GAP;
        for t in (0..plan.tiles).step_by(S::F32_LANES) {
            // `rows[i][j]`, first transformed by columns.
            let mut rows = [[zero; N]; N];
            for j in 0..N {
                let mut column = [zero; N];
                for i in 0..N {
                    let from = &spread[(i * N + j) * pitch + t..][..S::F32_LANES];
                    // SAFETY: as many elements as a vector has.
                    column[i] = unsafe { from.as_ptr().cast::<S::f32s>().read_unaligned() };
                }
                let column = input_line(simd, column);
                for i in 0..N {
                    rows[i][j] = column[i];
                }
            }
            for i in 0..N {
                let row = input_line(simd, rows[i]);
                for j in 0..N {
                    // SAFETY: tile `t` of point (i, j) of this channel, which no other task writes.
                    unsafe { out.add((i * N + j) * step + t).cast::<S::f32s>().write_unaligned(row[j]) };
                }
            }
        }
    }
}

/// Outputs of one group of channels of a block of tiles.
struct Outputs<'a, const N: usize, const M: usize> {
    s: &'a ConvShape,
    plan: &'a Plan,
    /// Transformed input, `[point, channel, tile]`, and kernels, `[point, channel, output channel]`.
    v: &'a [f32],
    u: &'a [f32],
    bias: Option<&'a [f32]>,
    channels: Range<usize>,
    rows: Range<usize>,
    /// Room for the sums, `[point, output channel, tile]`, and for the outputs of one channel, `[place, tile]`.
    sums: &'a mut [f32],
    places: &'a mut [f32],
    y: *mut f32,
}

impl<const N: usize, const M: usize> WithSimd for Outputs<'_, N, M> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let (depth, tiles) = (self.s.in_channels, self.plan.tiles);
        assert!(self.v.len() >= N * N * (depth * tiles + GAP) && self.places.len() >= M * M * tiles);
        assert!(self.sums.len() >= N * N * (CHANNELS * tiles + GAP));
        for point in 0..N * N {
            for piece in even(tiles / S::F32_LANES, VECTORS) {
                match piece.len() {
                    1 => self.multiply::<S, 1>(simd, point, piece.start),
                    2 => self.multiply::<S, 2>(simd, point, piece.start),
                    _ => self.multiply::<S, VECTORS>(simd, point, piece.start),
                }
            }
        }
        for i in 0..self.channels.len() {
            self.back(simd, i);
            self.store(self.channels.start + i);
        }
    }
}

impl<const N: usize, const M: usize> Outputs<'_, N, M> {
    #[inline(always)]
    fn multiply<S: Simd, const V: usize>(&mut self, simd: S, point: usize, first: usize) {
        let (depth, tiles) = (self.s.in_channels, self.plan.tiles);
        let v = &self.v[point * (depth * tiles + GAP)..][..depth * tiles];
        let u = &self.u[point * (depth * CHANNELS + GAP)..][..depth * CHANNELS];
        let mut sum = [[simd.splat_f32s(0.0); V]; CHANNELS];
        for (v, u) in v.chunks_exact(tiles).zip(u.chunks_exact(CHANNELS)) {
            let v: [S::f32s; V] = std::array::from_fn(|i| {
                let at = (first + i) * S::F32_LANES;
                debug_assert!(at + S::F32_LANES <= v.len());
                // SAFETY: vectors divide the tiles of a block.
                unsafe { v.as_ptr().add(at).cast::<S::f32s>().read_unaligned() }
            });
            for n in 0..CHANNELS {
                let u = simd.splat_f32s(u[n]);
                for i in 0..V {
                    sum[n][i] = simd.mul_add_e_f32s(u, v[i], sum[n][i]);
                }
            }
        }
        for n in 0..CHANNELS {
            for i in 0..V {
                let at = point * (CHANNELS * tiles + GAP) + n * tiles + (first + i) * S::F32_LANES;
                let out = &mut self.sums[at..at + S::F32_LANES];
                // SAFETY: as many elements as a vector has.
                unsafe { out.as_mut_ptr().cast::<S::f32s>().write_unaligned(sum[n][i]) };
            }
        }
    }

    /// Transforms the sums of one channel back.
    #[inline(always)]
    fn back<S: Simd>(&mut self, simd: S, channel: usize) {
        let tiles = self.plan.tiles;
        let step = CHANNELS * tiles + GAP;
        let bias = simd.splat_f32s(self.bias.map_or(0.0, |b| b[self.channels.start + channel]));
        for t in (0..tiles).step_by(S::F32_LANES) {
            let mut rows = [[bias; N]; M];
            for j in 0..N {
                let mut column = [bias; N];
                for i in 0..N {
                    let from = &self.sums[(i * N + j) * step + channel * tiles + t..][..S::F32_LANES];
                    // SAFETY: as many elements as a vector has.
                    column[i] = unsafe { from.as_ptr().cast::<S::f32s>().read_unaligned() };
                }
                let column = output_line(simd, column);
                for i in 0..M {
                    rows[i][j] = column[i];
                }
            }
            for i in 0..M {
                let row = output_line(simd, rows[i]);
                for j in 0..M {
                    let out = &mut self.places[(i * M + j) * tiles + t..][..S::F32_LANES];
                    // SAFETY: as many elements as a vector has.
                    unsafe { out.as_mut_ptr().cast::<S::f32s>().write_unaligned(simd.add_f32s(row[j], bias)) };
                }
            }
        }
    }

    /// Writes the outputs of one channel to their places.
    #[inline(always)]
    fn store(&mut self, channel: usize) {
        let (s, plan) = (self.s, self.plan);
        let [_, oh, ow] = s.output;
        for (r, q) in self.rows.clone().enumerate() {
            let (image, first) = (q / plan.down, q % plan.down * M);
            for i in 0..M.min(oh - first) {
                let place = ((image * s.out_channels + channel) * oh + first + i) * ow;
                // SAFETY: one row of one output channel, which no other task writes.
                let y = unsafe { std::slice::from_raw_parts_mut(self.y.add(place), ow) };
                let from: [&[f32]; M] =
                    std::array::from_fn(|j| &self.places[(i * M + j) * plan.tiles + r * plan.across..][..plan.across]);
                let (whole, rest) = y.as_chunks_mut::<M>();
                for (t, y) in whole.iter_mut().enumerate() {
                    for j in 0..M {
                        y[j] = from[j][t];
                    }
                }
                rest.iter_mut().enumerate().for_each(|(j, y)| *y = from[j][plan.across - 1]);
            }
        }
    }
}

/// `y = x ⋆ w + bias`, for shapes that [`suits`] likes; with `mirrored` weights, the gradient by data of the convolution
/// that `s` mirrors.
pub(crate) fn forward(s: &ConvShape, x: &[f32], w: &[f32], mirrored: bool, bias: Option<&[f32]>, y: &mut [f32]) {
    let plan = plan(s).expect("the caller asked whether it suits");
    match plan.m {
        2 => run::<4, 2>(s, &plan, x, w, mirrored, bias, y),
        _ => run::<6, 4>(s, &plan, x, w, mirrored, bias, y),
    }
}

/// Calls `f` with every number below `count`, in parallel if `apart`.
fn each(apart: bool, count: usize, cost: usize, f: impl Fn(usize) + Sync + Send) {
    match apart {
        true => parallel::for_each_range(count, 1, cost, |r| f(r.start)),
        false => (0..count).for_each(f),
    }
}

fn run<const N: usize, const M: usize>(
    s: &ConvShape,
    plan: &Plan,
    x: &[f32],
    w: &[f32],
    mirrored: bool,
    bias: Option<&[f32]>,
    y: &mut [f32],
) {
    let (depth, tiles, points) = (s.in_channels, plan.tiles, N * N);
    let groups = s.out_channels.div_ceil(CHANNELS);
    let per_group = points * (depth * CHANNELS + GAP);
    let mut kernels = Buffer::uninit(4 * groups * per_group);
    parallel::for_each_chunk_mut(kernels.as_mut_slice::<f32>(), per_group, 4, |g, out| {
        let channels = g * CHANNELS..((g + 1) * CHANNELS).min(s.out_channels);
        Arch::new().dispatch(Kernels::<N> { s, w, mirrored, channels, out });
    });
    let kernels = kernels.as_slice::<f32>();
    let y = Shared::new(y);
    // Many blocks are done side by side, few one after the other with their channels side by side.
    let many = plan.blocks >= MANY;
    each(many, plan.blocks, points * depth * s.out_channels * tiles, |block| {
        let rows = block * plan.rows..((block + 1) * plan.rows).min(s.batch * plan.down);
        let mut v = Buffer::uninit(4 * points * (depth * tiles + GAP));
        let shared = Shared::new(v.as_mut_slice::<f32>());
        each(!many, depth.div_ceil(TASK), points * tiles * TASK, |part| {
            let mut buffer = Buffer::uninit(4 * scratch(plan));
            let scratch = buffer.as_mut_slice::<f32>();
            for channel in part * TASK..((part + 1) * TASK).min(depth) {
                // SAFETY: the channel's first element of `v`, which has all channels.
                let out = unsafe { shared.get().add(channel * tiles) };
                Arch::new().dispatch(Inputs::<N, M> { s, plan, x, channel, rows: rows.clone(), scratch, out });
            }
        });
        let v = v.as_slice::<f32>();
        each(!many, groups, points * depth * CHANNELS * tiles, |g| {
            let room = points * (CHANNELS * tiles + GAP);
            let mut buffer = Buffer::uninit(4 * (room + M * M * tiles));
            let (sums, places) = buffer.as_mut_slice::<f32>().split_at_mut(room);
            Arch::new().dispatch(Outputs::<N, M> {
                s,
                plan,
                v,
                u: &kernels[g * per_group..][..per_group],
                bias,
                channels: g * CHANNELS..((g + 1) * CHANNELS).min(s.out_channels),
                rows: rows.clone(),
                sums,
                places,
                y: y.get(),
            });
        });
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conv::conv_forward;

    #[test]
    fn close_to_direct_sums() {
        let noise = |len: usize, seed: usize| {
            let value = |i: usize| (((i * 7919 + seed * 131) % 10_007) as f32 * 0.37).sin();
            (0..len).map(value).collect::<Vec<_>>()
        };
        let up = |v: &[f32]| v.iter().map(|&v| v as f64).collect::<Vec<_>>();
        for (batch, ci, co, height, width, [top, left, bottom, right]) in [
            (1, 1, 1, 3, 3, [0; 4]),
            (1, 2, 9, 1, 1, [1; 4]),
            (2, 3, 5, 7, 9, [1; 4]),
            (5, 20, 17, 4, 6, [2, 0, 1, 3]),
            (3, 16, 8, 30, 31, [1; 4]),
            (2, 5, 4, 2, 70, [5, 4, 3, 2]),
            (1, 300, 11, 14, 14, [1; 4]),
        ] {
            let (pad, pad_end) = ([0, top, left], [0, bottom, right]);
            let s =
                ConvShape::new(batch, ci, co, 1, [1, height, width], [1, 3, 3], [1; 3], [1; 3], pad, pad_end).unwrap();
            let (x, w, bias) = (noise(s.x_len(), 1), noise(s.w_len(), 2), noise(co, 3));
            let mut expected = vec![0f64; s.y_len()];
            conv_forward(&s, &up(&x), &up(&w), Some(&up(&bias)), &mut expected);
            let largest = expected.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
            let check = |m: usize, limit: f64| {
                let mut y = vec![f32::NAN; s.y_len()];
                match m {
                    2 => run::<4, 2>(&s, &Plan::new(&s, 2), &x, &w, false, Some(&bias), &mut y),
                    _ => run::<6, 4>(&s, &Plan::new(&s, 4), &x, &w, false, Some(&bias), &mut y),
                }
                let error = y.iter().zip(&expected).fold(0.0, |m: f64, (y, e)| m.max((*y as f64 - e).abs()));
                assert!(
                    y.iter().all(|v| v.is_finite()) && error <= limit * largest,
                    "m = {m}: {error:e} of {largest}, {s:?}"
                );
            };
            check(2, 1e-5);
            check(4, 5e-5);
        }
    }

    #[test]
    fn mirrored_weights() {
        let s = ConvShape::new(2, 6, 9, 1, [1, 8, 7], [1, 3, 3], [1; 3], [1; 3], [0, 1, 1], [0, 1, 1]).unwrap();
        let dy: Vec<f32> = (0..s.y_len()).map(|i| (i * 7919 % 13) as f32 - 6.0).collect();
        let w: Vec<f32> = (0..s.w_len()).map(|i| (i * 7919 % 7) as f32 - 3.0).collect();
        let up = |v: &[f32]| v.iter().map(|&v| v as f64).collect::<Vec<_>>();
        let (mut expected, mut dx) = (vec![0f64; s.x_len()], vec![f32::NAN; s.x_len()]);
        crate::conv::conv_backward_data(&s, &up(&w), &up(&dy), &mut expected);
        let m = ConvShape { in_channels: 9, out_channels: 6, ..s };
        run::<4, 2>(&m, &Plan::new(&m, 2), &dy, &w, true, None, &mut dx);
        assert!(dx.iter().zip(&expected).all(|(a, b)| (*a as f64 - b).abs() < 1e-3));
    }

    #[test]
    fn threads_do_not_change_bits() {
        // Many blocks of tiles, and few.
        for (batch, channels, extent) in [(6, 20, 40), (1, 40, 12)] {
            let (input, pad) = ([1, extent, extent], [0, 1, 1]);
            let s = ConvShape::new(batch, channels, 30, 1, input, [1, 3, 3], [1; 3], [1; 3], pad, pad).unwrap();
            let noise = |len: usize| (0..len).map(|i| ((i * 7919 % 1013) as f32).sin()).collect::<Vec<_>>();
            let (x, w) = (noise(s.x_len()), noise(s.w_len()));
            let all = |threads: usize| {
                parallel::set_num_threads(threads);
                let mut y = vec![0.0; s.y_len()];
                run::<6, 4>(&s, &Plan::new(&s, 4), &x, &w, false, None, &mut y);
                y
            };
            let one = all(1);
            assert!([2, 3, 5].into_iter().all(|threads| all(threads) == one), "{s:?}");
        }
    }

    #[test]
    fn only_where_it_pays() {
        let planar = |channels: usize, extent: usize, kernel: usize| {
            let (input, kernel) = ([1, extent, extent], [1, kernel, kernel]);
            ConvShape::new(4, channels, channels, 1, input, kernel, [1; 3], [1; 3], [0, 1, 1], [0, 1, 1]).unwrap()
        };
        let large = planar(64, 56, 3);
        assert!(Plan::new(&large, 4).cost(&large) < Plan::new(&large, 2).cost(&large));
        assert!(!suits(&planar(3, 56, 3)) && !suits(&planar(64, 56, 5)) && !suits(&ConvShape { groups: 2, ..large }));
        set_winograd(Winograd::Off);
        assert!(winograd() == Winograd::Off && !suits(&large));
    }
}
