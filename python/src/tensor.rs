//! `Tensor`: a handle on a tensor of the core.

use crate::errors::{self, raise};
use crate::hook::Owned;
use crate::{array, dtype};
use parking_lot::Mutex;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt, PyList, PyTuple};
use sampan_core::dispatch::reading;
use sampan_core::{DType, Scalar, Tensor};
use sampan_nn::Parameter;

/// Where a handle finds its tensor. A parameter of a layer is a place that the layer reads as well, so that both see a
/// replacement.
pub enum Place {
    /// The handle's own.
    Own(Tensor),
    /// A parameter.
    Parameter(Parameter),
}

/// An n-dimensional array that remembers how it was made.
///
/// Several threads may use one handle, so what it points to stands behind a lock. The lock is held for moments in which
/// no Python code can run, and what a replacement displaces is dropped after it.
#[pyclass(name = "Tensor", module = "sampan", subclass, dict, weakref, frozen)]
pub struct PyTensor {
    place: Mutex<Place>,
    pub(crate) made: Made,
}

/// Whether an object is complete. The collector may look at one whose memory is there, all zeros, but not yet filled:
/// making its dictionary can start a collection.
pub struct Made(bool);

impl Made {
    /// Of an object that is filled now.
    pub fn now() -> Made {
        Made(true)
    }

    /// May its other fields be looked at?
    pub fn is_complete(&self) -> bool {
        self.0
    }
}

impl PyTensor {
    /// A handle on a tensor.
    pub fn own(t: Tensor) -> PyTensor {
        PyTensor::at(Place::Own(t))
    }

    fn at(place: Place) -> PyTensor {
        PyTensor { place: Mutex::new(place), made: Made::now() }
    }

    /// A new Python object for a tensor.
    pub fn wrap(py: Python<'_>, t: Tensor) -> PyResult<Py<PyAny>> {
        Ok(Py::new(py, PyTensor::own(t))?.into_any())
    }

    /// The one value, read by `what`.
    pub fn read(&self, what: &'static str) -> sampan_core::Result<Scalar> {
        let t = self.tensor();
        reading(&t, what, || t.try_item())
    }

    /// The tensor now.
    pub fn tensor(&self) -> Tensor {
        match &*self.place.lock() {
            Place::Own(t) => t.clone(),
            Place::Parameter(p) => p.tensor(),
        }
    }

    /// Calls `f` with the tensor, if it is the handle's own.
    pub fn with_own(&self, f: impl FnOnce(&Tensor)) {
        if let Place::Own(t) = &*self.place.lock() {
            f(t);
        }
    }

    /// The parameter, if it is one.
    pub fn parameter(&self) -> Option<Parameter> {
        if let Place::Parameter(p) = &*self.place.lock() { Some(p.clone()) } else { None }
    }

    /// Puts another tensor in its place.
    pub fn replace(&self, t: Tensor) {
        let old = match &mut *self.place.lock() {
            Place::Own(own) => std::mem::replace(own, t),
            Place::Parameter(p) => p.replace(t),
        };
        drop(old);
    }
}

/// A tensor that is trained.
#[pyclass(name = "Parameter", module = "sampan", extends = PyTensor, subclass, dict, weakref, frozen)]
pub struct PyParameter {
    pub(crate) hooks: Owned,
    pub(crate) made: Made,
}

impl PyParameter {
    /// The Python object of a parameter.
    pub fn wrap(py: Python<'_>, p: Parameter) -> PyResult<Py<PyAny>> {
        Ok(Py::new(py, PyParameter::initializer(p))?.into_any())
    }

    fn initializer(p: Parameter) -> PyClassInitializer<PyParameter> {
        PyClassInitializer::from(PyTensor::at(Place::Parameter(p)))
            .add_subclass(PyParameter { hooks: Owned::default(), made: Made::now() })
    }
}

#[pymethods]
impl PyTensor {
    /// `Tensor()`, `Tensor(data, dtype, place, stop_gradient)`, or `Tensor(2, 3)`, whose values are unspecified.
    #[new]
    #[pyo3(signature = (*args, dtype = None, place = None, stop_gradient = true, data = None, **_more))]
    fn new(
        args: &Bound<'_, PyTuple>,
        dtype: Option<&Bound<'_, PyAny>>,
        place: Option<&Bound<'_, PyAny>>,
        stop_gradient: bool,
        data: Option<&Bound<'_, PyAny>>,
        _more: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyTensor> {
        let default = sampan_core::promote::default_dtype;
        let sizes = args.len() != 1 || args.get_item(0)?.is_exact_instance_of::<PyInt>();
        let dtype = dtype.filter(|d| !d.is_none()).map(dtype::read).transpose()?;
        if let Some(place) = place.filter(|p| !p.is_none()) {
            crate::device::check_place(place)?;
        }
        if sizes && data.is_none() && args.iter().all(|n| n.is_exact_instance_of::<PyInt>()) {
            let shape = args.extract::<Vec<usize>>().map_err(|_| {
                PyValueError::new_err(format!(
                    "(InvalidArgument) Tensor: a size must not be negative or too large, got {args}."
                ))
            })?;
            let shape = if shape.is_empty() { vec![0] } else { shape };
            sampan_core::shape::checked_numel(&shape).map_err(raise)?;
            let dtype = dtype.unwrap_or_else(default);
            let t = errors::run_here(|| Ok(Tensor::zeros(&shape, dtype)))?;
            t.set_stop_gradient(stop_gradient);
            return Ok(PyTensor::own(t));
        }
        let given = args.get_item(0).ok();
        let data = given.as_ref().or(data).ok_or_else(|| PyTypeError::new_err("(InvalidType) Tensor: no data."))?;
        let named = args.get_item(1).ok().filter(|d| !d.is_none()).map(|d| dtype::read(&d)).transpose()?;
        let t = array::to_tensor(data, dtype.or(named))?;
        // Numbers in a list become the default dtype here, where `to_tensor` keeps integers.
        let listed = data.is_instance_of::<PyList>() || data.is_instance_of::<PyTuple>();
        let t = if listed && dtype.or(named).is_none() { t.try_cast(default()).map_err(raise)? } else { t };
        t.set_stop_gradient(stop_gradient);
        Ok(PyTensor::own(t))
    }

    // ---- what it is

    /// Extents of the axes, as a list.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, self.tensor().shape())
    }
    /// The type of the elements.
    #[getter]
    fn dtype(&self, py: Python<'_>) -> Py<dtype::PyDType> {
        dtype::object(py, self.tensor().dtype())
    }
    /// Number of axes.
    #[getter]
    fn ndim(&self) -> usize {
        self.tensor().ndim()
    }
    /// Number of elements.
    #[getter]
    fn size(&self) -> usize {
        self.tensor().numel()
    }
    /// Steps of the axes, in elements.
    #[getter]
    fn strides<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, self.tensor().strides())
    }
    /// Where the values of a view begin in the memory it shares, in bytes.
    #[getter]
    fn offset(&self) -> usize {
        let t = self.tensor();
        t.layout().offset * t.dtype().size()
    }
    /// Is it excluded from gradients?
    #[getter]
    fn get_stop_gradient(&self) -> bool {
        self.tensor().stop_gradient()
    }
    #[setter]
    fn set_stop_gradient(&self, stop: bool) {
        self.tensor().set_stop_gradient(stop);
    }
    /// Is a gradient wanted for it? The opposite of `stop_gradient`.
    #[getter]
    fn get_requires_grad(&self) -> bool {
        self.tensor().requires_grad()
    }
    #[setter]
    fn set_requires_grad(&self, on: bool) {
        self.tensor().set_stop_gradient(!on);
    }
    /// Was it made by the user rather than by a recorded op?
    #[getter]
    fn is_leaf(&self) -> bool {
        let t = self.tensor();
        t.is_leaf()
    }
    /// The name of the op that made it, or None.
    #[getter]
    fn grad_fn(&self) -> Option<&'static str> {
        self.tensor().grad_fn()
    }
    #[getter]
    fn get_name(&self) -> String {
        self.tensor().name()
    }
    #[setter]
    fn set_name(&self, name: String) {
        self.tensor().set_name(name);
    }
    /// Is it part of what a checkpoint keeps?
    #[getter]
    fn get_persistable(&self) -> bool {
        self.tensor().persistable()
    }
    #[setter]
    fn set_persistable(&self, on: bool) {
        self.tensor().set_persistable(on);
    }
    /// How often its memory was written in place.
    #[getter]
    fn inplace_version(&self) -> u64 {
        self.tensor().inplace_version()
    }
    /// Is it row-major without gaps?
    fn is_contiguous(&self) -> bool {
        self.tensor().is_contiguous()
    }
    /// Do both share memory?
    fn _shares_memory(&self, other: PyRef<'_, PyTensor>) -> bool {
        self.tensor().shares_memory(&other.tensor())
    }
    /// Are both handles on one and the same tensor?
    fn _is_same(&self, other: PyRef<'_, PyTensor>) -> bool {
        let (a, b) = (self.tensor(), other.tensor());
        a.shares_memory(&b) && a.layout() == b.layout()
    }

    // ---- gradients

    /// The gradient that `backward` added up here, or None.
    #[getter]
    fn get_grad(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        self.tensor().grad().map(|g| PyTensor::wrap(py, g)).transpose()
    }
    #[setter]
    fn set_grad(&self, grad: Option<PyRef<'_, PyTensor>>) -> PyResult<()> {
        let t = self.tensor();
        if let Some(g) = &grad
            && g.tensor().shape() != t.shape()
        {
            return Err(PyValueError::new_err(format!(
                "(InvalidArgument) grad: the gradient must have the tensor's shape {:?}, got {:?}.",
                t.shape(),
                g.tensor().shape()
            )));
        }
        t.set_grad(grad.map(|g| g.tensor().detach()));
        Ok(())
    }
    /// Sets the gradient to zeros, or forgets it.
    #[pyo3(signature = (set_to_zero = true))]
    fn clear_grad(&self, set_to_zero: bool) {
        let t = self.tensor();
        if set_to_zero { t.zero_grad() } else { t.clear_grad() }
    }
    /// Sets the gradient to zeros, or forgets it.
    #[pyo3(signature = (set_to_zero = true))]
    fn clear_gradient(&self, set_to_zero: bool) {
        self.clear_grad(set_to_zero);
    }
    /// Adds the gradients of this tensor to `.grad` of every leaf it depends on.
    #[pyo3(signature = (grad_tensor = None, retain_graph = false, *, dump_backward_graph_path = None))]
    fn backward(
        &self,
        py: Python<'_>,
        grad_tensor: Option<PyRef<'_, PyTensor>>,
        retain_graph: bool,
        dump_backward_graph_path: Option<String>,
    ) -> PyResult<()> {
        crate::graph::check_walk()?;
        let _ = dump_backward_graph_path;
        let (t, g) = (self.tensor(), grad_tensor.map(|g| g.tensor()));
        errors::run(py, move || t.try_backward(g.as_ref(), retain_graph))
    }
    /// Keeps the gradient of this intermediate result in `.grad`.
    fn retain_grads(&self) {
        self.tensor().retain_grads();
    }
    /// The same memory without a history.
    fn detach(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        PyTensor::wrap(py, self.tensor().detach())
    }
    /// Cuts this tensor off from its history.
    fn detach_<'py>(slf: Bound<'py, Self>) -> Bound<'py, Self> {
        let t = slf.borrow().tensor().detach();
        slf.get().replace(t);
        slf
    }
}

#[pymethods]
impl PyParameter {
    #[new]
    #[pyo3(signature = (data, trainable = true, name = None))]
    fn new(
        data: &Bound<'_, PyAny>,
        trainable: bool,
        name: Option<String>,
    ) -> PyResult<PyClassInitializer<PyParameter>> {
        let t = array::to_tensor(data, None)?;
        let p = Parameter::new(t);
        p.set_trainable(trainable);
        if let Some(name) = name {
            p.tensor().set_name(name);
        }
        Ok(PyParameter::initializer(p))
    }
    /// Is it trained?
    #[getter]
    fn get_trainable(slf: PyRef<'_, Self>) -> bool {
        !slf.as_super().tensor().stop_gradient()
    }
    #[setter]
    fn set_trainable(slf: PyRef<'_, Self>, on: bool) {
        slf.as_super().tensor().set_stop_gradient(!on);
    }
    /// Nothing to do: the values were made with the parameter.
    fn initialize(&self) {}
    fn __repr__(slf: PyRef<'_, Self>) -> String {
        let t = slf.as_super().tensor();
        format!("Parameter containing:\n{t:?}")
    }
}

/// The parameter behind a Python object.
pub fn parameter_of(value: &Bound<'_, PyAny>) -> Option<Parameter> {
    value.cast::<PyTensor>().ok().and_then(|t| t.get().parameter())
}

/// The default dtype.
pub fn default_dtype() -> DType {
    sampan_core::promote::default_dtype()
}
