//! Layers, initializers and optimizers.
//!
//! ```
//! use sampan_nn::{Layer, Linear, Members, Sgd, Optimizer};
//! use sampan_core::{Result, Tensor};
//!
//! #[derive(Layer)]
//! struct Net { fc1: Linear, fc2: Linear }
//!
//! impl Layer for Net {
//!     fn forward(&self, x: &Tensor) -> Result<Tensor> {
//!         self.fc2.forward(&self.fc1.forward(x)?.try_tanh()?)
//!     }
//! }
//!
//! # fn main() -> Result<()> {
//! let net = Net { fc1: Linear::new(3, 8), fc2: Linear::new(8, 1) };
//! let mut opt = Sgd::new(0.1, net.parameters());
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

pub mod init;
mod layer;
pub mod layers;
pub mod optim;
mod parameter;

pub use layer::{Layer, Members, Mode, Path, Visitor};
pub use layers::{Conv2D, Flatten, Linear, MaxPool2D, ReLU, Sequential};
pub use optim::{Adam, Momentum, Optimizer, Sgd};
pub use parameter::Parameter;
pub use sampan_macros::Layer;
