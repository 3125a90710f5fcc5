//! Programs as `.pdmodel` has them.

mod flow;
mod read;
mod read_flow;
mod write;

pub(crate) use read::{constant, decode};
pub(crate) use write::encode;
