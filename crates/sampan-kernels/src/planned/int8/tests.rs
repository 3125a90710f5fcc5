use super::convert::{codes_of, codes_of_rows, max_pool, numbers_of, numbers_of_rows};
use super::tile::Machine;
use super::*;
use crate::conv::{ConvShape, conv_forward_of};
use crate::planned::{After, Clamp, block, unblock};
use crate::pool::{PoolShape, Windows};
use std::sync::Arc;

const RELU: After = After::Clamp(Clamp { scale: 1.0, shift: 0.0, low: 0.0, high: f32::INFINITY });

/// Numbers without much order.
fn noise(n: usize, seed: u64) -> impl Iterator<Item = u64> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    (0..n).map(move |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state >> 16
    })
}

fn floats(n: usize, seed: u64) -> Vec<f32> {
    noise(n, seed).map(|v| (v % 2001) as f32 / 1000.0 - 1.0).collect()
}

fn shape(
    batch: usize,
    [i, o]: [usize; 2],
    [h, w]: [usize; 2],
    k: usize,
    stride: usize,
    pad: usize,
    d: usize,
) -> ConvShape {
    let out = |n: usize| (n + 2 * pad - (k - 1) * d - 1) / stride + 1;
    ConvShape {
        batch,
        in_channels: i,
        out_channels: o,
        groups: 1,
        input: [1, h, w],
        kernel: [1, k, k],
        output: [1, out(h), out(w)],
        stride: [1, stride, stride],
        dilation: [1, d, d],
        pad_begin: [0, pad, pad],
    }
}

/// A convolution by hand in float64, from the numbers that codes stand for.
#[test]
fn convolutions() {
    for s in [
        shape(2, [3, 20], [19, 23], 7, 2, 3, 1),
        shape(1, [1, 6], [28, 28], 3, 1, 1, 1),
        shape(2, [6, 16], [14, 13], 5, 1, 0, 1),
        shape(3, [20, 40], [7, 9], 1, 1, 0, 1),
        shape(2, [33, 48], [9, 8], 1, 2, 0, 1),
        shape(2, [17, 50], [12, 11], 3, 2, 1, 1),
        shape(1, [40, 64], [13, 14], 3, 1, 2, 2),
        shape(1, [64, 96], [30, 31], 3, 1, 1, 1),
        shape(1, [130, 90], [1, 1], 1, 1, 0, 1),
    ] {
        let grid = Grid { step: 0.011, zero: 97 };
        let (x, bias) = (floats(s.x_len(), 1), floats(s.out_channels, 2));
        let w: Vec<i8> = noise(s.w_len(), 3).map(|v| v as i8).collect();
        let steps: Vec<f32> = (0..s.out_channels).map(|o| 0.001 * (1 + o % 5) as f32).collect();
        let (xp, yp) = (s.x_plane(), s.y_plane());
        let mut codes = vec![0u8; image_len(s.batch, s.in_channels, xp)];
        codes_of([s.batch, s.in_channels, xp], false, &x, &[grid.step], grid.zero, &mut codes);
        let mut again = vec![0f32; s.batch * s.in_channels.next_multiple_of(BLOCK) * xp];
        numbers_of([s.batch, s.in_channels, xp], &codes, &[grid.step], grid.zero, &mut again);
        let mut real = vec![0f32; x.len()];
        unblock(s.batch, s.in_channels, xp, &again, &mut real);
        real.iter().zip(&x).for_each(|(a, b)| assert!((a - b).abs() <= 0.51 * grid.step));
        let up: Vec<f64> = real.iter().map(|v| f64::from(*v)).collect();
        let kernels: Vec<f64> =
            w.iter().enumerate().map(|(i, w)| f64::from(*w) * f64::from(steps[i / s.k()])).collect();
        let wide: Vec<f64> = bias.iter().map(|v| f64::from(*v)).collect();
        let mut wanted = vec![0f64; s.y_len()];
        conv_forward_of(&s, &up, &kernels, Some(&wide), &mut wanted);
        let add = floats(s.y_len(), 5);
        let mut added = vec![0f32; s.batch * s.out_channels.next_multiple_of(BLOCK) * yp];
        block(s.batch, s.out_channels, yp, &add, &mut added);
        wanted.iter_mut().zip(&add).for_each(|(y, a)| *y = (*y + f64::from(*a)).max(0.0));
        let out = Grid { step: 0.13, zero: 3 };
        let mut first: Option<(Vec<f32>, Vec<u8>)> = None;
        for machine in Machine::all() {
            let packed = Arc::new(Packed::conv(&s, &w));
            let mut conv = Conv::new(&s, packed, grid.zero, &steps, Some(&bias), RELU).unwrap();
            conv.machine = machine;
            let mut y = vec![0f32; added.len()];
            conv.run(&codes, &[grid.step], Add::Numbers(&added), Out::Numbers(&mut y));
            let mut coded = vec![0u8; added.len()];
            conv.run(&codes, &[grid.step], Add::Numbers(&added), Out::Codes(&mut coded, out));
            let mut got = vec![0f32; s.y_len()];
            unblock(s.batch, s.out_channels, yp, &y, &mut got);
            for (got, wanted) in got.iter().zip(&wanted) {
                assert!(
                    (f64::from(*got) - wanted).abs() < 1e-4 * (1.0 + wanted.abs()),
                    "{got} {wanted} {s:?} {machine:?}"
                );
            }
            for (code, y) in coded.iter().zip(&y) {
                let exact = f64::from(*y) / f64::from(out.step) + 3.0;
                assert!((f64::from(*code) - exact.clamp(0.0, 255.0)).abs() <= 0.5001, "{code} {exact} {machine:?}");
            }
            match &first {
                None => first = Some((y, coded)),
                Some((a, b)) => assert!(*a == y && *b == coded, "{s:?} on {machine:?}"),
            }
        }
    }
}

#[test]
fn products_with_steps_of_their_own() {
    for (samples, per, inputs, outputs) in
        [(1, 1, 400, 120), (7, 1, 5, 3), (3, 2, 33, 17), (2, 40, 512, 70), (0, 1, 4, 4)]
    {
        let rows = samples * per;
        let x = floats(rows * inputs, 7);
        let w: Vec<i8> = noise(inputs * outputs, 8).map(|v| v as i8).collect();
        let steps: Vec<f32> = (0..samples).map(|i| 0.008 * (i + 1) as f32).collect();
        let mut codes = vec![0u8; rows * row_pitch(inputs)];
        codes_of_rows(rows, inputs, &x, &steps, 128, &mut codes);
        let mut real = vec![0f32; x.len()];
        numbers_of_rows(rows, inputs, &codes, &steps, 128, &mut real);
        let mut first: Option<Vec<f32>> = None;
        for machine in Machine::all() {
            let packed = Arc::new(Packed::matrix(inputs, outputs, |i, o| w[i * outputs + o]));
            let mut linear = Linear::new(inputs, packed, 128, &vec![0.01; outputs], None, After::Same).unwrap();
            linear.machine = machine;
            let mut y = vec![0f32; rows * outputs];
            linear.run(rows, &codes, &steps, Add::Nothing, Out::Numbers(&mut y));
            for (r, row) in y.chunks_exact(outputs).enumerate() {
                for (o, got) in row.iter().enumerate() {
                    let product = |i: usize| f64::from(real[r * inputs + i]) * f64::from(w[i * outputs + o]) * 0.01;
                    let wanted: f64 = (0..inputs).map(product).sum();
                    assert!((f64::from(*got) - wanted).abs() < 1e-4 * (1.0 + wanted.abs()), "{got} {wanted}");
                }
            }
            assert!(*first.get_or_insert_with(|| y.clone()) == y);
        }
    }
}

/// The extremes of codes and weights, which pairs of products in 16 bits would not hold.
#[test]
fn extremes() {
    let w = [-128i8; 64];
    for machine in Machine::all() {
        let packed = Arc::new(Packed::matrix(64, 1, |i, _| w[i]));
        let mut linear = Linear::new(64, packed, 0, &[1.0], None, After::Same).unwrap();
        linear.machine = machine;
        let mut y = [0f32];
        linear.run(1, &[255u8; 64], &[1.0], Add::Nothing, Out::Numbers(&mut y));
        assert_eq!(y[0], -128.0 * 255.0 * 64.0);
    }
    let mut codes = [0u8; 8];
    let x = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1e30, -1e30, 0.5, 1.5, -0.0];
    codes_of_rows(1, 8, &x, &[1.0], 100, &mut codes);
    assert_eq!(codes, [100, 255, 0, 255, 0, 100, 102, 100]);
}

#[test]
fn pools_and_ranges() {
    let (batch, channels, h, w) = (2, 20, 5, 6);
    let x = floats(batch * channels * h * w, 9);
    let mut codes = vec![0u8; image_len(batch, channels, h * w)];
    codes_of([batch, channels, h * w], false, &x, &[0.01], 128, &mut codes);
    let windows = Windows::Sliding { kernel: [1, 3, 3], stride: [1, 2, 2], pad: [0, 1, 1], pad_end: [0, 1, 1] };
    let s = PoolShape { planes: batch * 2, input: [1, h, w], output: [1, 3, 3], windows };
    let mut y = vec![0u8; image_len(batch, channels, 9)];
    max_pool(&s, channels, &codes, &mut y);
    let at = |n: usize, c: usize, i: usize, j: usize| codes[((n * 2 + c / 16) * h * w + i * w + j) * 16 + c % 16];
    for (n, c, i, j) in [(0usize, 0usize, 0usize, 0usize), (1, 19, 2, 2), (1, 7, 1, 0), (0, 16, 2, 1)] {
        let rows = (2 * i).saturating_sub(1)..(2 * i + 2).min(h);
        let wanted = rows.flat_map(|a| ((2 * j).saturating_sub(1)..(2 * j + 2).min(w)).map(move |b| (a, b)));
        let wanted = wanted.map(|(a, b)| at(n, c, a, b)).max().unwrap();
        assert_eq!(y[((n * 2 + c / 16) * 9 + i * 3 + j) * 16 + c % 16], wanted);
    }
    let mut blocked = vec![9e9f32; batch * 32 * h * w];
    block(batch, channels, h * w, &x, &mut blocked);
    let (mut plain_range, mut range) = (vec![0f32; batch], vec![0f32; batch]);
    largest(batch, channels, h * w, false, &x, &mut plain_range);
    largest(batch, channels, h * w, true, &blocked, &mut range);
    assert!(plain_range == range && plain_range.iter().all(|v| *v > 0.9 && *v <= 1.0));
}
