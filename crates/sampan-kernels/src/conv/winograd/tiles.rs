//! From images to transformed tiles, and from sums of products back to images.

use super::Plan;
use super::lines::{Output, Step, outputs, square};
use super::product::{BLOCK, ROWS};
use crate::gemm::pack::{transpose, transpose_to};
use pulp::{Simd, WithSimd};
use std::marker::PhantomData;
use std::ops::Range;

/// Elements between points, beyond their data: at a distance that is a power of two they would share cache lines.
pub(super) const GAP: usize = 16;

/// Images `[image, channel, row, column]` with zeros before their first rows and columns, and as many as needed after the
/// last ones.
#[derive(Clone, Copy)]
pub(super) struct Images<'a> {
    pub(super) data: &'a [f32],
    pub(super) channels: usize,
    pub(super) extent: [usize; 2],
    pub(super) pad: [usize; 2],
}

impl Images<'_> {
    pub(super) fn blocks(&self) -> usize {
        self.channels.div_ceil(BLOCK)
    }
}

/// Some rows of tiles, counted through all images.
#[derive(Clone, Debug)]
pub(super) struct Rows(pub(super) Range<usize>);

impl Rows {
    /// How many tiles there are, filled up for products that have them as rows.
    pub(super) fn filled(&self, plan: &Plan) -> usize {
        (self.0.len() * plan.across).next_multiple_of(ROWS)
    }

    /// From one point to the next.
    pub(super) fn step(&self, plan: &Plan) -> usize {
        self.filled(plan) * BLOCK + GAP
    }
}

/// Calls for each image that has some of the rows: `(image, its first row, how many, tiles before)`.
fn by_image(plan: &Plan, rows: &Range<usize>) -> impl Iterator<Item = (usize, usize, usize, usize)> {
    let (down, across, all) = (plan.down, plan.across, rows.clone());
    (all.start / down..all.end.div_ceil(down)).map(move |image| {
        let (start, end) = (all.start.max(image * down), all.end.min((image + 1) * down));
        (image, start - image * down, end - start, (start - all.start) * across)
    })
}

/// Transformed tiles of one block of channels: `[point, tile, channel]`.
pub(super) struct Spread<'a, T: Step> {
    images: Images<'a>,
    plan: &'a Plan,
    block: usize,
    /// The rows of tiles to do, the first of which is row `first` of what `out` has.
    rows: Range<usize>,
    first: usize,
    step: usize,
    scratch: &'a mut [f32],
    out: *mut f32,
    transform: PhantomData<T>,
}

impl<'a, T: Step> Spread<'a, T> {
    /// `out` begins at the block's first point of `all` the rows.
    ///
    /// # Safety
    /// `out` has room for all points of the block, and nobody else writes the tiles of `rows` in it.
    pub(super) unsafe fn new(
        images: Images<'a>,
        plan: &'a Plan,
        block: usize,
        all: &Rows,
        rows: Range<usize>,
        scratch: &'a mut [f32],
        out: *mut f32,
    ) -> Self {
        assert!(scratch.len() >= Self::scratch(images, plan, rows.len()));
        let (first, step) = (rows.start - all.0.start, all.step(plan));
        Spread { images, plan, block, rows, first, step, scratch, out, transform: PhantomData }
    }

    /// Elements of scratch for so many rows of tiles.
    pub(super) fn scratch(images: Images, plan: &Plan, rows: usize) -> usize {
        let edge = T::FROM - plan.m;
        let lines = plan.m * rows.min(plan.down) + edge;
        lines * (images.extent[1] + plan.m * plan.across + edge) * BLOCK
    }
}

/// Vectors for so many channels of a block.
#[inline(always)]
pub(super) fn vectors<S: Simd>(channels: usize) -> usize {
    channels.min(BLOCK).next_multiple_of(ROWS.max(S::F32_LANES)) / S::F32_LANES
}

impl<T: Step> WithSimd for Spread<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Spread { images, plan, block, rows, first: before, step, scratch, out, .. } = self;
        let ([height, width], [top, left]) = (images.extent, images.pad);
        let (m, across, plane, edge) = (plan.m, plan.across, height * width, T::FROM - plan.m);
        let channels = (images.channels - block * BLOCK).min(BLOCK);
        let pitch = m * across + edge;
        for (image, first, count, tile) in by_image(plan, &rows) {
            let lines = m * count + edge;
            let (plain, padded) = scratch.split_at_mut(lines * width * BLOCK);
            // The lines `low..low + inside` are rows of the image, from `start` on.
            let low = top.saturating_sub(first * m).min(lines);
            let start = (first * m + low - top.min(first * m + low)).min(height);
            let inside = (lines - low).min(height - start);
            if inside > 0 {
                let from = &images.data[(image * images.channels + block * BLOCK) * plane + start * width..];
                assert!((channels - 1) * plane + inside * width <= from.len());
                // SAFETY: just checked.
                unsafe { transpose(from.as_ptr(), plane as isize, channels, inside * width, BLOCK, plain) };
            }
            let mut from = &*plain;
            if pitch != width || inside != lines || left != 0 {
                let real = width.min(pitch.saturating_sub(left));
                for (i, line) in padded.chunks_exact_mut(pitch * BLOCK).take(lines).enumerate() {
                    if !(low..low + inside).contains(&i) {
                        line.fill(0.0);
                        continue;
                    }
                    let (before, line) = line.split_at_mut(left.min(pitch) * BLOCK);
                    let (middle, after) = line.split_at_mut(real * BLOCK);
                    before.fill(0.0);
                    middle.copy_from_slice(&plain[(i - low) * width * BLOCK..][..real * BLOCK]);
                    after.fill(0.0);
                }
                from = padded;
            }
            assert!(from.len() >= lines * pitch * BLOCK);
            for t in 0..count * across {
                for v in 0..vectors::<S>(channels) {
                    let at = (t / across * m * pitch + t % across * m) * BLOCK + v * S::F32_LANES;
                    let to = (before * across + tile + t) * BLOCK + v * S::F32_LANES;
                    let steps = [(pitch * BLOCK) as isize, BLOCK as isize];
                    // SAFETY: the tile lies inside the lines, and its points in `out`, where they are ours.
                    unsafe {
                        square::<S, T>(simd, from.as_ptr().add(at), steps, out.add(to), [T::TO * step, step]);
                    }
                }
            }
        }
    }
}

/// Transforms sums `[point, tile, channel]` of one block of channels back and puts them into the images `y`, of `channels`
/// channels and `extent`.
pub(super) struct Gather<'a, const N: usize> {
    pub(super) plan: &'a Plan,
    pub(super) rows: &'a Rows,
    pub(super) block: usize,
    pub(super) channels: usize,
    pub(super) extent: [usize; 2],
    pub(super) sums: &'a [f32],
    pub(super) places: &'a mut [f32],
    pub(super) y: *mut f32,
}

impl<const N: usize> Gather<'_, N> {
    /// Elements of `places`.
    pub(super) fn places(plan: &Plan, rows: &Rows, width: usize) -> usize {
        let m = outputs(N);
        (m * rows.0.len().min(plan.down) * width + m * m) * BLOCK
    }

    /// # Safety
    /// `y` is the first of all images, and nobody else writes these channels of these rows.
    #[inline(always)]
    pub(super) unsafe fn run<S: Simd>(self, simd: S) {
        let Gather { plan, rows, block, channels, extent: [height, width], sums, places, y } = self;
        let (m, step, across) = (outputs(N), rows.step(plan), plan.across);
        assert!(sums.len() >= N * N * step && places.len() >= Self::places(plan, rows, width));
        let real = (channels - block * BLOCK).min(BLOCK);
        let (corner, places) = places.split_at_mut(m * m * BLOCK);
        let from_steps = [(N * step) as isize, step as isize];
        for (image, first, count, before) in by_image(plan, &rows.0) {
            let lines = (m * count).min(height - first * m);
            for t in 0..count * across {
                let (i, j) = (t / across * m, t % across * m);
                let (high, wide) = (m.min(lines - i), m.min(width - j));
                for v in 0..vectors::<S>(real) {
                    let at = v * S::F32_LANES;
                    // SAFETY: all points of the tile lie in `sums`; the square lies in `places`, or in the corner where
                    // the image ends before it.
                    unsafe {
                        let from = sums.as_ptr().add((before + t) * BLOCK + at);
                        let to = places.as_mut_ptr().add((i * width + j) * BLOCK + at);
                        if high == m && wide == m {
                            square::<S, Output<N>>(simd, from, from_steps, to, [width * BLOCK, BLOCK]);
                            continue;
                        }
                        square::<S, Output<N>>(simd, from, from_steps, corner.as_mut_ptr().add(at), [m * BLOCK, BLOCK]);
                        for i in 0..high {
                            for j in 0..wide {
                                let value = corner.as_ptr().add((i * m + j) * BLOCK + at).cast::<S::f32s>();
                                let to = to.add((i * width + j) * BLOCK).cast::<S::f32s>();
                                to.write_unaligned(value.read_unaligned());
                            }
                        }
                    }
                }
            }
            let place = (image * channels + block * BLOCK) * height * width + first * m * width;
            // SAFETY: these rows of these channels of the image.
            unsafe { transpose_to(places.as_ptr(), BLOCK as isize, lines * width, real, y.add(place), height * width) };
        }
    }
}
