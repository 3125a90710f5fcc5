//! Tensors, the op registry, dispatch and automatic differentiation of sampan.
//!
//! ```
//! use sampan_core::Tensor;
//! let x = Tensor::new([[1.0f32, 2.0], [3.0, 4.0]]).requires_grad_();
//! let y = x.matmul(&x).tanh().sum(());
//! y.backward();
//! assert_eq!(x.grad().unwrap().shape(), [2, 2]);
//! ```

extern crate self as sampan_core;

pub mod amp;
pub mod autograd;
mod captured;
pub mod class;
pub mod debug;
pub mod device;
pub mod dispatch;
pub mod error;
pub mod flags;
pub mod function;
pub mod gpu;
mod mirror;
pub mod op;
pub mod ops;
pub mod profiler;
pub mod promote;
pub mod random;
pub mod recording;
mod registry;
pub mod sample;
pub mod shape;
pub mod signature;
mod storage;
pub mod tensor;
pub mod value;

pub use autograd::{GradOptions, backward, enable_grad, grad, grad_enabled, no_grad, set_grad_enabled};
pub use captured::{Captured, Line};
pub use device::Device;
pub use error::{Error, Result};
pub use sampan_formula::formula;
pub use sampan_kernels::conv::{Winograd, set_winograd, winograd};
pub use sampan_kernels::parallel::{num_threads, set_num_threads};
pub use sampan_kernels::{Bool, Complex64, Complex128, DType, Element, Ordered, bf16, f16};
pub use shape::{Layout, Shape};
pub use tensor::Tensor;
pub use tensor::indexing::{Index, IntoIndices};
pub use value::{Axes, Dict, Ints, Object, Operand, Scalar, Value};

/// The guide's own example, run as a doc test.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/gpu.md")]
struct Guide;

/// What the macros' output names; not for use by hand.
#[doc(hidden)]
pub mod __private {
    pub use inventory::submit;
    pub use smallvec::smallvec;
}
