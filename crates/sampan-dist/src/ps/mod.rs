//! The parameter server: tables of rows on servers, which workers read and change over gRPC.
//!
//! A row is a few numbers and what an optimizer remembers of them. Rows of a sparse table are known by their ids, come into being
//! when they are first asked for, and wait on disk when there are many. A dense table is one whose rows are pieces of
//! one long vector. Row `id` lies on server `id % servers`.

mod client;
mod disk;
mod messages;
mod rows;
mod rule;
mod server;
mod table;

pub use client::{Client, Pushed};
pub use rule::Rule;
pub use server::Server;
pub use table::Spec;

/// The largest message, in bytes: what is larger is cut by the client and refused by the server.
const LIMIT: usize = 64 << 20;
/// Values a client puts into one message.
const PIECE: usize = LIMIT / 8;
