//! Mixed precision, and the check for numbers that are not finite.

use crate::dtype;
use crate::errors;
use crate::tensor::PyTensor;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use sampan_core::amp::{self, Level, Policy};
use sampan_core::{DType, Device, Error, Result, Scalar, Tensor, gpu, recording};
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

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
pub fn _unscale(
    py: Python<'_>,
    tensors: Vec<PyRef<'_, PyTensor>>,
    scale: PyRef<'_, PyTensor>,
    wide: bool,
) -> PyResult<Option<bool>> {
    // Parameters that other processes have are without values here, and so are their gradients.
    let here = |t: &Tensor| t.grad().is_none_or(|g| g.device() != Device::Meta);
    let tensors: Vec<Tensor> = tensors.iter().map(|t| t.tensor()).filter(here).collect();
    let scale = scale.tensor();
    errors::run(py, move || {
        sampan_core::no_grad(|| {
            if let Some(found) = unscale_on_gpu(&tensors, &scale, wide)? {
                return Ok(found);
            }
            let (tensors, grads): (Vec<Tensor>, Vec<Tensor>) =
                tensors.into_iter().filter_map(|t| t.grad().map(|g| (t, g))).unzip();
            let (unscaled, found) = if recording::on_cpu() {
                // What is found shuts the gate for steps of optimizers, now and each time.
                let again = move |grads: &[Tensor], gate: &AtomicBool| {
                    let (unscaled, found) = unscaled(grads, &scale, wide)?;
                    gate.fetch_or(found, Ordering::Relaxed);
                    Ok(unscaled)
                };
                (recording::act(&grads.iter().collect::<Vec<_>>(), again)?, None)
            } else {
                let (unscaled, found) = unscaled(&grads, &scale, wide)?;
                (unscaled, Some(found))
            };
            tensors.iter().zip(unscaled).for_each(|(t, g)| t.set_grad(Some(g)));
            Ok(found)
        })
    })
}

/// Gradients divided by a number, and whether one of them is not finite then.
fn unscaled(grads: &[Tensor], scale: &Tensor, wide: bool) -> Result<(Vec<Tensor>, bool)> {
    let scale = scale.try_item()?.to_f64();
    let mut found = false;
    let one = |g: &Tensor| {
        // In float32: the inverse of a large scale is not a float16.
        let dtype = if g.dtype() == DType::Float64 { DType::Float64 } else { DType::Float32 };
        let unscaled = g.detach().try_cast(dtype)?.try_multiply(1.0 / scale)?;
        let g = if wide { unscaled } else { unscaled.try_cast(g.dtype())? };
        found |= !all_finite(&g)?;
        Ok(g)
    };
    let unscaled = grads.iter().map(one).collect::<Result<_>>()?;
    Ok((unscaled, found))
}

/// The same in few kernels, if all gradients are on the GPU of the scale. While work is recorded nobody knows what will be
/// found: the answer is then no answer.
fn unscale_on_gpu(tensors: &[Tensor], scale: &Tensor, wide: bool) -> Result<Option<Option<bool>>> {
    let Device::Cuda(_) = scale.device() else { return Ok(None) };
    let mut grads: Vec<Tensor> = Vec::new();
    for t in tensors {
        let Some(mut g) = t.grad() else { continue };
        if g.device() != scale.device() {
            return Ok(None);
        }
        let half = wide && g.dtype().size() == 2;
        if half || !g.is_contiguous() {
            g = g.detach().try_cast(if half { DType::Float32 } else { g.dtype() })?.contiguous();
            t.set_grad(Some(g.clone()));
        }
        grads.push(g);
    }
    let found = sampan_core::device::with(scale.device(), || Tensor::zeros([1], DType::Int64));
    for dtype in [DType::Float16, DType::BFloat16, DType::Float32, DType::Float64] {
        let alike: Vec<&Tensor> = grads.iter().filter(|g| g.dtype() == dtype).collect();
        if !alike.is_empty() && !gpu::unscale(&alike, scale, &found)? {
            return Err(Error::invalid("gradients of a kind that cannot be scaled on a GPU").in_op("GradScaler"));
        }
    }
    if recording::on() {
        return Ok(Some(None));
    }
    // Recorded, it would not be read.
    Ok(Some(Some(sampan_cuda::uncounted(|| found.try_item())? != Scalar::Int(0))))
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
