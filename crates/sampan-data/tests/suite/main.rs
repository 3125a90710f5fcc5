//! The tests of data sets, samplers, the loader and downloads.

mod archives;
mod dataset;
mod datasets;
#[cfg(feature = "download")]
mod download;
mod image;
mod loader;
mod random_transforms;
mod sampler;
mod server;
mod transforms;
mod vision_ops;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// One test at a time uses the process's generator.
fn alone() -> MutexGuard<'static, ()> {
    static LOCK: Mutex<()> = Mutex::new(());
    LOCK.lock().unwrap_or_else(PoisonError::into_inner)
}
