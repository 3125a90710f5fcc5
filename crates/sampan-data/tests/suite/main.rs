//! One binary for all integration tests of the data crate.

mod archives;
mod dataset;
mod datasets;
#[cfg(feature = "download")]
mod download;
mod formula;
mod functions;
mod image;
mod loader;
mod models;
mod parity;
mod random_transforms;
mod sampler;
mod server;
mod text;
mod transforms;
mod vision_ops;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// One test at a time uses the process's generator.
fn alone() -> MutexGuard<'static, ()> {
    static LOCK: Mutex<()> = Mutex::new(());
    LOCK.lock().unwrap_or_else(PoisonError::into_inner)
}
