//! One binary for all integration tests of graphs.

// A clone is a handle, and `&[x.clone()]` reads better than `std::slice::from_ref(&x)`.
#![allow(clippy::cloned_ref_to_slice_refs)]

mod damage;
mod drawing;
mod files;
mod flow;
mod networks;
mod onnx;
mod onnx_data;
mod optimizing;
mod planning;
mod quantizing;
mod registry;
mod saved_ops;
mod tracing;
