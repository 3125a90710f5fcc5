//! The one source of randomness of the process.

use crate::Result;
use crate::recording;
use parking_lot::Mutex;
use sampan_kernels::rng::{Generator, philox};
use std::cell::Cell;
use std::sync::LazyLock;

static GENERATOR: LazyLock<Mutex<Generator>> = LazyLock::new(|| {
    // Unseeded programs differ from run to run, as users of other frameworks expect.
    let clock = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.as_nanos() as u64);
    Mutex::new(Generator::new(clock ^ (std::process::id() as u64) << 32))
});

thread_local! {
    /// The generator that stands in for the process's one on this thread, inside `with_state`.
    static LOCAL: Cell<Option<Generator>> = const { Cell::new(None) };
}

/// Runs `f` on the generator that this thread draws from.
fn current<R>(f: impl FnOnce(&mut Generator) -> R) -> R {
    match LOCAL.get() {
        Some(mut local) => {
            let result = f(&mut local);
            LOCAL.set(Some(local));
            result
        }
        None => f(&mut GENERATOR.lock()),
    }
}

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
    recording::refuse(|| "the seed of the random numbers is set on the host".into());
    current(|g| *g = Generator::new(seed));
}

/// Seed and position, to be kept with a checkpoint.
pub fn state() -> (u64, u64) {
    recording::refuse(|| "the state of the random numbers is read on the host".into());
    current(|g| g.state())
}

/// Goes on from a kept position.
pub fn set_state(state: (u64, u64)) {
    recording::refuse(|| "the state of the random numbers is set on the host".into());
    current(|g| *g = Generator::from_state(state));
}

/// Takes `n` numbers from the stream: the seed and where they start.
pub fn reserve(n: usize) -> (u64, u64) {
    recording::refuse(|| "random numbers are drawn on the host".into());
    current(|g| {
        let start = g.reserve(n);
        (g.seed(), start)
    })
}

/// Where a fill begins.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Start {
    /// At the beginning of the stream of a seed of its own.
    Own(u64),
    /// Where the stream of all is, which moves on by so many numbers.
    Next(usize),
}

impl Start {
    /// Seed and position, taken now.
    pub fn taken(self) -> (u64, u64) {
        match self {
            Start::Own(seed) => (seed, 0),
            Start::Next(n) => reserve(n),
        }
    }

    /// The same for a GPU, whose work may be recorded: then the place is taken anew each time it is done.
    pub fn for_gpu(self) -> Result<sampan_cuda::random::Start> {
        use sampan_cuda::random::Start as To;
        match self {
            Start::Next(n) if recording::on() => {
                let mut first = [0; 2];
                recording::Live::next(&mut Draws(n), &mut first)?;
                Ok(To::Kept(recording::words(&first, Draws(n))?))
            }
            _ => {
                let (seed, start) = self.taken();
                Ok(To::At(seed, start))
            }
        }
    }
}

/// The place of `n` numbers in the stream, for recorded work.
struct Draws(usize);

impl recording::Live for Draws {
    fn next(&mut self, words: &mut [u64]) -> Result<()> {
        (words[0], words[1]) = current(|g| {
            let start = g.reserve(self.0);
            (g.seed(), start)
        });
        Ok(())
    }
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

/// Runs `f` with a generator of this thread's own, at a given position. The process's generator is neither read nor
/// moved, so threads that draw in this way do not depend on each other.
///
/// ```
/// # use sampan_core::{random, ops::random::rand};
/// random::seed(7);
/// let (before, inside) = (random::state(), random::with_state((3, 0), || rand([2]).to_vec::<f32>()));
/// assert_eq!(random::state(), before);
/// random::seed(3);
/// assert_eq!(rand([2]).to_vec::<f32>(), inside);
/// ```
pub fn with_state<R>(state: (u64, u64), f: impl FnOnce() -> R) -> R {
    recording::refuse(|| "random numbers come from another stream for a while".into());
    // Also where `f` unwinds.
    struct Back(Option<Generator>);
    impl Drop for Back {
        fn drop(&mut self) {
            LOCAL.set(self.0);
        }
    }
    let _back = Back(LOCAL.replace(Some(Generator::from_state(state))));
    f()
}

/// Gives this thread a generator of its own, from here on: what other threads seed and draw no longer matters to it.
///
/// ```
/// # use sampan_core::{random, ops::random::rand};
/// random::own(3);
/// let mine = rand([2]).to_vec::<f32>();
/// std::thread::spawn(|| rand([5])).join().unwrap();
/// random::own(3);
/// assert_eq!(rand([2]).to_vec::<f32>(), mine);
/// ```
pub fn own(seed: u64) {
    recording::refuse(|| "the seed of the random numbers is set on the host".into());
    LOCAL.set(Some(Generator::new(seed)));
}

/// Runs `f` with a generator of this thread's own: the start of stream number `stream` of `seed`. Streams of one seed
/// have nothing in common.
pub fn with_generator<R>(seed: u64, stream: u64, f: impl FnOnce() -> R) -> R {
    with_state((derive(seed, stream, 0), 0), f)
}

/// A new seed from a seed and two numbers, such as an epoch and a sample.
pub fn derive(seed: u64, a: u64, b: u64) -> u64 {
    let [lo, hi, ..] = philox(seed, a, b);
    lo as u64 | (hi as u64) << 32
}
