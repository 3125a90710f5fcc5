//! CPU kernels that are loops over elements: elementwise formulas, reductions, indices, orders, random numbers, windows,
//! losses, linear algebra, steps of optimizers; and what every kernel is made with: memory, threads, instruction sets.
//!
//! Like `sampan-kernels`, which re-exports all of it, this crate knows no `Tensor`: every function takes plain slices, shapes
//! and strides, has been checked by its caller, and gives the same bits for any number of threads.

pub mod arg;
pub mod fft;
pub mod index;
pub mod linalg;
pub mod loss;
pub mod map;
pub mod math;
pub mod memory;
pub mod optim;
pub mod parallel;
pub mod reduce;
pub mod rng;
pub mod scan;
#[doc(hidden)]
pub mod simd;
pub mod sort;
pub mod spatial;

pub use loss::{ctc, rnnt, squared_error};
pub use math::{complex, special, vmath, vmath_f32};
#[doc(hidden)]
pub use memory::shared;
pub use memory::{any, arrange, buffer, cast, copy, element, nest, scalar, view, widen};
pub use spatial::{grid_sample, pool, resample, unfold};

pub use any::{AnySlice, AnySliceMut, AnyView};
pub use buffer::Buffer;
pub use element::{Bool, Complex, Complex64, Complex128, DType, Element, Ordered, bf16, f16};
pub use scalar::Scalar;
pub use view::View;
pub use vmath::Real;
pub use widen::RealElement;
