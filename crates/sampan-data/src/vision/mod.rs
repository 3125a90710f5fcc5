//! Pictures: files, data sets, and Paddle's `vision.transforms`.

pub mod codec;
pub mod datasets;
pub mod image;
pub mod transforms;
