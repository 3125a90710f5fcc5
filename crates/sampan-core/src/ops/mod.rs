//! The ops, by family. Each file holds registry entries; everything else is read from those.

pub mod activation;
pub mod arithmetic;
pub mod attention;
pub mod channel_norm;
pub mod closeness;
pub mod complex;
pub mod conv;
pub mod creation;
pub mod cross_entropy;
pub mod ctc_loss;
pub mod decoding;
pub mod decompositions;
pub mod diagonal;
pub mod dropout;
pub mod einsum;
pub mod elementwise;
pub mod embedding;
pub mod extremes;
pub mod fft;
pub mod flash_attention;
pub mod fourier;
pub mod gather;
pub mod geometry;
pub mod grid_sample;
pub mod histogram;
pub mod indexing;
pub mod joining;
pub mod linalg;
pub mod logic;
pub mod loss;
pub mod loss_class;
pub mod loss_margin;
pub(crate) mod lowering;
pub mod lu;
pub mod many_classes;
pub mod masking;
pub mod math;
pub mod matmul;
pub mod normalization;
pub mod norms;
pub mod padding;
pub mod pairs;
pub mod piecewise;
pub mod pool_core;
pub mod pool_sizes;
pub mod pooling;
pub mod products;
pub mod random;
pub mod random_inplace;
pub mod rank;
pub mod rearrange;
pub mod recurrent;
pub mod reduction;
pub mod regions;
pub mod resample;
pub mod rnn;
pub mod rnnt_loss;
pub mod rounding;
pub mod scan;
pub mod scatter;
pub mod sequence;
pub mod shape;
pub mod shuffle;
pub mod signal;
pub mod slicing;
pub mod softmax;
pub mod sorting;
pub mod sparse_attention;
pub mod special;
pub mod squared_error;
pub mod standardize;
pub mod statistics;
pub mod trigonometric;
pub(crate) mod windows;
pub(crate) mod work;

/// What an op's file starts with.
pub(crate) mod prelude {
    #![allow(unused_imports)]
    pub use crate::autograd::{Grad, Grads};
    pub use crate::dispatch::Cx;
    pub use crate::op::Varying;
    pub use crate::promote::{default_dtype, promote_all, promote_operand, promote_tensors, to_float};
    pub use crate::sample::*;
    pub use crate::shape::{Layout, Shape, Strides, axis as resolve_axis, broadcast};
    pub use crate::{
        Axes, Bool, Complex128, DType, Device, Element, Error, Operand, Ordered, Result, Scalar, Tensor, Value,
    };
    pub use crate::{bail, ensure, sample};
    pub use sampan_formula::formula;
    pub use sampan_kernels::match_dtype;
    pub use sampan_macros::op;
}
