//! One binary for all integration tests of layers, optimizers, schedules and metrics.

// A clone is a handle, and `&[x.clone()]` reads better than `std::slice::from_ref(&x)`.
#![allow(clippy::cloned_ref_to_slice_refs)]

mod behaviour;
mod clip;
mod containers;
mod decode;
mod golden;
mod init;
mod invoke;
mod loss;
mod lr;
mod metric;
mod optim;
mod peer;
mod registry;
mod rnn;
mod table;
mod transformer;
mod utils;
