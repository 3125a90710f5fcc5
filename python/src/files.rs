//! `save` and `load`.

use crate::errors;
use crate::tensor::PyTensor;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use sampan_io::{Dict, Key, Object};

/// How deep lists and dicts may lie in each other; one that contains itself is deeper than that.
const DEPTH: usize = 500;

/// A Python value as what a file holds.
fn object(value: &Bound<'_, PyAny>) -> PyResult<Object> {
    object_at(value, 0)
}

fn object_at(value: &Bound<'_, PyAny>, depth: usize) -> PyResult<Object> {
    if depth > DEPTH {
        return Err(pyo3::exceptions::PyRecursionError::new_err(format!(
            "(InvalidArgument) save: lists and dicts lie more than {DEPTH} deep in each other, or one contains itself."
        )));
    }
    if value.is_none() {
        return Ok(Object::None);
    }
    if let Ok(t) = value.cast::<PyTensor>() {
        // A file holds the names too.
        let tensor = t.borrow().tensor().detach();
        tensor.set_name(value.getattr(pyo3::intern!(value.py(), "name"))?.extract::<String>()?);
        return Ok(Object::Tensor(tensor));
    }
    if let Ok(b) = value.cast::<PyBool>() {
        return Ok(Object::Bool(b.is_true()));
    }
    if let Ok(f) = value.cast::<PyFloat>() {
        return Ok(Object::Float(f.value()));
    }
    if value.is_instance_of::<PyInt>() {
        return Ok(Object::Int(value.extract()?));
    }
    if let Ok(s) = value.cast::<PyString>() {
        return Ok(Object::Str(s.to_str()?.to_string()));
    }
    if let Ok(b) = value.cast::<PyBytes>() {
        return Ok(Object::Bytes(b.as_bytes().to_vec()));
    }
    if let Ok(d) = value.cast::<PyDict>() {
        let mut dict = Dict::default();
        for (k, v) in d.iter() {
            let key = if k.is_instance_of::<PyInt>() {
                Key::Int(k.extract()?)
            } else if let Ok(text) = k.cast::<PyString>() {
                Key::Str(text.to_str()?.to_string())
            } else {
                return Err(PyTypeError::new_err(format!(
                    "(InvalidType) save: the keys of a dict are strings or ints, not {}.",
                    k.get_type().name()?
                )));
            };
            dict.insert(key, object_at(&v, depth + 1)?);
        }
        return Ok(Object::Dict(dict));
    }
    if let Ok(t) = value.cast::<PyTuple>() {
        return Ok(Object::Tuple(t.iter().map(|v| object_at(&v, depth + 1)).collect::<PyResult<_>>()?));
    }
    if let Ok(l) = value.cast::<PyList>() {
        return Ok(Object::List(l.iter().map(|v| object_at(&v, depth + 1)).collect::<PyResult<_>>()?));
    }
    if crate::array::is_array(value)? {
        return Ok(Object::Array(crate::array::from_array(value)?));
    }
    if let Ok(d) = value.cast::<crate::dtype::PyDType>() {
        return Ok(Object::Str(d.get().0.name().to_string()));
    }
    Err(PyTypeError::new_err(format!(
        "(InvalidType) save: a file holds numbers, strings, tensors, arrays, and lists and dicts of them, not {}. Hint: save \
         layer.state_dict() instead of the layer.",
        value.get_type().name()?
    )))
}

fn python(py: Python<'_>, object: &Object, arrays: bool) -> PyResult<Py<PyAny>> {
    Ok(match object {
        Object::None => py.None(),
        Object::Bool(b) => PyBool::new(py, *b).to_owned().into_any().unbind(),
        Object::Int(i) => i.into_pyobject(py)?.into_any().unbind(),
        Object::Float(f) => f.into_pyobject(py)?.into_any().unbind(),
        Object::Str(s) => PyString::new(py, s).into_any().unbind(),
        Object::Bytes(b) => PyBytes::new(py, b).into_any().unbind(),
        Object::Array(t) => crate::array::to_numpy(py, t)?,
        Object::Tensor(t) if arrays => crate::array::to_numpy(py, t)?,
        Object::Tensor(t) => PyTensor::wrap(py, t.clone())?,
        Object::List(v) => {
            PyList::new(py, v.iter().map(|o| python(py, o, arrays)).collect::<PyResult<Vec<_>>>()?)?.into_any().unbind()
        }
        Object::Tuple(v) => PyTuple::new(py, v.iter().map(|o| python(py, o, arrays)).collect::<PyResult<Vec<_>>>()?)?
            .into_any()
            .unbind(),
        Object::Dict(d) => {
            let dict = PyDict::new(py);
            for (k, v) in d.iter() {
                match k {
                    Key::Int(i) => dict.set_item(i, python(py, v, arrays)?)?,
                    Key::Str(s) => dict.set_item(s, python(py, v, arrays)?)?,
                }
            }
            dict.into_any().unbind()
        }
    })
}

/// Writes a value in the format that the end of the path names.
#[pyfunction]
pub fn _save(py: Python<'_>, value: &Bound<'_, PyAny>, path: std::path::PathBuf, protocol: u8) -> PyResult<()> {
    let object = object(value)?;
    errors::run(py, move || sampan_io::save_with(path, &object, protocol))
}

/// A value in Paddle's format.
#[pyfunction]
pub fn _save_bytes<'py>(py: Python<'py>, value: &Bound<'_, PyAny>, protocol: u8) -> PyResult<Bound<'py, PyBytes>> {
    let object = object(value)?;
    let bytes = errors::run(py, move || sampan_io::pdparams::to_bytes(&object, protocol))?;
    Ok(PyBytes::new(py, &bytes))
}

/// The value at the start of bytes of any known format, and how many of them it takes.
#[pyfunction]
pub fn _load_bytes(py: Python<'_>, bytes: &[u8], return_numpy: bool, names: bool) -> PyResult<(Py<PyAny>, usize)> {
    let (object, end) = errors::run(py, || sampan_io::load_bytes(bytes, names))?;
    Ok((python(py, &object, return_numpy)?, end))
}

/// Writes `BASE.SUFFIX` for each suffix of a dict, in Paddle's format: all of them or none.
#[pyfunction]
pub fn _save_set(py: Python<'_>, base: std::path::PathBuf, files: &Bound<'_, PyDict>) -> PyResult<()> {
    let files: Vec<(String, Object)> =
        files.iter().map(|(k, v)| Ok((k.extract()?, object(&v)?))).collect::<PyResult<_>>()?;
    errors::run(py, move || {
        let files: Vec<_> = files.iter().map(|(suffix, object)| (suffix.as_str(), object.clone())).collect();
        sampan_io::set::save(base, &files)
    })
}

/// Completes the set of files that a path belongs to, should its writer have been killed.
#[pyfunction]
pub fn _finish_set(path: std::path::PathBuf) {
    sampan_io::set::finish_around(path);
}

/// Reads a file of any known format.
#[pyfunction]
#[pyo3(signature = (path, return_numpy = false))]
pub fn _load(py: Python<'_>, path: std::path::PathBuf, return_numpy: bool) -> PyResult<Py<PyAny>> {
    sampan_io::set::finish_around(&path);
    if !path.exists() {
        return Err(pyo3::exceptions::PyFileNotFoundError::new_err(format!(
            "(NotFound) load: there is no file {}.",
            path.display()
        )));
    }
    let object = errors::run(py, move || sampan_io::load(path))?;
    python(py, &object, return_numpy)
}
