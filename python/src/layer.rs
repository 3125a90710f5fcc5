//! Layers: the base of Python's, and the core's own seen from Python.

use crate::class::PyObject;
use crate::errors::{passing, raise};
use crate::python_layer::{call_python, python_layer};
use crate::tensor::{PyParameter, PyTensor};
use crate::{errors, value};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use sampan_core::error::Kind;
use sampan_core::{Error, Object, Result, Tensor, Value};
use sampan_nn::{Base, Buffer, Layer, LayerRef, Members, Parameter, Path, Visitor};
use std::any::Any;
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
    /// The parameter, layer or buffer of that name: what `Layer.__getattr__` is, without a Python frame.
    fn _find_member<'py>(slf: &Bound<'py, Self>, name: &Bound<'py, PyString>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let own = slf.getattr(pyo3::intern!(py, "__dict__"))?.cast_into::<PyDict>()?;
        let tables =
            [pyo3::intern!(py, "_parameters"), pyo3::intern!(py, "_sub_layers"), pyo3::intern!(py, "_buffers")];
        for table in tables {
            if let Some(members) = own.get_item(table)?
                && let Ok(members) = members.cast::<PyDict>()
                && let Some(member) = members.get_item(name)?
            {
                return Ok(member);
            }
        }
        // Once more in the ordinary way, for the ordinary error: the one a property raised, if it was one.
        py.get_type::<PyAny>().call_method1(pyo3::intern!(py, "__getattribute__"), (slf, name))
    }
    #[pyo3(signature = (*args, **kwargs))]
    fn __call__<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let depth = DEPTH.get();
        let span = if sampan_core::profiler::on() { Some(crate::profiler::enter_layer(slf, depth)?) } else { None };
        DEPTH.set(depth + 1);
        let name = if slf.get().hooked.load(Ordering::Relaxed) {
            pyo3::intern!(slf.py(), "_call_hooked")
        } else {
            pyo3::intern!(slf.py(), "forward")
        };
        let result = slf.getattr(name).and_then(|f| f.call(args, kwargs));
        DEPTH.set(depth);
        drop(span);
        if result.is_ok() {
            // An exception that a layer caught is over.
            FAILED.with_borrow_mut(|f| {
                if f.is_some() {
                    *f = None
                }
            });
        }
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
    pub(crate) root: Arc<dyn Layer>,
    /// The way from the root; empty for the root itself.
    pub(crate) path: String,
}

/// Finds the members of one layer inside another.
struct Direct<'a> {
    of: &'a str,
    /// Layers seen, with their types.
    layers: Vec<(String, &'static str)>,
    parameters: Vec<(String, Parameter)>,
    /// Places of parameters whose value comes from elsewhere.
    computed: Vec<(String, Parameter)>,
    /// Buffers, which are parameters that are not trained for Paddle and so for Python.
    counted: Vec<(String, Parameter)>,
}

impl Direct<'_> {
    /// The name below the layer, if it lies inside.
    fn below(&self, path: &Path) -> Option<String> {
        if self.of.is_empty() {
            return Some(path.as_str().to_string());
        }
        path.as_str().strip_prefix(self.of)?.strip_prefix('.').map(str::to_string)
    }

    /// The place that the layer computes with under a name.
    fn place(&self, name: &str) -> Option<&Parameter> {
        self.computed.iter().chain(&self.parameters).chain(&self.counted).find(|(n, _)| n == name).map(|(_, p)| p)
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
    fn computed(&mut self, path: &Path, p: &Parameter) {
        if let Some(name) = self.below(path)
            && self.is_direct(&name)
        {
            self.computed.push((name, p.clone()));
        }
    }
    fn buffer(&mut self, path: &Path, b: &Buffer) {
        if let Some(name) = self.below(path)
            && self.is_direct(&name)
        {
            self.counted.push((name, b.as_parameter().clone()));
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
            Direct { of: &self.path, layers: vec![], parameters: vec![], computed: vec![], counted: vec![] };
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
    /// The parameters of the layer itself: (name, what tells it from others, parameter). Statistics are the last, as in
    /// Paddle.
    fn parameters(&self, py: Python<'_>) -> PyResult<Vec<(String, usize, Py<PyAny>)>> {
        let own = self.direct();
        own.counted.iter().for_each(|(_, p)| p.tensor().set_persistable(true));
        let all = own.parameters.into_iter().chain(own.counted);
        all.map(|(n, p)| Ok((n, p.id(), PyParameter::wrap(py, p)?))).collect()
    }
    /// Lets the layer compute with another parameter or tensor under a name of its own; false if it has no such name.
    fn set_parameter(&self, name: &str, value: &Bound<'_, PyTensor>) -> bool {
        let found = self.direct();
        let place = found.place(name);
        if let Some(place) = place {
            match value.get().parameter() {
                Some(p) => place.share(&p),
                None => place.set_given(value.borrow().tensor()),
            }
        }
        place.is_some()
    }
    /// Like `set_parameter`, for a layer whose own values nobody will ask for again: their memory is given back.
    fn adopt_parameter(&self, name: &str, value: &Bound<'_, PyTensor>) -> bool {
        let found = self.direct();
        let place = found.place(name);
        if let (Some(place), Some(p)) = (place, value.get().parameter()) {
            place.share(&p);
            if !place.is_same(&p) {
                place.replace(Tensor::zeros([0], p.dtype()));
            }
        }
        place.is_some()
    }
    /// The layers directly inside: (name, type, layer); one that was written in Python is that object.
    fn children(&self, py: Python<'_>) -> PyResult<Vec<(String, &'static str, Py<PyAny>)>> {
        let found = self.direct();
        let direct = found.layers.iter().filter(|(name, _)| found.is_direct(name));
        direct
            .map(|(name, kind)| {
                let path = if self.path.is_empty() { name.clone() } else { format!("{}.{name}", self.path) };
                let python = at_path(&*self.root, &path, |l| python_layer(py, l)).flatten();
                let layer = python.map_or_else(|| PyRustLayer::wrap(py, self.root.clone(), path), Ok)?;
                Ok((name.clone(), *kind, layer))
            })
            .collect()
    }
    /// Is it the same layer, by whatever way it was found?
    fn is_same(&self, other: PyRef<'_, PyRustLayer>) -> PyResult<bool> {
        let id = |l: &dyn Layer| {
            let mut l: &dyn Any = l;
            // A shared layer is the layer that is shared.
            while let Some(inner) = l.downcast_ref::<Arc<dyn Layer>>() {
                l = &**inner;
            }
            ((l as *const dyn Any).addr(), l.type_id())
        };
        Ok(self.with(id)? == other.with(id)?)
    }
    /// What the layer was told or decided.
    fn settings<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let told = PyDict::new(py);
        for (name, v) in self.with(|l| l.settings())? {
            told.set_item(name, value::to_python(py, &v)?)?;
        }
        Ok(told)
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
    /// The way from the outermost layer; empty for that itself.
    #[getter]
    fn path(&self) -> &str {
        &self.path
    }
    /// Is it a part of another layer?
    #[getter]
    fn is_inner(&self) -> bool {
        !self.path.is_empty()
    }
    /// Lets a Python layer compute in its place whenever another layer of the core calls it; None ends that. The layer is
    /// held weakly: its owner in Python keeps it. False if the layer cannot be stood in for.
    fn set_stand_in(&self, layer: Option<&Bound<'_, PyAny>>) -> PyResult<bool> {
        let weak = layer.map(|l| l.py().import("weakref")?.call_method1("ref", (l,)).map(Bound::unbind)).transpose()?;
        let stand_in = weak.map(|weak| {
            let call = move |args: Vec<Value>| -> Result<Option<Value>> {
                Python::attach(|py| -> PyResult<Option<Value>> {
                    let layer = weak.call0(py)?;
                    if layer.is_none(py) { Ok(None) } else { call_python(layer.bind(py), args, Vec::new()).map(Some) }
                })
                .map_err(passing)
            };
            Arc::new(call) as Arc<sampan_nn::StandIn>
        });
        self.with(|l| l.base().map(|b: &Base| b.set_stand_in(stand_in)).is_some())
    }
}
