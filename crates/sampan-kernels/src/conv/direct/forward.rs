//! Outputs, and by the same loops gradients by data.

use super::{Lines, by_place, images_at_a_time, turn};
use crate::conv::ConvShape;
use crate::conv::few_channels::even;
use crate::conv::winograd::product::BLOCK;
use crate::gemm::pack::transpose_to;
use crate::shared::Shared;
use crate::{Buffer, parallel};
use pulp::{Arch, Simd, WithSimd};
use std::ops::Range;

/// Elements of a line that are summed at once, with 32 and with 16 registers.
const ROWS: usize = 8;
const FEW_ROWS: usize = 4;
/// Outputs of a task, at least.
const TASK: usize = 224;

/// Weights as products want them: `[block of outputs, block of inputs, kernel element, input, output]`, and whether they are
/// the transposed ones.
fn turn_weights(s: &ConvShape, w: &[f32], transposed: bool) -> Buffer {
    let (inputs, outputs) = match transposed {
        false => (s.in_channels, s.out_channels),
        true => (s.out_channels, s.in_channels),
    };
    let (taps, in_blocks, out_blocks) = (s.taps(), inputs.div_ceil(BLOCK), outputs.div_ceil(BLOCK));
    let mut out = Buffer::uninit(4 * in_blocks * out_blocks * taps * BLOCK * BLOCK);
    let per_pair = taps * BLOCK * BLOCK;
    parallel::for_each_chunk_mut(out.as_mut_slice::<f32>(), per_pair, 1, |i, out| {
        let (o, c) = (i / in_blocks * BLOCK, i % in_blocks * BLOCK);
        let (count, depth) = ((outputs - o).min(BLOCK), (inputs - c).min(BLOCK));
        for d in 0..depth {
            let (at, line) = match transposed {
                false => ((o * inputs + c + d) * taps, inputs * taps),
                true => (((c + d) * outputs + o) * taps, taps),
            };
            let from = &w[at..];
            assert!((count - 1) * line + taps <= from.len() && out.len() == per_pair);
            // SAFETY: `count` kernels, and a row of `count` for each kernel element, a block of inputs apart.
            unsafe {
                let to = out.as_mut_ptr().add(d * BLOCK);
                transpose_to(from.as_ptr(), line as isize, count, taps, to, BLOCK * BLOCK);
            }
        }
    });
    out
}

/// Sums for one line and one block of outputs.
struct Sums<'a> {
    /// Turned input of `inputs` channels, `per_block` elements for each block of them.
    x: &'a [f32],
    inputs: usize,
    per_block: usize,
    /// Weights of the block of outputs.
    w: &'a [f32],
    /// What the lines read, `[line]` of kernel elements and places.
    reads: &'a [Vec<(usize, usize)>],
    taps: usize,
    /// From one input of a line to the next.
    step: usize,
    /// For each line where its first output lies and how many there are; from one to the next.
    outs: &'a [(usize, usize)],
    out_step: usize,
    /// Added to every output.
    bias: &'a [f32],
    cols: usize,
    out: &'a mut [f32],
}

impl WithSimd for Sums<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let blocks = self.inputs.div_ceil(BLOCK);
        assert!(self.w.len() >= blocks * self.taps * BLOCK * BLOCK && self.x.len() >= blocks * self.per_block);
        assert!(self.bias.len() >= BLOCK);
        let most = if S::F32_LANES >= 16 { ROWS } else { FEW_ROWS };
        for line in 0..self.reads.len() {
            let (first, count) = self.outs[line];
            assert!(count == 0 || (first + (count - 1) * self.out_step + 1) * BLOCK <= self.out.len());
            for &(tap, place) in &self.reads[line] {
                let last = place + count.saturating_sub(1) * self.step;
                assert!(tap < self.taps && (last + 1) * BLOCK <= self.per_block);
            }
            for piece in even(count, most) {
                for col in (0..self.cols).step_by(2 * S::F32_LANES) {
                    if self.cols - col > S::F32_LANES {
                        self.pick::<S, 2>(simd, line, piece.clone(), col);
                    } else {
                        self.pick::<S, 1>(simd, line, piece.clone(), col);
                    }
                }
            }
        }
    }
}

impl Sums<'_> {
    #[inline(always)]
    fn pick<S: Simd, const V: usize>(&mut self, simd: S, line: usize, piece: Range<usize>, col: usize) {
        macro_rules! rows {
            ($($n:literal),*) => {
                match piece.len() {
                    $($n => self.tile::<S, $n, V>(simd, line, piece.start, col),)*
                    _ => {}
                }
            };
        }
        if S::F32_LANES >= 16 {
            rows!(1, 2, 3, 4, 5, 6, 7, 8);
        } else {
            rows!(1, 2, 3, 4);
        }
    }

    #[inline(always)]
    fn tile<S: Simd, const R: usize, const V: usize>(&mut self, simd: S, line: usize, first: usize, col: usize) {
        let lanes = S::F32_LANES;
        let mut sum = [[simd.splat_f32s(0.0); V]; R];
        let row = self.step * BLOCK;
        // SAFETY: the places that were found inside for whole lines, so many channels and kernel elements.
        unsafe {
            for v in 0..V {
                let bias = self.bias.as_ptr().add(col + v * lanes).cast::<S::f32s>().read_unaligned();
                for r in 0..R {
                    sum[r][v] = bias;
                }
            }
            for block in 0..self.inputs.div_ceil(BLOCK) {
                let depth = (self.inputs - block * BLOCK).min(BLOCK);
                let x = self.x.as_ptr().add(block * self.per_block + first * row);
                let w = self.w.as_ptr().add(block * self.taps * BLOCK * BLOCK + col);
                for &(tap, place) in &self.reads[line] {
                    let (mut a, mut b) = (x.add(place * BLOCK), w.add(tap * BLOCK * BLOCK));
                    for _ in 0..depth {
                        let mut bv = [simd.splat_f32s(0.0); V];
                        for v in 0..V {
                            bv[v] = b.add(v * lanes).cast::<S::f32s>().read_unaligned();
                        }
                        for r in 0..R {
                            let av = simd.splat_f32s(*a.add(r * row));
                            for v in 0..V {
                                sum[r][v] = simd.mul_add_e_f32s(av, bv[v], sum[r][v]);
                            }
                        }
                        (a, b) = (a.add(1), b.add(BLOCK));
                    }
                }
            }
            let out = self.out.as_mut_ptr().add((self.outs[line].0 + first * self.out_step) * BLOCK + col);
            for r in 0..R {
                for v in 0..V {
                    let to = out.add(r * self.out_step * BLOCK + v * lanes);
                    to.cast::<S::f32s>().write_unaligned(sum[r][v]);
                }
            }
        }
    }
}

/// What is computed: images of `channels` channels and `extent`, in rows that are cut into `residues` lines each.
struct Target {
    batch: usize,
    channels: usize,
    extent: [usize; 2],
    residues: usize,
    by_place: bool,
}

fn run(t: &Target, inputs: usize, lines: &Lines, x: &[f32], w: &[f32], bias: Option<&[f32]>, y: &mut [f32]) {
    let [height, width] = t.extent;
    let (plane, taps) = (height * width, lines.taps);
    // Units of a task: places, or rows of images.
    let (units, each) = if t.by_place { (plane, t.batch) } else { (t.batch * height, width) };
    let per_task = TASK.div_ceil(each);
    // Rows of one image only.
    let per_task = if t.by_place { per_task } else { height.div_ceil(height.div_ceil(per_task)) };
    let per_image = height.div_ceil(per_task);
    let parts = if t.by_place { units.div_ceil(per_task) } else { t.batch * per_image };
    let blocks = t.channels.div_ceil(BLOCK);
    let y = Shared::new(y);
    let cost = per_task * each * BLOCK * inputs * taps / 16;
    parallel::for_each_range(parts * blocks, 1, cost, |task| {
        let (part, block) = (task.start / blocks, task.start % blocks);
        let rows = match t.by_place {
            true => part * per_task..units.min((part + 1) * per_task),
            false => {
                let (image, row) = (part / per_image, part % per_image * per_task);
                image * height + row..image * height + height.min(row + per_task)
            }
        };
        let residues = t.residues;
        let mut reads = Vec::with_capacity(rows.len() * residues);
        let mut outs = Vec::with_capacity(rows.len() * residues);
        for (i, unit) in rows.clone().enumerate() {
            for r in 0..residues {
                reads.push(lines.of(unit * residues + r).collect::<Vec<_>>());
                outs.push((i * each + r, each.saturating_sub(r).div_ceil(residues)));
            }
        }
        let real = (t.channels - block * BLOCK).min(BLOCK);
        let mut padded = [0f32; BLOCK];
        if let Some(bias) = bias {
            padded[..real].copy_from_slice(&bias[block * BLOCK..][..real]);
        }
        let per_output = inputs.div_ceil(BLOCK) * taps * BLOCK * BLOCK;
        let mut out = Buffer::uninit(4 * rows.len() * each * BLOCK);
        Arch::new().dispatch(Sums {
            x,
            inputs,
            per_block: lines.layout.len * BLOCK,
            w: &w[block * per_output..][..per_output],
            reads: &reads,
            taps,
            step: lines.step,
            outs: &outs,
            out_step: residues,
            bias: &padded,
            cols: real.next_multiple_of(16),
            out: out.as_mut_slice(),
        });
        let from = out.as_slice::<f32>().as_ptr();
        // SAFETY: these rows or places of these channels, which no other task writes.
        unsafe {
            if t.by_place {
                for image in 0..t.batch {
                    let to = y.get().add((image * t.channels + block * BLOCK) * plane + rows.start);
                    let line = (t.batch * BLOCK) as isize;
                    transpose_to(from.add(image * BLOCK), line, rows.len(), real, to, plane);
                }
            } else {
                let (image, row) = (rows.start / height, rows.start % height);
                let to = y.get().add((image * t.channels + block * BLOCK) * plane + row * width);
                transpose_to(from, BLOCK as isize, rows.len() * width, real, to, plane);
            }
        }
    });
}

/// `y = x ⋆ w + bias`.
pub(crate) fn forward(s: &ConvShape, x: &[f32], w: &[f32], bias: Option<&[f32]>, y: &mut [f32]) {
    let w = turn_weights(s, w, false);
    let most = images_at_a_time(s);
    let (x_each, y_each) = (s.x_len() / s.batch, s.y_len() / s.batch);
    for (x, y) in x.chunks(most * x_each).zip(y.chunks_mut(most * y_each)) {
        let s = &ConvShape { batch: x.len() / x_each, ..*s };
        let lines = Lines::forward(s);
        let x = turn(x, s.in_channels, s.batch, [s.input[1], s.input[2]], &lines.layout);
        let extent = [s.output[1], s.output[2]];
        let by_place = by_place(s);
        let target = Target { batch: s.batch, channels: s.out_channels, extent, residues: 1, by_place };
        run(&target, s.in_channels, &lines, x.as_slice(), w.as_slice(), bias, y);
    }
}

/// The gradient by data.
pub(crate) fn backward_data(s: &ConvShape, w: &[f32], dy: &[f32], dx: &mut [f32]) {
    let w = turn_weights(s, w, true);
    let most = images_at_a_time(s);
    let (x_each, y_each) = (s.x_len() / s.batch, s.y_len() / s.batch);
    for (dy, dx) in dy.chunks(most * y_each).zip(dx.chunks_mut(most * x_each)) {
        let s = &ConvShape { batch: dx.len() / x_each, ..*s };
        let lines = Lines::backward(s);
        let dy = turn(dy, s.out_channels, s.batch, [s.output[1], s.output[2]], &lines.layout);
        let extent = [s.input[1], s.input[2]];
        let by_place = by_place(s);
        let residues = if by_place { 1 } else { s.stride[2] };
        let target = Target { batch: s.batch, channels: s.in_channels, extent, residues, by_place };
        run(&target, s.out_channels, &lines, dy.as_slice(), w.as_slice(), None, dx);
    }
}
