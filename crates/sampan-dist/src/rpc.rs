//! Calls from one process to another: bytes go there, and bytes come back. What they mean is known to the callers alone; this
//! part proves that both sides know the secret, bounds what is read, and names who cannot be reached.

use crate::door::Door;
use crate::interrupt;
use crate::secret::Secret;
use crate::store::{Store, StoreServer};
use crate::wire::{self, Introduction, unavailable};
use parking_lot::{Condvar, Mutex};
use sampan_core::error::Kind;
use sampan_core::{Error, Result};
use std::cell::Cell;
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A longer message is refused before memory is taken for it.
const LIMIT: u64 = 1 << 31;
/// Who waits looks this often whether it should still wait.
const LOOK: Duration = Duration::from_millis(100);
/// Processes wait this long for each other at the end, as a group's collectives do.
const FAREWELL: Duration = Duration::from_secs(1800);

/// A process that can be called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Worker {
    /// The name that it chose.
    pub name: String,
    /// Its number.
    pub rank: usize,
    /// Where it is called.
    pub host: String,
    /// At which port.
    pub port: u16,
}

/// Answers a call.
pub type Answer = Arc<dyn Fn(&[u8]) -> Vec<u8> + Send + Sync>;

/// The processes that call each other, this one among them.
pub struct Calls {
    rank: usize,
    workers: Vec<Worker>,
    purpose: String,
    store: Store,
    /// Connections that nobody uses now, by rank.
    idle: Vec<Mutex<Vec<TcpStream>>>,
    answering: Arc<Answering>,
    /// Closed at the end.
    door: Mutex<Option<Door>>,
}

/// The stores that this process keeps, by address, until it ends: who meets again at once finds the same one.
static KEPT: Mutex<Vec<(String, StoreServer)>> = Mutex::new(Vec::new());

fn keep(address: &str, secret: &Secret) -> Result<()> {
    let mut kept = KEPT.lock();
    if !kept.iter().any(|(known, _)| known == address) {
        kept.push((address.into(), StoreServer::start(address, secret.clone())?));
    }
    Ok(())
}

fn send(mut link: &TcpStream, bytes: &[u8]) -> io::Result<()> {
    link.write_all(&(bytes.len() as u64).to_le_bytes())?;
    link.write_all(bytes)
}

/// Reads until `place` is full; `wait` says whether to go on where nothing comes.
fn fill(mut link: &TcpStream, mut place: &mut [u8], wait: &dyn Fn() -> io::Result<()>) -> io::Result<()> {
    while !place.is_empty() {
        match link.read(place) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) => place = &mut place[count..],
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted) => {
                wait()?
            }
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

fn receive(link: &TcpStream, wait: &dyn Fn() -> io::Result<()>) -> io::Result<Vec<u8>> {
    let mut head = [0; 8];
    fill(link, &mut head, wait)?;
    let len = u64::from_le_bytes(head);
    if len > LIMIT {
        return Err(io::Error::new(ErrorKind::InvalidData, format!("a message of {len} bytes")));
    }
    let mut bytes = vec![0; len as usize];
    fill(link, &mut bytes, wait)?;
    Ok(bytes)
}

/// How many calls are being answered.
#[derive(Default)]
struct Answering(Mutex<usize>, Condvar);

impl Answering {
    fn during<R>(&self, act: impl FnOnce() -> R) -> R {
        *self.0.lock() += 1;
        let result = act();
        *self.0.lock() -= 1;
        self.1.notify_all();
        result
    }

    /// Waits until none is.
    fn end(&self) -> Result<()> {
        let mut count = self.0.lock();
        while *count > 0 {
            if self.1.wait_for(&mut count, LOOK).timed_out() {
                parking_lot::MutexGuard::unlocked(&mut count, interrupt::check)?;
            }
        }
        Ok(())
    }
}

/// Answers the calls of one connection until its other side closes it.
fn serve(link: &TcpStream, answer: &Answer, answering: &Answering) -> io::Result<()> {
    interrupt::never_here();
    link.set_read_timeout(None)?;
    link.set_write_timeout(None)?;
    loop {
        let asked = receive(link, &|| Ok(()))?;
        let given = answering.during(|| answer(&asked));
        send(link, &given)?;
    }
}

impl Calls {
    /// Meets the others at `master`, where rank 0 keeps the store unless somebody else does already (`kept`).
    pub fn start(
        (name, rank, size): (&str, usize, usize),
        master: &str,
        kept: bool,
        patience: Duration,
        answer: Answer,
    ) -> Result<Calls> {
        let secret = Secret::from_env()?;
        if rank == 0 && !kept {
            keep(master, &secret)?;
        }
        let deadline = Instant::now() + patience;
        let generation = std::env::var(crate::world::GENERATION).unwrap_or_default();
        let store = Store::connect(master, secret, patience)?.within(&format!("rpc{generation}"), patience)?;
        // Whoever meets again finds nothing of the first time: everybody counts its own, and all count alike.
        let time = store.add(&format!("times{rank}"), 1)?;
        let store = store.within(&time.to_string(), patience)?;
        let host = wire::own_address(store.address())?;
        let (door, guests) = Door::open(&host, store.secret())?;
        let own = format!("{}\n{host}\n{name}", door.port);
        let told = store.gather("workers", rank, size, own.as_bytes(), deadline)?;
        let workers = told.iter().enumerate().map(|(rank, text)| worker(rank, text)).collect::<Result<Vec<_>>>()?;
        if let Some(twice) = (1..size).find(|i| workers[..*i].iter().any(|w| w.name == workers[*i].name)) {
            let name = &workers[twice].name;
            return Err(Error::invalid(format!("two workers are called {name:?}")).in_op("init_rpc"));
        }
        // Those of an earlier meeting are not mistaken for these.
        let purpose = format!("rpc {}", String::from_utf8_lossy(&told.concat()));
        let expected = Introduction::new(&purpose, 0).purpose;
        let answering = Arc::new(Answering::default());
        let under_way = answering.clone();
        let listen = move || {
            while let Ok((who, link)) = guests.recv() {
                if who.purpose == expected {
                    let (answer, under_way) = (answer.clone(), under_way.clone());
                    let serve = move || serve(&link, &answer, &under_way);
                    // It ends with its connection.
                    let _ = std::thread::Builder::new().name("sampan-rpc".into()).spawn(serve);
                }
            }
        };
        std::thread::Builder::new().name("sampan-rpc".into()).spawn(listen)?;
        let idle = (0..size).map(|_| Mutex::default()).collect();
        let calls = Calls { rank, workers, purpose, store, idle, answering, door: Mutex::new(Some(door)) };
        calls.meet("ready", patience)?;
        Ok(calls)
    }

    /// Those who can be called.
    pub fn workers(&self) -> &[Worker] {
        &self.workers
    }

    /// This process.
    pub fn own(&self) -> &Worker {
        &self.workers[self.rank]
    }

    /// The worker of a name.
    pub fn worker(&self, name: &str) -> Result<&Worker> {
        self.workers.iter().find(|w| w.name == name).ok_or_else(|| {
            let names: Vec<&str> = self.workers.iter().map(|w| w.name.as_str()).collect();
            Error::new(Kind::NotFound, format!("there is no worker {name:?}")).hint(format!("there are {names:?}"))
        })
    }

    /// What a worker answers.
    pub fn call(&self, to: &Worker, bytes: &[u8], limit: Option<Duration>) -> Result<Vec<u8>> {
        let deadline = limit.map(|limit| Instant::now() + limit);
        let idle = self.idle[to.rank].lock().pop();
        let link = match idle {
            Some(link) => link,
            None => {
                let address = wire::join(&to.host, to.port);
                let until = deadline.unwrap_or(Instant::now() + FAREWELL);
                let link =
                    wire::call(&address, self.store.secret(), &Introduction::new(&self.purpose, self.rank), until)?;
                link.set_write_timeout(None)?;
                link.set_read_timeout(Some(LOOK))?;
                link
            }
        };
        let reason = Cell::new(None);
        let wait = || {
            let late = deadline.is_some_and(|at| Instant::now() >= at);
            let late =
                late.then(|| unavailable(format!("{} has not answered in {:?}", to.name, limit.unwrap_or_default())));
            match late.or(interrupt::check().err()) {
                None => Ok(()),
                why => {
                    reason.set(why);
                    Err(ErrorKind::TimedOut.into())
                }
            }
        };
        let told = send(&link, bytes).and_then(|()| receive(&link, &wait));
        let answer = told.map_err(|e| {
            let lost = || unavailable(format!("{} has ended or cannot be reached ({e})", to.name));
            reason.take().unwrap_or_else(lost)
        })?;
        self.idle[to.rank].lock().push(link);
        Ok(answer)
    }

    fn meet(&self, what: &str, patience: Duration) -> Result<()> {
        self.store.gather(what, self.rank, self.workers.len(), b"", Instant::now() + patience).map(drop)
    }

    /// Waits until nobody calls any more, and what was asked here is done.
    pub fn finish(&self) -> Result<()> {
        self.meet("done", FAREWELL)?;
        self.answering.end()?;
        // Who keeps the store goes last.
        match self.rank {
            0 => self.meet("gone", FAREWELL)?,
            rank => self.store.set(&format!("gone/{rank}"), b"")?,
        }
        self.door.lock().take();
        Ok(())
    }
}

fn worker(rank: usize, text: &[u8]) -> Result<Worker> {
    let text = String::from_utf8_lossy(text);
    let mut lines = text.splitn(3, '\n');
    let found = lines.next().and_then(|port| port.parse().ok()).zip(lines.next()).zip(lines.next());
    let ((port, host), name) = found.ok_or_else(|| unavailable(format!("rank {rank} tells nothing of itself")))?;
    Ok(Worker { name: name.into(), rank, host: host.into(), port })
}
