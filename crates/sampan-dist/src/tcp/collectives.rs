//! Collectives as exchanges between pairs: in step `s` a process gives to the `s`-th after it and takes from the `s`-th
//! before it, so that every process sends and receives all the time, and nobody from two at once.

use super::Tcp;
use crate::arithmetic::{Mine, reduce};
use crate::backend::{Action, Backend, Call};
use parking_lot::MutexGuard;
use sampan_core::{DType, Result};
use sampan_kernels::Buffer;
use std::ops::Range;

/// So little is given whole to everybody, in half as many steps.
const SMALL: usize = 1 << 13;

/// The piece of `len` bytes that a process has; no element is cut.
pub(super) fn piece(len: usize, size: usize, of: usize) -> Range<usize> {
    let each = len.div_ceil(size).next_multiple_of(64);
    (of * each).min(len)..((of + 1) * each).min(len)
}

fn pieces(len: usize, size: usize) -> Vec<Range<usize>> {
    (0..size).map(|of| piece(len, size, of)).collect()
}

/// A collective under way.
pub(super) struct Exchange<'a> {
    pub engine: &'a Tcp,
    pub call: &'a Call,
    pub number: MutexGuard<'a, u32>,
}

impl Tcp {
    fn begin<'a>(&'a self, call: &'a Call) -> Exchange<'a> {
        let mut number = self.number.lock();
        *number = number.wrapping_add(1);
        Exchange { engine: self, call, number }
    }
}

impl Exchange<'_> {
    fn swap(&self, to: Option<(usize, &[u8])>, from: Option<(usize, &mut [u8])>) -> Result<()> {
        let Exchange { engine, call, number } = self;
        engine.swap(&engine.links, call, **number, to, from).map_err(|e| e.in_op(call.action.name()))
    }

    /// Whom to give to and take from, step by step.
    fn steps(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let (rank, size) = (self.engine.rank, self.engine.size);
        (1..size).map(move |s| ((rank + s) % size, (rank + size - s) % size))
    }

    /// Everybody gets everybody's piece of `data`, where it has its own.
    fn spread(&self, data: &mut [u8], pieces: &[Range<usize>]) -> Result<()> {
        for (to, from) in self.steps() {
            let own = pieces[self.engine.rank].clone();
            let theirs = pieces[from].clone();
            // The two pieces lie apart, in either order.
            let (mine, place): (&[u8], &mut [u8]) = if own.end <= theirs.start {
                let (a, b) = data.split_at_mut(theirs.start);
                (&a[own], &mut b[..theirs.len()])
            } else {
                let (a, b) = data.split_at_mut(own.start);
                (&b[..own.len()], &mut a[theirs])
            };
            self.swap(Some((to, mine)), Some((from, place)))?;
        }
        Ok(())
    }

    /// Everybody's values for the piece of this process: its own are not among them.
    fn collect(&self, give: impl Fn(usize) -> Range<usize>, data: &[u8], len: usize) -> Result<Vec<Buffer>> {
        let mut parts: Vec<Buffer> = (0..self.engine.size).map(|_| Buffer::uninit(0)).collect();
        for (to, from) in self.steps() {
            let mut part = Buffer::uninit(len);
            self.swap(Some((to, &data[give(to)])), Some((from, part.bytes_mut())))?;
            parts[from] = part;
        }
        Ok(parts)
    }

    pub fn reduce_into<'a>(&self, of: impl Fn(usize) -> &'a [u8], mine: Mine<'_>, copy: &mut [u8]) {
        reduce(self.call.arithmetic(), (self.engine.rank, self.engine.size), mine, of, copy);
    }
}

impl Backend for Tcp {
    fn name(&self) -> &'static str {
        "tcp"
    }

    fn barrier(&self) -> Result<()> {
        let call = Call::new(Action::Barrier, DType::UInt8, 0);
        let now = self.begin(&call);
        // After the step of length 2ⁿ a process has heard, through others, of the 2ⁿ⁺¹ before it.
        let mut step = 1;
        while step < self.size {
            let (to, from) = ((self.rank + step) % self.size, (self.rank + self.size - step) % self.size);
            now.swap(Some((to, &[])), Some((from, &mut [])))?;
            step *= 2;
        }
        Ok(())
    }

    fn all_reduce(&self, call: &Call, data: &mut [u8]) -> Result<()> {
        let now = self.begin(call);
        if data.len() <= SMALL {
            let parts = now.collect(|_| 0..data.len(), data, data.len())?;
            now.reduce_into(|r| parts[r].bytes(), Mine::Becomes(data), &mut []);
            return Ok(());
        }
        self.all_reduce_in_chunks(&now, data).map_err(|e| e.in_op(call.action.name()))
    }

    fn reduce(&self, call: &Call, data: &mut [u8]) -> Result<()> {
        let now = self.begin(call);
        let root = call.root as usize;
        let pieces = pieces(data.len(), self.size);
        let own = pieces[self.rank].clone();
        let parts = now.collect(|to| pieces[to].clone(), data, own.len())?;
        let mut result = Buffer::uninit(own.len());
        now.reduce_into(|r| parts[r].bytes(), Mine::Stays(&data[own.clone()]), result.bytes_mut());
        if self.rank != root {
            return now.swap(Some((root, result.bytes())), None);
        }
        data[own].copy_from_slice(result.bytes());
        for (_, from) in now.steps() {
            now.swap(None, Some((from, &mut data[pieces[from].clone()])))?;
        }
        Ok(())
    }

    fn broadcast(&self, call: &Call, data: &mut [u8]) -> Result<()> {
        let now = self.begin(call);
        let root = call.root as usize;
        let pieces = match data.len() <= SMALL {
            // Everything is the root's own piece.
            true => (0..self.size).map(|r| if r == root { 0..data.len() } else { 0..0 }).collect(),
            false => pieces(data.len(), self.size),
        };
        // The root gives each one piece, and then all give theirs to all; the root has every piece already.
        match self.rank == root {
            true => {
                for (to, _) in now.steps() {
                    now.swap(Some((to, &data[pieces[to].clone()])), None)?;
                }
            }
            false => now.swap(None, Some((root, &mut data[pieces[self.rank].clone()])))?,
        }
        now.spread(data, &pieces)
    }

    fn all_gather(&self, call: &Call, mine: &[u8], all: &mut [u8]) -> Result<()> {
        let now = self.begin(call);
        let len = mine.len();
        all[self.rank * len..][..len].copy_from_slice(mine);
        for (to, from) in now.steps() {
            now.swap(Some((to, mine)), Some((from, &mut all[from * len..][..len])))?;
        }
        Ok(())
    }

    fn gather(&self, call: &Call, mine: &[u8], all: &mut [u8]) -> Result<()> {
        let now = self.begin(call);
        let (root, len) = (call.root as usize, mine.len());
        if self.rank != root {
            return now.swap(Some((root, mine)), None);
        }
        all[root * len..][..len].copy_from_slice(mine);
        for (_, from) in now.steps() {
            now.swap(None, Some((from, &mut all[from * len..][..len])))?;
        }
        Ok(())
    }

    fn scatter(&self, call: &Call, all: &[u8], mine: &mut [u8]) -> Result<()> {
        let now = self.begin(call);
        let (root, len) = (call.root as usize, mine.len());
        if self.rank != root {
            return now.swap(None, Some((root, mine)));
        }
        for (to, _) in now.steps() {
            now.swap(Some((to, &all[to * len..][..len])), None)?;
        }
        mine.copy_from_slice(&all[root * len..][..len]);
        Ok(())
    }

    fn reduce_scatter(&self, call: &Call, all: &[u8], mine: &mut [u8]) -> Result<()> {
        let now = self.begin(call);
        let len = mine.len();
        let parts = now.collect(|to| to * len..(to + 1) * len, all, len)?;
        now.reduce_into(|r| parts[r].bytes(), Mine::Stays(&all[self.rank * len..][..len]), mine);
        Ok(())
    }

    fn all_to_all(&self, call: &Call, give: &[&[u8]], take: &mut [&mut [u8]]) -> Result<()> {
        let now = self.begin(call);
        take[self.rank].copy_from_slice(give[self.rank]);
        for (to, from) in now.steps() {
            now.swap(Some((to, give[to])), Some((from, take[from])))?;
        }
        Ok(())
    }

    fn send(&self, call: &Call, to: usize, data: &[u8]) -> Result<()> {
        let _turn = self.sending[to].lock();
        self.swap(&self.direct, call, 0, Some((to, data)), None).map_err(|e| e.in_op("send"))
    }

    fn recv(&self, call: &Call, from: usize, data: &mut [u8]) -> Result<()> {
        let _turn = self.taking[from].lock();
        self.swap(&self.direct, call, 0, None, Some((from, data))).map_err(|e| e.in_op("recv"))
    }

    fn abort(&self, why: &str) {
        self.fail(why.into());
    }
}
