//! The ops, by family. Each file holds registry entries; everything else is read from those.

pub mod creation;
pub mod elementwise;
pub mod fourier;
pub mod index;
pub mod layout;
pub mod linalg;
pub mod loss;
pub mod nn;
pub mod random;
pub mod reduce;
pub(crate) mod work;

// A family is found by its own name, whichever room it is in.
pub use elementwise::{
    activation, arithmetic, closeness, complex, extremes, logic, math, pairs, piecewise, rounding, special,
    trigonometric,
};
pub use fourier::{fft, signal};
pub use index::{embedding, gather, indexing, masking, scatter};
pub(crate) use layout::windows;
pub use layout::{diagonal, joining, padding, rearrange, regions, shape, slicing};
pub use linalg::{decompositions, einsum, geometry, lu, matmul, products, rank};
pub use loss::{cross_entropy, ctc_loss, loss_class, loss_margin, many_classes, rnnt_loss, squared_error};
pub(crate) use nn::lowering;
pub use nn::{
    attention, channel_moments, channel_norm, conv, decoding, flash_attention, grid_sample, normalization, pool_core,
    pool_sizes, pooling, quantization, recurrent, resample, rnn, sequence, shuffle, softmax, sparse_attention,
    standardize,
};
pub use random::{dropout, random_inplace};
pub use reduce::{histogram, norms, reduction, scan, sorting, statistics};

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
    pub use sampan_macros::op;
}
