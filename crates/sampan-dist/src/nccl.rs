//! The engine between GPUs: NCCL, loaded at run time. Values come from the memory of the host and go back there; in between
//! they travel from GPU to GPU.

use crate::backend::{Backend, Call, ReduceOp};
use crate::store::Store;
use crate::wire::unavailable;
use parking_lot::Mutex;
use sampan_core::{DType, Error, Result};
use sampan_cuda::nccl::{Communicator, Id, Reduction, available, unique_id};
use sampan_cuda::{Block, Device};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Can NCCL be used in this process? Why not.
pub fn why_not() -> Option<String> {
    match sampan_cuda::count() {
        Err(missing) => return Some(missing.0),
        Ok(0) => return Some("there is no GPU".into()),
        Ok(_) => {}
    }
    available().err().map(|missing| missing.0)
}

/// A communicator; one call at a time, since all of them go to one stream.
pub struct Nccl {
    comm: Mutex<Communicator>,
    over: AtomicBool,
}

fn fault(e: impl std::fmt::Display) -> Error {
    unavailable(e.to_string())
}

impl Nccl {
    /// Meets the others, by a number that the first one writes into the store; alone there is none.
    pub fn connect(store: Option<&Store>, rank: usize, size: usize, gpu: usize, deadline: Instant) -> Result<Nccl> {
        if let Some(why) = why_not() {
            return Err(unavailable(why));
        }
        let own = if rank == 0 { unique_id().map_err(fault)?.0.to_vec() } else { Vec::new() };
        let id = match store {
            Some(store) => store.gather("nccl", rank, size, &own, deadline)?.swap_remove(0),
            None => own,
        };
        let id: [u8; 128] = id.try_into().map_err(|_| unavailable("the number of the first process is no NCCL id"))?;
        let device = sampan_cuda::device(gpu).map_err(fault)?;
        let comm = Communicator::new(device, Id(id), rank, size).map_err(fault)?;
        Ok(Nccl { comm: Mutex::new(comm), over: AtomicBool::new(false) })
    }

    fn with<R>(&self, act: impl FnOnce(&Communicator, &'static Device) -> Outcome<R>) -> Result<R> {
        if self.over.load(Ordering::Acquire) {
            return Err(unavailable("the group is at an end"));
        }
        let comm = self.comm.lock();
        act(&comm, comm.device()).map_err(fault)
    }
}

type Outcome<R> = std::result::Result<R, sampan_cuda::Fault>;

fn put(device: &'static Device, bytes: &[u8]) -> Outcome<Block> {
    let block = device.alloc(bytes.len())?;
    device.upload(bytes, &block)?;
    Ok(block)
}

/// The places of parts, each with the rank it goes to or comes from.
fn with_ranks(parts: &[Block]) -> Vec<(&Block, usize)> {
    parts.iter().enumerate().map(|(rank, part)| (part, rank)).collect()
}

/// How NCCL reduces this; an error for what it does not know.
fn reduction(call: &Call) -> Result<(DType, Reduction)> {
    let how = match call.op {
        ReduceOp::Sum => Reduction::Sum,
        ReduceOp::Max => Reduction::Max,
        ReduceOp::Min => Reduction::Min,
        ReduceOp::Prod => Reduction::Prod,
        ReduceOp::Avg => Reduction::Avg,
    };
    match Communicator::knows(call.dtype)
        && (call.dtype != DType::Bool || matches!(how, Reduction::Max | Reduction::Min))
    {
        true => Ok((call.dtype, how)),
        false => Err(Error::dtype(format!("NCCL does not reduce {}", call.dtype))
            .hint("backend='auto' for this group takes every dtype")
            .in_op(call.action.name())),
    }
}

impl Backend for Nccl {
    fn name(&self) -> &'static str {
        "nccl"
    }

    fn barrier(&self) -> Result<()> {
        self.with(|comm, device| {
            let block = put(device, &[0; 4])?;
            comm.all_reduce(&block, &block, DType::Int32, Reduction::Sum)?;
            device.wait()
        })
    }

    fn all_reduce(&self, call: &Call, data: &mut [u8]) -> Result<()> {
        let (dtype, how) = reduction(call)?;
        self.with(|comm, device| {
            let block = put(device, data)?;
            comm.all_reduce(&block, &block, dtype, how)?;
            device.download(&block, data)
        })
    }

    fn reduce(&self, call: &Call, data: &mut [u8]) -> Result<()> {
        let (dtype, how) = reduction(call)?;
        self.with(|comm, device| {
            let (from, to) = (put(device, data)?, put(device, data)?);
            comm.reduce(&from, &to, dtype, how, call.root as usize)?;
            // Others get back what they gave.
            device.download(&to, data)
        })
    }

    fn broadcast(&self, call: &Call, data: &mut [u8]) -> Result<()> {
        self.with(|comm, device| {
            let block = put(device, data)?;
            comm.broadcast(&block, call.root as usize)?;
            device.download(&block, data)
        })
    }

    fn all_gather(&self, _: &Call, mine: &[u8], all: &mut [u8]) -> Result<()> {
        self.with(|comm, device| {
            let (from, to) = (put(device, mine)?, device.alloc(all.len())?);
            comm.all_gather(&from, &to)?;
            device.download(&to, all)
        })
    }

    fn gather(&self, call: &Call, mine: &[u8], all: &mut [u8]) -> Result<()> {
        self.with(|comm, device| {
            let from = put(device, mine)?;
            let parts = match all.is_empty() {
                true => Vec::new(),
                false => all.chunks(mine.len().max(1)).map(|p| device.alloc(p.len())).collect::<Outcome<Vec<_>>>()?,
            };
            comm.exchange(&[(&from, call.root as usize)], &with_ranks(&parts))?;
            device.wait()?;
            all.chunks_mut(mine.len().max(1)).zip(&parts).try_for_each(|(p, b)| device.download(b, p))
        })
    }

    fn scatter(&self, call: &Call, all: &[u8], mine: &mut [u8]) -> Result<()> {
        self.with(|comm, device| {
            let parts = all.chunks(mine.len().max(1)).map(|p| put(device, p)).collect::<Outcome<Vec<_>>>()?;
            let to = device.alloc(mine.len())?;
            comm.exchange(&with_ranks(&parts), &[(&to, call.root as usize)])?;
            device.download(&to, mine)
        })
    }

    fn reduce_scatter(&self, call: &Call, all: &[u8], mine: &mut [u8]) -> Result<()> {
        let (dtype, how) = reduction(call)?;
        self.with(|comm, device| {
            let (from, to) = (put(device, all)?, device.alloc(mine.len())?);
            comm.reduce_scatter(&from, &to, dtype, how)?;
            device.download(&to, mine)
        })
    }

    fn all_to_all(&self, _: &Call, give: &[&[u8]], take: &mut [&mut [u8]]) -> Result<()> {
        self.with(|comm, device| {
            let given = give.iter().map(|p| put(device, p)).collect::<Outcome<Vec<_>>>()?;
            let taken = take.iter().map(|p| device.alloc(p.len())).collect::<Outcome<Vec<_>>>()?;
            comm.exchange(&with_ranks(&given), &with_ranks(&taken))?;
            device.wait()?;
            take.iter_mut().zip(&taken).try_for_each(|(p, b)| device.download(b, p))
        })
    }

    fn send(&self, _: &Call, to: usize, data: &[u8]) -> Result<()> {
        self.with(|comm, device| {
            let block = put(device, data)?;
            comm.exchange(&[(&block, to)], &[])?;
            device.wait()
        })
    }

    fn recv(&self, _: &Call, from: usize, data: &mut [u8]) -> Result<()> {
        self.with(|comm, device| {
            let block = device.alloc(data.len())?;
            comm.exchange(&[], &[(&block, from)])?;
            device.download(&block, data)
        })
    }

    fn abort(&self, _: &str) {
        if !self.over.swap(true, Ordering::AcqRel) {
            self.comm.lock().abort();
        }
    }
}
