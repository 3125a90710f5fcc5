//! Values in and out: Python numbers and lists, buffers, NumPy arrays.

use crate::dtype;
use crate::errors::{guard, raise};
use crate::memory::View;
use crate::tensor::PyTensor;
use crate::value;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyComplex, PyDict, PyFloat, PyInt, PyList, PyModule, PyRange, PyTuple};
use sampan_core::dispatch::reading;
use sampan_core::{Complex128, DType, Device, Scalar, Tensor};

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
        Scalar::Complex(c) => PyComplex::from_doubles(py, c.re, c.im).into_any().unbind(),
    })
}

/// Does it hold values in memory: a NumPy array or scalar, a `memoryview`, an `array.array`?
pub fn is_array(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    // SAFETY: a live object; the call only looks at its type.
    let buffer = unsafe { ffi::PyObject_CheckBuffer(value.as_ptr()) } == 1;
    let py = value.py();
    Ok(buffer && !value.is_instance_of::<pyo3::types::PyBytes>()
        || value.hasattr(pyo3::intern!(py, "__array__"))?
        || value.hasattr(pyo3::intern!(py, "__array_interface__"))?)
}

/// A copy of an array's values.
pub fn from_array(value: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    if let Ok(view) = View::of(value)
        && let Some(dtype) = view.dtype()
    {
        return copy(view, dtype);
    }
    if value.hasattr(pyo3::intern!(value.py(), "__cuda_array_interface__"))? {
        return crate::dlpack::from_cuda_array(value)?.try_clone_data().map_err(raise);
    }
    let np = numpy(value.py())?;
    let array = np.call_method1("asarray", (value,))?;
    if !array.is(value)
        && let Ok(view) = View::of(&array)
        && let Some(dtype) = view.dtype()
    {
        return copy(view, dtype);
    }
    let kind: String = array.getattr("dtype")?.getattr("kind")?.extract()?;
    let name: String = array.getattr("dtype")?.getattr("name")?.extract()?;
    let target = match (kind.as_str(), name.as_str()) {
        ("u", "uint16") => "int32",
        ("u", _) => "int64",
        ("f", "longdouble" | "float128") => "float64",
        ("f" | "i" | "b" | "c", _) => &name,
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
    copy(view, dtype)
}

/// The values of an array where they lie, for as long as it is not written; a copy of what cannot be read so.
fn shared_or_copied(value: &Bound<'_, PyAny>, dtype: Option<DType>) -> PyResult<Tensor> {
    if is_array(value)?
        && let Ok(view) = View::of(value)
        && view.dtype().is_some_and(|d| d != DType::Bool && dtype.is_none_or(|wanted| wanted == d))
        && view.in_one_piece().is_some()
        && let Ok(shared) = view.share()
    {
        return shared;
    }
    to_tensor(value, dtype)
}

fn copy(view: View, dtype: DType) -> PyResult<Tensor> {
    let shape = view.shape();
    if dtype == DType::Bool {
        // A bool of another library may be any byte; ours is 0 or 1.
        let bytes: Vec<u8> = view.bytes().into_iter().map(|b| (b != 0) as u8).collect();
        return Tensor::from_bytes(&bytes, dtype, shape).map_err(raise);
    }
    if let Some(bytes) = view.in_one_piece() {
        return Tensor::from_bytes(bytes, dtype, shape).map_err(raise);
    }
    match view.share() {
        Ok(shared) => shared?.try_clone_data().map_err(raise),
        Err(view) => Tensor::from_bytes(&view.bytes(), dtype, shape).map_err(raise),
    }
}

/// A tensor on the memory of a writable array; a copy where the memory cannot be shared.
#[pyfunction]
pub fn _share_array(array: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    let t = match View::of(array) {
        Ok(view) if view.is_writable() && view.dtype().is_some() => match view.share() {
            Ok(shared) => shared?,
            Err(_) => from_array(array)?,
        },
        _ => from_array(array)?,
    };
    PyTensor::wrap(array.py(), t)
}

/// A tensor's values as a new NumPy array. NumPy has no bfloat16; its bits come as uint16, as in Paddle.
pub fn to_numpy(py: Python<'_>, t: &Tensor) -> PyResult<Py<PyAny>> {
    if t.device() == sampan_core::Device::Meta {
        return Err(PyValueError::new_err("(InvalidArgument) numpy: a meta tensor holds no values."));
    }
    let options = PyDict::new(py);
    options.set_item(pyo3::intern!(py, "order"), "C")?;
    let array = pyo3::intern!(py, "array");
    let wrapped = PyTensor::wrap(py, t.clone())?;
    Ok(reading(t, "numpy", || numpy(py)?.call_method(array, (wrapped,), Some(&options)))?.unbind())
}

/// Values as nested lists.
pub fn to_list(py: Python<'_>, t: &Tensor) -> PyResult<Py<PyAny>> {
    if t.ndim() == 0 {
        return number(py, reading(t, "tolist", || t.try_item()).map_err(raise)?);
    }
    // A tensor without elements may still be a list of very many empty lists.
    let lists = t.shape().iter().take_while(|&&n| n > 0).fold(1, |lists: usize, &n| lists.saturating_mul(n));
    if t.numel() == 0 && lists > value::MAX_ITEMS {
        return Err(PyValueError::new_err(format!("(InvalidArgument) tolist: {lists} empty lists are too many.")));
    }
    let flat: Vec<Scalar> = reading(t, "tolist", || -> sampan_core::Result<_> {
        Ok(match t.dtype() {
            DType::Bool => t.to_f64_vec().into_iter().map(|v| Scalar::Bool(v != 0.0)).collect(),
            d if d.is_complex() => {
                let wide = t.try_cast(DType::Complex128)?.try_to_vec::<Complex128>()?;
                wide.into_iter().map(Scalar::Complex).collect()
            }
            d if d.is_float() => t.to_f64_vec().into_iter().map(Scalar::Float).collect(),
            _ => t.try_to_ints()?.into_iter().map(Scalar::Int).collect(),
        })
    })
    .map_err(raise)?;
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

/// The deepest nesting that is read; a list that contains itself has no end.
const MAX_DEPTH: usize = 64;

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
            let i = value::int(value)?.unwrap_or_default();
            return number(self, i as f64, i);
        }
        if depth > MAX_DEPTH {
            return Err(PyValueError::new_err(format!("(InvalidArgument) to_tensor: more than {MAX_DEPTH} axes.")));
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
    if let Ok(c) = value.cast_exact::<PyComplex>() {
        let natural = crate::tensor::default_dtype().complex();
        let t = Tensor::try_from_slice(&[Complex128::new(c.real(), c.imag())], []).map_err(raise)?;
        return cast(t, dtype.unwrap_or(natural));
    }
    if is_array(value)? {
        let t = from_array(value)?;
        return match dtype {
            Some(d) => cast(t, d),
            None => Ok(t),
        };
    }
    if value.is_instance_of::<PyRange>() {
        return to_tensor(value::items(value)?.into_pyobject(value.py())?.as_any(), dtype);
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

/// Lists that hold tensors, arrays or NumPy's numbers. Tensors keep their dtype; of anything else floats follow the
/// default dtype and integers are int64, as in Paddle.
fn mixed(value: &Bound<'_, PyAny>, dtype: Option<DType>) -> PyResult<Tensor> {
    let mut parts = Vec::new();
    let mut natural: Option<DType> = None;
    for item in value.try_iter()? {
        let item = item?;
        let part = to_tensor(&item, None)?;
        let kept =
            item.is_instance_of::<PyTensor>() || item.is_instance_of::<PyList>() || item.is_instance_of::<PyTuple>();
        let wants = match part.dtype() {
            d if kept || d == DType::Bool => d,
            d if d.is_float() => crate::tensor::default_dtype(),
            d if d.is_int() => DType::Int64,
            d => d,
        };
        natural = Some(natural.map_or(wants, |n| sampan_core::promote::promote(n, wants)));
        parts.push(part);
    }
    if parts.windows(2).any(|w| w[0].shape() != w[1].shape()) {
        return Err(ragged());
    }
    let target = dtype.or(natural).unwrap_or_else(crate::tensor::default_dtype);
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
    let device = match place.filter(|p| !p.is_none()) {
        Some(place) => crate::device::read(place)?,
        None => sampan_core::device::default(),
    };
    let dtype = dtype.filter(|d| !d.is_none()).map(dtype::read).transpose()?;
    let mut t = match device {
        // What goes on to a GPU is read where it lies; nobody writes it meanwhile.
        Device::Cuda(_) => guard(|| shared_or_copied(data, dtype)?.try_to_device(&device.to_string()).map_err(raise))?,
        _ => guard(|| to_tensor(data, dtype))?,
    };
    if t.device() != device {
        t = crate::errors::run(data.py(), move || t.detach().try_to_device(&device.to_string()))?;
    }
    t.set_stop_gradient(stop_gradient);
    PyTensor::wrap(data.py(), t)
}

/// A tensor of bytes in row-major order: what `Tensor._bytes` gave.
#[pyfunction]
pub fn _from_bytes(bytes: &[u8], dtype: &Bound<'_, PyAny>, shape: Vec<usize>) -> PyResult<Py<PyAny>> {
    PyTensor::wrap(dtype.py(), Tensor::from_bytes(bytes, dtype::read(dtype)?, shape).map_err(raise)?)
}
