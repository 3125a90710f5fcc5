//! Values in and out: Python numbers and lists, buffers, NumPy arrays.

use crate::dtype;
use crate::errors::raise;
use crate::tensor::PyTensor;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyFloat, PyInt, PyList, PyModule, PyTuple};
use sampan_core::{DType, Scalar, Tensor};
use std::ffi::CStr;

static NUMPY: PyOnceLock<Py<PyModule>> = PyOnceLock::new();

/// NumPy, imported when first needed.
pub fn numpy(py: Python<'_>) -> PyResult<&Bound<'_, PyModule>> {
    NUMPY.get_or_try_init(py, || py.import("numpy").map(Bound::unbind)).map(|m| m.bind(py))
}

/// A number as a Python object.
pub fn number(py: Python<'_>, s: Scalar) -> PyResult<Py<PyAny>> {
    Ok(match s {
        Scalar::Bool(b) => PyBool::new(py, b).to_owned().into_any().unbind(),
        Scalar::Int(i) => i.into_pyobject(py)?.into_any().unbind(),
        Scalar::Float(f) => f.into_pyobject(py)?.into_any().unbind(),
    })
}

/// Does it hold values in memory: a NumPy array or scalar, a `memoryview`, an `array.array`?
pub fn is_array(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    // SAFETY: a live object; the call only looks at its type.
    let buffer = unsafe { ffi::PyObject_CheckBuffer(value.as_ptr()) } == 1;
    Ok(buffer && !value.is_instance_of::<pyo3::types::PyBytes>() || value.hasattr("__array__")?)
}

/// A buffer that is given back when dropped.
struct View(Box<ffi::Py_buffer>);

impl View {
    fn of(value: &Bound<'_, PyAny>) -> PyResult<View> {
        let mut view = Box::new(ffi::Py_buffer::new());
        // SAFETY: `view` is a valid place for the result; `value` is alive.
        let failed = unsafe { ffi::PyObject_GetBuffer(value.as_ptr(), &mut *view, ffi::PyBUF_FULL_RO) } != 0;
        if failed { Err(PyErr::fetch(value.py())) } else { Ok(View(view)) }
    }

    /// The element type, if it is one of ours in the machine's byte order.
    fn dtype(&self) -> Option<DType> {
        let format = if self.0.format.is_null() {
            "B"
        } else {
            // SAFETY: a buffer's format is a string that lives as long as the view.
            unsafe { CStr::from_ptr(self.0.format) }.to_str().ok()?
        };
        let letter = format.strip_prefix(['@', '=', '<']).unwrap_or(format);
        let size = self.0.itemsize as usize;
        Some(match (letter, size) {
            ("?", 1) => DType::Bool,
            ("B", 1) => DType::UInt8,
            ("b", 1) => DType::Int8,
            ("h", 2) => DType::Int16,
            ("i" | "l" | "n", 4) => DType::Int32,
            ("q" | "l" | "n", 8) => DType::Int64,
            ("e", 2) => DType::Float16,
            ("f", 4) => DType::Float32,
            ("d", 8) => DType::Float64,
            _ => return None,
        })
    }

    fn list(&self, p: *const ffi::Py_ssize_t) -> Vec<isize> {
        let n = self.0.ndim.max(0) as usize;
        // SAFETY: shape and strides of a full buffer have `ndim` entries where they are not null.
        if p.is_null() { Vec::new() } else { unsafe { std::slice::from_raw_parts(p, n) }.to_vec() }
    }

    /// The elements' bytes, row-major.
    fn bytes(&self) -> Vec<u8> {
        let shape = self.list(self.0.shape);
        let (strides, size, start) = (self.list(self.0.strides), self.0.itemsize as usize, self.0.buf as *const u8);
        // SAFETY: `len` bytes from `buf` belong to a buffer that lies in one piece, which `PyBuffer_IsContiguous` tells.
        unsafe {
            if ffi::PyBuffer_IsContiguous(&*self.0, b'C' as std::ffi::c_char) == 1 {
                let len = self.0.len as usize;
                return if len == 0 { Vec::new() } else { std::slice::from_raw_parts(start, len).to_vec() };
            }
        }
        let mut out = Vec::with_capacity(self.0.len as usize);
        let mut index = vec![0isize; shape.len()];
        if shape.contains(&0) {
            return out;
        }
        loop {
            let at: isize = index.iter().zip(&strides).map(|(i, s)| i * s).sum();
            // SAFETY: every index is inside the shape, so its element lies inside the buffer.
            out.extend_from_slice(unsafe { std::slice::from_raw_parts(start.offset(at), size) });
            let Some(axis) = (0..shape.len()).rev().find(|&a| index[a] + 1 < shape[a]) else { return out };
            index[axis] += 1;
            index[axis + 1..].fill(0);
        }
    }
}

impl Drop for View {
    fn drop(&mut self) {
        // SAFETY: taken by `PyObject_GetBuffer` and not given back before.
        unsafe { ffi::PyBuffer_Release(&mut *self.0) };
    }
}

/// A copy of an array's values.
pub fn from_array(value: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    if let Ok(view) = View::of(value)
        && let Some(dtype) = view.dtype()
    {
        let shape: Vec<usize> = view.list(view.0.shape).iter().map(|&n| n as usize).collect();
        let bytes = view.bytes();
        // A bool of another library may be any byte; ours is 0 or 1.
        let bytes = if dtype == DType::Bool { bytes.into_iter().map(|b| (b != 0) as u8).collect() } else { bytes };
        return Tensor::from_bytes(&bytes, dtype, shape).map_err(raise);
    }
    let np = numpy(value.py())?;
    let array = np.call_method1("asarray", (value,))?;
    let kind: String = array.getattr("dtype")?.getattr("kind")?.extract()?;
    let name: String = array.getattr("dtype")?.getattr("name")?.extract()?;
    let target = match (kind.as_str(), name.as_str()) {
        ("u", "uint16") => "int32",
        ("u", _) => "int64",
        ("f", "longdouble" | "float128") => "float64",
        ("f" | "i" | "b", _) => &name,
        _ => {
            return Err(PyTypeError::new_err(format!(
                "(InvalidType) to_tensor: an array of dtype {name} holds no numbers. Hint: rows of different length make \
                 an array of objects."
            )));
        }
    };
    let native = np.call_method1("ascontiguousarray", (array.call_method1("astype", (target,))?,))?;
    let view = View::of(&native)?;
    let dtype = view.dtype().ok_or_else(|| PyTypeError::new_err(format!("(InvalidType) to_tensor: dtype {name}.")))?;
    let shape: Vec<usize> = array.getattr("shape")?.extract()?;
    Tensor::from_bytes(&view.bytes(), dtype, shape).map_err(raise)
}

/// A tensor's values as a new NumPy array. NumPy has no bfloat16; its bits come as uint16, as in Paddle.
pub fn to_numpy(py: Python<'_>, t: &Tensor) -> PyResult<Py<PyAny>> {
    let np = numpy(py)?;
    let name = if t.dtype() == DType::BFloat16 { "uint16" } else { t.dtype().name() };
    if t.device() == sampan_core::Device::Meta {
        return Err(PyValueError::new_err("(InvalidArgument) numpy: a meta tensor holds no values."));
    }
    let bytes = pyo3::types::PyByteArray::new(py, &py.detach(|| t.to_bytes()));
    let flat = np.call_method1("frombuffer", (bytes, name))?;
    Ok(flat.call_method1("reshape", (PyTuple::new(py, t.shape())?,))?.unbind())
}

/// Values as nested lists.
pub fn to_list(py: Python<'_>, t: &Tensor) -> PyResult<Py<PyAny>> {
    if t.ndim() == 0 {
        return number(py, t.try_item().map_err(raise)?);
    }
    let flat: Vec<Scalar> = match t.dtype() {
        DType::Bool => t.to_f64_vec().into_iter().map(|v| Scalar::Bool(v != 0.0)).collect(),
        d if d.is_float() => t.to_f64_vec().into_iter().map(Scalar::Float).collect(),
        _ => t.try_to_ints().map_err(raise)?.into_iter().map(Scalar::Int).collect(),
    };
    fn level(py: Python<'_>, shape: &[usize], flat: &[Scalar]) -> PyResult<Py<PyAny>> {
        match shape {
            [] => number(py, flat[0]),
            [n, rest @ ..] => {
                let step: usize = rest.iter().product();
                let rows: Vec<_> =
                    (0..*n).map(|i| level(py, rest, &flat[i * step..(i + 1) * step])).collect::<PyResult<_>>()?;
                Ok(PyList::new(py, rows)?.into_any().unbind())
            }
        }
    }
    level(py, t.shape(), &flat)
}

/// Plain numbers in nested lists, while they are read.
#[derive(Default)]
struct Nested {
    floats: Vec<f64>,
    /// Exact values, as long as all are integers.
    ints: Vec<i64>,
    any_float: bool,
    all_bool: bool,
    shape: Vec<usize>,
}

enum Read {
    Done,
    /// There is something else than numbers in it.
    Other,
}

impl Nested {
    fn read(&mut self, value: &Bound<'_, PyAny>, depth: usize) -> PyResult<Read> {
        let number = |n: &mut Nested, f: f64, i: i64| {
            if depth != n.shape.len() {
                return Err(ragged());
            }
            n.floats.push(f);
            n.ints.push(i);
            Ok(Read::Done)
        };
        if let Ok(b) = value.cast::<PyBool>() {
            return number(self, b.is_true() as u8 as f64, b.is_true() as i64);
        }
        if let Ok(f) = value.cast_exact::<PyFloat>() {
            (self.any_float, self.all_bool) = (true, false);
            return number(self, f.value(), 0);
        }
        if value.is_instance_of::<PyInt>() {
            self.all_bool = false;
            let i: i64 = value.extract()?;
            return number(self, i as f64, i);
        }
        let items: Vec<Bound<'_, PyAny>> = if let Ok(list) = value.cast::<PyList>() {
            list.iter().collect()
        } else if let Ok(tuple) = value.cast::<PyTuple>() {
            tuple.iter().collect()
        } else {
            return Ok(Read::Other);
        };
        if self.shape.len() == depth {
            if !self.floats.is_empty() {
                return Err(ragged());
            }
            self.shape.push(items.len());
        } else if self.shape[depth] != items.len() {
            return Err(ragged());
        }
        for item in &items {
            if let Read::Other = self.read(item, depth + 1)? {
                return Ok(Read::Other);
            }
        }
        Ok(Read::Done)
    }
}

fn ragged() -> PyErr {
    PyValueError::new_err(
        "(InvalidArgument) to_tensor: the rows differ in length or depth. Hint: pad them to one length.",
    )
}

/// A tensor of anything that holds numbers; of a tensor, a copy.
pub fn to_tensor(value: &Bound<'_, PyAny>, dtype: Option<DType>) -> PyResult<Tensor> {
    let cast = |t: Tensor, d: DType| if t.dtype() == d { Ok(t) } else { t.try_cast(d).map_err(raise) };
    if let Ok(t) = value.cast::<PyTensor>() {
        let t = t.borrow().tensor().detach();
        let copy = t.try_clone_data().map_err(raise)?;
        return cast(copy, dtype.unwrap_or(t.dtype()));
    }
    let listed = value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>();
    let plain = value.is_instance_of::<PyInt>() || value.is_exact_instance_of::<PyFloat>();
    if listed || plain {
        let mut nested = Nested { all_bool: true, ..Nested::default() };
        if let Read::Done = nested.read(value, 0)? {
            return nested.finish(dtype);
        }
        return mixed(value, dtype);
    }
    if is_array(value)? {
        let t = from_array(value)?;
        return match dtype {
            Some(d) => cast(t, d),
            None => Ok(t),
        };
    }
    if let Ok(items) = value.try_iter()
        && !value.is_instance_of::<pyo3::types::PyString>()
    {
        let list = PyList::new(value.py(), items.collect::<PyResult<Vec<_>>>()?)?;
        return to_tensor(list.as_any(), dtype);
    }
    Err(PyTypeError::new_err(format!(
        "(InvalidType) to_tensor: data must be numbers, lists of numbers, arrays or tensors, got {}.",
        value.get_type().name()?
    )))
}

impl Nested {
    fn finish(self, dtype: Option<DType>) -> PyResult<Tensor> {
        let empty = self.floats.is_empty();
        let natural = if self.any_float || empty {
            crate::tensor::default_dtype()
        } else if self.all_bool {
            DType::Bool
        } else {
            DType::Int64
        };
        let t = if self.any_float || empty {
            Tensor::try_from_slice(&self.floats, &self.shape)
        } else {
            Tensor::try_from_slice(&self.ints, &self.shape)
        };
        t.and_then(|t| t.try_cast(dtype.unwrap_or(natural))).map_err(raise)
    }
}

/// Lists that hold tensors, arrays or NumPy's numbers.
fn mixed(value: &Bound<'_, PyAny>, dtype: Option<DType>) -> PyResult<Tensor> {
    let parts: Vec<Tensor> = value.try_iter()?.map(|item| to_tensor(&item?, None)).collect::<PyResult<_>>()?;
    if parts.windows(2).any(|w| w[0].shape() != w[1].shape()) {
        return Err(ragged());
    }
    let natural = parts.iter().map(Tensor::dtype).reduce(sampan_core::promote::promote).unwrap_or(DType::Float32);
    // Numbers in a list follow the default dtype, as in Paddle.
    let natural = if natural == DType::Float64 { crate::tensor::default_dtype() } else { natural };
    let target = dtype.unwrap_or(natural);
    let parts = parts.iter().map(|t| t.try_cast(target)).collect::<sampan_core::Result<Vec<_>>>().map_err(raise)?;
    sampan_core::ops::joining::try_stack(&parts, 0).map_err(raise)
}

/// A tensor of numbers, lists, arrays or tensors. The values are copied.
#[pyfunction]
#[pyo3(signature = (data, dtype = None, place = None, stop_gradient = true))]
pub fn to_tensor_py(
    data: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    place: Option<&Bound<'_, PyAny>>,
    stop_gradient: bool,
) -> PyResult<Py<PyAny>> {
    let _ = place;
    let dtype = dtype.filter(|d| !d.is_none()).map(dtype::read).transpose()?;
    let t = to_tensor(data, dtype)?;
    t.set_stop_gradient(stop_gradient);
    PyTensor::wrap(data.py(), t)
}
