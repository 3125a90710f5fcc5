//! DLPack: memory handed to other libraries and taken from them without a copy.

use crate::errors::raise;
use crate::memory::tensor_on;
use crate::tensor::PyTensor;
use pyo3::exceptions::{PyAttributeError, PyBufferError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use sampan_core::dispatch::reading;
use sampan_core::{DType, Device, Layout, Tensor};
use std::ffi::{CStr, c_void};
use std::ptr;

const CPU: i32 = 1;
const CUDA: i32 = 2;
/// Memory of the host that a GPU can reach; for us it is the host's.
const PINNED: i32 = 3;
const VERSION: (u32, u32) = (1, 0);
const READ_ONLY: u64 = 1;
const COPIED: u64 = 2;

// The structs of dlpack.h.
#[repr(C)]
struct DLTensor {
    data: *mut c_void,
    device: (i32, i32),
    ndim: i32,
    code: u8,
    bits: u8,
    lanes: u16,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
}

#[repr(C)]
struct Managed {
    tensor: DLTensor,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Managed)>,
}

#[repr(C)]
struct ManagedVersioned {
    version: (u32, u32),
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut ManagedVersioned)>,
    flags: u64,
    tensor: DLTensor,
}

/// What a handed-out tensor keeps alive.
struct Context {
    _tensor: Tensor,
    shape: Vec<i64>,
    strides: Vec<i64>,
}

/// (code, bits) of a dtype.
fn code(dtype: DType) -> (u8, u8) {
    let bits = 8 * dtype.size() as u8;
    match dtype.name() {
        "bool" => (6, 8),
        "bfloat16" => (4, 16),
        name if name.starts_with("uint") => (1, bits),
        name if name.starts_with("int") => (0, bits),
        name if name.starts_with("complex") => (5, bits),
        _ => (2, bits),
    }
}

/// Where a tensor lies, as DLPack has it.
fn device_of(t: &Tensor) -> (i32, i32) {
    match t.device() {
        Device::Cuda(number) => {
            // Whoever reads it does so on another stream.
            let _ = sampan_core::gpu::synchronize(number);
            (CUDA, number as i32)
        }
        _ => (CPU, 0),
    }
}

fn describe(t: &Tensor) -> (DLTensor, *mut c_void) {
    let mut context = Box::new(Context {
        shape: t.shape().iter().map(|&n| n as i64).collect(),
        strides: t.strides().iter().map(|&s| s as i64).collect(),
        _tensor: t.clone(),
    });
    let (code, bits) = code(t.dtype());
    let tensor = DLTensor {
        data: ptr::with_exposed_provenance_mut(reading(t, "dlpack", || t.data_ptr())),
        device: device_of(t),
        ndim: t.ndim() as i32,
        code,
        bits,
        lanes: 1,
        shape: context.shape.as_mut_ptr(),
        strides: context.strides.as_mut_ptr(),
        byte_offset: 0,
    };
    (tensor, Box::into_raw(context).cast())
}

unsafe extern "C" fn delete(managed: *mut Managed) {
    // SAFETY: both boxes were made by `export` and are given back once, by whoever took the capsule over.
    unsafe {
        drop(Box::from_raw((*managed).context.cast::<Context>()));
        drop(Box::from_raw(managed));
    }
}

unsafe extern "C" fn delete_versioned(managed: *mut ManagedVersioned) {
    // SAFETY: as above.
    unsafe {
        drop(Box::from_raw((*managed).context.cast::<Context>()));
        drop(Box::from_raw(managed));
    }
}

/// A capsule that nobody took over frees what it holds.
unsafe extern "C" fn forget(capsule: *mut ffi::PyObject) {
    // SAFETY: the interpreter calls this with a capsule that `export` made; its name changes when it is taken over.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, c"dltensor".as_ptr()) == 1 {
            delete(ffi::PyCapsule_GetPointer(capsule, c"dltensor".as_ptr()).cast());
        } else if ffi::PyCapsule_IsValid(capsule, c"dltensor_versioned".as_ptr()) == 1 {
            delete_versioned(ffi::PyCapsule_GetPointer(capsule, c"dltensor_versioned".as_ptr()).cast());
        }
    }
}

fn export(py: Python<'_>, t: &Tensor, versioned: bool, flags: u64) -> PyResult<Py<PyAny>> {
    let (tensor, context) = describe(t);
    let (pointer, name): (*mut c_void, &CStr) = if versioned {
        let managed = ManagedVersioned { version: VERSION, context, deleter: Some(delete_versioned), flags, tensor };
        (Box::into_raw(Box::new(managed)).cast(), c"dltensor_versioned")
    } else {
        let managed = Managed { tensor, context, deleter: Some(delete) };
        (Box::into_raw(Box::new(managed)).cast(), c"dltensor")
    };
    // SAFETY: the pointer is a box of the kind that the name says, which `forget` or the taker frees; the name is static.
    unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyCapsule_New(pointer, name.as_ptr(), Some(forget))) }
        .map(Bound::unbind)
}

/// Another library's tensor, freed when dropped.
enum Taken {
    Plain(*mut Managed),
    Versioned(*mut ManagedVersioned),
}

// SAFETY: the pointer is used once more, to free; deleters may be called from any thread.
unsafe impl Send for Taken {}
// SAFETY: as above.
unsafe impl Sync for Taken {}

impl Drop for Taken {
    fn drop(&mut self) {
        // SAFETY: the capsule was marked as used, so freeing it is ours to do, once.
        unsafe {
            match *self {
                Taken::Plain(m) => (*m).deleter.map(|f| f(m)),
                Taken::Versioned(m) => (*m).deleter.map(|f| f(m)),
            };
        }
    }
}

/// Takes a capsule over.
fn import(capsule: &Bound<'_, PyAny>) -> PyResult<(Tensor, bool)> {
    let object = capsule.as_ptr();
    // SAFETY: validity and name are asked before a pointer is taken; renaming tells the capsule that it is ours now; the
    // structs are those that dlpack.h promises for the names.
    let (taken, tensor, read_only) = unsafe {
        if ffi::PyCapsule_IsValid(object, c"dltensor_versioned".as_ptr()) == 1 {
            let m: *mut ManagedVersioned = ffi::PyCapsule_GetPointer(object, c"dltensor_versioned".as_ptr()).cast();
            ffi::PyCapsule_SetName(object, c"used_dltensor_versioned".as_ptr());
            let taken = Taken::Versioned(m);
            if (*m).version.0 > VERSION.0 {
                return Err(PyBufferError::new_err(format!(
                    "(InvalidArgument) from_dlpack: DLPack {}.{} is newer than ours.",
                    (*m).version.0,
                    (*m).version.1
                )));
            }
            (taken, &(*m).tensor, (*m).flags & READ_ONLY != 0)
        } else if ffi::PyCapsule_IsValid(object, c"dltensor".as_ptr()) == 1 {
            let m: *mut Managed = ffi::PyCapsule_GetPointer(object, c"dltensor".as_ptr()).cast();
            ffi::PyCapsule_SetName(object, c"used_dltensor".as_ptr());
            (Taken::Plain(m), &(*m).tensor, false)
        } else {
            return Err(PyTypeError::new_err(format!(
                "(InvalidType) from_dlpack: an object with __dlpack__ or an unused capsule is needed, got {}. Hint: a \
                 capsule can be taken over once.",
                capsule.get_type().name()?
            )));
        }
    };
    if !matches!(tensor.device.0, CPU | PINNED | CUDA) {
        return Err(PyBufferError::new_err(
            "(Unavailable) from_dlpack: the memory is neither the processor's nor a GPU's of NVIDIA. Hint: move it to the \
             processor first, as with x.cpu().",
        ));
    }
    let found = DType::ALL.iter().copied().find(|&d| code(d) == (tensor.code, tensor.bits) && tensor.lanes == 1);
    let dtype = found.ok_or_else(|| {
        PyBufferError::new_err(format!(
            "(InvalidType) from_dlpack: elements of code {} with {} bits have no dtype here.",
            tensor.code, tensor.bits
        ))
    })?;
    let n = tensor.ndim.max(0) as usize;
    // SAFETY: shape has `ndim` entries, strides too unless it is null, which means row-major.
    let (shape, strides) = unsafe {
        let list = |p: *mut i64| if n == 0 || p.is_null() { &[] } else { std::slice::from_raw_parts(p, n) };
        (list(tensor.shape), list(tensor.strides))
    };
    let mut layout = Layout::contiguous(shape.iter().map(|&n| n as usize).collect::<Vec<_>>());
    if strides.len() == n {
        layout.strides = strides.iter().map(|&s| s as isize).collect();
    }
    let start = tensor.data.cast::<u8>().wrapping_add(tensor.byte_offset as usize);
    if tensor.device.0 == CUDA {
        let number = tensor.device.1.max(0) as usize;
        // SAFETY: the producer's promise; `taken` frees the memory when the tensor is gone.
        let t = unsafe { tensor_on_gpu(number, start.addr() as u64, layout, dtype, taken) }?;
        return Ok((t, read_only));
    }
    // SAFETY: the producer's promise; `taken` frees the memory when the tensor is gone.
    let t = unsafe { tensor_on(start, layout, dtype, taken) }
        .map_err(|_| PyBufferError::new_err("(InvalidArgument) from_dlpack: the memory is not aligned."))??;
    Ok((t, read_only))
}

/// A tensor on memory of a GPU that belongs to somebody else, once all that was begun there has been done.
///
/// # Safety
/// The elements of the layout lie there as long as the owner lives.
unsafe fn tensor_on_gpu(
    number: usize,
    address: u64,
    mut layout: Layout,
    dtype: DType,
    owner: impl Send + Sync + 'static,
) -> PyResult<Tensor> {
    let gpu = sampan_cuda::device(number).map_err(|why| raise(why.into()))?;
    gpu.wait_for_all().map_err(|why| raise(why.into()))?;
    let (first, last) = if layout.numel() > 0 { layout.reach() } else { (0, -1) };
    // Steps may be negative: the memory begins with the element that lies first.
    layout.offset = first.unsigned_abs();
    let start = address.wrapping_add_signed(first as i64 * dtype.size() as i64);
    // SAFETY: from the first element to the last, by the caller's promise.
    let block = unsafe { sampan_cuda::Block::foreign(gpu, start, (last - first + 1) as usize * dtype.size(), owner) };
    Tensor::from_gpu_memory(block, layout, dtype).map_err(raise)
}

/// A tensor on the memory of a GPU that an object describes by `__cuda_array_interface__`.
pub fn from_cuda_array(value: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    let facts = value.getattr("__cuda_array_interface__")?;
    let shape: Vec<usize> = facts.get_item("shape")?.extract()?;
    let (address, _): (u64, bool) = facts.get_item("data")?.extract()?;
    let kind: String = facts.get_item("typestr")?.extract()?;
    let known = |d: &DType| typestr(*d).is_some_and(|t| kind[1..] == t[1..] && !kind.starts_with('>'));
    let dtype = DType::ALL.iter().copied().find(known).ok_or_else(|| {
        PyBufferError::new_err(format!("(InvalidType) to_tensor: elements of the kind {kind} have no dtype here."))
    })?;
    let mut layout = Layout::contiguous(shape);
    let strides = facts.call_method1("get", ("strides",))?;
    if !strides.is_none() {
        let steps: Vec<isize> = strides.extract()?;
        layout.strides = steps.iter().map(|s| s / dtype.size() as isize).collect();
    }
    let number = match value.getattr_opt("device")?.and_then(|d| d.getattr("index").ok()) {
        Some(index) => index.extract().unwrap_or(0),
        None => 0,
    };
    // SAFETY: what the object says of its memory, which lives as long as the object.
    unsafe { tensor_on_gpu(number, address, layout, dtype, value.clone().unbind()) }
}

/// The kind of an element as NumPy writes it.
fn typestr(dtype: DType) -> Option<String> {
    let letter = match dtype.name() {
        "bool" => 'b',
        "bfloat16" => return None,
        name if name.starts_with("uint") => 'u',
        name if name.starts_with("int") => 'i',
        name if name.starts_with("complex") => 'c',
        _ => 'f',
    };
    Some(format!("{}{letter}{}", if dtype.size() == 1 { '|' } else { '<' }, dtype.size()))
}

#[pymethods]
impl PyTensor {
    /// Where a tensor of a GPU lies, for libraries that can use it there.
    #[getter]
    fn __cuda_array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let t = self.tensor();
        let absent =
            |why: &str| Err(PyAttributeError::new_err(format!("(Unavailable) __cuda_array_interface__: {why}.")));
        if !matches!(t.device(), Device::Cuda(_)) {
            return absent("the tensor is not on a GPU");
        }
        let Some(kind) = typestr(t.dtype()) else { return absent("NumPy has no bfloat16") };
        device_of(&t);
        let facts = PyDict::new(py);
        facts.set_item("shape", PyTuple::new(py, t.shape())?)?;
        facts.set_item("typestr", kind)?;
        facts.set_item("data", (reading(&t, "cuda_array_interface", || t.data_ptr()), false))?;
        let size = t.dtype().size() as isize;
        facts.set_item("strides", PyTuple::new(py, t.strides().iter().map(|s| s * size))?)?;
        facts.set_item("version", 3)?;
        Ok(facts)
    }

    /// The tensor as a DLPack capsule on the same memory.
    #[pyo3(signature = (*, stream = None, max_version = None, dl_device = None, copy = None))]
    fn __dlpack__(
        &self,
        py: Python<'_>,
        stream: Option<&Bound<'_, PyAny>>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Py<PyAny>> {
        let _ = stream;
        let t = self.tensor();
        if t.device() == Device::Meta || dl_device.is_some_and(|(kind, _)| kind != device_of(&t).0) {
            return Err(PyBufferError::new_err(
                "(Unavailable) __dlpack__: the tensor is not there. Hint: move it first, as with x.cpu() or x.cuda().",
            ));
        }
        let copies = copy == Some(true);
        let t = if copies { t.detach().try_clone_data().map_err(crate::errors::raise)? } else { t };
        export(py, &t, max_version.is_some_and(|v| v.0 >= 1), if copies { COPIED } else { 0 })
    }
    /// (1, 0) for the processor, (2, n) for GPU n.
    fn __dlpack_device__(&self) -> (i32, i32) {
        device_of(&self.tensor())
    }
}

/// A tensor on the memory of an object with `__dlpack__`, or of a capsule.
#[pyfunction]
#[pyo3(signature = (dlpack, *, device = None, copy = None))]
pub fn from_dlpack(
    py: Python<'_>,
    dlpack: &Bound<'_, PyAny>,
    device: Option<&Bound<'_, PyAny>>,
    copy: Option<bool>,
) -> PyResult<Py<PyAny>> {
    if let Some(device) = device.filter(|d| !d.is_none()) {
        crate::device::check_place(device)?;
    }
    let capsule = match dlpack.getattr_opt("__dlpack__")? {
        Some(method) => {
            let named = PyDict::new(py);
            named.set_item("max_version", VERSION)?;
            match method.call((), Some(&named)) {
                // Producers from before DLPack 1.0 do not know the argument.
                Err(e) if e.is_instance_of::<PyTypeError>(py) => method.call0()?,
                other => other?,
            }
        }
        None => dlpack.clone(),
    };
    let (t, read_only) = import(&capsule)?;
    if read_only && copy == Some(false) {
        return Err(PyBufferError::new_err("(InvalidArgument) from_dlpack: read-only memory cannot be shared."));
    }
    let t = if read_only || copy == Some(true) { t.try_clone_data().map_err(crate::errors::raise)? } else { t };
    PyTensor::wrap(py, t)
}

/// The tensor as a DLPack capsule.
#[pyfunction]
pub fn to_dlpack(x: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    match x.cast::<PyTensor>() {
        Ok(t) => t.borrow().__dlpack__(x.py(), None, None, None, None),
        Err(_) => Err(PyTypeError::new_err(format!(
            "(InvalidType) to_dlpack: x must be a Tensor, but received {}.",
            x.get_type().name()?
        ))),
    }
}
