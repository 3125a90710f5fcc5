//! Where things lie in the shared memory.

use crate::backend::Call;
use std::ops::Range;

/// Random bytes, by which a process knows that it has found the right memory.
pub const NONCE: Range<usize> = 0..16;
/// Is the group at an end? 1 while the reason is written, 2 when it is there.
pub const FAILED: usize = 64;
/// The length of the reason.
pub const REASON_LEN: usize = 68;
/// Why it is at an end.
pub const REASON: Range<usize> = 128..1152;
const HEADER: usize = 4096;
/// One process's words: what others wait for lies on a cache line of its own.
const CONTROL: usize = 256;
const CALL: usize = 64;
/// One channel's words: how much was written, how much was read.
const CHANNEL: usize = 256;
/// Bytes of a channel on their way; a power of two, for positions are counted modulo 2³².
pub const RING: usize = 1 << 18;
/// Bytes that one process shows in one round.
pub const SLOT: usize = 1 << 19;

/// The places for a number of processes.
#[derive(Clone, Copy)]
pub struct Layout {
    size: usize,
}

impl Layout {
    pub fn new(size: usize) -> Layout {
        Layout { size }
    }

    fn channels(&self) -> usize {
        HEADER + self.size * CONTROL
    }

    fn slots(&self) -> usize {
        (self.channels() + self.size * self.size * CHANNEL).next_multiple_of(4096)
    }

    fn rings(&self) -> usize {
        self.slots() + self.size * 2 * SLOT
    }

    /// All of it.
    pub fn len(&self) -> usize {
        self.rings() + self.size * self.size * RING
    }

    /// What every group uses; rings are used by few pairs.
    pub fn always(&self) -> Range<usize> {
        0..self.rings()
    }

    /// The number of the last round that a process has written.
    pub fn round(&self, rank: usize) -> usize {
        HEADER + rank * CONTROL
    }

    /// What it calls in a round.
    pub fn call(&self, rank: usize, round: u32) -> Range<usize> {
        let start = self.round(rank) + CALL + (round as usize % 2) * 64;
        start..start + Call::BYTES
    }

    /// Its slot for a round.
    pub fn slot(&self, rank: usize, round: u32) -> Range<usize> {
        let start = self.slots() + (rank * 2 + round as usize % 2) * SLOT;
        start..start + SLOT
    }

    fn channel(&self, from: usize, to: usize) -> usize {
        self.channels() + (from * self.size + to) * CHANNEL
    }

    /// How many bytes were written to a channel.
    pub fn written(&self, from: usize, to: usize) -> usize {
        self.channel(from, to)
    }

    /// How many bytes were read from it.
    pub fn taken(&self, from: usize, to: usize) -> usize {
        self.channel(from, to) + CHANNEL / 2
    }

    /// Where they lie.
    pub fn ring(&self, from: usize, to: usize) -> Range<usize> {
        let start = self.rings() + (from * self.size + to) * RING;
        start..start + RING
    }
}
