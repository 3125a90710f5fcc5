//! Processes that call collectives together.

mod collectives;
pub(crate) mod tensors;

use crate::backend::Backend;
use crate::engine::Engine;
use crate::lane::{Job, Lane, Task};
use crate::nccl::Nccl;
use crate::store::Store;
use parking_lot::Mutex;
use sampan_core::error::Kind;
use sampan_core::{Error, Result};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Processes of one group. A clone is the same group.
///
/// Collectives are called by all processes of the group, in the same order. Each comes in two forms: `all_reduce` waits,
/// `all_reduce_async` gives a [`Task`] at once. Ranks in arguments are those of the job.
#[derive(Clone)]
pub struct Group(Arc<Inner>);

struct Inner {
    id: usize,
    /// The ranks in the job of the members, in the order of their ranks in the group.
    ranks: Vec<usize>,
    /// The rank of this process in the group, if it is a member.
    rank: Option<usize>,
    /// None in a group of one.
    engine: Option<Arc<dyn Backend>>,
    why: String,
    collectives: Lane,
    /// A lane to and from each process: no message waits for another one's partner.
    messages: Mutex<HashMap<(usize, bool), Arc<Lane>>>,
}

/// What a group is made of.
pub struct Plan<'a> {
    /// A number of its own.
    pub id: usize,
    /// Its members, by their ranks in the job.
    pub ranks: Vec<usize>,
    /// The rank in the job of this process.
    pub me: usize,
    /// Where members meet: nobody else uses this part of the store.
    pub store: Option<&'a Store>,
    /// The engine.
    pub engine: Engine,
    /// How long a collective may wait for a process.
    pub timeout: Duration,
    /// How long members wait for each other now.
    pub patience: Duration,
}

impl Group {
    /// Meets the other members.
    pub fn connect(plan: Plan<'_>) -> Result<Group> {
        let Plan { id, ranks, me, store, engine, timeout, patience } = plan;
        let rank = ranks.iter().position(|r| *r == me);
        let (engine, why) = match (rank, store) {
            (Some(0), _) if ranks.len() == 1 && engine == Engine::Nccl => {
                let (gpu, deadline) = (crate::engine::gpu(me), Instant::now() + patience);
                let engine: Arc<dyn Backend> = Arc::new(Nccl::connect(None, 0, 1, gpu, deadline)?);
                (Some(engine), "it was asked for".into())
            }
            (Some(rank), Some(store)) if ranks.len() > 1 => {
                let deadline = Instant::now() + patience;
                let store = store.within(&format!("group{id}"), patience)?;
                let (engine, why) = engine.choose(id, store, rank, &ranks, timeout, deadline)?;
                // Nobody goes on, and perhaps ends, before all are connected.
                engine.barrier()?;
                (Some(engine), why)
            }
            (Some(_), None) if ranks.len() > 1 => {
                return Err(Error::new(Kind::PreconditionNotMet, "there is no store to meet at"));
            }
            (Some(_), _) => (None, "alone".into()),
            (None, _) => (None, "this process is not a member".into()),
        };
        let inner = Inner { id, ranks, rank, engine, why, collectives: Lane::default(), messages: Mutex::default() };
        Ok(Group(Arc::new(inner)))
    }

    /// A group of one process.
    pub fn alone() -> Group {
        let inner = Inner {
            id: 0,
            ranks: vec![0],
            rank: Some(0),
            engine: None,
            why: "alone".into(),
            collectives: Lane::default(),
            messages: Mutex::default(),
        };
        Group(Arc::new(inner))
    }

    /// Its number.
    pub fn id(&self) -> usize {
        self.0.id
    }

    /// The rank of this process in the group, if it is a member.
    pub fn rank(&self) -> Option<usize> {
        self.0.rank
    }

    /// How many processes it has.
    pub fn size(&self) -> usize {
        self.0.ranks.len()
    }

    /// The ranks in the job of its members.
    pub fn ranks(&self) -> &[usize] {
        &self.0.ranks
    }

    /// The name of its engine, and why it was chosen.
    pub fn backend(&self) -> (&'static str, &str) {
        (self.0.engine.as_ref().map_or("none", |e| e.name()), &self.0.why)
    }

    /// The rank in the group of a process of the job.
    pub fn rank_of(&self, rank: usize) -> Result<usize> {
        self.0.ranks.iter().position(|r| *r == rank).ok_or_else(|| {
            Error::invalid(format!("rank {rank} is not a member of the group of ranks {:?}", self.0.ranks))
        })
    }

    /// Ends the group: every member gets an error from calls that wait, and from later ones.
    pub fn abort(&self, why: &str) {
        if let Some(engine) = &self.0.engine {
            engine.abort(why);
        }
    }

    /// Waits until everything that was begun is done.
    pub fn finish(&self) -> Result<()> {
        self.0.collectives.run(Box::new(|| Ok(())))
    }

    fn member(&self, op: &str) -> Result<usize> {
        self.0.rank.ok_or_else(|| {
            let why = format!("this process is not a member of the group of ranks {:?}", self.0.ranks);
            Error::new(Kind::PreconditionNotMet, why).in_op(op)
        })
    }

    fn lane(&self, peer: usize, sends: bool) -> Arc<Lane> {
        self.0.messages.lock().entry((peer, sends)).or_default().clone()
    }
}

impl std::fmt::Debug for Group {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Group {} of ranks {:?} by {}", self.id(), self.ranks(), self.backend().0)
    }
}

/// Where a job runs.
enum On {
    Collectives,
    Messages(usize, bool),
}

impl Group {
    fn run(&self, on: On, job: Job) -> Result<()> {
        if let (Some(engine), Some(rank)) = (&self.0.engine, self.0.rank)
            && engine.is_deaf()
        {
            let task = self.start(on, job);
            let result = task.wait();
            if !task.is_completed() {
                engine.abort(&format!("rank {rank} was interrupted"));
            }
            return result;
        }
        match on {
            On::Collectives => self.0.collectives.run(job),
            On::Messages(peer, sends) => self.lane(peer, sends).run(job),
        }
    }

    fn start(&self, on: On, job: Job) -> Task {
        match on {
            On::Collectives => self.0.collectives.start(job),
            On::Messages(peer, sends) => self.lane(peer, sends).start(job),
        }
    }
}
