//! Sockets: waiting for several, and noticing that the other side is unreachable.

use std::io;
use std::net::TcpStream;
use std::os::fd::AsRawFd;
use std::time::Duration;

/// What a socket is waited for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Interest {
    /// There is something to read, or the other side has gone.
    pub read: bool,
    /// There is room to write.
    pub write: bool,
}

/// Waits until one of the sockets is ready, for `limit` at most, and says for what each of them is ready.
pub fn poll(sockets: &[(&TcpStream, Interest)], limit: Duration) -> io::Result<Vec<Interest>> {
    let mut all: Vec<libc::pollfd> = sockets
        .iter()
        .map(|(socket, wanted)| libc::pollfd {
            fd: socket.as_raw_fd(),
            events: if wanted.read { libc::POLLIN } else { 0 } | if wanted.write { libc::POLLOUT } else { 0 },
            revents: 0,
        })
        .collect();
    let limit = limit.as_millis().clamp(1, i32::MAX as u128) as i32;
    // SAFETY: the list is ours, with the length that is given; the sockets are open while they are borrowed.
    let count = unsafe { libc::poll(all.as_mut_ptr(), all.len() as _, limit) };
    if count < 0 {
        let error = io::Error::last_os_error();
        // A signal is no reason to stop waiting; the caller asks again.
        return if error.kind() == io::ErrorKind::Interrupted {
            Ok(vec![Interest::default(); all.len()])
        } else {
            Err(error)
        };
    }
    // An error or an end shows itself when the socket is used.
    let bad = libc::POLLERR | libc::POLLHUP | libc::POLLNVAL;
    Ok(all
        .iter()
        .zip(sockets)
        .map(|(found, (_, wanted))| Interest {
            read: wanted.read && found.revents & (libc::POLLIN | bad) != 0,
            write: wanted.write && found.revents & (libc::POLLOUT | bad) != 0,
        })
        .collect())
}

/// Asks the system to probe a silent connection, so that one whose other side is unreachable ends after about `limit`.
pub fn keep_alive(socket: &TcpStream, limit: Duration) -> io::Result<()> {
    let probes = 3;
    let between = (limit.as_secs() as i32 / (probes + 1)).max(1);
    let mut options = vec![(libc::SOL_SOCKET, libc::SO_KEEPALIVE, 1)];
    #[cfg(target_os = "linux")]
    options.extend([
        (libc::IPPROTO_TCP, libc::TCP_KEEPIDLE, between),
        (libc::IPPROTO_TCP, libc::TCP_KEEPINTVL, between),
        (libc::IPPROTO_TCP, libc::TCP_KEEPCNT, probes),
        (libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT, limit.as_millis().min(i32::MAX as u128) as i32),
    ]);
    options.into_iter().try_for_each(|(level, name, value)| set(socket, level, name, value))
}

/// Lets a connection be ready to be read only when so many bytes are there, or its end.
pub fn wake_at(socket: &TcpStream, bytes: usize) -> io::Result<()> {
    set(socket, libc::SOL_SOCKET, libc::SO_RCVLOWAT, bytes.min(i32::MAX as usize) as i32)
}

fn set(socket: &TcpStream, level: i32, name: i32, value: i32) -> io::Result<()> {
    // SAFETY: the option is a C int, whose address and size are given; the socket is open while it is borrowed.
    let code =
        unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, (&raw const value).cast(), size_of::<i32>() as _) };
    if code == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
