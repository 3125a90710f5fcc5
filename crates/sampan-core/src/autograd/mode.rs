//! Whether calls on this thread are recorded.

use std::cell::Cell;

thread_local! {
    static ENABLED: Cell<bool> = const { Cell::new(true) };
}

/// Are calls on this thread recorded?
#[inline]
pub fn grad_enabled() -> bool {
    ENABLED.get()
}

/// Switches recording on this thread; gives back what it was.
pub fn set_grad_enabled(on: bool) -> bool {
    ENABLED.replace(on)
}

/// Runs `f` with recording on or off.
pub(super) fn with<R>(on: bool, f: impl FnOnce() -> R) -> R {
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            ENABLED.set(self.0);
        }
    }
    let _restore = Restore(ENABLED.replace(on));
    f()
}

/// Runs `f` without recording.
pub fn no_grad<R>(f: impl FnOnce() -> R) -> R {
    with(false, f)
}

/// Runs `f` with recording, inside a `no_grad`.
pub fn enable_grad<R>(f: impl FnOnce() -> R) -> R {
    with(true, f)
}
