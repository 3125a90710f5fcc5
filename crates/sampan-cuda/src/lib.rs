//! The GPU behind `sampan-core`: memory, streams and kernels that are compiled at run time. Knows no Tensor.
//!
//! Nothing of CUDA is needed to build this, or to run a program on the CPU: the driver, the compiler (NVRTC) and the product
//! library (cuBLASLt) are looked for when a GPU is first asked for, and what is missing is said in one sentence
//! ([`Missing`]).
//!
//! All work of a device goes to one stream in the order of the calls; memory that is given back may be used again at once,
//! since whatever used it comes earlier on that stream.

pub mod affine;
mod alarm;
pub mod blas;
mod compile;
mod device;
mod direct;
pub mod dnn;
mod driver;
mod event;
mod fault;
mod feed;
mod graph;
pub mod index;
mod launch;
mod library;
pub mod many;
pub mod map;
mod memory;
pub mod nccl;
mod nvrtc;
pub mod optim;
mod pinned;
pub mod pool;
pub mod precision;
pub mod random;
pub mod recurrent;
pub mod reduce;
pub mod rows;
pub mod sequence;
pub mod small;
mod spelling;
#[cfg(test)]
mod stand_in;
mod view;

pub use compile::Kernel;
pub use device::{Device, Info, count, device, info, uncounted, waits, watch_waits};
pub use event::Event;
pub use fault::{Fault, Missing};
pub use feed::Feed;
pub use graph::{Graph, Recorder};
pub use launch::{Argument, Grid};
pub use library::look_in;
pub use memory::{Block, Memory};
pub use view::View;
