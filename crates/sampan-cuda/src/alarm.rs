//! What a kernel found wrong with the numbers it was given, such as a label beyond the classes. Kernels go on with another
//! number and note the first fault in memory that the host sees; calls that wait for the device, and those that start
//! kernels, look there.

use crate::device::Device;
use crate::driver::Driver;
use crate::fault::{Fault, Result};
use crate::launch::Argument;
use parking_lot::Mutex;
use std::ffi::c_void;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// As kernels see it: `struct alarm`.
#[repr(C)]
struct Noted {
    raised: AtomicU64,
    op: AtomicI64,
    position: AtomicI64,
    value: AtomicI64,
    limit: AtomicI64,
}

/// A place on the host that kernels write to.
pub(crate) struct Alarm {
    noted: *const Noted,
    address: u64,
}

// SAFETY: the memory is never freed, and is read and written by atomics alone.
unsafe impl Send for Alarm {}
// SAFETY: as above.
unsafe impl Sync for Alarm {}

/// Names of ops by the numbers that kernels know them by.
static OPS: Mutex<Vec<&'static str>> = Mutex::new(Vec::new());

fn number_of(op: &'static str) -> i64 {
    let mut ops = OPS.lock();
    let at = ops.iter().position(|&o| o == op).unwrap_or_else(|| {
        ops.push(op);
        ops.len() - 1
    });
    at as i64
}

impl Alarm {
    /// Takes memory that both sides see; the context is current.
    pub fn new(driver: &Driver) -> Result<Alarm> {
        const SEEN_BY_DEVICE: u32 = 2;
        let mut at: *mut c_void = std::ptr::null_mut();
        let mut address = 0;
        // SAFETY: it writes an address of as many bytes, which are then made zero, and their address on the device.
        unsafe {
            let status = (driver.host_alloc)(&mut at, size_of::<Noted>(), SEEN_BY_DEVICE);
            driver.check("cuMemHostAlloc", status)?;
            at.write_bytes(0, size_of::<Noted>());
            driver.check("cuMemHostGetDevicePointer", (driver.host_address)(&mut address, at, 0))?;
        }
        Ok(Alarm { noted: at.cast(), address })
    }

    /// What was noted since the last look.
    pub fn look(&self) -> Result<()> {
        // SAFETY: the memory is never freed.
        let noted = unsafe { &*self.noted };
        if noted.raised.load(Ordering::Acquire) != 2 {
            return Ok(());
        }
        let get = |n: &AtomicI64| n.load(Ordering::Relaxed);
        let op = OPS.lock().get(get(&noted.op) as usize).copied().unwrap_or("a kernel");
        let (position, value, limit) = (get(&noted.position), get(&noted.value), get(&noted.limit));
        noted.raised.store(0, Ordering::Release);
        Err(Fault::Index { op, position, value, limit })
    }
}

impl Device {
    /// The number of an op and where its kernel notes what is wrong.
    pub(crate) fn alarm(&self, op: &'static str) -> [Argument; 2] {
        [Argument::Int(number_of(op)), Argument::Address(self.alarm.address)]
    }
}
