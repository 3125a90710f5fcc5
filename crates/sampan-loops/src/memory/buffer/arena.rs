//! Where large buffers live: one long range of addresses, of which pieces are handed out and taken back.
//!
//! A training step frees activations of many sizes and asks for gradients of others. Lists by size would keep the ones
//! and ask the system for the others; here neighbours that are free become one piece, so the process stays about as
//! large as what lives at once, and pages that were touched are used again.

use super::system::Region;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// Buffers of at least this many bytes live in the arena.
pub(super) const LARGE: usize = 128 << 10;
/// Pieces are multiples of a page.
const PAGE: usize = 4096;
/// Free bytes whose pages stay with the process; what is freed beyond that gives them back.
const KEEP: usize = 1 << 30;
/// A thread that holds the lock for as long as this stayed with the parent of a `fork`.
const PATIENCE: Duration = Duration::from_secs(1);

static ARENA: Mutex<Option<Arena>> = Mutex::new(None);
/// The arena cannot be had: its lock is held by a thread that does not exist here, or there are no addresses for it.
static ABSENT: AtomicBool = AtomicBool::new(false);
static FREE_BYTES: AtomicUsize = AtomicUsize::new(0);

/// The bytes that a buffer of `len` bytes takes.
pub(super) fn rounded(len: usize) -> usize {
    len.next_multiple_of(PAGE)
}

/// Bytes that were used and are free.
pub(super) fn free_bytes() -> usize {
    FREE_BYTES.load(Ordering::Relaxed)
}

/// A piece of `size` bytes (as [`rounded`] gives), and whether it is known to be zero. `None` without an arena.
pub(super) fn take(size: usize) -> Option<(NonNull<u8>, bool)> {
    with(|arena| {
        let (start, fresh) = arena.pieces.take(size)?;
        FREE_BYTES.store(arena.pieces.free, Ordering::Relaxed);
        Some((arena.region.at(start), fresh))
    })
    .flatten()
}

/// Takes a piece back.
pub(super) fn give(ptr: NonNull<u8>, size: usize) {
    with(|arena| {
        let start = arena.region.offset(ptr);
        if arena.pieces.free + size > KEEP {
            arena.region.forget(start, size);
        }
        arena.pieces.give(start, size);
        FREE_BYTES.store(arena.pieces.free, Ordering::Relaxed);
    });
}

/// Gives the pages of all free pieces back to the system.
pub(super) fn release() {
    with(|arena| {
        for (&start, &size) in &arena.pieces.by_start {
            arena.region.forget(start, size);
        }
    });
}

fn with<R>(f: impl FnOnce(&mut Arena) -> R) -> Option<R> {
    if ABSENT.load(Ordering::Relaxed) {
        return None;
    }
    let guard = ARENA.try_lock().or_else(|| ARENA.try_lock_for(PATIENCE));
    let Some(mut guard) = guard else {
        ABSENT.store(true, Ordering::Relaxed);
        return None;
    };
    if guard.is_none() {
        // Addresses cost nothing, memory is taken when it is written. Where even they are limited, a part must do.
        let sizes = [1 << 40, 64 << 30, 4 << 30];
        *guard = sizes
            .into_iter()
            .find_map(Region::reserve)
            .map(|region| Arena { pieces: Pieces::new(region.len()), region });
    }
    let found = guard.as_mut().map(f);
    if found.is_none() {
        ABSENT.store(true, Ordering::Relaxed);
    }
    found
}

struct Arena {
    region: Region,
    pieces: Pieces,
}

/// Which parts of `0..len` are free. Beyond `high` nothing was ever handed out.
struct Pieces {
    len: usize,
    high: usize,
    free: usize,
    by_size: BTreeSet<(usize, usize)>,
    by_start: BTreeMap<usize, usize>,
}

impl Pieces {
    fn new(len: usize) -> Pieces {
        Pieces { len, high: 0, free: 0, by_size: BTreeSet::new(), by_start: BTreeMap::new() }
    }

    fn insert(&mut self, start: usize, size: usize) {
        self.by_size.insert((size, start));
        self.by_start.insert(start, size);
        self.free += size;
    }

    fn remove(&mut self, start: usize, size: usize) {
        self.by_size.remove(&(size, start));
        self.by_start.remove(&start);
        self.free -= size;
    }

    /// The smallest free piece that is large enough, the lowest of several; or one at the end, never used before if
    /// the second result says so.
    fn take(&mut self, size: usize) -> Option<(usize, bool)> {
        if let Some(&(found, start)) = self.by_size.range((size, 0)..).next() {
            self.remove(start, found);
            if found > size {
                self.insert(start + size, found - size);
            }
            return Some((start, false));
        }
        let last = self.by_start.last_key_value().map(|(&start, &size)| (start, size));
        let tail = last.filter(|&(start, size)| start + size == self.high);
        let start = tail.map_or(self.high, |(start, _)| start);
        let end = start.checked_add(size).filter(|&end| end <= self.len)?;
        if let Some((start, size)) = tail {
            self.remove(start, size);
        }
        self.high = end;
        Some((start, tail.is_none()))
    }

    fn give(&mut self, mut start: usize, mut size: usize) {
        if let Some((&before, &len)) = self.by_start.range(..start).next_back()
            && before + len == start
        {
            self.remove(before, len);
            (start, size) = (before, len + size);
        }
        if let Some(&len) = self.by_start.get(&(start + size)) {
            self.remove(start + size, len);
            size += len;
        }
        self.insert(start, size);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_neighbours_become_one() {
        let mut p = Pieces::new(100);
        let starts: Vec<_> = (0..4).map(|_| p.take(10).unwrap()).collect();
        assert_eq!(starts, [(0, true), (10, true), (20, true), (30, true)]);
        p.give(0, 10);
        p.give(20, 10);
        assert_eq!(p.by_start.len(), 2);
        p.give(10, 10);
        assert_eq!((p.by_start.get(&0), p.by_size.len(), p.free), (Some(&30), 1, 30));
        assert_eq!((p.take(25), p.take(5)), (Some((0, false)), Some((25, false))));
        assert_eq!((p.take(61), p.take(60), p.take(1)), (None, Some((40, true)), None));
    }

    #[test]
    fn the_last_piece_grows_at_the_end() {
        let mut p = Pieces::new(100);
        assert_eq!(p.take(10), Some((0, true)));
        p.give(0, 10);
        assert_eq!((p.take(30), p.high, p.free), (Some((0, false)), 30, 0));
    }

    #[test]
    fn pieces_never_overlap() {
        let (mut p, mut rng, mut live) = (Pieces::new(10_000), 1u64, Vec::<(usize, usize)>::new());
        for _ in 0..20_000 {
            rng = rng.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let (choice, size) = ((rng >> 33) as usize, (rng >> 40) as usize % 300 + 1);
            if choice.is_multiple_of(2)
                && let Some((start, _)) = p.take(size)
            {
                assert!(live.iter().all(|&(s, l)| start + size <= s || s + l <= start));
                live.push((start, size));
            } else if !live.is_empty() {
                let (start, size) = live.swap_remove(choice % live.len());
                p.give(start, size);
            }
            let used: usize = live.iter().map(|l| l.1).sum();
            assert_eq!(used + p.free, p.high);
        }
    }
}
