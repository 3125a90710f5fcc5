//! Memory of tensors: aligned, always initialised, recycled. Small buffers come from lists by size, large ones from an
//! [arena].

mod arena;
mod budget;
mod system;

pub use budget::{Ceiling, Held, with_budget};

use crate::{Element, parallel};
use parking_lot::Mutex;
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::any::Any;
use std::cell::RefCell;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Alignment of every buffer: a cache line, which is also the widest vector.
pub const ALIGN: usize = 64;
/// Freed bytes of small buffers kept for reuse; beyond that memory goes back to the system.
const KEEP: usize = 256 << 20;
/// Bytes that one thread clears at a time: less is not worth another thread.
const ZERO_CHUNK: usize = 1 << 20;
/// Four classes to each doubling: at most a fifth of a buffer is unused.
const CLASSES: usize = 4 * 48;

/// Nobody waits for a list: one that is taken is passed over. So the child of a `fork` cannot hang on a list that a
/// thread of its parent held.
static FREE: [Mutex<Vec<Block>>; CLASSES] = [const { Mutex::new(Vec::new()) }; CLASSES];
static KEPT: AtomicUsize = AtomicUsize::new(0);
static IN_USE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);
/// The most bytes that may be held, zero before anybody asked.
static LIMIT: AtomicUsize = AtomicUsize::new(0);

/// Blocks that a thread keeps for itself, and how many bytes they may have together. What a thread frees is in its core's
/// cache: if another thread got it next, every line of it would have to travel.
const OWN_BLOCKS: usize = 16;
const OWN_BYTES: usize = 4 << 20;

/// Where a block comes from and goes back to.
#[derive(Clone, Copy, PartialEq)]
enum Home {
    /// The list of a size class.
    List(usize),
    /// The arena, which gave this many bytes.
    Arena(usize),
}

impl Home {
    /// Where `len` bytes are looked for first.
    fn of(len: usize) -> Home {
        if len >= arena::LARGE { Home::Arena(arena::rounded(len)) } else { Home::List(class_of(len)) }
    }

    fn size(self) -> usize {
        match self {
            Home::List(class) => class_size(class),
            Home::Arena(size) => size,
        }
    }
}

/// Memory that nobody else knows.
struct Block {
    ptr: NonNull<u8>,
    home: Home,
}
// SAFETY: a Block is the sole owner of its memory.
unsafe impl Send for Block {}

/// The blocks a thread keeps, oldest first.
struct Own {
    blocks: Vec<Block>,
    bytes: usize,
}

thread_local! {
    static OWN: RefCell<Own> = const { RefCell::new(Own { blocks: Vec::new(), bytes: 0 }) };
}

impl Own {
    fn take(&mut self, home: Home) -> Option<Block> {
        let at = self.blocks.iter().rposition(|b| b.home == home)?;
        self.bytes -= home.size();
        Some(self.blocks.remove(at))
    }

    /// Keeps a block; older ones make room.
    fn keep(&mut self, block: Block) {
        self.bytes += block.home.size();
        self.blocks.push(block);
        while self.blocks.len() > OWN_BLOCKS || self.bytes > OWN_BYTES {
            let oldest = self.blocks.remove(0);
            self.bytes -= oldest.home.size();
            share(oldest);
        }
    }

    fn share_all(&mut self) {
        self.bytes = 0;
        self.blocks.drain(..).for_each(share);
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        self.share_all();
    }
}

/// Leaves a kept block to all threads, or to the system if there is enough.
fn share(block: Block) {
    let kept = KEPT.load(Ordering::Relaxed);
    match block.home {
        Home::List(class) => {
            if kept <= KEEP
                && let Some(mut list) = FREE[class].try_lock()
            {
                list.push(block);
                return;
            }
            // SAFETY: allocated with this class's layout; nobody else holds it.
            unsafe { dealloc(block.ptr.as_ptr(), layout(class)) };
        }
        // The arena counts its free bytes itself.
        Home::Arena(size) => arena::give(block.ptr, size),
    }
    KEPT.fetch_sub(block.home.size(), Ordering::Relaxed);
}

/// Bytes now held by live buffers.
pub fn bytes_in_use() -> usize {
    IN_USE.load(Ordering::Relaxed)
}

/// The most bytes that live buffers held at once since the last [`reset_peak`].
pub fn peak_bytes() -> usize {
    PEAK.load(Ordering::Relaxed)
}

/// Starts the peak anew from what is in use now.
pub fn reset_peak() {
    PEAK.store(bytes_in_use(), Ordering::Relaxed);
}

/// The most bytes that buffers, live and recycled, may hold at once: the machine's memory, unless
/// [`set_memory_limit`] was called. What goes beyond is an error at once, where the system would promise the memory and
/// end the process when it is written.
pub fn memory_limit() -> usize {
    match LIMIT.load(Ordering::Relaxed) {
        0 => {
            set_memory_limit(physical_memory().unwrap_or(usize::MAX));
            memory_limit()
        }
        limit => limit,
    }
}

/// Sets the [`memory_limit`].
pub fn set_memory_limit(bytes: usize) {
    LIMIT.store(bytes.clamp(1, class_size(CLASSES - 1)), Ordering::Relaxed);
}

/// Bytes of memory and swap of this machine, where it says so.
fn physical_memory() -> Option<usize> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let bytes = |name: &str| -> Option<usize> {
        let line = text.lines().find_map(|l| l.strip_prefix(name))?;
        line.trim().strip_suffix(" kB")?.parse::<usize>().ok()?.checked_mul(1024)
    };
    bytes("MemTotal:")?.checked_add(bytes("SwapTotal:").unwrap_or(0))
}

/// The bytes that a list of this thread's may take.
pub fn bytes_left() -> usize {
    memory_limit().saturating_sub(bytes_in_use()).min(budget::left())
}

/// Gives recycled memory back to the system.
pub fn release_cache() {
    let _ = OWN.try_with(|own| own.borrow_mut().share_all());
    arena::release();
    for (class, list) in FREE.iter().enumerate() {
        for block in list.lock().drain(..) {
            KEPT.fetch_sub(class_size(class), Ordering::Relaxed);
            // SAFETY: the block was allocated with this class's layout and nobody else holds it.
            unsafe { dealloc(block.ptr.as_ptr(), layout(class)) };
        }
    }
}

fn class_of(bytes: usize) -> usize {
    let bytes = bytes.max(ALIGN);
    // Class 4k+q holds 64·2^k·(1 + q/4) bytes.
    let k = (bytes / ALIGN).ilog2() as usize;
    let base = ALIGN << k;
    let q = (bytes - base).div_ceil(base / 4);
    4 * k + q
}

fn class_size(class: usize) -> usize {
    let base = ALIGN << (class / 4);
    base + base / 4 * (class % 4)
}

fn layout(class: usize) -> Layout {
    Layout::from_size_align(class_size(class), ALIGN).expect("a size class is a valid layout")
}

/// Do `size` more bytes stay within the limit? Recycled memory counts until it was released.
fn allowed(size: usize) -> bool {
    let within = |kept: usize| size <= memory_limit().saturating_sub(bytes_in_use().saturating_add(kept));
    let kept = KEPT.load(Ordering::Relaxed).saturating_add(arena::free_bytes());
    within(kept) || {
        release_cache();
        within(0)
    }
}

/// New zero memory of a class, unless that goes beyond the limit or the system refuses.
fn fresh(class: usize) -> Option<NonNull<u8>> {
    if !allowed(class_size(class)) {
        return None;
    }
    // SAFETY: the layout has a non-zero size.
    NonNull::new(unsafe { alloc_zeroed(layout(class)) })
}

/// What a failed allocation unwinds with; the tensor library turns it into an error.
#[derive(Clone, Copy, Debug)]
pub struct OutOfMemory {
    /// The bytes asked for.
    pub bytes: usize,
}

impl std::fmt::Display for OutOfMemory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (asked, used) = (self.bytes as f64 / (1 << 20) as f64, bytes_in_use() as f64 / (1 << 20) as f64);
        write!(f, "out of memory: {asked:.1} MiB were asked for, {used:.1} MiB are in use")
    }
}

/// Untyped memory of a tensor. Every byte is initialised from the start (fresh memory is zero, recycled memory holds
/// old values), so that reading it through any [`Element`] type is sound.
pub struct Buffer {
    ptr: NonNull<u8>,
    len: usize,
    /// Where the memory goes back to; `None` where it is another library's.
    home: Option<Home>,
    /// Who owns it then, or which ceiling it counts against; dropped with the buffer.
    _told: Option<Box<dyn Any + Send + Sync>>,
}

// SAFETY: Buffer owns its memory, or keeps its owner alive, and hands it out only through `&self` and `&mut self`.
unsafe impl Send for Buffer {}
// SAFETY: shared access is read-only.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// `len` bytes whose values are unspecified (but initialised). Unwinds with [`OutOfMemory`] where they cannot be had.
    pub fn uninit(len: usize) -> Buffer {
        Self::try_uninit(len).unwrap_or_else(|full| std::panic::panic_any(full))
    }

    /// `len` zero bytes. Unwinds with [`OutOfMemory`] where they cannot be had.
    pub fn zeroed(len: usize) -> Buffer {
        Self::try_zeroed(len).unwrap_or_else(|full| std::panic::panic_any(full))
    }

    /// Like [`uninit`](Self::uninit), returning the error.
    pub fn try_uninit(len: usize) -> Result<Buffer, OutOfMemory> {
        Self::take(len, false)
    }

    /// Like [`zeroed`](Self::zeroed), returning the error.
    pub fn try_zeroed(len: usize) -> Result<Buffer, OutOfMemory> {
        Self::take(len, true)
    }

    fn take(len: usize, zero: bool) -> Result<Buffer, OutOfMemory> {
        let full = OutOfMemory { bytes: len };
        if len > class_size(CLASSES - 1) {
            return Err(full);
        }
        let share = budget::take(len).map_err(|()| full)?;
        let (Block { ptr, home }, known_zero) = Self::find(len).ok_or(full)?;
        if zero && !known_zero {
            // SAFETY: the memory has at least `len` bytes and is ours alone; they were initialised when it was new.
            let bytes = unsafe { std::slice::from_raw_parts_mut(ptr.as_ptr(), len) };
            parallel::for_each_chunk_mut(bytes, ZERO_CHUNK, 1, |_, piece| piece.fill(0));
        }
        let size = home.size();
        let now = IN_USE.fetch_add(size, Ordering::Relaxed) + size;
        // A read is cheaper than a write that changes nothing.
        if now > PEAK.load(Ordering::Relaxed) {
            PEAK.fetch_max(now, Ordering::Relaxed);
        }
        let _told = share.map(|share| Box::new(share) as _);
        Ok(Buffer { ptr, len, home: Some(home), _told })
    }

    /// Memory for `len` bytes, and whether it is known to be zero.
    fn find(len: usize) -> Option<(Block, bool)> {
        let home = Home::of(len);
        let recycled = |home: Home| {
            let own = OWN.try_with(|own| own.borrow_mut().take(home)).ok().flatten();
            let block = own.or_else(|| match home {
                Home::List(class) => FREE[class].try_lock().and_then(|mut list| list.pop()),
                Home::Arena(_) => None,
            })?;
            KEPT.fetch_sub(home.size(), Ordering::Relaxed);
            Some((block, false))
        };
        if let Some(found) = recycled(home) {
            return Some(found);
        }
        if let Home::Arena(size) = home {
            if !allowed(size) {
                return None;
            }
            if let Some((ptr, fresh)) = arena::take(size) {
                return Some((Block { ptr, home }, fresh));
            }
        }
        let class = class_of(len);
        let home = Home::List(class);
        recycled(home).or_else(|| Some((Block { ptr: fresh(class)?, home }, true)))
    }

    /// Memory of another library, without a copy: `owner` is dropped when the buffer is.
    ///
    /// # Safety
    /// `len` bytes from `ptr` are initialised and stay readable and writable until `owner` is dropped; `ptr` is aligned for
    /// every type the buffer is read as. Whoever else knows the memory does not write it while a kernel uses it.
    pub unsafe fn foreign(ptr: NonNull<u8>, len: usize, owner: Box<dyn Any + Send + Sync>) -> Buffer {
        Buffer { ptr, len, home: None, _told: Some(owner) }
    }

    /// A copy of a slice.
    pub fn from_slice<T: Element>(values: &[T]) -> Buffer {
        let mut b = Buffer::uninit(std::mem::size_of_val(values));
        b.as_mut_slice().copy_from_slice(values);
        b
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Has it no bytes?
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: `len` initialised bytes owned by self.
        unsafe { std::slice::from_raw_parts(self.ptr.as_ptr(), self.len) }
    }

    /// The bytes, to write.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: `len` initialised bytes owned by self, borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.ptr.as_ptr(), self.len) }
    }

    /// The whole buffer as elements of type `T`.
    pub fn as_slice<T: Element>(&self) -> &[T] {
        bytemuck::cast_slice(self.bytes())
    }

    /// The whole buffer as elements of type `T`, to write.
    pub fn as_mut_slice<T: Element>(&mut self) -> &mut [T] {
        bytemuck::cast_slice_mut(self.bytes_mut())
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let Some(home) = self.home else { return };
        let size = home.size();
        IN_USE.fetch_sub(size, Ordering::Relaxed);
        KEPT.fetch_add(size, Ordering::Relaxed);
        let block = Block { ptr: self.ptr, home };
        if size > OWN_BYTES {
            return share(block);
        }
        let mut block = Some(block);
        let _ = OWN.try_with(|own| block.take().map(|block| own.borrow_mut().keep(block)));
        // A thread that ends keeps nothing.
        if let Some(block) = block {
            share(block);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_hold_what_they_promise() {
        for bytes in (0..5000).chain([1 << 20, (1 << 20) + 1, 123_456_789]) {
            let size = class_size(class_of(bytes));
            assert!(size >= bytes && size <= bytes.max(ALIGN) * 5 / 4 + ALIGN, "{bytes} -> {size}");
        }
    }

    #[test]
    fn impossible_sizes_are_refused() {
        for bytes in [usize::MAX, isize::MAX as usize, 1 << 54, 1 << 47] {
            assert_eq!(Buffer::try_uninit(bytes).map(|_| ()).unwrap_err().bytes, bytes);
        }
    }

    #[test]
    fn foreign_memory_goes_back_to_its_owner() {
        let owner = std::sync::Arc::new(());
        let mut memory = vec![1u8, 2, 3];
        let ptr = NonNull::new(memory.as_mut_ptr()).expect("a vector with elements");
        // SAFETY: the vector outlives the buffer and is not touched meanwhile.
        let mut b = unsafe { Buffer::foreign(ptr, 3, Box::new(owner.clone())) };
        b.bytes_mut()[1] = 7;
        assert_eq!((b.bytes(), std::sync::Arc::strong_count(&owner)), (&[1u8, 7, 3][..], 2));
        drop(b);
        assert_eq!((memory, std::sync::Arc::strong_count(&owner)), (vec![1, 7, 3], 1));
    }

    #[test]
    fn zeroed_is_zero_after_recycling() {
        for len in [1000, arena::LARGE, 3 << 20] {
            let mut b = Buffer::uninit(len);
            b.bytes_mut().fill(7);
            drop(b);
            assert!(Buffer::zeroed(len).bytes().iter().all(|&x| x == 0));
        }
    }

    #[test]
    fn released_memory_can_be_used_again() {
        let mut kept = Buffer::uninit(5 << 20);
        kept.bytes_mut().fill(3);
        drop(Buffer::uninit(9 << 20));
        release_cache();
        let mut again = Buffer::zeroed(9 << 20);
        again.bytes_mut().fill(1);
        assert!(kept.bytes().iter().all(|&x| x == 3) && again.bytes().iter().all(|&x| x == 1));
    }
}
