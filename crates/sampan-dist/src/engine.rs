//! Which engine a group uses.

use crate::backend::Backend;
use crate::gloo::{self, Gloo};
use crate::moved::Moved;
use crate::mpi::Mpi;
use crate::nccl::{self, Nccl};
use crate::shared_memory::SharedMemory;
use crate::store::Store;
use crate::sys;
use crate::tcp::Tcp;
use crate::wire::unavailable;
use sampan_core::{Error, Result};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Which engine a group uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// The best that all processes have.
    Auto,
    /// Memory that processes of one machine share.
    SharedMemory,
    /// TCP between any machines.
    Tcp,
    /// Gloo of the system between any machines; where a process has none, as `Auto`.
    Gloo,
    /// NCCL between GPUs.
    Nccl,
    /// MPI, in a program that mpirun started.
    Mpi,
}

impl Engine {
    /// An engine by its name. Paddle's names of engines for devices that are not known here mean the best one.
    pub fn named(name: &str) -> Result<Engine> {
        match name {
            "auto" | "bkcl" | "xccl" => Ok(Engine::Auto),
            "gloo" => Ok(Engine::Gloo),
            "shared_memory" | "shm" => Ok(Engine::SharedMemory),
            "tcp" => Ok(Engine::Tcp),
            "mpi" => Ok(Engine::Mpi),
            "nccl" => match nccl::why_not() {
                None => Ok(Engine::Nccl),
                Some(why) => Err(unavailable(format!("NCCL cannot be used: {why}")).hint(
                    "backend='auto' chooses shared memory or TCP; tensors on a GPU go through the memory of the host",
                )),
            },
            _ => Err(Error::invalid(format!("there is no backend {name:?}"))
                .hint("auto, shared_memory, tcp, gloo, nccl or mpi")),
        }
    }

    /// The engine that all members can use, and why.
    pub(crate) fn choose(
        self,
        id: usize,
        store: Store,
        rank: usize,
        ranks: &[usize],
        timeout: Duration,
        deadline: Instant,
    ) -> Result<(Arc<dyn Backend>, String)> {
        let size = ranks.len();
        let said = format!("{self:?} {}", sys::machine());
        let all = store.gather("machines", rank, size, said.as_bytes(), deadline)?;
        let engine_of = |s: &[u8]| s.split(|b| *b == b' ').next().unwrap_or_default().to_vec();
        if let Some(other) = all.iter().position(|s| engine_of(s) != engine_of(said.as_bytes())) {
            let theirs = String::from_utf8_lossy(&engine_of(&all[other])).into_owned();
            return Err(Error::invalid(format!("rank {rank} wants the engine {self:?}, rank {other} {theirs}")));
        }
        let asked = "it was asked for".to_string();
        if self == Engine::Mpi {
            return Ok((Arc::new(Moved::new(Mpi::connect(id, ranks, ranks[rank])?)), asked));
        }
        if self == Engine::Nccl {
            let engine = Nccl::connect(Some(&store), rank, size, gpu(ranks[rank]), deadline)?;
            return Ok((Arc::new(engine), asked));
        }
        let mut without = String::new();
        if self == Engine::Gloo {
            let mine = gloo::why_not().unwrap_or_default();
            let all = store.gather("gloo-here", rank, size, mine.as_bytes(), deadline)?;
            let Some(other) = all.iter().position(|why| !why.is_empty()) else {
                let engine = Gloo::connect(&store, rank, size, timeout, deadline)?;
                return Ok((Arc::new(Moved::new(engine)), asked));
            };
            let missing = String::from_utf8_lossy(&all[other]);
            without = format!("Gloo was asked for, but rank {other} has none ({missing}); ");
        }
        let together = all.iter().all(|s| *s == all[0]) && cfg!(target_os = "linux");
        let mut why = match (self, together) {
            (Engine::Tcp, _) | (Engine::SharedMemory, true) => asked,
            (_, false) => "the processes are on several machines, or may not share memory".into(),
            (_, true) => "all processes are on one machine".into(),
        };
        if self != Engine::Tcp && together {
            match SharedMemory::connect(&store, rank, size, timeout, deadline) {
                Ok(engine) => return Ok((Arc::new(engine), without + &why)),
                Err(e) if self == Engine::SharedMemory || e.message().contains("in time") => return Err(e),
                Err(e) => why = e.message().to_string(),
            }
        } else if self == Engine::SharedMemory {
            return Err(unavailable(why).hint("backend='auto' or 'tcp' works between machines"));
        }
        Ok((Arc::new(Tcp::connect(store, rank, size, timeout, deadline)?), without + &why))
    }
}

/// The GPU of a process: the one that the launcher gave it, else by its number.
pub(crate) fn gpu(rank: usize) -> usize {
    let told = std::env::var("FLAGS_selected_gpus").ok().and_then(|g| g.split(',').next()?.trim().parse().ok());
    told.unwrap_or_else(|| rank % sampan_cuda::count().unwrap_or(1).max(1))
}
