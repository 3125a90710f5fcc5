//! The built-in layers.
//!
//! A layer without parameters is a row of a table: its arguments as Paddle has them and the op that it is (`op_layers!`
//! in `bound.rs`). One with parameters makes them with its [`Base`](crate::Base) and gives them to the op; layers that
//! differ in the number of axes only come from one macro. Either way `#[class]` writes the constructors and the registry
//! entry, and `tests/layers` needs a row with sample arguments.

mod activation;
mod adaptive_softmax;
mod attention;
mod batch_norm;
mod bound;
mod collections;
mod common;
mod conv;
mod hsigmoid;
mod linear;
mod loss;
mod norm;
mod padding;
mod pooling;
mod rnn;
mod rnn_cell;
mod rnn_inputs;
mod rnn_stack;
mod sequential;
mod sync_norm;
mod transformer;
mod transformer_layer;
mod vision;

/// More layers in a row than this are a mistake, which would be noticed only when the memory is full.
const MAX_LAYERS: usize = 10_000;

pub use activation::*;
pub use adaptive_softmax::*;
pub use attention::*;
pub use batch_norm::*;
pub use collections::*;
pub use common::*;
pub use conv::*;
pub use hsigmoid::*;
pub use linear::*;
pub use loss::*;
pub use norm::*;
pub use padding::*;
pub use pooling::*;
pub use rnn::*;
pub use rnn_cell::*;
pub use rnn_stack::*;
pub use sequential::*;
pub use transformer::*;
pub use transformer_layer::*;
pub use vision::*;
