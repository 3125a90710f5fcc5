//! Tensors whose ops are done elsewhere: distributed ones, of which this process has a part.

use crate::dtype::PyDType;
use crate::op::PyOp;
use crate::tensor::PyTensor;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use sampan_core::{Device, Tensor, device};
use std::sync::OnceLock;

/// The classes of such tensors and the function that does an op with them.
static KNOWN: OnceLock<(Py<PyAny>, Py<PyAny>)> = OnceLock::new();

/// From now on ops with tensors of some classes are done by `handler(op, args, kwargs)`.
#[pyfunction]
pub fn _set_elsewhere(classes: Py<PyAny>, handler: Py<PyAny>) {
    let _ = KNOWN.set((classes, handler));
}

/// The part of a tensor that this process has, with its history.
#[pyfunction]
pub fn _plain(py: Python<'_>, tensor: &PyTensor) -> PyResult<Py<PyAny>> {
    PyTensor::wrap(py, tensor.tensor())
}

fn is(classes: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> bool {
    // No op takes lists that are nested deeper, and one may hold itself.
    is_within(classes, value, 3)
}

fn is_within(classes: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>, depth: usize) -> bool {
    if depth == 0 {
        return false;
    }
    if value.is_instance_of::<PyTensor>() {
        return value.is_instance(classes).unwrap_or(false);
    }
    // `concat([a, b])`
    if let Ok(list) = value.cast::<PyList>() {
        return list.iter().any(|v| is_within(classes, &v, depth - 1));
    }
    value.cast::<PyTuple>().is_ok_and(|tuple| tuple.iter().any(|v| is_within(classes, &v, depth - 1)))
}

/// Is it such a tensor?
pub fn is_elsewhere(value: &Bound<'_, PyAny>) -> bool {
    KNOWN.get().is_some_and(|(classes, _)| is(classes.bind(value.py()), value))
}

/// Does an op elsewhere, if one of its arguments is such a tensor.
pub fn call(
    op: &Bound<'_, PyAny>,
    args: &Bound<'_, PyTuple>,
    kwargs: Option<&Bound<'_, PyDict>>,
) -> PyResult<Option<Py<PyAny>>> {
    let py = op.py();
    let Some((classes, handler)) = KNOWN.get() else { return Ok(None) };
    let classes = classes.bind(py);
    let named = kwargs.is_some_and(|k| k.iter().any(|(_, v)| is(classes, &v)));
    if !named && !args.iter().any(|v| is(classes, &v)) {
        return Ok(None);
    }
    let kwargs = kwargs.cloned().unwrap_or_else(|| PyDict::new(py));
    handler.call1(py, (op, args, kwargs)).map(Some)
}

/// What whoever does an op must know of it.
#[pymethods]
impl PyOp {
    /// The names of its parameters.
    #[getter]
    fn _params(&self) -> Vec<&'static str> {
        self.def.params.iter().map(|p| p.name).collect()
    }
    /// Where a parameter stands, by any of its names.
    fn _position(&self, name: &str) -> Option<usize> {
        self.def.takes().position(name)
    }
    /// Which parameter may be written as several arguments.
    #[getter]
    fn _spread(&self) -> Option<usize> {
        self.spread
    }
    /// Does it write its first argument?
    #[getter]
    fn _inplace(&self) -> bool {
        self.inplace
    }
    /// The op's own name, whatever it was asked for by.
    #[getter]
    fn _op(&self) -> &'static str {
        self.def.name
    }
}

/// A tensor to be filled: on the default device, or without any values where this process has no part of it.
#[pyfunction]
pub fn _room(py: Python<'_>, shape: Vec<usize>, dtype: &PyDType, here: bool) -> PyResult<Py<PyAny>> {
    let device = if here { device::default() } else { Device::Meta };
    PyTensor::wrap(py, device::with(device, || Tensor::zeros(shape, dtype.0)))
}
