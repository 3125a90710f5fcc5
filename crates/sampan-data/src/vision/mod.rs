//! Pictures: reading and writing them, Paddle's `vision.transforms`, and the boxes of `vision.ops`.

pub mod image;
pub mod ops;
pub mod transforms;
