//! CPU kernels on slices and strides. This crate knows no `Tensor`: every function takes plain slices, shapes and
//! strides, has been checked by its caller (`sampan-core` infers shapes first), and gives the same bits for any number
//! of threads.

pub mod activation;
pub mod any;
pub mod arg;
pub mod arrange;
pub mod attention;
pub mod batch_norm;
pub mod buffer;
pub mod complex;
pub mod conv;
mod conv_blocks;
mod conv_depthwise;
mod conv_flat;
mod conv_gemm;
mod conv_reduce;
mod conv_winograd;
pub mod copy;
pub mod ctc;
pub mod element;
pub mod elementwise;
pub mod fft;
pub mod float;
pub mod gemm;
pub mod grid_sample;
pub mod index;
pub mod linalg;
pub mod nest;
pub mod norm;
pub mod optim;
pub mod parallel;
pub mod pool;
pub mod recurrent;
pub mod reduce;
pub mod resample;
pub mod rng;
pub mod rnnt;
pub mod scalar;
pub mod scan;
mod simd;
pub mod softmax;
pub mod sort;
pub mod special;
pub mod squared_error;
pub mod unfold;
pub mod view;
pub mod vmath;
pub mod vmath_f32;
pub mod widen;

pub use any::{AnySlice, AnySliceMut, AnyView};
pub use buffer::Buffer;
pub use element::{Bool, Complex64, Complex128, DType, Element, Ordered, bf16, f16};
pub use scalar::Scalar;
pub use view::View;
pub use vmath::Real;
pub use widen::RealElement;
