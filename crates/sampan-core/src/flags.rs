//! Switches of the whole process.

use std::sync::atomic::{AtomicBool, Ordering};

static CHECK_NAN_INF: AtomicBool = AtomicBool::new(false);
static ANOMALY: AtomicBool = AtomicBool::new(false);
static DETERMINISTIC: AtomicBool = AtomicBool::new(true);

/// Is every op's output checked for NaN and infinity?
pub fn check_nan_inf() -> bool {
    CHECK_NAN_INF.load(Ordering::Relaxed)
}

/// Checks every op's output for NaN and infinity from now on, naming the op that made the first one.
pub fn set_check_nan_inf(on: bool) {
    CHECK_NAN_INF.store(on, Ordering::Relaxed);
}

/// Does a GPU give the same bits for the same call? The CPU always does.
pub fn deterministic() -> bool {
    DETERMINISTIC.load(Ordering::Relaxed)
}

/// Lets a GPU use kernels whose sums depend on chance, where they are faster.
pub fn set_deterministic(on: bool) {
    DETERMINISTIC.store(on, Ordering::Relaxed);
}

/// Is every gradient checked for NaN?
pub fn anomaly_mode() -> bool {
    ANOMALY.load(Ordering::Relaxed)
}

/// Checks every gradient for NaN from now on, naming the forward call it came from.
pub fn set_anomaly_mode(on: bool) {
    ANOMALY.store(on, Ordering::Relaxed);
}
