//! The border to the operating system: memory that processes share, waiting for a word in it, watching processes, waiting
//! for sockets. Beside it only `shared_memory`, which keeps the turns of that memory, has `unsafe`.

mod futex;
mod memory;
mod process;
mod socket;

pub use memory::{Segment, SegmentName};
pub use process::{Watched, die_with_parent, machine, signal};
pub use socket::{Interest, keep_alive, poll, wake_at};
