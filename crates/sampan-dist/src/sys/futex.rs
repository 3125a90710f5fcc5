//! Waiting for a word of shared memory to change.

use std::sync::atomic::AtomicU32;
use std::time::Duration;

/// Sleeps until somebody wakes the waiters of `word`, unless it differs from `seen` already, for `limit` at most.
pub fn wait(word: &AtomicU32, seen: u32, limit: Duration) {
    let limit = libc::timespec { tv_sec: limit.as_secs() as _, tv_nsec: limit.subsec_nanos() as _ };
    // SAFETY: the word is alive while it is borrowed, and the kernel only reads it and the time. Whatever the call returns
    // (a change, a signal, the end of the time), the caller looks at the word again.
    unsafe {
        libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, seen, &raw const limit, 0, 0);
    }
}

/// Wakes everybody, in any process, who sleeps on `word`.
pub fn wake(word: &AtomicU32) {
    // SAFETY: the word is alive while it is borrowed; the kernel only uses its address.
    unsafe {
        libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, i32::MAX, 0, 0, 0);
    }
}
