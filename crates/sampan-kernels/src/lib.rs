//! CPU kernels on slices and strides. This crate knows no `Tensor`: every function takes plain slices, shapes and
//! strides, has been checked by its caller (`sampan-core` infers shapes first), and gives the same bits for any number
//! of threads.

pub mod buffer;
pub mod element;
pub mod index;
pub mod linalg;
pub mod parallel;
pub mod rng;
pub mod sort;
pub mod view;

pub use buffer::Buffer;
pub use element::{Bool, DType, Element, bf16, f16};
pub use view::View;
