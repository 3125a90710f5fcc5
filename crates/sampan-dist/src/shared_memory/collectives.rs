//! Collectives in rounds.

use super::rounds::{Rounds, share};
use super::{SharedMemory, layout};
use crate::arithmetic::{Mine, reduce};
use crate::backend::{Action, Backend, Call};
use sampan_core::{DType, Result};
use std::ops::Range;

/// So little is reduced by every process for itself, in one round instead of two.
const SMALL: usize = 1 << 14;

/// The pieces of `len` bytes, one for each process, in whole cache lines.
fn piece(len: usize, size: usize, j: usize) -> Range<usize> {
    let each = len.div_ceil(size).next_multiple_of(64);
    (j * each).min(len)..((j + 1) * each).min(len)
}

impl SharedMemory {
    fn others(&self) -> impl Iterator<Item = usize> + use<> {
        let rank = self.rank;
        (0..self.size).filter(move |r| *r != rank)
    }

    /// Reduces small data in one round.
    fn reduce_small(&self, mut rounds: Rounds<'_>, call: &Call, data: &mut [u8], keep: bool) -> Result<()> {
        rounds.mine()[..data.len()].copy_from_slice(data);
        rounds.turn()?;
        if keep {
            let (len, theirs) = (data.len(), rounds.theirs());
            reduce(call.arithmetic(), (self.rank, self.size), Mine::Becomes(data), |r| &theirs.of(r)[..len], &mut []);
        }
        Ok(())
    }

    /// Reduces data in chunks: each process reduces its piece of a chunk, and gives the result to all in the next round,
    /// with its values of the next chunk. With `keep` the data becomes the result.
    fn reduce_chunks(&self, call: &Call, data: &mut [u8], keep: bool) -> Result<()> {
        let mut rounds = self.begin(call)?;
        if data.len() <= SMALL {
            return self.reduce_small(rounds, call, data, keep);
        }
        let (me, size, most) = (self.rank, self.size, share(self.size));
        let chunk = most * size;
        // In a slot, place j holds the values for process j; the owner's own place holds its results of the chunk before.
        let place = |j: usize, len: usize| j * most..j * most + len;
        let mut before: Range<usize> = 0..0;
        let starts = (0..data.len()).step_by(chunk).map(Some).chain([None]);
        for start in starts {
            let now = start.map_or(0..0, |s| s..data.len().min(s + chunk));
            let part = |span: &Range<usize>, j: usize| {
                let p = piece(span.len(), size, j);
                span.start + p.start..span.start + p.end
            };
            for j in self.others() {
                let span = part(&now, j);
                rounds.mine()[place(j, span.len())].copy_from_slice(&data[span]);
            }
            rounds.turn()?;
            let (next, theirs) = rounds.slots();
            if keep {
                for j in self.others() {
                    let span = part(&before, j);
                    data[span.clone()].copy_from_slice(&theirs.of(j)[place(j, span.len())]);
                }
            }
            let own = part(&now, me);
            let at = place(me, own.len());
            let mine = match keep {
                true => Mine::Becomes(&mut data[own]),
                false => Mine::Stays(&data[own]),
            };
            reduce(call.arithmetic(), (me, size), mine, |r| &theirs.of(r)[at.clone()], &mut next[at.clone()]);
            before = now;
        }
        Ok(())
    }

    /// Everybody shows data in chunks; `take` sees those of all, with the place of the chunk.
    fn show(
        &self,
        call: &Call,
        data: &[u8],
        len: usize,
        mut take: impl FnMut(usize, Range<usize>, &[u8]),
    ) -> Result<()> {
        let mut rounds = self.begin(call)?;
        for start in (0..len.max(1)).step_by(layout::SLOT) {
            let span = start..len.min(start + layout::SLOT);
            if !data.is_empty() {
                rounds.mine()[..span.len()].copy_from_slice(&data[span.clone()]);
            }
            rounds.turn()?;
            for r in 0..self.size {
                take(r, span.clone(), &rounds.theirs().of(r)[..span.len()]);
            }
        }
        Ok(())
    }

    /// Everybody has a part for everybody, `lens[i][j]` bytes from `i` to `j`.
    fn hand_out(
        &self,
        rounds: &mut Rounds<'_>,
        lens: &[Vec<usize>],
        give: &[&[u8]],
        take: &mut [&mut [u8]],
    ) -> Result<()> {
        let (me, most) = (self.rank, share(self.size));
        let longest = lens.iter().flatten().copied().max().unwrap_or(0);
        for start in (0..longest).step_by(most) {
            let span = |len: usize| start.min(len)..len.min(start + most);
            for j in self.others() {
                let part = &give[j][span(give[j].len())];
                rounds.mine()[j * most..j * most + part.len()].copy_from_slice(part);
            }
            rounds.turn()?;
            for i in self.others() {
                let part = span(take[i].len());
                take[i][part.clone()].copy_from_slice(&rounds.theirs().of(i)[me * most..me * most + part.len()]);
            }
        }
        if longest > 0 && !take[me].is_empty() {
            take[me].copy_from_slice(give[me]);
        }
        Ok(())
    }
}

impl Backend for SharedMemory {
    fn name(&self) -> &'static str {
        "shared_memory"
    }

    fn barrier(&self) -> Result<()> {
        self.begin(&Call::new(Action::Barrier, DType::UInt8, 0))?.turn()
    }

    fn all_reduce(&self, call: &Call, data: &mut [u8]) -> Result<()> {
        self.reduce_chunks(call, data, true)
    }

    fn reduce(&self, call: &Call, data: &mut [u8]) -> Result<()> {
        self.reduce_chunks(call, data, self.rank == call.root as usize)
    }

    fn broadcast(&self, call: &Call, data: &mut [u8]) -> Result<()> {
        let (root, len) = (call.root as usize, data.len());
        if self.rank == root {
            return self.show(call, data, len, |_, _, _| ());
        }
        self.show(call, &[], len, |r, span, bytes| {
            if r == root {
                data[span].copy_from_slice(bytes);
            }
        })
    }

    fn all_gather(&self, call: &Call, mine: &[u8], all: &mut [u8]) -> Result<()> {
        let len = mine.len();
        self.show(call, mine, len, |r, span, bytes| {
            all[r * len + span.start..r * len + span.end].copy_from_slice(bytes)
        })
    }

    fn gather(&self, call: &Call, mine: &[u8], all: &mut [u8]) -> Result<()> {
        let (len, root) = (mine.len(), self.rank == call.root as usize);
        self.show(call, mine, len, |r, span, bytes| {
            if root {
                all[r * len + span.start..r * len + span.end].copy_from_slice(bytes);
            }
        })
    }

    fn scatter(&self, call: &Call, all: &[u8], mine: &mut [u8]) -> Result<()> {
        let (root, len) = (call.root as usize, mine.len());
        let mut lens = vec![vec![0; self.size]; self.size];
        lens[root].fill(len);
        let mut rounds = self.begin(call)?;
        if len == 0 {
            return rounds.turn();
        }
        let give: Vec<&[u8]> = match self.rank == root {
            true => all.chunks_exact(len).collect(),
            false => vec![&[]; self.size],
        };
        let mut take: Vec<&mut [u8]> = (0..self.size).map(|_| &mut [][..]).collect();
        take[root] = mine;
        self.hand_out(&mut rounds, &lens, &give, &mut take)
    }

    fn reduce_scatter(&self, call: &Call, all: &[u8], mine: &mut [u8]) -> Result<()> {
        let (me, size, len) = (self.rank, self.size, mine.len());
        let mut rounds = self.begin(call)?;
        let most = share(size);
        for start in (0..len.max(1)).step_by(most) {
            let span = start..len.min(start + most);
            for j in self.others() {
                let part = &all[j * len + span.start..j * len + span.end];
                rounds.mine()[j * most..j * most + part.len()].copy_from_slice(part);
            }
            rounds.turn()?;
            let (at, theirs) = (me * most..me * most + span.len(), rounds.theirs());
            let own = Mine::Stays(&all[me * len + span.start..me * len + span.end]);
            reduce(call.arithmetic(), (me, size), own, |r| &theirs.of(r)[at.clone()], &mut mine[span]);
        }
        Ok(())
    }

    fn all_to_all(&self, call: &Call, give: &[&[u8]], take: &mut [&mut [u8]]) -> Result<()> {
        // First everybody says how much it gives and expects, so that all know how many rounds there are.
        let mut rounds = self.begin(call)?;
        let said = give.iter().map(|p| p.len()).chain(take.iter().map(|p| p.len()));
        let table: Vec<u8> = said.flat_map(|n| (n as u64).to_le_bytes()).collect();
        rounds.mine()[..table.len()].copy_from_slice(&table);
        rounds.turn()?;
        let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("8 bytes")) as usize;
        let read = |bytes: &[u8]| bytes[..table.len()].chunks_exact(8).map(number).collect::<Vec<usize>>();
        let mut lens: Vec<Vec<usize>> = (0..self.size).map(|r| read(rounds.theirs().of(r))).collect();
        let expected: Vec<Vec<usize>> = lens.iter_mut().map(|l| l.split_off(self.size)).collect();
        for (i, j) in (0..self.size).flat_map(|i| (0..self.size).map(move |j| (i, j))) {
            sampan_core::ensure!(
                lens[i][j] == expected[j][i],
                "alltoall: rank {i} gives {} bytes to rank {j}, which expects {}",
                lens[i][j],
                expected[j][i]
            );
        }
        self.hand_out(&mut rounds, &lens, give, take)
    }

    fn send(&self, call: &Call, to: usize, data: &[u8]) -> Result<()> {
        self.give_message(call, to, data).map_err(|e| e.in_op("send"))
    }

    fn recv(&self, call: &Call, from: usize, data: &mut [u8]) -> Result<()> {
        self.take_message(call, from, data).map_err(|e| e.in_op("recv"))
    }

    fn abort(&self, why: &str) {
        self.fail(why.into(), "abort");
    }
}
