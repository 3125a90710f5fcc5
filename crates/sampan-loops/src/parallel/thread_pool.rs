//! Threads that help a caller through work that was cut into pieces: a region.
//!
//! The caller works too. Every thread has a lane of neighbouring pieces, the same share of every region, so what one
//! region left in a core's cache the next one finds there; whoever is done with its own lane takes from the others'. A
//! helper that is not there in time is not waited for: the caller closes the region when no piece is left, and waits only
//! for helpers that are inside. So a region whose helpers sleep, are busy with another caller or were left behind by a
//! `fork` is slower, never stuck.

use super::cores;
use parking_lot::{Condvar, Mutex};
use std::any::Any;
use std::cell::{Cell, UnsafeCell};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::*};
use std::time::{Duration, Instant};

/// Callers that can have helpers at the same time; one more works alone.
const REGIONS: usize = 4;
/// The most lanes; more threads than that share them.
const LANES: usize = 32;
/// Pieces are handed out in so many runs for each thread: few trips to the counter, and still no thread waits long for
/// another's last run.
const RUNS_EACH: usize = 8;
/// How long a thread spins at most before it sleeps: about as long as going to sleep and being woken costs.
const LONGEST_SPIN: Duration = Duration::from_micros(100);
/// The same for a caller whose pieces are done and whose helpers still work on theirs, which is seldom long.
const LONGEST_WAIT: Duration = Duration::from_millis(1);
/// A helper that was woken so soon should have waited as long as it may.
const SOON: Duration = Duration::from_millis(1);
/// A helper whose waiting did not pay spins at least this long.
const SHORTEST_SPIN: Duration = Duration::from_micros(2);
/// Looks at memory between two looks at the clock, about a microsecond.
const LOOKS: usize = 64;

thread_local! {
    /// Is this thread inside a region? Then a region within it has no helpers.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
    /// The number of a helper.
    static PLACE: Cell<usize> = const { Cell::new(0) };
}

pub(super) fn place() -> usize {
    PLACE.get()
}

#[cfg(test)]
pub(super) fn is_inside() -> bool {
    INSIDE.get()
}

/// Calls `f` with this thread inside a region; what was before comes back even if it unwinds.
pub(super) fn inside<R>(f: impl FnOnce() -> R) -> R {
    struct Before(bool);
    impl Drop for Before {
        fn drop(&mut self) {
            INSIDE.set(self.0);
        }
    }
    let _before = Before(INSIDE.replace(true));
    f()
}

/// A region's state in one word: its number, whether helpers may still enter, whether its caller sleeps, and how many
/// helpers are inside.
const HELPER: u64 = 1;
const HELPERS: u64 = (1 << 16) - 1;
const OPEN: u64 = 1 << 16;
const ASLEEP: u64 = 1 << 17;
const NUMBER: u64 = 1 << 18;

/// What the threads of a region do. The pointer lives until the region is closed and empty.
#[derive(Clone, Copy)]
struct Work {
    piece: *const (dyn Fn(usize) + Sync),
    count: usize,
    /// Pieces that are handed out together.
    run: usize,
    /// Lanes, and the runs of each. Threads that work at the same time write far apart: where the results of neighbouring
    /// pieces share a cache line, it would travel between their cores.
    lanes: usize,
    each: usize,
}

impl Work {
    fn new(piece: &'static (dyn Fn(usize) + Sync), count: usize, threads: usize) -> Work {
        let (run, lanes) = ((count / (RUNS_EACH * threads)).max(1), threads.min(LANES));
        Work { piece, count, run, lanes, each: count.div_ceil(run).div_ceil(lanes) }
    }

    /// The pieces of one run of a lane.
    fn pieces(&self, lane: usize, run: usize) -> Range<usize> {
        let first = (lane * self.each + run) * self.run;
        first.min(self.count)..(first + self.run).min(self.count)
    }
}

/// The next run of a lane to hand out.
#[repr(align(128))]
struct Lane(AtomicUsize);

/// A place for the region of one caller.
#[repr(align(128))]
struct Region {
    state: AtomicU64,
    taken: AtomicBool,
    next: [Lane; LANES],
    /// How many lanes there are, and runs in each.
    lanes: AtomicUsize,
    each: AtomicUsize,
    /// The core of the caller when it opened the region.
    core: AtomicUsize,
    work: UnsafeCell<Option<Work>>,
    /// What the first piece that failed unwound with.
    failure: Mutex<Option<Box<dyn Any + Send>>>,
    done: Condvar,
}

/// The threads, and the regions they help in.
pub(super) struct Crew {
    regions: [Region; REGIONS],
    /// Counts the regions ever opened: what idle helpers look at.
    opened: AtomicU64,
    /// Helpers that sleep, or are about to.
    sleepers: AtomicUsize,
    bed: Mutex<()>,
    alarm: Condvar,
    /// Helpers of an earlier generation end when they find nothing to do.
    generation: AtomicU64,
    helpers: Mutex<(u64, usize)>,
    /// Helpers that were started for this generation; mirrors `helpers` for a look without the lock.
    started: AtomicU64,
}

// SAFETY: `Region::work` is written only by the caller that took the region, while it is closed and no helper is inside;
// helpers read it only after they entered, which orders the reads after the write. The rest is `Sync` by itself.
unsafe impl Sync for Crew {}
// SAFETY: as above; nothing in it belongs to a thread.
unsafe impl Send for Crew {}

/// Spins until `ready`, at most for `longest`; says whether it came. A thread that waits for this core gets it meanwhile:
/// it may be the one that is waited for.
fn spin(longest: Duration, mut ready: impl FnMut() -> bool) -> bool {
    let mut begin = None;
    loop {
        for _ in 0..LOOKS {
            if ready() {
                return true;
            }
            std::hint::spin_loop();
        }
        if begin.get_or_insert_with(Instant::now).elapsed() >= longest {
            return false;
        }
        std::thread::yield_now();
    }
}

impl Region {
    const fn new() -> Region {
        Region {
            state: AtomicU64::new(0),
            taken: AtomicBool::new(false),
            next: [const { Lane(AtomicUsize::new(0)) }; LANES],
            lanes: AtomicUsize::new(0),
            each: AtomicUsize::new(0),
            core: AtomicUsize::new(cores::UNKNOWN),
            work: UnsafeCell::new(None),
            failure: Mutex::new(None),
            done: Condvar::new(),
        }
    }

    /// Takes runs of pieces until none is left or one failed.
    fn take_pieces(&self, work: Work) {
        // SAFETY: the caller of the region keeps the closure until no thread is inside, and this one is.
        let piece = unsafe { &*work.piece };
        let all = AssertUnwindSafe(|| {
            for l in 0..work.lanes {
                let lane = (place() + l) % work.lanes;
                let next = &self.next[lane].0;
                // A look first: a lane that is done stays where it is cached.
                while next.load(Relaxed) < work.each {
                    let run = next.fetch_add(1, Relaxed);
                    if run < work.each {
                        work.pieces(lane, run).for_each(piece);
                    }
                }
            }
        });
        if let Err(failure) = inside(|| catch_unwind(all)) {
            // The others need not go on.
            self.next[..work.lanes].iter().for_each(|next| next.0.store(work.each, Relaxed));
            self.failure.lock().get_or_insert(failure);
        }
    }

    /// A helper's part: enters if the region is open, works, and leaves. Says no if it runs on the caller's core, where it
    /// would only be in the way, and cannot get away from there.
    fn help(&self) -> bool {
        let mut state = self.state.load(Acquire);
        let mut moved = false;
        loop {
            let (lanes, each) = (self.lanes.load(Relaxed), self.each.load(Relaxed));
            let nothing = self.next[..lanes].iter().all(|next| next.0.load(Relaxed) >= each);
            if state & OPEN == 0 || nothing {
                return true;
            }
            let core = cores::current();
            if core != cores::UNKNOWN && core == self.core.load(Relaxed) {
                if moved || !cores::leave(core) {
                    return false;
                }
                moved = true;
                state = self.state.load(Acquire);
                continue;
            }
            match self.state.compare_exchange_weak(state, state + HELPER, Acquire, Acquire) {
                Ok(_) => break,
                Err(now) => state = now,
            }
        }
        // SAFETY: the region was open and this thread is counted in: the caller wrote the work before and does not touch
        // it until this thread has left.
        if let Some(work) = unsafe { *self.work.get() } {
            self.take_pieces(work);
        }
        // The region may have another caller as soon as this is written.
        let before = self.state.fetch_sub(HELPER, AcqRel);
        if before & HELPERS == HELPER && before & ASLEEP != 0 {
            drop(self.failure.lock());
            self.done.notify_one();
        }
        true
    }

    /// The caller's end: no more helpers enter, and those inside have left when this returns.
    fn close(&self) {
        let empty = || self.state.load(Acquire) & HELPERS == 0;
        if self.state.fetch_and(!OPEN, AcqRel) & HELPERS == 0 || spin(LONGEST_WAIT, empty) {
            return;
        }
        let mut lock = self.failure.lock();
        self.state.fetch_or(ASLEEP, AcqRel);
        while !empty() {
            self.done.wait(&mut lock);
        }
        self.state.fetch_and(!ASLEEP, AcqRel);
    }
}

impl Crew {
    pub(super) fn new() -> Crew {
        Crew {
            regions: [const { Region::new() }; REGIONS],
            opened: AtomicU64::new(0),
            sleepers: AtomicUsize::new(0),
            bed: Mutex::new(()),
            alarm: Condvar::new(),
            generation: AtomicU64::new(0),
            helpers: Mutex::new((0, 0)),
            started: AtomicU64::new(0),
        }
    }

    /// Calls `piece` with every number below `count`, with up to `threads - 1` helpers; those that sleep are woken only if
    /// `wake`.
    pub(super) fn run(&'static self, threads: usize, count: usize, wake: bool, piece: &(dyn Fn(usize) + Sync)) {
        let alone = INSIDE.get() || !wake && self.sleepers.load(Relaxed) + 1 >= threads;
        let free = |r: &&Region| !r.taken.load(Relaxed) && !r.taken.swap(true, Acquire);
        let region = if alone { None } else { self.regions.iter().find(free) };
        let Some(region) = region else {
            return (0..count).for_each(piece);
        };
        self.start(threads - 1);
        // SAFETY: only the lifetime changes; the region is closed and empty before this function returns, and whatever
        // unwinds out of a piece is caught until then.
        let piece = unsafe { std::mem::transmute::<&(dyn Fn(usize) + Sync), &'static (dyn Fn(usize) + Sync)>(piece) };
        let work = Work::new(piece, count, threads);
        // SAFETY: the region is this caller's, closed and empty.
        unsafe { *region.work.get() = Some(work) };
        region.lanes.store(work.lanes, Relaxed);
        region.each.store(work.each, Relaxed);
        region.next[..work.lanes].iter().for_each(|next| next.0.store(0, Relaxed));
        region.core.store(cores::current(), Relaxed);
        let number = region.state.load(Relaxed) & !(NUMBER - 1);
        region.state.store(number.wrapping_add(NUMBER) | OPEN, Release);
        self.announce(if wake { (threads - 1).min(count - 1) } else { 0 });
        region.take_pieces(work);
        region.close();
        let failure = region.failure.lock().take();
        region.taken.store(false, Release);
        if let Some(failure) = failure {
            resume_unwind(failure);
        }
    }

    /// Tells idle helpers that a region is open; wakes those sleeping ones that are useful.
    fn announce(&self, useful: usize) {
        self.opened.fetch_add(1, SeqCst);
        let woken = useful.min(self.sleepers.load(SeqCst));
        if woken > 0 {
            drop(self.bed.lock());
            for _ in 0..woken {
                self.alarm.notify_one();
            }
        }
    }

    /// Lets the helpers go; the next region starts as many as it needs.
    pub(super) fn dismiss(&self) {
        self.generation.fetch_add(1, SeqCst);
        drop(self.bed.lock());
        self.alarm.notify_all();
    }

    /// Starts the helpers that are missing. Where the system refuses a thread the work goes on with fewer.
    fn start(&'static self, wanted: usize) {
        let generation = self.generation.load(Acquire);
        let tag = |generation: u64, n: usize| generation << 16 | n.min(0xffff) as u64;
        if self.started.load(Acquire) == tag(generation, wanted) {
            return;
        }
        let Some(mut helpers) = self.helpers.try_lock() else { return };
        if helpers.0 != generation {
            *helpers = (generation, 0);
        }
        while helpers.1 < wanted {
            let name = format!("sampan-{}", helpers.1);
            let place = helpers.1 + 1;
            let body = move || {
                PLACE.set(place);
                self.serve(generation, wanted)
            };
            if std::thread::Builder::new().name(name).spawn(body).is_err() {
                break;
            }
            helpers.1 += 1;
        }
        self.started.store(tag(generation, wanted), Release);
    }

    /// The life of a helper.
    fn serve(&self, generation: u64, helpers: usize) {
        let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
        // Where threads share cores, one that spins takes the time of one that works.
        let longest = if helpers < cores { LONGEST_SPIN } else { Duration::ZERO };
        let mut patience = longest;
        let (mut seen, mut displaced) = (0, false);
        loop {
            let now = self.opened.load(SeqCst);
            if now != seen {
                seen = now;
                // A thread that is woken may get another core, one that stays awake is left where it is.
                displaced = self.regions.iter().filter(|region| !region.help()).count() > 0;
                continue;
            }
            let news = || self.opened.load(Relaxed) != seen || self.generation.load(Relaxed) != generation;
            if displaced || !spin(patience, news) {
                displaced = false;
                let asleep = Instant::now();
                self.sleep(seen, generation);
                // Work that came soon would have been worth the wait, work that came late was not. (What is measured
                // includes the time it took to wake up, which can be longer than any wait.)
                patience =
                    if asleep.elapsed() < SOON { longest } else { (patience / 2).max(SHORTEST_SPIN.min(longest)) };
            }
            if self.generation.load(Acquire) != generation {
                return;
            }
        }
    }

    /// Sleeps until a region is opened after number `seen`, or the generation is over.
    fn sleep(&self, seen: u64, generation: u64) {
        let mut bed = self.bed.lock();
        self.sleepers.fetch_add(1, SeqCst);
        while self.opened.load(SeqCst) == seen && self.generation.load(SeqCst) == generation {
            self.alarm.wait(&mut bed);
        }
        self.sleepers.fetch_sub(1, SeqCst);
    }
}
