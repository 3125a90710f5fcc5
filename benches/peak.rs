//! What the machine can do at most, measured: multiply-adds in registers, and bytes moved through memory.

use pulp::{Arch, Simd, WithSimd};
use serde_json::{Value, json};
use std::hint::black_box;
use std::sync::Barrier;
use std::time::{Duration, Instant};

/// The best of so many short runs counts: a peak is what the machine does when nothing else wants it.
const RUNS: usize = 12;
const RUN_TIME: Duration = Duration::from_millis(12);

/// Independent sums: more than two units with a latency of four or five cycles can keep in flight, and few enough that
/// they stay in the sixteen registers of AVX2.
const SUMS: usize = 12;

/// Multiply-adds of every sum between two looks at the clock.
const TURNS: usize = 10_000;

/// Bytes that all threads touch together, from what fits in the first cache to what fits in none.
const SIZES: [usize; 8] = [32 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20, 256 << 20, 512 << 20];

/// The command `peak`: operations a second on one thread and on all, and `[bytes, bytes a second]` for working sets that
/// grow.
pub fn measure(threads: usize) -> Value {
    let bandwidth: Vec<[f64; 2]> = SIZES.iter().map(|&size| [size as f64, bandwidth(size, threads)]).collect();
    json!({ "flops_one": flops(1), "flops": flops(threads), "bandwidth": bandwidth })
}

/// Prepares by `make` and repeats the work that it gives, on every thread at once: the sum of what the calls count, a
/// second.
fn rate<W: FnMut() -> f64>(threads: usize, make: impl Fn() -> W + Sync) -> f64 {
    let together = Barrier::new(threads);
    let repeat = || {
        let mut work = make();
        // Pages are touched, and the processor's clock has time to rise.
        work();
        let run = |_| {
            together.wait();
            let (began, mut counted) = (Instant::now(), 0.0);
            while began.elapsed() < RUN_TIME {
                counted += work();
            }
            (counted, began.elapsed().as_secs_f64())
        };
        (0..RUNS).map(run).collect::<Vec<_>>()
    };
    let runs: Vec<Vec<(f64, f64)>> = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..threads).map(|_| scope.spawn(repeat)).collect();
        handles.into_iter().map(|h| h.join().expect("a measurement does not fail")).collect()
    });
    let rate = |i: usize| {
        let slowest = runs.iter().map(|run| run[i].1).fold(0.0, f64::max);
        runs.iter().map(|run| run[i].0).sum::<f64>() / slowest
    };
    (0..RUNS).map(rate).fold(0.0, f64::max)
}

/// Operations a second; a multiply-add counts as two.
fn flops(threads: usize) -> f64 {
    rate(threads, || || Arch::new().dispatch(MultiplyAdds))
}

struct MultiplyAdds;

impl WithSimd for MultiplyAdds {
    type Output = f64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> f64 {
        let (x, y) = (simd.splat_f32s(black_box(0.999)), simd.splat_f32s(black_box(1e-3)));
        let mut sums = [y; SUMS];
        for _ in 0..TURNS {
            for sum in &mut sums {
                *sum = simd.mul_add_f32s(*sum, x, y);
            }
        }
        let total = sums.into_iter().reduce(|a, b| simd.add_f32s(a, b)).expect("there are sums");
        black_box(simd.reduce_sum_f32s(total));
        (2 * SUMS * TURNS * S::F32_LANES) as f64
    }
}

/// Bytes a second of the best of three loops over arrays of `size` bytes altogether: reading alone, copying, and
/// `a = b + s·c`. As in STREAM, a byte read or written counts once.
fn bandwidth(size: usize, threads: usize) -> f64 {
    let floats = size / threads / size_of::<f32>();
    let read = rate(threads, || {
        let a = vec![1f32; floats];
        move || {
            black_box(Arch::new().dispatch(|| sum(black_box(&a))));
            (4 * a.len()) as f64
        }
    });
    let copy = rate(threads, || {
        let (mut a, b) = (vec![0f32; floats / 2], vec![1f32; floats / 2]);
        move || {
            a.copy_from_slice(black_box(&b));
            black_box(&mut a);
            (8 * a.len()) as f64
        }
    });
    let triad = rate(threads, || {
        let (mut a, b, c) = (vec![0f32; floats / 3], vec![1f32; floats / 3], vec![2f32; floats / 3]);
        move || {
            Arch::new().dispatch(|| scaled_add(&mut a, black_box(&b), black_box(&c)));
            black_box(&mut a);
            (12 * a.len()) as f64
        }
    });
    read.max(copy).max(triad)
}

/// With as many running sums as fill a few vectors, so that it is the memory that is waited for.
#[inline(always)]
fn sum(values: &[f32]) -> f32 {
    let mut sums = [0f32; 128];
    for chunk in values.as_chunks::<128>().0 {
        for i in 0..128 {
            sums[i] += chunk[i];
        }
    }
    sums.iter().sum()
}

#[inline(always)]
fn scaled_add(a: &mut [f32], b: &[f32], c: &[f32]) {
    for ((a, b), c) in a.iter_mut().zip(b).zip(c) {
        *a = b + 3.0 * c;
    }
}
