//! The profiler of the core for Python: recordings, ranges and what is made of them.

use crate::errors::{self, raise};
use crate::layer::PyLayerBase;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use sampan::profiler::{self, Kind, Options, Profile, Range, SortBy, Span, Unit};
use std::cell::RefCell;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// Begins a recording.
#[pyfunction]
pub fn _profiler_start(shapes: bool, memory: bool, capacity: usize) -> PyResult<()> {
    profiler::start(Options { shapes, memory, capacity }).map_err(raise)
}

/// Ends the recording and gives it, if there was one.
#[pyfunction]
pub fn _profiler_stop(py: Python<'_>) -> Option<PyProfile> {
    py.detach(|| profiler::stop().map(Profile::new)).map(PyProfile)
}

/// Is anything being recorded?
#[pyfunction]
pub fn _profiler_on() -> bool {
    profiler::on()
}

/// Reads a trace that was saved.
#[pyfunction]
pub fn _profile_load(py: Python<'_>, path: PathBuf) -> PyResult<PyProfile> {
    errors::run(py, || Profile::load_trace(&path)).map(PyProfile)
}

fn choice<T: Copy>(what: &str, given: &str, known: &[(&str, T)]) -> PyResult<T> {
    known.iter().find(|(name, _)| *name == given).map(|(_, value)| *value).ok_or_else(|| {
        let names: Vec<_> = known.iter().map(|(name, _)| *name).collect();
        PyValueError::new_err(format!("(InvalidArgument) profiler: {what} must be one of {names:?}, got {given:?}."))
    })
}

fn unit(name: &str) -> PyResult<Unit> {
    let known = [Unit::Seconds, Unit::Milliseconds, Unit::Microseconds, Unit::Nanoseconds].map(|u| (u.symbol(), u));
    choice("time_unit", name, &known)
}

/// A range of time that is noted, from `begin` to `end`.
#[pyclass(name = "ProfilerRange", module = "sampan._core", frozen)]
pub struct PyRange(Mutex<Option<Range>>);

#[pymethods]
impl PyRange {
    #[new]
    fn new(name: String, kind: &str) -> PyResult<PyRange> {
        let known = [
            ("range", Kind::Range),
            ("step", Kind::Step),
            ("loader", Kind::Loader),
            ("backward", Kind::Backward),
            ("optimizer", Kind::Optimizer),
        ];
        let kind = choice("kind", kind, &known)?;
        Ok(PyRange(Mutex::new(profiler::on().then(|| profiler::range_of(kind, name)))))
    }
    /// The range ends; a second end does nothing.
    fn end(&self) {
        drop(self.0.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}

/// What was recorded.
#[pyclass(name = "ProfilerResult", module = "sampan.profiler", frozen)]
pub struct PyProfile(Profile);

#[pymethods]
impl PyProfile {
    /// The shares of loader, forward, backward and optimizer, as a table.
    #[pyo3(signature = (time_unit = "ms"))]
    fn overview(&self, time_unit: &str) -> PyResult<String> {
        Ok(self.0.overview().unit(unit(time_unit)?).to_string())
    }
    /// The ops as a table.
    #[pyo3(signature = (sorted_by = "total", detail = false, by_thread = false, by_shape = false, time_unit = "ms", limit = None))]
    fn ops(
        &self,
        sorted_by: &str,
        detail: bool,
        by_thread: bool,
        by_shape: bool,
        time_unit: &str,
        limit: Option<usize>,
    ) -> PyResult<String> {
        let known = [
            ("total", SortBy::Total),
            ("self", SortBy::Own),
            ("average", SortBy::Average),
            ("max", SortBy::Max),
            ("min", SortBy::Min),
            ("calls", SortBy::Calls),
            ("name", SortBy::Name),
        ];
        let table = self.0.ops().sort(choice("sorted_by", sorted_by, &known)?).unit(unit(time_unit)?);
        let table = table.detail(detail).by_thread(by_thread).by_shape(by_shape);
        Ok(table.limit(limit.unwrap_or(usize::MAX)).to_string())
    }
    /// The layers as a table.
    #[pyo3(signature = (time_unit = "ms", depth = None))]
    fn layers(&self, time_unit: &str, depth: Option<usize>) -> PyResult<String> {
        Ok(self.0.layers().unit(unit(time_unit)?).depth(depth.unwrap_or(usize::MAX)).to_string())
    }
    /// The ranges of the user's as a table; empty if there are none.
    #[pyo3(signature = (time_unit = "ms"))]
    fn ranges(&self, time_unit: &str) -> PyResult<String> {
        let table = self.0.ranges().unit(unit(time_unit)?);
        Ok(if table.rows().is_empty() { String::new() } else { table.to_string() })
    }
    /// The events: name, kind, start and duration in nanoseconds, thread, layer.
    fn events<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let recording = self.0.recording();
        let event = |e: &profiler::Event| {
            let dict = PyDict::new(py);
            dict.set_item("name", &*e.label())?;
            dict.set_item("kind", format!("{:?}", e.kind).to_lowercase())?;
            dict.set_item("start", e.start)?;
            dict.set_item("duration", e.duration)?;
            dict.set_item("thread", &recording.threads[e.thread as usize])?;
            dict.set_item("layer", e.layer.as_deref())?;
            let shapes = |inputs: &[profiler::Input]| {
                let one = |i: &profiler::Input| (i.name.to_string(), i.shape.to_vec(), i.dtype.name());
                inputs.iter().map(one).collect::<Vec<_>>()
            };
            dict.set_item("inputs", e.inputs.as_deref().map(shapes))?;
            dict.set_item("allocated", e.memory.map(|m| m.allocated))?;
            dict.set_item("live", e.memory.map(|m| m.live))?;
            dict.set_item("flops", 2 * e.multiply_adds)?;
            Ok(dict)
        };
        recording.events.iter().map(event).collect()
    }
    /// How many events found no room.
    #[getter]
    fn dropped(&self) -> usize {
        self.0.recording().dropped
    }
    /// Writes the events to a file in Chrome's trace format.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        errors::run(py, || self.0.save_trace(&path))
    }
}

thread_local! {
    /// The paths of all layers inside the outermost one that runs, by their addresses.
    static PATHS: RefCell<HashMap<usize, Arc<str>>> = RefCell::default();
}

/// A layer of Python's begins, with `depth` others running: its path from the outermost one.
pub fn enter_layer(layer: &Bound<'_, PyLayerBase>, depth: usize) -> PyResult<Span> {
    let class: String = layer.get_type().name()?.extract()?;
    let outer = profiler::enclosing_layer();
    let below = |outer: &str, name: &str| -> Arc<str> { format!("{outer}.{name}").into() };
    if depth == 0 {
        let root: Arc<str> = outer.map_or_else(|| class.as_str().into(), |outer| below(&outer, &class));
        let mut paths = HashMap::from([(layer.as_ptr() as usize, root.clone())]);
        for found in layer.call_method0("named_sublayers")?.try_iter()? {
            let (path, inner): (String, Bound<'_, PyAny>) = found?.extract()?;
            paths.entry(inner.as_ptr() as usize).or_insert_with(|| below(&root, &path));
        }
        PATHS.set(paths);
        return Ok(profiler::layer(class, root));
    }
    let known = PATHS.with_borrow(|paths| paths.get(&(layer.as_ptr() as usize)).cloned());
    let path = known.unwrap_or_else(|| outer.map_or_else(|| class.as_str().into(), |outer| below(&outer, &class)));
    Ok(profiler::layer(class, path))
}
