//! Which core a thread runs on, where the system says so, and getting it onto another one.

/// A core that is not known.
pub(super) const UNKNOWN: usize = usize::MAX;

/// The core this thread runs on.
#[cfg(target_os = "linux")]
pub(super) fn current() -> usize {
    // SAFETY: has no requirements.
    usize::try_from(unsafe { libc::sched_getcpu() }).unwrap_or(UNKNOWN)
}

/// Moves this thread to another core than this one, if it may run on another. Left to itself, a system whose cores share
/// no cache wakes a thread where it slept before, behind the busy one that woke it, while the next core is idle.
#[cfg(target_os = "linux")]
pub(super) fn leave(core: usize) -> bool {
    // SAFETY: the set is an array of bits.
    let mut allowed: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    let size = size_of_val(&allowed);
    // SAFETY: for this thread, and the set has the size that is said.
    let known = unsafe { libc::sched_getaffinity(0, size, &mut allowed) } == 0;
    // SAFETY: reads the set.
    if !known || core >= 8 * size || unsafe { libc::CPU_COUNT(&allowed) } < 2 {
        return false;
    }
    let mut others = allowed;
    // SAFETY: the core has a bit in the set, as was checked; then as above. The first call moves the thread at once, the
    // second lets it run anywhere again.
    unsafe {
        libc::CPU_CLR(core, &mut others);
        libc::sched_setaffinity(0, size, &others) == 0 && libc::sched_setaffinity(0, size, &allowed) == 0
    }
}

/// The core this thread runs on: nobody says.
#[cfg(not(target_os = "linux"))]
pub(super) fn current() -> usize {
    UNKNOWN
}

/// Moves this thread to another core: never, here.
#[cfg(not(target_os = "linux"))]
pub(super) fn leave(_: usize) -> bool {
    false
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_thread_gets_to_another_core_and_may_come_back() {
        std::thread::spawn(|| {
            let cores = std::thread::available_parallelism().unwrap().get();
            let here = current();
            // The thread may be moved back right after, but not every time.
            let moved = (0..100).any(|_| leave(here) && current() != here);
            assert_eq!(moved, cores > 1);
            assert_eq!(std::thread::available_parallelism().unwrap().get(), cores);
            assert!(!leave(usize::MAX));
        })
        .join()
        .unwrap();
    }
}
