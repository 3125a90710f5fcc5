//! Memory that processes of one machine share.

use super::futex;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, FromRawFd};
use std::path::PathBuf;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// How another process finds a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SegmentName {
    /// Nameless memory, known by a process and a number that it has open: nothing is left when all have ended, and the
    /// size of `/dev/shm`, which containers keep small, does not matter.
    Descriptor(u32, i32),
    /// A file, which its maker removes as soon as all have it.
    File(PathBuf),
}

/// Memory mapped by several processes, zero at first. Nothing in it is reached by a Rust reference that outlives a turn:
/// words are atomics, and bytes are lent by [`Segment::read`] and [`Segment::write`], whose callers keep the turns.
pub struct Segment {
    base: NonNull<u8>,
    len: usize,
    file: File,
}

// SAFETY: the mapping belongs to the process, not to a thread, and is reached through atomics, or through `read` and `write`,
// whose callers promise that turns are kept.
unsafe impl Send for Segment {}
// SAFETY: as above.
unsafe impl Sync for Segment {}

/// Bytes of a segment.
type Span = Range<usize>;

impl Segment {
    /// New memory of `len` bytes.
    pub fn create(len: usize, named: bool) -> io::Result<(Segment, SegmentName)> {
        let (file, name) = if named { Self::create_file()? } else { Self::create_nameless()? };
        file.set_len(len as u64)?;
        Ok((Self::map(file, len)?, name))
    }

    fn create_nameless() -> io::Result<(File, SegmentName)> {
        // SAFETY: the name is a C string; the call touches no memory of ours.
        let fd = unsafe { libc::memfd_create(c"sampan".as_ptr(), libc::MFD_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a new descriptor that nobody else owns.
        Ok((unsafe { File::from_raw_fd(fd) }, SegmentName::Descriptor(std::process::id(), fd)))
    }

    fn create_file() -> io::Result<(File, SegmentName)> {
        use std::os::unix::fs::OpenOptionsExt;
        let mut options = File::options();
        options.read(true).write(true).create_new(true).mode(0o600);
        let path = PathBuf::from(format!("/dev/shm/sampan-{}", crate::secret::token()?));
        Ok((options.open(&path)?, SegmentName::File(path)))
    }

    /// The memory that another process made.
    pub fn open(name: &SegmentName, len: usize) -> io::Result<Segment> {
        let path = match name {
            SegmentName::Descriptor(pid, fd) => PathBuf::from(format!("/proc/{pid}/fd/{fd}")),
            SegmentName::File(path) => path.clone(),
        };
        let file = File::options().read(true).write(true).open(path)?;
        if file.metadata()?.len() != len as u64 {
            return Err(io::Error::other("the shared memory has another size than was agreed"));
        }
        Self::map(file, len)
    }

    fn map(file: File, len: usize) -> io::Result<Segment> {
        let (access, shared) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_NORESERVE);
        // SAFETY: a new mapping at an address of the system's choice touches no existing memory.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), len, access, shared, file.as_raw_fd(), 0) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(base.cast()).ok_or_else(|| io::Error::other("mapped at address zero"))?;
        Ok(Segment { base, len, file })
    }

    /// Grants the memory of a part now, so that a full machine is an error here and not a signal later.
    pub fn reserve(&self, span: Span) -> io::Result<()> {
        // SAFETY: the call works on the file alone.
        match unsafe { libc::posix_fallocate(self.file.as_raw_fd(), span.start as i64, span.len() as i64) } {
            0 => Ok(()),
            code => Err(io::Error::from_raw_os_error(code)),
        }
    }

    /// A word that all processes see.
    pub fn word(&self, at: usize) -> &AtomicU32 {
        assert!(at.is_multiple_of(4) && at + 4 <= self.len, "a word outside the segment");
        // SAFETY: aligned and inside the mapping, which lives as long as `self`; every process uses this place as an atomic.
        unsafe { AtomicU32::from_ptr(self.base.as_ptr().add(at).cast()) }
    }

    fn at(&self, span: &Span) -> *mut u8 {
        assert!(span.start <= span.end && span.end <= self.len, "bytes outside the segment");
        // SAFETY: inside the mapping, as just checked.
        unsafe { self.base.as_ptr().add(span.start) }
    }

    /// Bytes to read.
    ///
    /// # Safety
    /// No process writes them while they are borrowed.
    pub unsafe fn read(&self, span: Span) -> &[u8] {
        // SAFETY: inside the mapping; nobody writes, as the caller promises.
        unsafe { std::slice::from_raw_parts(self.at(&span), span.len()) }
    }

    /// Bytes to write.
    ///
    /// # Safety
    /// Nobody else, in any process, reads or writes them while they are borrowed.
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn write(&self, span: Span) -> &mut [u8] {
        // SAFETY: inside the mapping; ours alone, as the caller promises.
        unsafe { std::slice::from_raw_parts_mut(self.at(&span), span.len()) }
    }

    /// Sleeps until the word at `at` is no longer `seen`, for `limit` at most. The word after it counts the sleepers.
    pub fn sleep(&self, at: usize, seen: u32, limit: Duration) {
        let sleepers = self.word(at + 4);
        sleepers.fetch_add(1, Ordering::SeqCst);
        if self.word(at).load(Ordering::SeqCst) == seen {
            futex::wait(self.word(at), seen, limit);
        }
        sleepers.fetch_sub(1, Ordering::SeqCst);
    }

    /// Sets a word, and wakes whoever sleeps on it. What was written before is seen by whoever sees the new value.
    pub fn announce(&self, at: usize, value: u32) {
        self.word(at).store(value, Ordering::SeqCst);
        if self.word(at + 4).load(Ordering::SeqCst) > 0 {
            futex::wake(self.word(at));
        }
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        // SAFETY: our own mapping, which nothing borrows any more.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.len) };
    }
}
