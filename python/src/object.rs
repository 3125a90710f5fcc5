//! Initializers and metrics of the core, and what parameters are made with.

use crate::class::PyObject;
use crate::errors::{self, raise};
use crate::tensor::{PyParameter, PyTensor};
use crate::{dtype, value};
use pyo3::prelude::*;
use sampan_core::{Tensor, Value};
use sampan_nn::init::Initializer;
use sampan_nn::metric::Metric;
use sampan_nn::{Base, ParamAttr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

fn lock<T: ?Sized>(m: &Mutex<T>) -> MutexGuard<'_, T> {
    m.lock().unwrap_or_else(PoisonError::into_inner)
}

/// First values of a parameter.
#[pyclass(name = "RustInitializer", module = "sampan._core", extends = PyObject, frozen)]
pub struct PyInitializer(pub Arc<dyn Initializer>);

#[pymethods]
impl PyInitializer {
    /// Values of a shape and dtype.
    fn init(&self, py: Python<'_>, shape: Vec<usize>, dtype: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let (init, dtype) = (self.0.clone(), dtype::read(dtype)?);
        PyTensor::wrap(py, errors::run(py, move || init.init(&shape, dtype))?)
    }
}

/// A metric.
#[pyclass(name = "RustMetric", module = "sampan._core", extends = PyObject, frozen)]
pub struct PyMetric(pub Arc<Mutex<dyn Metric>>);

fn tensors(list: Vec<PyRef<'_, PyTensor>>) -> Vec<Tensor> {
    list.iter().map(|t| t.tensor()).collect()
}

#[pymethods]
impl PyMetric {
    fn name(&self) -> Vec<String> {
        lock(&self.0).name()
    }
    fn compute(
        &self,
        py: Python<'_>,
        outputs: Vec<PyRef<'_, PyTensor>>,
        labels: Vec<PyRef<'_, PyTensor>>,
    ) -> PyResult<Vec<Py<PyAny>>> {
        let found = lock(&self.0).compute(&tensors(outputs), &tensors(labels)).map_err(raise)?;
        found.into_iter().map(|t| PyTensor::wrap(py, t)).collect()
    }
    fn update(&self, batch: Vec<PyRef<'_, PyTensor>>) -> PyResult<Vec<f64>> {
        lock(&self.0).update(&tensors(batch)).map_err(raise)
    }
    fn accumulate(&self) -> Vec<f64> {
        lock(&self.0).accumulate()
    }
    fn reset(&self) {
        lock(&self.0).reset();
    }
}

/// The name of a layer and the makers of its parameters.
#[pyclass(name = "Base", module = "sampan._core", frozen)]
pub struct PyBase(Base);

#[pymethods]
impl PyBase {
    #[new]
    #[pyo3(signature = (full_name, dtype = None))]
    fn new(full_name: String, dtype: Option<&Bound<'_, PyAny>>) -> PyResult<PyBase> {
        let dtype = dtype.filter(|d| !d.is_none()).map(dtype::read).transpose()?;
        Base::named(full_name).placed(&Value::None, dtype).map(PyBase).map_err(raise)
    }
    #[getter]
    fn full_name(&self) -> &str {
        self.0.full_name()
    }
    /// A parameter, or None if the attributes say that there is to be none.
    #[pyo3(signature = (shape, attr, is_bias, default, dtype = None))]
    fn parameter(
        &self,
        py: Python<'_>,
        shape: Vec<usize>,
        attr: &Bound<'_, PyAny>,
        is_bias: bool,
        default: &Bound<'_, PyAny>,
        dtype: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Option<Py<PyAny>>> {
        let dtype = dtype.filter(|d| !d.is_none()).map(dtype::read).transpose()?.unwrap_or_else(|| self.0.dtype());
        use sampan_core::value::Arg;
        let attr = value::any(attr)?;
        let attr = ParamAttr::get(&attr, "attr").map_err(raise)?;
        let default = ParamAttr::get(&value::any(default)?, "default_initializer").map_err(raise)?.own_initializer();
        let p = match default {
            Some(i) => self.0.parameter_as(&shape, &attr, is_bias, &*i, dtype),
            None if is_bias => self.0.parameter_as(&shape, &attr, true, &sampan_nn::init::Constant::new(0.0), dtype),
            None => self.0.parameter_as(&shape, &attr, false, &sampan_nn::init::XavierUniform::new(), dtype),
        };
        p.map_err(raise)?.map(|p| PyParameter::wrap(py, p)).transpose()
    }
}

/// Attributes of a parameter for the core.
#[pyfunction]
#[pyo3(signature = (name, initializer, learning_rate, regularizer, trainable, need_clip))]
pub fn _param_attr(
    name: Option<String>,
    initializer: &Bound<'_, PyAny>,
    learning_rate: f64,
    regularizer: &Bound<'_, PyAny>,
    trainable: bool,
    need_clip: bool,
) -> PyResult<PyObject> {
    use sampan_core::value::Arg;
    let mut attr = ParamAttr::get(&value::any(initializer)?, "initializer").map_err(raise)?;
    attr = attr.learning_rate(learning_rate).trainable(trainable).need_clip(need_clip);
    if let Some(name) = name {
        attr = attr.name(name);
    }
    if let Some(r) =
        Option::<sampan_nn::regularizer::Regularizer>::get(&value::any(regularizer)?, "regularizer").map_err(raise)?
    {
        attr = attr.regularizer(r);
    }
    Ok(PyObject(sampan_core::Object::new(attr)))
}

/// A penalty on parameters: `L1` or `L2`.
#[pyfunction]
pub fn _regularizer(kind: &str, coeff: f64) -> PyObject {
    use sampan_nn::regularizer::{L1Decay, L2Decay};
    PyObject(sampan_core::Object::new(if kind == "L1" { L1Decay(coeff) } else { L2Decay(coeff) }))
}
