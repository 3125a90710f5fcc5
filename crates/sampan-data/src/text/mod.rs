//! Data sets of `paddle.text`: texts and tables.

mod uci_housing;

pub use uci_housing::UciHousing;
