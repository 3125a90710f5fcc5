//! Processes that compute together: each test starts some, which are this program again.

mod collectives;
mod faults;
mod processes;
mod speed;
mod store;
mod world;
