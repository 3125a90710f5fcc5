//! One binary for all integration tests of graphs.

// A clone is a handle, and `&[x.clone()]` reads better than `std::slice::from_ref(&x)`.
#![allow(clippy::cloned_ref_to_slice_refs)]

mod files;
mod networks;
mod optimizing;
mod registry;
mod tracing;
