//! Against sums in `f64`.

use super::*;
use crate::View;
use crate::conv::{ConvShape, conv_forward_of};
use crate::pool::{Divisor, PoolShape, Windows};
use std::sync::Arc;

fn numbers(len: usize, seed: usize) -> Vec<f32> {
    (0..len).map(|i| ((i * 7919 + i / 7 + seed * 104_729) % 17) as f32 / 8.0 - 1.0).collect()
}

fn up(v: &[f32]) -> Vec<f64> {
    v.iter().map(|&v| v as f64).collect()
}

fn close(got: &[f32], wanted: &[f64], what: &str) {
    let scale = wanted.iter().fold(1.0f64, |m, v| m.max(v.abs()));
    let worst = got.iter().zip(wanted).map(|(a, b)| (*a as f64 - b).abs()).fold(0.0, f64::max);
    assert!(got.len() == wanted.len() && worst <= 2e-5 * scale, "{what}: {worst} of {scale}");
}

const RELU: After = After::Clamp(Clamp { scale: 1.0, shift: 0.0, low: 0.0, high: f32::INFINITY });
const SWISH: After = After::Gate(Clamp { scale: 1.0 / 6.0, shift: 0.5, low: 0.0, high: 1.0 });

fn after(kind: After, x: f64) -> f64 {
    match kind {
        After::Same => x,
        After::Leaky(slope) => {
            if x > 0.0 {
                x
            } else {
                slope as f64 * x
            }
        }
        After::Clamp(c) => (c.scale as f64 * x + c.shift as f64).clamp(c.low as f64, c.high as f64),
        After::Gate(c) => x * (c.scale as f64 * x + c.shift as f64).clamp(c.low as f64, c.high as f64),
    }
}

fn shape(
    batch: usize,
    channels: [usize; 2],
    groups: usize,
    input: [usize; 2],
    kernel: usize,
    stride: usize,
    pad: usize,
) -> ConvShape {
    let (p, k) = ([0, pad, pad], [1, kernel, kernel]);
    let input = [1, input[0], input[1]];
    ConvShape::new(batch, channels[0], channels[1], groups, input, k, [1, stride, stride], [1; 3], p, p).unwrap()
}

/// The outputs of a layer with a bias, a sum and an activation, in blocks and out of them, beside those in `f64`.
fn check(s: &ConvShape, kind: After, run: impl Fn(&[f32], &[f32], &[f32], &[f32], &mut [f32]), plain: bool) {
    let (x, w, bias, add) =
        (numbers(s.x_len(), 1), numbers(s.w_len(), 2), numbers(s.out_channels, 3), numbers(s.y_len(), 4));
    let mut wanted = vec![0f64; s.y_len()];
    conv_forward_of(s, &up(&x), &up(&w), Some(&up(&bias)), &mut wanted);
    wanted.iter_mut().zip(&add).for_each(|(y, a)| *y = after(kind, *y + *a as f64));
    let (xp, yp) = (s.x_plane(), s.y_plane());
    let mut blocked = vec![f32::NAN; blocked_len(s.batch, s.in_channels, xp)];
    block(s.batch, s.in_channels, xp, &x, &mut blocked);
    let mut added = vec![f32::NAN; blocked_len(s.batch, s.out_channels, yp)];
    block(s.batch, s.out_channels, yp, &add, &mut added);
    let mut y = vec![f32::NAN; added.len()];
    run(if plain { &x } else { &blocked }, &w, &bias, &added, &mut y);
    let mut got = vec![f32::NAN; s.y_len()];
    unblock(s.batch, s.out_channels, yp, &y, &mut got);
    close(&got, &wanted, &format!("{s:?} {kind:?}"));
}

#[test]
fn convolutions() {
    for (s, plain) in [
        (shape(2, [3, 20], 1, [19, 23], 7, 2, 3), true),
        (shape(1, [1, 6], 1, [28, 28], 3, 1, 1), true),
        (shape(2, [6, 16], 1, [14, 13], 5, 1, 0), false),
        (shape(3, [20, 40], 1, [7, 9], 1, 1, 0), false),
        (shape(1, [64, 70], 1, [30, 31], 1, 1, 0), false),
        (shape(2, [33, 48], 1, [9, 8], 1, 2, 0), false),
        (shape(2, [17, 50], 1, [12, 11], 3, 2, 1), false),
        (shape(1, [130, 90], 1, [1, 1], 1, 1, 0), false),
        (shape(1, [40, 64], 1, [20, 40], 3, 1, 1), false),
    ] {
        for kind in [After::Same, RELU, SWISH, After::Leaky(0.1)] {
            let run = |x: &[f32], w: &[f32], bias: &[f32], add: &[f32], y: &mut [f32]| {
                let way = if plain { Way::Plain } else { Way::Blocked };
                let packed = Arc::new(Packed::conv(&s, way, w));
                Conv::new(&s, way, packed, Some(bias), kind).run(x, Some(add), y);
            };
            check(&s, kind, run, plain);
        }
    }
}

#[test]
fn winograd_convolutions() {
    for s in [
        shape(1, [16, 16], 1, [9, 11], 3, 1, 1),
        shape(2, [40, 50], 1, [14, 14], 3, 1, 1),
        shape(1, [64, 96], 1, [28, 30], 3, 1, 0),
        shape(1, [256, 256], 1, [14, 14], 3, 1, 1),
        shape(3, [128, 130], 1, [7, 7], 3, 1, 1),
    ] {
        for points in [4, 6] {
            let run = |x: &[f32], w: &[f32], bias: &[f32], add: &[f32], y: &mut [f32]| {
                let packed = Arc::new(Packed::conv(&s, Way::Winograd(points), w));
                Conv::new(&s, Way::Winograd(points), packed, Some(bias), RELU).run(x, Some(add), y);
            };
            check(&s, RELU, run, false);
        }
    }
}

#[test]
fn depthwise_convolutions() {
    for s in [
        shape(2, [24, 24], 24, [11, 13], 3, 1, 1),
        shape(1, [40, 40], 40, [14, 14], 5, 2, 2),
        shape(1, [16, 16], 16, [3, 2], 5, 1, 2),
        shape(1, [7, 7], 7, [40, 41], 3, 2, 0),
    ] {
        let run = |x: &[f32], w: &[f32], bias: &[f32], add: &[f32], y: &mut [f32]| {
            Depthwise::new(&s, w, Some(bias), SWISH).unwrap().run(x, Some(add), y);
        };
        check(&s, SWISH, run, false);
    }
}

#[test]
fn products() {
    for (rows, depth, outputs) in
        [(1, 400, 120), (1, 84, 10), (7, 5, 3), (100, 512, 70), (64, 1024, 200), (300, 33, 17)]
    {
        let (x, w) = (numbers(rows * depth, 1), numbers(outputs * depth, 2));
        let (bias, add) = (numbers(outputs, 3), numbers(rows * outputs, 4));
        let mut wanted = Vec::new();
        for i in 0..rows * outputs {
            let (r, o) = (i / outputs, i % outputs);
            let sum: f64 = (0..depth).map(|k| x[r * depth + k] as f64 * w[o * depth + k] as f64).sum();
            wanted.push(after(RELU, sum + bias[o] as f64 + add[i] as f64));
        }
        // Stored the other way around.
        let view = View { data: &w, offset: 0, shape: &[depth, outputs], strides: &[1, depth as isize] };
        let mut y = vec![f32::NAN; rows * outputs];
        Linear::new(Arc::new(Packed::matrix(view)), Some(&bias), RELU).run(&x, Some(&add), &mut y);
        close(&y, &wanted, &format!("{rows} {depth} {outputs}"));
    }
}

#[test]
fn pools_and_gates() {
    let sliding = Windows::Sliding { kernel: [1, 3, 3], stride: [1, 2, 2], pad: [0, 1, 1], pad_end: [0, 1, 1] };
    for (windows, output) in [(sliding, [1, 4, 5]), (Windows::Adaptive, [1, 1, 1]), (Windows::Adaptive, [1, 3, 2])] {
        let (batch, channels, input) = (2, 21, [1, 8, 9]);
        let s = PoolShape { planes: batch * channels, input, output, windows };
        let blocks = PoolShape { planes: batch * 2, ..s };
        let x = numbers(batch * channels * 72, 5);
        let (xl, yl) = (blocked_len(batch, channels, 72), output.iter().product::<usize>());
        let mut bx = vec![f32::NAN; xl];
        block(batch, channels, 72, &x, &mut bx);
        for kind in [Pooling::Max, Pooling::Average(Divisor::Inside), Pooling::Average(Divisor::Window)] {
            let (mut wanted, mut y) =
                (vec![0f64; batch * channels * yl], vec![f32::NAN; blocked_len(batch, channels, yl)]);
            match kind {
                Pooling::Max => crate::pool::max_pool(&s, up(&x)[..].into(), wanted[..].as_mut().into()),
                Pooling::Average(d) => crate::pool::avg_pool(&s, d, up(&x)[..].into(), wanted[..].as_mut().into()),
            }
            pool(&blocks, kind, &bx, &mut y);
            let mut got = vec![0f32; wanted.len()];
            unblock(batch, channels, yl, &y, &mut got);
            close(&got, &wanted, &format!("{windows:?} {kind:?}"));
        }
    }
    let (x, s) = (numbers(2 * 16 * 5, 1), numbers(2 * 16, 2));
    let mut y = vec![0f32; x.len()];
    gate(5, &x, &s, After::Same, &mut y);
    let wanted: Vec<f64> = (0..x.len()).map(|i| x[i] as f64 * s[i / 80 * 16 + i % 16] as f64).collect();
    close(&y, &wanted, "gate");
}
