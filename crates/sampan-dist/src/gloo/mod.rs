//! Gloo, the system's: TCP between any machines. It speaks without proving a secret, so it is for networks that are trusted.

mod library;

use crate::moved::{Mover, Summing};
use crate::store::Store;
use crate::wire;
use library::{Functions, Handle, Table, Take, check, gloo};
use sampan_core::Result;
use sampan_kernels::Buffer;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Why Gloo cannot be used in this process, if so.
pub fn why_not() -> Option<String> {
    gloo().err().map(|e| e.message().to_string())
}

/// A communicator of a group.
pub struct Gloo {
    shim: &'static Functions,
    handle: Handle,
    rank: usize,
    size: usize,
    /// Every collective has a number of its own, so that what is left of a failed one is never taken for another's.
    tag: AtomicU32,
}

// SAFETY: Gloo's context may be used from any thread.
unsafe impl Send for Gloo {}
// SAFETY: calls with different tags or slots may run at the same time, as Gloo documents; collectives of a group come one at a
// time, and messages have a slot of their own.
unsafe impl Sync for Gloo {}

unsafe extern "C" fn set(store: *mut c_void, name: *const c_char, value: *const u8, len: usize) -> c_int {
    // SAFETY: the shim passes on the store of `connect`, which waits for it, a C string, and bytes with their length.
    let (store, name, value) = unsafe {
        let value = if len == 0 { &[][..] } else { std::slice::from_raw_parts(value, len) };
        (&*store.cast::<Store>(), CStr::from_ptr(name).to_string_lossy(), value)
    };
    store.set(&format!("gloo/{name}"), value).is_err() as c_int
}

unsafe extern "C" fn get(store: *mut c_void, name: *const c_char, wait: u64, into: *mut c_void, take: Take) -> c_int {
    // SAFETY: as above.
    let (store, name) = unsafe { (&*store.cast::<Store>(), CStr::from_ptr(name).to_string_lossy()) };
    let Ok(value) = store.get(&format!("gloo/{name}"), Duration::from_millis(wait)) else { return 1 };
    // SAFETY: `take` belongs to `into` and copies the bytes.
    unsafe { take(into, value.as_ptr(), value.len()) };
    0
}

unsafe extern "C" fn add(summing: *mut c_void, shares: *const u8, own: *mut u8, len: usize) {
    // SAFETY: the shim gives back what `reduce` gave it, the shares of all processes, each as long as the piece, and the piece;
    // nobody else has them meanwhile.
    let ((size, sum), shares, own) = unsafe {
        let summing = &mut *summing.cast::<(usize, Summing<'_>)>();
        let shares = std::slice::from_raw_parts(shares, summing.0 * len);
        (summing, shares, std::slice::from_raw_parts_mut(own, len))
    };
    debug_assert_eq!(shares.len(), *size * own.len());
    sum(shares, own);
}

fn milliseconds(time: Duration) -> u64 {
    // Gloo takes none for no limit.
    (time.as_millis() as u64).max(1)
}

impl Gloo {
    /// Meets the others in a store and connects to each of them.
    pub fn connect(store: &Store, rank: usize, size: usize, timeout: Duration, deadline: Instant) -> Result<Gloo> {
        let shim = gloo()?;
        let host = CString::new(wire::own_address(store.address())?).unwrap_or_default();
        let patience = milliseconds(deadline.saturating_duration_since(Instant::now()));
        let mut handle = std::ptr::null_mut();
        let table = Table { table: std::ptr::from_ref(store).cast_mut().cast(), set, get };
        check("connect", |why, room| {
            let (rank, size, timeout) = (rank as c_int, size as c_int, milliseconds(timeout));
            // SAFETY: the strings end with a zero; the store outlives the call, which alone uses it.
            unsafe { (shim.connect)(&mut handle, host.as_ptr(), rank, size, patience, timeout, table, why, room) }
        })?;
        Ok(Gloo { shim, handle, rank, size, tag: AtomicU32::new(0) })
    }

    fn tag(&self) -> u32 {
        self.tag.fetch_add(1, Ordering::Relaxed)
    }

    fn fits(&self, lens: &[usize], bytes: &[u8]) {
        assert!(lens.len() == self.size && lens.iter().sum::<usize>() == bytes.len(), "a length for each process");
    }
}

impl Drop for Gloo {
    fn drop(&mut self) {
        // SAFETY: nobody else has the communicator.
        unsafe { (self.shim.free)(self.handle) };
    }
}

impl Mover for Gloo {
    const NAME: &'static str = "gloo";
    const DEAF: bool = true;

    fn place(&self) -> (usize, usize) {
        (self.rank, self.size)
    }

    fn barrier(&self) -> Result<()> {
        // SAFETY: the communicator is alive while it is borrowed.
        check("barrier", |why, room| unsafe { (self.shim.barrier)(self.handle, self.tag(), why, room) })
    }

    fn broadcast(&self, root: usize, data: &mut [u8]) -> Result<()> {
        if data.is_empty() {
            return Ok(());
        }
        // SAFETY: the slice has as many bytes.
        check("broadcast", |why, room| unsafe {
            let (tag, root) = (self.tag(), root as c_int);
            (self.shim.broadcast)(self.handle, tag, root, data.as_mut_ptr(), data.len(), why, room)
        })
    }

    fn gather(&self, mine: &[u8], all: &mut [u8], lens: &[usize]) -> Result<()> {
        self.fits(lens, all);
        assert!(lens[self.rank] == mine.len(), "one's own bytes have the length that was told");
        if all.is_empty() {
            return Ok(());
        }
        // SAFETY: the slices have as many bytes as the lengths say, which are one for each process.
        check("allgatherv", |why, room| unsafe {
            (self.shim.gather)(self.handle, self.tag(), mine.as_ptr(), all.as_mut_ptr(), lens.as_ptr(), why, room)
        })
    }

    fn exchange(&self, from: &[u8], give: &[usize], to: &mut [u8], take: &[usize]) -> Result<()> {
        self.fits(give, from);
        self.fits(take, to);
        let wide = |lens: &[usize]| lens.iter().map(|n| *n as i64).collect::<Vec<i64>>();
        let (give, take) = (wide(give), wide(take));
        // SAFETY: the slices have as many bytes as the lengths say, which are one for each process.
        check("alltoallv", |why, room| unsafe {
            let (give, take) = (give.as_ptr(), take.as_ptr());
            (self.shim.exchange)(self.handle, self.tag(), from.as_ptr(), give, to.as_mut_ptr(), take, why, room)
        })
    }

    fn reduce(&self, data: &mut [u8], chunk: usize, sum: Summing<'_>) -> Option<Result<()>> {
        // Places for the shares of two chunks.
        let mut room = Buffer::uninit(2 * self.size * data.len().min(chunk).div_ceil(self.size).next_multiple_of(64));
        let mut summing = (self.size, sum);
        let summing = (&raw mut summing).cast();
        // SAFETY: the slices have as many bytes as is said, and `room` as many as the shim cuts it into; `add` is called during
        // this call alone, with what `summing` points to.
        Some(check("reduce", |why, space| unsafe {
            let (data, len, room) = (data.as_mut_ptr(), data.len(), room.bytes_mut().as_mut_ptr());
            (self.shim.reduce)(self.handle, self.tag(), data, len, chunk, room, summing, add, why, space)
        }))
    }

    fn send(&self, to: usize, data: &[u8]) -> Result<()> {
        if data.is_empty() {
            return Ok(());
        }
        // SAFETY: the slice has as many bytes.
        check("send", |why, room| unsafe {
            (self.shim.send)(self.handle, to as c_int, data.as_ptr(), data.len(), why, room)
        })
    }

    fn recv(&self, from: usize, data: &mut [u8]) -> Result<()> {
        if data.is_empty() {
            return Ok(());
        }
        // SAFETY: the slice has as many bytes.
        check("recv", |why, room| unsafe {
            (self.shim.recv)(self.handle, from as c_int, data.as_mut_ptr(), data.len(), why, room)
        })
    }

    fn close(&self) {
        // SAFETY: the communicator is alive while it is borrowed.
        let _ = check("close", |why, room| unsafe { (self.shim.close)(self.handle, why, room) });
    }
}
