//! sampan: dynamic-graph deep learning with a Rust core.
//!
//! This crate gathers the others: [`Tensor`] and its ops, [`nn`] layers and optimizers, [`data`] sets and loaders,
//! [`distributed`] processes, and the `sampan` command. Programs begin with [`use sampan::prelude::*`](prelude).

pub mod cli;
pub mod hapi;
pub mod lenet;
pub mod main_job;
pub mod plot;
pub mod prelude;
pub mod profiler;
pub mod progress;
pub mod run_log;

pub use sampan_align as align;
pub use sampan_core::{self as core, *};
pub use sampan_data as data;
pub use sampan_dist as distributed;
pub use sampan_graph as graph;
pub use sampan_io::{self as io, load, save};
pub use sampan_nn as nn;

/// The README's own examples, run as doc tests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// The programs of the page on deployment.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/deploy.md")]
struct Deploy;

/// The tutorial's programs, run as doc tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/tutorial.md")]
struct Tutorial;

/// The program of the page on processes, run as a doc test.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/distributed.md")]
struct Distributed;
