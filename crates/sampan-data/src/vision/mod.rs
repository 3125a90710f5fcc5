//! Pictures: files, data sets, and Paddle's `vision.transforms`, `vision.models` and `vision.ops`.

pub mod datasets;
pub mod image;
pub mod models;
pub mod ops;
mod picture;
pub mod transforms;
