//! A GPU: its context, its stream, its memory, its compiled kernels.

use crate::alarm::Alarm;
use crate::blas::Products;
use crate::compile::Kernels;
use crate::dnn::Convolutions;
use crate::driver::{Address, Driver, Handle, driver};
use crate::fault::{Missing, Result};
use crate::memory::{Block, Memory};
use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// How many devices one process uses at most.
const MOST: usize = 64;

/// A GPU that is in use.
pub struct Device {
    pub(crate) driver: &'static Driver,
    pub(crate) stream: Handle,
    pub(crate) alarm: Alarm,
    pub(crate) kernels: Kernels,
    pub(crate) products: Products,
    pub(crate) convolutions: Convolutions,
    context: Handle,
    ordinal: usize,
    info: Info,
    memory: Memory,
}

// SAFETY: handles of the driver may be used from any thread, once its context is current there, which `enter` sees to.
unsafe impl Send for Device {}
// SAFETY: as above; the driver's functions are safe to call at the same time.
unsafe impl Sync for Device {}

/// What a device is.
#[derive(Clone, Debug, PartialEq)]
pub struct Info {
    /// Its name.
    pub name: String,
    /// Its generation, such as (9, 0).
    pub capability: (i32, i32),
    /// Its multiprocessors.
    pub multiprocessors: i32,
    /// Its memory in bytes.
    pub memory: usize,
}

thread_local! {
    static CURRENT: Cell<Option<usize>> = const { Cell::new(None) };
}

/// The process that asked for the driver first: one forked from it cannot use the driver.
static OWNER: AtomicU32 = AtomicU32::new(0);

/// How many GPUs there are; why none can be used.
pub fn count() -> std::result::Result<usize, Missing> {
    let driver = driver()?;
    let mut count = 0;
    // SAFETY: it writes a number.
    let status = unsafe { (driver.device_count)(&mut count) };
    match status {
        0 if count > 0 => Ok((count as usize).min(MOST)),
        0 => Err(Missing("the NVIDIA driver runs, but this machine has no GPU".into())),
        status => Err(Missing(format!("the GPUs cannot be counted: {}", driver.said(status)))),
    }
}

/// The GPU of a number, which is started when it is first asked for.
pub fn device(ordinal: usize) -> Result<&'static Device> {
    static DEVICES: [OnceLock<Result<Device>>; MOST] = [const { OnceLock::new() }; MOST];
    let me = std::process::id();
    let owner = OWNER.compare_exchange(0, me, Ordering::Relaxed, Ordering::Relaxed).unwrap_or_else(|owner| owner);
    if owner != 0 && owner != me {
        let why = "a process that was forked after the GPU was used cannot use it: start workers with spawn, or keep GPU \
                   tensors out of them";
        return Err(Missing(why.into()).into());
    }
    let there = count()?;
    if ordinal >= there {
        let why = format!("there is no GPU {ordinal}: this machine has {there}, numbered from 0");
        return Err(Missing(why).into());
    }
    DEVICES[ordinal].get_or_init(|| Device::start(ordinal)).as_ref().map_err(Clone::clone)
}

/// What the GPU of a number is.
pub fn info(ordinal: usize) -> Result<Info> {
    device(ordinal).map(|d| d.info.clone())
}

impl Device {
    fn start(ordinal: usize) -> Result<Device> {
        const CAPABILITY: [i32; 2] = [75, 76];
        const MULTIPROCESSORS: i32 = 16;
        let driver = driver()?;
        let (mut id, mut context, mut stream) = (0, std::ptr::null_mut(), std::ptr::null_mut());
        let mut name = [0u8; 256];
        let (mut free, mut total) = (0, 0);
        // SAFETY: every pointer is to a place of the type that the function writes, the name's with its length.
        unsafe {
            driver.check("cuDeviceGet", (driver.device_get)(&mut id, ordinal as i32))?;
            driver.check("cuDevicePrimaryCtxRetain", (driver.retain_context)(&mut context, id))?;
            driver.check("cuCtxSetCurrent", (driver.set_context)(context))?;
            CURRENT.set(Some(ordinal));
            driver.check("cuDeviceGetName", (driver.device_name)(name.as_mut_ptr().cast(), 256, id))?;
            // A stream that does not wait for the default one.
            driver.check("cuStreamCreate", (driver.stream_create)(&mut stream, 1))?;
            driver.check("cuMemGetInfo", (driver.memory_info)(&mut free, &mut total))?;
        }
        let attribute = |which: i32| -> Result<i32> {
            let mut value = 0;
            // SAFETY: it writes a number.
            driver.check("cuDeviceGetAttribute", unsafe { (driver.device_attribute)(&mut value, which, id) })?;
            Ok(value)
        };
        let info = Info {
            name: String::from_utf8_lossy(&name).trim_end_matches('\0').to_string(),
            capability: (attribute(CAPABILITY[0])?, attribute(CAPABILITY[1])?),
            multiprocessors: attribute(MULTIPROCESSORS)?,
            memory: total,
        };
        Ok(Device {
            alarm: Alarm::new(driver)?,
            driver,
            stream,
            kernels: Kernels::default(),
            products: Products::default(),
            convolutions: Convolutions::default(),
            context,
            ordinal,
            info,
            memory: Memory::default(),
        })
    }

    /// Its number.
    pub fn ordinal(&self) -> usize {
        self.ordinal
    }

    /// What it is.
    pub fn info(&self) -> &Info {
        &self.info
    }

    /// Its memory as it is used.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Makes this the device of the calling thread.
    pub(crate) fn enter(&self) -> Result<()> {
        if CURRENT.get() == Some(self.ordinal) {
            return Ok(());
        }
        // SAFETY: the context was retained and is never released.
        self.driver.check("cuCtxSetCurrent", unsafe { (self.driver.set_context)(self.context) })?;
        CURRENT.set(Some(self.ordinal));
        Ok(())
    }

    /// Memory for so many bytes, values unspecified.
    pub fn alloc(&'static self, bytes: usize) -> Result<Block> {
        self.enter()?;
        self.memory.take(self, bytes)
    }

    /// Copies bytes to the device.
    pub fn upload(&self, from: &[u8], to: &Block) -> Result<()> {
        assert!(from.len() <= to.len(), "more bytes than the block has");
        if from.is_empty() {
            return Ok(());
        }
        self.enter()?;
        // SAFETY: both places are as long as the copy. Memory that is not pinned is read before the call returns.
        let status = unsafe { (self.driver.upload)(to.address(), from.as_ptr().cast(), from.len(), self.stream) };
        self.driver.check("cuMemcpyHtoDAsync", status)
    }

    /// Copies bytes from the device, after everything that was begun before.
    pub fn download(&self, from: &Block, to: &mut [u8]) -> Result<()> {
        assert!(to.len() <= from.len(), "more bytes than the block has");
        if to.is_empty() {
            return Ok(());
        }
        self.enter()?;
        // SAFETY: both places are as long as the copy, and the wait below ends after it.
        let status = unsafe { (self.driver.download)(to.as_mut_ptr().cast(), from.address(), to.len(), self.stream) };
        self.driver.check("cuMemcpyDtoHAsync", status)?;
        self.wait()
    }

    /// Copies within the device.
    pub fn copy(&self, from: &Block, to: &Block) -> Result<()> {
        let bytes = from.len().min(to.len());
        if bytes == 0 {
            return Ok(());
        }
        self.enter()?;
        // SAFETY: both blocks have as many bytes.
        let status = unsafe { (self.driver.copy)(to.address(), from.address(), bytes, self.stream) };
        self.driver.check("cuMemcpyDtoDAsync", status)
    }

    /// Makes all bytes zero.
    pub fn zero(&self, to: &Block) -> Result<()> {
        if to.is_empty() {
            return Ok(());
        }
        self.enter()?;
        // SAFETY: the block has as many bytes.
        let status = unsafe { (self.driver.fill)(to.address(), 0, to.len(), self.stream) };
        self.driver.check("cuMemsetD8Async", status)
    }

    /// Waits until everything that was begun has ended.
    pub fn wait(&self) -> Result<()> {
        self.enter()?;
        // SAFETY: the stream is never destroyed.
        self.driver.check("cuStreamSynchronize", unsafe { (self.driver.stream_wait)(self.stream) })?;
        self.alarm.look()
    }

    /// Free and all bytes of the device.
    pub fn free_and_total(&self) -> Result<(usize, usize)> {
        self.enter()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: it writes two numbers.
        self.driver.check("cuMemGetInfo", unsafe { (self.driver.memory_info)(&mut free, &mut total) })?;
        Ok((free, total))
    }

    /// Asks the driver for memory; `None` if it is full.
    pub(crate) fn grab(&self, bytes: usize) -> Result<Option<Address>> {
        let mut address = 0;
        // SAFETY: it writes an address.
        match unsafe { (self.driver.alloc)(&mut address, bytes) } {
            crate::driver::OUT_OF_MEMORY => Ok(None),
            status => self.driver.check("cuMemAlloc", status).map(|()| Some(address)),
        }
    }

    /// Gives memory back to the driver.
    pub(crate) fn drop_memory(&self, address: Address) -> Result<()> {
        // SAFETY: the address came from `grab`, and the pool that held it has forgotten it.
        self.driver.check("cuMemFree", unsafe { (self.driver.free)(address) })
    }
}
