use super::*;

fn sliding(planes: usize, input: [usize; 3], k: [usize; 3], s: [usize; 3], pad: [usize; 3], ceil: bool) -> PoolShape {
    let output = std::array::from_fn(|a| pooled_len(input[a], k[a], s[a], pad[a], pad[a], ceil).unwrap());
    PoolShape { planes, input, output, windows: Windows::Sliding { kernel: k, stride: s, pad, pad_end: pad } }
}

fn shapes() -> Vec<PoolShape> {
    vec![
        sliding(3, [1, 8, 9], [1, 2, 2], [1, 2, 2], [0; 3], false),
        sliding(2, [3, 8, 8], [1, 2, 2], [1, 2, 2], [0; 3], false),
        sliding(3, [1, 5, 45], [1, 2, 2], [1, 2, 2], [0; 3], false),
        sliding(3, [1, 10, 28], [1, 2, 2], [1, 2, 2], [0; 3], false),
        sliding(5, [1, 10, 11], [1, 2, 2], [1, 2, 2], [0; 3], false),
        sliding(2, [1, 16, 41], [1, 3, 3], [1, 2, 2], [0, 1, 1], false),
        sliding(2, [1, 5, 5], [1, 2, 7], [1, 3, 9], [0, 1, 3], true),
        sliding(2, [4, 8, 8], [1, 2, 2], [2, 2, 2], [0; 3], false),
        sliding(2, [1, 7, 9], [1, 3, 2], [1, 2, 1], [0, 1, 1], false),
        sliding(2, [1, 1, 6], [1, 1, 4], [1, 1, 3], [0, 0, 1], true),
        sliding(2, [5, 6, 7], [2, 3, 3], [2, 1, 2], [1, 1, 0], true),
        PoolShape { planes: 2, input: [1, 7, 10], output: [1, 3, 4], windows: Windows::Adaptive },
        PoolShape { planes: 2, input: [3, 2, 5], output: [2, 4, 1], windows: Windows::Adaptive },
    ]
}

/// Every window by the definition: the places it covers and its extent with padding.
fn naive(s: &PoolShape) -> Vec<(Vec<usize>, usize)> {
    let mut out = vec![];
    for i in 0..s.y_plane() {
        let at = [i / (s.output[1] * s.output[2]), i / s.output[2] % s.output[1], i % s.output[2]];
        let mut extent = 1;
        let axis: [Vec<usize>; 3] = std::array::from_fn(|a| {
            let n = s.input[a] as isize;
            let (begin, end) = match s.windows {
                Windows::Sliding { kernel, stride, pad, pad_end } => {
                    let begin = (at[a] * stride[a]) as isize - pad[a] as isize;
                    (begin, (begin + kernel[a] as isize).min(n + pad_end[a] as isize))
                }
                Windows::Adaptive => {
                    let f = s.input[a] as f64 / s.output[a] as f64;
                    ((at[a] as f64 * f).floor() as isize, ((at[a] + 1) as f64 * f).ceil() as isize)
                }
                Windows::Fractional { .. } => unreachable!("has a test of its own"),
            };
            extent *= (end - begin) as usize;
            (begin.max(0)..end.min(n)).map(|v| v as usize).collect()
        });
        let mut places = vec![];
        for d in &axis[0] {
            for h in &axis[1] {
                for w in &axis[2] {
                    places.push((d * s.input[1] + h) * s.input[2] + w);
                }
            }
        }
        out.push((places, extent));
    }
    out
}

fn values(len: usize) -> Vec<f64> {
    (0..len).map(|i| ((i * 7919 + i / 5) % 31) as f64 - 15.0).collect()
}

#[test]
fn maxima_and_their_places() {
    for s in shapes() {
        let x = values(s.planes * s.x_plane());
        let len = s.planes * s.y_plane();
        let (mut y, mut z, mut index) = (vec![0.0; len], vec![0.0; len], vec![0; len]);
        max_pool_of(&s, &x, &mut y);
        max_pool_with_index_of(&s, &x, &mut z, &mut index);
        assert_eq!(y, z);
        let mut dx = vec![9.0; x.len()];
        max_pool_backward_of(s.planes, &y, &index, &mut dx);
        let mut expected = vec![0.0; x.len()];
        for p in 0..s.planes {
            for (i, (places, _)) in naive(&s).iter().enumerate() {
                let x = &x[p * s.x_plane()..];
                let at = p * s.y_plane() + i;
                let best = match places.iter().rev().max_by(|&&a, &&b| x[a].total_cmp(&x[b])) {
                    Some(&best) => {
                        assert_eq!((y[at], index[at]), (x[best], best as i64), "{s:?}");
                        best
                    }
                    None => index[at] as usize,
                };
                expected[p * s.x_plane() + best] += y[at];
            }
        }
        assert_eq!(dx, expected);
    }
}

#[test]
fn averages_and_their_gradients() {
    for s in shapes() {
        let (x, dy) = (values(s.planes * s.x_plane()), values(s.planes * s.y_plane()));
        for divisor in [Divisor::Inside, Divisor::Window, Divisor::Fixed(3.0)] {
            let (mut y, mut dx) = (vec![7.0; dy.len()], vec![7.0; x.len()]);
            avg_pool_of(&s, divisor, &x, &mut y);
            avg_pool_backward_of(&s, divisor, &dy, &mut dx);
            let (mut ey, mut ex) = (vec![0.0; dy.len()], vec![0.0; x.len()]);
            for p in 0..s.planes {
                for (i, (places, extent)) in naive(&s).iter().enumerate() {
                    for place in places {
                        let (xi, yi) = (p * s.x_plane() + place, p * s.y_plane() + i);
                        let over = divisor.get(places.len(), *extent);
                        ey[yi] += x[xi] / over;
                        ex[xi] += dy[yi] / over;
                    }
                }
            }
            let close = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-9);
            assert!(close(&y, &ey) && close(&dx, &ex), "{s:?} {divisor:?}");
        }
    }
}

#[test]
fn nan_wins() {
    let s = sliding(1, [1, 2, 8], [1, 2, 2], [1, 2, 2], [0; 3], false);
    let mut x = vec![1f32; 16];
    x[9] = f32::NAN;
    x[2] = f32::NAN;
    let (mut y, mut index) = ([0f32; 4], [0; 4]);
    for windows in [s, PoolShape { windows: Windows::Adaptive, ..s }] {
        max_pool_of(&windows, &x, &mut y);
        max_index_of(&windows, &x, &mut index);
        assert!(y[0].is_nan() && y[1].is_nan() && y[2] == 1.0);
        assert_eq!(index, [9, 2, 4, 6]);
    }
}

#[test]
fn unpooling() {
    let mut x = [1f32; 4];
    max_unpool_of(1, &[5.0, 6.0], &[2, 0], &mut x);
    assert_eq!(x, [6.0, 0.0, 5.0, 0.0]);
    let mut z = [0f32; 2];
    gather_by_index_of(1, &x, &[2, 0], &mut z);
    assert_eq!(z, [5.0, 6.0]);
}

#[test]
fn ceil_mode_keeps_every_window() {
    assert_eq!(pooled_len(3, 2, 2, 1, 1, true), Some(3));
    assert_eq!(pooled_len(3, 2, 2, 1, 1, false), Some(2));
    assert_eq!(pooled_len(1, 3, 1, 0, 0, false), None);
    let s = sliding(1, [1, 1, 3], [1, 1, 2], [1, 1, 2], [0, 0, 1], true);
    let mut y = [0f32; 3];
    avg_pool_of(&s, Divisor::Inside, &[1.0, 2.0, 3.0], &mut y);
    assert_eq!(y, [1.0, 2.5, 0.0]);
}

#[test]
fn fractional_windows_cover_the_input() {
    for (n, out, kernel) in [(7, 3, 0), (7, 3, 2), (9, 9, 0), (5, 1, 5), (5, 1, 3), (10, 7, 0)] {
        for u in [0.01f32, 0.3, 0.5, 0.99] {
            let s = PoolShape {
                planes: 1,
                input: [1, 1, n],
                output: [1, 1, out],
                windows: Windows::Fractional { kernel: [0, 0, kernel], u },
            };
            let [_, _, w] = s.axes();
            assert!(w.iter().all(|(r, _)| !r.is_empty() && r.end <= n), "{n} {out} {kernel} {u}: {w:?}");
            assert!(kernel == 0 || w.iter().all(|(r, _)| r.len() == kernel), "{n} {out} {kernel} {u}: {w:?}");
            assert!(kernel > 0 || w.windows(2).all(|p| p[0].0.end == p[1].0.start), "{n} {out} {u}: {w:?}");
        }
    }
}

#[test]
fn without_planes_extents_do_not_matter() {
    let huge = [1 << 31; 3];
    let s = PoolShape { planes: 0, input: huge, output: huge, windows: Windows::Adaptive };
    max_pool_with_index_of::<f32>(&s, &[], &mut [], &mut []);
    max_pool_of::<f32>(&s, &[], &mut []);
    avg_pool_of::<f32>(&s, Divisor::Inside, &[], &mut []);
    avg_pool_backward_of::<f32>(&s, Divisor::Inside, &[], &mut []);
}

#[test]
fn gradients_of_maxima_go_where_the_indices_say() {
    for s in shapes() {
        let mut x = values(s.planes * s.x_plane());
        x[3] = f64::NAN;
        let dy: Vec<f64> = (0..s.planes * s.y_plane()).map(|i| i as f64 + 1.0).collect();
        let (mut index, mut expected, mut dx) = (vec![0; dy.len()], vec![7.0; x.len()], vec![7.0; x.len()]);
        max_index_of(&s, &x, &mut index);
        max_pool_backward_of(s.planes, &dy, &index, &mut expected);
        max_pool_grad_of(&s, &x, &dy, &mut dx);
        assert_eq!(dx, expected, "{s:?}");
    }
}
