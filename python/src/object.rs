//! Optimizers, schedules, initializers and metrics of the core.

use crate::class::PyObject;
use crate::errors::{self, raise};
use crate::tensor::{PyParameter, PyTensor, parameter_of};
use crate::{dtype, value};
use pyo3::prelude::*;
use sampan_core::{Dict, Tensor, Value};
use sampan_nn::init::Initializer;
use sampan_nn::lr::Schedule;
use sampan_nn::metric::Metric;
use sampan_nn::optim::Optimizer;
use sampan_nn::{Base, ParamAttr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

fn lock<T: ?Sized>(m: &Mutex<T>) -> MutexGuard<'_, T> {
    m.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A dict of Python as one of the core's.
fn dict_of(given: &Bound<'_, PyAny>) -> PyResult<Dict> {
    match value::any(given)? {
        Value::Dict(d) => Ok(d),
        other => Err(pyo3::exceptions::PyTypeError::new_err(format!(
            "(InvalidType) a state is a dict, got {}.",
            other.type_name()
        ))),
    }
}

/// An optimizer.
#[pyclass(name = "RustOptimizer", module = "sampan._core", extends = PyObject, frozen)]
pub struct PyOptimizer(pub Arc<Mutex<Optimizer>>);

#[pymethods]
impl PyOptimizer {
    /// Changes the parameters by their gradients; `closure` gives the loss anew where an optimizer asks for it.
    #[pyo3(signature = (closure = None))]
    fn step(&self, py: Python<'_>, closure: Option<Py<PyAny>>) -> PyResult<Option<Py<PyAny>>> {
        let optimizer = self.0.clone();
        let Some(closure) = closure else {
            errors::run(py, move || lock(&optimizer).step())?;
            return Ok(None);
        };
        let loss = errors::run(py, move || {
            lock(&optimizer).step_with(|| {
                Python::attach(|py| -> PyResult<Tensor> {
                    let loss = closure.call0(py)?;
                    Ok(loss.bind(py).cast::<PyTensor>()?.borrow().tensor())
                })
                .map_err(errors::passing)
            })
        })?;
        Ok(Some(PyTensor::wrap(py, loss)?))
    }
    #[pyo3(signature = (set_to_zero = true))]
    fn clear_grad(&self, set_to_zero: bool) {
        lock(&self.0).clear_grad_with(set_to_zero);
    }
    fn get_lr(&self) -> f64 {
        lock(&self.0).get_lr()
    }
    fn set_lr(&self, value: f64) -> PyResult<()> {
        lock(&self.0).set_lr(value).map_err(raise)
    }
    fn set_lr_scheduler(&self, schedule: PyRef<'_, PySchedule>) {
        lock(&self.0).set_lr_scheduler(&schedule.0);
    }
    fn state_dict(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let state = lock(&self.0).state_dict().map_err(raise)?;
        value::to_python(py, &Value::Dict(state))
    }
    fn set_state_dict(&self, state: &Bound<'_, PyAny>) -> PyResult<()> {
        let state = dict_of(state)?;
        lock(&self.0).set_state_dict(&state).map_err(raise)
    }
    /// How many steps were made.
    fn steps(&self) -> u64 {
        lock(&self.0).steps()
    }
}

/// A learning rate that follows the epochs.
#[pyclass(name = "RustSchedule", module = "sampan._core", extends = PyObject, frozen)]
pub struct PySchedule(pub Schedule);

#[pymethods]
impl PySchedule {
    #[pyo3(signature = (epoch = None))]
    fn step(&self, epoch: Option<f64>) -> PyResult<()> {
        self.0.try_step(epoch).map_err(raise)
    }
    #[pyo3(signature = (metric, epoch = None))]
    fn step_with(&self, metric: f64, epoch: Option<i64>) -> PyResult<()> {
        self.0.try_step_with(metric, epoch).map_err(raise)
    }
    #[getter]
    fn needs_metric(&self) -> bool {
        self.0.needs_metric()
    }
    #[getter]
    fn last_lr(&self) -> f64 {
        self.0.last_lr()
    }
    #[getter]
    fn last_epoch(&self) -> i64 {
        self.0.last_epoch()
    }
    #[getter]
    fn base_lr(&self) -> f64 {
        self.0.clock().base_lr
    }
    fn get_lr(&self) -> f64 {
        self.0.get_lr()
    }
    fn state_dict(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        value::to_python(py, &Value::Dict(self.0.state_dict()))
    }
    fn set_state_dict(&self, state: &Bound<'_, PyAny>) -> PyResult<()> {
        self.0.set_state_dict(&dict_of(state)?).map_err(raise)
    }
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

/// What an optimizer knows of a parameter: (learning_rate, need_clip).
#[pyfunction]
pub fn _settings(p: &Bound<'_, PyAny>) -> Option<(f64, bool)> {
    parameter_of(p).map(|p| (p.settings().learning_rate, p.settings().need_clip))
}

/// Changes what an optimizer knows of a parameter.
#[pyfunction]
pub fn _set_settings(p: &Bound<'_, PyAny>, learning_rate: f64, need_clip: bool) {
    if let Some(p) = parameter_of(p) {
        let mut s = p.settings();
        (s.learning_rate, s.need_clip) = (learning_rate, need_clip);
        p.set_settings(s);
    }
}
