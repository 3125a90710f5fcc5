//! One binary for all integration tests of the core.

mod arrange;
mod display;
mod golden;
mod indexing;
mod matrices;
mod images;
mod registry;
