//! One binary for all integration tests of the core.

mod alone;
mod arrange;
mod autograd;
mod broadcast;
mod display;
mod elementwise;
mod errors;
mod golden;
mod images;
mod indexing;
mod matrices;
mod memory;
mod nn_ops;
mod registry;
mod tensor;
mod threads;
