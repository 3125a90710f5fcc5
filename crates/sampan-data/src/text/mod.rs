//! Data sets of `paddle.text`: texts and tables.

mod uci_housing;
mod viterbi;

pub use uci_housing::UciHousing;
pub use viterbi::viterbi_decode;
