//! The high-level API: a network with optimizer, loss and metrics, trained in one call.

mod callback;
pub mod callbacks;
mod checkpoint;
mod fit;
mod flops;
mod inspect;
mod model;
mod summary;

pub use callback::{Callback, Logs};
pub use checkpoint::{Contents, read as read_checkpoint};
pub use fit::{Fit, Outcome};
pub use flops::{Flops, flops};
pub use inspect::{InputSpec, LayerCall};
pub use model::{BatchReport, Loss, LossFn, Model, Position, loss_fn};
pub use summary::{Summary, summary};
