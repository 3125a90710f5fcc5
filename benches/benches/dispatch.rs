//! What a call costs besides its arithmetic: `cargo bench -p sampan-bench --bench dispatch`.

use criterion::{Criterion, criterion_group, criterion_main};
use sampan_core::Tensor;
use std::hint::black_box;

fn four() -> Tensor {
    Tensor::new([1.0f32, 2.0, 3.0, 4.0])
}

fn dispatch(c: &mut Criterion) {
    let (a, b) = (four(), four());
    let m = Tensor::new([[1.0f32, 2.0], [3.0, 4.0]]);
    let row = Tensor::new([1.0f32, 2.0]);
    let w = four().requires_grad_();
    c.bench_function("add", |bench| bench.iter(|| black_box(&a) + black_box(&b)));
    c.bench_function("add a number", |bench| bench.iter(|| black_box(&a) + 1.0));
    c.bench_function("add broadcast", |bench| bench.iter(|| black_box(&m) + black_box(&row)));
    c.bench_function("add recorded", |bench| bench.iter(|| black_box(&w) + black_box(&b)));
    c.bench_function("transpose", |bench| bench.iter(|| black_box(&m).t()));
    c.bench_function("sum", |bench| bench.iter(|| black_box(&a).sum(())));
    c.bench_function("10 ops forward", |bench| bench.iter(|| chain(black_box(&a), &b)));
    c.bench_function("10 ops forward and backward", |bench| {
        bench.iter(|| {
            chain(black_box(&w), &b).backward();
            w.clear_grad();
        })
    });
}

/// Multiplies and adds in turns.
fn chain(x: &Tensor, y: &Tensor) -> Tensor {
    let mut z = x * y;
    for _ in 0..4 {
        z = &z + y;
        z = &z * y;
    }
    &z + y
}

criterion_group!(benches, dispatch);
criterion_main!(benches);
