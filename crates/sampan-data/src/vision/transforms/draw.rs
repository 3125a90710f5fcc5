//! The random numbers of transforms, all from the one generator that `random::seed` sets.

use sampan_core::random;
use sampan_kernels::rng::Stream;

/// A stream of its own for one decision.
pub(super) fn stream() -> Stream {
    let (seed, at) = random::reserve(1);
    Stream::new(seed, at)
}

/// Uniform in `[low, high)`, or `low` where they are the same.
pub(super) fn uniform([low, high]: [f64; 2]) -> f64 {
    low + (high - low) * stream().unit()
}

/// One of `low ..= high`, all alike.
pub(super) fn integer(low: usize, high: usize) -> usize {
    low + ((high - low + 1) as f64 * stream().unit()) as usize
}

/// True with a probability.
pub(super) fn chance(probability: f64) -> bool {
    stream().unit() < probability
}

/// Any order, all alike.
pub(super) fn shuffle<T>(items: &mut [T]) {
    for last in (1..items.len()).rev() {
        items.swap(last, integer(0, last));
    }
}
