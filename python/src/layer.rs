//! Layers: the base of Python's, the core's own seen from Python, and Python's seen from the core.

use crate::class::PyObject;
use crate::errors::{passing, raise};
use crate::tensor::{PyParameter, PyTensor, parameter_of};
use crate::{errors, value};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use sampan_core::error::Kind;
use sampan_core::{Error, Object, Result, Tensor, Value};
use sampan_nn::{Base, Buffer, Layer, LayerRef, Members, Parameter, Path, Visitor};
use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The base of `sampan.nn.Layer`. A call goes to `forward` without a frame of ours between the user's.
#[pyclass(name = "LayerBase", module = "sampan._core", subclass, dict, weakref, frozen)]
pub struct PyLayerBase {
    /// Are there hooks? Then a call takes the longer way.
    hooked: AtomicBool,
}

thread_local! {
    /// Layers that run on this thread.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
    /// The innermost layer in which an exception arose.
    static FAILED: RefCell<Option<Py<PyAny>>> = const { RefCell::new(None) };
}

#[pymethods]
impl PyLayerBase {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn new(_args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) -> PyLayerBase {
        PyLayerBase { hooked: AtomicBool::new(false) }
    }
    #[getter(_hooked)]
    fn get_hooked(&self) -> bool {
        self.hooked.load(Ordering::Relaxed)
    }
    #[setter(_hooked)]
    fn set_hooked(&self, on: bool) {
        self.hooked.store(on, Ordering::Relaxed);
    }
    #[pyo3(signature = (*args, **kwargs))]
    fn __call__<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let depth = DEPTH.get();
        DEPTH.set(depth + 1);
        let name = if slf.get().hooked.load(Ordering::Relaxed) {
            pyo3::intern!(slf.py(), "_call_hooked")
        } else {
            pyo3::intern!(slf.py(), "forward")
        };
        let result = slf.getattr(name).and_then(|f| f.call(args, kwargs));
        DEPTH.set(depth);
        result.map_err(|e| named(slf, depth, e))
    }
}

/// Adds to an exception, at the outermost layer, the way to the innermost one it arose in.
fn named(slf: &Bound<'_, PyLayerBase>, depth: usize, e: PyErr) -> PyErr {
    let py = slf.py();
    let inner = FAILED.with_borrow_mut(|f| f.get_or_insert_with(|| slf.clone().into_any().unbind()).clone_ref(py));
    if depth > 0 {
        return e;
    }
    FAILED.set(None);
    if let Ok(note) = slf.call_method1("_where", (inner,))
        && !note.is_none()
    {
        let _ = e.value(py).call_method1("add_note", (note,));
    }
    e
}

/// A layer of the core: one of its own, or one inside it.
#[pyclass(name = "RustLayer", module = "sampan._core", extends = PyObject, frozen)]
pub struct PyRustLayer {
    root: Arc<dyn Layer>,
    /// The way from the root; empty for the root itself.
    path: String,
}

/// Finds the members of one layer inside another.
struct Direct<'a> {
    of: &'a str,
    /// Layers seen, with their types.
    layers: Vec<(String, &'static str)>,
    parameters: Vec<(String, Parameter)>,
    computed: Vec<String>,
    buffers: Vec<(String, Buffer)>,
}

impl Direct<'_> {
    /// The name below the layer, if it lies inside.
    fn below(&self, path: &Path) -> Option<String> {
        if self.of.is_empty() {
            return Some(path.as_str().to_string());
        }
        path.as_str().strip_prefix(self.of)?.strip_prefix('.').map(str::to_string)
    }

    /// Does no other layer lie between?
    fn is_direct(&self, name: &str) -> bool {
        !self
            .layers
            .iter()
            .any(|(l, _)| !l.is_empty() && name.strip_prefix(l.as_str()).is_some_and(|r| r.starts_with('.')))
    }
}

impl Visitor for Direct<'_> {
    fn layer(&mut self, path: &Path, layer: LayerRef) {
        if let Some(name) = self.below(path)
            && !name.is_empty()
            && !self.layers.iter().any(|(l, _)| *l == name)
        {
            self.layers.push((name, layer.type_name));
        }
    }
    fn parameter(&mut self, path: &Path, p: &Parameter) {
        if let Some(name) = self.below(path)
            && self.is_direct(&name)
        {
            self.parameters.push((name, p.clone()));
        }
    }
    fn computed(&mut self, path: &Path, _: &Parameter) {
        if let Some(name) = self.below(path)
            && self.is_direct(&name)
        {
            self.computed.push(name);
        }
    }
    fn buffer(&mut self, path: &Path, b: &Buffer) {
        if let Some(name) = self.below(path)
            && self.is_direct(&name)
        {
            self.buffers.push((name, b.clone()));
        }
    }
}

/// Runs `f` with the layer at a path.
fn at_path<R>(root: &dyn Layer, path: &str, f: impl FnOnce(&dyn Layer) -> R) -> Option<R> {
    if path.is_empty() {
        return Some(f(root));
    }
    struct Find<'a, F, R>(&'a str, Option<F>, Option<R>);
    impl<F: FnOnce(&dyn Layer) -> R, R> Visitor for Find<'_, F, R> {
        fn layer(&mut self, path: &Path, layer: LayerRef) {
            if path.as_str() == self.0
                && let Some(f) = self.1.take()
            {
                self.2 = Some(f(layer.layer));
            }
        }
    }
    let mut find = Find(path, Some(f), None);
    root.visit(&Path::default(), &mut find);
    find.2
}

impl PyRustLayer {
    /// The Python object of a layer.
    pub fn wrap(py: Python<'_>, root: Arc<dyn Layer>, path: String) -> PyResult<Py<PyAny>> {
        let base = PyClassInitializer::from(PyObject(Object::new(root.clone())));
        Ok(Py::new(py, base.add_subclass(PyRustLayer { root, path }))?.into_any())
    }

    fn with<R>(&self, f: impl FnOnce(&dyn Layer) -> R) -> PyResult<R> {
        at_path(&*self.root, &self.path, f).ok_or_else(|| raise(lost(&self.path)))
    }

    fn direct(&self) -> Direct<'_> {
        let mut found =
            Direct { of: &self.path, layers: vec![], parameters: vec![], computed: vec![], buffers: vec![] };
        self.root.visit(&Path::default(), &mut found);
        found
    }
}

fn lost(path: &str) -> Error {
    Error::new(Kind::NotFound, format!("there is no layer {path:?} any more"))
}

#[pymethods]
impl PyRustLayer {
    /// Computes the outputs; hooks are the caller's business.
    #[pyo3(signature = (*args, **kwargs))]
    fn forward(
        &self,
        py: Python<'_>,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        let positional: Vec<Value> = args.iter().map(|a| value::any(&a)).collect::<PyResult<_>>()?;
        let mut named = Vec::new();
        for (k, v) in kwargs.into_iter().flatten() {
            named.push((k.extract::<String>()?, value::any(&v)?));
        }
        let (root, path) = (self.root.clone(), self.path.as_str());
        let out = errors::run(py, move || {
            let named = named.iter().map(|(k, v)| (k.as_str(), v.clone())).collect();
            at_path(&*root, path, |l| l.invoke(positional, named)).unwrap_or_else(|| Err(lost(path)))
        })?;
        value::to_python(py, &out)
    }
    /// The parameters of the layer itself: (name, parameter).
    fn parameters(&self, py: Python<'_>) -> PyResult<Vec<(String, Py<PyAny>)>> {
        self.direct().parameters.into_iter().map(|(n, p)| Ok((n, PyParameter::wrap(py, p)?))).collect()
    }
    /// Names of parameters that are computed from others.
    fn computed(&self) -> Vec<String> {
        self.direct().computed
    }
    /// The buffers of the layer itself: (name, tensor, is it saved?).
    fn buffers(&self, py: Python<'_>) -> PyResult<Vec<(String, Py<PyAny>, bool)>> {
        self.direct()
            .buffers
            .into_iter()
            .map(|(n, b)| Ok((n, PyTensor::wrap_buffer(py, b.clone())?, b.persistable)))
            .collect()
    }
    /// The layers directly inside: (name, type, layer).
    fn children(&self, py: Python<'_>) -> PyResult<Vec<(String, &'static str, Py<PyAny>)>> {
        let found = self.direct();
        let direct = found.layers.iter().filter(|(name, _)| found.is_direct(name));
        direct
            .map(|(name, kind)| {
                let path = if self.path.is_empty() { name.clone() } else { format!("{}.{name}", self.path) };
                Ok((name.clone(), *kind, PyRustLayer::wrap(py, self.root.clone(), path)?))
            })
            .collect()
    }
    fn extra_repr(&self) -> PyResult<String> {
        self.with(|l| l.extra_repr())
    }
    #[getter]
    fn full_name(&self) -> PyResult<Option<String>> {
        self.with(|l| l.base().map(|b| b.full_name().to_string()))
    }
    /// Switches this layer alone between training and evaluation.
    fn set_training(&self, on: bool) -> PyResult<()> {
        self.with(|l| l.base().map(|b| b.set_training(on))).map(|_| ())
    }
    /// Is it a part of another layer?
    #[getter]
    fn is_inner(&self) -> bool {
        !self.path.is_empty()
    }
    /// Lets a Python layer compute in its place whenever another layer of the core calls it; None ends that. The layer is
    /// held weakly: its owner in Python keeps it.
    fn set_stand_in(&self, layer: Option<&Bound<'_, PyAny>>) -> PyResult<bool> {
        let weak = layer.map(|l| l.py().import("weakref")?.call_method1("ref", (l,)).map(Bound::unbind)).transpose()?;
        let stand_in = weak.map(|weak| {
            let call = move |inputs: &[Tensor]| -> Result<Option<Vec<Tensor>>> {
                Python::attach(|py| -> PyResult<Option<Vec<Tensor>>> {
                    let layer = weak.call0(py)?;
                    if layer.is_none(py) { Ok(None) } else { call_python(layer.bind(py), inputs).map(Some) }
                })
                .map_err(passing)
            };
            Arc::new(call) as Arc<sampan_nn::StandIn>
        });
        self.with(|l| l.base().map(|b: &Base| b.set_stand_in(stand_in)).is_some())
    }
}

/// Calls a Python layer with tensors.
fn call_python(layer: &Bound<'_, PyAny>, inputs: &[Tensor]) -> PyResult<Vec<Tensor>> {
    let py = layer.py();
    let inputs: Vec<_> = inputs.iter().map(|t| PyTensor::wrap(py, t.clone())).collect::<PyResult<_>>()?;
    let out = layer.call1(PyTuple::new(py, inputs)?)?;
    let mut found = Vec::new();
    value::any(&out)?.for_each_tensor(&mut |t| found.push(t.clone()));
    Ok(found)
}

/// A layer written in Python, for the core.
struct PythonLayer(Py<PyAny>);

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
        Python::attach(|py| call_python(self.0.bind(py), inputs)).map_err(passing)
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
