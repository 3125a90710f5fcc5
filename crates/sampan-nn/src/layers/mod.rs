//! The built-in layers.

mod container;
mod conv;
mod linear;
mod simple;

pub use container::*;
pub use conv::*;
pub use linear::*;
pub use simple::*;
