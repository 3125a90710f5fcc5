use super::*;
use crate::conv::{conv_backward_data_of, conv_backward_weight_of, conv_forward_of};

fn noise(len: usize, seed: usize) -> Vec<f32> {
    let value = |i: usize| (((i * 7919 + seed * 131) % 10_007) as f32 * 0.37).sin();
    (0..len).map(value).collect()
}

fn up(v: &[f32]) -> Vec<f64> {
    v.iter().map(|&v| v as f64).collect()
}

fn shape(
    batch: usize,
    ci: usize,
    co: usize,
    [height, width]: [usize; 2],
    [top, left, bottom, right]: [usize; 4],
) -> ConvShape {
    let (pad, pad_end) = ([0, top, left], [0, bottom, right]);
    ConvShape::new(batch, ci, co, 1, [1, height, width], [1, 3, 3], [1; 3], [1; 3], pad, pad_end).unwrap()
}

fn assert_close(what: &str, n: usize, s: &ConvShape, found: &[f32], expected: &[f64]) {
    // About six times what is seen.
    let limit = if n == 6 { 5e-5 } else { 1e-5 };
    let largest = expected.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
    let error = found.iter().zip(expected).fold(0.0, |m: f64, (y, e)| m.max((*y as f64 - e).abs()));
    assert!(
        found.iter().all(|v| v.is_finite()) && error <= limit * largest,
        "{what}, {n} points: {error:e} of {largest}, {s:?}"
    );
}

/// Forward, backward by data and backward by weights against sums in `f64`, with each number of points that can.
fn check(s: &ConvShape, x: &[f32]) {
    let (w, bias, dy) = (noise(s.w_len(), 2), noise(s.out_channels, 3), noise(s.y_len(), 4));
    let (mut y, mut dx, mut dw) = (vec![0f64; s.y_len()], vec![0f64; s.x_len()], vec![0f64; s.w_len()]);
    conv_forward_of(s, &up(x), &up(&w), Some(&up(&bias)), &mut y);
    conv_backward_data_of(s, &up(&w), &up(&dy), &mut dx);
    conv_backward_weight_of(s, &up(x), &up(&dy), &mut dw);
    let methods: &[usize] = if whole(s) { &[3, 4, 6] } else { &[4, 6] };
    for &n in methods {
        let junk = |len: usize| vec![f32::NAN; len];
        let plan = Plan::new(s, n);
        let mut found = junk(s.y_len());
        run(s, &plan, x, forward::Weights { w: &w, mirrored: false }, Some(&bias), &mut found);
        assert_close("forward", n, s, &found, &y);
        let mut found = junk(s.w_len());
        run_weight(s, &plan, x, &dy, &mut found);
        assert_close("by weights", n, s, &found, &dw);
        if let Some(mirrored) = s.mirrored() {
            let mut found = junk(s.x_len());
            run(&mirrored, &Plan::new(&mirrored, n), &dy, forward::Weights { w: &w, mirrored: true }, None, &mut found);
            assert_close("by data", n, s, &found, &dx);
        }
    }
}

#[test]
fn close_to_direct_sums() {
    for s in [
        shape(1, 1, 1, [3, 3], [0; 4]),
        shape(1, 2, 9, [1, 1], [1; 4]),
        shape(2, 3, 5, [7, 9], [1; 4]),
        shape(5, 20, 17, [4, 6], [2, 0, 1, 3]),
        shape(3, 16, 8, [30, 31], [1; 4]),
        shape(2, 5, 4, [2, 70], [5, 4, 3, 2]),
        // Several blocks of channels, of which the last is not full, and several goes over the depth.
        shape(1, 300, 11, [14, 14], [1; 4]),
        shape(2, 33, 75, [8, 8], [1; 4]),
        shape(9, 70, 130, [4, 4], [1; 4]),
        // Whole images.
        shape(1, 1, 1, [2, 2], [1; 4]),
        shape(13, 48, 40, [2, 2], [1; 4]),
        // More tiles than are summed or shared at a time.
        shape(1, 3, 2, [124, 125], [1; 4]),
        shape(2, 200, 190, [26, 27], [1; 4]),
    ] {
        check(&s, &noise(s.x_len(), 1));
    }
}

/// Sums of numbers of one sign are large, and what is lost where they cancel on the way is to stay small against them.
#[test]
fn exact_enough_far_from_zero() {
    let s = shape(8, 40, 36, [20, 20], [1; 4]);
    let x: Vec<f32> = noise(s.x_len(), 1).iter().map(|v| v.max(0.0) + 3.0).collect();
    check(&s, &x);
}

#[test]
fn threads_do_not_change_bits() {
    // Tasks with tiles of their own, and tasks that share them.
    for (batch, channels, extent) in [(6, 20, 40), (1, 40, 12), (5, 70, 2)] {
        let s = shape(batch, channels, 40, [extent; 2], [1; 4]);
        let (x, w, dy) = (noise(s.x_len(), 1), noise(s.w_len(), 2), noise(s.y_len(), 3));
        let all = |threads: usize| {
            parallel::set_num_threads(threads);
            let (mut y, mut dw) = (vec![0.0; s.y_len()], vec![0.0; s.w_len()]);
            let plan = Plan::new(&s, if whole(&s) { 3 } else { 6 });
            run(&s, &plan, &x, forward::Weights { w: &w, mirrored: false }, None, &mut y);
            run_weight(&s, &plan, &x, &dy, &mut dw);
            (y, dw)
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
    assert!(Plan::new(&large, 6).cost(&large) < Plan::new(&large, 4).cost(&large));
    assert!(plan(&planar(64, 2, 3)).is_none_or(|p| p.n == 3));
    assert!(!suits(&planar(3, 56, 3)) && !suits(&planar(64, 56, 5)) && !suits(&ConvShape { groups: 2, ..large }));
    set_winograd(Winograd::Off);
    assert!(winograd() == Winograd::Off && !suits(&large));
}
