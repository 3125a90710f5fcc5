//! Logs for TensorBoard.

use crate::errors;
use crate::tensor::PyTensor;
use pyo3::prelude::*;
use sampan_io::events::EventWriter;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// Appends events to a new file in a folder, which TensorBoard watches.
#[pyclass(name = "EventWriter", module = "sampan._core", frozen)]
pub struct PyEventWriter(Mutex<EventWriter>);

impl PyEventWriter {
    fn write(
        &self,
        py: Python<'_>,
        f: impl FnOnce(&mut EventWriter) -> sampan_core::Result<()> + Send,
    ) -> PyResult<()> {
        errors::run(py, || f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}

#[pymethods]
impl PyEventWriter {
    #[new]
    fn new(py: Python<'_>, folder: PathBuf) -> PyResult<PyEventWriter> {
        errors::run(py, || EventWriter::create(folder)).map(|w| PyEventWriter(Mutex::new(w)))
    }
    /// The file.
    #[getter]
    fn path(&self) -> PathBuf {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).path().to_path_buf()
    }
    /// A point of a curve.
    fn scalar(&self, py: Python<'_>, tag: &str, value: f32, step: i64) -> PyResult<()> {
        self.write(py, |w| w.scalar(tag, value, step))
    }
    /// A text, which TensorBoard shows as Markdown.
    fn text(&self, py: Python<'_>, tag: &str, text: &str, step: i64) -> PyResult<()> {
        self.write(py, |w| w.text(tag, text, step))
    }
    /// A picture as the bytes of a PNG file.
    fn image(&self, py: Python<'_>, tag: &str, png: &[u8], step: i64) -> PyResult<()> {
        self.write(py, |w| w.image(tag, png, step))
    }
    /// How the values of a tensor are spread.
    fn histogram(&self, py: Python<'_>, tag: &str, values: &Bound<'_, PyTensor>, step: i64) -> PyResult<()> {
        let values = values.borrow().tensor().detach();
        self.write(py, |w| w.histogram(tag, &values, step))
    }
    /// Puts everything said so far into the file.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        self.write(py, EventWriter::flush)
    }
}
