//! How launchers of several machines agree on who takes part, and hear of each other's end.
//!
//! A round has a number, its generation. In each round every launcher says that it is there; the keeper of the store closes
//! the round when enough are, and writes the roster. A failure, a lost launcher or a newcomer stops the round, and all meet
//! again in the next one.

use super::{Launch, pause};
use crate::secret::Secret;
use crate::store::Store;
use crate::wire::{self, unavailable};
use sampan_core::Result;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// A machine of a round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its address.
    pub host: String,
    /// Its processes.
    pub processes: usize,
    /// The launcher, by a number of its own.
    id: String,
    wanted: Option<usize>,
}

/// Who takes part in a round, in the order of their ranks.
pub struct Roster {
    pub generation: usize,
    pub nodes: Vec<Node>,
    me: usize,
}

impl Roster {
    /// All processes.
    pub fn size(&self) -> usize {
        self.nodes.iter().map(|n| n.processes).sum()
    }

    /// The rank of the first process of this machine.
    pub fn first_rank(&self) -> usize {
        self.nodes[..self.me].iter().map(|n| n.processes).sum()
    }
}

/// Why a round stops.
pub enum Stop {
    Changed(String),
    Failed(String),
    AllDone,
}

/// One launcher's part in the meetings.
pub struct Meeting<'a> {
    store: Store,
    options: &'a Launch,
    keeper: bool,
    id: String,
    host: String,
    /// The round; none before the first.
    generation: Option<usize>,
}

/// Hears of the end of a round, until it is dropped.
pub struct Watch {
    receive: Receiver<Stop>,
    _wanted: Arc<()>,
}

impl Watch {
    /// The end, if it has come.
    pub fn heard(&self) -> Option<Stop> {
        self.receive.try_recv().ok()
    }
}

impl Stop {
    fn read(text: &str) -> Stop {
        match text.split_once(' ') {
            _ if text == "done" => Stop::AllDone,
            Some(("changed", why)) => Stop::Changed(why.into()),
            Some(("failed", why)) => Stop::Failed(why.into()),
            _ => Stop::Failed(text.into()),
        }
    }
}

impl Node {
    fn write(&self) -> String {
        let wanted = self.wanted.map_or("-".to_string(), |w| w.to_string());
        format!("{} {} {} {wanted}", self.id, self.host, self.processes)
    }

    fn read(text: &str) -> Option<Node> {
        let mut words = text.split(' ');
        let (id, host, processes, wanted) = (words.next()?, words.next()?, words.next()?, words.next()?);
        let processes = processes.parse().ok()?;
        Some(Node { id: id.into(), host: host.into(), processes, wanted: wanted.parse().ok() })
    }
}

/// Whoever waits longer than this is told what for.
const SOON: Duration = Duration::from_secs(3);

/// Connects to the store at an address; says so if that takes a while.
fn connect(address: &str, secret: Secret, patience: Duration) -> Result<Store> {
    Store::connect(address, secret.clone(), patience.min(SOON)).or_else(|problem| {
        let left = patience.saturating_sub(SOON);
        // A refusal is none that goes away.
        if left.is_zero() || !problem.message().contains("cannot be reached") {
            return Err(problem);
        }
        eprintln!("launch: {}; trying for {:.0} s (--timeout)", problem.message(), left.as_secs_f64());
        Store::connect(address, secret, left)
    })
}

impl<'a> Meeting<'a> {
    pub fn new(address: &str, secret: Secret, keeper: bool, options: &'a Launch) -> Result<Meeting<'a>> {
        let store = connect(address, secret, options.patience)?
            .within(&format!("launch-{}", options.job_id), options.patience)?;
        let host = wire::own_address(address)?;
        Ok(Meeting { store, options, keeper, id: crate::secret::token()?, host, generation: None })
    }

    fn key(&self, name: &str) -> String {
        format!("{}/{name}", self.generation.unwrap_or(0))
    }

    /// Meets the others; None after an interruption.
    pub fn gather(&mut self, interrupted: &dyn Fn() -> bool) -> Result<Option<Roster>> {
        match self.generation {
            None => self.generation = Some(self.store.add("generation", 0)? as usize),
            Some(last) => self.generation = Some(last + 1),
        }
        let own = Node {
            host: self.host.clone(),
            processes: self.options.processes,
            id: self.id.clone(),
            wanted: self.options.node_rank,
        };
        let mut deadline = Instant::now() + self.options.patience;
        loop {
            self.store.will(&self.key("stop"), format!("lost the machine {}", self.host).as_bytes())?;
            self.store.set(&self.key(&format!("node/{}", self.id)), own.write().as_bytes())?;
            let roster = match self.keeper {
                true => Some(self.close(deadline, interrupted)?),
                false => self.await_roster(deadline, interrupted)?,
            };
            if interrupted() {
                return Ok(None);
            }
            let Some(roster) = roster else {
                return Err(unavailable(format!(
                    "the machines have not met at {} within {:.0} s",
                    self.store.address(),
                    self.options.patience.as_secs_f64()
                ))
                .hint("were all started with the same --master and --nnodes?")
                .in_op("launch"));
            };
            let nodes: Vec<Node> = roster.lines().filter_map(Node::read).collect();
            if let Some(me) = nodes.iter().position(|n| n.id == self.id) {
                return Ok(Some(Roster { generation: self.generation.unwrap_or(0), nodes, me }));
            }
            // Too late for this round. If there is room, it stops for us.
            if nodes.len() < self.options.max_nodes {
                self.stop(&format!("changed the machine {} has come", self.host))?;
            }
            self.store.no_will()?;
            deadline = Instant::now() + self.options.patience;
            let stop = loop {
                if interrupted() {
                    return Ok(None);
                }
                if let Some(stop) = self.store.try_get(&self.key("stop"), Duration::from_millis(100))? {
                    break stop;
                }
            };
            if stop == b"done" {
                return Err(unavailable("the job had ended when this machine came").in_op("launch"));
            }
            self.generation = self.generation.map(|g| g + 1);
        }
    }

    /// The keeper waits for machines and writes who takes part.
    fn close(&self, deadline: Instant, interrupted: &dyn Fn() -> bool) -> Result<String> {
        let (min, max) = (self.options.min_nodes, self.options.max_nodes);
        let (mut seen, mut since) = (0, Instant::now());
        let mut tell = Some(Instant::now() + SOON);
        let names = loop {
            let names = self.store.list(&self.key("node/"))?;
            if names.len() != seen {
                (seen, since) = (names.len(), Instant::now());
            }
            let (count, grace) = (names.len(), self.options.grace.saturating_sub(since.elapsed()));
            let enough = count >= max || count >= min && (grace.is_zero() || Instant::now() >= deadline);
            if enough || interrupted() {
                break names;
            }
            if Instant::now() >= deadline {
                return Err(unavailable(format!("{count} of {min} machines have come to {}", self.store.address()))
                    .hint("were all started with the same --master and --nnodes?")
                    .in_op("launch"));
            }
            if tell.is_some_and(|at| Instant::now() >= at) {
                let told = format!("{count} of {min} machines have come");
                match count >= min {
                    true => self.tell(&format!("{told}, up to {max} may"), grace, "--elastic_timeout"),
                    false => self.tell(&told, deadline.saturating_duration_since(Instant::now()), "--timeout"),
                }
                tell = None;
            }
            pause(deadline, interrupted);
        };
        let mut nodes = Vec::new();
        for name in names {
            let text = self.store.try_get(&self.key(&format!("node/{name}")), Duration::ZERO)?.unwrap_or_default();
            nodes.extend(Node::read(&String::from_utf8_lossy(&text)));
        }
        // By the numbers that were wished; the others in an order that all find alike, the keeper first.
        nodes.sort_by_key(|n| (n.wanted.unwrap_or(usize::MAX), n.id != self.id, n.host.clone(), n.id.clone()));
        nodes.truncate(max);
        let roster = nodes.iter().map(Node::write).collect::<Vec<_>>().join("\n");
        // Whoever comes later learns from here which round it is too late for.
        while (self.store.add("generation", 0)? as usize) < self.generation.unwrap_or(0) {
            self.store.add("generation", 1)?;
        }
        let agreed = self.store.propose(&self.key("roster"), roster.as_bytes())?;
        Ok(String::from_utf8_lossy(&agreed).into_owned())
    }

    fn await_roster(&self, deadline: Instant, interrupted: &dyn Fn() -> bool) -> Result<Option<String>> {
        let mut tell = Some(Instant::now() + SOON);
        while Instant::now() < deadline && !interrupted() {
            if tell.is_some_and(|at| Instant::now() >= at) {
                // Whoever keeps the store may not wait that long.
                let left = deadline.saturating_duration_since(Instant::now());
                self.tell("not all machines have come", left, "--timeout at most");
                tell = None;
            }
            if let Some(text) = self.store.try_get(&self.key("roster"), Duration::from_millis(100))? {
                return Ok(Some(String::from_utf8_lossy(&text).into_owned()));
            }
        }
        Ok(None)
    }

    fn tell(&self, what: &str, left: Duration, option: &str) {
        let (address, left) = (self.store.address(), left.as_secs_f64());
        eprintln!("launch: {what} to {address}; waiting for {left:.0} s more ({option})");
    }

    /// Hears of the end of this round, on a connection of its own.
    pub fn watch(&self) -> Result<Watch> {
        let store = self.store.another(self.options.patience)?;
        let (key, (send, receive)) = (self.key("stop"), channel());
        let wanted = Arc::new(());
        let still = Arc::downgrade(&wanted);
        let watching = move || {
            let stop = loop {
                match store.try_get(&key, Duration::from_secs(1)) {
                    // The round is over, and nobody listens any more.
                    Ok(None) if still.strong_count() == 0 => return,
                    Ok(None) => {}
                    Ok(Some(text)) => break Stop::read(&String::from_utf8_lossy(&text)),
                    Err(e) => break Stop::Failed(e.to_string()),
                }
            };
            let _ = send.send(stop);
        };
        std::thread::Builder::new().name("sampan-launch".into()).spawn(watching)?;
        Ok(Watch { receive, _wanted: wanted })
    }

    /// Says that the processes of this machine have ended well; the last one ends the round.
    pub fn done(&self, roster: &Roster) -> Result<()> {
        if self.store.add(&self.key("done"), 1)? as usize == roster.nodes.len() {
            self.stop("done")?;
        }
        Ok(())
    }

    /// Goes when all is done. The keeper of the store is the last to go, so that all hear of it.
    pub fn part(&self, roster: &Roster) {
        let deadline = Instant::now() + Duration::from_secs(3);
        let mut gone = self.store.add(&self.key("gone"), 1).unwrap_or(i64::MAX);
        while self.keeper && (gone as usize) < roster.nodes.len() && Instant::now() < deadline {
            std::thread::sleep(super::LOOK);
            gone = self.store.add(&self.key("gone"), 0).unwrap_or(i64::MAX);
        }
    }

    /// Stops this round for all.
    pub fn stop(&self, why: &str) -> Result<()> {
        self.store.propose(&self.key("stop"), why.as_bytes()).map(|_| ())
    }

    /// Goes for good: the round stops for all.
    pub fn leave(&self) {
        let _ = self.stop("failed a machine has given up");
        let _ = self.store.no_will();
    }
}
