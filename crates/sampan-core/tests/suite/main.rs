//! One binary for all integration tests of the core.

mod arrange;
mod display;
mod golden;
mod indexing;
mod images;
mod registry;
