//! One binary for all integration tests of the core.

mod display;
mod golden;
mod nn_ops;
mod registry;
