//! The built-in layers.
//!
//! A layer without parameters is a row of a table: its arguments as Paddle has them and the op that it is (`op_layers!`
//! in `bound.rs`). One with parameters makes them with its [`Base`](crate::Base) and gives them to the op; layers that
//! differ in the number of axes only come from one macro. Either way `#[class]` writes the constructors and the registry
//! entry, and `tests/layers` needs a row with sample arguments.

mod batch_norm;
mod bound;
mod collections;
mod common;
mod conv;
mod linear;
mod norm;
mod padding;
mod pooling;
mod sequential;
mod simple;
mod vision;

pub use batch_norm::*;
pub use collections::*;
pub use common::*;
pub use conv::*;
pub use linear::*;
pub use norm::*;
pub use padding::*;
pub use pooling::*;
pub use sequential::*;
pub use simple::*;
pub use vision::*;
