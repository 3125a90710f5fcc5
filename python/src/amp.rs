//! Mixed precision, and the check for numbers that are not finite.

use crate::dtype;
use crate::errors;
use crate::tensor::PyTensor;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use sampan_core::amp::{self, Level, Policy};
use sampan_core::{DType, Result, Scalar, Tensor};
use std::collections::HashSet;
use std::sync::Arc;

/// Which ops are computed in which precision.
#[pyclass(name = "AmpPolicy", module = "sampan._core", frozen)]
pub struct PyPolicy(Arc<Policy>);

#[pymethods]
impl PyPolicy {
    #[new]
    fn new(
        dtype: &Bound<'_, PyAny>,
        level: &str,
        white: HashSet<String>,
        black: HashSet<String>,
        use_promote: bool,
    ) -> PyResult<PyPolicy> {
        let level = match level {
            "O1" => Level::O1,
            "O2" => Level::O2,
            "OD" => Level::OD,
            other => return Err(PyValueError::new_err(format!("(InvalidArgument) there is no level {other:?}."))),
        };
        Ok(PyPolicy(Arc::new(Policy { dtype: dtype::read(dtype)?, level, white, black, use_promote })))
    }
    #[getter]
    fn dtype(&self) -> &'static str {
        self.0.dtype.name()
    }
}

/// Switches mixed precision of this thread on or, with None, off; gives back what was there before.
#[pyfunction]
pub fn _swap_amp(policy: Option<PyRef<'_, PyPolicy>>) -> Option<PyPolicy> {
    amp::set_level(policy.map(|p| p.0.clone())).map(PyPolicy)
}

/// The policy of this thread, or None.
#[pyfunction]
pub fn _amp_policy() -> Option<PyPolicy> {
    amp::level().map(PyPolicy)
}

/// Divides the gradients of tensors by a number; is any of them not finite? They stay in float32 if `wide`, where a half
/// that was scaled down may not be a half any more.
#[pyfunction]
pub fn _unscale(py: Python<'_>, tensors: Vec<PyRef<'_, PyTensor>>, scale: f64, wide: bool) -> PyResult<bool> {
    let tensors: Vec<Tensor> = tensors.iter().map(|t| t.tensor()).collect();
    errors::run(py, move || {
        sampan_core::no_grad(|| {
            let mut found = false;
            for t in tensors {
                let Some(g) = t.grad() else { continue };
                // In float32: the inverse of a large scale is not a float16.
                let dtype = if g.dtype() == DType::Float64 { DType::Float64 } else { DType::Float32 };
                let unscaled = g.detach().try_cast(dtype)?.try_multiply(1.0 / scale)?;
                let g = if wide { unscaled } else { unscaled.try_cast(g.dtype())? };
                found |= !all_finite(&g)?;
                t.set_grad(Some(g));
            }
            Ok(found)
        })
    })
}

fn all_finite(t: &Tensor) -> Result<bool> {
    Ok(t.try_isfinite()?.try_all(())?.try_item()? == Scalar::Bool(true))
}

/// How many elements are NaN, infinite and zero.
pub fn count_numerics(t: &Tensor) -> (usize, usize, usize) {
    let values = t.detach().to_f64_vec();
    let count = |f: fn(&f64) -> bool| values.iter().filter(|v| f(v)).count();
    (count(|v| v.is_nan()), count(|v| v.is_infinite()), count(|v| *v == 0.0))
}

/// How many elements of a tensor are NaN, infinite and zero.
#[pyfunction]
pub fn _count_numerics(py: Python<'_>, tensor: PyRef<'_, PyTensor>) -> PyResult<(usize, usize, usize)> {
    let t = tensor.tensor();
    errors::run(py, move || Ok(count_numerics(&t)))
}

/// Checks every op's output for NaN and infinity from now on, or no longer; gives back what it was.
#[pyfunction]
pub fn _set_check_nan_inf(on: bool) -> bool {
    let before = sampan_core::flags::check_nan_inf();
    sampan_core::flags::set_check_nan_inf(on);
    before
}
