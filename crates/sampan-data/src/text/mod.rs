//! Paddle's `text`: data sets of texts and tables, and the decoding of tags.

mod uci_housing;
mod viterbi;

pub use uci_housing::UciHousing;
pub use viterbi::{ViterbiDecoder, ViterbiDecoderOpts, viterbi_decode};
