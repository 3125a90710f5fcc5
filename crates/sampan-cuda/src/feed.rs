//! Bytes on their way to a device while the host goes on.

use crate::device::Device;
use crate::event::Event;
use crate::fault::Result;
use crate::memory::Block;
use crate::pinned::Pinned;

/// Places that are less than this apart are one piece.
const NEAR: usize = 64;

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

    /// The room that so many places with so many bytes need.
    pub fn room(places: usize, bytes: usize) -> usize {
        bytes + places * NEAR
    }

    /// Copies to places in blocks (where they begin, and how long they are), those that lie near each other in one piece; what lies
    /// between them is changed too. `fill` writes the bytes of the place of a number.
    pub fn send(&mut self, to: &[(&Block, usize, usize)], mut fill: impl FnMut(usize, &mut [u8])) -> Result<()> {
        let at = self.next % self.places.len();
        let (place, used) = &mut self.places[at];
        // The copy from this place before the last one.
        used.wait()?;
        // Pieces: their address on the device, and where they begin and end here.
        let mut pieces: Vec<(u64, usize, usize)> = Vec::new();
        for (number, &(block, start, bytes)) in to.iter().enumerate().filter(|(_, (_, _, bytes))| *bytes > 0) {
            assert!(start + bytes <= block.len(), "more bytes than the block has");
            let address = block.address() + start as u64;
            let gap = pieces.last().and_then(|p| address.checked_sub(p.0 + (p.2 - p.1) as u64));
            let from = match (pieces.last_mut(), gap) {
                (Some(last), Some(gap)) if gap < NEAR as u64 => {
                    let from = last.2 + gap as usize;
                    last.2 = from + bytes;
                    from
                }
                (last, _) => {
                    let from = last.map_or(0, |p| p.2.next_multiple_of(16));
                    pieces.push((address, from, from + bytes));
                    from
                }
            };
            assert!(from + bytes <= place.len(), "the feed was made for as many bytes");
            fill(number, &mut place.bytes_mut()[from..from + bytes]);
        }
        for (address, from, end) in pieces {
            let here = place.address().wrapping_byte_add(from);
            // SAFETY: both places are as long as the copy: between neighbours lies memory of the block that both are parts of. The
            // host's is written again only after the event below.
            let status = unsafe { (self.device.driver.upload)(address, here, end - from, self.device.stream) };
            self.device.driver.check("cuMemcpyHtoDAsync", status)?;
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
