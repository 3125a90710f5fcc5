//! Checkpoints that many processes write together.

use crate::dtype::PyDType;
use crate::errors;
use crate::tensor::PyTensor;
use pyo3::prelude::*;
use sampan_core::DType;
use sampan_io::distcp::{self, Metadata, Piece, Wanted};
use std::path::PathBuf;

/// What lies in a folder, as its metadata says.
#[pyclass(name = "Checkpoint", module = "sampan._core", frozen)]
pub struct PyCheckpoint {
    folder: PathBuf,
    metadata: Metadata,
}

/// Name, offset, extents, dtype, extents of the whole, which elements, file.
type Told = (String, Vec<usize>, Vec<usize>, String, Vec<usize>, Option<(usize, usize)>, String);

#[pymethods]
impl PyCheckpoint {
    /// Writes the metadata of a folder.
    #[staticmethod]
    fn write(py: Python<'_>, path: PathBuf, pieces: Vec<Told>, paths: Vec<(String, Vec<String>)>) -> PyResult<()> {
        errors::run(py, move || {
            let piece = |(key, offset, shape, dtype, whole, range, file): Told| {
                let dtype = DType::from_name(&dtype).expect("it is the name of a tensor's dtype");
                Piece { key, offset, shape, dtype, whole, range, file }
            };
            let pieces = pieces.into_iter().map(piece).collect();
            distcp::save_metadata(path, &Metadata { pieces, paths })
        })
    }

    /// Reads the metadata of a folder.
    #[staticmethod]
    fn open(py: Python<'_>, path: PathBuf) -> PyResult<PyCheckpoint> {
        let folder = path.parent().map(PathBuf::from).unwrap_or_default();
        let metadata = errors::run(py, move || distcp::load_metadata(path))?;
        Ok(PyCheckpoint { folder, metadata })
    }

    /// Name, extents and dtype of each tensor.
    fn tensors(&self, py: Python<'_>) -> Vec<(String, Vec<usize>, Py<PyDType>)> {
        let mut found: Vec<(String, Vec<usize>, Py<PyDType>)> = Vec::new();
        for piece in &self.metadata.pieces {
            if found.last().is_none_or(|(key, ..)| *key != piece.key) {
                found.push((piece.key.clone(), piece.whole.clone(), crate::dtype::object(py, piece.dtype)));
            }
        }
        found
    }

    /// The values of boxes, `(name, offset, extents)`.
    fn read(&self, py: Python<'_>, wanted: Vec<(String, Vec<usize>, Vec<usize>)>) -> PyResult<Vec<Py<PyAny>>> {
        let wanted: Vec<_> = wanted.into_iter().map(|(key, offset, shape)| Wanted { key, offset, shape }).collect();
        let found = errors::run(py, || distcp::read(&self.folder, &self.metadata, &wanted))?;
        found.into_iter().map(|tensor| PyTensor::wrap(py, tensor)).collect()
    }
}
