//! The built-in layers.

mod activation;
mod adaptive_softmax;
mod attention;
mod container;
mod conv;
mod linear;
mod loss;
mod rnn;
mod rnn_cell;
mod rnn_stack;
mod simple;
mod transformer;
mod transformer_layer;

pub use activation::*;
pub use adaptive_softmax::*;
pub use attention::*;
pub use container::*;
pub use conv::*;
pub use linear::*;
pub use loss::*;
pub use rnn::*;
pub use rnn_cell::*;
pub use rnn_stack::*;
pub use simple::*;
pub use transformer::*;
pub use transformer_layer::*;
