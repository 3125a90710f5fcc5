//! Processes: watching them, ending them, and children that do not outlive their parent.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Another process of this machine, watched.
pub struct Watched {
    pid: u32,
    /// Readable when the process has ended, even before its parent has asked for its exit code.
    handle: Option<OwnedFd>,
}

impl Watched {
    /// Watches a process.
    pub fn new(pid: u32) -> Watched {
        // SAFETY: the call takes numbers and gives a new descriptor or -1.
        let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) } as i32;
        // SAFETY: a new descriptor that nobody else owns.
        Watched { pid, handle: (fd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(fd) }) }
    }

    /// Has it ended?
    pub fn has_ended(&self) -> bool {
        let Some(handle) = &self.handle else {
            // SAFETY: signal 0 only asks whether the process is there.
            return unsafe { libc::kill(self.pid as i32, 0) } != 0
                && io::Error::last_os_error().raw_os_error() == Some(libc::ESRCH);
        };
        let mut one = libc::pollfd { fd: handle.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one entry, ours; the descriptor is open while it is borrowed.
        unsafe { libc::poll(&raw mut one, 1, 0) > 0 }
    }

    /// Its number.
    pub fn pid(&self) -> u32 {
        self.pid
    }
}

/// What two processes must have in common to share memory: the running system and the numbering of its processes.
pub fn machine() -> String {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let pids = std::fs::read_link("/proc/self/ns/pid").map(|p| p.display().to_string()).unwrap_or_default();
    let ids = std::fs::read_link("/proc/self/ns/ipc").map(|p| p.display().to_string()).unwrap_or_default();
    // SAFETY: a call without arguments that cannot fail.
    let user = unsafe { libc::geteuid() };
    format!("{} {pids} {ids} {user}", boot.trim())
}

/// Makes the process that a command starts end when the thread that starts it does, and gives it a group of its own, so
/// that a signal from the keyboard reaches it through its parent alone.
pub fn die_with_parent(command: &mut Command) {
    let parent = std::process::id() as i32;
    command.process_group(0);
    let prepare = move || {
        // SAFETY: both calls take and give numbers; they are allowed between fork and exec.
        unsafe {
            if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) != 0 {
                return Err(io::Error::last_os_error());
            }
            // The parent may have gone before the wish was heard.
            if libc::getppid() != parent {
                libc::_exit(1);
            }
        }
        Ok(())
    };
    // SAFETY: `prepare` allocates nothing and takes no lock.
    unsafe { command.pre_exec(prepare) };
}

/// Sends a signal to a process, or to its whole group.
pub fn signal(pid: u32, number: i32, whole_group: bool) {
    let pid = pid as i32;
    // SAFETY: the call takes numbers; what has gone already is no matter.
    unsafe { libc::kill(if whole_group { -pid } else { pid }, number) };
}
