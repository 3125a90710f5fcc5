//! A pool of device memory: what was given back is used again.

use crate::device::Device;
use crate::driver::Address;
use crate::fault::{Fault, Result};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Sizes up to this are rounded to [`SMALL`], larger ones to a 32nd of the power of two above them.
const LARGE: usize = 1 << 20;
const SMALL: usize = 512;

/// The memory of a device as this process uses it.
#[derive(Default)]
pub struct Memory(Mutex<Pool>);

/// The memory of whoever asks; recorded work has a pool of its own, which nobody else may use while it can be started again.
const COMMON: u32 = 0;

#[derive(Default)]
struct Pool {
    free: BTreeMap<(u32, usize), Vec<Address>>,
    /// The pool that memory is taken from now.
    current: u32,
    /// Pools that were ever made.
    made: u32,
    /// Those that are in use.
    private: BTreeSet<u32>,
    allocated: usize,
    reserved: usize,
    most_allocated: usize,
    most_reserved: usize,
}

/// A piece of device memory, given back to the pool when it is dropped.
pub struct Block {
    device: &'static Device,
    address: Address,
    len: usize,
    class: usize,
    pool: u32,
    /// Whose memory it is, if it is not the pool's.
    owner: Owner,
}

/// Whose memory a block is.
enum Owner {
    Pool,
    /// A larger block, whose part it is.
    Whole {
        _block: Arc<Block>,
    },
    /// Somebody else, who may take it away once all work has been done.
    Other {
        _owner: Box<dyn std::any::Any + Send + Sync>,
    },
}

impl Block {
    /// Memory of somebody else, who is dropped with it, once all work has been done.
    ///
    /// # Safety
    /// There are so many bytes at the address, on this device, as long as the owner lives.
    pub unsafe fn foreign(
        device: &'static Device,
        address: u64,
        len: usize,
        owner: impl std::any::Any + Send + Sync,
    ) -> Block {
        Block { device, address, len, class: 0, pool: COMMON, owner: Owner::Other { _owner: Box::new(owner) } }
    }

    /// So many bytes of a larger block.
    pub fn part(whole: &Arc<Block>, start: usize, len: usize) -> Block {
        assert!(start + len <= whole.len, "a part lies inside its block");
        let (address, owner) = (whole.address + start as u64, Owner::Whole { _block: whole.clone() });
        Block { device: whole.device, address, len, class: 0, pool: whole.pool, owner }
    }

    /// Where it lies.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Its bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Has it no bytes?
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Was it taken for the work that is being recorded? Then that work alone decides what lies there.
    pub fn is_private(&self) -> bool {
        self.pool != COMMON && self.pool == self.device.memory().0.lock().current
    }

    /// The device it lies on.
    pub fn device(&self) -> &'static Device {
        self.device
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        if let Owner::Other { .. } = self.owner {
            // Work of ours may still use it. A failure is told by the next call that waits.
            let _ = self.device.wait_in_drop();
        }
        if self.class > 0 {
            let mut pool = self.device.memory().0.lock();
            pool.allocated -= self.class;
            let home = if pool.private.contains(&self.pool) { self.pool } else { COMMON };
            pool.free.entry((home, self.class)).or_default().push(self.address);
        }
    }
}

/// The size that is asked of the driver for so many bytes.
fn class(bytes: usize) -> usize {
    match bytes {
        0 => 0,
        1..=LARGE => bytes.next_multiple_of(SMALL),
        _ => bytes.next_multiple_of(bytes.next_power_of_two() / 32),
    }
}

impl Memory {
    /// A block of so many bytes.
    pub(crate) fn take(&self, device: &'static Device, bytes: usize) -> Result<Block> {
        let class = class(bytes);
        if class == 0 {
            return Ok(Block { device, address: 0, len: 0, class, pool: COMMON, owner: Owner::Pool });
        }
        let mut pool = self.0.lock();
        let home = pool.current;
        let address = match pool.recycled(class) {
            Some(address) => address,
            None => {
                let fresh = match device.grab(class)? {
                    Some(address) => Some(address),
                    None => {
                        // What nobody uses is given back before anything is refused. Not under the lock: whoever records work
                        // is waited for, who may want memory as well.
                        drop(pool);
                        device.wait()?;
                        pool = self.0.lock();
                        pool.release(device)?;
                        device.grab(class)?
                    }
                };
                let Some(fresh) = fresh else {
                    drop(pool);
                    let (free, total) = device.free_and_total()?;
                    return Err(Fault::OutOfMemory { wanted: bytes, free, total });
                };
                pool.reserved += class;
                pool.most_reserved = pool.most_reserved.max(pool.reserved);
                fresh
            }
        };
        pool.allocated += class;
        pool.most_allocated = pool.most_allocated.max(pool.allocated);
        Ok(Block { device, address, len: bytes, class, pool: home, owner: Owner::Pool })
    }

    /// Gives back to the driver what nobody uses.
    pub fn release(&self, device: &'static Device) -> Result<()> {
        device.wait()?;
        self.0.lock().release(device)
    }

    /// Takes memory from a new pool from now on; its number.
    pub(crate) fn begin_private(&self) -> u32 {
        let mut pool = self.0.lock();
        pool.made += 1;
        pool.current = pool.made;
        let new = pool.made;
        pool.private.insert(new);
        new
    }

    /// Takes memory from the common pool again.
    pub(crate) fn end_private(&self) {
        self.0.lock().current = COMMON;
    }

    /// Everybody may use the memory of a pool, now and when what still holds some is dropped.
    pub(crate) fn dissolve(&self, private: u32) {
        let mut pool = self.0.lock();
        pool.private.remove(&private);
        let keys: Vec<_> = pool.free.keys().copied().filter(|(home, _)| *home == private).collect();
        for key in keys {
            let list = pool.free.remove(&key).expect("its key was found");
            pool.free.entry((COMMON, key.1)).or_default().extend(list);
        }
    }

    /// Bytes in use.
    pub fn allocated(&self) -> usize {
        self.0.lock().allocated
    }

    /// Bytes taken from the driver.
    pub fn reserved(&self) -> usize {
        self.0.lock().reserved
    }

    /// The most bytes that were in use.
    pub fn most_allocated(&self) -> usize {
        self.0.lock().most_allocated
    }

    /// The most bytes that were taken from the driver.
    pub fn most_reserved(&self) -> usize {
        self.0.lock().most_reserved
    }

    /// Counts the most bytes from now on.
    pub fn forget_most(&self) {
        let mut pool = self.0.lock();
        (pool.most_allocated, pool.most_reserved) = (pool.allocated, pool.reserved);
    }
}

impl Pool {
    /// A block of this class that was given back. What lies in the common pool may go over to another: all work on it was
    /// begun before.
    fn recycled(&mut self, class: usize) -> Option<Address> {
        let own = self.taken_from(self.current, class);
        own.or_else(|| self.taken_from(COMMON, class))
    }

    fn taken_from(&mut self, home: u32, class: usize) -> Option<Address> {
        let list = self.free.get_mut(&(home, class))?;
        let address = list.pop();
        if list.is_empty() {
            self.free.remove(&(home, class));
        }
        address
    }

    fn release(&mut self, device: &Device) -> Result<()> {
        let (unused, kept) = std::mem::take(&mut self.free).into_iter().partition(|((home, _), _)| *home == COMMON);
        self.free = kept;
        let unused: BTreeMap<(u32, usize), Vec<Address>> = unused;
        for ((_, class), list) in unused {
            for address in list {
                self.reserved -= class;
                device.drop_memory(address)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::class;

    #[test]
    fn sizes_are_rounded_a_little() {
        assert_eq!([class(0), class(1), class(512), class(513), class(1 << 20)], [0, 512, 512, 1024, 1 << 20]);
        for bytes in [(1 << 20) + 1, 3_000_000, 100 << 20, (1 << 30) + 7] {
            let class = class(bytes);
            assert!(class >= bytes && class - bytes <= bytes / 15, "{bytes} became {class}");
        }
    }
}
