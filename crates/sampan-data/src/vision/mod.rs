//! Pictures: reading and writing them, and Paddle's `vision.transforms`.

pub mod image;
pub mod transforms;
