//! The gradient of a depthwise convolution by its weights.

use super::layout::{Axis, Layout, copy};
use super::{COLUMN, TASK, WIDEST, load};
use crate::conv::ConvShape;
use crate::shared::Shared;
use crate::simd::each;
use crate::{Buffer, parallel};
use pulp::{Arch, Simd, WithSimd};
use std::ops::Range;

/// The gradient by the weights of some channels, each over `per_part` images.
struct WeightSums<'a> {
    s: &'a ConvShape,
    layout: &'a Layout,
    runs: &'a [Run],
    x: &'a [f32],
    dy: &'a [f32],
    per_part: usize,
    /// Counted through parts and channels, the first of which `dw` begins with.
    tasks: Range<usize>,
    dw: &'a mut [f32],
}

impl WithSimd for WeightSums<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let WeightSums { s, layout, runs, x, dy, per_part, tasks, dw } = self;
        let (bands, height, width) = (layout.bands(), s.output[1], s.output[2]);
        let mut packed = Buffer::zeroed(4 * layout.len());
        let mut flat = Buffer::zeroed(4 * layout.flat());
        let (packed, flat) = (packed.as_mut_slice::<f32>(), flat.as_mut_slice::<f32>());
        let mut sums = vec![simd.splat_f32s(0.0); s.taps()];
        for (task, dw) in tasks.zip(dw.chunks_exact_mut(s.taps())) {
            let (part, channel) = (task / s.groups, task % s.groups);
            sums.fill(simd.splat_f32s(0.0));
            for image in part * per_part..((part + 1) * per_part).min(s.batch) {
                let plane = image * s.groups + channel;
                let (x, dy) = (&x[plane * s.x_plane()..][..s.x_plane()], &dy[plane * s.y_plane()..][..s.y_plane()]);
                for i in 0..s.output[0] * bands {
                    let (d, band) = (i / bands, i % bands);
                    layout.pack(x, d, band, packed);
                    let first = band * layout.band;
                    let count = layout.band.min(height - first);
                    for row in 0..count {
                        let dy = &dy[(d * height + first + row) * width..][..width];
                        copy(dy, &mut flat[row * layout.pitch..][..width]);
                    }
                    let end = (count - 1) * layout.pitch + width;
                    let len = end.next_multiple_of(S::F32_LANES);
                    // What a longer band before this one may have left.
                    flat[end..len].fill(0.0);
                    add_products(simd, packed, &flat[..len], runs, &mut sums);
                }
            }
            dw.iter_mut().zip(&sums).for_each(|(dw, &sum)| *dw = simd.reduce_sum_f32s(sum));
        }
    }
}

/// Kernel elements that read columns beside each other: the first of them, the offset that it reads at, how many.
#[derive(Clone, Copy)]
struct Run {
    tap: usize,
    offset: usize,
    /// From one element to the next.
    step: usize,
    len: usize,
}

/// Runs of a forward convolution, those of one length together.
fn runs(layout: &Layout) -> Vec<Run> {
    let mut taps: Vec<(usize, usize)> = Vec::new();
    for column in layout.sums().iter().flat_map(|sum| &sum.columns) {
        let offset = |i: usize| column.offset + i * layout.pitch;
        taps.extend(column.taps.iter().enumerate().map(|(i, &tap)| (offset(i), tap)));
    }
    taps.sort_unstable();
    let mut runs: Vec<Run> = Vec::new();
    for (offset, tap) in taps {
        match runs.last_mut() {
            Some(run)
                if run.len < COLUMN
                    && offset == run.offset + run.len
                    && (run.len == 1 || tap == run.tap + run.len * run.step) =>
            {
                run.step = if run.len == 1 { tap - run.tap } else { run.step };
                run.len += 1;
            }
            _ => runs.push(Run { tap, offset, step: 0, len: 1 }),
        }
    }
    runs.sort_by_key(|run| run.len);
    runs
}

/// Adds `Σ dy[p] · x[p + offset]` to the sum of each kernel element, lane by lane. Between rows `dy` is zero.
#[inline(always)]
fn add_products<S: Simd>(simd: S, x: &[f32], dy: &[f32], runs: &[Run], sums: &mut [S::f32s]) {
    let mut runs = runs;
    while let Some(first) = runs.first() {
        let alike = runs.iter().take_while(|run| run.len == first.len).count();
        // As many sums at once as there are registers.
        let most = if S::F32_LANES == WIDEST { 25 } else { 10 } / first.len;
        let n = match alike.min(most) {
            5.. => 5,
            3.. => 3,
            2 => 2,
            _ => 1,
        };
        macro_rules! sizes {
            ($($n:literal)*) => {
                match (n, first.len) {
                    $(
                        ($n, 1) => products::<S, $n, 1>(simd, x, dy, runs, sums),
                        ($n, 2) => products::<S, $n, 2>(simd, x, dy, runs, sums),
                        ($n, 3) => products::<S, $n, 3>(simd, x, dy, runs, sums),
                        ($n, 4) => products::<S, $n, 4>(simd, x, dy, runs, sums),
                        ($n, 5) => products::<S, $n, 5>(simd, x, dy, runs, sums),
                    )*
                    _ => unreachable!("at most five runs of at most {COLUMN}"),
                }
            };
        }
        sizes!(1 2 3 5);
        runs = &runs[n..];
    }
}

#[inline(always)]
fn products<S: Simd, const N: usize, const L: usize>(
    simd: S,
    x: &[f32],
    dy: &[f32],
    runs: &[Run],
    sums: &mut [S::f32s],
) {
    let runs: [Run; N] = each!(n => runs[n]);
    let place = |n: usize, l: usize| runs[n].tap + l * runs[n].step;
    let mut sum: [[S::f32s; L]; N] = each!(n => each!(l => sums[place(n, l)]));
    let far = runs.map(|run| run.offset).into_iter().max().unwrap_or(0);
    assert!(dy.len().is_multiple_of(S::F32_LANES) && far + L - 1 + dy.len() <= x.len());
    let x = runs.map(|run| &x[run.offset..]);
    for at in (0..dy.len()).step_by(S::F32_LANES) {
        // SAFETY: whole vectors of `dy`, and as many elements of `x` after the farthest offset, which was just checked.
        unsafe {
            let g = load::<S>(dy, at);
            for n in 0..N {
                for l in 0..L {
                    sum[n][l] = simd.mul_add_e_f32s(g, load::<S>(x[n], at + l), sum[n][l]);
                }
            }
        }
    }
    for n in 0..N {
        for l in 0..L {
            sums[place(n, l)] = sum[n][l];
        }
    }
}

/// Gradient by the weights. An infinite `x` may make it NaN where a window does not contain it, since zeros that stand
/// between the rows of `dy` meet it.
pub(crate) fn backward_weight(s: &ConvShape, x: &[f32], dy: &[f32], dw: &mut [f32]) {
    let layout = Layout::new(s, Axis::forward);
    let runs = runs(&layout);
    let taps = s.taps();
    // Few channels: also cut by images, into sums that are added up in order at the end.
    let per_part = s.batch.div_ceil(16usize.div_ceil(s.groups).min(s.batch));
    let parts = s.batch.div_ceil(per_part);
    let mut sums = Buffer::uninit(parts * std::mem::size_of_val(dw));
    let out = Shared::new(sums.as_mut_slice::<f32>());
    let cost = 2 * taps * per_part * s.output[0] * s.output[1] * layout.pitch;
    parallel::for_each_range(parts * s.groups, (TASK / cost.max(1)).max(1), cost, |tasks| {
        let place = tasks.start * taps;
        // SAFETY: the weights of these channels in the sums of these parts; no other task has them.
        let dw = unsafe { std::slice::from_raw_parts_mut(out.get().add(place), tasks.len() * taps) };
        Arch::new().dispatch(WeightSums { s, layout: &layout, runs: &runs, x, dy, per_part, tasks, dw });
    });
    let (first, rest) = sums.as_slice::<f32>().split_at(dw.len());
    dw.copy_from_slice(first);
    for part in rest.chunks_exact(dw.len()) {
        dw.iter_mut().zip(part).for_each(|(o, v)| *o += *v);
    }
}
