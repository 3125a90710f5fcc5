//! One shared crew of threads. Work is cut into chunks whose bounds depend on the size of the work alone, never on the
//! number of threads, so results have the same bits on any machine.
//!
//! The crew itself sees only `dyn` closures, so that its machinery is compiled once, not for every kernel and dtype.

mod cores;
mod thread_pool;

use crate::shared::Shared;
use std::ops::Range;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use thread_pool::Crew;

/// Below this many elementary operations work stays on the calling thread: handing over a part, half a microsecond, costs
/// more.
pub(crate) const SERIAL_BELOW: usize = 1 << 14;
/// Below this many nobody is woken for it, which takes up to ten microseconds; who is awake helps.
const WAKE_FROM: usize = 1 << 17;

/// Made when it is first needed, never freed: a program whose work is small, or which asks for one thread, has none.
static CREW: AtomicPtr<Crew> = AtomicPtr::new(std::ptr::null_mut());
/// The number of threads, zero before anybody asked.
static THREADS: AtomicUsize = AtomicUsize::new(0);

/// The crew, if there is one.
fn existing() -> Option<&'static Crew> {
    // SAFETY: the pointer is null or came from `Box::into_raw` in `crew`, and is never freed.
    unsafe { CREW.load(Ordering::Acquire).as_ref() }
}

fn crew() -> &'static Crew {
    existing().unwrap_or_else(|| {
        let new = Box::into_raw(Box::new(Crew::new()));
        match CREW.compare_exchange(std::ptr::null_mut(), new, Ordering::AcqRel, Ordering::Acquire) {
            // SAFETY: just made, and never freed from here on.
            Ok(_) => unsafe { &*new },
            Err(other) => {
                // SAFETY: made above and shown to nobody.
                drop(unsafe { Box::from_raw(new) });
                // SAFETY: another thread's, never freed.
                unsafe { &*other }
            }
        }
    })
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
    THREADS.store(threads.max(1), Ordering::Relaxed);
    if let Some(crew) = existing() {
        crew.dismiss();
    }
}

/// For the child of a `fork`, first thing: it has the calling thread alone, the crew stayed with the parent. From here on
/// kernels run on the calling thread, until [`set_num_threads`] asks for more.
pub fn after_fork() {
    THREADS.store(1, Ordering::Relaxed);
    // A new one when it is needed: the locks of this one may be held by threads that are not here.
    CREW.store(std::ptr::null_mut(), Ordering::Release);
}

/// Calls `f` with every number below `count`, on all threads.
fn for_each_index(count: usize, cost: usize, f: &(dyn Fn(usize) + Sync)) {
    crew().run(num_threads(), count, cost >= WAKE_FROM, f);
}

/// Calls `f`, whose kernels run on this thread alone: where as many callers work as there are threads, helping each other would
/// only cost them time. The bits are the same.
pub fn alone<R>(f: impl FnOnce() -> R) -> R {
    thread_pool::inside(f)
}

/// Which of the threads that share work this is: 0 for a caller, and a number of its own below [`num_threads`] for each
/// that helps. Something to find a thread's own storage by, not to cut work by.
pub fn place() -> usize {
    thread_pool::place()
}

/// Is the work large enough to be worth other threads? `cost` counts elementary operations.
pub(crate) fn worth_it(cost: usize) -> bool {
    cost >= SERIAL_BELOW && num_threads() > 1
}

/// Elements of one piece of an elementwise kernel. Fixed, so that the cut never depends on the number of threads.
pub const CHUNK: usize = 1 << 14;

/// Calls `f(range)` for `0..len` cut into pieces of `chunk`; in parallel if `len * cost_each` is worth it.
pub fn for_each_range(len: usize, chunk: usize, cost_each: usize, f: impl Fn(Range<usize>) + Sync + Send) {
    each_range(len, chunk, cost_each, &f);
}

/// [`for_each_range`], compiled once for all functions: there are thousands of them.
fn each_range(len: usize, chunk: usize, cost_each: usize, f: &(dyn Fn(Range<usize>) + Sync)) {
    let chunk = chunk.max(1);
    let pieces = len.div_ceil(chunk);
    let run = |i: usize| f(i * chunk..((i + 1) * chunk).min(len));
    let cost = len.saturating_mul(cost_each);
    if pieces > 1 && worth_it(cost) {
        for_each_index(pieces, cost, &run);
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
    let (base, len) = (Shared::new(data), data.len());
    for_each_range(len, chunk, cost_each, |range| {
        // SAFETY: the ranges lie within `data` and do not overlap, so each element is borrowed once; `data` is borrowed
        // mutably for the whole call.
        let piece = unsafe { std::slice::from_raw_parts_mut(base.get().add(range.start), range.len()) };
        f(range.start / chunk.max(1), piece);
    });
}

/// [`for_each_chunk_mut`] over elements of `size` bytes each, whose type is known at run time: `chunk` and `cost_each` count
/// elements.
pub(crate) fn for_each_chunk_of_bytes(
    data: &mut [u8],
    size: usize,
    chunk: usize,
    cost_each: usize,
    f: impl Fn(usize, &mut [u8]) + Sync + Send,
) {
    let (base, len) = (Shared::new(data), data.len() / size);
    for_each_range(len, chunk, cost_each, |range| {
        // SAFETY: the ranges of elements lie within `data` and do not overlap, so each byte is borrowed once; `data` is
        // borrowed mutably for the whole call.
        let piece = unsafe { std::slice::from_raw_parts_mut(base.get().add(range.start * size), range.len() * size) };
        f(range.start / chunk.max(1), piece);
    });
}

/// Results of `f(i)` for `0..len` in order; in parallel if `len * cost_each` is worth it.
pub(crate) fn map<R: Send>(len: usize, cost_each: usize, f: impl Fn(usize) -> R + Sync + Send) -> Vec<R> {
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

    /// The number of threads is everybody's, so the tests that set it take turns.
    static TURN: parking_lot::Mutex<()> = parking_lot::Mutex::new(());

    #[test]
    fn pieces_cover_everything_once() {
        let _turn = TURN.lock();
        set_num_threads(3);
        let n = 100_003;
        let mut a = vec![0u32; n];
        for_each_chunk_mut(&mut a, 1000, 1, |i, piece| piece.iter_mut().for_each(|v| *v += 1 + i as u32));
        assert!(a.iter().enumerate().all(|(i, &v)| v == 1 + i as u32 / 1000));
        assert_eq!(map(40_000, 1, |i| i * 2)[39_999], 79_998);
        for_each_chunk_mut(&mut [] as &mut [u8], 4, 1, |_, _| panic!("there is nothing to cut"));
        after_fork();
        let here = std::thread::current().id();
        assert!(num_threads() == 1 && map(40_000, 1, |_| std::thread::current().id()).iter().all(|&id| id == here));
    }

    #[test]
    fn who_works_alone_has_no_helpers() {
        let _turn = TURN.lock();
        set_num_threads(3);
        let here = std::thread::current().id();
        let all_here = || map(40_000, 1000, |_| std::thread::current().id()).iter().all(|&id| id == here);
        assert!(alone(all_here) && alone(|| alone(all_here) && all_here()));
        let failed = std::panic::catch_unwind(|| alone(|| panic!("a kernel fails")));
        // What unwinds does not leave the thread alone for good.
        assert!(failed.is_err() && !thread_pool::is_inside());
    }

    #[test]
    fn a_failing_piece_fails_the_caller_with_its_payload() {
        let _turn = TURN.lock();
        set_num_threads(3);
        for round in 0..50 {
            let failed = std::panic::catch_unwind(|| {
                for_each_range(100, 1, 1 << 20, |r| {
                    if r.start == 2 * round {
                        std::panic::panic_any(crate::buffer::OutOfMemory { bytes: r.start });
                    }
                })
            });
            let payload = failed.unwrap_err().downcast::<crate::buffer::OutOfMemory>().unwrap();
            assert_eq!(payload.bytes, 2 * round);
            assert_eq!(map(50, 1 << 20, |i| i).iter().sum::<usize>(), 49 * 25);
        }
    }

    #[test]
    fn many_callers_regions_within_regions_and_changing_numbers_of_threads() {
        let _turn = TURN.lock();
        std::thread::scope(|scope| {
            for caller in 0..7 {
                scope.spawn(move || {
                    for round in 0..200 {
                        let sums =
                            map(9, 1 << 20, |i| map(5, 1 << 20, |j| caller * round + i * j).iter().sum::<usize>());
                        let expected = (0..9).map(|i| 5 * caller * round + 10 * i);
                        assert!(sums.into_iter().eq(expected));
                        if round % 50 == caller {
                            set_num_threads(1 + round % 5);
                        }
                        if round % 90 == caller {
                            std::thread::sleep(std::time::Duration::from_millis(1));
                        }
                    }
                });
            }
        });
    }
}
