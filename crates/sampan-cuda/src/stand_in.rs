//! A driver without a GPU, for tests: memory is numbers, of which there are few, and work is done by not doing it.

use crate::device::Device;
use crate::driver::{Address, Driver, Handle, OUT_OF_MEMORY};
use std::alloc::{Layout, alloc_zeroed};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// The memory that the stand-in has.
pub const ROOM: usize = 64 << 20;

/// What is taken of it.
static TAKEN: Mutex<Option<HashMap<Address, usize>>> = Mutex::new(None);
static NEXT: AtomicU64 = AtomicU64::new(1 << 40);
/// How often memory was asked for, and how often recorded work was started.
pub static ASKED: AtomicUsize = AtomicUsize::new(0);
pub static STARTED: AtomicUsize = AtomicUsize::new(0);
/// How often bytes were copied to the device.
pub static COPIED: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// A device that is looked at: did others wait for it when its stream began and ceased to be captured?
    static LOOKED_AT: Cell<Option<&'static Device>> = const { Cell::new(None) };
    static OTHERS_WAITED: RefCell<Vec<bool>> = const { RefCell::new(Vec::new()) };
    /// Does no capture begin?
    static REFUSES: Cell<bool> = const { Cell::new(false) };
}

fn look() {
    if let Some(device) = LOOKED_AT.get() {
        OTHERS_WAITED.with_borrow_mut(|seen| seen.push(device.recording.load(Ordering::Relaxed)));
    }
}

unsafe extern "C" fn record_begin(_: Handle, _: u32) -> i32 {
    look();
    REFUSES.get() as i32
}

unsafe extern "C" fn record_end(_: Handle, _: *mut Handle) -> i32 {
    look();
    0
}

fn used() -> usize {
    TAKEN.lock().unwrap().as_ref().map_or(0, |t| t.values().sum())
}

unsafe extern "C" fn alloc(to: *mut Address, bytes: usize) -> i32 {
    ASKED.fetch_add(1, Ordering::Relaxed);
    if used() + bytes > ROOM {
        return OUT_OF_MEMORY;
    }
    let address = NEXT.fetch_add(bytes.next_multiple_of(512) as u64, Ordering::Relaxed);
    TAKEN.lock().unwrap().get_or_insert_default().insert(address, bytes);
    // SAFETY: the caller gives a place for an address.
    unsafe { *to = address };
    0
}

unsafe extern "C" fn free(address: Address) -> i32 {
    let known = TAKEN.lock().unwrap().as_mut().and_then(|t| t.remove(&address));
    assert!(known.is_some(), "memory that was not taken is given back");
    0
}

unsafe extern "C" fn host_alloc(to: *mut *mut c_void, bytes: usize, _: u32) -> i32 {
    // SAFETY: at least one byte; tests do not give it back.
    unsafe { *to = alloc_zeroed(Layout::from_size_align(bytes.max(1), 64).unwrap()).cast() };
    0
}

unsafe extern "C" fn info(free: *mut usize, total: *mut usize) -> i32 {
    // SAFETY: the caller gives two places.
    unsafe { (*free, *total) = (ROOM - used(), ROOM) };
    0
}

unsafe extern "C" fn upload(_: Address, _: *const c_void, _: usize, _: Handle) -> i32 {
    COPIED.fetch_add(1, Ordering::Relaxed);
    0
}

unsafe extern "C" fn launch(_: Handle, _: Handle) -> i32 {
    STARTED.fetch_add(1, Ordering::Relaxed);
    0
}

/// A device of this driver. All of them share its memory.
pub fn device() -> &'static Device {
    let driver =
        Driver { alloc, free, host_alloc, memory_info: info, graph_launch: launch, upload, ..Driver::stand_in() };
    let driver = Driver { record_begin, record_end, ..driver };
    let driver: &'static Driver = Box::leak(Box::new(driver));
    Box::leak(Box::new(Device::of(driver, 0).expect("the stand-in always starts")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::Fault;
    use crate::feed::Feed;
    use crate::memory::Block;

    /// All in one, since all share the memory of the stand-in.
    #[test]
    fn memory_is_used_again_and_recorded_work_keeps_its_own() {
        let gpu = device();
        let first = gpu.alloc(1000).unwrap().address();
        let asked = ASKED.load(Ordering::Relaxed);
        // What was given back serves the next of its size.
        let block = gpu.alloc(900).unwrap();
        assert_eq!((block.address(), ASKED.load(Ordering::Relaxed)), (first, asked));
        assert_eq!((gpu.memory().allocated(), gpu.memory().reserved()), (1024, 1024));

        // A full memory gives its caches back, and only then is it an error, which says how much there is.
        let large = gpu.alloc(ROOM / 2).unwrap();
        drop(large);
        let other = gpu.alloc(ROOM / 2 + (4 << 20)).unwrap();
        let Err(Fault::OutOfMemory { wanted, total, .. }) = gpu.alloc(ROOM / 2) else { panic!("there is no room") };
        assert_eq!((wanted, total), (ROOM / 2, ROOM));
        drop(other);
        gpu.memory().release(gpu).unwrap();
        assert_eq!(gpu.memory().reserved(), 1024);

        // While work is recorded, values cannot be had and nobody waits; memory comes from a pool of its own, which takes
        // over what lies unused.
        let unused = gpu.alloc(5000).unwrap().address();
        let recorder = gpu.record().unwrap();
        assert!(gpu.records());
        assert!(matches!(gpu.wait(), Err(Fault::Recording { .. })));
        assert!(matches!(gpu.download(&block, &mut [0; 4]), Err(Fault::Recording { .. })));
        let (inside, again) = {
            let inside = gpu.alloc(5000).unwrap();
            assert!(inside.is_private() && !block.is_private());
            gpu.upload(&[1; 8], &inside).unwrap();
            gpu.upload(&[1; 8], &block).unwrap();
            let address = inside.address();
            drop(inside);
            (address, gpu.alloc(4900).unwrap())
        };
        assert_eq!((inside, again.address()), (unused, unused));
        let kept = gpu.alloc(3000).unwrap();
        let graph = recorder.finish().unwrap();
        assert!(!gpu.records());
        drop(again);
        // Nobody else gets it while the work can be started again.
        let elsewhere = gpu.alloc(5000).unwrap();
        assert_ne!(elsewhere.address(), unused);
        let started = STARTED.load(Ordering::Relaxed);
        graph.launch().unwrap();
        assert_eq!(STARTED.load(Ordering::Relaxed), started + 1);
        drop(graph);
        assert_eq!(gpu.alloc(5000).unwrap().address(), unused);

        // Given up in the middle, all is as before; what another recording made is not this one's.
        let recorder = gpu.record().unwrap();
        assert!(!kept.is_private());
        drop(recorder);
        assert!(!gpu.records() && gpu.wait().is_ok());

        // Others wait as long as the stream is captured, and no longer if it never is.
        LOOKED_AT.set(Some(gpu));
        gpu.record().unwrap().finish().unwrap();
        assert_eq!(OTHERS_WAITED.take(), [true, true]);
        REFUSES.set(true);
        assert!(gpu.record().is_err());
        assert!(!gpu.records() && gpu.wait().is_ok() && gpu.turn.try_lock().is_some());

        let mut feed = Feed::new(gpu, 64).unwrap();
        for i in 0..5u8 {
            feed.send(&[(&block, 0, 10), (&elsewhere, 5, 20)], |_, bytes| bytes.fill(i)).unwrap();
        }

        // Parts of a block that lie near each other are one copy; the whole lives as long as they do.
        let whole = std::sync::Arc::new(gpu.alloc(4096).unwrap());
        let parts = [0, 32, 96, 2048].map(|start| Block::part(&whole, start, 20));
        let places: Vec<(&Block, usize, usize)> = parts.iter().map(|p| (p, 0, 20)).collect();
        let copied = COPIED.load(Ordering::Relaxed);
        let mut feed = Feed::new(gpu, Feed::room(4, 80)).unwrap();
        feed.send(&places, |number, bytes| bytes.fill(number as u8)).unwrap();
        assert_eq!(COPIED.load(Ordering::Relaxed), copied + 2);
        let (taken, address) = (gpu.memory().allocated(), whole.address());
        drop(whole);
        assert_eq!((gpu.memory().allocated(), parts[1].address()), (taken, address + 32));
        drop(parts);
        assert_eq!(gpu.memory().allocated(), taken - 4096);
    }

    #[test]
    #[should_panic(expected = "more bytes than the block has")]
    fn copies_beyond_the_end_are_refused() {
        let gpu = device();
        let block = gpu.alloc(4).unwrap();
        gpu.upload(&[0; 8], &block).unwrap();
    }
}
