//! A process that asks.

use super::{ANSWER_HEAD, HEAD, KEY_LIMIT, PURPOSE, Request, VALUE_LIMIT};
use crate::interrupt;
use crate::secret::Secret;
use crate::wire::{self, Introduction, unavailable};
use parking_lot::Mutex;
use sampan_core::{Result, ensure};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// The time beyond a wait that an answer may take.
const MARGIN: Duration = Duration::from_secs(5);
/// A waiter looks this often whether it should still wait.
const LOOK: Duration = Duration::from_millis(200);

/// A connection to a store. Names begin with a prefix, so that jobs, groups and restarts do not see each other's.
pub struct Store {
    stream: Mutex<Option<TcpStream>>,
    address: String,
    secret: Secret,
    prefix: String,
    margin: Duration,
}

impl Store {
    /// Connects to the store at `host:port`, which may not be there yet, within `timeout`.
    pub fn connect(address: &str, secret: Secret, timeout: Duration) -> Result<Store> {
        let who = Introduction::new(PURPOSE, 0);
        let stream = wire::call(address, &secret, &who, Instant::now() + timeout).map_err(|e| e.in_op("store"))?;
        Ok(Store {
            stream: Mutex::new(Some(stream)),
            address: address.into(),
            secret,
            prefix: String::new(),
            margin: MARGIN,
        })
    }

    /// Another connection to the same store, whose names begin with `prefix` after those of this one.
    pub fn within(&self, prefix: &str, timeout: Duration) -> Result<Store> {
        let mut store = self.another(timeout)?;
        store.prefix = format!("{}{prefix}/", self.prefix);
        Ok(store)
    }

    /// Another connection to the same names: a wait on one does not hold up the other.
    pub fn another(&self, timeout: Duration) -> Result<Store> {
        let mut store = Store::connect(&self.address, self.secret.clone(), timeout)?;
        store.prefix = self.prefix.clone();
        Ok(store)
    }

    /// The same connection for whoever cannot wait long for an answer: the time beyond a wait that one may take.
    pub fn hurried(mut self, margin: Duration) -> Store {
        self.margin = margin;
        self
    }

    /// Its address.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The secret that was shown to it.
    pub fn secret(&self) -> &Secret {
        &self.secret
    }

    fn ask(&self, request: Request, key: &str, value: &[u8], number: i64, wait: Duration) -> Result<Option<Vec<u8>>> {
        let plain = matches!(request, Request::Will) && key.is_empty();
        let key = if plain { String::new() } else { format!("{}{key}", self.prefix) };
        ensure!(key.len() <= KEY_LIMIT, "store: a name has {} bytes, at most {KEY_LIMIT} are allowed", key.len());
        ensure!(
            value.len() <= VALUE_LIMIT,
            "store: a value has {} bytes, at most {VALUE_LIMIT} are allowed",
            value.len()
        );
        let mut held = self.stream.lock();
        let lost = |e: io::Error| {
            let why = match e.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => "does not answer".to_string(),
                _ => format!("has gone: {e}"),
            };
            unavailable(format!("the store at {} {why}", self.address)).in_op("store")
        };
        let Some(stream) = held.as_mut() else { return Err(lost(io::ErrorKind::NotConnected.into())) };
        let mut exchange = || -> io::Result<Option<Vec<u8>>> {
            stream.set_read_timeout(Some(wait + self.margin))?;
            let mut out = Vec::with_capacity(HEAD + key.len() + value.len());
            out.push(request as u8);
            out.extend((key.len() as u16).to_le_bytes());
            out.extend((value.len() as u32).to_le_bytes());
            out.extend(number.to_le_bytes());
            out.extend(key.as_bytes());
            out.extend(value);
            stream.write_all(&out)?;
            let mut head = [0u8; ANSWER_HEAD];
            stream.read_exact(&mut head)?;
            let len = u32::from_le_bytes(head[1..].try_into().expect("4 bytes")) as usize;
            if len > VALUE_LIMIT {
                return Err(io::Error::other("an answer is too long"));
            }
            let mut answer = vec![0; len];
            stream.read_exact(&mut answer)?;
            Ok((head[0] != 0).then_some(answer))
        };
        // Half an answer would be taken for the next one.
        exchange().inspect_err(|_| *held = None).map_err(lost)
    }

    /// Asks for something that is waited for; now and then it looks whether it should still wait.
    fn ask_long(&self, request: Request, key: &str, value: &[u8], timeout: Duration) -> Result<Option<Vec<u8>>> {
        let end = Instant::now() + timeout;
        loop {
            let wait = end.saturating_duration_since(Instant::now()).min(LOOK);
            let found = self.ask(request, key, value, wait.as_millis() as i64, wait)?;
            if found.is_some() || Instant::now() >= end {
                return Ok(found);
            }
            interrupt::check()?;
        }
    }

    /// Sets a value.
    pub fn set(&self, key: &str, value: &[u8]) -> Result<()> {
        self.ask(Request::Set, key, value, 0, Duration::ZERO).map(|_| ())
    }

    /// The value, once somebody has set it, or `None` after `timeout`.
    pub fn try_get(&self, key: &str, timeout: Duration) -> Result<Option<Vec<u8>>> {
        self.ask_long(Request::Get, key, &[], timeout)
    }

    /// The value, once it is another than `known`, or `None` after `timeout`.
    pub fn changed(&self, key: &str, known: &[u8], timeout: Duration) -> Result<Option<Vec<u8>>> {
        self.ask_long(Request::Changed, key, known, timeout)
    }

    /// The value, once somebody has set it; an error after `timeout`.
    pub fn get(&self, key: &str, timeout: Duration) -> Result<Vec<u8>> {
        self.try_get(key, timeout)?.ok_or_else(|| {
            unavailable(format!("nobody has set {key:?} within {:.1} s", timeout.as_secs_f64())).in_op("store")
        })
    }

    /// Adds to a number, which begins at zero, and gives the sum.
    pub fn add(&self, key: &str, amount: i64) -> Result<i64> {
        let sum = self.ask(Request::Add, key, &[], amount, Duration::ZERO)?.unwrap_or_default();
        sum.try_into().map(i64::from_le_bytes).map_err(|_| unavailable("the store gave no number").in_op("store"))
    }

    /// Sets a value unless there is one; gives the one that is there then.
    pub fn propose(&self, key: &str, value: &[u8]) -> Result<Vec<u8>> {
        Ok(self.ask(Request::Propose, key, value, 0, Duration::ZERO)?.unwrap_or_default())
    }

    /// Forgets every name that begins with `prefix`.
    pub fn forget(&self, prefix: &str) -> Result<()> {
        self.ask(Request::Forget, prefix, &[], 0, Duration::ZERO).map(|_| ())
    }

    /// The names that begin with `prefix`, without it.
    pub fn list(&self, prefix: &str) -> Result<Vec<String>> {
        let text = self.ask(Request::List, prefix, &[], 0, Duration::ZERO)?.unwrap_or_default();
        let skip = self.prefix.len() + prefix.len();
        Ok(String::from_utf8_lossy(&text).lines().map(|line| line.get(skip..).unwrap_or_default().into()).collect())
    }

    /// What the store is to set when this connection is lost.
    pub fn will(&self, key: &str, value: &[u8]) -> Result<()> {
        self.ask(Request::Will, key, value, 0, Duration::ZERO).map(|_| ())
    }

    /// Takes the will back.
    pub fn no_will(&self) -> Result<()> {
        self.ask(Request::Will, "", &[], 0, Duration::ZERO).map(|_| ())
    }

    /// Says `mine` under a name and hears what all `size` processes say there, in the order of their ranks.
    pub fn gather(&self, key: &str, rank: usize, size: usize, mine: &[u8], deadline: Instant) -> Result<Vec<Vec<u8>>> {
        self.set(&format!("{key}/{rank}"), mine)?;
        let hear = |r: usize| {
            let left = deadline.saturating_duration_since(Instant::now());
            self.try_get(&format!("{key}/{r}"), left)?.ok_or_else(|| {
                let missing: Vec<String> = (r..size)
                    .filter(|r| matches!(self.try_get(&format!("{key}/{r}"), Duration::ZERO), Ok(None)))
                    .map(|r| r.to_string())
                    .collect();
                let (ranks, have) = if missing.len() == 1 { ("rank", "has") } else { ("ranks", "have") };
                unavailable(format!("{ranks} {} of {size} {have} not come in time", missing.join(", ")))
                    .hint("were all processes started, and do they know the same address?")
            })
        };
        (0..size).map(hear).collect()
    }
}
