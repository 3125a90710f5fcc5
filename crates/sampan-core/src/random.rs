//! The one source of randomness of the process.

use crate::Result;
use parking_lot::Mutex;
use sampan_kernels::rng::Generator;
use std::sync::LazyLock;

static GENERATOR: LazyLock<Mutex<Generator>> = LazyLock::new(|| {
    // Unseeded programs differ from run to run, as users of other frameworks expect.
    let clock = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.as_nanos() as u64);
    Mutex::new(Generator::new(clock ^ (std::process::id() as u64) << 32))
});

/// Seeds everything random: initialisation, dropout, shuffling, workers.
///
/// ```
/// # use sampan_core::{random, DType};
/// random::seed(7);
/// let a = sampan_core::ops::random::rand([3]).to_vec::<f32>();
/// random::seed(7);
/// assert_eq!(a, sampan_core::ops::random::rand([3]).to_vec::<f32>());
/// ```
pub fn seed(seed: u64) {
    *GENERATOR.lock() = Generator::new(seed);
}

/// Seed and position, to be kept with a checkpoint.
pub fn state() -> (u64, u64) {
    GENERATOR.lock().state()
}

/// Goes on from a kept position.
pub fn set_state(state: (u64, u64)) {
    *GENERATOR.lock() = Generator::from_state(state);
}

/// Takes `n` numbers from the stream: the seed and where they start.
pub fn reserve(n: usize) -> (u64, u64) {
    let mut g = GENERATOR.lock();
    let start = g.reserve(n);
    (g.seed(), start)
}

/// Runs `f` from a kept position and goes back to where the stream was.
pub fn fork<R>(state: (u64, u64), f: impl FnOnce() -> Result<R>) -> Result<R> {
    // Also where `f` unwinds.
    struct Back((u64, u64));
    impl Drop for Back {
        fn drop(&mut self) {
            set_state(self.0);
        }
    }
    let _back = Back(self::state());
    set_state(state);
    f()
}
