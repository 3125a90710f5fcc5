//! One binary for all integration tests of the core.

mod alone;
mod autograd;
mod display;
mod errors;
mod golden;
mod memory;
mod registry;
mod tensor;
