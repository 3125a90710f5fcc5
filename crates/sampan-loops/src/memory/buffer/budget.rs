//! How much memory a thread may ask for while it computes on the word of a stranger.

use super::OutOfMemory;
use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Buffers below this size are not counted against a budget.
const COUNTED: usize = 1 << 20;
/// A buffer under a ceiling counts for so much at least: the tensor around it takes memory too.
const LEAST: usize = 512;

thread_local! {
    /// Is there a budget or a ceiling?
    static LIMITED: Cell<bool> = const { Cell::new(false) };
    /// What this thread may still ask for.
    static BUDGET: Cell<usize> = const { Cell::new(usize::MAX) };
    static CEILING: RefCell<Option<Arc<Account>>> = const { RefCell::new(None) };
}

/// Undoes something also where a function unwinds.
struct Back<F: FnMut()>(F);

impl<F: FnMut()> Drop for Back<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// Runs `f`, in which this thread may ask for so many bytes of memory in all, given back or not; after that memory is full.
pub fn with_budget<R>(bytes: usize, f: impl FnOnce() -> R) -> R {
    let before = (BUDGET.replace(bytes.min(BUDGET.get())), LIMITED.replace(true));
    let _back = Back(|| {
        BUDGET.set(before.0);
        LIMITED.set(before.1);
    });
    f()
}

struct Account {
    most: usize,
    used: AtomicUsize,
    reached: AtomicBool,
}

impl Account {
    fn left(&self) -> usize {
        self.most.saturating_sub(self.used.load(Ordering::Relaxed))
    }
}

/// A bound on the memory that a computation holds at once.
pub struct Ceiling(Arc<Account>);

impl Ceiling {
    /// So many bytes.
    pub fn new(bytes: usize) -> Ceiling {
        Ceiling(Arc::new(Account { most: bytes, used: AtomicUsize::new(0), reached: AtomicBool::new(false) }))
    }

    /// Runs `f`: what this thread asks for in it and still holds stays below the ceiling; what goes beyond is an error, as
    /// if memory were full. A ceiling inside of another one counts alone.
    pub fn over<R>(&self, f: impl FnOnce() -> R) -> R {
        let mut outer = CEILING.replace(Some(self.0.clone()));
        let limited = LIMITED.replace(true);
        let _back = Back(|| {
            CEILING.replace(outer.take());
            LIMITED.set(limited);
        });
        f()
    }

    /// Was more asked for?
    pub fn was_reached(&self) -> bool {
        self.0.reached.load(Ordering::Relaxed)
    }
}

/// A part of what a ceiling leaves, until it is dropped.
pub(super) struct Share {
    of: Arc<Account>,
    bytes: usize,
}

impl Drop for Share {
    fn drop(&mut self) {
        self.of.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// Notes that a buffer of this length is taken; false if it must not be. The share lives as long as the buffer.
pub(super) fn take(len: usize) -> Result<Option<Share>, ()> {
    if LIMITED.get() { count(len) } else { Ok(None) }
}

#[cold]
fn count(len: usize) -> Result<Option<Share>, ()> {
    if len >= COUNTED && BUDGET.get() != usize::MAX {
        BUDGET.set(BUDGET.get().checked_sub(len).ok_or(())?);
    }
    share(len.max(LEAST))
}

fn share(bytes: usize) -> Result<Option<Share>, ()> {
    CEILING.with_borrow(|ceiling| {
        let Some(of) = ceiling else { return Ok(None) };
        let used = of.used.fetch_add(bytes, Ordering::Relaxed);
        // From here on it is given back when it is dropped, too where there is no room.
        let share = Share { of: of.clone(), bytes };
        if used.saturating_add(bytes) > of.most {
            of.reached.store(true, Ordering::Relaxed);
            return Err(());
        }
        Ok(Some(share))
    })
}

/// What counts against the ceiling of this thread besides buffers, until it is dropped.
pub struct Held {
    _share: Option<Share>,
}

impl Held {
    /// What is around so many tensors that somebody keeps: views have no buffers of their own.
    pub fn around(tensors: usize) -> Result<Held, OutOfMemory> {
        let bytes = tensors.saturating_mul(LEAST);
        let share = if LIMITED.get() { share(bytes).map_err(|()| OutOfMemory { bytes })? } else { None };
        Ok(Held { _share: share })
    }
}

/// What the ceiling of this thread leaves.
pub(super) fn left() -> usize {
    CEILING.with_borrow(|ceiling| ceiling.as_ref().map_or(usize::MAX, |of| of.left()))
}

#[cfg(test)]
mod tests {
    use super::super::Buffer;
    use super::*;

    #[test]
    fn a_ceiling_is_for_what_lives_and_a_budget_for_the_sum() {
        let fits = |n: usize| Buffer::try_uninit(n << 20).is_ok();
        assert!(with_budget(5 << 20, || fits(3) && !fits(3)) && fits(9));
        let ceiling = Ceiling::new(5 << 20);
        let kept = ceiling.over(|| {
            assert!((0..9).all(|_| fits(4)) && !ceiling.was_reached());
            let kept = Buffer::uninit(3 << 20);
            assert!(!fits(3) && fits(2) && left() == 2 << 20);
            kept
        });
        assert!(ceiling.was_reached() && fits(9));
        drop(kept);
        assert!(ceiling.over(|| fits(5)));
        // Small ones have tensors around them.
        let many =
            ceiling.over(|| (0..1 << 20).take_while(|_| Buffer::try_uninit(1).map(std::mem::forget).is_ok()).count());
        assert!(many <= 10_240, "{many}");
        let ceiling = Ceiling::new(5 << 20);
        let kept = ceiling.over(|| (0..1 << 20).map_while(|_| Held::around(2).ok()).collect::<Vec<_>>());
        assert!(kept.len() == 5 << 10 && ceiling.was_reached() && ceiling.over(|| !fits(1)));
        drop(kept);
        assert!(ceiling.over(|| fits(5)) && Held::around(usize::MAX).is_ok());
    }
}
