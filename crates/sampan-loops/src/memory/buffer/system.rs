//! A range of addresses from the operating system.

#[cfg(any(not(unix), miri))]
pub(super) use elsewhere::Region;
#[cfg(all(unix, not(miri)))]
pub(super) use unix::Region;

#[cfg(all(unix, not(miri)))]
mod unix {
    use std::ptr::NonNull;

    /// Huge pages begin at multiples of this.
    const HUGE: usize = 2 << 20;

    /// Private memory that is zero until it is written, and takes no room until then. Never given up.
    pub(crate) struct Region {
        base: NonNull<u8>,
        len: usize,
    }

    // SAFETY: a Region is only the address and length of memory that nobody else manages.
    unsafe impl Send for Region {}

    impl Region {
        /// `len` bytes of addresses, if the system grants them.
        pub fn reserve(len: usize) -> Option<Region> {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
            // SAFETY: a new mapping at an address of the system's choice touches no existing memory.
            let ptr =
                unsafe { libc::mmap(std::ptr::null_mut(), len, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
            if ptr == libc::MAP_FAILED {
                return None;
            }
            let skip = ptr.addr().next_multiple_of(HUGE) - ptr.addr();
            // SAFETY: `skip` is less than a huge page, and the mapping is longer than that.
            let base = NonNull::new(unsafe { ptr.cast::<u8>().add(skip) })?;
            let region = Region { base, len: len - skip };
            // Fewer faults and fewer misses of the address cache; refused where the system has none.
            #[cfg(target_os = "linux")]
            // SAFETY: advice on our own mapping; it does not change its contents.
            unsafe {
                libc::madvise(base.as_ptr().cast(), region.len, libc::MADV_HUGEPAGE);
            }
            Some(region)
        }

        pub fn len(&self) -> usize {
            self.len
        }

        /// The address of an offset.
        pub fn at(&self, offset: usize) -> NonNull<u8> {
            assert!(offset < self.len);
            // SAFETY: inside the mapping, as just checked, which is not null.
            unsafe { self.base.add(offset) }
        }

        /// The offset of an address that [`at`](Self::at) gave.
        pub fn offset(&self, ptr: NonNull<u8>) -> usize {
            ptr.addr().get() - self.base.addr().get()
        }

        /// Gives back the pages of a part that nobody uses; it reads as zero (or as before) from then on.
        pub fn forget(&self, offset: usize, len: usize) {
            assert!(offset + len <= self.len);
            // SAFETY: a part of our own mapping that no buffer holds; its bytes stay readable.
            unsafe { libc::madvise(self.at(offset).as_ptr().cast(), len, libc::MADV_DONTNEED) };
        }
    }
}

#[cfg(any(not(unix), miri))]
mod elsewhere {
    use std::ptr::NonNull;

    /// There is none: large buffers are recycled by size, like small ones.
    pub(crate) enum Region {}

    impl Region {
        pub fn reserve(_: usize) -> Option<Region> {
            None
        }

        pub fn len(&self) -> usize {
            match *self {}
        }

        pub fn at(&self, _: usize) -> NonNull<u8> {
            match *self {}
        }

        pub fn offset(&self, _: NonNull<u8>) -> usize {
            match *self {}
        }

        pub fn forget(&self, _: usize, _: usize) {
            match *self {}
        }
    }
}
