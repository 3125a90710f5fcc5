//! Names that no other thing of the process has: `linear_0`, `linear_1`, …

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

static COUNTS: LazyLock<Mutex<HashMap<String, usize>>> = LazyLock::new(Default::default);

/// The next name with this prefix.
pub fn generate(prefix: &str) -> String {
    let mut counts = COUNTS.lock().unwrap_or_else(PoisonError::into_inner);
    let n = counts.entry(prefix.to_string()).or_default();
    *n += 1;
    format!("{prefix}_{}", *n - 1)
}

/// Runs `f` with all counts at zero and brings the old ones back: a network that is built twice gets the same names.
pub fn guard<R>(f: impl FnOnce() -> R) -> R {
    struct Back(HashMap<String, usize>);
    impl Drop for Back {
        fn drop(&mut self) {
            *COUNTS.lock().unwrap_or_else(PoisonError::into_inner) = std::mem::take(&mut self.0);
        }
    }
    let _back = Back(std::mem::take(&mut *COUNTS.lock().unwrap_or_else(PoisonError::into_inner)));
    f()
}
