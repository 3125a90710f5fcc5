//! Weights of one network as those of another.

use crate::errors;
use crate::tensor::PyTensor;
use pyo3::prelude::*;
use sampan_align::convert::{self, Convention, Kind, Mapping, Structure, Weight};
use sampan_core::Tensor;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

/// The weights of a network, with the classes of its layers where they are known.
#[pyclass(name = "WeightStructure", module = "sampan._core", frozen)]
pub(crate) struct PyStructure(Structure);

fn convention(name: Option<&str>) -> PyResult<Option<Convention>> {
    let known = |n: &str| {
        Convention::from_name(n).ok_or_else(|| {
            pyo3::exceptions::PyValueError::new_err(format!(
                "(InvalidArgument) convert: weights lie as torch's or as paddle's, not as {n:?}'s."
            ))
        })
    };
    name.map(known).transpose()
}

/// The weights of a model: `(key, class of the layer, own name, shape, tensor or None)` for each.
#[pyfunction]
pub(crate) fn _weights_of(
    name: String,
    lies: Option<&str>,
    weights: Vec<(String, String, String, Vec<usize>, Option<Bound<'_, PyTensor>>)>,
) -> PyResult<PyStructure> {
    let weights = weights.into_iter().map(|(key, class, own_name, shape, tensor)| {
        let tensor: Option<Tensor> = tensor.map(|t| t.borrow().tensor().detach());
        Weight { own_name, tensor, ..Weight::new(key, shape, Kind::of_class(&class)) }
    });
    let weights: Vec<Weight> = weights.collect();
    let told = Convention::from_keys(weights.iter().map(|w| w.key.as_str()));
    Ok(PyStructure(Structure { name, convention: convention(lies)?.or(told), ordered: true, weights }))
}

/// The weights of a file.
#[pyfunction]
pub(crate) fn _weights_in(
    py: Python<'_>,
    path: PathBuf,
    entry: Option<String>,
    lies: Option<&str>,
    model: Option<&PyStructure>,
) -> PyResult<PyStructure> {
    let lies = convention(lies)?;
    let model = model.map(|m| m.0.clone());
    errors::run(py, || convert::read(&path, entry.as_deref(), lies, model.as_ref())).map(PyStructure)
}

// The arguments are one call's, and have names in Python.
#[allow(clippy::too_many_arguments)]
/// What of the target's keys gets which values: the state in order, and the account as JSON and as text.
#[pyfunction]
pub(crate) fn _convert_weights(
    py: Python<'_>,
    source: &PyStructure,
    target: Option<&PyStructure>,
    lies: Option<&str>,
    mapping: &str,
    partial: bool,
    to: Option<PathBuf>,
    template: Option<PathBuf>,
) -> PyResult<(Vec<(String, Py<PyAny>)>, String, String)> {
    let source = source.0.clone();
    let written = to.as_ref().and_then(|path| convert::default_convention(sampan_io::Format::from_path(path)));
    let lies = convention(lies)?.or(written);
    let target = target.map(|t| t.0.clone());
    let converted = errors::run(py, || {
        let mut target = target.unwrap_or_else(|| convert::like_itself(&source, lies));
        target.convention = target.convention.or(lies);
        let converted = convert::convert(&source, &target, &Mapping::parse(mapping)?, partial)?;
        if let Some(path) = to {
            let lies = if template.is_some() { None } else { lies };
            let (state, target) = convert::in_convention(&converted.state, &target, lies)?;
            convert::write(path, &state, &target, template.as_deref())?;
        }
        Ok(converted)
    })?;
    let (json, text) = (converted.report.to_json(), converted.report.to_string());
    let state = converted.state.into_iter().map(|(key, tensor)| Ok((key, PyTensor::wrap(py, tensor)?)));
    Ok((state.collect::<PyResult<_>>()?, json, text))
}

/// Does what a line of the `sampan` command says, its first word the name: 0, 1 for a bad end, 2 for a bad line.
#[pyfunction]
pub(crate) fn _command(py: Python<'_>, line: Vec<OsString>) -> PyResult<u8> {
    // The code itself cannot be read, only compared.
    errors::run(py, || {
        let code = sampan::cli::run(line);
        Ok([0, 2].into_iter().find(|&n| code == ExitCode::from(n)).unwrap_or(1))
    })
}
