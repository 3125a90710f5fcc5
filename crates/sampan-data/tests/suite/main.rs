//! The tests of data sets, samplers, the loader and downloads.

mod archives;
mod dataset;
mod datasets;
#[cfg(feature = "download")]
mod download;
mod loader;
mod sampler;
mod server;
