//! Depthwise convolution in `f32` over up to three spatial axes, forward and both gradients, for any stride, padding and
//! dilation.
//!
//! A band of rows of one channel is copied into a small buffer with its padding, and dealt out by stride into phases. There
//! every kernel element lies at a fixed distance, so all strides and dilations are one loop. Several rows are summed at
//! once: what one loads, its neighbours use too. The gradient by the data is the same sum with the phases on the other
//! side.

mod layout;
mod weight;

use crate::conv::ConvShape;
use crate::shared::Shared;
use crate::{Buffer, parallel};
use layout::{Axis, Column, Layout, Sum, collect};
use pulp::{Arch, Simd, WithSimd};
use std::ops::Range;
pub(crate) use weight::backward_weight;

/// Elements of the widest vector.
const WIDEST: usize = 16;
/// Vectors of output summed at once: enough sums in flight to hide the latency of each.
const BLOCK: usize = 8;
/// Most kernel elements of a column that are summed at once: their weights stay in registers.
const COLUMN: usize = 5;
/// Operations of one task, so that handing it over is cheap.
const TASK: usize = 1 << 18;

pub(crate) fn is_depthwise(s: &ConvShape) -> bool {
    s.group_in() == 1 && s.group_out() == 1
}

/// A vector of `x` from `at` on.
///
/// # Safety
/// All of it lies inside `x`.
#[inline(always)]
unsafe fn load<S: Simd>(x: &[f32], at: usize) -> S::f32s {
    debug_assert!(at + S::F32_LANES <= x.len());
    // SAFETY: the caller promises it.
    unsafe { x.as_ptr().add(at).cast::<S::f32s>().read_unaligned() }
}

/// Sums of `R` rows and `N` vectors of each. Rows and vectors are so far `apart` in the packed band.
#[inline(always)]
fn block<S: Simd, const R: usize, const N: usize>(
    simd: S,
    x: &[f32],
    apart: [usize; 2],
    columns: &[Column],
    w: &[f32],
    start: f32,
) -> [[S::f32s; N]; R] {
    let mut sums = [[simd.splat_f32s(start); N]; R];
    for column in columns {
        let x = &x[column.offset..];
        match column.taps[..] {
            [a] => add_column(simd, x, apart, [w[a]], &mut sums),
            [a, b] => add_column(simd, x, apart, [w[a], w[b]], &mut sums),
            [a, b, c] => add_column(simd, x, apart, [w[a], w[b], w[c]], &mut sums),
            [a, b, c, d] => add_column(simd, x, apart, [w[a], w[b], w[c], w[d]], &mut sums),
            [a, b, c, d, e] => add_column(simd, x, apart, [w[a], w[b], w[c], w[d], w[e]], &mut sums),
            _ => unreachable!("a column has one to {COLUMN} kernel elements"),
        }
    }
    sums
}

/// `sums[r] += Σ w[m] · x[row r + m]`; a row is loaded once for all sums that it takes part in.
#[inline(always)]
fn add_column<S: Simd, const R: usize, const N: usize, const M: usize>(
    simd: S,
    x: &[f32],
    [row, vector]: [usize; 2],
    w: [f32; M],
    sums: &mut [[S::f32s; N]; R],
) {
    assert!((R + M - 2) * row + (N - 1) * vector + S::F32_LANES <= x.len());
    let w = w.map(|w| simd.splat_f32s(w));
    for m in 0..M {
        for r in 0..R {
            for n in 0..N {
                // SAFETY: the farthest vector was just found inside `x`.
                let x = unsafe { load::<S>(x, (r + m) * row + n * vector) };
                sums[r][n] = simd.mul_add_e_f32s(w[m], x, sums[r][n]);
            }
        }
    }
}

/// Rows of results, `step` apart.
struct Rows {
    place: *mut f32,
    step: usize,
    count: usize,
    width: usize,
}

impl Rows {
    /// Writes sums of rows from `row` on, the vectors of each at columns `at`.
    #[inline(always)]
    fn store<S: Simd, const R: usize, const N: usize>(
        &self,
        simd: S,
        row: usize,
        at: [usize; 2],
        sums: [[S::f32s; N]; R],
    ) {
        let end = (self.count - 1) * self.step + self.width;
        for r in 0..R {
            for n in 0..N {
                let place = (row + r) * self.step + at[n];
                // SAFETY: up to `end` all belongs to whoever made this value.
                unsafe {
                    if place + S::F32_LANES <= end {
                        // What goes past the end of a short row lies in later ones, which are written after it.
                        self.place.add(place).cast::<S::f32s>().write_unaligned(sums[r][n]);
                    } else {
                        let rest = std::slice::from_raw_parts_mut(self.place.add(place), end - place);
                        simd.partial_store_f32s(rest, sums[r][n]);
                    }
                }
            }
        }
    }

    /// Sums all rows.
    #[inline(always)]
    fn fill<S: Simd>(&self, simd: S, x: &[f32], pitch: usize, columns: &[Column], w: &[f32], start: f32) {
        // The last vector of a row overlaps the one before it, so as not to go past the end.
        let last = self.width.saturating_sub(S::F32_LANES);
        let mut column = 0;
        while column < self.width {
            let two = self.width - column > S::F32_LANES;
            let at = if two { [column, last.min(column + S::F32_LANES)] } else { [last.min(column); 2] };
            let apart = [pitch, at[1] - at[0]];
            let most = if two { BLOCK / 2 } else { BLOCK };
            for row in (0..self.count).step_by(most) {
                let x = &x[row * pitch + at[0]..];
                macro_rules! sizes {
                    ($vectors:literal, $($n:literal)*) => {
                        match most.min(self.count - row) {
                            $($n => {
                                let sums = block::<S, $n, $vectors>(simd, x, apart, columns, w, start);
                                self.store(simd, row, at, sums);
                            })*
                            _ => unreachable!("a block has at most {BLOCK} vectors"),
                        }
                    };
                }
                if two {
                    sizes!(2, 1 2 3 4);
                } else {
                    sizes!(1, 1 2 3 4 5 6 7 8);
                }
            }
            column += if two { 2 * S::F32_LANES } else { S::F32_LANES };
        }
    }
}

/// Some bands of a forward convolution or of the gradient by the data.
struct Bands<'a> {
    layout: &'a Layout,
    sums: &'a [Sum],
    /// `[channels, kernel]`.
    w: &'a [f32],
    bias: Option<&'a [f32]>,
    source: &'a [f32],
    dest: Shared<f32>,
    /// Counted through images, channels, planes and bands.
    tasks: Range<usize>,
}

impl WithSimd for Bands<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Bands { layout, sums, w, bias, source, dest, tasks } = self;
        let [depth, rows, columns] = &layout.axes;
        let (bands, width) = (layout.bands(), columns.to.len);
        let taps = layout.kernel.iter().product::<usize>();
        let channels = w.len() / taps;
        let source_len = depth.from.len * rows.from.len * columns.from.len;
        let dest_len = depth.to.len * rows.to.len * width;
        // Phases of a row of the destination, before they are collected.
        let phases = if columns.to.step > 1 || rows.to.step > 1 { columns.to.step } else { 0 };
        let flat_len = layout.flat();
        let mut packed = Buffer::zeroed(4 * layout.len());
        let mut flat = Buffer::uninit(4 * phases * flat_len);
        let (packed, flat) = (packed.as_mut_slice::<f32>(), flat.as_mut_slice::<f32>());
        for task in tasks {
            let (at, band) = (task / bands, task % bands);
            let (plane, d) = (at / depth.to.len, at % depth.to.len);
            let (channel, first) = (plane % channels, band * layout.band);
            let (w, start) = (&w[channel * taps..][..taps], bias.map_or(0.0, |b| b[channel]));
            layout.pack(&source[plane * source_len..][..source_len], d, band, packed);
            for sum in sums {
                let inside = rows.to.indices(sum.row_phase);
                let inside = inside.start.max(first)..inside.end.min(first + layout.band);
                if inside.is_empty() {
                    continue;
                }
                let row_of = |index: usize| index * rows.to.step + sum.row_phase - rows.to.pad;
                let place = |index: usize| plane * dest_len + (d * rows.to.len + row_of(index)) * width;
                let x = &packed[(inside.start - first) * layout.pitch..];
                if phases == 0 {
                    let x = &x[columns.to.pad..];
                    // SAFETY: rows of plane `d` of an image's channel, inside the destination, whose length was checked;
                    // no other task has them.
                    let place = unsafe { dest.get().add(place(inside.start)) };
                    let out = Rows { place, step: width, count: inside.len(), width };
                    out.fill(simd, x, layout.pitch, &sum.columns, w, start);
                    continue;
                }
                let out = &mut flat[sum.column_phase * flat_len..][..flat_len];
                let (step, width_here) = (layout.pitch, columns.to.indices(sum.column_phase).end);
                let out = Rows { place: out.as_mut_ptr(), step, count: inside.len(), width: width_here };
                out.fill(simd, x, layout.pitch, &sum.columns, w, start);
                if sum.column_phase + 1 < columns.to.step {
                    continue;
                }
                for (i, index) in inside.enumerate() {
                    // SAFETY: as above, one row.
                    let out = unsafe { std::slice::from_raw_parts_mut(dest.get().add(place(index)), width) };
                    collect(&columns.to, flat, i * layout.pitch, flat_len, out);
                }
            }
        }
    }
}

fn run(s: &ConvShape, layout: &Layout, source: &[f32], w: &[f32], bias: Option<&[f32]>, dest: &mut [f32]) {
    let sums = layout.sums();
    let cost = (2 * s.taps() + 4) * layout.band * layout.pitch * layout.axes[1].to.step * layout.axes[2].to.step;
    let count = s.batch * s.groups * layout.axes[0].to.len * layout.bands();
    let dest = Shared::new(dest);
    parallel::for_each_range(count, (TASK / cost.max(1)).max(1), cost, |tasks| {
        Arch::new().dispatch(Bands { layout, sums: &sums, w, bias, source, dest, tasks });
    });
}

/// `y = x ⋆ w + bias`.
pub(crate) fn forward(s: &ConvShape, x: &[f32], w: &[f32], bias: Option<&[f32]>, y: &mut [f32]) {
    run(s, &Layout::new(s, Axis::forward), x, w, bias, y);
}

/// The gradient by the data.
pub(crate) fn backward_data(s: &ConvShape, w: &[f32], dy: &[f32], dx: &mut [f32]) {
    run(s, &Layout::new(s, Axis::backward), dy, w, None, dx);
}
