//! Processes of one machine: bytes go through memory that all of them have mapped.
//!
//! Every process has two slots in it, for rounds with an even and an odd number. A round: each writes into its slot, says so,
//! waits until all have, and reads the slots of the others. Whoever has written round `n` has read round `n - 1`, so when
//! all have written `n`, the slots of `n - 1` are free for `n + 1`. One wait a round is enough, and the work on one round
//! overlaps with the writing of the next.

mod channel;
mod collectives;
mod layout;
mod rounds;
mod setup;

use crate::interrupt;
use crate::sys::{Segment, Watched};
use crate::wire::unavailable;
use layout::Layout;
use parking_lot::Mutex;
use sampan_core::{Error, Result};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// A sleeper looks this often whether the others are still there.
const LOOK: Duration = Duration::from_millis(20);

/// The engine for processes of one machine.
pub struct SharedMemory {
    rank: usize,
    size: usize,
    segment: Segment,
    layout: Layout,
    peers: Vec<Watched>,
    timeout: Duration,
    /// How often a word is looked at before sleeping.
    spins: u32,
    /// The number of the last round, held while a collective runs.
    round: Mutex<u32>,
    /// Held while a message to, and from, each process is under way.
    sending: Vec<Mutex<()>>,
    taking: Vec<Mutex<()>>,
}

impl SharedMemory {
    /// Waits until a word is as wanted, for `peer` to make it so.
    fn wait(&self, at: usize, peer: usize, what: &str, ready: impl Fn(u32) -> bool) -> Result<u32> {
        let word = self.segment.word(at);
        for turn in 0..self.spins {
            let now = word.load(Ordering::Acquire);
            if ready(now) {
                return Ok(now);
            }
            // Where processes are more than cores, the one that is waited for may need this core.
            if turn % 64 == 63 { std::thread::yield_now() } else { std::hint::spin_loop() }
        }
        let deadline = Instant::now() + self.timeout;
        loop {
            let now = word.load(Ordering::Acquire);
            if ready(now) {
                return Ok(now);
            }
            self.check()?;
            // Ended first, then the word: it may have been its last act.
            if self.peers[peer].has_ended() && !ready(word.load(Ordering::Acquire)) {
                return Err(self.fail(format!("rank {peer} (process {}) has ended", self.peers[peer].pid()), what));
            }
            if Instant::now() >= deadline {
                let limit = self.timeout.as_secs_f64();
                return Err(
                    self.fail(format!("rank {peer} has not come within {limit:.1} s; it is stopped or busy"), what)
                );
            }
            self.segment.sleep(at, now, LOOK);
            if let Err(e) = interrupt::check() {
                self.fail(format!("rank {} was interrupted", self.rank), what);
                return Err(e);
            }
        }
    }

    /// An error if the group is at an end.
    fn check(&self) -> Result<()> {
        match self.segment.word(layout::FAILED).load(Ordering::Acquire) {
            0 => Ok(()),
            _ => Err(self.failure()),
        }
    }

    /// Ends the group for all. Whoever is first says why.
    fn fail(&self, why: String, what: &str) -> Error {
        let failed = self.segment.word(layout::FAILED);
        if failed.compare_exchange(0, 1, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            let text = format!("{why}; rank {} noticed it in {what}", self.rank);
            let bytes = &text.as_bytes()[..text.len().min(layout::REASON.len())];
            let span = layout::REASON.start..layout::REASON.start + bytes.len();
            // SAFETY: only the one process that changed the word from 0 to 1 writes here, and others read after it is 2.
            unsafe { self.segment.write(span) }.copy_from_slice(bytes);
            self.segment.word(layout::REASON_LEN).store(bytes.len() as u32, Ordering::Release);
            failed.store(2, Ordering::Release);
        }
        self.failure()
    }

    /// Why the group is at an end.
    fn failure(&self) -> Error {
        let patience = Instant::now() + LOOK * 10;
        while self.segment.word(layout::FAILED).load(Ordering::Acquire) != 2 {
            if Instant::now() > patience {
                return unavailable("another process has failed");
            }
            std::thread::yield_now();
        }
        let len = self.segment.word(layout::REASON_LEN).load(Ordering::Acquire) as usize;
        let span = layout::REASON.start..layout::REASON.start + len.min(layout::REASON.len());
        // SAFETY: the word is 2, so the text is complete and nobody writes it again.
        unavailable(String::from_utf8_lossy(unsafe { self.segment.read(span) }))
    }
}
