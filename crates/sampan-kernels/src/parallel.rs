//! One shared thread pool. Work is cut into chunks whose bounds depend on the size of the work alone, never on the
//! number of threads, so results have the same bits on any machine.
//!
//! The pool itself sees only `dyn` closures: rayon's machinery is compiled once, not for every kernel and dtype.

use parking_lot::RwLock;
use rayon::prelude::*;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Below this many elementary operations work stays on the calling thread: waking another one costs more.
pub const SERIAL_BELOW: usize = 1 << 15;

/// Started when it is first needed: a program whose work is small, or which asks for one thread, has none.
static POOL: RwLock<Option<Arc<rayon::ThreadPool>>> = RwLock::new(None);
/// The pool's size, zero before anybody asked: asked at every call, so not behind the lock.
static THREADS: AtomicUsize = AtomicUsize::new(0);

fn pool() -> Arc<rayon::ThreadPool> {
    if let Some(pool) = &*POOL.read() {
        return pool.clone();
    }
    let mut slot = POOL.write();
    let start = || {
        let builder = rayon::ThreadPoolBuilder::new().num_threads(num_threads());
        let pool = builder.thread_name(|i| format!("sampan-{i}")).build();
        Arc::new(pool.expect("the operating system refused to start a thread"))
    };
    slot.get_or_insert_with(start).clone()
}

/// Threads that kernels may use. The environment variable `SAMPAN_NUM_THREADS` sets it at start.
pub fn num_threads() -> usize {
    match THREADS.load(Ordering::Relaxed) {
        0 => {
            let wanted = std::env::var("SAMPAN_NUM_THREADS").ok().and_then(|v| v.parse().ok());
            let all = || std::thread::available_parallelism().map_or(1, |n| n.get());
            let threads = wanted.unwrap_or_else(all).max(1);
            // Unless another thread has set it meanwhile.
            match THREADS.compare_exchange(0, threads, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => threads,
                Err(set) => set,
            }
        }
        n => n,
    }
}

/// Sets the number of threads that kernels may use. Results do not depend on it.
pub fn set_num_threads(threads: usize) {
    let mut slot = POOL.write();
    THREADS.store(threads.max(1), Ordering::Relaxed);
    *slot = None;
}

/// For the child of a `fork`, first thing: it has the calling thread alone, the pool's threads stayed with the parent.
/// From here on kernels run on the calling thread, until [`set_num_threads`] asks for more.
pub fn after_fork() {
    THREADS.store(1, Ordering::Relaxed);
    // Not dropped: a pool waits for its threads to end.
    if let Some(mut slot) = POOL.try_write() {
        std::mem::forget(slot.take());
    }
}

/// Runs `f` inside the shared pool, so that rayon's own constructs use it.
pub fn install<R: Send>(f: impl FnOnce() -> R + Send) -> R {
    let (mut f, mut result) = (Some(f), None);
    install_dyn(&mut || result = f.take().map(|f| f()));
    result.expect("the pool ran the closure")
}

fn install_dyn(f: &mut (dyn FnMut() + Send)) {
    pool().install(f);
}

/// Calls `f` with every number below `count`, on all threads.
fn for_each_index(count: usize, f: &(dyn Fn(usize) + Sync)) {
    install_dyn(&mut || (0..count).into_par_iter().for_each(f));
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
        for_each_index(pieces, &run);
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
    for_each_chunks_mut([data], chunk, cost_each, |i, [piece]| f(i, piece));
}

/// [`for_each_chunk_mut`] over several slices of one length, cut at the same places.
pub fn for_each_chunks_mut<T: Send, const N: usize>(
    mut data: [&mut [T]; N],
    chunk: usize,
    cost_each: usize,
    f: impl Fn(usize, [&mut [T]; N]) + Sync + Send,
) {
    struct Base<T>(*mut T);
    // SAFETY: the pointers are used for disjoint pieces only, and `T` may be sent to other threads.
    unsafe impl<T: Send> Sync for Base<T> {}

    let len = data.first().map_or(0, |d| d.len());
    assert!(data.iter().all(|d| d.len() == len), "slices that are cut together have one length");
    let bases = data.each_mut().map(|d| Base(d.as_mut_ptr()));
    for_each_range(len, chunk, cost_each, |range| {
        let pieces = bases.each_ref().map(|base| {
            // SAFETY: the ranges lie within `len` and do not overlap, so each element is borrowed once; `data` is
            // borrowed mutably for the whole call.
            unsafe { std::slice::from_raw_parts_mut(base.0.add(range.start), range.len()) }
        });
        f(range.start / chunk.max(1), pieces);
    });
}

/// Results of `f(i)` for `0..len` in order; in parallel if `len * cost_each` is worth it.
pub fn map<R: Send>(len: usize, cost_each: usize, f: impl Fn(usize) -> R + Sync + Send) -> Vec<R> {
    if len < 2 || !worth_it(len.saturating_mul(cost_each)) {
        return (0..len).map(f).collect();
    }
    let mut results: Vec<Option<R>> = (0..len).map(|_| None).collect();
    for_each_chunk_mut(&mut results, 1, cost_each, |i, slot| slot[0] = Some(f(i)));
    results.into_iter().map(|r| r.expect("every index was visited")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_cover_everything_once() {
        set_num_threads(3);
        let n = 100_003;
        let (mut a, mut b) = (vec![0u32; n], vec![0u32; n]);
        for_each_chunks_mut([&mut a, &mut b], 1000, 1, |i, [a, b]| {
            a.iter_mut().for_each(|v| *v += 1);
            b.fill(i as u32);
        });
        assert!(a.iter().all(|&v| v == 1) && b[n - 1] == 100 && b[999] == 0 && b[1000] == 1);
        assert_eq!(map(40_000, 1, |i| i * 2)[39_999], 79_998);
        assert_eq!(install(|| 7), 7);
        for_each_chunk_mut(&mut [] as &mut [u8], 4, 1, |_, _| panic!("there is nothing to cut"));
    }
}
