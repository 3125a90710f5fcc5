//! Processes that compute together: where they meet, what they tell each other, and how they are started.

#[cfg(not(unix))]
compile_error!("sampan-dist needs a Unix system");

mod arithmetic;
mod backend;
mod data_parallel;
mod door;
mod engine;
mod gloo;
mod group;
pub mod interrupt;
pub mod job;
mod lane;
pub mod launch;
mod moved;
mod mpi;
mod nccl;
#[cfg(feature = "ps")]
pub mod ps;
mod reducer;
pub mod rpc;
pub mod secret;
mod shared_memory;
mod store;
mod sys;
mod tcp;
mod wire;
pub mod world;

pub use backend::{Action, Arithmetic, Backend, Call, ReduceOp};
pub use data_parallel::DataParallel;
pub use engine::Engine;
pub use group::{Group, Plan};
pub use job::{Job, Options, init_parallel_env, init_parallel_env_with};
pub use lane::Task;
pub use reducer::{Buckets, Reducer};
pub use secret::Secret;
pub use store::{Store, StoreServer};
pub use world::World;
