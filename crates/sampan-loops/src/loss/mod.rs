//! Losses in one pass.

pub mod ctc;
pub mod rnnt;
pub mod squared_error;
