//! One binary for all integration tests of the data crate.

mod formula;
mod models;
mod parity;
