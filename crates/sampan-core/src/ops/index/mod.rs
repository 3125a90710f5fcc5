//! Elements by index: gathering, scattering, masks, tables.

pub mod embedding;
pub mod gather;
pub mod indexing;
pub mod masking;
pub mod scatter;
