//! How fast products and convolutions run here: `cargo run --release --example throughput [threads]`.

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
}
