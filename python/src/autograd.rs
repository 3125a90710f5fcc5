//! Gradients: modes, hooks, `grad`, functions of the user's own.

use crate::errors::{self, passing};
use crate::tensor::PyTensor;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use sampan_core::autograd::{self, Function, FunctionContext, GradOptions};
use sampan_core::tensor::HookHandle;
use sampan_core::{Result, Tensor};

/// A hook that can be taken off again.
#[pyclass(name = "TensorHookRemoveHelper", module = "sampan", frozen)]
pub struct PyHook(HookHandle);

#[pymethods]
impl PyHook {
    /// Takes the hook off; False if it was off already.
    fn remove(&self) -> bool {
        self.0.remove()
    }
}

/// Calls a Python function with a gradient.
pub fn register_hook(t: &Tensor, hook: Py<PyAny>) -> PyResult<PyHook> {
    let call = move |g: &Tensor| -> Result<Option<Tensor>> {
        Python::attach(|py| -> PyResult<Option<Tensor>> {
            let new = hook.call1(py, (PyTensor::wrap(py, g.clone())?,))?;
            let new = new.bind(py);
            if new.is_none() { Ok(None) } else { Ok(Some(new.cast::<PyTensor>()?.borrow().tensor())) }
        })
        .map_err(passing)
    };
    t.register_hook(call).map(PyHook).map_err(errors::raise)
}

/// Are calls on this thread recorded?
#[pyfunction]
pub fn is_grad_enabled() -> bool {
    sampan_core::grad_enabled()
}

/// Switches recording on this thread; gives back what it was.
#[pyfunction]
pub fn _set_grad_enabled(on: bool) -> bool {
    sampan_core::set_grad_enabled(on)
}

/// Tensors of one object or a list of them; None stays None.
fn tensors(value: &Bound<'_, PyAny>) -> PyResult<Vec<Option<Tensor>>> {
    if let Ok(t) = value.cast::<PyTensor>() {
        return Ok(vec![Some(t.borrow().tensor())]);
    }
    if value.is_none() {
        return Ok(Vec::new());
    }
    value
        .try_iter()?
        .map(|item| {
            let item = item?;
            if item.is_none() { Ok(None) } else { Ok(Some(item.cast::<PyTensor>()?.borrow().tensor())) }
        })
        .collect()
}

fn all(value: &Bound<'_, PyAny>) -> PyResult<Vec<Tensor>> {
    Ok(tensors(value)?.into_iter().flatten().collect())
}

/// Adds the gradients of several tensors to `.grad` of the leaves they depend on.
#[pyfunction]
#[pyo3(signature = (tensors, grad_tensors = None, retain_graph = false))]
pub fn backward(
    py: Python<'_>,
    tensors: &Bound<'_, PyAny>,
    grad_tensors: Option<&Bound<'_, PyAny>>,
    retain_graph: bool,
) -> PyResult<()> {
    let outputs = all(tensors)?;
    let grads = grad_tensors
        .map(self::tensors)
        .transpose()?
        .filter(|g| !g.is_empty())
        .unwrap_or_else(|| vec![None; outputs.len()]);
    errors::run(py, move || autograd::backward(&outputs, &grads, retain_graph))
}

/// The gradients of outputs with respect to inputs, without touching `.grad`.
#[pyfunction]
#[pyo3(signature = (outputs, inputs, grad_outputs = None, retain_graph = None, create_graph = false, only_inputs = true, allow_unused = false, no_grad_vars = None))]
#[allow(clippy::too_many_arguments)]
pub fn grad(
    py: Python<'_>,
    outputs: &Bound<'_, PyAny>,
    inputs: &Bound<'_, PyAny>,
    grad_outputs: Option<&Bound<'_, PyAny>>,
    retain_graph: Option<bool>,
    create_graph: bool,
    only_inputs: bool,
    allow_unused: bool,
    no_grad_vars: Option<&Bound<'_, PyAny>>,
) -> PyResult<Py<PyAny>> {
    let _ = only_inputs;
    let (ys, xs) = (all(outputs)?, all(inputs)?);
    let grads =
        grad_outputs.map(tensors).transpose()?.filter(|g| !g.is_empty()).unwrap_or_else(|| vec![None; ys.len()]);
    // What is left out counts as constant during the walk.
    let held: Vec<Tensor> = no_grad_vars.map(all).transpose()?.unwrap_or_default();
    let found = errors::run(py, move || {
        let options = GradOptions { retain_graph, create_graph, allow_unused, no_grad_vars: &held };
        autograd::grad(&ys, &xs, &grads, options)
    })?;
    let found: Vec<_> =
        found.into_iter().map(|g| g.map(|g| PyTensor::wrap(py, g)).transpose()).collect::<PyResult<_>>()?;
    Ok(PyList::new(py, found)?.into_any().unbind())
}

/// A function whose forward and backward are Python's.
struct PythonFunction {
    name: &'static str,
    forward: Py<PyAny>,
    backward: Py<PyAny>,
}

impl PythonFunction {
    fn call(function: &Py<PyAny>, args: Vec<Py<PyAny>>) -> Result<Vec<Option<Tensor>>> {
        Python::attach(|py| -> PyResult<Vec<Option<Tensor>>> {
            let result = function.call1(py, (PyTuple::new(py, args)?,))?;
            tensors(result.bind(py))
        })
        .map_err(passing)
    }
}

impl Function for PythonFunction {
    fn forward(&self, cx: &mut FunctionContext, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        let wrap =
            || Python::attach(|py| inputs.iter().map(|t| PyTensor::wrap(py, t.clone())).collect::<PyResult<Vec<_>>>());
        let outputs: Vec<Tensor> = Self::call(&self.forward, wrap().map_err(passing)?)?.into_iter().flatten().collect();
        // The package's context keeps tensors itself and tells which outputs have no gradient.
        let marked = Python::attach(|py| self.forward.getattr(py, "marked").and_then(|m| tensors(m.bind(py))))
            .unwrap_or_default();
        cx.mark_non_differentiable(&marked.into_iter().flatten().collect::<Vec<_>>());
        let materialize =
            Python::attach(|py| self.forward.getattr(py, "materialize").and_then(|m| m.extract::<bool>(py)))
                .unwrap_or(true);
        cx.set_materialize_grads(materialize);
        Ok(outputs)
    }
    fn backward(&self, _: &FunctionContext, grads: &[Option<Tensor>]) -> Result<Vec<Option<Tensor>>> {
        let wrap = |py: Python<'_>| -> PyResult<Vec<Py<PyAny>>> {
            grads.iter().map(|g| g.clone().map_or_else(|| Ok(py.None()), |g| PyTensor::wrap(py, g))).collect()
        };
        Self::call(&self.backward, Python::attach(wrap).map_err(passing)?)
    }
    fn name(&self) -> &'static str {
        self.name
    }
}

/// Runs `forward(inputs)` as one recorded step whose gradient is `backward(grads)`. Both take and give tuples of tensors.
#[pyfunction]
pub fn _apply_function(
    py: Python<'_>,
    name: &str,
    forward: Py<PyAny>,
    backward: Py<PyAny>,
    inputs: Vec<PyRef<'_, PyTensor>>,
) -> PyResult<Py<PyAny>> {
    let inputs: Vec<Tensor> = inputs.iter().map(|t| t.tensor()).collect();
    let function = PythonFunction { name: crate::intern(name), forward, backward };
    let outputs = errors::run(py, move || autograd::apply(function, &inputs))?;
    let outputs: Vec<_> = outputs.into_iter().map(|t| PyTensor::wrap(py, t)).collect::<PyResult<_>>()?;
    Ok(PyTuple::new(py, outputs)?.into_any().unbind())
}

/// Derivatives of `y` with respect to each of `xs`.
#[pyfunction]
#[pyo3(signature = (y, xs, batch_axis = None))]
pub fn _jacobian(
    py: Python<'_>,
    y: PyRef<'_, PyTensor>,
    xs: &Bound<'_, PyAny>,
    batch_axis: Option<i64>,
) -> PyResult<Vec<Py<PyAny>>> {
    let (y, xs) = (y.tensor(), all(xs)?);
    let found = errors::run(py, move || autograd::jacobian(&y, &xs, batch_axis))?;
    found.into_iter().map(|t| PyTensor::wrap(py, t)).collect()
}

/// Second derivatives of `y` with respect to each pair of `xs`.
#[pyfunction]
#[pyo3(signature = (y, xs, batch_axis = None))]
pub fn _hessian(
    py: Python<'_>,
    y: PyRef<'_, PyTensor>,
    xs: &Bound<'_, PyAny>,
    batch_axis: Option<i64>,
) -> PyResult<Vec<Vec<Py<PyAny>>>> {
    let (y, xs) = (y.tensor(), all(xs)?);
    let found = errors::run(py, move || autograd::hessian(&y, &xs, batch_axis))?;
    found.into_iter().map(|row| row.into_iter().map(|t| PyTensor::wrap(py, t)).collect()).collect()
}
