//! The built-in layers.

mod activation;
mod adaptive_softmax;
mod container;
mod conv;
mod linear;
mod loss;
mod simple;

pub use activation::*;
pub use adaptive_softmax::*;
pub use container::*;
pub use conv::*;
pub use linear::*;
pub use loss::*;
pub use simple::*;
