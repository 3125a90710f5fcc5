//! Iteration over a tensor.

use crate::errors::raise;
use crate::tensor::PyTensor;
use pyo3::prelude::*;
use sampan_core::{Index, Tensor};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The rows of a tensor, each made when it is asked for.
#[pyclass(name = "Rows", module = "sampan._core", frozen)]
pub struct PyRows {
    tensor: Tensor,
    rows: usize,
    given: AtomicUsize,
    backwards: bool,
}

#[pymethods]
impl PyRows {
    #[new]
    #[pyo3(signature = (tensor, backwards = false))]
    fn new(tensor: PyRef<'_, PyTensor>, backwards: bool) -> PyRows {
        let tensor = tensor.tensor();
        let rows = tensor.shape().first().copied().unwrap_or(0);
        PyRows { tensor, rows, given: AtomicUsize::new(0), backwards }
    }

    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __length_hint__(&self) -> usize {
        self.rows.saturating_sub(self.given.load(Ordering::Relaxed))
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        let i = self.given.fetch_add(1, Ordering::Relaxed);
        if i >= self.rows {
            self.given.store(self.rows, Ordering::Relaxed);
            return Ok(None);
        }
        let i = if self.backwards { self.rows - 1 - i } else { i };
        let row = self.tensor.try_get(Index::from(i as i64)).map_err(raise)?;
        PyTensor::wrap(py, row).map(Some)
    }
}
