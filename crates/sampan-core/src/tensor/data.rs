//! Values in and out: slices, vectors, nested arrays, typed access for kernels.

use super::Tensor;
use crate::dispatch::reading;
use crate::shape::{Layout, Shape};
use crate::storage::Storage;
use crate::{DType, Device, Error, Result, Scalar};
use parking_lot::{MappedRwLockReadGuard, MappedRwLockWriteGuard};
use sampan_kernels::{AnySlice, AnySliceMut, AnyView, Bool, Buffer, Complex64, Complex128, Element};
use sampan_kernels::{View, bf16, f16};
use std::borrow::Cow;

/// Read access to a tensor's values as `T`; others may read meanwhile, nobody writes.
pub struct Data<'a, T> {
    guard: MappedRwLockReadGuard<'a, Buffer>,
    layout: &'a Layout,
    marker: std::marker::PhantomData<T>,
}

impl<T: Element> Data<'_, T> {
    /// The values with their strides.
    pub fn view(&self) -> View<'_, T> {
        View {
            data: self.guard.as_slice(),
            shape: &self.layout.shape,
            strides: &self.layout.strides,
            offset: self.layout.offset,
        }
    }

    /// The values of a contiguous tensor, row-major. Panics on others: call `contiguous()` first.
    pub fn slice(&self) -> &[T] {
        self.view().as_slice().expect("the kernel needs a contiguous tensor")
    }

    /// The values under a broadcast layout.
    pub fn view_as<'b>(&'b self, layout: &'b Layout) -> View<'b, T> {
        View { data: self.guard.as_slice(), shape: &layout.shape, strides: &layout.strides, offset: layout.offset }
    }
}

/// Read access to a tensor's values of whatever dtype, for kernels.
pub struct Values<'a> {
    guard: MappedRwLockReadGuard<'a, Buffer>,
    layout: &'a Layout,
    dtype: DType,
}

impl Values<'_> {
    /// The values with their strides.
    pub fn view(&self) -> AnyView<'_> {
        self.view_as(self.layout)
    }

    /// The values of a contiguous tensor, row-major. Panics on others: call `contiguous()` first.
    pub fn slice(&self) -> AnySlice<'_> {
        self.view().as_slice().expect("the kernel needs a contiguous tensor")
    }

    /// The values under a broadcast layout.
    pub fn view_as<'b>(&'b self, layout: &'b Layout) -> AnyView<'b> {
        let data = AnySlice::new(self.dtype, self.guard.bytes());
        AnyView { data, shape: &layout.shape, strides: &layout.strides, offset: layout.offset }
    }
}

/// Write access to a tensor's values of whatever dtype, for kernels.
pub struct ValuesMut<'a> {
    guard: MappedRwLockWriteGuard<'a, Buffer>,
    layout: &'a Layout,
    dtype: DType,
}

impl ValuesMut<'_> {
    /// The values of a contiguous tensor, row-major.
    pub fn slice(&mut self) -> AnySliceMut<'_> {
        assert!(self.layout.is_contiguous(), "the kernel needs a contiguous tensor");
        let size = self.dtype.size();
        let (start, len) = (self.layout.offset * size, self.layout.numel() * size);
        let bytes = if len == 0 { &mut [][..] } else { &mut self.guard.bytes_mut()[start..start + len] };
        AnySliceMut::new(self.dtype, bytes)
    }

    /// The whole storage, for writes through strides.
    pub fn storage(&mut self) -> AnySliceMut<'_> {
        AnySliceMut::new(self.dtype, self.guard.bytes_mut())
    }
}

/// Write access to a tensor's values as `T`.
pub struct DataMut<'a, T> {
    guard: MappedRwLockWriteGuard<'a, Buffer>,
    layout: &'a Layout,
    marker: std::marker::PhantomData<T>,
}

impl<T: Element> DataMut<'_, T> {
    /// The values of a contiguous tensor, row-major.
    pub fn slice(&mut self) -> &mut [T] {
        assert!(self.layout.is_contiguous(), "the kernel needs a contiguous tensor");
        let (start, len) = (self.layout.offset, self.layout.numel());
        if len == 0 { &mut [] } else { &mut self.guard.as_mut_slice()[start..start + len] }
    }

    /// The whole storage, for writes through strides.
    pub fn storage(&mut self) -> &mut [T] {
        self.guard.as_mut_slice()
    }
}

/// Memory for values from the host: on the device of the op that makes them, if one runs.
fn made_here(buffer: Buffer) -> Storage {
    match crate::dispatch::inside() {
        true => Storage::for_use_on(crate::device::current(), buffer),
        false => Storage::from_buffer(buffer),
    }
}

impl Tensor {
    /// Read access as `T`, which must be the tensor's dtype. Released when dropped.
    pub fn data<T: Element>(&self) -> Data<'_, T> {
        assert_eq!(T::DTYPE, self.dtype(), "typed access to a {} tensor as {}", self.dtype(), T::DTYPE);
        Data { guard: self.storage().read(), layout: self.layout(), marker: std::marker::PhantomData }
    }

    /// Write access as `T`, which must be the tensor's dtype. For kernels that fill a new tensor; a write to a tensor
    /// that others know of must go through an in-place op, which counts it.
    pub(crate) fn data_mut<T: Element>(&self) -> DataMut<'_, T> {
        assert_eq!(T::DTYPE, self.dtype(), "typed access to a {} tensor as {}", self.dtype(), T::DTYPE);
        DataMut { guard: self.storage().write(), layout: self.layout(), marker: std::marker::PhantomData }
    }

    /// Read access for a kernel. Released when dropped.
    pub fn values(&self) -> Values<'_> {
        Values { guard: self.storage().read(), layout: self.layout(), dtype: self.dtype() }
    }

    /// Write access for a kernel that fills a new tensor; a write to a tensor that others know of must go through an
    /// in-place op, which counts it.
    pub(crate) fn values_mut(&self) -> ValuesMut<'_> {
        ValuesMut { guard: self.storage().write(), layout: self.layout(), dtype: self.dtype() }
    }

    /// Write access to one tensor and read access to another that lies elsewhere, taken together as
    /// [`Storage::lock_pair`] does.
    pub(crate) fn values_pair<'a>(to: &'a Tensor, from: &'a Tensor) -> (ValuesMut<'a>, Values<'a>) {
        let (write, read) = Storage::lock_pair(to.storage(), from.storage());
        (
            ValuesMut { guard: write, layout: to.layout(), dtype: to.dtype() },
            Values { guard: read, layout: from.layout(), dtype: from.dtype() },
        )
    }

    /// A tensor from values in row-major order. Panics if their number does not fit the shape.
    ///
    /// ```
    /// # use sampan_core::Tensor;
    /// let x = Tensor::from_vec(vec![1i64, 2, 3, 4], [2, 2]);
    /// assert_eq!(x.shape(), [2, 2]);
    /// ```
    #[track_caller]
    pub fn from_vec<T: Element>(values: Vec<T>, shape: impl AsRef<[usize]>) -> Tensor {
        crate::error::unwrap(Tensor::try_from_slice(&values, shape))
    }

    /// A tensor from values in row-major order.
    pub fn try_from_slice<T: Element>(values: &[T], shape: impl AsRef<[usize]>) -> Result<Tensor> {
        crate::shape::checked_numel(shape.as_ref())?;
        let layout = Layout::contiguous(shape);
        if layout.numel() != values.len() {
            let (have, want) = (values.len(), layout.numel());
            return Err(Error::invalid(format!(
                "{have} values do not fill shape {:?}, which has {want}",
                layout.shape
            ))
            .in_op("to_tensor"));
        }
        Ok(Tensor::from_parts(made_here(Buffer::from_slice(values)), layout, T::DTYPE))
    }

    /// A tensor from raw bytes in row-major order and native byte order.
    pub fn from_bytes(bytes: &[u8], dtype: DType, shape: impl AsRef<[usize]>) -> Result<Tensor> {
        crate::shape::checked_numel(shape.as_ref())?;
        let layout = Layout::contiguous(shape);
        if layout.numel() * dtype.size() != bytes.len() {
            return Err(Error::invalid(format!(
                "{} bytes do not fill a {dtype} tensor of shape {:?}",
                bytes.len(),
                layout.shape
            )));
        }
        let mut buffer = Buffer::try_uninit(bytes.len())?;
        buffer.bytes_mut().copy_from_slice(bytes);
        Ok(Tensor::from_parts(made_here(buffer), layout, dtype))
    }

    /// A tensor on a buffer as it is, without a copy: views of other libraries' memory.
    pub fn from_buffer(buffer: Buffer, layout: Layout, dtype: DType) -> Result<Tensor> {
        crate::shape::checked_numel(&layout.shape)?;
        let (first, last) = layout.reach();
        let len = (buffer.len() / dtype.size()) as isize;
        if layout.numel() > 0 && (first < 0 || last >= len || !buffer.len().is_multiple_of(dtype.size())) {
            return Err(Error::invalid(format!(
                "{} bytes do not hold a {dtype} tensor of shape {:?} with strides {:?}",
                buffer.len(),
                layout.shape,
                layout.strides
            )));
        }
        let storage = Storage::from_buffer(buffer);
        storage.expose();
        Ok(Tensor::from_parts(storage, layout, dtype))
    }

    /// A tensor on memory of a GPU as it is, without a copy: views of other libraries' memory.
    pub fn from_gpu_memory(block: sampan_cuda::Block, layout: Layout, dtype: DType) -> Result<Tensor> {
        crate::shape::checked_numel(&layout.shape)?;
        let ((first, last), len) = (layout.reach(), (block.len() / dtype.size()) as isize);
        if layout.numel() > 0 && (first < 0 || last >= len) {
            return Err(Error::invalid(format!(
                "{} bytes do not hold a {dtype} tensor of shape {:?} with strides {:?}",
                block.len(),
                layout.shape,
                layout.strides
            )));
        }
        let number = block.device().ordinal() as u8;
        let storage = Storage::from_block(number, block);
        storage.expose();
        Ok(Tensor::from_parts(storage, layout, dtype))
    }

    /// The address of the first element; zero for a tensor that holds no values. It stays the same while the tensor lives.
    pub fn data_ptr(&self) -> usize {
        match self.device() {
            Device::Cpu | Device::Cuda(_) => self.storage().expose() + self.layout().offset * self.dtype().size(),
            Device::Meta => 0,
        }
    }

    /// The values as raw bytes in row-major order and native byte order.
    pub fn to_bytes(&self) -> Vec<u8> {
        reading(self, "to_bytes", || self.detach().contiguous().values().slice().bytes().to_vec())
    }

    /// A tensor from a number, an array, or nested arrays of numbers.
    ///
    /// ```
    /// # use sampan_core::Tensor;
    /// assert_eq!(Tensor::new([[1.0f32, 2.0], [3.0, 4.0]]).shape(), [2, 2]);
    /// assert_eq!(Tensor::new(3.5f32).shape(), []);
    /// ```
    #[track_caller]
    pub fn new<N: FromNested>(nested: N) -> Tensor {
        crate::error::unwrap(Tensor::try_new(nested))
    }

    /// Like [`new`](Self::new), returning an error where rows differ in length.
    pub fn try_new<N: FromNested>(nested: N) -> Result<Tensor> {
        let mut shape = Shape::new();
        nested.shape(&mut shape);
        if !nested.fits(&shape) {
            return Err(Error::invalid(format!(
                "the rows differ in length; from the first ones the shape is {shape:?}"
            ))
            .in_op("to_tensor"));
        }
        let mut values = Vec::with_capacity(shape.iter().product());
        nested.flatten(&mut values);
        Tensor::try_from_slice(&values, shape)
    }

    /// The values in row-major order, which must be of type `T`.
    ///
    /// ```
    /// # use sampan_core::Tensor;
    /// assert_eq!(Tensor::new([[1i64, 2], [3, 4]]).t().to_vec::<i64>(), [1, 3, 2, 4]);
    /// ```
    #[track_caller]
    pub fn to_vec<T: Element>(&self) -> Vec<T> {
        crate::error::unwrap(self.try_to_vec())
    }

    /// The values in row-major order, or an error if they are not of type `T`.
    pub fn try_to_vec<T: Element>(&self) -> Result<Vec<T>> {
        if T::DTYPE != self.dtype() {
            return Err(Error::dtype(format!("the tensor holds {}, not {}", self.dtype(), T::DTYPE))
                .hint(format!("cast(DType::{:?}) first", T::DTYPE))
                .in_op("to_vec"));
        }
        self.need_values("to_vec")?;
        Ok(reading(self, "to_vec", || {
            let mut out = vec![T::default(); self.numel()];
            sampan_kernels::copy::copy_strided(self.values().view(), out.as_mut_slice().into());
            out
        }))
    }

    fn need_values(&self, op: &'static str) -> Result<()> {
        match self.device() {
            Device::Cpu | Device::Cuda(_) => Ok(()),
            Device::Meta => Err(Error::invalid("a meta tensor holds no values").in_op(op)),
        }
    }

    /// The values in a dtype; the tensor itself, without a call, if it has it already. For kernels.
    pub(crate) fn in_dtype(&self, dtype: DType) -> Result<Tensor> {
        if self.dtype() == dtype { Ok(self.clone()) } else { self.try_cast(dtype) }
    }

    /// The same without another handle: for kernels that are done again and again, where counting handles takes time.
    pub(crate) fn as_dtype(&self, dtype: DType) -> Result<Cow<'_, Tensor>> {
        if self.dtype() == dtype { Ok(Cow::Borrowed(self)) } else { self.try_cast(dtype).map(Cow::Owned) }
    }

    /// Halves as float32, short integers and truth values as int32; the tensor itself if it has others. For kernels that compare.
    pub(crate) fn widened(&self) -> Result<Tensor> {
        match self.dtype() {
            DType::Float16 | DType::BFloat16 => self.try_cast(DType::Float32),
            DType::Bool | DType::UInt8 | DType::Int8 | DType::Int16 => self.try_cast(DType::Int32),
            _ => Ok(self.clone()),
        }
    }

    /// The values in row-major memory; the tensor itself, without a call, if it is so already. For kernels.
    pub(crate) fn in_rows(&self) -> Result<Tensor> {
        if self.is_contiguous() { Ok(self.clone()) } else { self.try_contiguous() }
    }

    /// The same without another handle.
    pub(crate) fn as_rows(&self) -> Result<Cow<'_, Tensor>> {
        if self.is_contiguous() { Ok(Cow::Borrowed(self)) } else { self.try_contiguous().map(Cow::Owned) }
    }

    /// The one value of a tensor with one element.
    #[track_caller]
    pub fn item(&self) -> Scalar {
        crate::error::unwrap(self.try_item())
    }

    /// The one value of a tensor with one element, or an error if it has another number of them.
    pub fn try_item(&self) -> Result<Scalar> {
        if self.numel() != 1 {
            return Err(Error::invalid(format!(
                "only a tensor with one element is a number, this one has {}",
                self.numel()
            ))
            .received(self.describe())
            .in_op("item"));
        }
        self.need_values("item")?;
        let at = self.layout().offset;
        Ok(reading(self, "item", || self.values().view().data.get(at)))
    }

    /// The one value as a float; of a complex number the real part.
    #[track_caller]
    pub fn to_f64(&self) -> f64 {
        self.item().to_f64()
    }

    /// All values as integers, row-major: a shape, pads or repeats that were given as a tensor.
    pub fn try_to_ints(&self) -> Result<Vec<i64>> {
        if self.device() == Device::Meta {
            return Err(Error::invalid("the result's shape depends on the values, which a meta tensor lacks"));
        }
        if self.dtype().is_inexact() {
            return Err(Error::dtype(format!("these must be integers, got a {} tensor", self.dtype())));
        }
        reading(self, "ints", || self.detach().try_cast(DType::Int64)?.try_to_vec())
    }

    /// All values as floats, row-major, whatever the dtype; a complex number gives two, its real and its imaginary part.
    pub fn to_f64_vec(&self) -> Vec<f64> {
        let parts = self.parts();
        crate::error::unwrap(self.need_values("to_vec"));
        reading(self, "to_f64_vec", || {
            let mut out = vec![0.0; parts.numel()];
            sampan_kernels::cast::cast(parts.values().view(), out.as_mut_slice().into());
            out
        })
    }

    /// A complex tensor's memory as real numbers with a last axis of two; a real tensor itself. Without history.
    pub(crate) fn parts(&self) -> Tensor {
        self.as_parts().into_owned()
    }

    /// The same without another handle on a real tensor.
    pub(crate) fn as_parts(&self) -> Cow<'_, Tensor> {
        if !self.dtype().is_complex() {
            return Cow::Borrowed(self);
        }
        let mut layout = self.layout().clone();
        layout.strides.iter_mut().for_each(|s| *s *= 2);
        layout.shape.push(2);
        layout.strides.push(1);
        layout.offset *= 2;
        Cow::Owned(Tensor::from_parts(self.storage().clone(), layout, self.dtype().real_part()))
    }
}

/// Numbers and nested arrays of numbers that a tensor can be made from.
pub trait FromNested {
    /// The number inside.
    type Elem: Element;
    /// Appends the extents, outermost first, as the first of each level has them.
    fn shape(&self, shape: &mut Shape);
    /// Have all levels these extents?
    fn fits(&self, shape: &[usize]) -> bool;
    /// Appends the numbers, row-major.
    fn flatten(&self, values: &mut Vec<Self::Elem>);
}

macro_rules! nested_number {
    ($($t:ty => $elem:ty),*) => {$(
        impl FromNested for $t {
            type Elem = $elem;
            fn shape(&self, _: &mut Shape) {}
            fn fits(&self, shape: &[usize]) -> bool { shape.is_empty() }
            fn flatten(&self, values: &mut Vec<$elem>) { values.push((*self).into()) }
        }
    )*};
}
nested_number!(u8 => u8, i8 => i8, i16 => i16, i32 => i32, i64 => i64, f16 => f16, bf16 => bf16, f32 => f32, f64 => f64,
    bool => Bool, Bool => Bool, Complex64 => Complex64, Complex128 => Complex128);

macro_rules! nested_list {
    ($(($($g:tt)*) $t:ty),*) => {$(
        impl<N: FromNested, $($g)*> FromNested for $t {
            type Elem = N::Elem;
            fn shape(&self, shape: &mut Shape) {
                shape.push(self.len());
                if let Some(first) = self.first() {
                    first.shape(shape);
                }
            }
            fn fits(&self, shape: &[usize]) -> bool {
                shape.split_first().is_some_and(|(&n, rest)| n == self.len() && self.iter().all(|x| x.fits(rest)))
            }
            fn flatten(&self, values: &mut Vec<N::Elem>) {
                self.iter().for_each(|x| x.flatten(values));
            }
        }
    )*};
}
nested_list!((const L: usize) [N; L], () Vec<N>, () &[N], (const L: usize) &[N; L], () &Vec<N>);
