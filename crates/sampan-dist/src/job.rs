//! The processes that this one works with.

use crate::backend::ReduceOp;
use crate::engine::Engine;
use crate::group::{Group, Plan};
use crate::secret::Secret;
use crate::store::{Store, StoreServer};
use crate::world::{GENERATION, World};
use parking_lot::Mutex;
use sampan_core::error::Kind;
use sampan_core::{Error, Result, Tensor};
use sampan_nn::joint::{Joint, set_joint};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// How processes meet.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The engine of the group of all.
    pub engine: Engine,
    /// How long a collective may wait for a process; Paddle's half hour.
    pub timeout: Duration,
    /// How long processes wait for each other at the start.
    pub patience: Duration,
}

impl Default for Options {
    fn default() -> Options {
        let timeout = Duration::from_secs(1800);
        Options { engine: Engine::Auto, timeout, patience: Duration::from_secs(300) }
    }
}

/// A length of time that somebody wrote: at most thirty years, which clocks can still add.
pub(crate) fn seconds(text: &str) -> Option<Duration> {
    let value = text.parse().ok().filter(|s| (0.0..=1e9).contains(s))?;
    Duration::try_from_secs_f64(value).ok()
}

fn seconds_of(name: &str) -> Result<Option<Duration>> {
    let Ok(text) = std::env::var(name) else { return Ok(None) };
    let wrong =
        || Error::invalid(format!("{name} should be a number of seconds, above 0 and at most 1e9, got {text:?}"));
    Ok(Some(seconds(&text).filter(|s| !s.is_zero()).ok_or_else(wrong)?))
}

/// How long processes wait for each other at the start, if `SAMPAN_PATIENCE` says it.
pub(crate) fn patience() -> Result<Option<Duration>> {
    seconds_of("SAMPAN_PATIENCE")
}

impl Options {
    /// The defaults, unless `SAMPAN_BACKEND`, `SAMPAN_TIMEOUT` or `SAMPAN_PATIENCE` (seconds) say otherwise.
    pub fn from_env() -> Result<Options> {
        let mut options = Options::default();
        if let Ok(name) = std::env::var("SAMPAN_BACKEND") {
            options.engine = Engine::named(&name)?;
        }
        options.timeout = seconds_of("SAMPAN_TIMEOUT")?.unwrap_or(options.timeout);
        options.patience = patience()?.unwrap_or(options.patience);
        Ok(options)
    }
}

/// A job that this process takes part in.
pub struct Job {
    world: World,
    options: Options,
    store: Option<Store>,
    /// Kept by rank 0, where nobody else does.
    _server: Option<StoreServer>,
    groups: Mutex<Vec<Group>>,
}

/// How often this process has met others; all processes have as often.
static JOINED: AtomicUsize = AtomicUsize::new(0);
static JOB: Mutex<Option<Arc<Job>>> = Mutex::new(None);

impl Job {
    /// Meets the other processes of the job.
    pub fn join(world: World, options: Options) -> Result<Job> {
        let (mut server, mut store) = (None, None);
        if world.size > 1 {
            let (address, kept) = world.meeting_place()?;
            let secret = Secret::from_env()?;
            if !kept && world.rank == 0 {
                server = Some(StoreServer::start(&address, secret.clone())?);
            }
            let generation = std::env::var(GENERATION).unwrap_or_default();
            let connected = Store::connect(&address, secret, options.patience)?;
            // Whoever leaves and meets again finds nothing of the first time.
            let time = JOINED.fetch_add(1, Ordering::Relaxed);
            let met = connected.within(&format!("job{generation}-{time}"), options.patience)?;
            // Whoever counts otherwise would wait for others, or others for it.
            let size = met.propose("size", world.size.to_string().as_bytes())?;
            if size != world.size.to_string().as_bytes() {
                let theirs = String::from_utf8_lossy(&size).into_owned();
                return Err(Error::invalid(format!(
                    "rank {} was told that there are {} processes, another one that there are {theirs}",
                    world.rank, world.size
                ))
                .hint("start all of them with the same number of processes")
                .in_op("init_parallel_env"));
            }
            store = Some(met);
        }
        let job = Job { world, options, store, _server: server, groups: Mutex::default() };
        job.new_group((0..job.world.size).collect(), options.engine, options.timeout)?;
        Ok(job)
    }

    /// The place of this process.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// The store where its processes meet; there is none where there is one process.
    pub fn store(&self) -> Option<&Store> {
        self.store.as_ref()
    }

    /// The group of all, or another one by its number.
    pub fn group(&self, id: usize) -> Option<Group> {
        self.groups.lock().get(id).cloned()
    }

    /// The group of all processes.
    pub fn everybody(&self) -> Group {
        self.group(0).unwrap_or_else(Group::alone)
    }

    /// A group of some processes. All processes of the job call it, members or not, in the same order.
    pub fn new_group(&self, ranks: Vec<usize>, engine: Engine, timeout: Duration) -> Result<Group> {
        let size = self.world.size;
        if let Some(bad) = ranks.iter().find(|r| **r >= size) {
            return Err(Error::invalid(format!("rank {bad} is not one of {size} processes")).in_op("new_group"));
        }
        if (1..ranks.len()).any(|i| ranks[..i].contains(&ranks[i])) {
            return Err(Error::invalid(format!("a rank is twice in {ranks:?}")).in_op("new_group"));
        }
        let id = self.groups.lock().len();
        let plan = Plan {
            id,
            ranks,
            me: self.world.rank,
            store: self.store.as_ref(),
            engine,
            timeout,
            patience: self.options.patience,
        };
        let op = if id == 0 { "init_parallel_env" } else { "new_group" };
        let group = Group::connect(plan).map_err(|e| e.in_op(op))?;
        self.groups.lock().push(group.clone());
        Ok(group)
    }

    /// The timeout of new groups.
    pub fn timeout(&self) -> Duration {
        self.options.timeout
    }
}

/// Meets the other processes, as the environment says, once; afterwards it gives the same job. They share the processor,
/// so each uses its share of the threads.
pub fn init_parallel_env() -> Result<Arc<Job>> {
    init_parallel_env_with(Options::from_env()?)
}

/// [`init_parallel_env`] with options.
pub fn init_parallel_env_with(options: Options) -> Result<Arc<Job>> {
    let mut held = JOB.lock();
    if let Some(job) = &*held {
        return Ok(job.clone());
    }
    let world = World::from_env()?;
    let (size, local) = (world.size, world.local_size);
    let job = Arc::new(Job::join(world, options)?);
    if size > 1 {
        // Unless somebody has said how many.
        if std::env::var_os("SAMPAN_NUM_THREADS").is_none_or(|n| n.is_empty()) {
            let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
            sampan_core::set_num_threads((cores / local).max(1));
        }
        set_joint(Some(Arc::new(Everybody(job.everybody()))));
    }
    *held = Some(job.clone());
    Ok(job)
}

/// All processes, as layers see them that count over all.
struct Everybody(Group);

impl Joint for Everybody {
    fn size(&self) -> usize {
        self.0.size()
    }
    fn sum(&self, tensor: &Tensor) -> Result<()> {
        self.0.all_reduce(tensor, ReduceOp::Sum)
    }
}

/// The job, if processes have met.
pub fn current() -> Option<Arc<Job>> {
    JOB.lock().clone()
}

/// The job; alone there is nobody to meet.
pub fn require(op: &str) -> Result<Arc<Job>> {
    match current() {
        Some(job) => Ok(job),
        None if World::from_env()?.size == 1 => init_parallel_env(),
        None => Err(Error::new(Kind::PreconditionNotMet, "the processes have not met")
            .hint("call init_parallel_env() first")
            .in_op(op)),
    }
}

/// Leaves the job: a later [`init_parallel_env`] meets anew.
pub fn destroy() {
    set_joint(None);
    let old = JOB.lock().take();
    drop(old);
}
