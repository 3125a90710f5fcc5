//! Images in blocks of channels: to and from, channel by channel, and side by side.

use super::{After, BLOCK};
use crate::gemm::pack::transpose_to;
use crate::parallel;
use crate::shared::Shared;
use pulp::{Arch, Simd, WithSimd};

/// Elements of blocked images of `plane` places each.
pub fn blocked_len(batch: usize, channels: usize, plane: usize) -> usize {
    batch * channels.next_multiple_of(BLOCK) * plane
}

/// `[image, channel, place]` in blocks.
pub fn block(batch: usize, channels: usize, plane: usize, x: &[f32], y: &mut [f32]) {
    assert!(x.len() == batch * channels * plane && y.len() == blocked_len(batch, channels, plane), "images");
    let blocks = channels.div_ceil(BLOCK);
    parallel::for_each_chunk_mut(y, (plane * BLOCK).max(1), 1, |i, y| {
        let (image, c) = (i / blocks, i % blocks * BLOCK);
        let count = (channels - c).min(BLOCK);
        let x = &x[(image * channels + c) * plane..][..count * plane];
        // SAFETY: `count` planes, and a place of a block for each of their elements.
        unsafe { transpose_to(x.as_ptr(), plane as isize, count, plane, y.as_mut_ptr(), BLOCK) };
    });
}

/// Blocked images as `[image, channel, place]`.
pub fn unblock(batch: usize, channels: usize, plane: usize, x: &[f32], y: &mut [f32]) {
    assert!(y.len() == batch * channels * plane && x.len() == blocked_len(batch, channels, plane), "images");
    let blocks = channels.div_ceil(BLOCK);
    let y = Shared::new(y);
    parallel::for_each_range(batch * blocks, 1, plane * BLOCK, |task| {
        let (image, c) = (task.start / blocks, task.start % blocks * BLOCK);
        let count = (channels - c).min(BLOCK);
        let x = &x[task.start * plane * BLOCK..][..plane * BLOCK];
        // SAFETY: these channels of this image, which no other task writes.
        unsafe {
            let to = y.get().add((image * channels + c) * plane);
            transpose_to(x.as_ptr(), BLOCK as isize, plane, count, to, plane);
        }
    });
}

/// Every channel of blocked images times a number of its own, `[image, channel]` in blocks: `after(x · s)`.
pub fn gate(plane: usize, x: &[f32], s: &[f32], after: After, y: &mut [f32]) {
    assert!(x.len() == y.len() && x.len() == s.len() * plane, "images and their numbers");
    parallel::for_each_chunk_mut(y, (plane * BLOCK).max(1), 1, |i, y| {
        let x = &x[i * plane * BLOCK..][..plane * BLOCK];
        Arch::new().dispatch(Gate { x, s: &s[i * BLOCK..][..BLOCK], after, y });
    });
}

struct Gate<'a> {
    x: &'a [f32],
    s: &'a [f32],
    after: After,
    y: &'a mut [f32],
}

impl WithSimd for Gate<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let (s, _) = S::as_simd_f32s(self.s);
        let (x, _) = S::as_simd_f32s(self.x);
        let (y, _) = S::as_mut_simd_f32s(self.y);
        for (x, y) in x.chunks_exact(s.len()).zip(y.chunks_exact_mut(s.len())) {
            for i in 0..s.len() {
                y[i] = self.after.of(simd, simd.mul_f32s(x[i], s[i]));
            }
        }
    }
}

/// Blocked images side by side: each with its number of blocks of channels.
pub fn join(batch: usize, plane: usize, parts: &[(usize, &[f32])], y: &mut [f32]) {
    let all: usize = parts.iter().map(|p| p.0).sum();
    assert_eq!(y.len(), batch * all * plane * BLOCK, "images side by side");
    for (image, mut y) in y.chunks_exact_mut((all * plane * BLOCK).max(1)).enumerate() {
        for (blocks, x) in parts {
            let len = blocks * plane * BLOCK;
            let (to, rest) = y.split_at_mut(len);
            to.copy_from_slice(&x[image * len..][..len]);
            y = rest;
        }
    }
}
