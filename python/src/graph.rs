//! Graphs in Python: tracing Python functions, running, saving and loading.

use crate::dtype;
use crate::errors;
use crate::tensor::PyTensor;
use pyo3::prelude::*;
use sampan_core::{Tensor, Value};
use sampan_graph::{Arg, Dim, Graph, Predictor, Spec, aside, cond, onnx, paddle, quantize, trace_with, while_loop};
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

/// Calls a function that gives a list of tensors.
fn call_list(py: Python<'_>, function: &Py<PyAny>, given: &[Tensor]) -> PyResult<Vec<Tensor>> {
    let given = given.iter().map(|t| PyTensor::wrap(py, t.clone())).collect::<PyResult<Vec<_>>>()?;
    let found = function.call1(py, (given,))?.extract::<Vec<Bound<'_, PyTensor>>>(py)?;
    Ok(tensors(&found))
}

fn objects(py: Python<'_>, found: Vec<Tensor>) -> PyResult<Vec<Py<PyAny>>> {
    found.into_iter().map(|t| PyTensor::wrap(py, t)).collect()
}

/// What one of two functions gives; both take an empty list and give a list of tensors.
#[pyfunction]
pub fn _cond(
    py: Python<'_>,
    pred: Bound<'_, PyTensor>,
    then: Py<PyAny>,
    otherwise: Py<PyAny>,
) -> PyResult<Vec<Py<PyAny>>> {
    let pred = pred.get().tensor();
    let run = |f: &Py<PyAny>| Python::attach(|py| call_list(py, f, &[])).map_err(errors::passing);
    objects(py, errors::run_here(|| cond(&pred, || run(&then), || run(&otherwise)))?)
}

/// A list of tensors that `body` changes as long as `condition` of it holds.
#[pyfunction]
pub fn _while(
    py: Python<'_>,
    state: Vec<Bound<'_, PyTensor>>,
    condition: Py<PyAny>,
    body: Py<PyAny>,
) -> PyResult<Vec<Py<PyAny>>> {
    let run = |f: &Py<PyAny>, t: &[Tensor]| Python::attach(|py| call_list(py, f, t)).map_err(errors::passing);
    let asked = |t: &[Tensor]| run(&condition, t).map(|mut all| all.swap_remove(0));
    objects(py, errors::run_here(|| while_loop(tensors(&state), asked, |t| run(&body, t)))?)
}

/// What a function gives, without making it part of the program that is traced.
#[pyfunction]
pub fn _aside(function: Py<PyAny>) -> PyResult<Py<PyAny>> {
    errors::run_here(|| aside(|| Python::attach(|py| function.call0(py)).map_err(errors::passing)))
}

/// Has the tensor no values yet?
#[pyfunction]
pub fn _is_traced(tensor: Bound<'_, PyTensor>) -> bool {
    tensor.get().tensor().device() == sampan_core::Device::Meta
}

thread_local! {
    static TRACING: Cell<usize> = const { Cell::new(0) };
    static WALKED: Cell<bool> = const { Cell::new(false) };
}

/// Is a program of this thread being traced?
#[pyfunction]
pub fn _is_tracing() -> bool {
    TRACING.get() > 0
}

/// A program that is traced asks for gradients; it is a step of training then, which is recorded as a whole.
pub fn check_walk() -> PyResult<()> {
    if !_is_tracing() {
        return Ok(());
    }
    WALKED.set(true);
    Err(pyo3::exceptions::PyRuntimeError::new_err(
        "(PreconditionNotMet) backward: gradients are added up inside of a program that is traced. Hint: save or trace the \
         part that computes the result.",
    ))
}

/// Did a program that was traced ask for gradients, since this was asked?
#[pyfunction]
pub fn _walked_while_traced() -> bool {
    WALKED.take()
}

impl PyGraph {
    pub(crate) fn new(graph: Graph) -> PyGraph {
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
    /// Writes an `.onnx` file in that version of its operators.
    fn save_onnx(&self, py: Python<'_>, path: PathBuf, opset: i64) -> PyResult<()> {
        let graph = self.graph();
        errors::run(py, move || onnx::save(&graph, path, onnx::Options { opset, ..onnx::Options::default() }))
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
    /// A graph whose weights are codes, and whose layers compute with codes that each sample decides about.
    fn quantize_dynamic(&self, py: Python<'_>) -> PyResult<PyGraph> {
        let graph = self.graph();
        errors::run(py, move || quantize::dynamic(&graph)).map(PyGraph::new)
    }
    /// A graph whose weights lie in another dtype: float16, bfloat16 or int8.
    fn quantize_weights(&self, py: Python<'_>, dtype: &Bound<'_, PyAny>) -> PyResult<PyGraph> {
        let (graph, dtype) = (self.graph(), dtype::read(dtype)?);
        errors::run(py, move || quantize::weights(&graph, dtype)).map(PyGraph::new)
    }
    /// `(layers that compute with codes, layers that could, bytes of all weights)`.
    fn quantized(&self) -> (usize, usize, usize) {
        let graph = self.graph();
        let (done, all) = quantize::count(&graph);
        (done, all, quantize::bytes(&graph))
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

/// Ranges of what flows through a graph, from examples.
#[pyclass(name = "Calibration", module = "sampan._core", frozen)]
pub struct PyCalibration(Mutex<Option<quantize::Calibration>>);

#[pymethods]
impl PyCalibration {
    /// `method` is minmax, percentile, entropy or average; `value` the percentile, or how much of an average stays.
    #[new]
    fn new(py: Python<'_>, graph: &PyGraph, method: &str, value: f64) -> PyResult<PyCalibration> {
        let method = match method {
            "minmax" => quantize::Method::MinMax,
            "percentile" => quantize::Method::Percentile(value),
            "entropy" => quantize::Method::Entropy,
            "average" => quantize::Method::MovingAverage(value),
            other => {
                let message =
                    format!("there is no method {other:?}; known are minmax, percentile, entropy and average");
                return Err(errors::raise(sampan_core::Error::invalid(message).in_op("quantize")));
            }
        };
        let graph = graph.graph();
        errors::run(py, move || quantize::Calibration::new(&graph, method)).map(|c| PyCalibration(Mutex::new(Some(c))))
    }
    /// Looks at one batch of inputs.
    fn feed(&self, py: Python<'_>, inputs: Vec<Bound<'_, PyTensor>>) -> PyResult<()> {
        let inputs = tensors(&inputs);
        errors::run(py, || {
            let mut place = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            match place.as_mut() {
                Some(calibration) => calibration.feed(&inputs),
                None => Err(sampan_core::Error::invalid("the calibration is over").in_op("quantize")),
            }
        })
    }
    /// The quantised graph.
    fn finish(&self, py: Python<'_>) -> PyResult<PyGraph> {
        errors::run(py, || match self.0.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(calibration) => calibration.finish(),
            None => Err(sampan_core::Error::invalid("the calibration is over").in_op("quantize")),
        })
        .map(PyGraph::new)
    }
}

/// A graph that is ready to run forward, from any thread.
#[pyclass(name = "Predictor", module = "sampan._core", frozen)]
pub struct PyPredictor(Predictor);

#[pymethods]
impl PyPredictor {
    #[new]
    fn new(py: Python<'_>, graph: &PyGraph) -> PyResult<PyPredictor> {
        let graph = graph.graph();
        errors::run(py, move || Predictor::new(&graph)).map(PyPredictor)
    }
    /// What it gives for these inputs.
    fn run(&self, py: Python<'_>, inputs: Vec<Bound<'_, PyTensor>>) -> PyResult<Vec<Py<PyAny>>> {
        let inputs = tensors(&inputs);
        let outputs = errors::run(py, || self.0.run(&inputs))?;
        outputs.into_iter().map(|t| PyTensor::wrap(py, t)).collect()
    }
    /// The graph as it runs.
    fn graph(&self) -> PyGraph {
        PyGraph::new(self.0.graph().clone())
    }
    /// The steps for inputs of these shapes.
    fn describe(&self, py: Python<'_>, inputs: Vec<Bound<'_, PyTensor>>) -> PyResult<String> {
        let inputs = tensors(&inputs);
        errors::run(py, || self.0.describe(&inputs))
    }
}
