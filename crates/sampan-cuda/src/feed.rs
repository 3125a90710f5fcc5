//! Bytes on their way to a device while the host goes on.

use crate::device::Device;
use crate::event::Event;
use crate::fault::Result;
use crate::memory::Block;
use crate::pinned::Pinned;

/// Copies to a device that do not wait for it: the bytes are put into one of two places that the device reads by itself.
pub struct Feed {
    device: &'static Device,
    places: Vec<(Pinned, Event)>,
    next: usize,
}

impl Feed {
    /// A feed with room for so many bytes a time.
    pub fn new(device: &'static Device, bytes: usize) -> Result<Feed> {
        device.enter()?;
        let place = || -> Result<_> { Ok((Pinned::new(device.driver, bytes)?, Event::new(device, false)?)) };
        Ok(Feed { device, places: vec![place()?, place()?], next: 0 })
    }

    /// Copies to places in blocks (where they begin, and how long they are): `fill` writes the bytes of all of them, one after
    /// the other.
    pub fn send(&mut self, to: &[(&Block, usize, usize)], fill: impl FnOnce(&mut [u8])) -> Result<()> {
        let total = to.iter().map(|(_, _, bytes)| bytes).sum::<usize>();
        let at = self.next % self.places.len();
        let (place, used) = &mut self.places[at];
        assert!(total <= place.len(), "the feed was made for as many bytes");
        // The copy from this place before the last one.
        used.wait()?;
        fill(&mut place.bytes_mut()[..total]);
        let mut from = place.address();
        for &(block, start, bytes) in to.iter().filter(|(_, _, bytes)| *bytes > 0) {
            assert!(start + bytes <= block.len(), "more bytes than the block has");
            // SAFETY: both places are as long as the copy; the host's is written again only after the event below.
            let status =
                unsafe { (self.device.driver.upload)(block.address() + start as u64, from, bytes, self.device.stream) };
            self.device.driver.check("cuMemcpyHtoDAsync", status)?;
            from = from.wrapping_byte_add(bytes);
        }
        used.record()?;
        self.next += 1;
        Ok(())
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        // The device may still be reading.
        for (_, used) in &self.places {
            let _ = used.wait();
        }
    }
}
