//! Collectives between GPUs by NCCL, which is looked for when a group first asks for it.

use crate::device::Device;
use crate::driver::Handle;
use crate::fault::{Fault, Missing, Result};
use crate::library::{functions, open};
use crate::memory::Block;
use sampan_formula::DType;
use std::sync::OnceLock;

/// What one process makes and all processes of a group must know to find each other.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Id(pub [u8; 128]);

functions! {
    /// libnccl.
    Nccl {
        unique_id = "ncclGetUniqueId": fn(*mut Id);
        init = "ncclCommInitRank": fn(*mut Handle, i32, Id, i32);
        abort = "ncclCommAbort": fn(Handle);
        all_reduce = "ncclAllReduce": fn(u64, u64, usize, i32, i32, Handle, Handle);
        reduce = "ncclReduce": fn(u64, u64, usize, i32, i32, i32, Handle, Handle);
        broadcast = "ncclBroadcast": fn(u64, u64, usize, i32, i32, Handle, Handle);
        all_gather = "ncclAllGather": fn(u64, u64, usize, i32, Handle, Handle);
        reduce_scatter = "ncclReduceScatter": fn(u64, u64, usize, i32, i32, Handle, Handle);
        send = "ncclSend": fn(u64, usize, i32, i32, Handle, Handle);
        recv = "ncclRecv": fn(u64, usize, i32, i32, Handle, Handle);
        begin = "ncclGroupStart": fn();
        end = "ncclGroupEnd": fn();
    }
}

const NAMES: [&str; 3] = ["libnccl.so.2", "libnccl.so", "/usr/local/cuda/lib64/libnccl.so.2"];

/// The library, looked for once.
fn nccl() -> std::result::Result<&'static Nccl, Missing> {
    static NCCL: OnceLock<std::result::Result<Nccl, Missing>> = OnceLock::new();
    let find = || {
        let hint = "install NCCL, or `pip install nvidia-nccl-cu12`";
        Nccl::load(open(&NAMES, "NVIDIA's library for collectives", hint)?)
    };
    NCCL.get_or_init(find).as_ref().map_err(Clone::clone)
}

/// Can it be used here? Why not.
pub fn available() -> std::result::Result<(), Missing> {
    nccl().map(drop)
}

fn check(function: &'static str, status: i32) -> Result<()> {
    let said = match status {
        0 => return Ok(()),
        1 => "a call of CUDA failed".into(),
        2 => "a call of the system failed (NCCL_DEBUG=WARN says which)".into(),
        4 | 5 => "an argument is wrong, or two processes share a GPU".into(),
        6 => "another process is lost, or the network failed".into(),
        other => format!("NCCL's error {other}"),
    };
    Err(Fault::Call { function, said })
}

/// NCCL's number of a dtype; none for those it does not know.
fn kind(dtype: DType) -> Option<i32> {
    Some(match dtype {
        DType::Int8 => 0,
        DType::UInt8 | DType::Bool => 1,
        DType::Int32 => 2,
        DType::Int64 => 4,
        DType::Float16 => 6,
        DType::Float32 => 7,
        DType::Float64 => 8,
        DType::BFloat16 => 9,
        _ => return None,
    })
}

/// How values become one, by NCCL's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
#[allow(missing_docs)]
pub enum Reduction {
    Sum = 0,
    Prod = 1,
    Max = 2,
    Min = 3,
    Avg = 4,
}

/// A number that lets processes find each other.
pub fn unique_id() -> Result<Id> {
    let nccl = nccl().map_err(Fault::Missing)?;
    let mut id = Id([0; 128]);
    // SAFETY: it writes 128 bytes.
    check("ncclGetUniqueId", unsafe { (nccl.unique_id)(&mut id) })?;
    Ok(id)
}

/// A group of processes, each with a GPU. Calls go to the GPU's stream, in order with all other work.
pub struct Communicator {
    nccl: &'static Nccl,
    device: &'static Device,
    handle: Handle,
}

// SAFETY: calls come one at a time, as the group's lane sees to; the handle may be used from any thread.
unsafe impl Send for Communicator {}
// SAFETY: as above.
unsafe impl Sync for Communicator {}

impl Communicator {
    /// Meets the others, who have the same id.
    pub fn new(device: &'static Device, id: Id, rank: usize, size: usize) -> Result<Communicator> {
        let nccl = nccl().map_err(Fault::Missing)?;
        device.enter()?;
        let mut handle: Handle = std::ptr::null_mut();
        // SAFETY: it writes a handle; the id is passed by value, as its header says.
        check("ncclCommInitRank", unsafe { (nccl.init)(&mut handle, size as i32, id, rank as i32) })?;
        Ok(Communicator { nccl, device, handle })
    }

    /// The GPU of this process.
    pub fn device(&self) -> &'static Device {
        self.device
    }

    /// Does NCCL know the dtype?
    pub fn knows(dtype: DType) -> bool {
        kind(dtype).is_some()
    }

    fn count(&self, block: &Block, dtype: DType, parts: usize) -> (usize, i32) {
        (block.len() / dtype.size() / parts, kind(dtype).expect("`knows` was asked"))
    }

    /// `to` becomes the reduction of everybody's `from`.
    pub fn all_reduce(&self, from: &Block, to: &Block, dtype: DType, how: Reduction) -> Result<()> {
        assert_eq!(from.len(), to.len());
        self.device.enter()?;
        let (count, kind) = self.count(from, dtype, 1);
        let (a, b) = (from.address(), to.address());
        // SAFETY: both blocks have as many elements, and live until the stream is waited for.
        check("ncclAllReduce", unsafe {
            (self.nccl.all_reduce)(a, b, count, kind, how as i32, self.handle, self.device.stream)
        })
    }

    /// `to` of the root becomes the reduction of everybody's `from`.
    pub fn reduce(&self, from: &Block, to: &Block, dtype: DType, how: Reduction, root: usize) -> Result<()> {
        assert_eq!(from.len(), to.len());
        self.device.enter()?;
        let (count, kind) = self.count(from, dtype, 1);
        let (a, b, root) = (from.address(), to.address(), root as i32);
        // SAFETY: as in `all_reduce`.
        check("ncclReduce", unsafe {
            (self.nccl.reduce)(a, b, count, kind, how as i32, root, self.handle, self.device.stream)
        })
    }

    /// `data` becomes the root's.
    pub fn broadcast(&self, data: &Block, root: usize) -> Result<()> {
        self.device.enter()?;
        let (count, kind) = self.count(data, DType::UInt8, 1);
        let at = data.address();
        // SAFETY: as in `all_reduce`.
        check("ncclBroadcast", unsafe {
            (self.nccl.broadcast)(at, at, count, kind, root as i32, self.handle, self.device.stream)
        })
    }

    /// `all` becomes everybody's `mine`, one after the other.
    pub fn all_gather(&self, mine: &Block, all: &Block) -> Result<()> {
        self.device.enter()?;
        let (count, kind) = self.count(mine, DType::UInt8, 1);
        let (a, b) = (mine.address(), all.address());
        // SAFETY: `all` has room for everybody's, and both live until the stream is waited for.
        check("ncclAllGather", unsafe { (self.nccl.all_gather)(a, b, count, kind, self.handle, self.device.stream) })
    }

    /// `mine` becomes the reduction of one part of everybody's `all`.
    pub fn reduce_scatter(&self, all: &Block, mine: &Block, dtype: DType, how: Reduction) -> Result<()> {
        self.device.enter()?;
        let (count, kind) = self.count(mine, dtype, 1);
        let (a, b) = (all.address(), mine.address());
        // SAFETY: `all` has a part for everybody, and both live until the stream is waited for.
        check("ncclReduceScatter", unsafe {
            (self.nccl.reduce_scatter)(a, b, count, kind, how as i32, self.handle, self.device.stream)
        })
    }

    /// Gives bytes to others and takes bytes from them, all at once: pairs of a place and a process.
    pub fn exchange(&self, give: &[(&Block, usize)], take: &[(&Block, usize)]) -> Result<()> {
        self.device.enter()?;
        let kind = kind(DType::UInt8).expect("bytes are known");
        let stream = self.device.stream;
        // SAFETY: the library is open.
        check("ncclGroupStart", unsafe { (self.nccl.begin)() })?;
        let sent = give.iter().filter(|(b, _)| !b.is_empty()).try_for_each(|(b, to)| {
            // SAFETY: the block is read until the stream is waited for.
            check("ncclSend", unsafe { (self.nccl.send)(b.address(), b.len(), kind, *to as i32, self.handle, stream) })
        });
        let taken = take.iter().filter(|(b, _)| !b.is_empty()).try_for_each(|(b, from)| {
            // SAFETY: the block is written until the stream is waited for.
            check("ncclRecv", unsafe {
                (self.nccl.recv)(b.address(), b.len(), kind, *from as i32, self.handle, stream)
            })
        });
        // SAFETY: it ends what was begun above.
        check("ncclGroupEnd", unsafe { (self.nccl.end)() })?;
        sent.and(taken)
    }

    /// Ends the group at once; calls that wait return with an error.
    pub fn abort(&self) {
        // SAFETY: the handle is NCCL's; after this nobody uses it, since the group says that it is at an end.
        let _ = unsafe { (self.nccl.abort)(self.handle) };
    }
}
