//! Models of ONNX in Python: read, run as they are, and made graphs.

use crate::dtype::{self, PyDType};
use crate::errors;
use crate::graph::PyGraph;
use crate::tensor::PyTensor;
use pyo3::prelude::*;
use pyo3::types::PyList;
use sampan_core::Tensor;
use sampan_graph::onnx::{self, Item, Model};
use sampan_io::onnx::model::{Extent, ValueInfo};
use std::path::PathBuf;
use std::sync::Arc;

/// A model as ONNX describes it.
#[pyclass(name = "OnnxModel", module = "sampan._core", frozen)]
pub struct PyOnnxModel(Arc<Model>);

/// A tensor, a list of them, or None for an optional that holds nothing.
fn item(value: &Bound<'_, PyAny>) -> PyResult<Item> {
    if value.is_none() {
        return Ok(Item::Nothing);
    }
    if let Ok(tensor) = value.cast::<PyTensor>() {
        return Ok(Item::Tensor(tensor.get().tensor()));
    }
    let list = value.extract::<Vec<Bound<'_, PyTensor>>>()?;
    Ok(Item::List(list.iter().map(|t| t.get().tensor()).collect()))
}

fn object(py: Python<'_>, item: Item) -> PyResult<Py<PyAny>> {
    match item {
        Item::Nothing => Ok(py.None()),
        Item::Tensor(t) => PyTensor::wrap(py, t),
        Item::List(list) => {
            let list = list.into_iter().map(|t| PyTensor::wrap(py, t)).collect::<PyResult<Vec<_>>>()?;
            Ok(PyList::new(py, list)?.into_any().unbind())
        }
    }
}

/// What is known of a value: its name, its shape with -1 for any extent, and its dtype.
type Known = (String, Option<Vec<i64>>, Option<Py<PyDType>>);

fn known(py: Python<'_>, info: &ValueInfo) -> Known {
    let extent = |d: &Extent| if let Extent::Fixed(n) = d { *n as i64 } else { -1 };
    let dims = info.dims.as_ref().map(|dims| dims.iter().map(extent).collect());
    (info.name.clone(), dims, info.dtype.map(|d| dtype::object(py, d)))
}

fn bounded(model: Model, bytes: Option<usize>) -> Model {
    match bytes {
        Some(bytes) => model.with_memory(bytes),
        None => model,
    }
}

#[pymethods]
impl PyOnnxModel {
    /// Reads a file, and the values that lie beside it; a run may hold so many bytes at once.
    #[staticmethod]
    #[pyo3(signature = (path, memory_limit = None))]
    fn load(py: Python<'_>, path: PathBuf, memory_limit: Option<usize>) -> PyResult<PyOnnxModel> {
        errors::run(py, move || onnx::load(path)).map(|m| PyOnnxModel(Arc::new(bounded(m, memory_limit))))
    }
    /// Reads a model from memory.
    #[staticmethod]
    #[pyo3(signature = (bytes, memory_limit = None))]
    fn from_bytes(py: Python<'_>, bytes: Vec<u8>, memory_limit: Option<usize>) -> PyResult<PyOnnxModel> {
        errors::run(py, move || onnx::from_bytes(&bytes)).map(|m| PyOnnxModel(Arc::new(bounded(m, memory_limit))))
    }
    /// What it gives for these inputs, with these tensors as its first weights.
    #[pyo3(signature = (inputs, weights = vec![]))]
    fn run(
        &self,
        py: Python<'_>,
        inputs: Vec<Bound<'_, PyAny>>,
        weights: Vec<Bound<'_, PyTensor>>,
    ) -> PyResult<Vec<Py<PyAny>>> {
        let inputs = inputs.iter().map(item).collect::<PyResult<Vec<_>>>()?;
        let weights = weights.iter().map(|t| t.get().tensor()).collect::<Vec<Tensor>>();
        let model = self.0.clone();
        let outputs = errors::run(py, move || model.run_with(&inputs, &weights))?;
        outputs.into_iter().map(|i| object(py, i)).collect()
    }
    /// The model as a graph of our calls.
    fn graph(&self, py: Python<'_>) -> PyResult<PyGraph> {
        let model = self.0.clone();
        errors::run(py, move || model.graph()).map(PyGraph::new)
    }
    /// `(name, tensor)` of each value that is written in the file.
    fn weights(&self, py: Python<'_>) -> PyResult<Vec<(String, Py<PyAny>)>> {
        self.0.weights().iter().map(|(n, t)| Ok((n.clone(), PyTensor::wrap(py, t.clone())?))).collect()
    }
    /// `(name, shape, dtype)` of each input.
    fn inputs(&self, py: Python<'_>) -> Vec<Known> {
        self.0.inputs().iter().map(|i| known(py, i)).collect()
    }
    /// `(name, shape, dtype)` of each output.
    fn outputs(&self, py: Python<'_>) -> Vec<Known> {
        self.0.outputs().iter().map(|i| known(py, i)).collect()
    }
    /// The version of ONNX's operators.
    #[getter]
    fn opset(&self) -> i64 {
        self.0.opset()
    }
    /// The operators it calls, in order.
    fn operators(&self) -> Vec<String> {
        self.0.operators().into_iter().map(String::from).collect()
    }
    fn __repr__(&self) -> String {
        format!("<OnnxModel of {} nodes, opset {}>", self.0.operators().len(), self.0.opset())
    }
}
