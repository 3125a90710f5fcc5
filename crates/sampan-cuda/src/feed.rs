//! Bytes on their way to a device while the host goes on.

use crate::device::Device;
use crate::event::Event;
use crate::fault::Result;
use crate::memory::Block;
use crate::pinned::Pinned;

/// Places that are less than this apart are one piece.
const NEAR: usize = 64;
/// Bytes that are copied at once: an eighth of the room, but no fewer and no more than these.
const LEAST: usize = 128 << 10;
const MOST: usize = 2 << 20;

/// Copies to a device that do not wait for it: the bytes are put into one of two places that the device reads by itself.
pub struct Feed {
    device: &'static Device,
    places: Vec<(Pinned, Event)>,
    next: usize,
    /// Was the place of the last copies not yet marked as in use until they are done?
    unmarked: bool,
}

/// Bytes that go in one piece: where they begin on the device, and where they begin and end here.
struct Piece {
    address: u64,
    from: usize,
    end: usize,
}

impl Feed {
    /// A feed with room for so many bytes a time.
    pub fn new(device: &'static Device, bytes: usize) -> Result<Feed> {
        device.enter()?;
        let place = || -> Result<_> { Ok((Pinned::new(device.driver, bytes)?, Event::new(device, false)?)) };
        Ok(Feed { device, places: vec![place()?, place()?], next: 0, unmarked: false })
    }

    /// The room that so many places with so many bytes need.
    pub fn room(places: usize, bytes: usize) -> usize {
        bytes + places * NEAR
    }

    /// Copies to places in blocks (where they begin, and how long they are), those that lie near each other in one piece; what lies
    /// between them is changed too. `fill` writes bytes of the place of a number, those from the second number on. While the device
    /// reads some bytes the next are brought to where it can read them.
    pub fn send(&mut self, to: &[(&Block, usize, usize)], mut fill: impl FnMut(usize, usize, &mut [u8])) -> Result<()> {
        self.sent()?;
        let (place, used) = &mut self.places[self.next % 2];
        // The copies from this place before the last ones.
        used.wait()?;
        let (mut pieces, mut starts): (Vec<Piece>, Vec<(usize, usize, usize)>) = (Vec::new(), Vec::new());
        for (number, &(block, start, bytes)) in to.iter().enumerate().filter(|(_, (_, _, bytes))| *bytes > 0) {
            assert!(start + bytes <= block.len(), "more bytes than the block has");
            let address = block.address() + start as u64;
            let gap = pieces.last().and_then(|p| address.checked_sub(p.address + (p.end - p.from) as u64));
            let from = match (pieces.last_mut(), gap) {
                (Some(last), Some(gap)) if gap < NEAR as u64 => {
                    let from = last.end + gap as usize;
                    last.end = from + bytes;
                    from
                }
                (last, _) => {
                    let from = last.map_or(0, |p| p.end.next_multiple_of(16));
                    pieces.push(Piece { address, from, end: from + bytes });
                    from
                }
            };
            assert!(from + bytes <= place.len(), "the feed was made for as many bytes");
            starts.push((number, from, bytes));
        }
        let at_once = (place.len() / 8).clamp(LEAST, MOST);
        let device = self.device;
        self.unmarked = true;
        let mut starts = starts.into_iter().peekable();
        for piece in pieces {
            let mut copied = piece.from;
            while let Some((number, from, bytes)) = starts.next_if(|s| s.1 < piece.end) {
                let mut filled = 0;
                while filled < bytes {
                    let now = (bytes - filled).min(at_once);
                    fill(number, filled, &mut place.bytes_mut()[from + filled..from + filled + now]);
                    filled += now;
                    let end = from + filled;
                    if end == piece.end || end - copied >= at_once {
                        let here = place.address().wrapping_byte_add(copied);
                        let there = piece.address + (copied - piece.from) as u64;
                        // SAFETY: both places are as long as the copy: between neighbours lies memory of the block that both are
                        // parts of. The host's is written again only after the event that `sent` records.
                        let status = unsafe { (device.driver.upload)(there, here, end - copied, device.stream) };
                        device.driver.check("cuMemcpyHtoDAsync", status)?;
                        copied = end;
                    }
                }
            }
        }
        Ok(())
    }

    /// Everything that belongs to the last copies was begun: their place may be used again once it is done.
    pub fn sent(&mut self) -> Result<()> {
        if self.unmarked {
            self.places[self.next % 2].1.record()?;
            self.unmarked = false;
            self.next += 1;
        }
        Ok(())
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        // The device may still be reading.
        let _ = self.sent();
        for (_, used) in &self.places {
            let _ = used.wait();
        }
    }
}
