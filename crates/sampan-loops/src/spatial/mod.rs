//! Sampling of images.

pub mod grid_sample;
pub mod pool;
pub mod resample;
pub mod unfold;
