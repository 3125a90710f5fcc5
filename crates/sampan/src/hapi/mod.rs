//! The high-level API.

mod flops;
mod inspect;
mod summary;

pub use flops::{Flops, flops};
pub use inspect::{InputSpec, LayerCall};
pub use summary::{Summary, summary};
