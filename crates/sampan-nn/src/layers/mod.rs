//! The built-in layers.

mod basic;
mod container;

pub use basic::{Conv2D, Flatten, Linear, MaxPool2D, ReLU};
pub use container::Sequential;
