//! Memory of the host that the device can read by itself.

use crate::driver::Driver;
use crate::fault::Result;
use std::ffi::c_void;

/// Bytes on the host that stay where they are.
pub(crate) struct Pinned {
    driver: &'static Driver,
    at: *mut c_void,
    len: usize,
}

// SAFETY: the memory belongs to this value alone.
unsafe impl Send for Pinned {}
// SAFETY: as above; it is written through `&mut` only.
unsafe impl Sync for Pinned {}

impl Pinned {
    /// Zeros; a context is current.
    pub fn new(driver: &'static Driver, len: usize) -> Result<Pinned> {
        /// Every context may use it.
        const PORTABLE: u32 = 1;
        let mut at = std::ptr::null_mut();
        // SAFETY: it writes the address of as many bytes, which are then made zero.
        unsafe {
            driver.check("cuMemHostAlloc", (driver.host_alloc)(&mut at, len.max(1), PORTABLE))?;
            at.write_bytes(0, len.max(1));
        }
        Ok(Pinned { driver, at, len })
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn address(&self) -> *const c_void {
        self.at
    }

    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: so many bytes were taken and written, and nobody else has them.
        unsafe { std::slice::from_raw_parts_mut(self.at.cast(), self.len) }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // SAFETY: it was taken by `host_alloc`, and whoever copies from it has waited for the copy. At the end of the process
        // the driver may be gone, which it says; nothing can be done about it.
        let _ = unsafe { (self.driver.host_free)(self.at) };
    }
}
