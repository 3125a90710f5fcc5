//! Slices and views whose element type is known at run time. The functions of this crate take these, so that whoever
//! calls them compiles no loop of its own.

use crate::{Complex128, DType, Element, Scalar, View};

/// Why a kernel did not run. It unwinds with this, so that whoever called can say so.
#[derive(Clone, Copy, Debug)]
pub enum Refused {
    /// It was not made for this dtype.
    DType(DType),
    /// A complex number is no element of this real dtype.
    Complex(Complex128, DType),
}

/// Unwinds with [`Refused`].
#[cold]
#[inline(never)]
pub fn refuse(why: Refused) -> ! {
    std::panic::resume_unwind(Box::new(why))
}

/// Unwinds with [`Refused::DType`].
#[cold]
#[inline(never)]
pub fn unsupported(dtype: DType) -> ! {
    refuse(Refused::DType(dtype))
}

/// Elements side by side.
#[derive(Clone, Copy, Debug)]
pub struct AnySlice<'a> {
    dtype: DType,
    bytes: &'a [u8],
}

/// Elements side by side, to be written.
#[derive(Debug)]
pub struct AnySliceMut<'a> {
    dtype: DType,
    bytes: &'a mut [u8],
}

/// Elements addressed by shape, strides and offset, as in [`View`].
#[derive(Clone, Copy, Debug)]
pub struct AnyView<'a> {
    /// The whole storage.
    pub data: AnySlice<'a>,
    /// Extent of each axis.
    pub shape: &'a [usize],
    /// Step of each axis in elements.
    pub strides: &'a [isize],
    /// Where index `[0, 0, …]` lies.
    pub offset: usize,
}

#[cold]
#[inline(never)]
fn mismatch(dtype: DType, asked: DType) -> ! {
    panic!("a kernel asked for {asked} elements of {dtype} memory")
}

/// A kernel that was given a tensor of another dtype would compute nonsense.
#[inline(always)]
fn check<T: Element>(dtype: DType) {
    if T::DTYPE != dtype {
        mismatch(dtype, T::DTYPE);
    }
}

/// What only moves is moved by its size.
#[inline(always)]
fn check_size<T: Element>(dtype: DType) {
    if size_of::<T>() != dtype.size() {
        mismatch(dtype, T::DTYPE);
    }
}

impl<'a> AnySlice<'a> {
    /// Bytes that hold elements of that dtype.
    pub fn new(dtype: DType, bytes: &'a [u8]) -> Self {
        AnySlice { dtype, bytes }
    }

    /// The type of its elements.
    #[inline]
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Number of elements.
    #[inline]
    pub fn len(&self) -> usize {
        self.bytes.len() / self.dtype.size()
    }

    /// Has it no elements?
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Its elements.
    #[inline]
    pub fn of<T: Element>(self) -> &'a [T] {
        check::<T>(self.dtype);
        self.sized()
    }

    /// Its elements as a type of the same size, to be moved.
    #[inline]
    pub fn sized<T: Element>(self) -> &'a [T] {
        check_size::<T>(self.dtype);
        // No elements may lie anywhere.
        if self.bytes.is_empty() { &[] } else { bytemuck::cast_slice(self.bytes) }
    }

    /// Its memory.
    pub fn bytes(self) -> &'a [u8] {
        self.bytes
    }

    /// One of its elements.
    pub fn get(&self, i: usize) -> Scalar {
        crate::match_dtype!(self.dtype, T in any => Scalar::of(self.of::<T>()[i]))
    }

    /// Some of its elements.
    pub fn part(self, range: std::ops::Range<usize>) -> AnySlice<'a> {
        let size = self.dtype.size();
        AnySlice { dtype: self.dtype, bytes: &self.bytes[range.start * size..range.end * size] }
    }
}

impl<'a> AnySliceMut<'a> {
    /// Bytes that hold elements of that dtype.
    pub fn new(dtype: DType, bytes: &'a mut [u8]) -> Self {
        AnySliceMut { dtype, bytes }
    }

    /// The type of its elements.
    #[inline]
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Number of elements.
    #[inline]
    pub fn len(&self) -> usize {
        self.bytes.len() / self.dtype.size()
    }

    /// Has it no elements?
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Its elements.
    #[inline]
    pub fn of<T: Element>(self) -> &'a mut [T] {
        check::<T>(self.dtype);
        self.sized()
    }

    /// Its elements as a type of the same size, to be moved.
    #[inline]
    pub fn sized<T: Element>(self) -> &'a mut [T] {
        check_size::<T>(self.dtype);
        if self.bytes.is_empty() { &mut [] } else { bytemuck::cast_slice_mut(self.bytes) }
    }

    /// The elements before and from a position.
    pub fn split_at(self, at: usize) -> (AnySliceMut<'a>, AnySliceMut<'a>) {
        let (before, after) = self.bytes.split_at_mut(at * self.dtype.size());
        (AnySliceMut { dtype: self.dtype, bytes: before }, AnySliceMut { dtype: self.dtype, bytes: after })
    }

    /// Its elements as bytes.
    pub fn bytes(self) -> &'a mut [u8] {
        self.bytes
    }

    /// The same elements for a shorter while.
    pub fn again(&mut self) -> AnySliceMut<'_> {
        AnySliceMut { dtype: self.dtype, bytes: self.bytes }
    }
}

impl<'a, T: Element> From<&'a [T]> for AnySlice<'a> {
    fn from(data: &'a [T]) -> Self {
        AnySlice { dtype: T::DTYPE, bytes: bytemuck::cast_slice(data) }
    }
}

impl<'a, T: Element> From<&'a mut [T]> for AnySliceMut<'a> {
    fn from(data: &'a mut [T]) -> Self {
        AnySliceMut { dtype: T::DTYPE, bytes: bytemuck::cast_slice_mut(data) }
    }
}

impl<'a> AnyView<'a> {
    /// The type of its elements.
    #[inline]
    pub fn dtype(&self) -> DType {
        self.data.dtype
    }

    /// Its elements.
    #[inline]
    pub fn of<T: Element>(self) -> View<'a, T> {
        View { data: self.data.of(), shape: self.shape, strides: self.strides, offset: self.offset }
    }

    /// Its elements as a type of the same size, to be moved.
    #[inline]
    pub fn sized<T: Element>(self) -> View<'a, T> {
        View { data: self.data.sized(), shape: self.shape, strides: self.strides, offset: self.offset }
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Has it no elements?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The elements as one slice, where the view is contiguous.
    pub fn as_slice(&self) -> Option<AnySlice<'a>> {
        let len = self.len();
        if len == 0 {
            return Some(self.data.part(0..0));
        }
        crate::view::is_contiguous(self.shape, self.strides).then(|| self.data.part(self.offset..self.offset + len))
    }
}

impl<'a, T: Element> From<View<'a, T>> for AnyView<'a> {
    fn from(v: View<'a, T>) -> Self {
        AnyView { data: v.data.into(), shape: v.shape, strides: v.strides, offset: v.offset }
    }
}
