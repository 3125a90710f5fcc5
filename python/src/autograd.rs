//! Gradients: modes, hooks, `grad`, derivatives of whole functions.

use crate::errors::{self, passing};
use crate::tensor::PyTensor;
use pyo3::prelude::*;
use pyo3::types::PyList;
use sampan_core::Tensor;
use sampan_core::autograd::{self, GradOptions};
use std::sync::Arc;

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
#[pyo3(signature = (tensors, grad_tensors = None, retain_graph = false, *, dump_backward_graph_path = None))]
pub fn backward(
    py: Python<'_>,
    tensors: &Bound<'_, PyAny>,
    grad_tensors: Option<&Bound<'_, PyAny>>,
    retain_graph: bool,
    dump_backward_graph_path: Option<String>,
) -> PyResult<()> {
    let _ = dump_backward_graph_path;
    crate::graph::check_walk()?;
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

/// Every value that is saved for gradients on this thread goes through `pack`, and comes back through `unpack`.
#[pyfunction]
pub fn _push_saved_hooks(pack: Py<PyAny>, unpack: Py<PyAny>) {
    let unpack = Arc::new(unpack);
    autograd::push_saved_hook(Arc::new(move |t: &Tensor| {
        let packed = Python::attach(|py| pack.call1(py, (PyTensor::wrap(py, t.clone())?,))).map_err(passing)?;
        let unpack = unpack.clone();
        Ok(Arc::new(move || {
            Python::attach(|py| -> PyResult<Tensor> {
                let t = unpack.call1(py, (&packed,))?;
                Ok(t.bind(py).cast::<PyTensor>()?.borrow().tensor())
            })
            .map_err(passing)
        }))
    }));
}

/// Ends what the last `_push_saved_hooks` began.
#[pyfunction]
pub fn _pop_saved_hooks() {
    autograd::pop_saved_hook();
}

/// The outputs of `func` at `xs` and a product with its Jacobian: `J v` (forward) or `v J`.
#[pyfunction]
#[pyo3(signature = (func, xs, v, forward))]
#[allow(clippy::type_complexity)]
pub fn _jacobian_product(
    py: Python<'_>,
    func: Py<PyAny>,
    xs: &Bound<'_, PyAny>,
    v: &Bound<'_, PyAny>,
    forward: bool,
) -> PyResult<(Vec<Py<PyAny>>, Vec<Py<PyAny>>)> {
    let (xs, v) = (all(xs)?, if v.is_none() { None } else { Some(all(v)?) });
    let (ys, product) = errors::run(py, move || {
        let f = |xs: &[Tensor]| {
            Python::attach(|py| -> PyResult<Vec<Tensor>> {
                let xs = xs.iter().map(|x| PyTensor::wrap(py, x.clone())).collect::<PyResult<Vec<_>>>()?;
                all(func.call1(py, pyo3::types::PyTuple::new(py, xs)?)?.bind(py))
            })
            .map_err(passing)
        };
        let v = v.as_deref();
        if forward { autograd::jvp(f, &xs, v) } else { autograd::functional::vjp(f, &xs, v) }
    })?;
    let each = |ts: Vec<Tensor>| ts.into_iter().map(|t| PyTensor::wrap(py, t)).collect::<PyResult<Vec<_>>>();
    Ok((each(ys)?, each(product)?))
}

/// The outputs of `func(*xs)`; values that gradients need of it are computed again instead of kept.
#[pyfunction]
pub fn _recompute(
    py: Python<'_>,
    func: Py<PyAny>,
    xs: &Bound<'_, PyAny>,
    preserve_rng_state: bool,
) -> PyResult<Vec<Py<PyAny>>> {
    let xs = all(xs)?;
    let body = move |xs: &[Tensor]| {
        Python::attach(|py| {
            let xs = xs.iter().map(|x| PyTensor::wrap(py, x.clone())).collect::<PyResult<Vec<_>>>()?;
            all(func.call1(py, (PyList::new(py, xs)?,))?.bind(py))
        })
        .map_err(passing)
    };
    let found = errors::run(py, move || autograd::recompute_with(body, &xs, preserve_rng_state))?;
    found.into_iter().map(|t| PyTensor::wrap(py, t)).collect()
}
