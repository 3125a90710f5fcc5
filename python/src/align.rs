//! Alignment: recordings, pairs and reports of the core, and the ear that hears the calls of functions.

use crate::tensor::PyTensor;
use crate::{errors, value};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use sampan_align::{Corrections, Options, Recording, Structure, Tensors};
use sampan_core::dispatch::{Listener, add_listener, remove_listener};
use sampan_core::op::OpDef;
use sampan_core::{Tensor, Value};
use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::rc::Rc;

/// Tells a Python function of every outermost call of an op.
struct Ear {
    heard: Py<PyAny>,
    depth: Cell<usize>,
    busy: Cell<bool>,
    failed: RefCell<Option<PyErr>>,
}

impl Ear {
    fn tell(&self, op: &'static OpDef, args: &[Value], outputs: &[Tensor]) -> PyResult<()> {
        Python::attach(|py| {
            let named = PyList::empty(py);
            for (p, v) in op.params.iter().zip(args) {
                // What Python has no word for (a random state, an index) cannot be called again from there either.
                named.append((p.name, value::to_python(py, v).unwrap_or_else(|_| py.None())))?;
            }
            let outputs: Vec<_> = outputs.iter().map(|t| PyTensor::wrap(py, t.clone())).collect::<PyResult<_>>()?;
            self.heard.call1(py, (op.name, named, outputs)).map(|_| ())
        })
    }
}

impl Listener for Ear {
    fn enter(&self, _: &'static OpDef, _: &[Value]) {
        self.depth.set(self.depth.get() + 1);
    }
    fn exit(&self, op: &'static OpDef, args: &[Value], outputs: &[Tensor]) {
        self.depth.set(self.depth.get().saturating_sub(1));
        if self.depth.get() > 0 || self.busy.get() || self.failed.borrow().is_some() {
            return;
        }
        // Reading a tensor on the way may itself call ops.
        self.busy.set(true);
        if let Err(e) = self.tell(op, args, outputs) {
            if Python::attach(|py| e.is_instance_of::<PyKeyboardInterrupt>(py)) {
                // It came while we listened, and is meant for the program.
                // SAFETY: it only notes a signal, which the interpreter sees to when it goes on.
                unsafe { pyo3::ffi::PyErr_SetInterrupt() }
            } else {
                self.failed.replace(Some(e));
            }
        }
        self.busy.set(false);
    }
    fn failed(&self, _: &'static OpDef, _: &[Value], _: &sampan_core::Error) {
        self.depth.set(self.depth.get().saturating_sub(1));
    }
}

thread_local! {
    static EAR: RefCell<Option<Rc<Ear>>> = const { RefCell::new(None) };
}

/// Calls `heard(op, [(argument, value)], outputs)` after every op that this thread's program calls.
#[pyfunction]
pub fn _hear_calls(heard: Py<PyAny>) -> PyResult<()> {
    _stop_hearing()?;
    let ear = Rc::new(Ear { heard, depth: Cell::new(0), busy: Cell::new(false), failed: RefCell::new(None) });
    add_listener(ear.clone());
    EAR.set(Some(ear));
    Ok(())
}

/// Ends that.
#[pyfunction]
pub fn _stop_hearing() -> PyResult<()> {
    let Some(ear) = EAR.take() else { return Ok(()) };
    remove_listener(&(ear.clone() as Rc<dyn Listener>));
    ear.failed.take().map_or(Ok(()), Err)
}

/// A number that tells tensors apart, whatever Python object stands for them.
#[pyfunction]
pub fn _tensor_id(tensor: PyRef<'_, PyTensor>) -> u64 {
    tensor.tensor().id()
}

/// What one side did: its structure and its tensors.
#[pyclass(name = "Recording", module = "sampan._core", frozen)]
pub struct PyRecording(Recording);

fn structure(text: &str) -> PyResult<Structure> {
    Structure::from_json(text).map_err(errors::raise)
}

#[pymethods]
impl PyRecording {
    /// `spend`: the arrays are taken out of the dicts, so that they are not there twice.
    #[new]
    fn new(structure_json: &str, sections: &Bound<'_, PyDict>, spend: bool) -> PyResult<PyRecording> {
        let mut recording = Recording::new(structure(structure_json)?);
        for (name, arrays) in sections.iter() {
            let mut tensors = Tensors::default();
            let arrays = arrays.cast::<PyDict>()?;
            for key in arrays.keys() {
                let array = arrays.get_item(&key)?.unwrap_or_else(|| key.py().None().into_bound(key.py()));
                tensors.insert(key.extract::<String>()?, crate::array::from_array(&array)?);
                if spend {
                    arrays.del_item(&key)?;
                }
            }
            recording.sections.insert(name.extract()?, tensors);
        }
        recording.finish();
        Ok(PyRecording(recording))
    }
    /// Reads a folder or a file of `reprod_log`.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<PyRecording> {
        errors::run(py, move || Recording::load(path)).map(PyRecording)
    }
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        errors::run(py, || self.0.save(path))
    }
    fn structure(&self) -> String {
        self.0.structure.to_json()
    }
    fn sections(&self) -> Vec<String> {
        self.0.sections.keys().cloned().collect()
    }
    fn keys(&self, section: &str) -> Vec<String> {
        self.0.section(section).map_or(Vec::new(), |t| t.iter().map(|(k, _)| k.to_string()).collect())
    }
    fn get(&self, py: Python<'_>, section: &str, key: &str) -> PyResult<Option<Py<PyAny>>> {
        let found = self.0.section(section).and_then(|t| t.get(key));
        found.map(|t| crate::array::to_numpy(py, t)).transpose()
    }
}

/// Pairs two structures: the pairs as JSON, and as a table.
#[pyfunction]
pub fn _align_pair(py: Python<'_>, reference: &str, candidate: &str, map: &str) -> PyResult<(String, String)> {
    let (a, b) = (structure(reference)?, structure(candidate)?);
    errors::run(py, move || {
        let pairing = sampan_align::pair(&a, &b, &Corrections::parse(map)?)?;
        Ok((sampan_align::to_json(&pairing), pairing.table(&a, &b)))
    })
}

/// A report on two sides, as the core keeps it.
#[pyclass(name = "AlignReport", module = "sampan._core", frozen)]
pub struct PyReport(sampan_align::Report);

/// Compares two recordings.
#[pyfunction]
pub fn _align_compare(
    py: Python<'_>,
    reference: PyRef<'_, PyRecording>,
    candidate: PyRef<'_, PyRecording>,
    map: String,
    checks: Vec<String>,
    tolerance: Option<f64>,
) -> PyResult<PyReport> {
    let (a, b) = (&reference.0, &candidate.0);
    errors::run(py, move || {
        let options = Options { corrections: Corrections::parse(&map)?, checks: Options::checks(&checks)?, tolerance };
        sampan_align::compare(a, b, &options)
    })
    .map(PyReport)
}

#[pymethods]
impl PyReport {
    fn json(&self) -> String {
        sampan_align::to_json(&self.0)
    }
    fn text(&self) -> String {
        self.0.text()
    }
    fn html(&self) -> String {
        self.0.html()
    }
    /// Writes the verdicts in `reprod_log`'s words, one file for each check.
    fn logs(&self, py: Python<'_>, folder: PathBuf) -> PyResult<Vec<PathBuf>> {
        errors::run(py, || self.0.write_logs(folder))
    }
}
