//! Elementwise formulas on tensors: `dst[i] = f(a[i], b[i], …)` under broadcasting, for every dtype.
//!
//! A formula becomes a [`program`]: a list of vector loops over blocks that stay in the first-level cache. The loops are
//! compiled here once, for six number types ([`tables`]): `f32`, `f64`, `i32`, `i64` and two complex ones. Halves and small
//! integers are widened block by block as they are read, and narrowed as they are written. A formula that is one operation
//! needs no blocks: its loop runs over the tensors themselves. Chains that networks spend their time in are compiled as
//! one loop ([`fused`]); they give the same bits.

mod blocks;
mod fused;
mod integers;
mod program;
mod reader;
mod reals;
mod run;
pub(crate) mod tables;
mod truth;

#[cfg(test)]
mod tests;

pub use run::{map, map_slices};
