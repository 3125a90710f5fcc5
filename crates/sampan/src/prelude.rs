//! What most programs use: `use sampan::prelude::*;`.
//!
//! ```
//! use sampan::prelude::*;
//!
//! #[derive(Layer)]
//! struct Net {
//!     hidden: Linear,
//!     out: Linear,
//! }
//!
//! impl Layer for Net {
//!     fn forward(&self, x: &Tensor) -> Result<Tensor> {
//!         x.apply(&self.hidden)?.relu().apply(&self.out)
//!     }
//! }
//!
//! fn main() -> Result<()> {
//!     random::seed(0);
//!     let net = Net { hidden: Linear::new(2, 8), out: Linear::new(8, 2) };
//!     let mut opt = Adam::new(0.01, net.parameters());
//!     let data = TensorDataset::new(vec![Tensor::new([[0.0f32, 1.0], [1.0, 0.0]]), Tensor::new([0i64, 1])])?;
//!     for batch in &DataLoader::new(data, 2, true)? {
//!         let [x, y] = fields(batch?)?;
//!         net.call(&x)?.cross_entropy(&y).backward();
//!         opt.step()?;
//!         opt.clear_grad();
//!     }
//!     Ok(())
//! }
//! ```

pub use crate::core::ops::creation::{arange, full, linspace, ones, zeros};
pub use crate::core::ops::joining::{concat, stack};
pub use crate::core::ops::random::{rand, randint, randn, randperm};
pub use crate::core::{DType, Device, Error, Result, Tensor, autograd, enable_grad, no_grad, random};
pub use crate::data::vision::{datasets, models, transforms};
// The macro that makes a list of transforms; the module has the same name.
pub use crate::data::transforms;
pub use crate::data::vision::models::LeNet;
pub use crate::data::{
    Batch, DataLoader, Dataset, DatasetFolder, FnDataset, ImageFolder, IterableDataset, Mnist, Sample, Split, Subset,
    TensorDataset, fields, random_split,
};
pub use crate::hapi::{Callback, InputSpec, Logs, Model, callbacks, flops, loss_fn, summary};
pub use crate::lenet::LeNet5;
pub use crate::nn::layers::*;
pub use crate::nn::metric::{Accuracy, Metric};
pub use crate::nn::regularizer::{L1Decay, L2Decay};
pub use crate::nn::{
    Adadelta, Adagrad, Adam, AdamW, Adamax, Apply, Base, Buffer, ClipGradByGlobalNorm, ClipGradByNorm, ClipGradByValue,
    LBFGS, Lamb, Layer, Members, Momentum, Optimizer, ParamAttr, Parameter, RMSProp, SGD, init, lr, metric, sequential,
};
pub use crate::{load, profiler, save};
