//! ShuffleNet, version 2.

use super::blocks::{Act, Chain, ConvNorm, ConvNormActivation, classes, finish, join, mean_pool};
use super::known::{IMAGENET, hapi, variants};
use sampan_core::{Result, Tensor, bail};
use sampan_macros::class;
use sampan_nn::{AdaptiveAvgPool2D, Apply, Base, Layer, Linear, MaxPool2D, layer};

fn narrow(input: usize, output: usize, act: Act) -> Result<ConvNormActivation> {
    ConvNorm::new(input, output, [1, 1]).act(act).build()
}

fn depthwise(channels: usize, stride: i64) -> Result<ConvNormActivation> {
    ConvNorm::new(channels, channels, [3, 3]).stride(stride).groups(channels).act(Act::None).build()
}

/// One half of the channels passes, the other is filtered, and both are mixed.
#[derive(Layer)]
struct InvertedResidual {
    base: Base,
    _conv_pw: ConvNormActivation,
    _conv_dw: ConvNormActivation,
    _conv_linear: ConvNormActivation,
}

impl InvertedResidual {
    fn build(channels: usize, act: Act) -> Result<InvertedResidual> {
        let half = channels / 2;
        Ok(InvertedResidual {
            base: Base::of("InvertedResidual"),
            _conv_pw: narrow(half, half, act)?,
            _conv_dw: depthwise(half, 1)?,
            _conv_linear: narrow(half, half, act)?,
        })
    }
}

impl Layer for InvertedResidual {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let half = x.shape()[1] as i64 / 2;
        let (passed, y) = (x.try_narrow(1, 0, half)?, x.try_narrow(1, half, half)?);
        let y = y.apply(&self._conv_pw)?.apply(&self._conv_dw)?.apply(&self._conv_linear)?;
        join(&[passed, y])?.try_channel_shuffle(2)
    }
}

/// Two ways of filtering that halve the image, side by side and mixed.
#[derive(Layer)]
struct InvertedResidualDS {
    base: Base,
    _conv_dw_1: ConvNormActivation,
    _conv_linear_1: ConvNormActivation,
    _conv_pw_2: ConvNormActivation,
    _conv_dw_2: ConvNormActivation,
    _conv_linear_2: ConvNormActivation,
}

impl InvertedResidualDS {
    fn build(input: usize, output: usize, act: Act) -> Result<InvertedResidualDS> {
        let half = output / 2;
        Ok(InvertedResidualDS {
            base: Base::of("InvertedResidualDS"),
            _conv_dw_1: depthwise(input, 2)?,
            _conv_linear_1: narrow(input, half, act)?,
            _conv_pw_2: narrow(input, half, act)?,
            _conv_dw_2: depthwise(half, 2)?,
            _conv_linear_2: narrow(half, half, act)?,
        })
    }
}

impl Layer for InvertedResidualDS {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let one = x.apply(&self._conv_dw_1)?.apply(&self._conv_linear_1)?;
        let two = x.apply(&self._conv_pw_2)?.apply(&self._conv_dw_2)?.apply(&self._conv_linear_2)?;
        join(&[one, two])?.try_channel_shuffle(2)
    }
}

/// ShuffleNet of blocks that mix two halves of the channels.
#[derive(Layer)]
pub struct ShuffleNetV2 {
    base: Base,
    _conv1: ConvNormActivation,
    _max_pool: MaxPool2D,
    #[layer(name = "")]
    blocks: Chain,
    _last_conv: ConvNormActivation,
    _pool2d_avg: Option<AdaptiveAvgPool2D>,
    _fc: Option<Linear>,
}

#[class(module = "vision.models", object = layer::object)]
impl ShuffleNetV2 {
    /// ShuffleNet of blocks that mix two halves of the channels: `scale` is 0.25, 0.33, 0.5, 1, 1.5 or 2, `act` is
    /// `"relu"`, `"swish"` or `None`. Without classes (`num_classes <= 0`) or pooling (`with_pool`) it ends earlier.
    ///
    /// ```
    /// use sampan_core::{DType, Tensor};
    /// use sampan_data::vision::models::ShuffleNetV2;
    /// use sampan_nn::Layer;
    /// let net = ShuffleNetV2::with(|o| o.scale(0.25).act("swish").num_classes(10));
    /// assert_eq!(net.call(&Tensor::ones([1, 3, 32, 32], DType::Float32))?.shape(), [1, 10]);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    fn build(
        #[opt(1.0)] scale: f64,
        #[opt("relu")] act: Option<&str>,
        #[opt(1000)] num_classes: i64,
        #[opt(true)] with_pool: bool,
    ) -> Result<ShuffleNetV2> {
        let (stages, last) = match scale {
            0.25 => ([24, 48, 96], 512),
            0.33 => ([32, 64, 128], 512),
            0.5 => ([48, 96, 192], 1024),
            1.0 => ([116, 232, 464], 1024),
            1.5 => ([176, 352, 704], 1024),
            2.0 => ([224, 488, 976], 2048),
            other => bail!("scale must be 0.25, 0.33, 0.5, 1, 1.5 or 2, got {other}"),
        };
        let act = match act {
            None => Act::None,
            Some("relu") => Act::Relu,
            Some("swish") => Act::Swish,
            Some(other) => bail!("act must be \"relu\", \"swish\" or None, got {other:?}"),
        };
        let base = Base::of("ShuffleNetV2");
        let _conv1 = ConvNorm::new(3, 24, [3, 3]).stride(2).act(act).build()?;
        let _max_pool = MaxPool2D::try_with(3, |o| o.stride(2).padding(1))?;
        let mut blocks = Chain::default();
        let mut input = 24;
        for (stage, (output, repeats)) in stages.into_iter().zip([4, 8, 4]).enumerate() {
            blocks.push(format!("{}_1", stage + 2), InvertedResidualDS::build(input, output, act)?);
            for i in 2..=repeats {
                blocks.push(format!("{}_{i}", stage + 2), InvertedResidual::build(output, act)?);
            }
            input = output;
        }
        Ok(ShuffleNetV2 {
            base,
            _conv1,
            _max_pool,
            blocks,
            _last_conv: narrow(input, last, act)?,
            _pool2d_avg: mean_pool(with_pool),
            _fc: classes(num_classes).map(|n| Linear::try_new(last, n)).transpose()?,
        })
    }
}

impl Layer for ShuffleNetV2 {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let x = self.blocks.run(&x.apply(&self._conv1)?.apply(&self._max_pool)?)?;
        finish(x.apply(&self._last_conv)?, &self._pool2d_avg, &self._fc)
    }
}

variants! {
    KNOWN: ShuffleNetV2 ShuffleNetV2Opts -> ShuffleNetV2, IMAGENET;
    /// ShuffleNet, version 2, a quarter as wide.
    shufflenet_v2_x0_25 shufflenet_v2_x0_25_with = (; scale = 0.25)
        hapi!("shufflenet_v2_x0_25" "1e509b4c140eeb096bb16e214796d03b");
    /// ShuffleNet, version 2, a third as wide.
    shufflenet_v2_x0_33 shufflenet_v2_x0_33_with = (; scale = 0.33)
        hapi!("shufflenet_v2_x0_33" "3d7b3ab0eaa5c0927ff1026d31b729bd");
    /// ShuffleNet, version 2, half as wide.
    shufflenet_v2_x0_5 shufflenet_v2_x0_5_with = (; scale = 0.5)
        hapi!("shufflenet_v2_x0_5" "5e5cee182a7793c4e4c73949b1a71bd4");
    /// ShuffleNet, version 2.
    shufflenet_v2_x1_0 shufflenet_v2_x1_0_with = (; scale = 1.0)
        hapi!("shufflenet_v2_x1_0" "122d42478b9e81eb49f8a9ede327b1a4");
    /// ShuffleNet, version 2, half as wide again.
    shufflenet_v2_x1_5 shufflenet_v2_x1_5_with = (; scale = 1.5)
        hapi!("shufflenet_v2_x1_5" "faced5827380d73531d0ee027c67826d");
    /// ShuffleNet, version 2, twice as wide.
    shufflenet_v2_x2_0 shufflenet_v2_x2_0_with = (; scale = 2.0)
        hapi!("shufflenet_v2_x2_0" "cd3dddcd8305e7bcd8ad14d1c69a5784");
    /// ShuffleNet, version 2, with swish activations.
    shufflenet_v2_swish shufflenet_v2_swish_with = (; scale = 1.0, act = "swish")
        hapi!("shufflenet_v2_swish" "adde0aa3b023e5b0c94a68be1c394b84");
}
