//! MobileNet, version 2.

use super::blocks::{Act, ConvNorm, classes, divisible, finish, mean_pool};
use super::known::{IMAGENET, hapi, variants};
use sampan_core::{Result, Tensor};
use sampan_macros::class;
use sampan_nn::{
    AdaptiveAvgPool2D, Apply, Base, BatchNorm2D, Conv2D, Dropout, Layer, Linear, Sequential, layer, sequential,
};

/// Widens by 1 by 1, filters each channel, narrows by 1 by 1; with a way around where the shapes agree.
#[derive(Layer)]
struct InvertedResidual {
    base: Base,
    conv: Sequential,
    residual: bool,
}

impl InvertedResidual {
    fn build(input: usize, output: usize, stride: i64, expand: usize) -> Result<InvertedResidual> {
        let base = Base::of("InvertedResidual");
        let hidden = input * expand;
        let mut conv = Sequential::new();
        if expand != 1 {
            conv.append(ConvNorm::new(input, hidden, [1, 1]).act(Act::Relu6).build()?);
        }
        conv.append(ConvNorm::new(hidden, hidden, [3, 3]).stride(stride).groups(hidden).act(Act::Relu6).build()?);
        conv.append(Conv2D::try_with(hidden, output, 1, |o| o.bias_attr(false))?);
        conv.append(BatchNorm2D::try_new(output)?);
        Ok(InvertedResidual { base, conv, residual: stride == 1 && input == output })
    }
}

impl Layer for InvertedResidual {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let y = x.apply(&self.conv)?;
        if self.residual { x.try_add(y) } else { Ok(y) }
    }
}

/// MobileNet of inverted residual blocks.
#[derive(Layer)]
pub struct MobileNetV2 {
    base: Base,
    features: Sequential,
    pool2d_avg: Option<AdaptiveAvgPool2D>,
    classifier: Option<Sequential>,
}

/// How much a stage's blocks widen, its channels, its blocks, its first stride.
const STAGES: [(usize, usize, usize, i64); 7] =
    [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)];

#[class(module = "vision.models", object = layer::object)]
impl MobileNetV2 {
    /// MobileNet of inverted residual blocks, with `scale` times as many channels. Without classes (`num_classes <= 0`) or
    /// pooling (`with_pool`) it ends earlier.
    ///
    /// ```
    /// use sampan_core::{DType, Tensor};
    /// use sampan_data::vision::models::MobileNetV2;
    /// use sampan_nn::Layer;
    /// let net = MobileNetV2::with(|o| o.scale(0.25).num_classes(10));
    /// assert_eq!(net.call(&Tensor::ones([1, 3, 32, 32], DType::Float32))?.shape(), [1, 10]);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    fn build(
        #[opt(1.0)] scale: f64,
        #[opt(1000)] num_classes: i64,
        #[opt(true)] with_pool: bool,
    ) -> Result<MobileNetV2> {
        let base = Base::of("MobileNetV2");
        let mut input = divisible(32.0 * scale, 8);
        let last = divisible(1280.0 * scale.max(1.0), 8);
        let first = ConvNorm::new(3, input, [3, 3]).stride(2).act(Act::Relu6).build()?;
        let mut blocks = Vec::new();
        for (expand, channels, repeats, stride) in STAGES {
            let output = divisible(channels as f64 * scale, 8);
            for i in 0..repeats {
                blocks.push(InvertedResidual::build(input, output, if i == 0 { stride } else { 1 }, expand)?);
                input = output;
            }
        }
        let end = ConvNorm::new(input, last, [1, 1]).act(Act::Relu6).build()?;
        let mut features = sequential![first];
        features.extend(blocks).append(end);
        let classifier = classes(num_classes).map(|n| sequential![Dropout::new(0.2), Linear::new(last, n)]);
        Ok(MobileNetV2 { base, features, pool2d_avg: mean_pool(with_pool), classifier })
    }
}

impl Layer for MobileNetV2 {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        finish(x.apply(&self.features)?, &self.pool2d_avg, &self.classifier)
    }
}

variants! {
    KNOWN: MobileNetV2 MobileNetV2Opts -> MobileNetV2, IMAGENET;
    /// MobileNet, version 2.
    mobilenet_v2 mobilenet_v2_with = (;) hapi!("mobilenet_v2_x1.0" "0340af0a901346c8d46f4529882fb63d");
}
