//! Memory that several threads write, each its own part of it.

/// A pointer that several threads may write through. Whoever uses it sees to it that no two of them write the same
/// element.
pub struct Shared<T>(*mut T);
// SAFETY: the pointer is only followed in `unsafe` blocks, each of which writes elements no other thread touches.
unsafe impl<T: Send> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Shared<T> {}

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Shared<T> {}

impl<T> Shared<T> {
    pub fn new(data: &mut [T]) -> Self {
        Shared(data.as_mut_ptr())
    }

    pub fn from_ptr(ptr: *mut T) -> Self {
        Shared(ptr)
    }

    /// Of memory that is only read.
    pub fn new_const(ptr: *const T) -> Self {
        Shared(ptr.cast_mut())
    }

    /// The raw pointer. (A method, so that closures capture the wrapper and not the field.)
    pub fn get(self) -> *mut T {
        self.0
    }
}
