//! Optimizers and schedules of the core, and schedules that are written in Python.

use crate::class::{PyObject, wrap};
use crate::errors::{self, passing, raise};
use crate::tensor::{PyTensor, parameter_of};
use crate::value;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyList;
use sampan_core::value::Arg;
use sampan_core::{Dict, Object, Result, Tensor, Value};
use sampan_nn::lr::{Clock, ForeignSchedule, Schedule};
use sampan_nn::optim::{Optimizer, Parameters};
use sampan_nn::regularizer::Regularizer;
use std::sync::{Arc, Mutex, PoisonError};

/// A dict of Python as one of the core's.
fn dict_of(given: &Bound<'_, PyAny>) -> PyResult<Dict> {
    match value::any(given)? {
        Value::Dict(d) => Ok(d),
        other => Err(PyTypeError::new_err(format!("(InvalidType) a state is a dict, got {}.", other.type_name()))),
    }
}

/// An optimizer.
#[pyclass(name = "RustOptimizer", module = "sampan._core", extends = PyObject, frozen)]
pub struct PyOptimizer(pub Arc<Mutex<Optimizer>>);

impl PyOptimizer {
    /// Uses the optimizer without the interpreter's lock: a step on another thread may be asking for that.
    fn with<R: Send>(&self, py: Python<'_>, f: impl FnOnce(&mut Optimizer) -> R + Send) -> R {
        py.detach(|| f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}

#[pymethods]
impl PyOptimizer {
    /// Changes the parameters by their gradients; `closure` gives the loss anew where an optimizer asks for it.
    #[pyo3(signature = (closure = None))]
    fn step(&self, py: Python<'_>, closure: Option<Py<PyAny>>) -> PyResult<Option<Py<PyAny>>> {
        let optimizer = self.0.clone();
        let Some(closure) = closure else {
            errors::run(py, move || optimizer.lock().unwrap_or_else(PoisonError::into_inner).step())?;
            return Ok(None);
        };
        let call = move || {
            Python::attach(|py| -> PyResult<Tensor> {
                let loss = closure.call0(py)?;
                let loss = loss.bind(py);
                let wrong = |_| PyTypeError::new_err("(InvalidType) step: the closure must return the loss, a Tensor.");
                Ok(loss.cast::<PyTensor>().map_err(wrong)?.borrow().tensor())
            })
            .map_err(passing)
        };
        let loss = errors::run(py, move || Optimizer::step_shared(&optimizer, call))?;
        Ok(Some(PyTensor::wrap(py, loss)?))
    }
    #[pyo3(signature = (set_to_zero = true))]
    fn clear_grad(&self, py: Python<'_>, set_to_zero: bool) {
        self.with(py, |o| o.clear_grad_with(set_to_zero));
    }
    fn get_lr(&self, py: Python<'_>) -> f64 {
        self.with(py, |o| o.get_lr())
    }
    fn set_lr(&self, py: Python<'_>, value: f64) -> PyResult<()> {
        self.with(py, |o| o.set_lr(value)).map_err(raise)
    }
    fn set_lr_scheduler(&self, py: Python<'_>, schedule: &Bound<'_, PySchedule>) {
        let schedule = schedule.get().0.clone();
        self.with(py, |o| o.set_lr_scheduler(&schedule));
    }
    fn add_param_group(&self, py: Python<'_>, group: &Bound<'_, PyAny>) -> PyResult<()> {
        let given = crate::class::parameters(PyList::new(py, [group])?.as_any())?;
        let groups = Parameters::get(&given, "param_group").map_err(raise)?;
        self.with(py, |o| groups.into_iter().try_for_each(|g| o.add_param_group(g))).map_err(raise)
    }
    fn set_multi_precision(&self, py: Python<'_>, on: bool) {
        self.with(py, |o| o.set_multi_precision(on));
    }
    fn state_dict(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let state = self.with(py, |o| o.state_dict()).map_err(raise)?;
        value::to_python(py, &Value::Dict(state))
    }
    fn set_state_dict(&self, py: Python<'_>, state: &Bound<'_, PyAny>) -> PyResult<()> {
        let state = dict_of(state)?;
        self.with(py, |o| o.set_state_dict(&state)).map_err(raise)
    }
    /// What is remembered: (accumulator, name of the parameter, tensor).
    fn accumulators(&self, py: Python<'_>) -> PyResult<Vec<(&'static str, String, Py<PyAny>)>> {
        let found = self.with(py, |o| o.accumulators()).map_err(raise)?;
        found.into_iter().map(|(a, p, t)| Ok((a, p, PyTensor::wrap(py, t)?))).collect()
    }
    /// How many steps were made.
    fn steps(&self, py: Python<'_>) -> u64 {
        self.with(py, |o| o.steps())
    }
}

/// A learning rate that follows the epochs.
#[pyclass(name = "RustSchedule", module = "sampan._core", extends = PyObject, frozen)]
pub struct PySchedule(pub Schedule);

impl PySchedule {
    /// Uses the schedule without the interpreter's lock: a step on another thread may be asking for that.
    fn with<R: Send>(&self, py: Python<'_>, f: impl FnOnce(&Schedule) -> R + Send) -> R {
        py.detach(|| f(&self.0))
    }

    fn change(&self, py: Python<'_>, f: impl FnOnce(&mut Clock) + Send) {
        self.with(py, |s| {
            let mut clock = s.clock();
            f(&mut clock);
            s.set_clock(clock);
        });
    }
}

#[pymethods]
impl PySchedule {
    #[pyo3(signature = (epoch = None))]
    fn step(&self, py: Python<'_>, epoch: Option<f64>) -> PyResult<()> {
        self.with(py, |s| s.try_step(epoch)).map_err(raise)
    }
    #[pyo3(signature = (metric, epoch = None))]
    fn step_with(&self, py: Python<'_>, metric: f64, epoch: Option<i64>) -> PyResult<()> {
        self.with(py, |s| s.try_step_with(metric, epoch)).map_err(raise)
    }
    #[getter]
    fn needs_metric(&self, py: Python<'_>) -> bool {
        self.with(py, Schedule::needs_metric)
    }
    /// The learning rate of where it stands, without moving.
    #[pyo3(signature = (named = false))]
    fn compute_lr(&self, py: Python<'_>, named: bool) -> PyResult<f64> {
        self.with(py, |s| s.compute_lr(named)).map_err(raise)
    }
    #[getter]
    fn get_last_lr(&self, py: Python<'_>) -> f64 {
        self.with(py, Schedule::last_lr)
    }
    #[setter]
    fn set_last_lr(&self, py: Python<'_>, lr: f64) {
        self.change(py, |c| c.last_lr = lr);
    }
    #[getter]
    fn get_last_epoch(&self, py: Python<'_>) -> i64 {
        self.with(py, Schedule::last_epoch)
    }
    #[setter]
    fn set_last_epoch(&self, py: Python<'_>, epoch: f64) {
        self.change(py, |c| (c.last_epoch, c.fraction) = (epoch.floor() as i64, epoch - epoch.floor()));
    }
    #[getter]
    fn get_base_lr(&self, py: Python<'_>) -> f64 {
        self.with(py, |s| s.clock().base_lr)
    }
    #[setter]
    fn set_base_lr(&self, py: Python<'_>, lr: f64) {
        self.change(py, |c| c.base_lr = lr);
    }
    #[getter]
    fn get_verbose(&self, py: Python<'_>) -> bool {
        self.with(py, |s| s.clock().verbose)
    }
    #[setter]
    fn set_verbose(&self, py: Python<'_>, on: bool) {
        self.change(py, |c| c.verbose = on);
    }
    fn state_dict(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        value::to_python(py, &Value::Dict(self.with(py, Schedule::try_state_dict).map_err(raise)?))
    }
    fn set_state_dict(&self, py: Python<'_>, state: &Bound<'_, PyAny>) -> PyResult<()> {
        let state = dict_of(state)?;
        self.with(py, |s| s.set_state_dict(&state)).map_err(raise)
    }
}

/// A schedule whose rule and clock are a Python object's.
struct PythonSchedule(Py<PyAny>);

impl PythonSchedule {
    fn number(&self, py: Python<'_>, name: &str) -> Option<f64> {
        self.0.bind(py).getattr(name).ok()?.extract().ok()
    }
}

impl ForeignSchedule for PythonSchedule {
    fn step(&self, epoch: Option<f64>) -> Result<()> {
        Python::attach(|py| -> PyResult<()> {
            // A whole epoch is an int for the user's code.
            let epoch = match epoch {
                Some(e) if e.fract() == 0.0 => (e as i64).into_pyobject(py)?.into_any().unbind(),
                other => other.into_pyobject(py)?.unbind(),
            };
            self.0.call_method1(py, "step", (epoch,)).map(|_| ())
        })
        .map_err(passing)
    }
    fn clock(&self) -> Clock {
        Python::attach(|py| Clock {
            base_lr: self.number(py, "base_lr").unwrap_or(f64::NAN),
            last_lr: self.number(py, "last_lr").unwrap_or(f64::NAN),
            last_epoch: self.number(py, "last_epoch").unwrap_or(-1.0).floor() as i64,
            fraction: self.number(py, "last_epoch").map_or(0.0, |e| e - e.floor()),
            verbose: false,
        })
    }
    fn state_dict(&self) -> Result<Dict> {
        Python::attach(|py| dict_of(self.0.call_method0(py, "state_dict")?.bind(py))).map_err(passing)
    }
    fn set_state_dict(&self, state: &Dict) -> Result<()> {
        Python::attach(|py| -> PyResult<()> {
            let state = value::to_python(py, &Value::Dict(state.clone()))?;
            self.0.call_method1(py, "set_state_dict", (state,)).map(|_| ())
        })
        .map_err(passing)
    }
}

/// A schedule for the core that is a Python object with `step`, `last_lr`, `last_epoch`, `base_lr` and a state.
#[pyfunction]
pub fn _python_schedule(py: Python<'_>, schedule: Py<PyAny>) -> PyResult<Py<PyAny>> {
    wrap(py, Object::new(Schedule::foreign(PythonSchedule(schedule))))
}

/// What an optimizer knows of a parameter: (learning_rate, need_clip, (kind, coefficient) of its penalty).
#[pyfunction]
pub fn _settings(p: &Bound<'_, PyAny>) -> Option<(f64, bool, Option<(&'static str, f64)>)> {
    let settings = parameter_of(p)?.settings();
    let penalty = settings.regularizer.map(|r| match r {
        Regularizer::L1(c) => ("L1", c),
        Regularizer::L2(c) => ("L2", c),
    });
    Some((settings.learning_rate, settings.need_clip, penalty))
}

/// Changes one of the things an optimizer knows of a parameter.
#[pyfunction]
pub fn _set_setting(p: &Bound<'_, PyAny>, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
    let Some(p) = parameter_of(p) else {
        return Err(PyTypeError::new_err("(InvalidType) only a Parameter has settings for an optimizer."));
    };
    let mut settings = p.settings();
    match name {
        "learning_rate" => settings.learning_rate = value.extract()?,
        "need_clip" => settings.need_clip = value.is_truthy()?,
        "regularizer" => settings.regularizer = Option::get(&value::any(value)?, name).map_err(raise)?,
        other => return Err(PyValueError::new_err(format!("(InvalidArgument) there is no setting {other:?}."))),
    }
    p.set_settings(settings);
    Ok(())
}
