//! Classes of the registry, and what they build, as Python objects.

use crate::errors::{passing, run_here};
use crate::layer::PyRustLayer;
use crate::object::{PyInitializer, PyMetric};
use crate::op::{bind, module_name, params_info, text_signature};
use crate::optimizer::{PyOptimizer, PySchedule};
use crate::tensor::{PyParameter, PyTensor, parameter_of};
use crate::value;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use sampan_core::class::{self, ClassDef};
use sampan_core::{Object, Value};
use sampan_nn::init::Initializer;
use sampan_nn::lr::Schedule;
use sampan_nn::metric::Metric;
use sampan_nn::optim::Optimizer;
use sampan_nn::{Layer, Parameter};
use std::sync::{Arc, Mutex};

/// Something of the core's: a layer, an initializer, an optimizer.
#[pyclass(name = "Object", module = "sampan._core", frozen, subclass)]
pub struct PyObject(pub Object);

#[pymethods]
impl PyObject {
    fn __repr__(&self) -> String {
        format!("<{:?}>", self.0)
    }
}

/// Makes Python functions callable from the core.
pub struct Callable;

impl Callable {
    /// The function for the core.
    #[allow(clippy::new_ret_no_self)]
    pub fn new(function: &Bound<'_, PyAny>) -> sampan_nn::callable::Callable {
        let function = function.clone().unbind();
        sampan_nn::callable::Callable(Arc::new(move |x: Value| {
            Python::attach(|py| value::any(function.call1(py, (value::to_python(py, &x)?,))?.bind(py))).map_err(passing)
        }))
    }
}

/// A thing of the core's as the Python object that knows its methods.
pub fn wrap(py: Python<'_>, object: Object) -> PyResult<Py<PyAny>> {
    if let Some(p) = object.downcast::<Parameter>() {
        return PyParameter::wrap(py, p.clone());
    }
    if let Some(layer) = object.downcast::<Arc<dyn Layer>>() {
        return PyRustLayer::wrap(py, layer.clone(), String::new());
    }
    if let Some(cache) = object.downcast::<sampan_nn::AttentionCache>() {
        return crate::cache::to_python(py, cache);
    }
    let base = PyClassInitializer::from(PyObject(object.clone()));
    if let Some(o) = object.downcast::<Arc<Mutex<Optimizer>>>() {
        return Ok(Py::new(py, base.add_subclass(PyOptimizer(o.clone())))?.into_any());
    }
    if let Some(s) = object.downcast::<Schedule>() {
        return Ok(Py::new(py, base.add_subclass(PySchedule(s.clone())))?.into_any());
    }
    if let Some(i) = object.downcast::<Arc<dyn Initializer>>() {
        return Ok(Py::new(py, base.add_subclass(PyInitializer(i.clone())))?.into_any());
    }
    if let Some(m) = object.downcast::<Arc<Mutex<dyn Metric>>>() {
        return Ok(Py::new(py, base.add_subclass(PyMetric(m.clone())))?.into_any());
    }
    Ok(Py::new(py, base)?.into_any())
}

/// A class of the registry.
#[pyclass(name = "ClassDef", module = "sampan._core", frozen)]
pub struct PyClassDef(&'static ClassDef);

#[pymethods]
impl PyClassDef {
    #[getter]
    fn name(&self) -> &'static str {
        self.0.name
    }
    #[getter]
    fn module(&self) -> String {
        module_name(self.0.module)
    }
    #[getter]
    fn doc(&self) -> String {
        let args = crate::doc::arguments(self.0.params, self.0.aliases);
        format!("{}\n\nArgs:\n{args}\n", crate::doc::prose(self.0.doc))
    }
    /// Other public names of the same class, with their module.
    #[getter]
    fn also(&self) -> Vec<&'static str> {
        self.0.also.to_vec()
    }
    #[getter]
    fn text_signature(&self) -> String {
        text_signature(self.0.params)
    }
    #[getter]
    fn params(&self) -> Vec<(&'static str, String, Option<String>, bool, String)> {
        params_info(self.0.params)
    }
    #[getter]
    fn aliases(&self) -> Vec<(&'static str, &'static str)> {
        self.0.aliases.to_vec()
    }

    /// Builds one; gives it with the arguments it was built from, defaults filled in.
    #[pyo3(signature = (*args, **kwargs))]
    fn make(
        &self,
        py: Python<'_>,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<(Py<PyAny>, Py<PyAny>)> {
        let takes = self.0.takes();
        let mut bound = bind(&takes, None, args, kwargs)?;
        let told = PyDict::new(py);
        for (i, p) in self.0.params.iter().enumerate() {
            // Optimizers must get the very parameters, not their tensors.
            if p.name == "parameters" {
                let given =
                    args.get_item(i).ok().or_else(|| kwargs.and_then(|k| k.get_item("parameters").ok().flatten()));
                if let Some(given) = given.filter(|g| !g.is_none()) {
                    bound[i] = parameters(&given)?;
                }
            } else if !matches!(bound[i], Value::Object(_)) {
                told.set_item(p.name, value::to_python(py, &bound[i])?)?;
            }
        }
        let def = self.0;
        let object = run_here(|| (def.build)(&bound).map_err(|e| e.in_op(def.name)))?;
        Ok((wrap(py, object)?, told.into_any().unbind()))
    }
}

/// Parameters for an optimizer: a list, or a list of dicts with `params` and settings.
pub fn parameters(given: &Bound<'_, PyAny>) -> PyResult<Value> {
    let one = |item: &Bound<'_, PyAny>| -> PyResult<Value> {
        if let Some(p) = parameter_of(item) {
            return Ok(Value::from(&p));
        }
        value::any(item)
    };
    if given.is_instance_of::<PyTensor>() {
        return one(given);
    }
    let mut list = Vec::new();
    for item in given.try_iter()? {
        let item = item?;
        match item.cast::<PyDict>() {
            Err(_) => list.push(one(&item)?),
            Ok(group) => {
                let mut dict = sampan_core::Dict::new();
                for (k, v) in group.iter() {
                    let key = k.extract::<String>()?;
                    let v = if key == "params" { parameters(&v)? } else { value::any(&v)? };
                    dict.insert(key, v);
                }
                list.push(Value::Dict(dict));
            }
        }
    }
    Ok(Value::List(list))
}

/// Every class of the registry.
#[pyfunction]
pub fn classes() -> Vec<PyClassDef> {
    class::all().into_iter().map(PyClassDef).collect()
}
