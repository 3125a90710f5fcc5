//! AlexNet.

use super::blocks::{classes, group, within};
use super::known::{IMAGENET, imagenet, variants};
use sampan_core::{Result, Tensor};
use sampan_macros::class;
use sampan_nn::{Apply, Base, Conv2D, Dropout, Layer, Linear, MaxPool2D, ReLU, layer};

/// A convolution, a ReLU and a maximum.
#[derive(Layer)]
struct ConvPoolLayer {
    base: Base,
    relu: ReLU,
    _conv: Conv2D,
    _pool: MaxPool2D,
}

impl ConvPoolLayer {
    fn build(channels: [usize; 2], kernel: i64, stride: i64, padding: i64) -> Result<ConvPoolLayer> {
        Ok(ConvPoolLayer {
            base: Base::of("ConvPoolLayer"),
            relu: ReLU::new(),
            _conv: conv(channels, kernel, stride, padding)?,
            _pool: MaxPool2D::try_with(3, |o| o.stride(2))?,
        })
    }
}

impl Layer for ConvPoolLayer {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x.apply(&self._conv)?.apply(&self.relu)?.apply(&self._pool)
    }
}

/// A convolution whose first values lie within `1 / sqrt(fan_in)` of zero.
fn conv([input, output]: [usize; 2], kernel: i64, stride: i64, padding: i64) -> Result<Conv2D> {
    let bound = 1.0 / ((input as i64 * kernel * kernel) as f64).sqrt();
    Conv2D::try_with(input, output, kernel, |o| {
        o.stride(stride).padding(padding).weight_attr(within(bound)).bias_attr(within(bound))
    })
}

/// The three layers that classify, with dropout before the first two.
struct Head {
    _drop1: Dropout,
    _fc6: Linear,
    _drop2: Dropout,
    _fc7: Linear,
    _fc8: Linear,
}

group!(Head { _drop1, _fc6, _drop2, _fc7, _fc8 });

const FEATURES: usize = 256 * 6 * 6;

impl Head {
    fn build(classes: usize) -> Result<Head> {
        let drop = || Dropout::try_with(0.5, |o| o.mode("downscale_in_infer"));
        let bound = 1.0 / (FEATURES as f64).sqrt();
        let linear =
            |input, output| Linear::try_with(input, output, |o| o.weight_attr(within(bound)).bias_attr(within(bound)));
        Ok(Head {
            _drop1: drop()?,
            _fc6: linear(FEATURES, 4096)?,
            _drop2: drop()?,
            _fc7: linear(4096, 4096)?,
            _fc8: linear(4096, classes)?,
        })
    }
}

/// AlexNet for images `[n, 3, 224, 224]`.
#[derive(Layer)]
pub struct AlexNet {
    base: Base,
    _conv1: ConvPoolLayer,
    _conv2: ConvPoolLayer,
    _conv3: Conv2D,
    _conv4: Conv2D,
    _conv5: ConvPoolLayer,
    #[layer(name = "")]
    head: Option<Head>,
}

#[class(module = "vision.models", object = layer::object)]
impl AlexNet {
    /// AlexNet for images `[n, 3, 224, 224]`. Without classes (`num_classes <= 0`) it ends with its features.
    ///
    /// ```
    /// use sampan_core::{DType, Tensor};
    /// use sampan_data::vision::models::AlexNet;
    /// use sampan_nn::Layer;
    /// let features = AlexNet::with(|o| o.num_classes(0)).call(&Tensor::ones([1, 3, 63, 63], DType::Float32))?;
    /// assert_eq!(features.shape(), [1, 256, 1, 1]);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    fn build(#[opt(1000)] num_classes: i64) -> Result<AlexNet> {
        Ok(AlexNet {
            base: Base::of("AlexNet"),
            _conv1: ConvPoolLayer::build([3, 64], 11, 4, 2)?,
            _conv2: ConvPoolLayer::build([64, 192], 5, 1, 2)?,
            _conv3: conv([192, 384], 3, 1, 1)?,
            _conv4: conv([384, 256], 3, 1, 1)?,
            _conv5: ConvPoolLayer::build([256, 256], 3, 1, 1)?,
            head: classes(num_classes).map(Head::build).transpose()?,
        })
    }
}

impl Layer for AlexNet {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let x = x.apply(&self._conv1)?.apply(&self._conv2)?.apply(&self._conv3)?.try_relu()?;
        let x = x.apply(&self._conv4)?.try_relu()?.apply(&self._conv5)?;
        let Some(head) = &self.head else { return Ok(x) };
        let x = x.try_flatten(1, -1)?.apply(&head._drop1)?.apply(&head._fc6)?.try_relu()?;
        x.apply(&head._drop2)?.apply(&head._fc7)?.try_relu()?.apply(&head._fc8)
    }
}

variants! {
    KNOWN: AlexNet AlexNetOpts -> AlexNet, IMAGENET;
    /// AlexNet.
    alexnet alexnet_with = (;) imagenet!("AlexNet" "7f0f9f737132e02732d75a1459d98a43");
}
