//! Work that is recorded once and done again as a whole.

use crate::errors::{self, passing};
use crate::tensor::PyTensor;
use parking_lot::Mutex;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use sampan_core::gpu::Event;
use sampan_core::{Captured, Result, Tensor, recording};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Calls of a function of tensors, each kind of which is recorded at its third time.
#[pyclass(name = "Captured", module = "sampan._core", frozen)]
pub struct PyCaptured {
    captured: Mutex<Captured>,
    /// How many calls more are made with the interpreter's lock before one is timed without it.
    quick: AtomicU32,
}

/// Records of the CPU that take less are done with the interpreter's lock: handing it over takes as long as a few kernels,
/// and a thread that waits for it is let in every five milliseconds anyway.
const QUICK: Duration = Duration::from_micros(50);
/// Calls for which one that was timed stands.
const TRUSTED: u32 = 64;

impl PyCaptured {
    /// What a recorded call gives, if there is one that stands for this one.
    pub fn again(&self, py: Python<'_>, tag: &str, inputs: &[Tensor]) -> PyResult<Option<Vec<Tensor>>> {
        let again = || self.captured.try_lock().map_or(Ok(None), |mut captured| captured.again(tag, inputs));
        let quick = self.quick.load(Ordering::Relaxed);
        if quick > 0 {
            self.quick.store(quick - 1, Ordering::Relaxed);
            return errors::run_here(again);
        }
        errors::run(py, || {
            let began = Instant::now();
            let outputs = again()?;
            let alone = || self.captured.try_lock().is_some_and(|captured| captured.has_one_of_cpu());
            if outputs.is_some() && began.elapsed() < QUICK && alone() {
                self.quick.store(TRUSTED, Ordering::Relaxed);
            }
            Ok(outputs)
        })
    }
}

#[pymethods]
impl PyCaptured {
    /// `source()` says which line of the program is running. With `only_gpu` the functions of the CPU are called.
    #[new]
    fn new(source: Py<PyAny>, only_gpu: bool) -> PyCaptured {
        let line = move || Python::attach(|py| source.call0(py).ok()?.extract::<Option<String>>(py).ok().flatten());
        let captured = if only_gpu { Captured::on_gpus() } else { Captured::default() };
        let captured = Mutex::new(captured.naming_lines(Arc::new(line)));
        PyCaptured { captured, quick: AtomicU32::new(0) }
    }

    /// Calls `function` with a list of tensors, which gives a list of tensors, or does again what it did.
    fn call(
        &self,
        py: Python<'_>,
        tag: &str,
        tensors: Vec<PyRef<'_, PyTensor>>,
        function: &Bound<'_, PyAny>,
    ) -> PyResult<Vec<Py<PyAny>>> {
        let inputs: Vec<Tensor> = tensors.iter().map(|t| t.tensor()).collect();
        let run = |given: &[Tensor]| -> Result<Vec<Tensor>> {
            let call = || -> PyResult<Vec<Tensor>> {
                let given = given.iter().map(|t| PyTensor::wrap(py, t.clone())).collect::<PyResult<Vec<_>>>()?;
                let outputs = function.call1((given,))?;
                let outputs: Vec<PyRef<'_, PyTensor>> = outputs.extract()?;
                Ok(outputs.iter().map(|t| t.tensor()).collect())
            };
            call().map_err(passing)
        };
        if let Some(outputs) = self.again(py, tag, &inputs)? {
            return outputs.into_iter().map(|t| PyTensor::wrap(py, t)).collect();
        }
        // What is recorded now may take longer.
        self.quick.store(0, Ordering::Relaxed);
        let mut captured = self.captured.try_lock().ok_or_else(|| {
            PyRuntimeError::new_err(
                "(PreconditionNotMet) a recorded function is called from within itself or from two threads.",
            )
        })?;
        let outputs = errors::run_here(|| captured.call(tag, &inputs, run))?;
        outputs.into_iter().map(|t| PyTensor::wrap(py, t)).collect()
    }

    /// Why calls are not recorded, if one could not be.
    #[getter]
    fn why_not(&self) -> Option<String> {
        self.captured.lock().why_not().map(str::to_string)
    }

    /// The number of kernels, copies and fills, or on the CPU of calls, of each record.
    fn nodes(&self) -> Vec<usize> {
        self.captured.lock().nodes()
    }

    /// The names of the calls that the CPU makes in each record.
    fn describe(&self) -> Vec<Vec<&'static str>> {
        self.captured.lock().describe()
    }

    /// Forgets what was recorded.
    fn reset(&self) {
        self.captured.lock().reset();
    }
}

/// Is work being recorded on this thread?
#[pyfunction]
pub fn _is_recording() -> bool {
    recording::on()
}

/// Calls `function(shut)` after each time that the work that is recorded now is done; `shut` says whether steps of
/// optimizers were left out.
#[pyfunction]
pub fn _afterwards(function: Py<PyAny>) -> PyResult<()> {
    let action = move |shut| Python::attach(|py| function.call1(py, (shut,))).map(|_| ()).map_err(passing);
    errors::run_here(|| recording::afterwards(action))
}

/// A moment in the work of a GPU.
#[pyclass(name = "GpuEvent", module = "sampan._core", frozen)]
pub struct PyEvent(Event);

#[pymethods]
impl PyEvent {
    #[new]
    fn new(number: u8) -> PyResult<PyEvent> {
        errors::run_here(|| Event::new(number)).map(PyEvent)
    }
    fn record(&self) -> PyResult<()> {
        errors::run_here(|| self.0.record())
    }
    fn query(&self) -> PyResult<bool> {
        errors::run_here(|| self.0.is_over())
    }
    fn synchronize(&self, py: Python<'_>) -> PyResult<()> {
        errors::run(py, || self.0.wait())
    }
    /// Milliseconds to a later event.
    fn elapsed_time(&self, py: Python<'_>, end: &Bound<'_, PyEvent>) -> PyResult<f32> {
        let end = end.get();
        errors::run(py, || self.0.milliseconds_to(&end.0))
    }
}
