//! One binary for all integration tests of the core.

mod display;
mod golden;
mod matrices;
mod registry;
