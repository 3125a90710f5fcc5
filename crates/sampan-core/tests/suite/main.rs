//! One binary for all integration tests of the core.

mod display;
mod elementwise;
mod golden;
mod registry;
