//! One binary for all integration tests of the layers.

// A clone is a handle, and `&[x.clone()]` reads better than `std::slice::from_ref(&x)`.
#![allow(clippy::cloned_ref_to_slice_refs)]

mod behaviour;
mod containers;
mod golden;
mod init;
mod loss;
mod registry;
mod rnn;
mod table;
mod transformer;
mod utils;
