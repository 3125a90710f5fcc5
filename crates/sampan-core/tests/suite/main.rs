//! One binary for all integration tests of the core.

mod golden;
mod registry;
