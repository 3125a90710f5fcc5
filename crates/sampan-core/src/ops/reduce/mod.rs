//! Many elements to one: sums, running sums, orders, statistics.

pub mod histogram;
pub mod norms;
pub mod reduction;
pub mod scan;
pub mod sorting;
pub mod statistics;
