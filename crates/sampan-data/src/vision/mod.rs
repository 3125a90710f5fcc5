//! Pictures: models that look at them.

pub mod models;
