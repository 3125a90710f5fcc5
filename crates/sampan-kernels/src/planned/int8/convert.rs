//! Numbers as codes and codes as numbers, in the layouts that layers read.

use super::finish::code;
use super::{BLOCK, Grid, image_len, lane};
use crate::parallel;
use crate::pool::PoolShape;
use crate::simd::simd_fn;

/// How far rows of codes lie apart.
pub fn row_pitch(columns: usize) -> usize {
    columns.next_multiple_of(4)
}

simd_fn! {
    fn coded[](x: &'a [f32], inverse: f32, zero: f32, y: &'a mut [u8]) {
        for (x, y) in x.iter().zip(y) {
            *y = code(*x, inverse, zero);
        }
    }
}

simd_fn! {
    fn decoded[](x: &'a [u8], step: f32, zero: i32, y: &'a mut [f32]) {
        for (x, y) in x.iter().zip(y) {
            *y = (i32::from(*x) - zero) as f32 * step;
        }
    }
}

simd_fn! {
    fn furthest[](x: &'a [f32]) -> f32 {
        let mut most = [0f32; 16];
        let (whole, rest) = x.as_chunks::<16>();
        for v in whole {
            for l in 0..16 {
                let v = v[l].abs();
                most[l] = if v > most[l] { v } else { most[l] };
            }
        }
        rest.iter().chain(&most).fold(0f32, |a, b| a.max(b.abs()))
    }
}

/// The largest magnitude of `channels` planes of each image, which lie in blocks of [`BLOCK`] or one after the other.
pub fn largest(batch: usize, channels: usize, plane: usize, blocked: bool, x: &[f32], y: &mut [f32]) {
    assert_eq!(y.len(), batch, "a number for each image");
    let image = if blocked { channels.next_multiple_of(BLOCK) * plane } else { channels * plane };
    assert_eq!(x.len(), batch * image, "images");
    let parts = if blocked { channels.div_ceil(BLOCK) } else { 1 };
    for (x, y) in x.chunks_exact(image.max(1)).zip(y) {
        let mut found = vec![0f32; parts];
        parallel::for_each_chunk_mut(&mut found, 1, image / parts.max(1) / 8 + 1, |p, found| {
            let real = if blocked { (channels - p * BLOCK).min(BLOCK) } else { channels };
            found[0] = match blocked {
                true if real < BLOCK => {
                    let block = &x[p * BLOCK * plane..][..BLOCK * plane];
                    block.as_chunks::<BLOCK>().0.iter().flat_map(|v| &v[..real]).fold(0f32, |a, b| a.max(b.abs()))
                }
                true => furthest(&x[p * BLOCK * plane..][..BLOCK * plane]),
                false => furthest(x),
            };
        });
        *y = found.iter().fold(0f32, |a, b| a.max(*b));
    }
}

/// The grid of an image: one of all, or its own.
fn grid_of(grids: &[f32], zero: u8, image: usize) -> Grid {
    Grid { step: grids[if grids.len() == 1 { 0 } else { image }], zero }
}

/// Codes of images, which lie in blocks of [`BLOCK`] or channel by channel; with one step, or one for each image.
pub fn codes_of([batch, channels, plane]: [usize; 3], blocked: bool, x: &[f32], steps: &[f32], zero: u8, y: &mut [u8]) {
    let lane = lane(channels);
    assert_eq!(y.len(), image_len(batch, channels, plane), "codes of images");
    assert!(matches!(steps.len(), n if n == 1 || n == batch), "the steps of {batch} images");
    if blocked && lane == BLOCK {
        assert_eq!(x.len(), y.len(), "images in blocks");
        return parallel::for_each_chunk_mut(y, (plane * BLOCK).max(1), 1, |i, y| {
            let grid = grid_of(steps, zero, i / channels.div_ceil(BLOCK));
            coded(&x[i * plane * BLOCK..][..plane * BLOCK], 1.0 / grid.step, f32::from(zero), y);
        });
    }
    let blocks = channels.div_ceil(lane);
    let image = if blocked { channels.next_multiple_of(BLOCK) * plane } else { channels * plane };
    assert_eq!(x.len(), batch * image, "images");
    parallel::for_each_chunk_mut(y, (plane * lane).max(1), 2, |i, y| {
        let (at, block) = (i / blocks, i % blocks);
        let grid = grid_of(steps, zero, at);
        let x = &x[at * image..][..image];
        let real = (channels - block * lane).min(lane);
        let mut codes = [0u8; 64];
        // Some places of each channel at a time, which are then put between those of the others.
        for start in (0..plane).step_by(codes.len()) {
            let places = (plane - start).min(codes.len());
            for l in 0..lane {
                let c = block * lane + l;
                match (l < real, blocked) {
                    (false, _) => codes[..places].fill(zero),
                    (_, false) => {
                        let from = &x[c * plane + start..][..places];
                        coded(from, 1.0 / grid.step, f32::from(zero), &mut codes[..places]);
                    }
                    (_, true) => {
                        for (p, to) in codes[..places].iter_mut().enumerate() {
                            let at = (c / BLOCK * plane + start + p) * BLOCK + c % BLOCK;
                            *to = code(x[at], 1.0 / grid.step, f32::from(zero));
                        }
                    }
                }
                for (p, code) in codes[..places].iter().enumerate() {
                    y[(start + p) * lane + l] = *code;
                }
            }
        }
    });
}

/// Codes of rows, a pitch apart.
pub fn codes_of_rows(rows: usize, columns: usize, x: &[f32], steps: &[f32], zero: u8, y: &mut [u8]) {
    let pitch = row_pitch(columns);
    assert!(x.len() == rows * columns && y.len() == rows * pitch, "rows of {columns}");
    if y.is_empty() || steps.is_empty() {
        return;
    }
    let per = rows / steps.len().min(rows).max(1);
    parallel::for_each_chunk_mut(y, pitch, 1, |i, y| {
        let step = steps[(i / per).min(steps.len() - 1)];
        let (real, rest) = y.split_at_mut(columns);
        coded(&x[i * columns..][..columns], 1.0 / step, f32::from(zero), real);
        rest.fill(zero);
    });
}

/// Numbers of images of codes, in blocks of [`BLOCK`].
pub fn numbers_of([batch, channels, plane]: [usize; 3], x: &[u8], steps: &[f32], zero: u8, y: &mut [f32]) {
    let lane = lane(channels);
    assert_eq!(x.len(), image_len(batch, channels, plane), "codes of images");
    assert_eq!(y.len(), batch * channels.next_multiple_of(BLOCK) * plane, "images in blocks");
    assert!(matches!(steps.len(), n if n == 1 || n == batch), "the steps of {batch} images");
    let blocks = channels.div_ceil(BLOCK);
    parallel::for_each_chunk_mut(y, (plane * BLOCK).max(1), 1, |i, y| {
        let grid = grid_of(steps, zero, i / blocks);
        if lane == BLOCK {
            return decoded(&x[i * plane * BLOCK..][..plane * BLOCK], grid.step, i32::from(zero), y);
        }
        // One block of few channels.
        for (x, y) in x[i * plane * lane..][..plane * lane].chunks_exact(lane).zip(y.chunks_exact_mut(BLOCK)) {
            for (x, y) in x.iter().zip(y) {
                *y = (i32::from(*x) - i32::from(zero)) as f32 * grid.step;
            }
        }
    });
}

/// Numbers of rows of codes.
pub fn numbers_of_rows(rows: usize, columns: usize, x: &[u8], steps: &[f32], zero: u8, y: &mut [f32]) {
    let pitch = row_pitch(columns);
    assert!(y.len() == rows * columns && x.len() == rows * pitch, "rows of {columns}");
    if y.is_empty() || steps.is_empty() {
        return;
    }
    let per = rows / steps.len().min(rows).max(1);
    parallel::for_each_chunk_mut(y, columns, 1, |i, y| {
        let step = steps[(i / per).min(steps.len() - 1)];
        decoded(&x[i * pitch..][..columns], step, i32::from(zero), y);
    });
}

simd_fn! {
    fn largest_of[](x: &'a [u8], width: usize, rows: &'a [Window], columns: &'a [Window], lane: usize, y: &'a mut [u8]) {
        let mut at = 0;
        for (h, _) in rows {
            for (w, _) in columns {
                let y = &mut y[at * lane..][..lane];
                y.fill(0);
                for i in h.clone() {
                    for x in x[(i * width + w.start) * lane..][..w.len() * lane].chunks_exact(lane) {
                        for (y, x) in y.iter_mut().zip(x) {
                            *y = (*y).max(*x);
                        }
                    }
                }
                at += 1;
            }
        }
    }
}

type Window = (std::ops::Range<usize>, usize);

/// The largest code of each window of images of codes with so many channels; `s.planes` counts blocks. A window without a
/// place has the least code.
pub fn max_pool(s: &PoolShape, channels: usize, x: &[u8], y: &mut [u8]) {
    let lane = lane(channels);
    let (x_plane, y_plane) = (s.input[1] * s.input[2] * lane, s.output[1] * s.output[2] * lane);
    assert!(s.input[0] == 1 && s.output[0] == 1, "planes without depth");
    assert!(x.len() == s.planes * x_plane && y.len() == s.planes * y_plane, "images of {s:?}");
    let [_, rows, columns] = s.axes();
    parallel::for_each_chunk_mut(y, y_plane.max(1), (x_plane / y_plane.max(1)).max(1), |i, y| {
        largest_of(&x[i * x_plane..][..x_plane], s.input[2], &rows, &columns, lane, y);
    });
}
