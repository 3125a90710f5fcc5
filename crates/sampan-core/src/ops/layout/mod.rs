//! Shapes and places: views, joining, cutting, padding.

pub mod diagonal;
pub mod joining;
pub mod padding;
pub mod rearrange;
pub mod regions;
pub mod shape;
pub mod slicing;
pub(crate) mod windows;
