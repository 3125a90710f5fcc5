//! LeNet.

use super::blocks::{classes, finish};
use super::known::variants;
use sampan_core::{Result, Tensor};
use sampan_macros::class;
use sampan_nn::{Base, Conv2D, Identity, Layer, Linear, MaxPool2D, ReLU, Sequential, layer, sequential};

/// LeNet-5 for images `[n, 1, 28, 28]`.
#[derive(Layer)]
pub struct LeNet {
    base: Base,
    features: Sequential,
    fc: Option<Sequential>,
}

#[class(module = "vision.models", object = layer::object)]
impl LeNet {
    /// LeNet-5 for images `[n, 1, 28, 28]`. Without classes (`num_classes <= 0`) it ends with its features.
    ///
    /// ```
    /// use sampan_core::{DType, Tensor};
    /// use sampan_data::vision::models::LeNet;
    /// use sampan_nn::Layer;
    /// let y = LeNet::new().call(&Tensor::ones([2, 1, 28, 28], DType::Float32))?;
    /// assert_eq!(y.shape(), [2, 10]);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    fn build(#[opt(10)] num_classes: i64) -> Result<LeNet> {
        Ok(LeNet {
            base: Base::of("LeNet"),
            features: sequential![
                Conv2D::with(1, 6, 3, |o| o.padding(1)),
                ReLU::new(),
                MaxPool2D::with(2, |o| o.stride(2)),
                Conv2D::new(6, 16, 5),
                ReLU::new(),
                MaxPool2D::with(2, |o| o.stride(2)),
            ],
            fc: classes(num_classes)
                .map(|n| sequential![Linear::new(400, 120), Linear::new(120, 84), Linear::new(84, n)]),
        })
    }
}

impl Layer for LeNet {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        finish(self.features.call(x)?, &None::<Identity>, &self.fc)
    }
}

variants! {
    KNOWN: LeNet LeNetOpts -> LeNet, [1, 1, 28, 28];
    /// LeNet-5.
    lenet lenet_with = (;) None;
}
