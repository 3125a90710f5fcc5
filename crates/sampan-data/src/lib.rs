//! Data sets and loaders.

mod loader;
pub mod mnist;
pub mod vision;

pub use loader::{Batch, DataLoader};
pub use mnist::Mnist;
