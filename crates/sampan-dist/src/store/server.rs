//! The process that keeps the table.

use super::{ANSWER_HEAD, HEAD, KEY_LIMIT, PURPOSE, Request, VALUE_LIMIT};
use crate::secret::Secret;
use crate::wire::{self, Introduction};
use parking_lot::{Condvar, Mutex};
use sampan_core::{Error, Result};
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Callers that have proved nothing yet; more than this at once are turned away.
pub const STRANGERS: usize = 256;
/// How often a waiting caller is looked after.
const LOOK: Duration = Duration::from_millis(100);

#[derive(Default)]
struct Table {
    values: Mutex<BTreeMap<String, Vec<u8>>>,
    changed: Condvar,
}

/// Keeps a store until it is dropped.
pub struct StoreServer {
    address: SocketAddr,
    ended: Arc<AtomicBool>,
}

impl StoreServer {
    /// Keeps a store at `host:port`; port 0 is one that is free.
    pub fn start(address: &str, secret: Secret) -> Result<StoreServer> {
        let listener = TcpListener::bind(address).map_err(|e| {
            Error::from(e).in_op("store").hint(format!("{address} must be an address of this machine with a free port"))
        })?;
        let address = listener.local_addr()?;
        if secret.is_empty() && !address.ip().is_loopback() {
            eprintln!(
                "sampan: no secret is set, so whoever can reach {address} can join; set {} or {} on all machines",
                crate::secret::VARIABLE,
                crate::secret::FILE_VARIABLE
            );
        }
        let ended = Arc::new(AtomicBool::new(false));
        let (over, strangers) = (ended.clone(), Arc::new(AtomicUsize::new(0)));
        let table = Arc::<Table>::default();
        let accept = move || {
            for stream in listener.incoming() {
                if over.load(Ordering::Acquire) {
                    return;
                }
                let Ok(stream) = stream else { continue };
                if strangers.fetch_add(1, Ordering::AcqRel) >= STRANGERS {
                    strangers.fetch_sub(1, Ordering::AcqRel);
                    continue;
                }
                let (table, secret, strangers, over) = (table.clone(), secret.clone(), strangers.clone(), over.clone());
                let serve = move || {
                    let known = wire::answer(&stream, &secret);
                    strangers.fetch_sub(1, Ordering::AcqRel);
                    let expected = Introduction::new(PURPOSE, 0).purpose;
                    if known.is_ok_and(|who| who.purpose == expected) {
                        Caller { table, stream, will: None, over }.serve();
                    }
                };
                let _ = std::thread::Builder::new().name("sampan-store".into()).spawn(serve);
            }
        };
        std::thread::Builder::new().name("sampan-store".into()).spawn(accept)?;
        Ok(StoreServer { address, ended })
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.address.port()
    }
}

impl Drop for StoreServer {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Release);
        // A call wakes the one who waits for calls.
        let ip = if self.address.ip().is_unspecified() { [127, 0, 0, 1].into() } else { self.address.ip() };
        let _ = TcpStream::connect_timeout(&SocketAddr::new(ip, self.address.port()), LOOK);
    }
}

/// One connection.
struct Caller {
    table: Arc<Table>,
    stream: TcpStream,
    will: Option<(String, Vec<u8>)>,
    over: Arc<AtomicBool>,
}

impl Caller {
    fn serve(&mut self) {
        // Between requests a caller may be silent for long; a lost one is noticed by the system's probes.
        if self.stream.set_read_timeout(None).is_err() {
            return;
        }
        while self.request().is_ok() {}
        if let Some((key, value)) = self.will.take() {
            self.table.values.lock().entry(key).or_insert(value);
            self.table.changed.notify_all();
        }
    }

    fn request(&mut self) -> io::Result<()> {
        let mut head = [0u8; HEAD];
        self.stream.read_exact(&mut head)?;
        let request = Request::read(head[0]).ok_or_else(|| io::Error::other("no such request"))?;
        let key_len = u16::from_le_bytes([head[1], head[2]]) as usize;
        let value_len = u32::from_le_bytes(head[3..7].try_into().expect("4 bytes")) as usize;
        let number = i64::from_le_bytes(head[7..15].try_into().expect("8 bytes"));
        if key_len > KEY_LIMIT || value_len > VALUE_LIMIT {
            return Err(io::Error::other("a name or value is too long"));
        }
        let mut key = vec![0; key_len];
        self.stream.read_exact(&mut key)?;
        let key = String::from_utf8(key).map_err(io::Error::other)?;
        let mut value = vec![0; value_len];
        self.stream.read_exact(&mut value)?;
        let answer = self.act(request, key, value, number)?;
        let bytes = answer.as_deref().unwrap_or_default();
        let mut out = Vec::with_capacity(ANSWER_HEAD + bytes.len());
        out.push(answer.is_some() as u8);
        out.extend((bytes.len() as u32).to_le_bytes());
        out.extend(bytes);
        self.stream.write_all(&out)
    }

    fn act(&mut self, request: Request, key: String, value: Vec<u8>, number: i64) -> io::Result<Option<Vec<u8>>> {
        let mut values = self.table.values.lock();
        let answer = match request {
            Request::Set => {
                values.insert(key, value);
                Some(Vec::new())
            }
            Request::Add => {
                let held = values.entry(key).or_insert_with(|| 0i64.to_le_bytes().to_vec());
                let old = i64::from_le_bytes(held[..].try_into().map_err(|_| io::Error::other("not a number"))?);
                *held = old.wrapping_add(number).to_le_bytes().to_vec();
                Some(held.clone())
            }
            Request::Propose => Some(values.entry(key).or_insert(value).clone()),
            Request::Forget => {
                values.retain(|name, _| !name.starts_with(&key));
                Some(Vec::new())
            }
            Request::List => {
                let names: Vec<&str> = values.keys().filter(|n| n.starts_with(&key)).map(String::as_str).collect();
                Some(names.join("\n").into_bytes())
            }
            Request::Will => {
                self.will = (!key.is_empty()).then_some((key, value));
                return Ok(Some(Vec::new()));
            }
            Request::Get | Request::Changed => {
                let end = Instant::now() + Duration::from_millis(number.max(0) as u64);
                loop {
                    match values.get(&key) {
                        Some(found) if request == Request::Get || *found != value => return Ok(Some(found.clone())),
                        _ if Instant::now() >= end => return Ok(None),
                        _ => {}
                    }
                    let until = end.min(Instant::now() + LOOK);
                    if self.table.changed.wait_until(&mut values, until).timed_out() && self.caller_has_gone() {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                }
            }
        };
        drop(values);
        self.table.changed.notify_all();
        Ok(answer)
    }

    fn caller_has_gone(&self) -> bool {
        let asked = self.stream.set_nonblocking(true).and_then(|()| self.stream.peek(&mut [0]));
        let back = self.stream.set_nonblocking(false);
        let gone = match asked {
            Ok(count) => count == 0,
            Err(e) => e.kind() != io::ErrorKind::WouldBlock,
        };
        gone || back.is_err() || self.over.load(Ordering::Acquire)
    }
}
