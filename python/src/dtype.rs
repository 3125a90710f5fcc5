//! Element types as Python objects.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyString, PyType};
use sampan_core::DType;

/// The type of a tensor's elements; equal to its name: `x.dtype == 'float32'`.
#[pyclass(name = "dtype", module = "sampan", frozen)]
pub struct PyDType(pub DType);

static OBJECTS: PyOnceLock<Vec<Py<PyDType>>> = PyOnceLock::new();

/// The one object of a dtype.
pub fn object(py: Python<'_>, dtype: DType) -> Py<PyDType> {
    let all = OBJECTS.get_or_init(py, || {
        DType::ALL.iter().map(|&d| Py::new(py, PyDType(d)).expect("a small object can be made")).collect()
    });
    let at = DType::ALL.iter().position(|&d| d == dtype).expect("every dtype is listed");
    all[at].clone_ref(py)
}

/// The dtype of a name.
fn named(name: &str) -> Option<DType> {
    let name = name.strip_prefix("paddle.").or_else(|| name.strip_prefix("sampan.")).unwrap_or(name);
    let name = match name {
        "half" => "float16",
        "float" => "float32",
        "double" => "float64",
        "short" => "int16",
        "int" => "int32",
        "long" => "int64",
        "bool_" => "bool",
        other => other,
    };
    DType::ALL.iter().copied().find(|d| d.name() == name)
}

/// Reads a dtype from an object, a name, a Python type or a NumPy dtype.
pub fn read(value: &Bound<'_, PyAny>) -> PyResult<DType> {
    if let Ok(d) = value.cast::<PyDType>() {
        return Ok(d.get().0);
    }
    let name = if let Ok(s) = value.cast::<PyString>() {
        s.to_str()?.to_string()
    } else if let Ok(t) = value.cast::<PyType>() {
        match t.name()?.to_str()? {
            // Python's own numbers, as NumPy takes them, whatever the default dtype is.
            "float" => "float64".to_string(),
            "int" => "int64".to_string(),
            "complex" => "complex128".to_string(),
            other => other.to_string(),
        }
    } else {
        value.getattr("name").and_then(|n| n.extract::<String>()).unwrap_or_default()
    };
    named(&name).ok_or_else(|| {
        let all: Vec<&str> = DType::ALL.iter().map(|d| d.name()).collect();
        let got = value.repr().map_or_else(|_| "something else".to_string(), |r| r.to_string());
        PyTypeError::new_err(format!("(InvalidType) dtype must be one of {}, got {got}.", all.join(", ")))
    })
}

#[pymethods]
impl PyDType {
    /// The dtype of a name, a Python type or a NumPy dtype.
    #[new]
    fn new(name: &Bound<'_, PyAny>) -> PyResult<PyDType> {
        read(name).map(PyDType)
    }
    /// The name: `'float32'`.
    #[getter]
    fn name(&self) -> &'static str {
        self.0.name()
    }
    /// Bytes of one element.
    #[getter]
    fn itemsize(&self) -> usize {
        self.0.size()
    }
    /// Is it a float type?
    #[getter]
    fn is_floating_point(&self) -> bool {
        self.0.is_float()
    }
    fn __repr__(&self) -> String {
        format!("paddle.{}", self.0.name())
    }
    fn __str__(&self) -> String {
        self.__repr__()
    }
    /// Equal names have equal hashes, since a dtype equals its name.
    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        PyString::new(py, self.0.name()).hash()
    }
    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        read(other).is_ok_and(|d| d == self.0)
    }
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (&'static str,))> {
        Ok((py.import("sampan._core")?.getattr("_dtype")?, (self.0.name(),)))
    }
}

/// The dtype of a name, for pickles and the package.
#[pyfunction]
pub fn _dtype(value: &Bound<'_, PyAny>) -> PyResult<Py<PyDType>> {
    Ok(object(value.py(), read(value)?))
}
