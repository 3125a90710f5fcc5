//! CPU kernels on slices and strides. This crate knows no `Tensor`: every function takes plain slices, shapes and
//! strides, has been checked by its caller (`sampan-core` infers shapes first), and gives the same bits for any number
//! of threads.
//!
//! Here are the kernels that layers are made of: matrix products, convolutions, norms, softmax, attention, recurrent
//! layers. Loops over elements are
//! `sampan-loops`, two crates because they want to be compiled differently (see the workspace's release profile).

pub mod activation;
pub mod attention;
pub mod conv;
pub mod gemm;
pub mod norm;
pub mod planned;
pub mod recurrent;
pub mod softmax;

pub use norm::batch_norm;

pub use sampan_loops::*;
