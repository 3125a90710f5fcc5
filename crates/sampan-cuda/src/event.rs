//! Moments in a device's work.

use crate::device::Device;
use crate::driver::{Handle, NOT_READY};
use crate::fault::Result;

/// A moment in the work of a device, for waiting and for measuring.
pub struct Event {
    device: &'static Device,
    handle: Handle,
}

// SAFETY: events may be used from any thread.
unsafe impl Send for Event {}
// SAFETY: as above.
unsafe impl Sync for Event {}

impl Event {
    /// An event that lies in the past until it is recorded; one that is not `timed` is cheaper.
    pub fn new(device: &'static Device, timed: bool) -> Result<Event> {
        const DISABLE_TIMING: u32 = 2;
        device.enter()?;
        let mut handle = std::ptr::null_mut();
        let flags = if timed { 0 } else { DISABLE_TIMING };
        // SAFETY: it writes a handle.
        device.driver.check("cuEventCreate", unsafe { (device.driver.event_create)(&mut handle, flags) })?;
        Ok(Event { device, handle })
    }

    /// Now: after all work that was begun before.
    pub fn record(&self) -> Result<()> {
        self.device.enter()?;
        let status = unsafe {
            // SAFETY: both handles live.
            (self.device.driver.event_record)(self.handle, self.device.stream)
        };
        self.device.driver.check("cuEventRecord", status)
    }

    /// Waits for the work before it.
    pub fn wait(&self) -> Result<()> {
        self.device.enter()?;
        // SAFETY: the handle lives.
        self.device.driver.check("cuEventSynchronize", unsafe { (self.device.driver.event_wait)(self.handle) })
    }

    /// Has the work before it been done?
    pub fn is_over(&self) -> Result<bool> {
        self.device.enter()?;
        // SAFETY: the handle lives.
        match unsafe { (self.device.driver.event_ready)(self.handle) } {
            NOT_READY => Ok(false),
            status => self.device.driver.check("cuEventQuery", status).map(|()| true),
        }
    }

    /// Milliseconds from this event to a later one; both were recorded and are timed.
    pub fn milliseconds_to(&self, end: &Event) -> Result<f32> {
        self.wait()?;
        end.wait()?;
        let mut time = 0.0;
        // SAFETY: it writes a number; both handles live.
        let status = unsafe { (self.device.driver.event_elapsed)(&mut time, self.handle, end.handle) };
        self.device.driver.check("cuEventElapsedTime", status)?;
        Ok(time)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: the handle is used by nobody else.
        let _ = unsafe { (self.device.driver.event_destroy)(self.handle) };
    }
}
