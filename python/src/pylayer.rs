//! Functions of the user's own with a gradient of the user's own: `PyLayer`.

use crate::errors::{self, passing};
use crate::hook::Counted;
use crate::tensor::PyTensor;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use pyo3::{PyTraverseError, PyVisit};
use sampan_core::autograd::{self, Function, FunctionContext};
use sampan_core::{Result, Tensor};
use std::sync::{Arc, Mutex, PoisonError};

/// What a call of `forward` is given, and then what it gave: of use during the call alone.
enum Call {
    Given(Py<PyTuple>, Option<Py<PyDict>>),
    Gave(Py<PyAny>),
    Done,
}

/// A class with `forward(ctx, …)` and `backward(ctx, …)`, and the context of one call.
pub struct PythonFunction {
    name: &'static str,
    class: Py<PyAny>,
    context: Py<PyAny>,
    call: Arc<Mutex<Call>>,
    /// What `save_for_backward` was given; None where a tensor stood, which the core keeps and guards.
    kept: Mutex<Vec<Option<Py<PyAny>>>>,
    _counted: Counted,
}

fn tensor_of(item: &Bound<'_, PyAny>) -> Option<Tensor> {
    item.cast::<PyTensor>().ok().map(|t| t.borrow().tensor())
}

/// The tensors among the items of a tuple or list, or the one tensor that an object is.
fn direct_tensors(value: &Bound<'_, PyAny>) -> PyResult<Vec<Tensor>> {
    if value.is_instance_of::<PyTuple>() || value.is_instance_of::<PyList>() {
        return value.try_iter()?.filter_map(|i| i.map(|i| tensor_of(&i)).transpose()).collect();
    }
    Ok(tensor_of(value).into_iter().collect())
}

fn take(call: &Mutex<Call>, new: Call) -> Call {
    std::mem::replace(&mut *call.lock().unwrap_or_else(PoisonError::into_inner), new)
}

impl PythonFunction {
    /// Shows what it holds to the garbage collector.
    pub fn visit(&self, visit: &PyVisit<'_>) -> std::result::Result<(), PyTraverseError> {
        visit.call(&self.class)?;
        visit.call(&self.context)?;
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().flatten().try_for_each(|object| visit.call(object))
    }

    fn run_forward(&self, py: Python<'_>, cx: &mut FunctionContext) -> PyResult<Vec<Tensor>> {
        let Call::Given(args, kwargs) = take(&self.call, Call::Done) else {
            return Err(PyValueError::new_err("(PreconditionNotMet) forward runs once in a call."));
        };
        let context = self.context.bind(py);
        let all: Vec<Bound<'_, PyAny>> = std::iter::once(context.clone()).chain(args.bind(py).iter()).collect();
        let forward = self.class.bind(py).getattr("forward")?;
        let result = forward.call(PyTuple::new(py, all)?, kwargs.as_ref().map(|k| k.bind(py)))?;
        let outputs = direct_tensors(&result)?;
        if outputs.is_empty() {
            let text = format!("(InvalidArgument) {}: forward must return at least one Tensor.", self.name);
            return Err(PyValueError::new_err(text));
        }
        take(&self.call, Call::Gave(result.unbind()));
        let mut kept = Vec::new();
        let container = context.getattr("container")?;
        if !container.is_none() {
            for item in container.try_iter()? {
                let item = item?;
                match tensor_of(&item) {
                    Some(t) => {
                        cx.save_for_backward(&[t]);
                        kept.push(None);
                    }
                    None => kept.push(Some(item.unbind())),
                }
            }
        }
        // The core keeps them now, and knows when to let go.
        context.setattr("container", py.None())?;
        *self.kept.lock().unwrap_or_else(PoisonError::into_inner) = kept;
        let constant = context.getattr("non_differentiable")?;
        if !constant.is_none() {
            cx.mark_non_differentiable(&direct_tensors(&constant)?);
        }
        cx.set_materialize_grads(context.getattr("materialize_grads")?.is_truthy()?);
        Ok(outputs)
    }

    fn run_backward(
        &self,
        py: Python<'_>,
        cx: &FunctionContext,
        grads: &[Option<Tensor>],
        inputs: usize,
    ) -> PyResult<Vec<Option<Tensor>>> {
        let context = self.context.bind(py);
        let mut saved = cx.saved_tensor().iter();
        // Objects are made without the lock: that may start the garbage collector, which takes it.
        let kept: Vec<Option<Py<PyAny>>> = {
            let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.iter().map(|k| k.as_ref().map(|k| k.clone_ref(py))).collect()
        };
        let one = |k: Option<Py<PyAny>>| match k {
            Some(other) => Ok(other),
            None => saved.next().map_or_else(|| Ok(py.None()), |t| PyTensor::wrap(py, t.clone())),
        };
        let kept = kept.into_iter().map(one).collect::<PyResult<Vec<_>>>()?;
        context.setattr("container", PyTuple::new(py, kept)?)?;
        let mut all = vec![context.clone()];
        for g in grads {
            let g = g.clone().map_or_else(|| Ok(py.None()), |g| PyTensor::wrap(py, g))?;
            all.push(g.into_bound(py));
        }
        let result = self.class.bind(py).getattr("backward")?.call1(PyTuple::new(py, all)?);
        context.setattr("container", py.None())?;
        let mut found = Vec::new();
        self.collect(&result?, &mut found)?;
        // Arguments that are no tensors may have a None each, and inputs that want no gradient none at all.
        while found.len() > inputs && matches!(found.last(), Some(None)) {
            found.pop();
        }
        while found.len() < inputs && !cx.needs_input_grad(found.len()) {
            found.push(None);
        }
        Ok(found)
    }

    fn collect(&self, value: &Bound<'_, PyAny>, into: &mut Vec<Option<Tensor>>) -> PyResult<()> {
        if value.is_none() {
            into.push(None);
        } else if let Some(t) = tensor_of(value) {
            into.push(Some(t));
        } else if value.is_instance_of::<PyTuple>() || value.is_instance_of::<PyList>() {
            for item in value.try_iter()? {
                self.collect(&item?, into)?;
            }
        } else {
            return Err(PyTypeError::new_err(format!(
                "(InvalidType) {}: backward returns a Tensor or None for each Tensor of forward, got {}.",
                self.name,
                value.get_type().name()?
            )));
        }
        Ok(())
    }
}

impl Function for PythonFunction {
    fn forward(&self, cx: &mut FunctionContext, _: &[Tensor]) -> Result<Vec<Tensor>> {
        Python::attach(|py| self.run_forward(py, cx)).map_err(passing)
    }
    fn backward(&self, cx: &FunctionContext, grads: &[Option<Tensor>]) -> Result<Vec<Option<Tensor>>> {
        Python::attach(|py| self.run_backward(py, cx, grads, cx.inputs())).map_err(passing)
    }
    fn is_foreign(&self) -> bool {
        true
    }
    fn name(&self) -> &'static str {
        self.name
    }
}

/// Calls `class.forward(ctx, …)` as one recorded step whose gradient is `class.backward(ctx, …)`.
#[pyfunction]
#[pyo3(signature = (class, *args, **kwargs))]
pub fn _apply_layer(
    py: Python<'_>,
    class: Bound<'_, PyAny>,
    args: &Bound<'_, PyTuple>,
    kwargs: Option<&Bound<'_, PyDict>>,
) -> PyResult<Py<PyAny>> {
    let mut inputs = Vec::new();
    for a in args.iter().chain(kwargs.into_iter().flat_map(|k| k.values().iter().collect::<Vec<_>>())) {
        inputs.extend(direct_tensors(&a)?);
    }
    let call = Arc::new(Mutex::new(Call::Given(args.clone().unbind(), kwargs.map(|k| k.clone().unbind()))));
    let function = PythonFunction {
        name: crate::intern(&class.getattr("__name__")?.extract::<String>()?),
        context: class.getattr("_context")?.call0()?.unbind(),
        class: class.unbind(),
        call: call.clone(),
        kept: Mutex::default(),
        _counted: Counted::new(),
    };
    let outputs = errors::run(py, move || autograd::apply(function, &inputs))?;
    let Call::Gave(result) = take(&call, Call::Done) else { return Ok(py.None()) };
    replaced(result.into_bound(py), outputs)
}

/// What `forward` returned with its tensors replaced by the recorded ones.
fn replaced(result: Bound<'_, PyAny>, outputs: Vec<Tensor>) -> PyResult<Py<PyAny>> {
    let py = result.py();
    let mut outputs = outputs.into_iter();
    let mut one = |item: Bound<'_, PyAny>| -> PyResult<Py<PyAny>> {
        match tensor_of(&item) {
            None => Ok(item.unbind()),
            Some(own) => match outputs.next() {
                Some(t) if !t.is_same(&own) => PyTensor::wrap(py, t),
                _ => Ok(item.unbind()),
            },
        }
    };
    let is_list = result.is_instance_of::<PyList>();
    if !is_list && !result.is_instance_of::<PyTuple>() {
        return one(result);
    }
    let items: Vec<_> = result.try_iter()?.map(|i| one(i?)).collect::<PyResult<_>>()?;
    Ok(if is_list { PyList::new(py, items)?.into_any() } else { PyTuple::new(py, items)?.into_any() }.unbind())
}
