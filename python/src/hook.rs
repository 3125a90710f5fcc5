//! Python functions on gradients, and how Python's garbage collector finds them.
//!
//! A hook lies in the graph, where the collector does not look. What a tensor alone keeps alive it shows to the collector
//! as its own (`PyTensor::__traverse__`). The place of a parameter has more owners, such as the layer and an optimizer of
//! the core, so its Python object keeps the hooks and the graph knows them by weak references.

use crate::errors::{passing, raise};
use crate::tensor::{PyParameter, PyTensor};
use parking_lot::Mutex;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyWeakrefMethods, PyWeakrefReference};
use pyo3::{PyTraverseError, PyVisit};
use sampan_core::autograd::GradHook;
use sampan_core::tensor::HookHandle;
use sampan_core::{Result, Tensor};
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many objects in graphs hold Python objects: without any there is nothing to look for.
static FOREIGN: AtomicUsize = AtomicUsize::new(0);

/// Counts one of them while it lives.
pub struct Counted;

impl Counted {
    /// One more.
    pub fn new() -> Counted {
        FOREIGN.fetch_add(1, Ordering::Relaxed);
        Counted
    }

    /// Are there any?
    pub fn any() -> bool {
        FOREIGN.load(Ordering::Relaxed) > 0
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        FOREIGN.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A function with an owner, who is asked for it; when the owner goes, the graph becomes the owner.
type Slot = Arc<Mutex<Option<Py<PyAny>>>>;

/// A Python function on a gradient.
pub struct PythonHook {
    strong: Mutex<Option<Py<PyAny>>>,
    weak: Option<Py<PyWeakrefReference>>,
    _counted: Counted,
}

impl PythonHook {
    fn function(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        if let Some(function) = &*self.strong.lock() {
            return Some(function.clone_ref(py));
        }
        self.weak.as_ref()?.bind(py).upgrade().map(Bound::unbind)
    }

    /// Shows the function to the garbage collector, if the graph owns it.
    fn visit(&self, visit: &PyVisit<'_>) -> std::result::Result<(), PyTraverseError> {
        if let Some(function) = &*self.strong.lock() { visit.call(function) } else { Ok(()) }
    }
}

impl GradHook for PythonHook {
    fn call(&self, grad: &Tensor) -> Result<Option<Tensor>> {
        Python::attach(|py| -> PyResult<Option<Tensor>> {
            let Some(function) = self.function(py) else { return Ok(None) };
            let new = function.call1(py, (PyTensor::wrap(py, grad.clone())?,))?;
            let new = new.bind(py);
            if new.is_none() { Ok(None) } else { Ok(Some(new.cast::<PyTensor>()?.get().tensor())) }
        })
        .map_err(passing)
    }
}

/// Shows what a part of a graph holds of Python's to the garbage collector.
pub fn visit_part(part: &dyn Any, visit: &PyVisit<'_>) -> std::result::Result<(), PyTraverseError> {
    if let Some(hook) = part.downcast_ref::<PythonHook>() {
        return hook.visit(visit);
    }
    match part.downcast_ref::<crate::pylayer::PythonFunction>() {
        Some(function) => function.visit(visit),
        None => Ok(()),
    }
}

/// A hook that can be taken off again.
#[pyclass(name = "TensorHookRemoveHelper", module = "sampan", frozen)]
pub struct PyHook {
    handle: HookHandle,
    slot: Option<Slot>,
}

#[pymethods]
impl PyHook {
    /// Takes the hook off; False if it was off already.
    fn remove(&self) -> bool {
        if let Some(slot) = &self.slot {
            let function = slot.lock().take();
            drop(function);
        }
        self.handle.remove()
    }
}

fn check(hook: &Bound<'_, PyAny>) -> PyResult<()> {
    if hook.is_callable() {
        return Ok(());
    }
    let kind = hook.get_type().name()?;
    Err(PyTypeError::new_err(format!("(InvalidType) register_hook: a function is needed, got {kind}.")))
}

/// Calls a Python function with the gradient of a tensor; the graph owns it.
pub fn register(t: &Tensor, hook: &Bound<'_, PyAny>) -> PyResult<PyHook> {
    check(hook)?;
    let own = PythonHook { strong: Mutex::new(Some(hook.clone().unbind())), weak: None, _counted: Counted::new() };
    Ok(PyHook { handle: t.register_grad_hook(Arc::new(own)).map_err(raise)?, slot: None })
}

/// The hooks that the Python object of a parameter owns.
#[derive(Default)]
pub struct Owned(Mutex<Vec<(Slot, std::sync::Weak<PythonHook>)>>);

impl Owned {
    /// Calls a Python function with the gradient of a parameter.
    pub fn register(&self, t: &Tensor, hook: &Bound<'_, PyAny>) -> PyResult<PyHook> {
        check(hook)?;
        // What no weak reference can be made to is rare, and the graph's own.
        let Ok(weak) = PyWeakrefReference::new(hook) else { return register(t, hook) };
        let own = PythonHook { strong: Mutex::new(None), weak: Some(weak.unbind()), _counted: Counted::new() };
        let own = Arc::new(own);
        let handle = t.register_grad_hook(own.clone()).map_err(raise)?;
        let slot = Arc::new(Mutex::new(Some(hook.clone().unbind())));
        let gone: Vec<_> = {
            let mut all = self.0.lock();
            all.push((slot.clone(), Arc::downgrade(&own)));
            all.extract_if(.., |(_, hook)| hook.strong_count() == 0).collect()
        };
        drop(gone);
        Ok(PyHook { handle, slot: Some(slot) })
    }

    /// Shows the functions to the garbage collector.
    pub fn visit(&self, visit: &PyVisit<'_>) -> std::result::Result<(), PyTraverseError> {
        for (slot, _) in &*self.0.lock() {
            if let Some(function) = &*slot.lock() {
                visit.call(function)?;
            }
        }
        Ok(())
    }

    /// Lets go of all of them: the collector found that nobody can reach them.
    pub fn clear(&self) {
        let all = std::mem::take(&mut *self.0.lock());
        drop(all);
    }
}

impl Drop for Owned {
    /// A graph that lives on keeps its hooks, unless the collector has taken them apart already.
    fn drop(&mut self) {
        let all = std::mem::take(self.0.get_mut());
        if all.is_empty() {
            return;
        }
        Python::attach(|py| {
            for (slot, hook) in all {
                let Some(hook) = hook.upgrade() else { continue };
                if hook.weak.as_ref().is_some_and(|weak| weak.bind(py).upgrade().is_some()) {
                    let function = slot.lock().take();
                    *hook.strong.lock() = function;
                }
            }
        });
    }
}

#[pymethods]
impl PyTensor {
    /// Calls `hook(grad)` when the gradient reaches this tensor; what it returns replaces the gradient.
    fn register_hook(&self, hook: &Bound<'_, PyAny>) -> PyResult<PyHook> {
        register(&self.tensor(), hook)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> std::result::Result<(), PyTraverseError> {
        if !self.made.is_complete() || !Counted::any() {
            return Ok(());
        }
        let mut result = Ok(());
        self.with_own(|t| {
            sampan_core::autograd::visit_foreign(t, &mut |part| {
                if result.is_ok() {
                    result = visit_part(part, &visit);
                }
            });
        });
        result
    }

    fn __clear__(&self) {
        let mut taken = Vec::new();
        self.with_own(|t| taken = sampan_core::autograd::release_foreign(t));
        drop(taken);
    }
}

#[pymethods]
impl PyParameter {
    /// Calls `hook(grad)` when the gradient reaches this parameter; what it returns replaces the gradient.
    fn register_hook(slf: PyRef<'_, Self>, hook: &Bound<'_, PyAny>) -> PyResult<PyHook> {
        slf.hooks.register(&slf.as_super().tensor(), hook)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> std::result::Result<(), PyTraverseError> {
        if self.made.is_complete() { self.hooks.visit(&visit) } else { Ok(()) }
    }

    fn __clear__(&self) {
        self.hooks.clear();
    }
}
