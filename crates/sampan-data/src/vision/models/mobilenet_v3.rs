//! MobileNet, version 3, small and large.

use super::blocks::{Act, ConvNorm, ConvNormActivation, classes, divisible, finish, maybe, mean_pool};
use super::known::{IMAGENET, hapi, variants};
use sampan_core::{Result, Tensor};
use sampan_macros::class;
use sampan_nn::{
    AdaptiveAvgPool2D, Apply, Base, Conv2D, Dropout, Hardsigmoid, Hardswish, Layer, Linear, ReLU, Sequential, layer,
    sequential,
};

/// Scales each channel by what two layers make of all channels' means.
#[derive(Layer)]
struct SqueezeExcitation {
    base: Base,
    avgpool: AdaptiveAvgPool2D,
    fc1: Conv2D,
    fc2: Conv2D,
    activation: ReLU,
    scale_activation: Hardsigmoid,
}

impl SqueezeExcitation {
    fn build(channels: usize, squeezed: usize) -> Result<SqueezeExcitation> {
        Ok(SqueezeExcitation {
            base: Base::of("SqueezeExcitation"),
            avgpool: AdaptiveAvgPool2D::try_new(1)?,
            fc1: Conv2D::try_new(channels, squeezed, 1)?,
            fc2: Conv2D::try_new(squeezed, channels, 1)?,
            activation: ReLU::new(),
            scale_activation: Hardsigmoid::new(),
        })
    }
}

impl Layer for SqueezeExcitation {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let scale = x.apply(&self.avgpool)?.apply(&self.fc1)?.apply(&self.activation)?.apply(&self.fc2)?;
        scale.apply(&self.scale_activation)?.try_multiply(x)
    }
}

/// Channels in, kernel, channels within, channels out, squeeze and excitation, activation, stride.
type Row = (usize, i64, usize, usize, bool, Act, i64);

const SMALL_BLOCKS: [Row; 11] = [
    (16, 3, 16, 16, true, Act::Relu, 2),
    (16, 3, 72, 24, false, Act::Relu, 2),
    (24, 3, 88, 24, false, Act::Relu, 1),
    (24, 5, 96, 40, true, Act::Hardswish, 2),
    (40, 5, 240, 40, true, Act::Hardswish, 1),
    (40, 5, 240, 40, true, Act::Hardswish, 1),
    (40, 5, 120, 48, true, Act::Hardswish, 1),
    (48, 5, 144, 48, true, Act::Hardswish, 1),
    (48, 5, 288, 96, true, Act::Hardswish, 2),
    (96, 5, 576, 96, true, Act::Hardswish, 1),
    (96, 5, 576, 96, true, Act::Hardswish, 1),
];

const LARGE_BLOCKS: [Row; 15] = [
    (16, 3, 16, 16, false, Act::Relu, 1),
    (16, 3, 64, 24, false, Act::Relu, 2),
    (24, 3, 72, 24, false, Act::Relu, 1),
    (24, 5, 72, 40, true, Act::Relu, 2),
    (40, 5, 120, 40, true, Act::Relu, 1),
    (40, 5, 120, 40, true, Act::Relu, 1),
    (40, 3, 240, 80, false, Act::Hardswish, 2),
    (80, 3, 200, 80, false, Act::Hardswish, 1),
    (80, 3, 184, 80, false, Act::Hardswish, 1),
    (80, 3, 184, 80, false, Act::Hardswish, 1),
    (80, 3, 480, 112, true, Act::Hardswish, 1),
    (112, 3, 672, 112, true, Act::Hardswish, 1),
    (112, 5, 672, 160, true, Act::Hardswish, 2),
    (160, 5, 960, 160, true, Act::Hardswish, 1),
    (160, 5, 960, 160, true, Act::Hardswish, 1),
];

/// Every convolution of this model has these statistics.
fn conv(input: usize, output: usize, kernel: i64, act: Act) -> ConvNorm {
    ConvNorm::new(input, output, [kernel; 2]).act(act).statistics(0.99, 0.001)
}

/// Widens, filters each channel, excites, narrows; with a way around where the shapes agree.
#[derive(Layer)]
struct InvertedResidual {
    base: Base,
    expand_conv: Option<ConvNormActivation>,
    bottleneck_conv: ConvNormActivation,
    mid_se: Option<SqueezeExcitation>,
    linear_conv: ConvNormActivation,
    residual: bool,
}

impl InvertedResidual {
    fn build((input, kernel, within, output, excite, act, stride): Row, scale: f64) -> Result<InvertedResidual> {
        let [input, within, output] = [input, within, output].map(|c| divisible(c as f64 * scale, 8));
        let expand = input != within;
        let base = Base::of("InvertedResidual");
        Ok(InvertedResidual {
            base,
            expand_conv: expand.then(|| conv(input, within, 1, act).build()).transpose()?,
            bottleneck_conv: conv(within, within, kernel, act).stride(stride).groups(within).build()?,
            mid_se: excite.then(|| SqueezeExcitation::build(within, divisible((within / 4) as f64, 8))).transpose()?,
            linear_conv: conv(within, output, 1, Act::None).build()?,
            residual: stride == 1 && input == output,
        })
    }
}

impl Layer for InvertedResidual {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let y = maybe(x.clone(), &self.expand_conv)?.apply(&self.bottleneck_conv)?;
        let y = maybe(y, &self.mid_se)?.apply(&self.linear_conv)?;
        if self.residual { x.try_add(y) } else { Ok(y) }
    }
}

/// MobileNet of inverted residual blocks that squeeze and excite.
#[derive(Layer)]
pub struct MobileNetV3 {
    base: Base,
    conv: ConvNormActivation,
    blocks: Sequential,
    lastconv: ConvNormActivation,
    avgpool: Option<AdaptiveAvgPool2D>,
    classifier: Option<Sequential>,
}

impl MobileNetV3 {
    fn build(
        class: &str,
        rows: &[Row],
        last: f64,
        scale: f64,
        num_classes: i64,
        with_pool: bool,
    ) -> Result<MobileNetV3> {
        let base = Base::of(class);
        let channels = |c: usize| divisible(c as f64 * scale, 8);
        let (first, end) = (channels(rows[0].0), channels(rows[rows.len() - 1].0));
        let conv3 = conv(3, first, 3, Act::Hardswish).stride(2).build()?;
        let mut blocks = Sequential::new();
        for row in rows {
            blocks.append(InvertedResidual::build(*row, scale)?);
        }
        let last = divisible(last * scale, 8);
        Ok(MobileNetV3 {
            base,
            conv: conv3,
            blocks,
            lastconv: conv(end, end * 6, 1, Act::Hardswish).build()?,
            avgpool: mean_pool(with_pool),
            classifier: classes(num_classes).map(|n| {
                sequential![Linear::new(end * 6, last), Hardswish::new(), Dropout::new(0.2), Linear::new(last, n)]
            }),
        })
    }
}

impl Layer for MobileNetV3 {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let x = x.apply(&self.conv)?.apply(&self.blocks)?.apply(&self.lastconv)?;
        finish(x, &self.avgpool, &self.classifier)
    }
}

/// Builds the small [`MobileNetV3`].
pub struct MobileNetV3Small;

#[class(module = "vision.models", object = layer::object)]
impl MobileNetV3Small {
    /// The small MobileNet of version 3, with `scale` times as many channels. Without classes (`num_classes <= 0`) or pooling
    /// (`with_pool`) it ends earlier.
    ///
    /// ```
    /// use sampan_core::{DType, Tensor};
    /// use sampan_data::vision::models::MobileNetV3Small;
    /// use sampan_nn::Layer;
    /// let net = MobileNetV3Small::with(|o| o.scale(0.5).num_classes(10));
    /// assert_eq!(net.call(&Tensor::ones([1, 3, 32, 32], DType::Float32))?.shape(), [1, 10]);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    fn build(
        #[opt(1.0)] scale: f64,
        #[opt(1000)] num_classes: i64,
        #[opt(true)] with_pool: bool,
    ) -> Result<MobileNetV3> {
        MobileNetV3::build("MobileNetV3Small", &SMALL_BLOCKS, 1024.0, scale, num_classes, with_pool)
    }
}

/// Builds the large [`MobileNetV3`].
pub struct MobileNetV3Large;

#[class(module = "vision.models", object = layer::object)]
impl MobileNetV3Large {
    /// The large MobileNet of version 3, with `scale` times as many channels. Without classes (`num_classes <= 0`) or pooling
    /// (`with_pool`) it ends earlier.
    ///
    /// ```
    /// use sampan_core::{DType, Tensor};
    /// use sampan_data::vision::models::MobileNetV3Large;
    /// use sampan_nn::Layer;
    /// let net = MobileNetV3Large::with(|o| o.scale(0.35).num_classes(10));
    /// assert_eq!(net.call(&Tensor::ones([1, 3, 32, 32], DType::Float32))?.shape(), [1, 10]);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    fn build(
        #[opt(1.0)] scale: f64,
        #[opt(1000)] num_classes: i64,
        #[opt(true)] with_pool: bool,
    ) -> Result<MobileNetV3> {
        MobileNetV3::build("MobileNetV3Large", &LARGE_BLOCKS, 1280.0, scale, num_classes, with_pool)
    }
}

variants! {
    SMALL: MobileNetV3Small MobileNetV3SmallOpts -> MobileNetV3, IMAGENET;
    /// MobileNet, version 3, small.
    mobilenet_v3_small mobilenet_v3_small_with = (;)
        hapi!("mobilenet_v3_small_x1.0" "34fe0e7c1f8b00b2b056ad6788d0590c");
}
variants! {
    LARGE: MobileNetV3Large MobileNetV3LargeOpts -> MobileNetV3, IMAGENET;
    /// MobileNet, version 3, large.
    mobilenet_v3_large mobilenet_v3_large_with = (;)
        hapi!("mobilenet_v3_large_x1.0" "118db5792b4e183b925d8e8e334db3df");
}
