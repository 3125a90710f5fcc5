//! CPU kernels on slices and strides. This crate knows no `Tensor`: every function takes plain slices, shapes and
//! strides, has been checked by its caller (`sampan-core` infers shapes first), and gives the same bits for any number
//! of threads.

pub mod activation;
pub mod arg;
pub mod attention;
pub mod conv;
pub mod fft;
pub mod gemm;
pub mod index;
pub mod linalg;
pub mod loss;
pub mod map;
pub mod math;
pub mod memory;
pub mod norm;
pub mod optim;
pub mod parallel;
pub mod recurrent;
pub mod reduce;
pub mod rng;
pub mod scan;
mod simd;
pub mod sort;
pub mod spatial;

pub use loss::{ctc, rnnt, softmax, squared_error};
pub use math::{complex, special, vmath, vmath_f32};
pub(crate) use memory::shared;
pub use memory::{any, arrange, buffer, cast, copy, element, nest, scalar, view, widen};
pub use norm::batch_norm;
pub use spatial::{grid_sample, pool, resample, unfold};

pub use any::{AnySlice, AnySliceMut, AnyView};
pub use buffer::Buffer;
pub use element::{Bool, Complex64, Complex128, DType, Element, Ordered, bf16, f16};
pub use scalar::Scalar;
pub use view::View;
pub use vmath::Real;
pub use widen::RealElement;
