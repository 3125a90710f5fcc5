//! MobileNet, version 1.

use super::blocks::{Chain, ConvNorm, ConvNormActivation, classes, finish, mean_pool, scaled};
use super::known::{IMAGENET, hapi, variants};
use sampan_core::{Result, Tensor};
use sampan_macros::class;
use sampan_nn::{AdaptiveAvgPool2D, Apply, Base, Layer, Linear, layer};

/// A 3 by 3 convolution of each channel by itself, then one of 1 by 1 over all.
#[derive(Layer)]
struct DepthwiseSeparable {
    base: Base,
    _depthwise_conv: ConvNormActivation,
    _pointwise_conv: ConvNormActivation,
}

impl DepthwiseSeparable {
    fn build(input: usize, output: usize, stride: i64) -> Result<DepthwiseSeparable> {
        Ok(DepthwiseSeparable {
            base: Base::of("DepthwiseSeparable"),
            _depthwise_conv: ConvNorm::new(input, input, [3, 3]).stride(stride).groups(input).build()?,
            _pointwise_conv: ConvNorm::new(input, output, [1, 1]).build()?,
        })
    }
}

impl Layer for DepthwiseSeparable {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x.apply(&self._depthwise_conv)?.apply(&self._pointwise_conv)
    }
}

/// MobileNet of depthwise separable convolutions.
#[derive(Layer)]
pub struct MobileNetV1 {
    base: Base,
    conv1: ConvNormActivation,
    #[layer(name = "")]
    blocks: Chain,
    pool2d_avg: Option<AdaptiveAvgPool2D>,
    fc: Option<Linear>,
}

/// Name, channels in and out, stride.
const BLOCKS: [(&str, usize, usize, i64); 13] = [
    ("conv2_1", 32, 64, 1),
    ("conv2_2", 64, 128, 2),
    ("conv3_1", 128, 128, 1),
    ("conv3_2", 128, 256, 2),
    ("conv4_1", 256, 256, 1),
    ("conv4_2", 256, 512, 2),
    ("conv5_1", 512, 512, 1),
    ("conv5_2", 512, 512, 1),
    ("conv5_3", 512, 512, 1),
    ("conv5_4", 512, 512, 1),
    ("conv5_5", 512, 512, 1),
    ("conv5_6", 512, 1024, 2),
    ("conv6", 1024, 1024, 1),
];

#[class(module = "vision.models", object = layer::object)]
impl MobileNetV1 {
    /// MobileNet of depthwise separable convolutions, with `scale` times as many channels. Without classes
    /// (`num_classes <= 0`) or pooling (`with_pool`) it ends earlier.
    ///
    /// ```
    /// use sampan_core::{DType, Tensor};
    /// use sampan_data::vision::models::MobileNetV1;
    /// use sampan_nn::Layer;
    /// let net = MobileNetV1::with(|o| o.scale(0.25).num_classes(10));
    /// assert_eq!(net.call(&Tensor::ones([1, 3, 32, 32], DType::Float32))?.shape(), [1, 10]);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    fn build(
        #[opt(1.0)] scale: f64,
        #[opt(1000)] num_classes: i64,
        #[opt(true)] with_pool: bool,
    ) -> Result<MobileNetV1> {
        let base = Base::of("MobileNetV1");
        let conv1 = ConvNorm::new(3, scaled(32, scale), [3, 3]).stride(2).build()?;
        let mut blocks = Chain::default();
        for (name, input, output, stride) in BLOCKS {
            blocks.push(name, DepthwiseSeparable::build(scaled(input, scale), scaled(output, scale), stride)?);
        }
        let fc = classes(num_classes).map(|n| Linear::try_new(scaled(1024, scale), n)).transpose()?;
        Ok(MobileNetV1 { base, conv1, blocks, pool2d_avg: mean_pool(with_pool), fc })
    }
}

impl Layer for MobileNetV1 {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        finish(self.blocks.run(&x.apply(&self.conv1)?)?, &self.pool2d_avg, &self.fc)
    }
}

variants! {
    KNOWN: MobileNetV1 MobileNetV1Opts -> MobileNetV1, IMAGENET;
    /// MobileNet, version 1.
    mobilenet_v1 mobilenet_v1_with = (;) hapi!("mobilenetv1_1.0" "3033ab1975b1670bef51545feb65fc45");
}
