//! Pictures: data sets and how their files are read.

pub mod codec;
pub mod datasets;
