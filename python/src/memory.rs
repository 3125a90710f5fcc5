//! Memory shared with other libraries through the buffer protocol, in both directions and without a copy.
//!
//! A write through such a view is not counted as an in-place change: autograd cannot see it.

use crate::errors::raise;
use crate::tensor::PyTensor;
use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;
use sampan_core::{DType, Device, Layout, Tensor};
use sampan_kernels::Buffer;
use std::ffi::{CStr, c_int, c_void};
use std::ptr::{self, NonNull};

/// The letter of the `struct` module for a dtype, as NumPy knows it. bfloat16 travels as its bits.
fn format(dtype: DType) -> &'static CStr {
    match dtype.name() {
        "bool" => c"?",
        "uint8" => c"B",
        "int8" => c"b",
        "int16" => c"h",
        "int32" => c"i",
        "int64" if size_of::<std::ffi::c_long>() == 8 => c"l",
        "int64" => c"q",
        "float16" => c"e",
        "bfloat16" => c"H",
        "float32" => c"f",
        "float64" => c"d",
        "complex64" => c"Zf",
        "complex128" => c"Zd",
        other => unreachable!("dtype {other} has no letter"),
    }
}

/// What an exported view needs while it lives: the tensor, whose memory stays, and its layout in bytes.
struct Export {
    _tensor: Tensor,
    shape: Vec<ffi::Py_ssize_t>,
    strides: Vec<ffi::Py_ssize_t>,
}

/// Do several indices mean the same element, as in a broadcast view?
fn overlaps(t: &Tensor) -> bool {
    t.shape().iter().zip(t.strides()).any(|(&n, &step)| n > 1 && step == 0)
}

#[pymethods]
impl PyTensor {
    /// The values, for `memoryview` and `numpy.asarray`: no copy, writable unless elements overlap.
    ///
    /// # Safety
    /// Called by the interpreter with a view to fill.
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let t = slf.borrow().tensor();
        let refuse = |why: &str| Err(PyBufferError::new_err(format!("(InvalidArgument) Tensor: {why}.")));
        if t.device() == Device::Meta {
            return refuse("a meta tensor holds no values");
        }
        // The host reads a copy of what lies on a GPU.
        let on_gpu = matches!(t.device(), Device::Cuda(_));
        let t = if on_gpu { t.detach().try_to_device("cpu").map_err(crate::errors::raise)? } else { t };
        let asks = |what: c_int| flags & what == what;
        let rows = t.is_contiguous();
        if (asks(ffi::PyBUF_C_CONTIGUOUS) || !asks(ffi::PyBUF_STRIDES)) && !rows {
            return refuse("this view of its memory has gaps. Hint: x.contiguous()");
        }
        if asks(ffi::PyBUF_F_CONTIGUOUS) && !(rows && t.ndim() <= 1) {
            return refuse("the memory is row-major");
        }
        let readonly = on_gpu || overlaps(&t);
        if asks(ffi::PyBUF_WRITABLE) && readonly {
            return refuse(
                "elements of a broadcast view share memory and cannot be written one by one. Hint: x.clone()",
            );
        }
        let size = t.dtype().size();
        let mut export = Box::new(Export {
            shape: t.shape().iter().map(|&n| n as ffi::Py_ssize_t).collect(),
            strides: t.strides().iter().map(|&s| s * size as isize).collect(),
            _tensor: t.clone(),
        });
        let address = sampan_core::dispatch::reading(&t, "buffer", || t.data_ptr());
        // SAFETY: `view` is the interpreter's to be filled; every pointer put into it lives in `export`, in the tensor
        // that it holds, or for ever, until `__releasebuffer__` takes `internal` back.
        unsafe {
            (*view).buf = ptr::with_exposed_provenance_mut::<c_void>(address);
            (*view).obj = slf.into_ptr();
            (*view).len = (t.numel() * size) as ffi::Py_ssize_t;
            (*view).readonly = c_int::from(readonly);
            (*view).itemsize = size as ffi::Py_ssize_t;
            (*view).format =
                if asks(ffi::PyBUF_FORMAT) { format(t.dtype()).as_ptr().cast_mut() } else { ptr::null_mut() };
            (*view).ndim = t.ndim() as c_int;
            (*view).shape = if asks(ffi::PyBUF_ND) { export.shape.as_mut_ptr() } else { ptr::null_mut() };
            (*view).strides = if asks(ffi::PyBUF_STRIDES) { export.strides.as_mut_ptr() } else { ptr::null_mut() };
            (*view).suboffsets = ptr::null_mut();
            (*view).internal = Box::into_raw(export).cast();
        }
        Ok(())
    }

    /// # Safety
    /// Called by the interpreter with a view that `__getbuffer__` filled.
    unsafe fn __releasebuffer__(&self, view: *mut ffi::Py_buffer) {
        // SAFETY: `internal` is the box that `__getbuffer__` put there, and each view is released once.
        drop(unsafe { Box::from_raw((*view).internal.cast::<Export>()) });
    }
}

/// A buffer of another object, given back when dropped.
pub struct View(Box<ffi::Py_buffer>);

// SAFETY: the view is only read, and dropping it takes the interpreter's lock first.
unsafe impl Send for View {}
// SAFETY: as above.
unsafe impl Sync for View {}

impl View {
    /// Asks an object for its memory.
    pub fn of(value: &Bound<'_, PyAny>) -> PyResult<View> {
        let mut view = Box::new(ffi::Py_buffer::new());
        // SAFETY: `view` is a valid place for the result; `value` is alive.
        let failed = unsafe { ffi::PyObject_GetBuffer(value.as_ptr(), &mut *view, ffi::PyBUF_FULL_RO) } != 0;
        if failed { Err(PyErr::fetch(value.py())) } else { Ok(View(view)) }
    }

    /// The element type, if it is one of ours in the machine's byte order.
    pub fn dtype(&self) -> Option<DType> {
        let format = if self.0.format.is_null() {
            "B"
        } else {
            // SAFETY: a buffer's format is a string that lives as long as the view.
            unsafe { CStr::from_ptr(self.0.format) }.to_str().ok()?
        };
        let letter = format.strip_prefix(['@', '=', '<']).unwrap_or(format);
        let name = match (letter, self.0.itemsize) {
            ("?", 1) => "bool",
            ("B", 1) => "uint8",
            ("b", 1) => "int8",
            ("h", 2) => "int16",
            ("i" | "l" | "n", 4) => "int32",
            ("q" | "l" | "n", 8) => "int64",
            ("e", 2) => "float16",
            // NumPy has no bfloat16: Paddle keeps its bits in uint16, and reads them so.
            ("H", 2) => "bfloat16",
            ("f", 4) => "float32",
            ("d", 8) => "float64",
            ("Zf", 8) => "complex64",
            ("Zd", 16) => "complex128",
            _ => return None,
        };
        DType::ALL.iter().copied().find(|d| d.name() == name)
    }

    fn list(&self, p: *const ffi::Py_ssize_t) -> &[isize] {
        // SAFETY: shape and strides of a full buffer have `ndim` entries where they are not null.
        if p.is_null() { &[] } else { unsafe { std::slice::from_raw_parts(p, self.0.ndim.max(0) as usize) } }
    }

    /// Extents of the axes.
    pub fn shape(&self) -> Vec<usize> {
        self.list(self.0.shape).iter().map(|&n| n as usize).collect()
    }

    /// May it be written?
    pub fn is_writable(&self) -> bool {
        self.0.readonly == 0
    }

    /// The elements' bytes, if they lie row-major in one piece.
    pub fn in_one_piece(&self) -> Option<&[u8]> {
        // SAFETY: a valid view; `len` bytes from `buf` belong to a buffer that lies in one piece.
        unsafe {
            let whole = ffi::PyBuffer_IsContiguous(&*self.0, b'C' as std::ffi::c_char) == 1 && self.0.len > 0;
            whole.then(|| std::slice::from_raw_parts(self.0.buf.cast::<u8>(), self.0.len as usize))
        }
    }

    /// The elements' bytes, row-major, whatever the alignment.
    pub fn bytes(&self) -> Vec<u8> {
        let mut out = vec![0u8; self.0.len as usize];
        // SAFETY: `out` has room for the whole buffer, and the view is valid.
        let failed = unsafe {
            ffi::PyBuffer_ToContiguous(out.as_mut_ptr().cast(), &*self.0, self.0.len, b'C' as std::ffi::c_char)
        };
        debug_assert_eq!(failed, 0, "a copy of the buffer's own length");
        out
    }

    /// A tensor on the same memory, which keeps the view alive; the view back where alignment or steps do not fit.
    pub fn share(self) -> Result<PyResult<Tensor>, View> {
        let Some(dtype) = self.dtype() else { return Err(self) };
        let size = dtype.size() as isize;
        let (shape, strides) = (self.list(self.0.shape), self.list(self.0.strides));
        if strides.iter().any(|s| s % size != 0) || shape.len() != strides.len() {
            return Err(self);
        }
        let steps = strides.iter().map(|s| s / size).collect();
        let layout = Layout { shape: shape.iter().map(|&n| n as usize).collect(), strides: steps, offset: 0 };
        let start = self.0.buf.cast::<u8>();
        // SAFETY: the view is the memory of `layout`, valid until it is released, which the owner does when dropped.
        match unsafe { tensor_on(start, layout, dtype, self) } {
            Ok(t) => Ok(t),
            Err(view) => Err(view),
        }
    }
}

/// A tensor on memory that `owner` keeps alive. Gives the owner back where the memory is not aligned for the dtype.
///
/// # Safety
/// Every element that `layout` reaches from `start` (which its first element is) is initialised, readable and writable
/// until `owner` is dropped.
pub unsafe fn tensor_on<O: Send + Sync + 'static>(
    start: *mut u8,
    mut layout: Layout,
    dtype: DType,
    owner: O,
) -> Result<PyResult<Tensor>, O> {
    let size = dtype.size();
    if layout.numel() == 0 {
        return Ok(Ok(Tensor::zeros(&layout.shape, dtype)));
    }
    let (low, high) = layout.reach();
    // SAFETY: the lowest element is one of the layout's.
    let lowest = unsafe { start.offset(low * size as isize) };
    // A complex number is aligned as its parts are.
    let align = if dtype.name().starts_with("complex") { size / 2 } else { size };
    let Some(lowest) = NonNull::new(lowest).filter(|p| p.addr().get().is_multiple_of(align)) else { return Err(owner) };
    layout.offset = low.unsigned_abs();
    // SAFETY: the caller's promise, for the elements between the lowest and the highest, which lie in one piece.
    let buffer = unsafe { Buffer::foreign(lowest, (high - low + 1) as usize * size, Box::new(owner)) };
    Ok(Tensor::from_buffer(buffer, layout, dtype).map_err(raise))
}

impl Drop for View {
    fn drop(&mut self) {
        // Without an interpreter there is nobody to give it back to.
        Python::try_attach(|_| {
            // SAFETY: taken by `PyObject_GetBuffer` and not given back before; the lock is held.
            unsafe { ffi::PyBuffer_Release(&mut *self.0) };
        });
    }
}
