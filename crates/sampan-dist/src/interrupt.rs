//! Whoever waits long asks whether it should still.

use sampan_core::Result;
use std::cell::Cell;
use std::sync::OnceLock;

static CHECK: OnceLock<fn() -> Result<()>> = OnceLock::new();

thread_local! {
    static UNHEARD: Cell<bool> = const { Cell::new(false) };
}

/// Nobody interrupts this thread, which works for others: an interpreter may have ended before it.
pub(crate) fn never_here() {
    UNHEARD.set(true);
}

/// Sets what is asked, now and then, by calls that wait for other processes: an error ends the wait. An interpreter looks
/// here for Ctrl-C.
pub fn set_check(check: fn() -> Result<()>) {
    let _ = CHECK.set(check);
}

/// Should a wait go on?
pub(crate) fn check() -> Result<()> {
    CHECK.get().filter(|_| !UNHEARD.get()).map_or(Ok(()), |check| check())
}
