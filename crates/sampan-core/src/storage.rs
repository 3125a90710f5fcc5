//! Memory shared by a tensor and its views.

use crate::{DType, Device, Error, profiler};
use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use sampan_kernels::Buffer;
use sampan_kernels::buffer::OutOfMemory;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Reference-counted memory with a version that every in-place write advances.
#[derive(Clone)]
pub struct Storage(Arc<Inner>);

struct Inner {
    memory: Memory,
    version: AtomicU64,
    /// The version written by the last in-place op that autograd recorded. A view made before it has a stale history.
    recorded: AtomicU64,
}

enum Memory {
    Cpu(RwLock<Buffer>),
    /// Shapes and dtypes only: inference without computing.
    Meta,
}

/// The memory, or the error of a full one.
fn granted(buffer: Result<Buffer, OutOfMemory>) -> Buffer {
    crate::error::unwrap(buffer.map_err(Error::from))
}

impl Storage {
    /// Memory for `numel` elements, values unspecified.
    pub fn uninit(device: Device, dtype: DType, numel: usize) -> Storage {
        Self::with(match device {
            Device::Cpu => Memory::Cpu(RwLock::new(granted(Buffer::try_uninit(numel.saturating_mul(dtype.size()))))),
            Device::Meta => Memory::Meta,
        })
    }

    /// Zeroed memory for `numel` elements.
    pub fn zeros(device: Device, dtype: DType, numel: usize) -> Storage {
        Self::with(match device {
            Device::Cpu => Memory::Cpu(RwLock::new(granted(Buffer::try_zeroed(numel.saturating_mul(dtype.size()))))),
            Device::Meta => Memory::Meta,
        })
    }

    /// Takes over a buffer.
    pub fn from_buffer(buffer: Buffer) -> Storage {
        Self::with(Memory::Cpu(RwLock::new(buffer)))
    }

    fn with(memory: Memory) -> Storage {
        if profiler::on()
            && let Memory::Cpu(buffer) = &memory
        {
            profiler::allocated(buffer.read().len());
        }
        Storage(Arc::new(Inner { memory, version: AtomicU64::new(0), recorded: AtomicU64::new(0) }))
    }

    /// Where it lies.
    pub fn device(&self) -> Device {
        match self.0.memory {
            Memory::Cpu(_) => Device::Cpu,
            Memory::Meta => Device::Meta,
        }
    }

    /// Reads the bytes. Panics on a meta tensor, which has none; `Cx::cpu` keeps kernels away from those.
    pub fn read(&self) -> RwLockReadGuard<'_, Buffer> {
        match &self.0.memory {
            // Recursive, since one call may read the same tensor twice (`x * x`).
            Memory::Cpu(b) => b.read_recursive(),
            Memory::Meta => panic!("a meta tensor holds no values"),
        }
    }

    /// Writes the bytes.
    pub fn write(&self) -> RwLockWriteGuard<'_, Buffer> {
        match &self.0.memory {
            Memory::Cpu(b) => b.write(),
            Memory::Meta => panic!("a meta tensor holds no values"),
        }
    }

    /// Some memory to write and some to read. Nobody who holds a write lock waits for another lock: two threads that
    /// copy into each other's memory would wait for ever.
    pub fn lock_all<'a>(
        writes: impl Iterator<Item = &'a Storage> + Clone,
        reads: impl Iterator<Item = &'a Storage> + Clone,
    ) -> (Vec<RwLockWriteGuard<'a, Buffer>>, Vec<RwLockReadGuard<'a, Buffer>>) {
        'again: loop {
            let (mut written, mut read) = (Vec::new(), Vec::new());
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
    ) -> (RwLockWriteGuard<'a, Buffer>, RwLockReadGuard<'a, Buffer>) {
        loop {
            let write = to.write();
            if let Some(read) = from.try_read() {
                return (write, read);
            }
            drop(write);
            drop(from.read());
        }
    }

    fn try_read(&self) -> Option<RwLockReadGuard<'_, Buffer>> {
        match &self.0.memory {
            Memory::Cpu(b) => b.try_read_recursive(),
            Memory::Meta => panic!("a meta tensor holds no values"),
        }
    }

    fn try_write(&self) -> Option<RwLockWriteGuard<'_, Buffer>> {
        match &self.0.memory {
            Memory::Cpu(b) => b.try_write(),
            Memory::Meta => panic!("a meta tensor holds no values"),
        }
    }

    /// How often it was written in place.
    pub fn version(&self) -> u64 {
        self.0.version.load(Ordering::Acquire)
    }

    /// Counts one in-place write; `recorded` tells whether autograd knows of it.
    pub fn bump(&self, recorded: bool) -> u64 {
        let v = self.0.version.fetch_add(1, Ordering::AcqRel) + 1;
        if recorded {
            self.0.recorded.store(v, Ordering::Release);
        }
        v
    }

    /// The version of the last write that autograd recorded.
    pub fn recorded_version(&self) -> u64 {
        self.0.recorded.load(Ordering::Acquire)
    }

    /// The same number for the same memory, while it lives.
    pub fn address(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }

    /// Do both name the same memory?
    pub fn same(&self, other: &Storage) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Does anybody else hold it?
    pub fn is_shared(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }
}
