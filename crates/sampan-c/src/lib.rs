//! Saved networks from C: the functions of `include/sampan.h`, which says what they promise.
//!
//! Nothing unwinds into the caller, and a pointer is looked at only after it was compared with null. What cannot be checked
//! (that a pointer which is not null points to what its type says) is the caller's promise, as everywhere in C.

mod errors;
mod model;
mod types;

pub use errors::{Status, sampan_last_error};
pub use model::{
    Model, Results, sampan_model_clone, sampan_model_free, sampan_model_input, sampan_model_inputs, sampan_model_load,
    sampan_model_output, sampan_model_outputs, sampan_model_run, sampan_model_run_into, sampan_results_count,
    sampan_results_free, sampan_results_get,
};
pub use types::{Buffer, Port, Tensor, sampan_dtype_size};

use std::ffi::c_char;

/// The version of the library.
#[unsafe(no_mangle)]
pub extern "C" fn sampan_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// How many threads compute.
#[unsafe(no_mangle)]
pub extern "C" fn sampan_threads() -> usize {
    errors::or_default(sampan_core::num_threads)
}

/// Sets how many threads compute.
#[unsafe(no_mangle)]
pub extern "C" fn sampan_set_threads(threads: usize) -> Status {
    errors::status(|| {
        if !(1..=1024).contains(&threads) {
            return Err(sampan_core::Error::range(format!("1 to 1024 threads can compute, not {threads}")));
        }
        sampan_core::set_num_threads(threads);
        Ok(())
    })
}
