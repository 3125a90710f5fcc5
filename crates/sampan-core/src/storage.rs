//! Memory shared by a tensor and its views.

use crate::mirror::Mirror;
use crate::recording;
use crate::{DType, Device, Error, profiler};
use parking_lot::{MappedRwLockReadGuard, MappedRwLockWriteGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
use sampan_cuda::Block;
use sampan_kernels::Buffer;
use sampan_kernels::buffer::OutOfMemory;
use smallvec::SmallVec;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

/// Locks that are held together.
type Guards<T> = SmallVec<[T; 8]>;

/// Memory that may be gone.
#[derive(Clone)]
pub(crate) struct WeakStorage(Weak<Inner>);

impl WeakStorage {
    pub fn upgrade(&self) -> Option<Storage> {
        self.0.upgrade().map(Storage)
    }

    /// Is it this memory?
    pub fn is(&self, storage: &Storage) -> bool {
        std::ptr::eq(self.0.as_ptr(), Arc::as_ptr(&storage.0))
    }
}

/// Reference-counted memory with a version that every in-place write advances.
#[derive(Clone)]
pub struct Storage(Arc<Inner>);

struct Inner {
    memory: Memory,
    version: AtomicU64,
    /// Others know the address of the bytes, so what they hold cannot wait for a write to be copied.
    exposed: AtomicBool,
}

enum Memory {
    Cpu(RwLock<Bytes>),
    Cuda(u8, RwLock<Mirror>),
    /// Shapes and dtypes only: inference without computing.
    Meta,
}

/// Bytes of one storage, or of several that hold the same values until one of them is written.
enum Bytes {
    Own(Buffer),
    Shared(Arc<Buffer>),
}

impl Bytes {
    fn get(&self) -> &Buffer {
        match self {
            Bytes::Own(buffer) => buffer,
            Bytes::Shared(buffer) => buffer,
        }
    }

    /// The bytes for this storage alone, copied if others hold them too.
    fn get_mut(&mut self) -> &mut Buffer {
        if let Bytes::Shared(shared) = self
            && Arc::get_mut(shared).is_none()
        {
            *self = Bytes::Own(Buffer::from_slice(shared.bytes()));
        }
        match self {
            Bytes::Own(buffer) => buffer,
            Bytes::Shared(shared) => Arc::get_mut(shared).expect("shared bytes were copied above"),
        }
    }

    /// The bytes, if others hold them already.
    fn shared(&self) -> Option<Arc<Buffer>> {
        if let Bytes::Shared(shared) = self { Some(shared.clone()) } else { None }
    }

    /// The bytes for another storage as well.
    fn share(&mut self) -> Arc<Buffer> {
        if let Bytes::Own(buffer) = self {
            // An empty buffer stands in for a moment; it takes no memory.
            *self = Bytes::Shared(Arc::new(std::mem::replace(buffer, Buffer::uninit(0))));
        }
        match self {
            Bytes::Shared(shared) => shared.clone(),
            Bytes::Own(_) => unreachable!("made shared above"),
        }
    }
}

/// The memory, or the error of a full one.
fn granted(buffer: Result<Buffer, OutOfMemory>) -> Buffer {
    crate::error::unwrap(buffer.map_err(Error::from))
}

impl Storage {
    /// Memory for `numel` elements, values unspecified.
    pub fn uninit(device: Device, dtype: DType, numel: usize) -> Storage {
        Self::with(match device {
            Device::Cpu => Memory::Cpu(Self::locked(granted(Buffer::try_uninit(numel.saturating_mul(dtype.size()))))),
            Device::Cuda(number) => Memory::Cuda(number, RwLock::new(Mirror::new(numel.saturating_mul(dtype.size())))),
            Device::Meta => Memory::Meta,
        })
    }

    /// Zeroed memory for `numel` elements.
    pub fn zeros(device: Device, dtype: DType, numel: usize) -> Storage {
        Self::with(match device {
            Device::Cpu => Memory::Cpu(Self::locked(granted(Buffer::try_zeroed(numel.saturating_mul(dtype.size()))))),
            Device::Cuda(number) => {
                let mirror = Mirror::zeros(number, numel.saturating_mul(dtype.size()));
                Memory::Cuda(number, RwLock::new(crate::error::unwrap(mirror)))
            }
            Device::Meta => Memory::Meta,
        })
    }

    /// Takes over a buffer.
    pub fn from_buffer(buffer: Buffer) -> Storage {
        Self::with(Memory::Cpu(Self::locked(buffer)))
    }

    /// Takes over a buffer for a tensor on a device, to which it goes when a kernel asks for it.
    pub(crate) fn for_use_on(device: Device, buffer: Buffer) -> Storage {
        match device {
            Device::Cuda(number) => Self::with(Memory::Cuda(number, RwLock::new(Mirror::of_host(buffer)))),
            _ => Self::from_buffer(buffer),
        }
    }

    /// Takes over memory of a GPU.
    pub(crate) fn from_block(number: u8, block: Block) -> Storage {
        Self::with(Memory::Cuda(number, RwLock::new(Mirror::of_block(block))))
    }

    fn locked(buffer: Buffer) -> RwLock<Bytes> {
        RwLock::new(Bytes::Own(buffer))
    }

    /// Another storage with the same values, copied when one of the two is first written; `None` where they must be
    /// copied now, since others can write them unseen or a kernel is at work on them.
    pub fn lazy_copy(&self) -> Option<Storage> {
        let bytes = match &self.0.memory {
            Memory::Meta => return Some(Self::with(Memory::Meta)),
            Memory::Cuda(..) => return None,
            Memory::Cpu(bytes) => bytes,
        };
        let known = bytes.read_recursive().shared();
        let shared = known.or_else(|| Some(bytes.try_write()?.share()))?;
        // Asked last: whoever exposes it from now on makes a copy first.
        if self.0.exposed.load(Ordering::Acquire) {
            return None;
        }
        Some(Self::with(Memory::Cpu(RwLock::new(Bytes::Shared(shared)))))
    }

    /// Takes over the values of another storage of the same length, copied when one of the two is next written; false
    /// where that cannot be.
    pub fn take_values(&self, other: &Storage) -> bool {
        let (Memory::Cpu(mine), false) = (&self.0.memory, self.0.exposed.load(Ordering::Acquire)) else { return false };
        let Some(copy) = other.lazy_copy() else { return false };
        let Memory::Cpu(theirs) = &copy.0.memory else { return false };
        let values = theirs.write().share();
        let mut mine = mine.write();
        if mine.get().len() != values.len() {
            return false;
        }
        *mine = Bytes::Shared(values);
        true
    }

    /// Gives the address of the bytes away: from now on somebody else may read and write them.
    pub fn expose(&self) -> usize {
        self.used();
        self.0.exposed.store(true, Ordering::Release);
        match &self.0.memory {
            Memory::Cpu(bytes) => bytes.write().get_mut().bytes().as_ptr().addr(),
            Memory::Cuda(number, mirror) => crate::error::unwrap(mirror.write().on_device(*number)).address() as usize,
            Memory::Meta => 0,
        }
    }

    fn with(memory: Memory) -> Storage {
        if profiler::on()
            && let Memory::Cpu(bytes) = &memory
            && let Bytes::Own(buffer) = &*bytes.read()
        {
            profiler::allocated(buffer.len());
        }
        let storage = Storage(Arc::new(Inner { memory, version: AtomicU64::new(0), exposed: AtomicBool::new(false) }));
        if recording::taping() {
            recording::made(&storage);
        }
        storage
    }

    /// Does the host have the values, and no GPU?
    pub(crate) fn is_on_host(&self) -> bool {
        match &self.0.memory {
            Memory::Cpu(_) => true,
            Memory::Cuda(_, mirror) => mirror.read_recursive().is_on_host(),
            Memory::Meta => false,
        }
    }

    /// Where it lies.
    pub fn device(&self) -> Device {
        match self.0.memory {
            Memory::Cpu(_) => Device::Cpu,
            Memory::Cuda(number, _) => Device::Cuda(number),
            Memory::Meta => Device::Meta,
        }
    }

    /// Whoever records the CPU's work must know what uses values.
    #[inline]
    fn used(&self) {
        if recording::on_cpu() {
            recording::stray();
        }
    }

    /// Reads the bytes. Panics on a meta tensor, which has none; `Cx::cpu` keeps kernels away from those.
    pub fn read(&self) -> MappedRwLockReadGuard<'_, Buffer> {
        self.used();
        match &self.0.memory {
            // Recursive, since one call may read the same tensor twice (`x * x`).
            Memory::Cpu(b) => RwLockReadGuard::map(b.read_recursive(), Bytes::get),
            Memory::Cuda(_, mirror) => {
                if self.0.exposed.load(Ordering::Acquire) {
                    mirror.write().distrust_host();
                }
                Self::fetched(mirror)
            }
            Memory::Meta => panic!("a meta tensor holds no values"),
        }
    }

    /// Writes the bytes.
    pub fn write(&self) -> MappedRwLockWriteGuard<'_, Buffer> {
        self.used();
        match &self.0.memory {
            Memory::Cpu(b) => RwLockWriteGuard::map(b.write(), Bytes::get_mut),
            Memory::Cuda(_, mirror) => RwLockWriteGuard::map(mirror.write(), Mirror::for_host),
            Memory::Meta => panic!("a meta tensor holds no values"),
        }
    }

    /// Some memory to write and some to read. Nobody who holds a write lock waits for another lock: two threads that
    /// copy into each other's memory would wait for ever.
    pub fn lock_all<'a>(
        writes: impl Iterator<Item = &'a Storage> + Clone,
        reads: impl Iterator<Item = &'a Storage> + Clone,
    ) -> (Guards<MappedRwLockWriteGuard<'a, Buffer>>, Guards<MappedRwLockReadGuard<'a, Buffer>>) {
        'again: loop {
            let (mut written, mut read) = (Guards::new(), Guards::new());
            for storage in writes.clone() {
                let Some(guard) = storage.try_write() else {
                    drop(written);
                    // Waits, with empty hands.
                    drop(storage.write());
                    continue 'again;
                };
                written.push(guard);
            }
            for storage in reads.clone() {
                let Some(guard) = storage.try_read() else {
                    drop((written, read));
                    drop(storage.read());
                    continue 'again;
                };
                read.push(guard);
            }
            return (written, read);
        }
    }

    /// [`lock_all`](Self::lock_all) for one of each.
    pub fn lock_pair<'a>(
        to: &'a Storage,
        from: &'a Storage,
    ) -> (MappedRwLockWriteGuard<'a, Buffer>, MappedRwLockReadGuard<'a, Buffer>) {
        loop {
            let write = to.write();
            if let Some(read) = from.try_read() {
                return (write, read);
            }
            drop(write);
            drop(from.read());
        }
    }

    fn try_read(&self) -> Option<MappedRwLockReadGuard<'_, Buffer>> {
        self.used();
        match &self.0.memory {
            Memory::Cpu(b) => Some(RwLockReadGuard::map(b.try_read_recursive()?, Bytes::get)),
            Memory::Cuda(_, mirror) => {
                if mirror.try_read_recursive()?.is_behind() {
                    mirror.try_write()?.fetch();
                }
                Some(RwLockReadGuard::map(mirror.try_read_recursive()?, Mirror::host))
            }
            Memory::Meta => panic!("a meta tensor holds no values"),
        }
    }

    fn try_write(&self) -> Option<MappedRwLockWriteGuard<'_, Buffer>> {
        self.used();
        match &self.0.memory {
            Memory::Cpu(b) => Some(RwLockWriteGuard::map(b.try_write()?, Bytes::get_mut)),
            Memory::Cuda(_, mirror) => Some(RwLockWriteGuard::map(mirror.try_write()?, Mirror::for_host)),
            Memory::Meta => panic!("a meta tensor holds no values"),
        }
    }

    /// The values of a GPU tensor on the host.
    fn fetched(mirror: &RwLock<Mirror>) -> MappedRwLockReadGuard<'_, Buffer> {
        loop {
            let read = mirror.read_recursive();
            if !read.is_behind() {
                return RwLockReadGuard::map(read, Mirror::host);
            }
            drop(read);
            mirror.write().fetch();
        }
    }

    /// The memory on the GPU with the values as they are, for a kernel that reads it.
    pub(crate) fn on_device(&self) -> crate::Result<Arc<Block>> {
        match &self.0.memory {
            Memory::Cuda(number, mirror) => self.noted(mirror.write().on_device(*number)?, false),
            _ => Err(Error::invalid("needs a tensor on a GPU")),
        }
    }

    /// Tells whoever records the work of a GPU that a kernel works on this memory.
    fn noted(&self, block: Arc<Block>, written: bool) -> crate::Result<Arc<Block>> {
        if recording::on() {
            recording::touched(self, &block, written);
        }
        Ok(block)
    }

    pub(crate) fn downgrade(&self) -> WeakStorage {
        WeakStorage(Arc::downgrade(&self.0))
    }

    /// The memory on the GPU for a kernel that writes all of it.
    pub(crate) fn for_device(&self) -> crate::Result<Arc<Block>> {
        match &self.0.memory {
            Memory::Cuda(number, mirror) => self.noted(mirror.write().for_device(*number)?, true),
            _ => Err(Error::invalid("needs a tensor on a GPU")),
        }
    }

    /// The memory on the GPU for a kernel that writes part of it.
    pub(crate) fn to_change_on_device(&self) -> crate::Result<Arc<Block>> {
        match &self.0.memory {
            Memory::Cuda(number, mirror) => {
                let mut mirror = mirror.write();
                mirror.on_device(*number)?;
                self.noted(mirror.for_device(*number)?, true)
            }
            _ => Err(Error::invalid("needs a tensor on a GPU")),
        }
    }

    /// How often it was written in place.
    pub fn version(&self) -> u64 {
        self.0.version.load(Ordering::Acquire)
    }

    /// Counts one in-place write.
    pub fn bump(&self) -> u64 {
        self.0.version.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// The same number for the same memory, while it lives.
    pub fn address(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }

    /// Do both name the same memory?
    pub fn same(&self, other: &Storage) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Does nobody else hold it or know where it is, and was it not written since that version?
    pub(crate) fn is_as_new(&mut self, version: u64) -> bool {
        let Some(inner) = Arc::get_mut(&mut self.0) else { return false };
        !*inner.exposed.get_mut() && *inner.version.get_mut() == version
    }

    /// How many hold it.
    pub(crate) fn holders(&self) -> usize {
        Arc::strong_count(&self.0)
    }

    /// Does anybody else hold it?
    pub fn is_shared(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }
}
