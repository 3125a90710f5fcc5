//! Connections between processes of a job: who calls proves to know the secret, and so does who answers.
//!
//! A stranger gets sixteen random bytes and is then refused; whatever it sends, a fixed number of bytes is read, within a
//! fixed time. After the proofs bytes travel as they are: they are neither encrypted nor signed.

use crate::secret::{Secret, random};
use crate::sys;
use sampan_core::error::Kind;
use sampan_core::{Error, Result};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs, UdpSocket};
use std::time::{Duration, Instant};

const MAGIC: [u8; 8] = *b"sampan1\n";
/// A stranger who says nothing is let go after this.
const PATIENCE: Duration = Duration::from_secs(5);
/// A connection whose other side cannot be reached ends after about this.
const SILENCE: Duration = Duration::from_secs(20);
/// How often a refused connection is tried again.
const PAUSE: Duration = Duration::from_millis(20);

/// What a connection is for, and who calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Introduction {
    /// What for.
    pub purpose: [u8; 32],
    /// The rank of the caller.
    pub rank: u32,
}

impl Introduction {
    /// An introduction for a named purpose.
    pub fn new(purpose: &str, rank: usize) -> Introduction {
        // The name itself may be long; a fixed number of bytes stands for it.
        Introduction { purpose: Secret::new("purpose").proof(&[purpose.as_bytes()]), rank: rank as u32 }
    }
}

/// An error of a lost or unreachable process.
pub fn unavailable(message: impl Into<String>) -> Error {
    Error::new(Kind::Unavailable, message)
}

fn prepare(stream: &TcpStream, limit: Duration) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(limit))?;
    stream.set_write_timeout(Some(limit))?;
    sys::keep_alive(stream, SILENCE)
}

/// Answers a caller: the introduction, if it knows the secret.
pub fn answer(mut stream: &TcpStream, secret: &Secret) -> io::Result<Introduction> {
    prepare(stream, PATIENCE)?;
    let mine: [u8; 16] = random()?;
    stream.write_all(&[&MAGIC[..], &mine].concat())?;
    let mut hello = [0u8; 8 + 16 + 36 + 32];
    stream.read_exact(&mut hello)?;
    let (magic, rest) = hello.split_at(8);
    let (theirs, rest) = rest.split_at(16);
    let (introduction, proof) = rest.split_at(36);
    let proof = proof.try_into().expect("the last 32 bytes");
    if magic != MAGIC || !secret.proves(proof, &[b"caller", &mine, theirs, introduction]) {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "a caller without the secret"));
    }
    stream.write_all(&secret.proof(&[b"answer", &mine, theirs, introduction]))?;
    let (purpose, rank) = introduction.split_at(32);
    Ok(Introduction {
        purpose: purpose.try_into().expect("32 bytes"),
        rank: u32::from_le_bytes(rank.try_into().expect("4 bytes")),
    })
}

fn is_late(e: &io::Error) -> bool {
    matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

fn call_once(address: SocketAddr, secret: &Secret, who: &Introduction, limit: Duration) -> io::Result<TcpStream> {
    let limit = limit.clamp(Duration::from_millis(1), PATIENCE);
    let mut stream = TcpStream::connect_timeout(&address, limit)?;
    prepare(&stream, limit)?;
    let mut greeting = [0u8; 24];
    stream.read_exact(&mut greeting)?;
    let (magic, theirs) = greeting.split_at(8);
    if magic != MAGIC {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "something else answers there"));
    }
    let mine: [u8; 16] = random()?;
    let introduction = [&who.purpose[..], &who.rank.to_le_bytes()].concat();
    let proof = secret.proof(&[b"caller", theirs, &mine, &introduction]);
    stream.write_all(&[&MAGIC[..], &mine, &introduction, &proof].concat())?;
    let mut answer = [0u8; 32];
    let refused = || io::Error::new(io::ErrorKind::PermissionDenied, "the two sides have different secrets");
    stream.read_exact(&mut answer).map_err(|e| if is_late(&e) { e } else { refused() })?;
    if !secret.proves(&answer, &[b"answer", theirs, &mine, &introduction]) {
        return Err(refused());
    }
    Ok(stream)
}

/// Calls a process of the job, which may not be there yet, until the deadline.
pub fn call(address: &str, secret: &Secret, who: &Introduction, deadline: Instant) -> Result<TcpStream> {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let found = address.to_socket_addrs().and_then(|mut all| {
            let address = all.next().ok_or_else(|| io::Error::other("no such address"))?;
            call_once(address, secret, who, left)
        });
        let problem = match found {
            Ok(stream) => return Ok(stream),
            Err(e) => e,
        };
        if problem.kind() == io::ErrorKind::PermissionDenied {
            return Err(unavailable(format!("{address} refuses: {problem}")).hint(format!(
                "set {} or {} to the same on all machines",
                crate::secret::VARIABLE,
                crate::secret::FILE_VARIABLE
            )));
        }
        if problem.kind() == io::ErrorKind::InvalidData {
            return Err(unavailable(format!("{address} is no place to meet: {problem}")).hint(
                "does another program use that port? Take another one, on all machines (--master, PADDLE_MASTER or MASTER_PORT)",
            ));
        }
        let problem = if is_late(&problem) { "it does not answer".into() } else { problem.to_string() };
        if Instant::now() + PAUSE >= deadline {
            return Err(unavailable(format!("{address} cannot be reached: {problem}"))
                .hint("is the address right, is the port open, and has the other side started?"));
        }
        crate::interrupt::check()?;
        std::thread::sleep(PAUSE);
    }
}

/// The address of this machine by which `other` can reach it.
pub fn own_address(other: &str) -> io::Result<String> {
    let target = other.to_socket_addrs()?.next().ok_or_else(|| io::Error::other("no such address"))?;
    let any = if target.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    // Nothing is sent: connecting only chooses the way. A host name may resolve to an address that nobody else can use.
    let probe = UdpSocket::bind(any)?;
    probe.connect(target)?;
    Ok(probe.local_addr()?.ip().to_string())
}

/// `host:port`, with brackets where the host is an address with colons.
pub fn join(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}
