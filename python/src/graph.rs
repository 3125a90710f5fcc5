//! Graphs in Python: tracing Python functions, running, saving and loading.

use crate::dtype;
use crate::errors;
use crate::tensor::PyTensor;
use pyo3::prelude::*;
use sampan_core::{Tensor, Value};
use sampan_graph::{Arg, Dim, Graph, Spec, paddle, trace_with};
use std::cell::Cell;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A graph: the calls of a program, with its weights.
#[pyclass(name = "Graph", module = "sampan._core", frozen)]
pub struct PyGraph(Mutex<Arc<Graph>>);

fn tensors(given: &[Bound<'_, PyTensor>]) -> Vec<Tensor> {
    given.iter().map(|t| t.get().tensor()).collect()
}

fn dims(graph: &Graph, id: usize) -> Vec<i64> {
    let dim = |d: &Dim| d.fixed().map_or(-1, |n| n as i64);
    graph.values[id].dims.iter().map(dim).collect()
}

/// Traces `function`, which takes and gives a list of tensors. A spec is `(shape, dtype, name, stop_gradient)`, -1 in a
/// shape standing for any extent; `source()` says which line of the program is running.
#[pyfunction]
pub fn _trace(
    function: Py<PyAny>,
    specs: Vec<(Vec<i64>, Bound<'_, PyAny>, Option<String>, bool)>,
    source: Py<PyAny>,
) -> PyResult<PyGraph> {
    let spec = |(shape, kind, name, stop_gradient): (Vec<i64>, Bound<'_, PyAny>, Option<String>, bool)| {
        let shape = shape.into_iter().map(|n| usize::try_from(n).ok()).collect();
        Ok(Spec { shape, dtype: dtype::read(&kind)?, name, stop_gradient })
    };
    let specs = specs.into_iter().map(spec).collect::<PyResult<Vec<_>>>()?;
    let source = Arc::new(source);
    let line = move || Python::attach(|py| source.call0(py).ok()?.extract::<Option<String>>(py).ok().flatten());
    let program = |inputs: &[Tensor]| {
        Python::attach(|py| {
            let inputs = inputs.iter().map(|t| PyTensor::wrap(py, t.clone())).collect::<PyResult<Vec<_>>>()?;
            let outputs = function.call1(py, (inputs,))?.extract::<Vec<Bound<'_, PyTensor>>>(py)?;
            Ok(tensors(&outputs))
        })
        .map_err(errors::passing)
    };
    TRACING.set(TRACING.get() + 1);
    let graph = errors::run_here(|| trace_with(program, &specs, line));
    TRACING.set(TRACING.get() - 1);
    let graph = graph?;
    Ok(PyGraph::new(graph))
}

thread_local! {
    static TRACING: Cell<usize> = const { Cell::new(0) };
}

/// Is a program of this thread being traced?
#[pyfunction]
pub fn _is_tracing() -> bool {
    TRACING.get() > 0
}

impl PyGraph {
    fn new(graph: Graph) -> PyGraph {
        PyGraph(Mutex::new(Arc::new(graph)))
    }

    fn place(&self) -> MutexGuard<'_, Arc<Graph>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The graph as it is now; runs that have begun keep theirs.
    fn graph(&self) -> Arc<Graph> {
        self.place().clone()
    }
}

#[pymethods]
impl PyGraph {
    /// Reads what `jit.save` wrote, by the path without an ending.
    #[staticmethod]
    fn load(py: Python<'_>, prefix: PathBuf) -> PyResult<PyGraph> {
        errors::run(py, move || paddle::load(prefix)).map(PyGraph::new)
    }
    /// Reads a program and the file of its parameters.
    #[staticmethod]
    fn load_files(py: Python<'_>, program: PathBuf, parameters: PathBuf) -> PyResult<PyGraph> {
        errors::run(py, move || paddle::load_files(&program, &parameters)).map(PyGraph::new)
    }
    /// Writes the files; `structured` has the names of weights in the network.
    fn save(&self, py: Python<'_>, prefix: PathBuf, structured: Vec<(String, String)>) -> PyResult<()> {
        let graph = self.graph();
        errors::run(py, move || paddle::save(&graph, prefix, &structured))
    }
    /// What it gives for these inputs, with these tensors as weights, or its own.
    #[pyo3(signature = (inputs, weights = None))]
    fn run(
        &self,
        py: Python<'_>,
        inputs: Vec<Bound<'_, PyTensor>>,
        weights: Option<Vec<Bound<'_, PyTensor>>>,
    ) -> PyResult<Vec<Py<PyAny>>> {
        let (inputs, weights) = (tensors(&inputs), weights.map(|w| tensors(&w)));
        let graph = self.graph();
        let outputs = errors::run(py, move || match weights {
            Some(weights) => graph.run_with(&inputs, &weights),
            None => graph.run(&inputs),
        })?;
        outputs.into_iter().map(|t| PyTensor::wrap(py, t)).collect()
    }
    /// `(name, tensor, shared)` of each weight; what is not shared is a number among the lines of the program.
    fn weights(&self, py: Python<'_>) -> PyResult<Vec<(String, Py<PyAny>, bool)>> {
        let graph = self.graph();
        graph.weights.iter().map(|w| Ok((w.name.clone(), PyTensor::wrap(py, w.tensor.clone())?, w.shared))).collect()
    }
    /// Gives weights other names: `(name, tensor)`.
    fn name_weights(&self, named: Vec<(String, Bound<'_, PyTensor>)>) {
        let named = named.into_iter().map(|(n, t)| (n, t.get().tensor())).collect::<Vec<_>>();
        let mut place = self.place();
        let graph = Arc::make_mut(&mut place);
        graph.name_weights(named.iter().map(|(n, t)| (n.clone(), t)));
    }
    /// `(name, shape, dtype)` of each input.
    fn inputs(&self, py: Python<'_>) -> Vec<(String, Vec<i64>, Py<crate::dtype::PyDType>)> {
        let graph = self.graph();
        let known = |i: &sampan_graph::Input| {
            (i.name.clone(), dims(&graph, i.value), dtype::object(py, graph.values[i.value].dtype))
        };
        graph.inputs.iter().map(known).collect()
    }
    /// `(shape, dtype)` of each output.
    fn outputs(&self, py: Python<'_>) -> Vec<(Vec<i64>, Py<crate::dtype::PyDType>)> {
        let graph = self.graph();
        graph.outputs.iter().map(|&id| (dims(&graph, id), dtype::object(py, graph.values[id].dtype))).collect()
    }
    /// The names of the ops it calls, in order.
    fn calls(&self) -> Vec<&'static str> {
        self.graph().calls.iter().map(|c| c.op.name).collect()
    }
    /// The same results with fewer calls, for weights that stay as they are.
    fn for_inference(&self, py: Python<'_>) -> PyResult<PyGraph> {
        let graph = self.graph();
        errors::run(py, move || graph.for_inference()).map(PyGraph::new)
    }
    /// Keeps these outputs alone, and what they need.
    fn keep_outputs(&self, places: Vec<usize>) {
        let mut place = self.place();
        let graph = Arc::make_mut(&mut place);
        graph.outputs = places.iter().filter_map(|&i| graph.outputs.get(i).copied()).collect();
        graph.prune();
    }
    /// Trains or evaluates: what dropout, batch normalisation and their like do.
    fn set_training(&self, training: bool) {
        let mut place = self.place();
        let other = |call: &sampan_graph::Call| {
            let mode = call.arg("training");
            mode.is_some_and(|m| !matches!(m, Arg::Plain(Value::Bool(b)) if *b == training))
        };
        if !place.calls.iter().any(other) {
            return;
        }
        for call in &mut Arc::make_mut(&mut place).calls {
            if let Some(at) = call.op.position("training") {
                call.args[at] = Arg::Plain(Value::Bool(training));
            }
        }
    }
    fn __repr__(&self) -> String {
        let graph = self.graph();
        format!("<Graph of {} calls, {} weights>", graph.calls.len(), graph.weights.len())
    }
}
