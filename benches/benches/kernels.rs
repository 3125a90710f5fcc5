//! How fast products and convolutions run here: `cargo bench -p sampan-bench --bench kernels -- [threads] [part of a
//! name]`.

use sampan_kernels::conv::{ConvShape, conv_backward_data, conv_backward_weight, conv_forward, lift};
use sampan_kernels::gemm;
use sampan_kernels::parallel;
use sampan_kernels::pool::*;
use sampan_kernels::resample::*;
use sampan_kernels::{AnySlice, AnySliceMut, AnyView, View};
use std::time::Instant;

/// What the user gave; cargo adds a word of its own.
fn arguments() -> impl Iterator<Item = String> {
    std::env::args().skip(1).filter(|a| a != "--bench")
}

fn time(mut f: impl FnMut()) -> f64 {
    f();
    let mut best = f64::MAX;
    let begin = Instant::now();
    while begin.elapsed().as_secs_f64() < 0.3 {
        let mut count = 1;
        let seconds = loop {
            let start = Instant::now();
            (0..count).for_each(|_| f());
            let seconds = start.elapsed().as_secs_f64();
            if seconds > 1e-3 {
                break seconds / count as f64;
            }
            count *= 4;
        };
        best = best.min(seconds);
    }
    best
}

/// Times `f` and prints it, if the name has the part that was asked for.
fn show(name: &str, flops: usize, f: impl FnMut()) {
    if arguments().nth(1).is_none_or(|part| name.contains(&part)) {
        let seconds = time(f);
        println!("{name:32} {:10.2} us {:8.1} GFLOP/s", seconds * 1e6, flops as f64 / seconds / 1e9);
    }
}

fn read(x: &[f32]) -> AnySlice<'_> {
    x.into()
}

fn write(x: &mut [f32]) -> AnySliceMut<'_> {
    x.into()
}

fn matrix<'a>(data: &'a [f32], shape: &'a [usize; 2], strides: &'a [isize; 2]) -> AnyView<'a> {
    View { data, shape, strides, offset: 0 }.into()
}

/// `c = a · b`, where `a` is m×k and `b` is k×n.
fn matmul([m, n, k]: [usize; 3], a: &[f32], b: &[f32], c: &mut [f32]) {
    gemm::product(matrix(a, &[m, k], &[k as isize, 1]), matrix(b, &[k, n], &[n as isize, 1]), write(c));
}

fn main() {
    if let Some(n) = arguments().next().and_then(|v| v.parse().ok()) {
        parallel::set_num_threads(n);
    }
    println!("{} threads", parallel::num_threads());
    for n in [4, 8, 16, 32, 64, 128, 256, 1024] {
        let (a, b, mut c) = (vec![1f32; n * n], vec![1f32; n * n], vec![0f32; n * n]);
        show(&format!("matmul {n}"), 2 * n * n * n, || matmul([n, n, n], &a, &b, &mut c));
    }
    for (m, n, k) in [(1, 1024, 1024), (1024, 1, 1024), (64, 10, 784), (64, 120, 400), (1, 1, 1 << 20)] {
        let (a, b, mut c) = (vec![1f32; m * k], vec![1f32; k * n], vec![0f32; m * n]);
        show(&format!("matmul {m}x{n}x{k}"), 2 * m * n * k, || matmul([m, n, k], &a, &b, &mut c));
    }
    for (name, batch, ci, co, groups, size, kernel, stride, pad) in [
        ("3x3 64-64 56 b4", 4, 64, 64, 1, 56, 3, 1, 1),
        ("3x3 512-512 7 b8", 8, 512, 512, 1, 7, 3, 1, 1),
        ("3x3/2 128-128 56 b2", 2, 128, 128, 1, 56, 3, 2, 1),
        ("1x1 64-256 56 b4", 4, 64, 256, 1, 56, 1, 1, 0),
        ("7x7/2 3-64 224 b1", 1, 3, 64, 1, 224, 7, 2, 3),
        ("lenet 1-6 5x5 b64", 64, 1, 6, 1, 28, 5, 1, 2),
        ("lenet 6-16 5x5 b64", 64, 6, 16, 1, 14, 5, 1, 0),
        ("depthwise 96 3x3 56 b4", 4, 96, 96, 96, 56, 3, 1, 1),
        ("depthwise/2 96 3x3 56 b4", 4, 96, 96, 96, 56, 3, 2, 1),
    ] {
        let both = |v: usize, fill: usize| lift(&[v, v], fill);
        let (input, kernel, stride) = (both(size, 1), both(kernel, 1), both(stride, 1));
        let pad = both(pad, 0);
        let s = ConvShape::new(batch, ci, co, groups, input, kernel, stride, [1; 3], pad, pad).expect("a valid shape");
        let (mut x, mut w, mut y) = (vec![1f32; s.x_len()], vec![1f32; s.w_len()], vec![1f32; s.y_len()]);
        let flops = 2 * s.y_len() * s.w_len() / co;
        show(&format!("conv {name} forward"), flops, || conv_forward(&s, read(&x), read(&w), None, write(&mut y)));
        show(&format!("conv {name} data"), flops, || conv_backward_data(&s, read(&w), read(&y), write(&mut x)));
        show(&format!("conv {name} weight"), flops, || conv_backward_weight(&s, read(&x), read(&y), write(&mut w)));
    }
    let two = [1, 2, 2];
    let windows = Windows::Sliding { kernel: two, stride: two, pad: [0; 3], pad_end: [0; 3] };
    let s = PoolShape { planes: 64 * 16, input: [1, 28, 28], output: [1, 14, 14], windows };
    let wide = Windows::Sliding { kernel: [1, 3, 3], stride: two, pad: [0, 1, 1], pad_end: [0, 1, 1] };
    let t = PoolShape { planes: 64, input: [1, 112, 112], output: [1, 56, 56], windows: wide };
    for (name, s) in [("2x2 28 b64x16", s), ("3x3/2 112 64", t)] {
        let (outputs, inputs) = (s.output.iter().product::<usize>() * s.planes, s.input.iter().product::<usize>());
        let (mut x, mut y) = (vec![1f32; inputs * s.planes], vec![0f32; outputs]);
        let mut index = vec![0; outputs];
        show(&format!("max pool {name}"), x.len(), || max_pool(&s, read(&x), write(&mut y)));
        show(&format!("max pool {name} index"), x.len(), || max_index(&s, read(&x), &mut index));
        show(&format!("max pool {name} back"), x.len(), || {
            max_pool_backward(s.planes, read(&y), &index, write(&mut x))
        });
        show(&format!("avg pool {name}"), x.len(), || avg_pool(&s, Divisor::Inside, read(&x), write(&mut y)));
        show(&format!("avg pool {name} back"), x.len(), || {
            avg_pool_backward(&s, Divisor::Inside, read(&y), write(&mut x))
        });
    }
    let (x, mut y) = (vec![1f32; 64 * 56 * 56], vec![0f32; 64 * 112 * 112]);
    let table = Table::new(Method::Linear, Corners::HalfPixel, 56, 112, None);
    let tables = [table.clone(), table];
    show("bilinear 56-112 64", y.len(), || resample(&tables, 64, 1, read(&x), write(&mut y)));
}
