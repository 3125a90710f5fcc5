//! Processes of any machines: bytes go through TCP, a connection for each pair.
//!
//! A message is a head (what is called, the number of the call, the length) and its bytes. Heads are checked against
//! what this process calls itself, so that processes that do not do the same find out at once.

mod collectives;
mod pipeline;
mod setup;

use crate::backend::{Call, disagreement};
use crate::interrupt;
use crate::store::Store;
use crate::sys::{Interest, poll, wake_at};
use crate::wire::unavailable;
use parking_lot::Mutex;
use sampan_core::{Error, Result};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Whoever lost a connection asks the store this long for the reason.
const REASON: Duration = Duration::from_millis(300);
/// A waiting process looks this often whether its time is over.
const LOOK: Duration = Duration::from_millis(100);
/// So many bytes come at once at most.
const PACKET: usize = 1 << 16;
/// A reader is woken for so many bytes, where more are to come.
const WORTH: usize = 1 << 18;

/// The engine for processes of any machines.
pub struct Tcp {
    rank: usize,
    size: usize,
    /// For collectives, by rank; none to oneself.
    links: Vec<Option<TcpStream>>,
    /// For messages, which may come between the calls of a collective.
    direct: Vec<Option<TcpStream>>,
    store: Store,
    timeout: Duration,
    /// The number of the last collective, held while one runs.
    number: Mutex<u32>,
    sending: Vec<Mutex<()>>,
    taking: Vec<Mutex<()>>,
    failed: OnceLock<Error>,
}

/// What stands before the bytes of a message: the call, its number, the length of what follows.
const HEAD: usize = Call::BYTES + 4 + 8;

fn head(call: &Call, number: u32, len: usize) -> [u8; HEAD] {
    let mut bytes = [0; HEAD];
    bytes[..Call::BYTES].copy_from_slice(&call.encode());
    bytes[Call::BYTES..Call::BYTES + 4].copy_from_slice(&number.to_le_bytes());
    bytes[Call::BYTES + 4..].copy_from_slice(&(len as u64).to_le_bytes());
    bytes
}

/// A message on its way: its head, how long its data are, and how many bytes of both have gone, or come.
struct Message {
    head: [u8; HEAD],
    len: usize,
    done: usize,
    /// The connection wakes its reader when so many bytes are there.
    wakes_at: usize,
}

impl Message {
    fn outgoing(call: &Call, number: u32, len: usize) -> Message {
        Message { head: head(call, number, len), len, done: 0, wakes_at: 1 }
    }

    fn incoming(len: usize) -> Message {
        Message { head: [0; HEAD], len, done: 0, wakes_at: 1 }
    }

    fn is_done(&self) -> bool {
        self.done == HEAD + self.len
    }

    /// Writes what there is room for.
    fn write(&mut self, mut link: &TcpStream, data: &[u8]) -> io::Result<()> {
        // Head and data leave together, or a small message would take two packets.
        let count = match self.done.checked_sub(HEAD) {
            Some(at) => link.write(&data[at..])?,
            None => link.write_vectored(&[io::IoSlice::new(&self.head[self.done..]), io::IoSlice::new(data)])?,
        };
        self.done += count;
        Ok(())
    }

    /// Reads what is there; true when the head has just become complete.
    fn read(&mut self, mut link: &TcpStream, data: &mut [u8]) -> io::Result<bool> {
        let count = match self.done.checked_sub(HEAD) {
            Some(at) => link.read(&mut data[at..])?,
            None => link.read(&mut self.head[self.done..])?,
        };
        if count == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        self.done += count;
        // Being woken for every packet would take the time of those who compute. What comes after the head is known.
        let left = HEAD + self.len - self.done;
        let wanted = if self.done >= HEAD && self.len > PACKET { left.clamp(1, WORTH) } else { 1 };
        if wanted != self.wakes_at {
            wake_at(link, wanted)?;
            self.wakes_at = wanted;
        }
        Ok(self.done == HEAD)
    }
}

impl Tcp {
    /// Sends one message and receives another at the same time, whichever there are.
    fn swap(
        &self,
        links: &[Option<TcpStream>],
        call: &Call,
        number: u32,
        to: Option<(usize, &[u8])>,
        from: Option<(usize, &mut [u8])>,
    ) -> Result<()> {
        let mut out = to.map(|(peer, data)| (peer, Message::outgoing(call, number, data.len()), data));
        let mut into = from.map(|(peer, data)| (peer, Message::incoming(data.len()), data));
        let deadline = Instant::now() + self.timeout;
        let link =
            |peer: usize| links[peer].as_ref().ok_or_else(|| unavailable(format!("there is no way to rank {peer}")));
        loop {
            out = out.filter(|(_, message, _)| !message.is_done());
            into = into.filter(|(_, message, _)| !message.is_done());
            let Some(peer) = into.as_ref().map(|i| i.0).or(out.as_ref().map(|o| o.0)) else { return Ok(()) };
            let mut wanted: Vec<(&TcpStream, Interest)> = Vec::with_capacity(2);
            if let Some((peer, ..)) = &out {
                wanted.push((link(*peer)?, Interest { write: true, ..Interest::default() }));
            }
            if let Some((peer, ..)) = &into {
                wanted.push((link(*peer)?, Interest { read: true, ..Interest::default() }));
            }
            let ready = self.ready(&wanted, deadline, peer)?;
            if let Some((peer, message, data)) = &mut out
                && ready.iter().any(|r| r.write)
                && let Err(e) = message.write(link(*peer)?, data)
            {
                self.lost(*peer, e)?;
            }
            if let Some((peer, message, data)) = &mut into
                && ready.iter().any(|r| r.read)
            {
                match message.read(link(*peer)?, data) {
                    Ok(true) => self.agree(call, number, *peer, message)?,
                    Ok(false) => {}
                    Err(e) => self.lost(*peer, e)?,
                }
            }
        }
    }

    /// Waits until one of the connections is ready; `peer` is who is to blame when none is in time.
    fn ready(&self, wanted: &[(&TcpStream, Interest)], deadline: Instant, peer: usize) -> Result<Vec<Interest>> {
        if let Some(error) = self.failed.get() {
            return Err(error.clone());
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            let limit = self.timeout.as_secs_f64();
            return Err(self.fail(format!(
                "rank {peer} has not come within {limit:.1} s; it is stopped, busy, or cannot be reached"
            )));
        }
        let ready = poll(wanted, left.min(LOOK))?;
        if !ready.iter().any(|r| r.read || r.write)
            && let Err(e) = interrupt::check()
        {
            self.fail(format!("rank {} was interrupted", self.rank));
            return Err(e);
        }
        Ok(ready)
    }

    /// Is the head of a message the one that is expected?
    fn agree(&self, call: &Call, number: u32, peer: usize, message: &Message) -> Result<()> {
        if message.head == head(call, number, message.len) {
            return Ok(());
        }
        let (theirs, rest) = message.head.split_at(Call::BYTES);
        let len = u64::from_le_bytes(rest[4..].try_into().expect("8 bytes"));
        let error = match Call::decode(theirs.try_into().expect("the bytes of a call")) {
            Some(theirs) if theirs == *call && rest[..4] == number.to_le_bytes() => Error::invalid(format!(
                "rank {peer} gives {len} bytes to rank {}, which expects {}",
                self.rank, message.len
            ))
            .in_op(call.action.name()),
            theirs => {
                let text = theirs.map_or("something else".into(), |c| c.to_string());
                disagreement(call, self.rank, &text, peer)
            }
        };
        // What follows on the connection is of another length.
        self.end(error.clone());
        Err(error)
    }

    /// What a connection's error means; nothing where it is only not ready.
    fn lost(&self, peer: usize, error: io::Error) -> Result<()> {
        if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) {
            return Ok(());
        }
        if let Some(error) = self.failed.get() {
            return Err(error.clone());
        }
        // Whoever ends a group says why before it closes its connections.
        let known = self.store.try_get("failed", REASON).ok().flatten();
        let why = known.map_or_else(
            || format!("rank {peer} has ended or cannot be reached ({error})"),
            |text| String::from_utf8_lossy(&text).into_owned(),
        );
        Err(self.fail(why))
    }

    fn fail(&self, why: String) -> Error {
        self.end(unavailable(why))
    }

    /// Ends the group for all: they hear the reason from the store, and notice that the connections are closed.
    fn end(&self, error: Error) -> Error {
        let error = self.failed.get_or_init(|| error).clone();
        let _ = self.store.propose("failed", error.message().as_bytes());
        for link in self.links.iter().chain(&self.direct).flatten() {
            let _ = link.shutdown(Shutdown::Both);
        }
        error
    }
}
