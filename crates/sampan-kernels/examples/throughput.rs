//! How fast products and convolutions run here: `cargo run --release --example throughput [threads]`.

use sampan_kernels::conv::{ConvShape, conv_backward_data, conv_backward_weight, conv_forward, lift};
use sampan_kernels::gemm::{Mat, MatMut, matmul};
use sampan_kernels::parallel;
use std::time::Instant;

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

fn show(name: &str, flops: usize, seconds: f64) {
    println!("{name:32} {:10.2} us {:8.1} GFLOP/s", seconds * 1e6, flops as f64 / seconds / 1e9);
}

fn main() {
    if let Some(n) = std::env::args().nth(1).and_then(|v| v.parse().ok()) {
        parallel::set_num_threads(n);
    }
    println!("{} threads", parallel::num_threads());
    for n in [4, 8, 16, 32, 64, 128, 256, 1024] {
        let (a, b, mut c) = (vec![1f32; n * n], vec![1f32; n * n], vec![0f32; n * n]);
        let s = time(|| matmul(n, n, n, Mat::rows(&a, n), Mat::rows(&b, n), MatMut::rows(&mut c, n), false));
        show(&format!("matmul {n}"), 2 * n * n * n, s);
    }
    for (m, n, k) in [(1, 1024, 1024), (1024, 1, 1024), (64, 10, 784), (64, 120, 400), (1, 1, 1 << 20)] {
        let (a, b, mut c) = (vec![1f32; m * k], vec![1f32; k * n], vec![0f32; m * n]);
        let s = time(|| matmul(m, n, k, Mat::rows(&a, k), Mat::rows(&b, n), MatMut::rows(&mut c, n), false));
        show(&format!("matmul {m}x{n}x{k}"), 2 * m * n * k, s);
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
        show(&format!("conv {name} forward"), flops, time(|| conv_forward(&s, &x, &w, None, &mut y)));
        show(&format!("conv {name} data"), flops, time(|| conv_backward_data(&s, &w, &y, &mut x)));
        show(&format!("conv {name} weight"), flops, time(|| conv_backward_weight(&s, &x, &y, &mut w)));
    }
}
