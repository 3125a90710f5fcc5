//! Devices: names, places, and what is asked of a GPU.

use crate::errors::{self, raise};
use crate::tensor::PyTensor;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use sampan_core::{Device, device, gpu};

/// The device that a place or its name means; an error where there is none of it.
pub fn read(place: &Bound<'_, PyAny>) -> PyResult<Device> {
    let text = place.str()?;
    let text = text.to_str()?;
    let name = text.strip_prefix("Place(").and_then(|t| t.strip_suffix(')')).unwrap_or(text);
    let kind = name.split(':').next().unwrap_or_default();
    let index = name.strip_prefix(kind).and_then(|rest| rest.strip_prefix(':'));
    let known = matches!(kind, "cpu" | "gpu" | "cuda" | "gpu_pinned" | "dcu" | "xpu" | "npu" | "ipu" | "custom_cpu");
    if !known || index.is_some_and(|i| i.parse::<u16>().is_err()) {
        return Err(PyValueError::new_err(format!(
            "(InvalidArgument) a device is written 'cpu', 'gpu' or 'gpu:0', got {}.",
            place.repr()?
        )));
    }
    let missing = |why: String| {
        let why = why.trim_end_matches('.');
        let here = match gpu::count() {
            Ok(n) => (0..n).map(|i| format!(", gpu:{i}")).collect(),
            Err(_) => String::new(),
        };
        PyValueError::new_err(format!(
            "(Unavailable) {name} is not here: {why}. Devices here: cpu{here}. Hint: set_device('cpu')."
        ))
    };
    match kind {
        "cpu" => Ok(Device::Cpu),
        // Memory of the host that a GPU can reach is memory of the host.
        "gpu_pinned" => gpu::count().map(|_| Device::Cpu).map_err(|e| missing(e.message().to_string())),
        "gpu" | "cuda" => {
            let number = index.and_then(|i| i.parse::<u8>().ok()).unwrap_or_else(|| match device::default() {
                Device::Cuda(number) => number,
                _ => 0,
            });
            errors::run(place.py(), move || Ok(Device::named(&format!("gpu:{number}"))))?
                .map_err(|e| missing(e.message().to_string()))
        }
        _ => Err(missing("this build computes on the processor and on NVIDIA's GPUs".into())),
    }
}

/// The name of the device that a place or its name means; an error where there is none of it.
#[pyfunction(name = "_check_place")]
pub fn check_place(place: &Bound<'_, PyAny>) -> PyResult<String> {
    Ok(read(place)?.to_string())
}

/// Chooses the device on which tensors are made; gives its name.
#[pyfunction]
pub fn _set_device(place: &Bound<'_, PyAny>) -> PyResult<String> {
    let device = read(place)?;
    device::set_default(device);
    Ok(device.to_string())
}

/// The device on which tensors are made.
#[pyfunction]
pub fn _get_device() -> String {
    device::default().to_string()
}

/// The name of the device that a tensor lies on.
#[pyfunction]
pub fn _device_of(t: &Bound<'_, PyTensor>) -> String {
    t.borrow().tensor().device().to_string()
}

/// The version of cuDNN, if it is installed.
#[pyfunction]
pub fn _cudnn_version() -> Option<i32> {
    gpu::cudnn_version()
}

/// A tensor on a device, with its history.
#[pyfunction]
pub fn _move(t: &Bound<'_, PyTensor>, name: &str) -> PyResult<Py<PyAny>> {
    let (from, name) = (t.borrow().tensor(), name.to_string());
    let stopped = from.stop_gradient();
    let to = errors::run(t.py(), move || from.try_to_device(&name))?;
    to.set_stop_gradient(stopped);
    PyTensor::wrap(t.py(), to)
}

/// Moves a parameter or tensor to a device in its place, with its gradient.
#[pyfunction]
pub fn _move_in_place(t: &Bound<'_, PyTensor>, place: &Bound<'_, PyAny>) -> PyResult<()> {
    let (old, to) = (t.borrow().tensor(), read(place)?.to_string());
    if old.device().to_string() == to {
        return Ok(());
    }
    let new = errors::run(t.py(), move || {
        let new = old.detach().try_to_device(&to)?;
        new.set_stop_gradient(old.stop_gradient());
        new.set_persistable(old.persistable());
        new.set_name(old.name());
        if let Some(g) = old.grad() {
            new.set_grad(Some(g.detach().try_to_device(&to)?));
        }
        Ok(new)
    })?;
    t.get().replace(new);
    Ok(())
}

/// How many GPUs there are, and why none if so.
#[pyfunction]
pub fn _gpu_count() -> (usize, String) {
    match gpu::count() {
        Ok(n) => (n, String::new()),
        Err(why) => (0, why.message().to_string()),
    }
}

/// Folders in which NVIDIA's libraries are looked for first.
#[pyfunction]
pub fn _gpu_folders(folders: Vec<std::path::PathBuf>) {
    gpu::look_in(folders);
}

/// Name, capability, multiprocessors and bytes of memory of a GPU.
#[pyfunction]
pub fn _gpu_info(number: u8) -> PyResult<(String, (i32, i32), i32, usize)> {
    gpu::info(number).map(|i| (i.name, i.capability, i.multiprocessors, i.memory)).map_err(raise)
}

/// Bytes that tensors hold on a GPU, that are reserved there, and the most of both.
#[pyfunction]
pub fn _gpu_memory(number: u8) -> PyResult<(usize, usize, usize, usize)> {
    let m = gpu::memory(number).map_err(raise)?;
    Ok((m.allocated(), m.reserved(), m.most_allocated(), m.most_reserved()))
}

/// Starts the peaks of a GPU's memory anew.
#[pyfunction]
pub fn _gpu_reset_peak(number: u8) -> PyResult<()> {
    gpu::memory(number).map(|m| m.forget_most()).map_err(raise)
}

/// Gives memory of a GPU that is kept for reuse back to it.
#[pyfunction]
pub fn _gpu_release(py: Python<'_>, number: u8) -> PyResult<()> {
    errors::run(py, move || gpu::release(number))
}

/// Waits for all work of a GPU.
#[pyfunction]
pub fn _gpu_synchronize(py: Python<'_>, number: u8) -> PyResult<()> {
    errors::run(py, move || gpu::synchronize(number))
}

/// How often the CPU stood in for a GPU since the last time this was asked, by op.
#[pyfunction]
pub fn _gpu_stood_in() -> Vec<(&'static str, u64)> {
    gpu::take_stood_in().into_iter().collect()
}

/// Lets a GPU use kernels whose sums depend on chance, where they are faster, or forbids it.
#[pyfunction]
pub fn _set_deterministic(on: bool) {
    sampan_core::flags::set_deterministic(on);
}

/// May products and convolutions of float32 numbers be rounded to TF32?
#[pyfunction]
pub fn _gpu_rounding() -> (bool, bool) {
    gpu::rounding()
}

/// Says whether products and convolutions of float32 numbers may be rounded to TF32.
#[pyfunction]
pub fn _gpu_set_rounding(products: bool, convolutions: bool) {
    gpu::set_rounding(products, convolutions);
}
