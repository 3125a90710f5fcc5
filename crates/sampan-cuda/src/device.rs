//! A GPU: its context, its stream, its memory, its compiled kernels.

use crate::affine::Affine;
use crate::alarm::Alarm;
use crate::blas::Products;
use crate::compile::Kernels;
use crate::dnn::Convolutions;
use crate::driver::{Address, Driver, Handle, driver};
use crate::fault::{Fault, Missing, Result};
use crate::launch::Argument;
use crate::memory::{Block, Memory};
use crate::pinned::Pinned;
use parking_lot::Mutex;
use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

/// How many devices one process uses at most.
const MOST: usize = 64;

/// The first driver that records kernels which overlap, that of CUDA 12.3.
const OVERLAPS: i32 = 12_030;

/// Results whose parts are joined by the last block to come, in one kernel.
pub(crate) const COUNTERS: usize = 1 << 16;

/// A GPU that is in use.
pub struct Device {
    pub(crate) driver: &'static Driver,
    pub(crate) stream: Handle,
    /// For copies that must be done at once while work for the other stream is recorded.
    side: Handle,
    pub(crate) alarm: Alarm,
    /// Counters of blocks that have come, zero whenever no kernel runs.
    counters: Address,
    pub(crate) kernels: Kernels,
    pub(crate) products: Products,
    pub(crate) affine: Affine,
    pub(crate) convolutions: Convolutions,
    context: Handle,
    ordinal: usize,
    info: Info,
    /// May a kernel be brought to its places while the one before it runs?
    pub(crate) overlaps: bool,
    memory: Memory,
    /// Is work being recorded? Whoever records holds `turn`; all others wait for it.
    pub(crate) recording: AtomicBool,
    pub(crate) turn: Mutex<()>,
    /// What recorded work copies from.
    pub(crate) kept: Mutex<Vec<Pinned>>,
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
    /// Are waits of this thread not counted?
    static UNCOUNTED: Cell<bool> = const { Cell::new(false) };
    /// How often this thread waited for a device, or tried to while it recorded work.
    static WAITS: Cell<u64> = const { Cell::new(0) };
    /// Is told when this thread waits for a device.
    static TOLD: RefCell<Option<Arc<dyn Fn()>>> = const { RefCell::new(None) };
    /// Does this thread record work?
    pub(crate) static RECORDS: Cell<bool> = const { Cell::new(false) };
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

/// How often the calling thread waited for a GPU, or tried to while it recorded work.
pub fn waits() -> u64 {
    WAITS.get()
}

/// Runs `f`, whose waits do not count: it would not wait if work were recorded.
pub fn uncounted<R>(f: impl FnOnce() -> R) -> R {
    // Also where `f` unwinds.
    struct Back(bool);
    impl Drop for Back {
        fn drop(&mut self) {
            UNCOUNTED.set(self.0);
        }
    }
    let _back = Back(UNCOUNTED.replace(true));
    f()
}

/// Runs `f`, and `told` whenever it waits for a GPU or tries to.
pub fn watch_waits<R>(told: Arc<dyn Fn()>, f: impl FnOnce() -> R) -> R {
    // Also where `f` unwinds.
    struct Back(Option<Arc<dyn Fn()>>);
    impl Drop for Back {
        fn drop(&mut self) {
            TOLD.set(self.0.take());
        }
    }
    let _back = Back(TOLD.replace(Some(told)));
    f()
}

/// What the GPU of a number is.
pub fn info(ordinal: usize) -> Result<Info> {
    device(ordinal).map(|d| d.info.clone())
}

impl Device {
    fn start(ordinal: usize) -> Result<Device> {
        Device::of(driver()?, ordinal)
    }

    /// A device of a driver.
    pub(crate) fn of(driver: &'static Driver, ordinal: usize) -> Result<Device> {
        const CAPABILITY: [i32; 2] = [75, 76];
        const MULTIPROCESSORS: i32 = 16;
        let (mut id, mut context) = (0, std::ptr::null_mut());
        let (mut stream, mut side) = (std::ptr::null_mut(), std::ptr::null_mut());
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
            driver.check("cuStreamCreate", (driver.stream_create)(&mut side, 1))?;
            driver.check("cuMemGetInfo", (driver.memory_info)(&mut free, &mut total))?;
        }
        let mut counters = 0;
        // SAFETY: it writes an address of as many bytes, which are then made zero. They are never given back.
        unsafe {
            driver.check("cuMemAlloc", (driver.alloc)(&mut counters, COUNTERS * 4))?;
            driver.check("cuMemsetD8Async", (driver.fill)(counters, 0, COUNTERS * 4, stream))?;
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
        let mut version = 0;
        // SAFETY: it writes a number.
        driver.check("cuDriverGetVersion", unsafe { (driver.version)(&mut version) })?;
        let overlaps = info.capability.0 >= 9 && version >= OVERLAPS;
        Ok(Device {
            alarm: Alarm::new(driver)?,
            counters,
            driver,
            stream,
            side,
            kernels: Kernels::default(),
            products: Products::default(),
            affine: Affine::default(),
            convolutions: Convolutions::default(),
            context,
            ordinal,
            info,
            overlaps,
            memory: Memory::default(),
            recording: AtomicBool::new(false),
            turn: Mutex::new(()),
            kept: Mutex::new(Vec::new()),
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

    /// Counters for so many results whose parts are joined by the last block to come. Kernels follow each other, and leave them
    /// zero, so all use the same.
    pub(crate) fn counters(&self, n: usize) -> Argument {
        assert!(n <= COUNTERS, "no kernel has so many results of several blocks");
        Argument::Address(self.counters)
    }

    /// Its memory as it is used.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Does the calling thread record work of this device?
    pub fn records(&self) -> bool {
        self.recording.load(Ordering::Relaxed) && RECORDS.get()
    }

    /// Fails while work is recorded, for what needs it done.
    fn not_recording(&self, what: &'static str) -> Result<()> {
        if UNCOUNTED.get() && !self.records() {
            return Ok(());
        }
        WAITS.set(WAITS.get() + 1);
        if let Some(told) = TOLD.with_borrow(Option::clone) {
            told();
        }
        if self.records() { Err(Fault::Recording { what }) } else { Ok(()) }
    }

    /// Makes this the device of the calling thread, once nobody else records work for it.
    pub(crate) fn enter(&self) -> Result<()> {
        if self.recording.load(Ordering::Acquire) && !RECORDS.get() {
            drop(self.turn.lock());
        }
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
        if self.records() {
            return self.upload_while_recording(from, to);
        }
        // SAFETY: both places are as long as the copy. Memory that is not pinned is read before the call returns.
        let status = unsafe { (self.driver.upload)(to.address(), from.as_ptr().cast(), from.len(), self.stream) };
        self.driver.check("cuMemcpyHtoDAsync", status)
    }

    /// What recorded work made for itself gets the same bytes whenever it is started; what was there before gets them now.
    fn upload_while_recording(&self, from: &[u8], to: &Block) -> Result<()> {
        let (mut pinned, name) = (Pinned::new(self.driver, from.len())?, "cuMemcpyHtoDAsync");
        pinned.bytes_mut().copy_from_slice(from);
        let stream = if to.is_private() { self.stream } else { self.side };
        // SAFETY: both places are as long as the copy, and the host's is kept as long as it can be read: until the wait, or
        // as long as what is recorded.
        let status = unsafe { (self.driver.upload)(to.address(), pinned.address(), from.len(), stream) };
        self.driver.check(name, status)?;
        if to.is_private() {
            self.kept.lock().push(pinned);
            return Ok(());
        }
        // SAFETY: the stream is never destroyed.
        self.driver.check("cuStreamSynchronize", unsafe { (self.driver.stream_wait)(self.side) })
    }

    /// Copies bytes from the device, after everything that was begun before.
    pub fn download(&self, from: &Block, to: &mut [u8]) -> Result<()> {
        assert!(to.len() <= from.len(), "more bytes than the block has");
        if to.is_empty() {
            return Ok(());
        }
        self.not_recording("reading a value on the host")?;
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
        self.wait_in_drop()?;
        self.alarm.look()
    }

    /// The same for those who cannot tell anybody what kernels noted: it stays noted for the next one who can.
    pub(crate) fn wait_in_drop(&self) -> Result<()> {
        self.not_recording("waiting for the GPU")?;
        self.enter()?;
        // SAFETY: the stream is never destroyed.
        self.driver.check("cuStreamSynchronize", unsafe { (self.driver.stream_wait)(self.stream) })
    }

    /// Waits for everybody's work on the device, other libraries' too.
    pub fn wait_for_all(&self) -> Result<()> {
        self.wait()?;
        // SAFETY: a context is current.
        self.driver.check("cuCtxSynchronize", unsafe { (self.driver.context_wait)() })
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
