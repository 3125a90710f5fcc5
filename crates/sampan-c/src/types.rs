//! What the header calls tensors, ports and buffers.

use sampan_core::{DType, Error, Result};
use std::ffi::{c_char, c_void};

/// What a model takes or gives.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Port {
    /// Its name.
    pub name: *const c_char,
    /// Its extents, -1 for any.
    pub dims: *const i64,
    /// How many there are.
    pub rank: usize,
    /// The number of its dtype.
    pub dtype: i32,
}

/// Values in row-major order.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Tensor {
    /// The values.
    pub data: *const c_void,
    /// Their bytes.
    pub bytes: usize,
    /// The extents.
    pub dims: *const i64,
    /// How many there are.
    pub rank: usize,
    /// The number of its dtype.
    pub dtype: i32,
}

/// Memory that results are written into.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Buffer {
    /// Where it begins.
    pub data: *mut c_void,
    /// How long it is.
    pub bytes: usize,
}

/// The number of a dtype is its place in the order of promotion.
pub(crate) fn number(dtype: DType) -> i32 {
    DType::ALL.iter().position(|d| *d == dtype).map_or(-1, |at| at as i32)
}

pub(crate) fn dtype(number: i32) -> Option<DType> {
    DType::ALL.get(usize::try_from(number).ok()?).copied()
}

/// Bytes of an element, 0 where there is no such dtype.
#[unsafe(no_mangle)]
pub extern "C" fn sampan_dtype_size(number: i32) -> usize {
    dtype(number).map_or(0, DType::size)
}

/// A slice of the caller's.
///
/// # Safety
/// A pointer that is not null must point to `len` values that nobody writes while the slice is used.
pub(crate) unsafe fn slice<'a, T>(data: *const T, len: usize, what: &str) -> Result<&'a [T]> {
    if len == 0 {
        return Ok(&[]);
    }
    if data.is_null() {
        return Err(Error::invalid(format!("{what} is NULL, with a length of {len}")));
    }
    if !data.is_aligned() {
        return Err(Error::invalid(format!("{what} does not lie at a multiple of {} bytes", align_of::<T>())));
    }
    if len.checked_mul(size_of::<T>()).is_none_or(|bytes| isize::try_from(bytes).is_err()) {
        return Err(Error::invalid(format!("{what} cannot have a length of {len}")));
    }
    // SAFETY: not null, aligned, no longer than memory can be; that it is there and stays is the caller's promise.
    Ok(unsafe { std::slice::from_raw_parts(data, len) })
}

/// What a pointer of the caller's points to.
///
/// # Safety
/// A pointer that is not null must point to a value that nobody writes meanwhile.
pub(crate) unsafe fn read<'a, T>(place: *const T, what: &str) -> Result<&'a T> {
    // SAFETY: the caller's promise, for one value.
    Ok(&unsafe { slice(place, 1, what) }?[0])
}

/// A place of the caller's for a value.
///
/// # Safety
/// A pointer that is not null must point to memory for a value, whatever that holds.
pub(crate) unsafe fn write<T>(place: *mut T, what: &str, make: impl FnOnce() -> Result<T>) -> Result<()> {
    if place.is_null() || !place.is_aligned() {
        return Err(Error::invalid(format!("{what} must point to a place for the answer, got {place:?}")));
    }
    let made = make()?;
    // SAFETY: not null and aligned; that there is memory is the caller's promise. What it held is not read.
    unsafe { place.write(made) };
    Ok(())
}
