//! What an engine does for a group of processes.

use sampan_core::{DType, Error, Result};
use std::fmt;

/// How values of several processes become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ReduceOp {
    /// The sum.
    Sum = 0,
    /// The largest; NaN if there is one.
    Max = 1,
    /// The smallest; NaN if there is one.
    Min = 2,
    /// The product.
    Prod = 3,
    /// The mean.
    Avg = 4,
}

impl ReduceOp {
    /// All of them; each is at the place of its number.
    pub const ALL: [ReduceOp; 5] = [ReduceOp::Sum, ReduceOp::Max, ReduceOp::Min, ReduceOp::Prod, ReduceOp::Avg];
}

/// What values are, and how they become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arithmetic {
    /// The type of the values.
    pub dtype: DType,
    /// The operation.
    pub op: ReduceOp,
}

impl Arithmetic {
    /// Checked: complex numbers have no order.
    pub fn new(dtype: DType, op: ReduceOp) -> Result<Arithmetic> {
        if dtype.is_complex() && matches!(op, ReduceOp::Max | ReduceOp::Min) {
            return Err(Error::dtype(format!("{dtype} numbers have no order, so there is no {op:?} of them"))
                .hint("reduce their real and imaginary parts"));
        }
        Ok(Arithmetic { dtype, op })
    }
}

/// What is done together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum Action {
    Barrier,
    AllReduce,
    Reduce,
    Broadcast,
    AllGather,
    Gather,
    Scatter,
    ReduceScatter,
    AllToAll,
    Send,
}

impl Action {
    const ALL: [(Action, &str); 10] = [
        (Action::Barrier, "barrier"),
        (Action::AllReduce, "all_reduce"),
        (Action::Reduce, "reduce"),
        (Action::Broadcast, "broadcast"),
        (Action::AllGather, "all_gather"),
        (Action::Gather, "gather"),
        (Action::Scatter, "scatter"),
        (Action::ReduceScatter, "reduce_scatter"),
        (Action::AllToAll, "alltoall"),
        (Action::Send, "send"),
    ];

    /// Paddle's name.
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }
}

/// A call, as processes tell each other of it: all must make the same one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// What is done.
    pub action: Action,
    /// With what.
    pub dtype: DType,
    /// Reduced how; the sum where nothing is reduced.
    pub op: ReduceOp,
    /// From or to whom; zero where all are alike.
    pub root: u32,
    /// How many values each process gives, or gets.
    pub count: u64,
}

impl Call {
    /// Bytes on the wire.
    pub const BYTES: usize = 16;

    /// A call without a root.
    pub fn new(action: Action, dtype: DType, count: usize) -> Call {
        Call { action, dtype, op: ReduceOp::Sum, root: 0, count: count as u64 }
    }

    /// The same with a root.
    pub fn root(self, root: usize) -> Call {
        Call { root: root as u32, ..self }
    }

    /// The same with an operation.
    pub fn op(self, op: ReduceOp) -> Call {
        Call { op, ..self }
    }

    /// The operation and what it is done with.
    pub fn arithmetic(&self) -> Arithmetic {
        Arithmetic { dtype: self.dtype, op: self.op }
    }

    /// As bytes.
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..3].copy_from_slice(&[self.action as u8, self.dtype as u8, self.op as u8]);
        bytes[4..8].copy_from_slice(&self.root.to_le_bytes());
        bytes[8..].copy_from_slice(&self.count.to_le_bytes());
        bytes
    }

    /// From bytes, if they are a call.
    pub fn decode(bytes: &[u8; Self::BYTES]) -> Option<Call> {
        Some(Call {
            action: Action::ALL.get(bytes[0] as usize)?.0,
            dtype: *DType::ALL.iter().find(|d| **d as u8 == bytes[1])?,
            op: *ReduceOp::ALL.get(bytes[2] as usize)?,
            root: u32::from_le_bytes(bytes[4..8].try_into().ok()?),
            count: u64::from_le_bytes(bytes[8..].try_into().ok()?),
        })
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Call { action, dtype, op, root, count } = self;
        write!(f, "{}", action.name())?;
        match action {
            Action::Barrier => Ok(()),
            Action::AllReduce | Action::ReduceScatter => write!(f, "({count} {dtype}, {op:?})"),
            Action::Reduce => write!(f, "({count} {dtype}, {op:?}, dst={root})"),
            Action::Broadcast | Action::Scatter => write!(f, "({count} {dtype}, src={root})"),
            Action::Gather => write!(f, "({count} {dtype}, dst={root})"),
            Action::AllToAll => write!(f, "({dtype})"),
            Action::AllGather | Action::Send => write!(f, "({count} {dtype})"),
        }
    }
}

/// The error of processes that do not do the same.
pub fn disagreement(mine: &Call, rank: usize, theirs: &str, their_rank: usize) -> Error {
    Error::new(
        sampan_core::error::Kind::PreconditionNotMet,
        format!("rank {rank} is at {mine}, rank {their_rank} at {theirs}; all must do the same in the same order"),
    )
    .hint("is a call inside a condition that differs between processes, or do shapes differ?")
    .in_op(mine.action.name())
}

/// An engine: it moves and reduces bytes between the processes of one group. Ranks are those within the group.
///
/// Collectives of one group come one at a time, in the same order everywhere. `send` and `recv` may run beside them, one
/// of each for a pair of processes at a time. Whatever goes wrong, every process of the group gets an error within the
/// group's timeout. Values are reduced in the order of the ranks, and halves in float32 with one rounding at the end, so
/// that every engine gives the same bits.
pub trait Backend: Send + Sync {
    /// Its name.
    fn name(&self) -> &'static str;
    /// Waits for all.
    fn barrier(&self) -> Result<()>;
    /// `data` becomes the reduction of all.
    fn all_reduce(&self, call: &Call, data: &mut [u8]) -> Result<()>;
    /// `data` of the root becomes the reduction of all; the others keep theirs.
    fn reduce(&self, call: &Call, data: &mut [u8]) -> Result<()>;
    /// `data` becomes that of the root.
    fn broadcast(&self, call: &Call, data: &mut [u8]) -> Result<()>;
    /// `all` becomes everybody's `mine`, one after the other.
    fn all_gather(&self, call: &Call, mine: &[u8], all: &mut [u8]) -> Result<()>;
    /// The same at the root alone, whose `all` is not empty.
    fn gather(&self, call: &Call, mine: &[u8], all: &mut [u8]) -> Result<()>;
    /// `mine` becomes one part of `all` of the root, whose `all` is not empty.
    fn scatter(&self, call: &Call, all: &[u8], mine: &mut [u8]) -> Result<()>;
    /// `mine` becomes the reduction of one part of everybody's `all`.
    fn reduce_scatter(&self, call: &Call, all: &[u8], mine: &mut [u8]) -> Result<()>;
    /// Everybody gives each other one part, of any length; the part for oneself goes along.
    fn all_to_all(&self, call: &Call, give: &[&[u8]], take: &mut [&mut [u8]]) -> Result<()>;
    /// Gives bytes to one process.
    fn send(&self, call: &Call, to: usize, data: &[u8]) -> Result<()>;
    /// Takes bytes from one process.
    fn recv(&self, call: &Call, from: usize, data: &mut [u8]) -> Result<()>;
    /// Does a call that waits hear nothing of an interruption? Then it is left on a thread of its own.
    fn is_deaf(&self) -> bool {
        false
    }
    /// Tells all that the group is at an end, and why.
    fn abort(&self, why: &str);
}
