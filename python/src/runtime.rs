//! Settings of the process: seeds, default dtype, threads.

use crate::dtype;
use crate::errors::raise;
use pyo3::prelude::*;
use sampan_core::tensor::{self, PrintOptions, print_options};

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

/// The next 64 random bits.
#[pyfunction]
pub fn _random_bits() -> u64 {
    let (seed, position) = sampan_core::random::reserve(1);
    sampan_core::random::derive(seed, position, 0)
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

/// Sets how tensors are printed; what is None stays as it is.
#[pyfunction]
#[pyo3(signature = (precision = None, threshold = None, edgeitems = None, sci_mode = None, linewidth = None))]
pub fn set_printoptions(
    precision: Option<usize>,
    threshold: Option<usize>,
    edgeitems: Option<usize>,
    sci_mode: Option<bool>,
    linewidth: Option<usize>,
) {
    let now = print_options();
    tensor::set_printoptions(PrintOptions {
        precision: precision.unwrap_or(now.precision).min(40),
        threshold: threshold.unwrap_or(now.threshold),
        edgeitems: edgeitems.unwrap_or(now.edgeitems),
        sci_mode: sci_mode.unwrap_or(now.sci_mode),
        linewidth: linewidth.unwrap_or(now.linewidth),
    });
}

/// Is every op's output checked for NaN and infinity?
#[pyfunction]
pub fn _check_nan_inf() -> bool {
    sampan_core::flags::check_nan_inf()
}

/// Bytes that tensors hold, and the most they held at once.
#[pyfunction]
pub fn _memory() -> (usize, usize) {
    (sampan_kernels::buffer::bytes_in_use(), sampan_kernels::buffer::peak_bytes())
}

/// Starts the peak of memory anew.
#[pyfunction]
pub fn _reset_peak() {
    sampan_kernels::buffer::reset_peak();
}

/// Gives recycled memory back to the system.
#[pyfunction]
pub fn _release_cache() {
    sampan_kernels::buffer::release_cache();
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
