//! What must hold for a record to stand for a call, asked without running Python.

use crate::recording::PyCaptured;
use crate::tensor::PyTensor;
use parking_lot::Mutex;
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple, PyType};
use pyo3::{PyTraverseError, PyVisit};
use sampan_core::Tensor;
use smallvec::SmallVec;
use std::sync::atomic::{AtomicBool, Ordering};

/// A list, tuple or dict of a class of its own, or a deque, as it was: its class, and what it held in a plain one.
#[pyclass(name = "Kept", module = "sampan._core", frozen)]
pub struct PyKept {
    kind: Py<PyType>,
    items: Py<PyAny>,
}

#[pymethods]
impl PyKept {
    #[new]
    fn new(kind: Py<PyType>, items: Py<PyAny>) -> PyKept {
        PyKept { kind, items }
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.kind)?;
        visit.call(&self.items)
    }
}

/// Is a value the one it was, or one of the same type that is equal to it? A tensor is like no other, whatever its values.
fn same(now: &Bound<'_, PyAny>, before: &Bound<'_, PyAny>) -> bool {
    if now.is(before) {
        return true;
    }
    if let Ok(before) = before.cast_exact::<PyKept>() {
        let PyKept { kind, items } = before.get();
        return now.get_type().is(kind) && alike(now, items.bind(now.py())).unwrap_or(false);
    }
    if !now.get_type().is(before.get_type()) {
        return false;
    }
    let held = alike(now, before);
    held.unwrap_or_else(|| !now.is_instance_of::<PyTensor>() && now.eq(before).unwrap_or(false))
}

/// Do two lists, tuples or dicts hold the same? Nothing if they are none. What their classes have instead of `==` or of
/// iteration is not asked.
fn alike(now: &Bound<'_, PyAny>, before: &Bound<'_, PyAny>) -> Option<bool> {
    if let (Ok(now), Ok(before)) = (now.cast::<PyList>(), before.cast::<PyList>()) {
        return Some(now.len() == before.len() && now.iter().zip(before).all(|(a, b)| same(&a, &b)));
    }
    if let (Ok(now), Ok(before)) = (now.cast::<PyTuple>(), before.cast::<PyTuple>()) {
        return Some(now.len() == before.len() && now.iter_borrowed().zip(before).all(|(a, b)| same(&a, &b)));
    }
    if let (Ok(now), Ok(before)) = (now.cast::<PyDict>(), before.cast::<PyDict>()) {
        let alike = |(name, value): (_, _)| matches!(before.get_item(name), Ok(Some(b)) if same(&value, &b));
        return Some(now.len() == before.len() && now.iter().all(alike));
    }
    // A deque.
    let before = before.cast::<PyList>().ok()?;
    let mut items = now.try_iter().ok()?;
    let all = before.iter().all(|b| matches!(items.next(), Some(Ok(a)) if same(&a, &b)));
    Some(all && items.next().is_none())
}

/// What a function computes by, other than its arguments: variables around it; modes, settings and inner layers of networks.
#[pyclass(name = "Snapshot", module = "sampan._core", frozen)]
pub struct PySnapshot {
    /// Entries of dicts and what they were.
    settings: Vec<(Py<PyDict>, Py<PyString>, Py<PyAny>)>,
    /// Dicts whose values are these very objects.
    objects: Vec<(Py<PyDict>, Py<PyTuple>)>,
    empty: Vec<Py<PyDict>>,
    /// Variables of functions around it: the cell, its name, and what it holds.
    cells: Vec<(Py<PyAny>, String, Argument)>,
    /// How what a cell holds is read, if there are any.
    reader: Option<CellReader>,
    /// Variables of modules: names and values.
    globals: Vec<(Py<PyDict>, Py<PyString>, Argument)>,
}

#[pymethods]
impl PySnapshot {
    #[new]
    fn new(
        settings: Vec<(Py<PyDict>, Py<PyString>, Py<PyAny>)>,
        objects: Vec<(Py<PyDict>, Py<PyTuple>)>,
        empty: Vec<Py<PyDict>>,
        cells: Vec<(Py<PyAny>, String, String, Py<PyAny>)>,
        globals: Vec<(Py<PyDict>, Py<PyString>, String, Py<PyAny>)>,
        py: Python<'_>,
    ) -> PyResult<PySnapshot> {
        let cell = |(c, n, k, v): (_, _, String, _)| Ok((c, n, Argument::new(&k, v)?));
        let global = |(d, n, k, v): (_, _, String, _)| Ok((d, n, Argument::new(&k, v)?));
        Ok(PySnapshot {
            settings,
            objects,
            empty,
            reader: cells.first().map(|(cell, ..)| CellReader::new(cell.bind(py))).transpose()?,
            cells: cells.into_iter().map(cell).collect::<PyResult<_>>()?,
            globals: globals.into_iter().map(global).collect::<PyResult<_>>()?,
        })
    }

    /// Is all of it as it was?
    fn holds(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.change(py)?.is_none())
    }

    /// The variable or attribute that is not as it was, if one is not: its name, which is empty for what has none.
    fn changed(&self, py: Python<'_>) -> PyResult<Option<String>> {
        self.change(py)?.map_or(Ok(None), |name| match name {
            Changed::Cell(name) => Ok(Some(name.clone())),
            Changed::Entry(name) => name.extract(py).map(Some),
            Changed::Parts => Ok(Some(String::new())),
        })
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        for (dict, _, value) in &self.settings {
            visit.call(dict)?;
            visit.call(value)?;
        }
        for (dict, values) in &self.objects {
            visit.call(dict)?;
            visit.call(values)?;
        }
        for (cell, _, value) in &self.cells {
            visit.call(cell)?;
            value.object().map_or(Ok(()), |v| visit.call(v))?;
        }
        for (dict, _, value) in &self.globals {
            visit.call(dict)?;
            value.object().map_or(Ok(()), |v| visit.call(v))?;
        }
        self.empty.iter().try_for_each(|d| visit.call(d))
    }
}

/// Reads what a cell holds as `cell_contents` does, without looking that name up each time, which takes longer than the rest.
struct CellReader {
    descriptor: Py<PyAny>,
    get: ffi::descrgetfunc,
}

impl CellReader {
    fn new(cell: &Bound<'_, PyAny>) -> PyResult<CellReader> {
        let descriptor = cell.get_type().getattr(pyo3::intern!(cell.py(), "cell_contents"))?;
        // SAFETY: the type is alive, and every type may be asked for this slot.
        let slot = unsafe { ffi::PyType_GetSlot(descriptor.get_type().as_type_ptr(), ffi::Py_tp_descr_get) };
        if slot.is_null() {
            return Err(PyTypeError::new_err("(InvalidType) Snapshot: takes the cells of functions."));
        }
        // SAFETY: a slot of this name that is not empty is such a function.
        let get = unsafe { std::mem::transmute::<*mut std::ffi::c_void, ffi::descrgetfunc>(slot) };
        Ok(CellReader { descriptor: descriptor.unbind(), get })
    }

    fn read<'py>(&self, cell: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        // SAFETY: the interpreter's lock is held and all objects are alive. It is the function of the descriptor's own type,
        // which finds out itself whether the object is a cell, and gives a new reference, or null with an exception set.
        unsafe {
            let found = (self.get)(self.descriptor.as_ptr(), cell.as_ptr(), cell.get_type_ptr().cast());
            Bound::from_owned_ptr_or_err(cell.py(), found)
        }
    }
}

/// What is not as it was.
enum Changed<'a> {
    Cell(&'a String),
    /// A global variable or an attribute.
    Entry(&'a Py<PyString>),
    /// The parameters, hooks or inner layers of a network.
    Parts,
}

impl PySnapshot {
    fn change(&self, py: Python<'_>) -> PyResult<Option<Changed<'_>>> {
        let none = &mut Given::new();
        for (reader, (cell, name, before)) in self.reader.iter().cycle().zip(&self.cells) {
            match reader.read(cell.bind(py)) {
                Ok(now) if before.fits(&now, none) => {}
                _ => return Ok(Some(Changed::Cell(name))),
            }
        }
        for (dict, name, before) in &self.globals {
            match dict.bind(py).get_item(name.bind(py))? {
                Some(now) if before.fits(&now, none) => {}
                _ => return Ok(Some(Changed::Entry(name))),
            }
        }
        if self.empty.iter().any(|d| !d.bind(py).is_empty()) {
            return Ok(Some(Changed::Parts));
        }
        for (dict, name, before) in &self.settings {
            match dict.bind(py).get_item(name.bind(py))? {
                Some(now) if same(&now, before.bind(py)) => {}
                _ => return Ok(Some(Changed::Entry(name))),
            }
        }
        for (dict, before) in &self.objects {
            let (dict, before) = (dict.bind(py), before.bind(py));
            if dict.len() != before.len() || !dict.iter().zip(before.iter_borrowed()).all(|((_, v), b)| v.is(&*b)) {
                return Ok(Some(Changed::Parts));
            }
        }
        Ok(None)
    }
}

/// The tensors that a call is given.
type Given = SmallVec<[Tensor; 4]>;

/// An argument of a recorded call.
enum Argument {
    /// A tensor, whichever it is.
    Tensor,
    /// This object, or one that is equal to it.
    Equal(Py<PyAny>),
    /// This very object.
    Same(Py<PyAny>),
}

impl Argument {
    fn new(kind: &str, value: Py<PyAny>) -> PyResult<Argument> {
        Ok(match kind {
            "tensor" => Argument::Tensor,
            "equal" => Argument::Equal(value),
            "same" => Argument::Same(value),
            other => return Err(PyTypeError::new_err(format!("(InvalidType) there is no kind {other:?}."))),
        })
    }

    /// Does a value fit? A tensor goes to the others.
    fn fits(&self, now: &Bound<'_, PyAny>, tensors: &mut Given) -> bool {
        match self {
            Argument::Same(before) => now.is(before),
            Argument::Equal(before) => same(now, before.bind(now.py())),
            Argument::Tensor => match now.cast::<PyTensor>() {
                Ok(t) => {
                    tensors.push(t.get().tensor());
                    true
                }
                Err(_) => false,
            },
        }
    }

    fn object(&self) -> Option<&Py<PyAny>> {
        match self {
            Argument::Tensor => None,
            Argument::Equal(value) | Argument::Same(value) => Some(value),
        }
    }
}

type Described = (String, Py<PyAny>);

/// Calls of a function that are alike but for their tensors, done again from its record.
#[pyclass(name = "Again", module = "sampan._core", frozen)]
pub struct PyAgain {
    captured: Py<PyCaptured>,
    snapshot: Py<PySnapshot>,
    args: Vec<Argument>,
    kwargs: Vec<(Py<PyString>, Argument)>,
    /// Makes what the function gives of a list of tensors; without it, the one tensor is that.
    finish: Option<Py<PyAny>>,
}

#[pymethods]
impl PyAgain {
    #[new]
    fn new(
        captured: Py<PyCaptured>,
        snapshot: Py<PySnapshot>,
        args: Vec<Described>,
        kwargs: Vec<(Py<PyString>, String, Py<PyAny>)>,
        finish: Option<Py<PyAny>>,
    ) -> PyResult<PyAgain> {
        Ok(PyAgain {
            captured,
            snapshot,
            args: args.into_iter().map(|(k, v)| Argument::new(&k, v)).collect::<PyResult<_>>()?,
            kwargs: kwargs.into_iter().map(|(n, k, v)| Ok((n, Argument::new(&k, v)?))).collect::<PyResult<_>>()?,
            finish,
        })
    }

    /// What the function gives for these arguments, or `NotImplemented` where the record does not stand for the call.
    fn call(&self, args: &Bound<'_, PyTuple>, kwargs: &Bound<'_, PyDict>) -> PyResult<Py<PyAny>> {
        Ok(self.again(args, Some(kwargs))?.unwrap_or_else(|| args.py().NotImplemented()))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.captured)?;
        visit.call(&self.snapshot)?;
        for value in self.args.iter().chain(self.kwargs.iter().map(|k| &k.1)).filter_map(Argument::object) {
            visit.call(value)?;
        }
        self.finish.as_ref().map_or(Ok(()), |f| visit.call(f))
    }
}

impl PyAgain {
    /// What the function gives for these arguments, if the record stands for the call.
    fn again(&self, args: &Bound<'_, PyTuple>, kwargs: Option<&Bound<'_, PyDict>>) -> PyResult<Option<Py<PyAny>>> {
        let py = args.py();
        let mut tensors = Given::new();
        if !self.holds(py, args, kwargs, &mut tensors)? {
            return Ok(None);
        }
        let Some(mut found) = self.captured.get().again(py, "", &tensors)? else { return Ok(None) };
        match &self.finish {
            None => PyTensor::wrap(py, found.swap_remove(0)).map(Some),
            Some(finish) => {
                let found = found.into_iter().map(|t| PyTensor::wrap(py, t)).collect::<PyResult<Vec<_>>>()?;
                finish.call1(py, (PyList::new(py, found)?,)).map(Some)
            }
        }
    }

    fn holds<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
        tensors: &mut Given,
    ) -> PyResult<bool> {
        if args.len() != self.args.len() || kwargs.map_or(0, |k| k.len()) != self.kwargs.len() {
            return Ok(false);
        }
        for (now, before) in args.iter_borrowed().zip(&self.args) {
            if !before.fits(&now, tensors) {
                return Ok(false);
            }
        }
        for (name, before) in &self.kwargs {
            match kwargs.map(|k| k.get_item(name.bind(py))).transpose()?.flatten() {
                Some(now) if before.fits(&now, tensors) => {}
                _ => return Ok(false),
            }
        }
        self.snapshot.get().holds(py)
    }
}

/// A function that may have a record: calls that it stands for do not run Python. Others go to the method `_call`.
#[pyclass(name = "Marked", module = "sampan._core", subclass, frozen, weakref)]
pub struct PyMarked(Mutex<Option<Py<PyAgain>>>);

/// Are calls done from records?
static FROM_RECORDS: AtomicBool = AtomicBool::new(true);

#[pymethods]
impl PyMarked {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn new(_args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) -> PyMarked {
        PyMarked(Mutex::new(None))
    }

    /// Sets or forgets the record that stands for calls like the last one.
    #[pyo3(signature = (record))]
    fn _set_record(&self, record: Option<Py<PyAgain>>) {
        // The old one goes after the lock, since dropping objects may run Python.
        let before = std::mem::replace(&mut *self.0.lock(), record);
        drop(before);
    }

    #[pyo3(signature = (*args, **kwargs))]
    fn __call__(
        slf: &Bound<'_, Self>,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        if FROM_RECORDS.load(Ordering::Relaxed) {
            let record = slf.get().0.lock().as_ref().map(|r| r.clone_ref(slf.py()));
            if let Some(record) = record
                && let Some(found) = record.get().again(args, kwargs)?
            {
                return Ok(found);
            }
        }
        slf.as_any().getattr(pyo3::intern!(slf.py(), "_call"))?.call(args, kwargs).map(Bound::unbind)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self.0.try_lock() {
            Some(record) => record.as_ref().map_or(Ok(()), |r| visit.call(r)),
            None => Ok(()),
        }
    }

    fn __clear__(&self) {
        self._set_record(None);
    }
}

/// Switches calls from records on or off.
#[pyfunction]
pub fn _call_from_records(on: bool) {
    FROM_RECORDS.store(on, Ordering::Relaxed);
}
