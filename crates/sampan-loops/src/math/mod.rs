//! Mathematics of single numbers: what vectorises, special functions, complex numbers.

pub mod complex;
pub mod special;
pub mod vmath;
pub mod vmath_f32;
