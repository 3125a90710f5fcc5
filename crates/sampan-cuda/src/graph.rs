//! Work that is recorded once and started again as a whole, at the cost of one launch.

use crate::device::{Device, RECORDS};
use crate::driver::Handle;
use crate::fault::Result;
use crate::pinned::Pinned;
use parking_lot::MutexGuard;
use std::sync::atomic::Ordering;

/// Records work of a device: from now on calls of this thread are noted rather than done, and other threads wait. Dropped, it
/// forgets what was recorded.
pub struct Recorder {
    device: &'static Device,
    pool: u32,
    over: bool,
    _turn: MutexGuard<'static, ()>,
}

/// Recorded work.
pub struct Graph {
    device: &'static Device,
    handle: Handle,
    nodes: usize,
    pool: u32,
    _kept: Vec<Pinned>,
}

// SAFETY: the handle may be used from any thread.
unsafe impl Send for Graph {}
// SAFETY: as above; the driver's functions are safe to call at the same time.
unsafe impl Sync for Graph {}

impl Device {
    /// Begins to record, once all work has been done.
    pub fn record(&'static self) -> Result<Recorder> {
        /// Memory may be asked for meanwhile.
        const RELAXED: u32 = 2;
        self.wait()?;
        let turn = self.turn.lock();
        // Others wait before the stream is captured, and until it no longer is: what they start is no part of the record.
        RECORDS.set(true);
        self.recording.store(true, Ordering::Release);
        // SAFETY: the stream lives, and nobody else uses it from here on.
        let status = unsafe { (self.driver.record_begin)(self.stream, RELAXED) };
        if let Err(fault) = self.driver.check("cuStreamBeginCapture", status) {
            self.no_longer_records();
            return Err(fault);
        }
        Ok(Recorder { device: self, pool: self.memory().begin_private(), over: false, _turn: turn })
    }

    fn no_longer_records(&self) {
        self.recording.store(false, Ordering::Release);
        RECORDS.set(false);
    }
}

impl Recorder {
    /// Ends recording; the handle of what was recorded.
    fn end(&mut self) -> Result<Handle> {
        self.over = true;
        let (driver, mut graph) = (self.device.driver, std::ptr::null_mut());
        // SAFETY: it writes a handle.
        let status = unsafe { (driver.record_end)(self.device.stream, &mut graph) };
        self.device.memory().end_private();
        self.device.no_longer_records();
        driver.check("cuStreamEndCapture", status)?;
        Ok(graph)
    }

    fn give_up(&self) {
        self.device.kept.lock().clear();
        self.device.memory().dissolve(self.pool);
    }

    /// What was recorded, ready to be started.
    pub fn finish(mut self) -> Result<Graph> {
        let driver = self.device.driver;
        let made = self.end().and_then(|graph| {
            let (mut handle, mut nodes) = (std::ptr::null_mut(), 0);
            // SAFETY: the graph lives until the last call, and each writes a handle or a number.
            unsafe {
                let counted = (driver.graph_nodes)(graph, std::ptr::null_mut(), &mut nodes);
                let status = (driver.graph_make)(&mut handle, graph, 0);
                let _ = (driver.graph_destroy)(graph);
                driver.check("cuGraphGetNodes", counted)?;
                driver.check("cuGraphInstantiate", status)?;
            }
            Ok((handle, nodes))
        });
        match made {
            Ok((handle, nodes)) => {
                let kept = std::mem::take(&mut *self.device.kept.lock());
                Ok(Graph { device: self.device, handle, nodes, pool: self.pool, _kept: kept })
            }
            Err(fault) => {
                self.give_up();
                Err(fault)
            }
        }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        if !self.over {
            if let Ok(graph) = self.end() {
                // SAFETY: the handle was just made, and nobody else has it.
                let _ = unsafe { (self.device.driver.graph_destroy)(graph) };
            }
            self.give_up();
        }
    }
}

impl Graph {
    /// Starts the work, after everything that was begun before.
    pub fn launch(&self) -> Result<()> {
        self.device.enter()?;
        self.device.alarm.look()?;
        // SAFETY: both handles live. The memory that the work uses is that of its pool, or is held by whoever recorded it.
        let status = unsafe { (self.device.driver.graph_launch)(self.handle, self.device.stream) };
        self.device.driver.check("cuGraphLaunch", status)
    }

    /// How many kernels, copies and fills it is made of.
    pub fn nodes(&self) -> usize {
        self.nodes
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        // The work may still be going on; at the end of the process the driver may be gone.
        let _ = self.device.wait_in_drop();
        // SAFETY: nobody else has the handle.
        let _ = unsafe { (self.device.driver.graph_drop)(self.handle) };
        self.device.memory().dissolve(self.pool);
    }
}
