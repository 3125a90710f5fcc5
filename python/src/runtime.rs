//! Settings of the process: seeds, default dtype, threads.

use crate::dtype;
use crate::errors::raise;
use pyo3::prelude::*;

/// Starts the random numbers anew.
#[pyfunction]
pub fn seed(seed: u64) {
    sampan_core::random::seed(seed);
}

/// The state of the generator: (seed, position).
#[pyfunction]
pub fn _random_state() -> (u64, u64) {
    sampan_core::random::state()
}

/// Goes back to a state of the generator.
#[pyfunction]
pub fn _set_random_state(seed: u64, position: u64) {
    sampan_core::random::set_state((seed, position));
}

/// The dtype of new float tensors, as its name.
#[pyfunction]
pub fn get_default_dtype() -> &'static str {
    sampan_core::promote::default_dtype().name()
}

/// Sets the dtype of new float tensors.
#[pyfunction]
pub fn set_default_dtype(d: &Bound<'_, PyAny>) -> PyResult<()> {
    sampan_core::promote::set_default_dtype(dtype::read(d)?).map_err(raise)
}

/// Threads that ops use.
#[pyfunction]
pub fn num_threads() -> usize {
    sampan_core::num_threads()
}

/// Sets how many threads ops use.
#[pyfunction]
pub fn set_num_threads(threads: usize) {
    sampan_core::set_num_threads(threads);
}
