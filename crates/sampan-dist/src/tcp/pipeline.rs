//! The reduction of many bytes, in chunks that follow each other on the wire: while a process sums one chunk, and while it
//! waits for its turn on a core that others use, the next chunk is already on its way. Nothing is copied but by the kernel.
//!
//! Of each chunk every process reduces one piece: it takes the others' shares of it and gives them the result. Between two
//! processes messages go in the order that `order` says, the same both ways.

use super::collectives::{Exchange, piece};
use super::{Message, Tcp};
use crate::arithmetic::Mine;
use crate::sys::Interest;
use crate::wire::unavailable;
use sampan_core::Result;
use sampan_kernels::Buffer;
use std::net::TcpStream;
use std::ops::Range;
use std::time::Instant;

/// More is reduced in chunks, so that what has come is still in the cache when it is summed.
const CHUNK: usize = 2 << 20;
/// So many chunks are given out before the result of the first one must be known.
const AHEAD: usize = 1;

/// A message between two processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// One process's share of the piece of a chunk that the other one reduces.
    Share(usize),
    /// The piece of a chunk that the sender has reduced.
    Result(usize),
}

fn order(chunks: usize) -> Vec<Step> {
    let each = |k: usize| {
        let share = (k < chunks).then_some(Step::Share(k));
        share.into_iter().chain(k.checked_sub(AHEAD).map(Step::Result))
    };
    (0..chunks + AHEAD).flat_map(each).collect()
}

/// The connection to a process, and how far its messages are in either direction.
struct Way<'a> {
    peer: usize,
    link: &'a TcpStream,
    out: (usize, Option<Message>),
    into: (usize, Option<Message>),
}

/// A reduction under way.
struct Pipeline<'a> {
    now: &'a Exchange<'a>,
    data: &'a mut [u8],
    order: Vec<Step>,
    chunks: usize,
    /// How many chunks this process has reduced its piece of.
    reduced: usize,
    /// The others' shares, by process, for as many chunks as may be on their way.
    shares: Vec<Vec<Buffer>>,
}

impl Pipeline<'_> {
    /// Where the piece of a chunk lies that a process reduces.
    fn piece(&self, chunk: usize, of: usize) -> Range<usize> {
        let start = chunk * CHUNK;
        let piece = piece(CHUNK.min(self.data.len() - start), self.now.engine.size, of);
        start + piece.start..start + piece.end
    }

    fn own(&self, chunk: usize) -> Range<usize> {
        self.piece(chunk, self.now.engine.rank)
    }

    /// Where the next message to a process lies, if it may go.
    fn outgoing(&self, way: &Way<'_>) -> Option<Range<usize>> {
        match *self.order.get(way.out.0)? {
            Step::Share(k) => Some(self.piece(k, way.peer)),
            Step::Result(k) => (k < self.reduced).then(|| self.own(k)),
        }
    }

    /// How long the next message from a process is, if there is a place for it.
    fn incoming(&self, way: &Way<'_>) -> Option<usize> {
        match *self.order.get(way.into.0)? {
            Step::Share(k) => (k < self.reduced + self.shares.len()).then(|| self.own(k).len()),
            Step::Result(k) => Some(self.piece(k, way.peer).len()),
        }
    }

    fn write(&mut self, way: &mut Way<'_>) -> Result<()> {
        let Some(at) = self.outgoing(way) else { return Ok(()) };
        let Exchange { engine, call, number } = self.now;
        let message = way.out.1.get_or_insert_with(|| Message::outgoing(call, **number, at.len()));
        message.write(way.link, &self.data[at]).or_else(|e| engine.lost(way.peer, e))?;
        if message.is_done() {
            way.out = (way.out.0 + 1, None);
        }
        Ok(())
    }

    fn read(&mut self, way: &mut Way<'_>) -> Result<()> {
        let Some(len) = self.incoming(way) else { return Ok(()) };
        let Exchange { engine, call, number } = self.now;
        let message = way.into.1.get_or_insert_with(|| Message::incoming(len));
        let slots = self.shares.len();
        let place = match self.order[way.into.0] {
            Step::Share(k) => &mut self.shares[k % slots][way.peer].bytes_mut()[..len],
            Step::Result(k) => {
                let at = self.piece(k, way.peer);
                &mut self.data[at]
            }
        };
        match message.read(way.link, place) {
            Ok(true) => engine.agree(call, **number, way.peer, message)?,
            Ok(false) => {}
            Err(e) => engine.lost(way.peer, e)?,
        }
        if message.is_done() {
            way.into = (way.into.0 + 1, None);
        }
        Ok(())
    }

    /// Reduces the chunks of which all shares have come.
    fn reduce(&mut self, ways: &[Way<'_>]) {
        while self.reduced < self.chunks {
            let wanted = Step::Share(self.reduced);
            let taken = self.order.iter().position(|step| *step == wanted).unwrap_or(0);
            if ways.iter().any(|way| way.into.0 <= taken) {
                return;
            }
            let own = self.own(self.reduced);
            let shares = &self.shares[self.reduced % self.shares.len()];
            self.now.reduce_into(
                |r| &shares[r].bytes()[..own.len()],
                Mine::Becomes(&mut self.data[own.clone()]),
                &mut [],
            );
            self.reduced += 1;
        }
    }
}

impl Tcp {
    /// Makes `data` the reduction of everybody's.
    pub(super) fn all_reduce_in_chunks(&self, now: &Exchange<'_>, data: &mut [u8]) -> Result<()> {
        let chunks = data.len().div_ceil(CHUNK);
        let room = piece(CHUNK.min(data.len()), self.size, 0).len();
        let slot = |_| (0..self.size).map(|r| Buffer::uninit(if r == self.rank { 0 } else { room })).collect();
        let shares = (0..chunks.min(AHEAD + 1)).map(slot).collect();
        let mut pipeline = Pipeline { now, data, order: order(chunks), chunks, reduced: 0, shares };
        // Everybody begins with another one.
        let peers = (1..self.size).map(|s| (self.rank + s) % self.size);
        let mut ways: Vec<Way<'_>> = peers
            .map(|peer| {
                let link = self.links[peer].as_ref();
                let link = link.ok_or_else(|| unavailable(format!("there is no way to rank {peer}")))?;
                Ok(Way { peer, link, out: (0, None), into: (0, None) })
            })
            .collect::<Result<_>>()?;
        let last = pipeline.order.len();
        let mut deadline = Instant::now() + self.timeout;
        while let Some(late) = ways.iter().filter(|w| w.into.0 < last || w.out.0 < last).min_by_key(|w| w.into.0) {
            let interests: Vec<(&TcpStream, Interest)> = ways
                .iter()
                .map(|way| {
                    let (read, write) = (pipeline.incoming(way).is_some(), pipeline.outgoing(way).is_some());
                    (way.link, Interest { read, write })
                })
                .collect();
            let ready = self.ready(&interests, deadline, late.peer)?;
            for (way, ready) in ways.iter_mut().zip(&ready) {
                if ready.write {
                    pipeline.write(way)?;
                }
                if ready.read {
                    pipeline.read(way)?;
                }
            }
            if ready.iter().any(|r| r.read || r.write) {
                deadline = Instant::now() + self.timeout;
            }
            pipeline.reduce(&ways);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_is_given_out_before_the_result_of_the_one_before_it() {
        use Step::{Result, Share};
        assert_eq!(order(1), [Share(0), Result(0)]);
        assert_eq!(order(3), [Share(0), Share(1), Result(0), Share(2), Result(1), Result(2)]);
    }
}
