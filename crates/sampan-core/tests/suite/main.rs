//! One binary for all integration tests of the core.

// A clone is a handle, and `&[x.clone()]` reads better than `std::slice::from_ref(&x)`.
#![allow(clippy::cloned_ref_to_slice_refs)]

mod alone;
mod amp;
mod arrange;
mod autograd;
mod broadcast;
mod display;
mod documents;
mod elementwise;
mod errors;
mod extremes;
mod formulas;
mod functions;
mod fuzz;
mod golden;
mod images;
mod indexing;
mod listening;
mod matrices;
mod memory;
mod nn_ops;
mod on_gpu;
mod packing;
mod random;
mod registry;
mod tensor;
mod threads;
mod views;
