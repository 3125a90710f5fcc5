//! One binary for all integration tests of layers, optimizers, schedules and metrics.

mod clip;
mod lr;
mod metric;
mod optim;
mod peer;
