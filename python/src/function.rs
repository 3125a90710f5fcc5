//! Functions of the registry that are no ops: they read files, or take and give more than tensors.

use crate::op::{bind, module_name, params_info, text_signature};
use crate::{errors, value};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use sampan_core::Value;
use sampan_core::function::{self as registry, FunctionDef};
use sampan_core::value::Args;

// No doc comment: `__doc__` is the function's own.
#[pyclass(name = "Function", module = "sampan._core", frozen, subclass)]
pub struct PyFunction(pub &'static FunctionDef);

/// Calls a function with bound arguments, without the lock.
pub fn call(py: Python<'_>, def: &'static FunctionDef, bound: Args) -> PyResult<Value> {
    errors::run(py, move || def.call(bound.into_iter().collect(), Vec::new()))
}

#[pymethods]
impl PyFunction {
    #[pyo3(signature = (*args, **kwargs))]
    fn __call__(
        &self,
        py: Python<'_>,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        let bound = bind(&self.0.takes(), None, args, kwargs)?;
        value::to_python(py, &call(py, self.0, bound)?)
    }

    #[getter]
    fn __name__(&self) -> &'static str {
        self.0.name
    }
    #[getter]
    fn __qualname__(&self) -> &'static str {
        self.0.name
    }
    #[getter]
    fn __module__(&self) -> String {
        module_name(self.0.module)
    }
    #[getter]
    fn __doc__(&self) -> &'static str {
        self.0.doc
    }
    #[getter]
    fn __text_signature__(&self) -> String {
        let text = text_signature(self.0.params);
        // Paddle's functions on pictures have no names.
        if self.0.module.starts_with("vision.transforms") { text.replace(", name=None)", ")") } else { text }
    }
    /// For `inspect.signature`.
    #[getter]
    fn __signature__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let inspect = slf.py().import("inspect")?;
        let text = slf.get().__text_signature__();
        inspect.call_method1("_signature_fromstr", (inspect.getattr("Signature")?, slf, text))
    }
    /// Other public names, with their module.
    #[getter]
    fn also(&self) -> Vec<&'static str> {
        self.0.also.to_vec()
    }
    /// Parameters as (name, kind, default or None, may be None, type).
    #[getter]
    fn params(&self) -> Vec<(&'static str, String, Option<String>, bool, String)> {
        params_info(self.0.params)
    }
    fn __repr__(&self) -> String {
        format!("<function {}>", self.0.name)
    }
    /// Pickles by name.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (&'static str, &'static str))> {
        Ok((py.import("sampan._core")?.getattr("_function")?, (self.0.module, self.0.name)))
    }
}

/// The function of a module and name.
#[pyfunction]
pub fn _function(module: &str, name: &str) -> PyResult<PyFunction> {
    let found = registry::find(module, name).map(PyFunction);
    found.ok_or_else(|| pyo3::exceptions::PyKeyError::new_err(format!("(NotFound) no function {module}.{name}.")))
}

/// Every function that is no op: (module, name, function).
#[pyfunction]
pub fn _functions() -> Vec<(&'static str, &'static str, PyFunction)> {
    registry::all().into_iter().map(|def| (def.module, def.name, PyFunction(def))).collect()
}
