//! Engines over libraries that move bytes: values are reduced here, in the order of the ranks, so that results have the same
//! bits whatever moved them.

use crate::arithmetic::{Mine, reduce};
use crate::backend::{Action, Backend, Call, disagreement};
use crate::wire::unavailable;
use sampan_core::{DType, Error, Result};
use sampan_kernels::Buffer;
use std::sync::OnceLock;

/// So little is given whole to everybody.
const SMALL: usize = 1 << 13;
/// More is reduced in chunks: what has come is still in the cache when it is summed, and a library that counts in ints is
/// never given too much.
const CHUNK: usize = 4 << 20;

/// Adds everybody's shares of a piece to it.
pub type Summing<'a> = &'a mut dyn FnMut(&[u8], &mut [u8]);

/// What a library does for a group. Collectives come one at a time; `send` and `recv` may run beside them.
pub trait Mover: Send + Sync {
    /// The name of the engine.
    const NAME: &'static str;
    /// Does a call hear nothing while it waits? Then somebody else listens for an interruption.
    const DEAF: bool;
    /// The rank of this process in the group, and how many there are.
    fn place(&self) -> (usize, usize);
    /// Waits for all.
    fn barrier(&self) -> Result<()>;
    /// `data` becomes that of the root.
    fn broadcast(&self, root: usize, data: &mut [u8]) -> Result<()>;
    /// `all` becomes everybody's `mine`, one after the other, each of its length.
    fn gather(&self, mine: &[u8], all: &mut [u8], lens: &[usize]) -> Result<()>;
    /// Gives each process a part of `from`, and takes one from each into `to`; parts lie one after the other.
    fn exchange(&self, from: &[u8], give: &[usize], to: &mut [u8], take: &[usize]) -> Result<()>;
    /// Reduces in chunks that follow each other on the wire, where the library can have several messages under way. `sum` is given
    /// everybody's shares of a piece, one after the other (its own place has none), and the piece.
    fn reduce(&self, _data: &mut [u8], _chunk: usize, _sum: Summing<'_>) -> Option<Result<()>> {
        None
    }
    /// Gives bytes to one process.
    fn send(&self, to: usize, data: &[u8]) -> Result<()>;
    /// Takes as many bytes from one process.
    fn recv(&self, from: usize, data: &mut [u8]) -> Result<()>;
    /// Lets the others notice that this process has given up, where the library can.
    fn close(&self) {}
}

/// The engine over a library.
pub struct Moved<M> {
    library: M,
    rank: usize,
    size: usize,
    over: OnceLock<String>,
}

impl<M: Mover> Moved<M> {
    /// The engine over a library that has met the others.
    pub fn new(library: M) -> Moved<M> {
        let (rank, size) = library.place();
        Moved { library, rank, size, over: OnceLock::new() }
    }

    fn check(&self, action: Action) -> Result<()> {
        match self.over.get() {
            None => Ok(()),
            Some(why) => Err(unavailable(why.as_str()).in_op(action.name())),
        }
    }

    /// Ends the group where the library has failed: what it would do next is unknown.
    fn told<R>(&self, call: &Call, done: Result<R>) -> Result<R> {
        done.map_err(|e| {
            self.abort(e.message());
            e.in_op(call.action.name())
        })
    }

    /// All must be at the same call.
    fn agree(&self, call: &Call) -> Result<()> {
        self.check(call.action)?;
        let own = call.encode();
        let mut all = vec![0; own.len() * self.size];
        self.told(call, self.library.gather(&own, &mut all, &vec![own.len(); self.size]))?;
        for (rank, theirs) in all.chunks_exact(own.len()).enumerate() {
            if theirs != own {
                let told = Call::decode(theirs.try_into().expect("as long as ours"));
                let told = told.map_or("something else".into(), |c| c.to_string());
                return Err(disagreement(call, self.rank, &told, rank));
            }
        }
        Ok(())
    }

    /// How many of so many bytes each process reduces; no element is cut.
    fn pieces(&self, len: usize) -> Vec<usize> {
        let each = len.div_ceil(self.size).next_multiple_of(64);
        (0..self.size).map(|j| ((j + 1) * each).min(len) - (j * each).min(len)).collect()
    }

    /// Everybody's parts for this process, one after the other, reduced into `mine`.
    fn reduce_parts(&self, call: &Call, parts: &[u8], mine: &mut [u8]) {
        let n = mine.len();
        let of = |r: usize| &parts[r * n..(r + 1) * n];
        reduce(call.arithmetic(), (self.rank, self.size), Mine::Stays(of(self.rank)), of, mine);
    }

    fn reduced(&self, call: &Call, data: &mut [u8]) -> Result<()> {
        if data.len() <= SMALL {
            let mut all = Buffer::uninit(data.len() * self.size);
            self.library.gather(data, all.bytes_mut(), &vec![data.len(); self.size])?;
            self.reduce_parts(call, all.bytes(), data);
            return Ok(());
        }
        let (how, place) = (call.arithmetic(), (self.rank, self.size));
        let mut sum = |shares: &[u8], own: &mut [u8]| {
            let n = own.len();
            reduce(how, place, Mine::Becomes(own), |r| &shares[r * n..(r + 1) * n], &mut []);
        };
        if let Some(done) = self.library.reduce(data, CHUNK, &mut sum) {
            return done;
        }
        for chunk in data.chunks_mut(CHUNK) {
            let pieces = self.pieces(chunk.len());
            let n = pieces[self.rank];
            let (mut parts, mut own) = (Buffer::uninit(n * self.size), Buffer::uninit(n));
            self.library.exchange(chunk, &pieces, parts.bytes_mut(), &vec![n; self.size])?;
            self.reduce_parts(call, parts.bytes(), own.bytes_mut());
            self.library.gather(own.bytes(), chunk, &pieces)?;
        }
        Ok(())
    }

    /// Bytes from each to each, whose lengths are known everywhere.
    fn hand_out(&self, call: &Call, from: &[u8], give: &[usize], to: &mut [u8], take: &[usize]) -> Result<()> {
        self.told(call, self.library.exchange(from, give, to, take))
    }

    /// `n` for one process, nothing for the others.
    fn only(&self, rank: usize, n: usize) -> Vec<usize> {
        (0..self.size).map(|r| if r == rank { n } else { 0 }).collect()
    }
}

impl<M: Mover> Backend for Moved<M> {
    fn name(&self) -> &'static str {
        M::NAME
    }

    fn is_deaf(&self) -> bool {
        M::DEAF
    }

    fn barrier(&self) -> Result<()> {
        let call = Call::new(Action::Barrier, DType::UInt8, 0);
        self.agree(&call)?;
        self.told(&call, self.library.barrier())
    }

    fn all_reduce(&self, call: &Call, data: &mut [u8]) -> Result<()> {
        self.agree(call)?;
        self.told(call, self.reduced(call, data))
    }

    fn reduce(&self, call: &Call, data: &mut [u8]) -> Result<()> {
        if self.rank == call.root as usize {
            return self.all_reduce(call, data);
        }
        // Others keep theirs.
        let mut own = Buffer::uninit(data.len());
        own.bytes_mut().copy_from_slice(data);
        self.all_reduce(call, own.bytes_mut())
    }

    fn broadcast(&self, call: &Call, data: &mut [u8]) -> Result<()> {
        self.agree(call)?;
        self.told(call, self.library.broadcast(call.root as usize, data))
    }

    fn all_gather(&self, call: &Call, mine: &[u8], all: &mut [u8]) -> Result<()> {
        self.agree(call)?;
        self.told(call, self.library.gather(mine, all, &vec![mine.len(); self.size]))
    }

    fn gather(&self, call: &Call, mine: &[u8], all: &mut [u8]) -> Result<()> {
        self.agree(call)?;
        let root = call.root as usize;
        let taken = if self.rank == root { mine.len() } else { 0 };
        self.hand_out(call, mine, &self.only(root, mine.len()), all, &vec![taken; self.size])
    }

    fn scatter(&self, call: &Call, all: &[u8], mine: &mut [u8]) -> Result<()> {
        self.agree(call)?;
        let root = call.root as usize;
        let given = if self.rank == root { mine.len() } else { 0 };
        let take = self.only(root, mine.len());
        self.hand_out(call, all, &vec![given; self.size], mine, &take)
    }

    fn reduce_scatter(&self, call: &Call, all: &[u8], mine: &mut [u8]) -> Result<()> {
        self.agree(call)?;
        let lens = vec![mine.len(); self.size];
        let mut taken = Buffer::uninit(mine.len() * self.size);
        self.hand_out(call, all, &lens, taken.bytes_mut(), &lens)?;
        self.reduce_parts(call, taken.bytes(), mine);
        Ok(())
    }

    fn all_to_all(&self, call: &Call, give: &[&[u8]], take: &mut [&mut [u8]]) -> Result<()> {
        self.agree(call)?;
        // Lengths are told first, so that a part never meets a place of another length.
        let told: Vec<u8> = give.iter().flat_map(|p| (p.len() as u64).to_le_bytes()).collect();
        let (mut lengths, eights) = (vec![0; told.len()], vec![8; self.size]);
        self.hand_out(call, &told, &eights, &mut lengths, &eights)?;
        let theirs: Vec<usize> =
            lengths.chunks_exact(8).map(|b| u64::from_le_bytes(b.try_into().expect("eight bytes")) as usize).collect();
        let mut room = Buffer::try_uninit(theirs.iter().sum())?;
        let lens: Vec<usize> = give.iter().map(|p| p.len()).collect();
        self.hand_out(call, &give.concat(), &lens, room.bytes_mut(), &theirs)?;
        if let Some(rank) = theirs.iter().zip(&*take).position(|(n, place)| *n != place.len()) {
            return Err(Error::invalid(format!(
                "rank {rank} gives {} bytes, the place for them has {}",
                theirs[rank],
                take[rank].len()
            ))
            .in_op("alltoall"));
        }
        let mut rest = room.bytes();
        for place in take {
            let (now, later) = rest.split_at(place.len());
            place.copy_from_slice(now);
            rest = later;
        }
        Ok(())
    }

    fn send(&self, call: &Call, to: usize, data: &[u8]) -> Result<()> {
        self.check(call.action)?;
        let sent = self.library.send(to, &call.encode()).and_then(|()| self.library.send(to, data));
        self.told(call, sent)
    }

    fn recv(&self, call: &Call, from: usize, data: &mut [u8]) -> Result<()> {
        self.check(call.action)?;
        let mut head = [0; Call::BYTES];
        self.told(call, self.library.recv(from, &mut head)).map_err(|e| e.in_op("recv"))?;
        if head != call.encode() {
            let theirs = Call::decode(&head).map_or("something else".into(), |c| c.to_string());
            // What follows is of another length.
            let error = disagreement(call, self.rank, &theirs, from);
            return self.told(call, Err(error)).map_err(|e| e.in_op("recv"));
        }
        self.told(call, self.library.recv(from, data)).map_err(|e| e.in_op("recv"))
    }

    fn abort(&self, why: &str) {
        if self.over.set(why.into()).is_ok() {
            self.library.close();
        }
    }
}
