//! Pooling of blocked images.

use super::BLOCK;
use crate::parallel;
use crate::pool::{Divisor, PoolShape};
use pulp::{Arch, Simd, WithSimd};
use std::ops::Range;

/// What is made of the elements of a window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pooling {
    /// The largest one.
    Max,
    /// Their sum over this.
    Average(Divisor),
}

/// Pools blocked images; `s.planes` counts blocks, and their planes have no depth.
pub fn pool(s: &PoolShape, kind: Pooling, x: &[f32], y: &mut [f32]) {
    let (x_plane, y_plane) = (s.input[1] * s.input[2] * BLOCK, s.output[1] * s.output[2] * BLOCK);
    assert!(s.input[0] == 1 && s.output[0] == 1, "planes without depth");
    assert!(x.len() == s.planes * x_plane && y.len() == s.planes * y_plane, "images of {s:?}");
    let [_, rows, columns] = s.axes();
    let cost = (x_plane / y_plane.max(1)).max(2);
    parallel::for_each_chunk_mut(y, y_plane.max(1), cost, |i, y| {
        let x = &x[i * x_plane..][..x_plane];
        Arch::new().dispatch(Plane { width: s.input[2], rows: &rows, columns: &columns, kind, x, y });
    });
}

type Window = (Range<usize>, usize);

struct Plane<'a> {
    width: usize,
    rows: &'a [Window],
    columns: &'a [Window],
    kind: Pooling,
    x: &'a [f32],
    y: &'a mut [f32],
}

impl WithSimd for Plane<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let (x, _) = S::as_simd_f32s(self.x);
        let (y, _) = S::as_mut_simd_f32s(self.y);
        let vectors = BLOCK / S::F32_LANES;
        let mut at = 0;
        for (h, high) in self.rows {
            for (w, wide) in self.columns {
                for v in 0..vectors {
                    let inside = h.len() * w.len();
                    y[at * vectors + v] = match self.kind {
                        Pooling::Max => {
                            let mut best = simd.splat_f32s(f32::NEG_INFINITY);
                            for i in h.clone() {
                                let row = &x[i * self.width * vectors..][..self.width * vectors];
                                for j in w.clone() {
                                    let value = row[j * vectors + v];
                                    // A number that is none stays one.
                                    let none = simd.equal_f32s(best, best);
                                    let larger = simd.max_f32s(best, value);
                                    best = simd.select_f32s(none, larger, best);
                                }
                            }
                            best
                        }
                        Pooling::Average(_) if inside == 0 => simd.splat_f32s(0.0),
                        Pooling::Average(divisor) => {
                            let mut sums = [simd.splat_f32s(0.0); 4];
                            for i in h.clone() {
                                let row = &x[i * self.width * vectors..][..self.width * vectors];
                                for (turn, j) in w.clone().enumerate() {
                                    let sum = &mut sums[turn % 4];
                                    *sum = simd.add_f32s(*sum, row[j * vectors + v]);
                                }
                            }
                            let pair = simd.add_f32s(sums[0], sums[1]);
                            let all = simd.add_f32s(pair, simd.add_f32s(sums[2], sums[3]));
                            let over = divisor.get(inside, high * wide) as f32;
                            simd.div_f32s(all, simd.splat_f32s(over))
                        }
                    };
                }
                at += 1;
            }
        }
    }
}
