//! The ops, by family. Each file holds registry entries; everything else is read from those.

pub mod standardize;
pub mod recurrent;
pub mod loss_class;
pub mod ctc_loss;
pub mod activation;
pub mod arithmetic;
pub mod closeness;
pub mod attention;
pub mod conv;
pub mod creation;
pub mod decompositions;
pub mod diagonal;
pub mod einsum;
pub mod elementwise;
pub mod embedding;
pub mod extremes;
pub mod logic;
pub mod gather;
pub mod linalg;
pub mod lu;
pub mod indexing;
pub(crate) mod lowering;
pub mod masking;
pub mod geometry;
pub mod histogram;
pub mod joining;
pub mod math;
pub mod matmul;
pub mod norms;
pub mod padding;
pub mod pool_core;
pub mod pool_sizes;
pub mod piecewise;
pub mod pooling;
pub mod grid_sample;
pub mod resample;
pub mod shuffle;
pub mod cross_entropy;
pub mod dropout;
pub mod loss;
pub mod loss_margin;
pub mod normalization;
pub mod pairs;
pub mod products;
pub mod random;
pub mod random_inplace;
pub mod rearrange;
pub mod rank;
pub mod reduction;
pub mod scan;
pub mod rounding;
pub mod special;
pub mod trigonometric;
pub mod scatter;
pub mod shape;
pub mod slicing;
pub(crate) mod windows;
pub mod regions;
pub mod sorting;
pub mod softmax;
pub mod statistics;

/// What an op's file starts with.
pub(crate) mod prelude {
    #![allow(unused_imports)]
    pub use crate::autograd::{Grad, Grads};
    pub use crate::dispatch::Cx;
    pub use crate::op::Varying;
    pub use crate::promote::{default_dtype, promote_all, promote_operand, promote_tensors, to_float};
    pub use crate::sample::*;
    pub use crate::shape::{Layout, Shape, Strides, axis as resolve_axis, broadcast};
    pub use crate::{Axes, Bool, DType, Device, Element, Error, Operand, Result, Scalar, Tensor, Value};
    pub use crate::{bail, ensure, sample};
    pub use sampan_kernels::{match_dtype, real_fn};
    pub use sampan_macros::op;
}
