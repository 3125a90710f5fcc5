//! One shared thread pool. Work is cut into chunks whose bounds depend on the size of the work alone, never on the
//! number of threads, so results have the same bits on any machine.

use parking_lot::RwLock;
use rayon::prelude::*;
use std::ops::Range;
use std::sync::{Arc, LazyLock};

/// Below this many elementary operations work stays on the calling thread: waking another one costs more.
pub const SERIAL_BELOW: usize = 1 << 15;

static POOL: LazyLock<RwLock<Arc<rayon::ThreadPool>>> = LazyLock::new(|| {
    let threads = std::env::var("SAMPAN_NUM_THREADS").ok().and_then(|v| v.parse().ok());
    RwLock::new(build(threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, |n| n.get()))))
});

fn build(threads: usize) -> Arc<rayon::ThreadPool> {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads.max(1))
        .thread_name(|i| format!("sampan-{i}"))
        .build()
        .expect("the operating system refused to start a thread");
    Arc::new(pool)
}

/// Threads that kernels may use. The environment variable `SAMPAN_NUM_THREADS` sets it at start.
pub fn num_threads() -> usize {
    POOL.read().current_num_threads()
}

/// Sets the number of threads that kernels may use. Results do not depend on it.
pub fn set_num_threads(threads: usize) {
    *POOL.write() = build(threads);
}

/// Runs `f` inside the shared pool, so that rayon's own constructs use it.
pub fn install<R: Send>(f: impl FnOnce() -> R + Send) -> R {
    let pool = POOL.read().clone();
    pool.install(f)
}

/// Is the work large enough to be worth other threads? `cost` counts elementary operations.
pub fn worth_it(cost: usize) -> bool {
    cost >= SERIAL_BELOW && num_threads() > 1
}

/// Calls `f(range)` for `0..len` cut into pieces of `chunk`; in parallel if `len * cost_each` is worth it.
pub fn for_each_range(len: usize, chunk: usize, cost_each: usize, f: impl Fn(Range<usize>) + Sync + Send) {
    let chunk = chunk.max(1);
    let pieces = len.div_ceil(chunk);
    let run = |i: usize| f(i * chunk..((i + 1) * chunk).min(len));
    if pieces > 1 && worth_it(len.saturating_mul(cost_each)) {
        install(|| (0..pieces).into_par_iter().for_each(run));
    } else {
        (0..pieces).for_each(run);
    }
}

/// Calls `f(index, piece)` for `data` cut into pieces of `chunk`; in parallel if `data.len() * cost_each` is worth it.
pub fn for_each_chunk_mut<T: Send>(
    data: &mut [T],
    chunk: usize,
    cost_each: usize,
    f: impl Fn(usize, &mut [T]) + Sync + Send,
) {
    let chunk = chunk.max(1);
    if data.len() > chunk && worth_it(data.len().saturating_mul(cost_each)) {
        install(|| data.par_chunks_mut(chunk).enumerate().for_each(|(i, piece)| f(i, piece)));
    } else {
        data.chunks_mut(chunk).enumerate().for_each(|(i, piece)| f(i, piece));
    }
}

/// Results of `f(i)` for `0..len` in order; in parallel if `len * cost_each` is worth it.
pub fn map<R: Send>(len: usize, cost_each: usize, f: impl Fn(usize) -> R + Sync + Send) -> Vec<R> {
    if len > 1 && worth_it(len.saturating_mul(cost_each)) {
        install(|| (0..len).into_par_iter().map(f).collect())
    } else {
        (0..len).map(f).collect()
    }
}
