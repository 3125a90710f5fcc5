//! A pool of device memory: what was given back is used again.

use crate::device::Device;
use crate::driver::Address;
use crate::fault::{Fault, Result};
use parking_lot::Mutex;
use std::collections::BTreeMap;

/// Sizes up to this are rounded to [`SMALL`], larger ones to an eighth of their power of two.
const LARGE: usize = 1 << 20;
const SMALL: usize = 512;

/// The memory of a device as this process uses it.
#[derive(Default)]
pub struct Memory(Mutex<Pool>);

#[derive(Default)]
struct Pool {
    free: BTreeMap<usize, Vec<Address>>,
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
}

impl Block {
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

    /// The device it lies on.
    pub fn device(&self) -> &'static Device {
        self.device
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        if self.class > 0 {
            let mut pool = self.device.memory().0.lock();
            pool.allocated -= self.class;
            pool.free.entry(self.class).or_default().push(self.address);
        }
    }
}

/// The size that is asked of the driver for so many bytes.
fn class(bytes: usize) -> usize {
    match bytes {
        0 => 0,
        1..=LARGE => bytes.next_multiple_of(SMALL),
        _ => bytes.next_multiple_of(bytes.next_power_of_two() / 16),
    }
}

impl Memory {
    /// A block of so many bytes.
    pub(crate) fn take(&self, device: &'static Device, bytes: usize) -> Result<Block> {
        let class = class(bytes);
        if class == 0 {
            return Ok(Block { device, address: 0, len: 0, class });
        }
        let mut pool = self.0.lock();
        let address = match pool.recycled(class) {
            Some(address) => address,
            None => {
                let fresh = match device.grab(class)? {
                    Some(address) => Some(address),
                    None => {
                        // What nobody uses is given back before anything is refused.
                        device.wait()?;
                        pool.release(device)?;
                        device.grab(class)?
                    }
                };
                let Some(fresh) = fresh else {
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
        Ok(Block { device, address, len: bytes, class })
    }

    /// Gives back to the driver what nobody uses.
    pub fn release(&self, device: &'static Device) -> Result<()> {
        device.wait()?;
        self.0.lock().release(device)
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
    /// A block of this class that was given back.
    fn recycled(&mut self, class: usize) -> Option<Address> {
        let list = self.free.get_mut(&class)?;
        let address = list.pop();
        if list.is_empty() {
            self.free.remove(&class);
        }
        address
    }

    fn release(&mut self, device: &Device) -> Result<()> {
        for (class, list) in std::mem::take(&mut self.free) {
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
            assert!(class >= bytes && class - bytes <= bytes / 7, "{bytes} became {class}");
        }
    }
}
