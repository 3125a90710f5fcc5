//! The built-in layers.

mod batch_norm;
mod bound;
mod common;
mod container;
mod conv;
mod linear;
mod norm;
mod padding;
mod pooling;
mod simple;
mod vision;

pub use batch_norm::*;
pub use common::*;
pub use container::*;
pub use conv::*;
pub use linear::*;
pub use norm::*;
pub use padding::*;
pub use pooling::*;
pub use simple::*;
pub use vision::*;
