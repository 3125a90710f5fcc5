//! Layers written in Python, seen from the core.

use crate::errors::passing;
use crate::layer::{PyLayerBase, PyRustLayer};
use crate::tensor::parameter_of;
use crate::value;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use sampan_core::{Error, Object, Result, Tensor, Value};
use sampan_nn::{Layer, LayerRef, Members, Parameter, Path, Visitor};
use std::any::Any;
use std::sync::Arc;

/// Calls a Python layer; arguments that are None at the end are left out.
pub fn call_python(layer: &Bound<'_, PyAny>, mut args: Vec<Value>, named: Vec<(&str, Value)>) -> PyResult<Value> {
    let py = layer.py();
    while matches!(args.last(), Some(Value::None)) {
        args.pop();
    }
    let args: Vec<_> = args.iter().map(|v| value::to_python(py, v)).collect::<PyResult<_>>()?;
    let kwargs = PyDict::new(py);
    for (name, v) in &named {
        kwargs.set_item(name, value::to_python(py, v)?)?;
    }
    value::any(&layer.call(PyTuple::new(py, args)?, Some(&kwargs))?)
}

/// A layer written in Python, for the core.
struct PythonLayer(Py<PyAny>);

/// The Python object of a layer that was written in Python.
pub fn python_layer(py: Python<'_>, layer: &dyn Layer) -> Option<Py<PyAny>> {
    let mut layer: &dyn Any = layer;
    while let Some(inner) = layer.downcast_ref::<Arc<dyn Layer>>() {
        layer = &**inner;
    }
    layer.downcast_ref::<PythonLayer>().map(|l| l.0.clone_ref(py))
}

impl Members for PythonLayer {
    fn visit(&self, path: &Path, visitor: &mut dyn Visitor) {
        visitor.layer(path, LayerRef { type_name: "PythonLayer", layer: self });
        let members = Python::attach(|py| -> PyResult<Vec<(String, Parameter)>> {
            let named = self.0.bind(py).call_method0("named_parameters")?;
            named
                .try_iter()?
                .filter_map(|item| {
                    let (name, p) = item.and_then(|i| i.extract::<(String, Bound<'_, PyAny>)>()).ok()?;
                    parameter_of(&p).map(|p| Ok((name, p)))
                })
                .collect()
        });
        for (name, p) in members.unwrap_or_default() {
            visitor.parameter(&path.join(&name), &p);
        }
    }
}

impl Layer for PythonLayer {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let mut out = self.forward_all(std::slice::from_ref(x))?;
        if out.is_empty() { Err(Error::invalid("the layer gave no tensor")) } else { Ok(out.swap_remove(0)) }
    }
    fn forward_all(&self, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        let out = self.invoke(inputs.iter().map(Value::from).collect(), Vec::new())?;
        let mut found = Vec::new();
        out.for_each_tensor(&mut |t| found.push(t.clone()));
        Ok(found)
    }
    fn invoke(&self, positional: Vec<Value>, named: Vec<(&str, Value)>) -> Result<Value> {
        Python::attach(|py| call_python(self.0.bind(py), positional, named)).map_err(passing)
    }
}

/// The layer for the core that a Python object is, if it is one.
pub fn object(value: &Bound<'_, PyAny>) -> PyResult<Option<Object>> {
    if !value.is_instance_of::<PyLayerBase>() {
        return Ok(None);
    }
    if let Ok(core) = value.getattr("_core")
        && let Ok(layer) = core.cast::<PyRustLayer>()
        && layer.get().path.is_empty()
    {
        return Ok(Some(Object::new(layer.get().root.clone())));
    }
    Ok(Some(Object::new(Arc::new(PythonLayer(value.clone().unbind())) as Arc<dyn Layer>)))
}
