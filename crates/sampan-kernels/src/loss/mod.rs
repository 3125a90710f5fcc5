//! Losses in one pass.

pub mod ctc;
pub mod rnnt;
pub mod softmax;
pub mod squared_error;
