//! The models of `paddle.vision.models`: same classes, arguments, state names and shapes, so that its trained weights fit.
//!
//! ```
//! use sampan_core::{DType, Tensor};
//! use sampan_data::vision::models;
//! use sampan_nn::{Layer, Members};
//! let net = models::squeezenet1_1_with(|o| o.num_classes(10))?;
//! net.eval();
//! assert_eq!(net.call(&Tensor::ones([1, 3, 64, 64], DType::Float32))?.shape(), [1, 10]);
//!
//! let known = models::find("lenet").expect("it is in the table");
//! assert_eq!(known.build()?.named_parameters()[0].0, "features.0.weight");
//! # Ok::<(), sampan_core::Error>(())
//! ```

mod alexnet;
mod blocks;
mod densenet;
mod googlenet;
mod inception_blocks;
mod inception_v3;
mod known;
mod lenet;
mod mobilenet_v1;
mod mobilenet_v2;
mod mobilenet_v3;
mod resnet;
mod shufflenet_v2;
mod squeezenet;
mod vgg;

pub use alexnet::*;
pub use blocks::ConvNormActivation;
pub use densenet::*;
pub use googlenet::*;
pub use inception_v3::*;
pub use known::{Known, Named, Weights};
pub use lenet::*;
pub use mobilenet_v1::*;
pub use mobilenet_v2::*;
pub use mobilenet_v3::*;
pub use resnet::*;
pub use shufflenet_v2::*;
pub use squeezenet::*;
pub use vgg::*;

/// Every known model, family by family.
pub fn all() -> impl Iterator<Item = &'static Known> {
    [
        lenet::KNOWN,
        alexnet::KNOWN,
        vgg::KNOWN,
        resnet::KNOWN,
        mobilenet_v1::KNOWN,
        mobilenet_v2::KNOWN,
        mobilenet_v3::SMALL,
        mobilenet_v3::LARGE,
        squeezenet::KNOWN,
        shufflenet_v2::KNOWN,
        densenet::KNOWN,
        googlenet::KNOWN,
        inception_v3::KNOWN,
    ]
    .into_iter()
    .flatten()
}

/// The names of every known model, family by family.
pub fn names() -> Vec<&'static str> {
    all().map(|known| known.name).collect()
}

/// The model of that name.
pub fn find(name: &str) -> Option<&'static Known> {
    all().find(|known| known.name == name)
}
