use super::*;
use crate::{Ordered, bf16, f16};

/// Calls `f(x index, w index, y index)` for every product the definition sums.
fn each(s: &ConvShape, mut f: impl FnMut(usize, usize, usize)) {
    let (gi, go) = (s.group_in(), s.group_out());
    let index = |i: [usize; 3], n: [usize; 3]| (i[0] * n[1] + i[1]) * n[2] + i[2];
    let all =
        |n: [usize; 3]| (0..n.iter().product::<usize>()).map(move |i| [i / (n[1] * n[2]), i / n[2] % n[1], i % n[2]]);
    for image in 0..s.batch {
        for o in 0..s.out_channels {
            for i in 0..gi {
                for p in all(s.output) {
                    for t in all(s.kernel) {
                        let at: [isize; 3] = std::array::from_fn(|a| {
                            (p[a] * s.stride[a] + t[a] * s.dilation[a]) as isize - s.pad_begin[a] as isize
                        });
                        if (0..3).all(|a| at[a] >= 0 && at[a] < s.input[a] as isize) {
                            let plane = image * s.in_channels + o / go * gi + i;
                            f(
                                plane * s.x_plane() + index(at.map(|v| v as usize), s.input),
                                (o * gi + i) * s.taps() + index(t, s.kernel),
                                (image * s.out_channels + o) * s.y_plane() + index(p, s.output),
                            );
                        }
                    }
                }
            }
        }
    }
}

fn values<T: Ordered>(len: usize, seed: usize) -> Vec<T> {
    (0..len).map(|i| T::from_i64(((i * 7919 + i / 7 + seed * 104_729) % 9) as i64 - 4)).collect()
}

fn check_all<T: RealElement<Wide: Gemm>>(s: &ConvShape) {
    // Expected to the last bit.
    set_winograd(Winograd::Off);
    let (x, w, dy) = (values::<T>(s.x_len(), 1), values::<T>(s.w_len(), 2), values::<T>(s.y_len(), 3));
    let bias = values::<T>(s.out_channels, 4);
    let f = |v: &[T]| v.iter().map(|v| v.to_f64()).collect::<Vec<_>>();
    let (xf, wf, dyf) = (f(&x), f(&w), f(&dy));
    let mut ey: Vec<f64> = (0..s.y_len()).map(|i| bias[i / s.y_plane() % s.out_channels].to_f64()).collect();
    let (mut ex, mut ew) = (vec![0.0; s.x_len()], vec![0.0; s.w_len()]);
    each(s, |xi, wi, yi| {
        ey[yi] += xf[xi] * wf[wi];
        ex[xi] += dyf[yi] * wf[wi];
        ew[wi] += dyf[yi] * xf[xi];
    });
    let round = |v: &[f64]| v.iter().map(|&v| T::from_f64(v)).collect::<Vec<_>>();
    let junk = T::from_f64(f64::NAN);
    let mut y = vec![junk; s.y_len()];
    conv_forward_of(s, &x, &w, Some(&bias), &mut y);
    assert_eq!(y, round(&ey), "forward {s:?}");
    let mut dx = vec![junk; s.x_len()];
    conv_backward_data_of(s, &w, &dy, &mut dx);
    assert_eq!(dx, round(&ex), "backward data {s:?}");
    let mut dw = vec![junk; s.w_len()];
    conv_backward_weight_of(s, &x, &dy, &mut dw);
    assert_eq!(dw, round(&ew), "backward weight {s:?}");
}

fn shape2(
    [batch, ci, co, groups]: [usize; 4],
    input: [usize; 2],
    kernel: [usize; 2],
    [stride, dilation, begin, end]: [usize; 4],
) -> ConvShape {
    let both = |v: usize, fill: usize| lift(&[v, v], fill);
    let (input, kernel) = (lift(&input, 1), lift(&kernel, 1));
    ConvShape::new(
        batch,
        ci,
        co,
        groups,
        input,
        kernel,
        both(stride, 1),
        both(dilation, 1),
        both(begin, 0),
        both(end, 0),
    )
    .unwrap()
}

#[test]
fn planar_convolutions() {
    for s in [
        shape2([2, 3, 4, 1], [7, 9], [3, 3], [1, 1, 1, 1]),
        shape2([1, 1, 6, 1], [28, 28], [5, 5], [1, 1, 2, 2]),
        shape2([2, 6, 16, 1], [14, 14], [5, 5], [1, 1, 0, 0]),
        // Several bands of unequal height, without padding.
        shape2([1, 16, 1, 1], [96, 100], [5, 5], [1, 1, 0, 0]),
        shape2([3, 2, 20, 1], [9, 11], [5, 5], [1, 1, 2, 2]),
        shape2([5, 4, 32, 2], [11, 12], [4, 5], [1, 1, 1, 0]),
        shape2([2, 3, 16, 1], [12, 30], [3, 4], [1, 2, 1, 2]),
        shape2([2, 16, 8, 1], [9, 9], [1, 1], [1, 1, 0, 0]),
        shape2([2, 16, 8, 4], [9, 9], [1, 1], [1, 1, 0, 0]),
        shape2([2, 16, 8, 1], [9, 9], [1, 1], [2, 1, 0, 0]),
        shape2([2, 40, 70, 1], [9, 8], [3, 3], [2, 1, 1, 0]),
        shape2([3, 40, 33, 1], [6, 5], [3, 3], [1, 1, 1, 1]),
        shape2([1, 12, 12, 3], [11, 10], [3, 2], [2, 2, 1, 3]),
        shape2([2, 5, 5, 5], [20, 37], [3, 3], [1, 1, 1, 1]),
        shape2([2, 5, 5, 5], [20, 37], [5, 5], [2, 1, 2, 2]),
        shape2([2, 5, 15, 5], [8, 7], [3, 3], [1, 2, 2, 2]),
        shape2([2, 3, 32, 1], [30, 31], [7, 7], [2, 1, 3, 3]),
        shape2([1, 2, 2, 1], [3, 3], [3, 3], [1, 1, 4, 4]),
        shape2([1, 2, 2, 1], [1, 1], [3, 3], [3, 1, 7, 7]),
        // Rows of several vectors, and of more than are packed from where they lie; padding wider than a vector.
        shape2([1, 2, 6, 1], [9, 41], [3, 3], [1, 1, 1, 1]),
        shape2([1, 2, 6, 1], [5, 150], [3, 3], [1, 1, 1, 1]),
        shape2([1, 1, 3, 1], [20, 22], [37, 37], [1, 1, 18, 18]),
        // Several images of a part side by side.
        shape2([17, 3, 6, 1], [7, 20], [3, 3], [1, 1, 1, 1]),
        shape2([20, 4, 10, 2], [12, 9], [5, 5], [1, 1, 0, 0]),
        // Kernels larger than the image.
        shape2([3, 20, 24, 1], [1, 1], [3, 3], [1, 1, 1, 1]),
        shape2([3, 20, 24, 2], [1, 1], [3, 3], [1, 1, 1, 1]),
        shape2([2, 20, 24, 1], [2, 2], [3, 3], [2, 1, 1, 1]),
        shape2([3, 8, 8, 1], [2, 3], [5, 7], [1, 1, 2, 3]),
        shape2([2, 4, 4, 1], [2, 2], [3, 3], [1, 2, 2, 2]),
        shape2([2, 4, 4, 1], [2, 2], [3, 3], [1, 2, 1, 3]),
    ] {
        check_all::<f32>(&s);
        check_all::<f64>(&s);
    }
    check_all::<f16>(&shape2([1, 2, 3, 1], [4, 4], [2, 2], [1, 1, 1, 0]));
    check_all::<bf16>(&shape2([1, 1, 2, 1], [3, 3], [2, 2], [2, 1, 1, 0]));
}

/// Widths below, at and above a vector, several bands, kernels that reach outside, strides that skip.
#[test]
fn depthwise() {
    for (input, channels) in [([7, 7], 5), ([14, 17], 2), ([5, 33], 2), ([90, 70], 1)] {
        for kernel in [[3, 3], [5, 5], [1, 1], [2, 7]] {
            for [stride, dilation, begin, end] in [[1, 1, 2, 2], [2, 1, 1, 1], [3, 1, 0, 4], [1, 2, 3, 1], [2, 3, 5, 6]]
            {
                let window = (kernel[0].max(kernel[1]) - 1) * dilation + 1;
                if input[0] + begin + end >= window {
                    check_all::<f32>(&shape2(
                        [2, channels, channels, channels],
                        input,
                        kernel,
                        [stride, dilation, begin, end],
                    ));
                }
            }
        }
    }
    for stride in [[1; 3], [2, 1, 2]] {
        let (kernel, pad) = ([2, 3, 3], [1, 1, 2]);
        let volume = ConvShape::new(2, 3, 3, 3, [4, 5, 6], kernel, stride, [1, 2, 1], pad, [1, 2, 0]).unwrap();
        check_all::<f32>(&volume);
    }
}

#[test]
fn lines_and_volumes() {
    let line = ConvShape::new(2, 4, 6, 2, [1, 1, 50], [1, 1, 5], [1, 1, 3], [1, 1, 2], [0, 0, 3], [0, 0, 4]).unwrap();
    let volume = ConvShape::new(2, 4, 6, 2, [5, 6, 7], [2, 3, 3], [1, 2, 1], [2, 1, 1], [1; 3], [1, 0, 2]).unwrap();
    for s in [line, volume, ConvShape { stride: [1; 3], output: [5, 6, 7], ..volume }] {
        check_all::<f32>(&s);
        check_all::<f64>(&s);
    }
}

#[test]
fn transposed_to_a_chosen_size() {
    // A stride of 2 leaves one more row and column that no window reaches.
    let mut s = shape2([1, 3, 2, 1], [7, 7], [3, 3], [2, 1, 0, 0]);
    s.input = [1, 8, 8];
    check_all::<f32>(&s);
}

#[test]
fn impossible_shapes() {
    let one = [1; 3];
    assert!(ConvShape::new(1, 1, 1, 1, [1, 2, 2], [1, 3, 3], one, one, [0; 3], [0; 3]).is_none());
    assert!(ConvShape::new(1, 3, 2, 2, [1, 2, 2], one, one, one, [0; 3], [0; 3]).is_none());
}

#[test]
fn an_infinite_input_reaches_only_the_weights_it_meets() {
    // One infinite corner: in the gradient by the weights only the last kernel element meets it.
    let s = shape2([1, 1, 1, 1], [8, 8], [3, 3], [1, 1, 0, 0]);
    let (mut x, dy) = (vec![1.0f32; s.x_len()], vec![1.0f32; s.y_len()]);
    x[63] = f32::INFINITY;
    let mut dw = vec![0.0; 9];
    conv_backward_weight_of(&s, &x, &dy, &mut dw);
    assert_eq!(dw, [[36.0; 8].as_slice(), &[f32::INFINITY]].concat());
}

#[test]
fn threads_do_not_change_bits() {
    // The same way for all, whatever other tests choose meanwhile.
    set_winograd(Winograd::Off);
    let noise = |len: usize| (0..len).map(|i| ((i * 7919 % 1013) as f32).sin()).collect::<Vec<_>>();
    for s in [
        shape2([3, 20, 24, 1], [19, 40], [3, 3], [1, 1, 1, 1]),
        shape2([3, 20, 24, 1], [19, 23], [3, 3], [2, 1, 1, 1]),
        shape2([2, 70, 40, 1], [12, 9], [3, 3], [2, 1, 1, 1]),
        shape2([9, 70, 40, 1], [8, 8], [3, 3], [2, 1, 1, 1]),
        shape2([3, 40, 70, 1], [20, 24], [5, 5], [1, 1, 2, 2]),
        shape2([5, 8, 8, 8], [33, 20], [3, 3], [1, 1, 1, 1]),
        shape2([3, 64, 32, 1], [20, 20], [1, 1], [1, 1, 0, 0]),
    ] {
        let (x, w, dy) = (noise(s.x_len()), noise(s.w_len()), noise(s.y_len()));
        let all = |threads: usize| {
            parallel::set_num_threads(threads);
            let (mut y, mut dx, mut dw) = (vec![0.0; s.y_len()], vec![0.0; s.x_len()], vec![0.0; s.w_len()]);
            conv_forward_of(&s, &x, &w, None, &mut y);
            conv_backward_data_of(&s, &w, &dy, &mut dx);
            conv_backward_weight_of(&s, &x, &dy, &mut dw);
            (y, dx, dw)
        };
        let one = all(1);
        assert!([2, 3, 5].into_iter().all(|threads| all(threads) == one), "{s:?}");
    }
}
