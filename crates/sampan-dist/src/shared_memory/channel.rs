//! Messages from one process to another: a ring of bytes for each pair.

use super::SharedMemory;
use super::layout::RING;
use crate::backend::{Call, disagreement};
use sampan_core::Result;
use std::sync::atomic::Ordering;

impl SharedMemory {
    /// Writes bytes into the ring to a process, as room becomes free.
    fn put(&self, to: usize, mut bytes: &[u8]) -> Result<()> {
        let (written, taken) = (self.layout.written(self.rank, to), self.layout.taken(self.rank, to));
        let ring = self.layout.ring(self.rank, to);
        while !bytes.is_empty() {
            let at = self.segment.word(written).load(Ordering::Relaxed);
            let free = |read: u32| RING - at.wrapping_sub(read) as usize;
            let read = self.wait(taken, to, "send", |read| free(read) > 0)?;
            let start = at as usize % RING;
            let count = bytes.len().min(free(read)).min(RING - start);
            let (now, rest) = bytes.split_at(count);
            // SAFETY: the reader has taken what lay here, as `taken` says, and looks again only after `written` has moved.
            unsafe { self.segment.write(ring.start + start..ring.start + start + count) }.copy_from_slice(now);
            self.segment.announce(written, at.wrapping_add(count as u32));
            bytes = rest;
        }
        Ok(())
    }

    /// Reads bytes from the ring of a process, as they come.
    fn take(&self, from: usize, mut bytes: &mut [u8]) -> Result<()> {
        let (written, taken) = (self.layout.written(from, self.rank), self.layout.taken(from, self.rank));
        let ring = self.layout.ring(from, self.rank);
        while !bytes.is_empty() {
            let at = self.segment.word(taken).load(Ordering::Relaxed);
            let there = self.wait(written, from, "recv", |there| there != at)?.wrapping_sub(at) as usize;
            let start = at as usize % RING;
            let count = bytes.len().min(there).min(RING - start);
            let (now, rest) = bytes.split_at_mut(count);
            // SAFETY: the writer has written these bytes, as `written` says, and none again before `taken` has moved.
            now.copy_from_slice(unsafe { self.segment.read(ring.start + start..ring.start + start + count) });
            self.segment.announce(taken, at.wrapping_add(count as u32));
            bytes = rest;
        }
        Ok(())
    }

    pub(super) fn give_message(&self, call: &Call, to: usize, data: &[u8]) -> Result<()> {
        let _turn = self.sending[to].lock();
        self.check()?;
        // A full machine is an error here, and not a signal when the memory is touched.
        self.segment.reserve(self.layout.ring(self.rank, to))?;
        self.put(to, &call.encode())?;
        self.put(to, data)
    }

    pub(super) fn take_message(&self, call: &Call, from: usize, data: &mut [u8]) -> Result<()> {
        let _turn = self.taking[from].lock();
        self.check()?;
        let mut head = [0; Call::BYTES];
        self.take(from, &mut head)?;
        let theirs = Call::decode(&head);
        if theirs != Some(*call) {
            let text = theirs.map_or("something else".into(), |c| c.to_string());
            let error = disagreement(call, self.rank, &text, from).in_op("recv");
            // What follows in the ring is of another length.
            self.fail(error.message().to_string(), "recv");
            return Err(error);
        }
        self.take(from, data)
    }
}
