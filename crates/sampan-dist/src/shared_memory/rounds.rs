//! Rounds: all write, all wait, all read.

use super::{SharedMemory, layout};
use crate::backend::{Call, disagreement};
use parking_lot::MutexGuard;
use sampan_core::Result;

/// A collective under way.
pub struct Rounds<'a> {
    engine: &'a SharedMemory,
    /// The number of the last round that all have written.
    number: MutexGuard<'a, u32>,
    call: Call,
    /// Have all said what they do?
    agreed: bool,
}

/// What all processes have written in the last round.
#[derive(Clone, Copy)]
pub struct Slots<'a> {
    engine: &'a SharedMemory,
    number: u32,
}

impl<'a> Slots<'a> {
    /// What one process has written.
    pub fn of(self, rank: usize) -> &'a [u8] {
        let span = self.engine.layout.slot(rank, self.number);
        // SAFETY: all have written this round, and nobody writes this slot before all have written the next one, which this
        // process does only by `Rounds::turn`, which needs `Rounds` for itself and so ends this borrow.
        unsafe { self.engine.segment.read(span) }
    }
}

impl SharedMemory {
    /// Begins a collective.
    pub fn begin(&self, call: &Call) -> Result<Rounds<'_>> {
        let number = self.round.lock();
        self.check().map_err(|e| e.in_op(call.action.name()))?;
        let span = self.layout.call(self.rank, number.wrapping_add(1));
        // SAFETY: a process writes its own call alone, for a round that it has not announced; the last round whose call lay
        // here was read by all before they wrote the round after it.
        unsafe { self.segment.write(span) }.copy_from_slice(&call.encode());
        Ok(Rounds { engine: self, number, call: *call, agreed: false })
    }
}

impl Rounds<'_> {
    /// The slot for the next round, to be written, and those of the last one, to be read.
    pub fn slots(&mut self) -> (&mut [u8], Slots<'_>) {
        let SharedMemory { rank, layout, segment, .. } = self.engine;
        let span = layout.slot(*rank, self.number.wrapping_add(1));
        // SAFETY: this process alone writes its slot, and `&mut self` lends it once. Others read it after the next round is
        // announced; the round that lay here before was read by all, since all have written the one after it.
        let mine = unsafe { segment.write(span) };
        (mine, Slots { engine: self.engine, number: *self.number })
    }

    /// Writes into the slot for the next round.
    pub fn mine(&mut self) -> &mut [u8] {
        self.slots().0
    }

    /// What the others wrote in the last round.
    pub fn theirs(&mut self) -> Slots<'_> {
        self.slots().1
    }

    /// Announces the next round and waits until all have written it.
    pub fn turn(&mut self) -> Result<()> {
        let engine = self.engine;
        let next = self.number.wrapping_add(1);
        let name = self.call.action.name();
        engine.segment.announce(engine.layout.round(engine.rank), next);
        for peer in (0..engine.size).filter(|peer| *peer != engine.rank) {
            let there = |now: u32| now.wrapping_sub(next) as i32 >= 0;
            engine.wait(engine.layout.round(peer), peer, name, there).map_err(|e| e.in_op(name))?;
        }
        *self.number = next;
        if !std::mem::replace(&mut self.agreed, true) {
            self.agree(next)?;
        }
        Ok(())
    }

    /// Do all do the same? They see the same calls, so all find the same.
    fn agree(&self, round: u32) -> Result<()> {
        let engine = self.engine;
        let mut bytes = [0; Call::BYTES];
        for peer in 0..engine.size {
            // SAFETY: all have written this round, their calls included, and write no other here before the next one.
            bytes.copy_from_slice(unsafe { engine.segment.read(engine.layout.call(peer, round)) });
            let theirs = Call::decode(&bytes);
            if theirs != Some(self.call) {
                let text = theirs.map_or("something else".into(), |c| c.to_string());
                return Err(disagreement(&self.call, engine.rank, &text, peer));
            }
        }
        Ok(())
    }
}

/// How many bytes for each process fit into a slot, in whole cache lines.
pub fn share(size: usize) -> usize {
    (layout::SLOT / size) & !63
}
