//! Layers, initializers and optimizers.
//!
//! ```
//! use sampan_nn::{Apply, Layer, Linear, Members, SGD};
//! use sampan_core::{Result, Tensor};
//!
//! #[derive(Layer)]
//! struct Net { fc1: Linear, fc2: Linear }
//!
//! impl Layer for Net {
//!     fn forward(&self, x: &Tensor) -> Result<Tensor> {
//!         x.apply(&self.fc1)?.tanh().apply(&self.fc2)
//!     }
//! }
//!
//! # fn main() -> Result<()> {
//! let net = Net { fc1: Linear::new(3, 8), fc2: Linear::new(8, 1) };
//! let mut opt = SGD::new(0.1, net.parameters());
//! let x = Tensor::new([[1.0f32, 2.0, 3.0]]);
//! let y = net.forward(&x)?;
//! let loss = (&y * &y).mean(());
//! loss.backward();
//! opt.step()?;
//! opt.clear_grad();
//! assert_eq!(net.named_parameters()[0].0, "fc1.weight");
//! # Ok(()) }
//! ```

extern crate self as sampan_nn;

mod attr;
mod base;
pub mod callable;
pub mod clip;
mod decode;
pub mod init;
mod invoke;
pub mod joint;
pub mod layer;
pub mod layers;
pub mod lr;
mod members;
pub mod metric;
pub mod optim;
mod parameter;
mod profiled;
pub mod regularizer;
mod shared;
pub mod unique_name;
pub mod utils;
mod walk;

pub use attr::{ParamAttr, ParamAttrs};
pub use base::{Base, LayerHook, StandIn};
pub use clip::{ClipGrad, ClipGradByGlobalNorm, ClipGradByNorm, ClipGradByValue};
pub use decode::{
    BeamSearchDecoder, BeamSearchDecoderOpts, DecodeOpts, Decoded, Decoder, DecoderState, dynamic_decode,
};
pub use invoke::call_values;
pub use layer::{Apply, Layer, Observer, observe};
pub use layers::*;
pub use lr::{LearningRate, Schedule};
pub use members::{Buffer, LayerId, LayerRef, Members, Path, StateReport, Visitor};
pub use metric::Metric;
pub use optim::*;
pub use parameter::{Form, Parameter, Settings};
pub use sampan_macros::Layer;
pub use shared::{LayerOf, SharedLayer};
