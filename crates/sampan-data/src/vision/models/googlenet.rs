//! GoogLeNet.

use super::blocks::{classes, group, join, maybe, mean_pool, within};
use super::known::{IMAGENET, imagenet, variants};
use sampan_core::{Error, Result, Tensor};
use sampan_macros::class;
use sampan_nn::{AdaptiveAvgPool2D, Apply, AvgPool2D, Base, Conv2D, Dropout, Layer, Linear, MaxPool2D, layer};

/// A convolution without a bias that keeps the image's size.
#[derive(Layer)]
struct ConvLayer {
    base: Base,
    _conv: Conv2D,
}

impl ConvLayer {
    fn build(input: usize, output: usize, kernel: i64, stride: i64) -> Result<ConvLayer> {
        let base = Base::of("ConvLayer");
        let padding = (kernel - 1) / 2;
        let _conv = Conv2D::try_with(input, output, kernel, |o| o.stride(stride).padding(padding).bias_attr(false))?;
        Ok(ConvLayer { base, _conv })
    }
}

impl Layer for ConvLayer {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x.apply(&self._conv)
    }
}

/// Filters of three sizes and a maximum side by side.
#[derive(Layer)]
struct Inception {
    base: Base,
    _conv1: ConvLayer,
    _conv3r: ConvLayer,
    _conv3: ConvLayer,
    _conv5r: ConvLayer,
    _conv5: ConvLayer,
    _pool: MaxPool2D,
    _convprj: ConvLayer,
}

impl Inception {
    /// Channels: of 1 by 1, before and after 3 by 3, before and after 5 by 5, after the maximum.
    fn build(input: usize, [one, three_in, three, five_in, five, pooled]: [usize; 6]) -> Result<Inception> {
        Ok(Inception {
            base: Base::of("Inception"),
            _conv1: ConvLayer::build(input, one, 1, 1)?,
            _conv3r: ConvLayer::build(input, three_in, 1, 1)?,
            _conv3: ConvLayer::build(three_in, three, 3, 1)?,
            _conv5r: ConvLayer::build(input, five_in, 1, 1)?,
            _conv5: ConvLayer::build(five_in, five, 5, 1)?,
            _pool: MaxPool2D::try_with(3, |o| o.stride(1).padding(1))?,
            _convprj: ConvLayer::build(input, pooled, 1, 1)?,
        })
    }
}

impl Layer for Inception {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let three = x.apply(&self._conv3r)?.apply(&self._conv3)?;
        let five = x.apply(&self._conv5r)?.apply(&self._conv5)?;
        let pooled = x.apply(&self._pool)?.apply(&self._convprj)?;
        join(&[x.apply(&self._conv1)?, three, five, pooled])?.try_relu()
    }
}

/// The three heads.
struct Heads {
    _drop: Dropout,
    _fc_out: Linear,
    _conv_o1: ConvLayer,
    _fc_o1: Linear,
    _drop_o1: Dropout,
    _out1: Linear,
    _conv_o2: ConvLayer,
    _fc_o2: Linear,
    _drop_o2: Dropout,
    _out2: Linear,
}
group!(Heads { _drop, _fc_out, _conv_o1, _fc_o1, _drop_o1, _out1, _conv_o2, _fc_o2, _drop_o2, _out2 });

impl Heads {
    fn build(classes: usize) -> Result<Heads> {
        let drop = |p| Dropout::try_with(p, |o| o.mode("downscale_in_infer"));
        let linear =
            |input, output, fan: f64| Linear::try_with(input, output, |o| o.weight_attr(within((3.0 / fan).sqrt())));
        Ok(Heads {
            _drop: drop(0.4)?,
            _fc_out: linear(1024, classes, 1024.0)?,
            _conv_o1: ConvLayer::build(512, 128, 1, 1)?,
            _fc_o1: linear(1152, 1024, 2048.0)?,
            _drop_o1: drop(0.7)?,
            _out1: linear(1024, classes, 1024.0)?,
            _conv_o2: ConvLayer::build(528, 128, 1, 1)?,
            _fc_o2: linear(1152, 1024, 2048.0)?,
            _drop_o2: drop(0.7)?,
            _out2: linear(1024, classes, 1024.0)?,
        })
    }
}

/// Inception blocks with one head at the end and two on the way.
#[derive(Layer)]
pub struct GoogLeNet {
    base: Base,
    _conv: ConvLayer,
    _pool: MaxPool2D,
    _conv_1: ConvLayer,
    _conv_2: ConvLayer,
    _ince3a: Inception,
    _ince3b: Inception,
    _ince4a: Inception,
    _ince4b: Inception,
    _ince4c: Inception,
    _ince4d: Inception,
    _ince4e: Inception,
    _ince5a: Inception,
    _ince5b: Inception,
    _pool_5: Option<AdaptiveAvgPool2D>,
    _pool_o1: Option<AvgPool2D>,
    _pool_o2: Option<AvgPool2D>,
    #[layer(name = "")]
    heads: Option<Heads>,
}

#[class(module = "vision.models", object = layer::object)]
impl GoogLeNet {
    /// Inception blocks for images `[n, 3, 224, 224]`, with one head at the end and two on the way: `call_all` gives the outputs
    /// of all three, `call` the last one's. Without classes (`num_classes <= 0`) or pooling (`with_pool`) they end
    /// earlier.
    ///
    /// ```
    /// use sampan_core::{DType, Tensor};
    /// use sampan_data::vision::models::GoogLeNet;
    /// use sampan_nn::Layer;
    /// let net = GoogLeNet::with(|o| o.num_classes(0));
    /// let [end, first, second] = &net.call_all(&[Tensor::ones([1, 3, 96, 96], DType::Float32)])?[..] else { panic!() };
    /// assert_eq!((end.shape()[1], first.shape()[1], second.shape()[1]), (1024, 512, 528));
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    fn build(#[opt(1000)] num_classes: i64, #[opt(true)] with_pool: bool) -> Result<GoogLeNet> {
        Ok(GoogLeNet {
            base: Base::of("GoogLeNet"),
            _conv: ConvLayer::build(3, 64, 7, 2)?,
            _pool: MaxPool2D::try_with(3, |o| o.stride(2))?,
            _conv_1: ConvLayer::build(64, 64, 1, 1)?,
            _conv_2: ConvLayer::build(64, 192, 3, 1)?,
            _ince3a: Inception::build(192, [64, 96, 128, 16, 32, 32])?,
            _ince3b: Inception::build(256, [128, 128, 192, 32, 96, 64])?,
            _ince4a: Inception::build(480, [192, 96, 208, 16, 48, 64])?,
            _ince4b: Inception::build(512, [160, 112, 224, 24, 64, 64])?,
            _ince4c: Inception::build(512, [128, 128, 256, 24, 64, 64])?,
            _ince4d: Inception::build(512, [112, 144, 288, 32, 64, 64])?,
            _ince4e: Inception::build(528, [256, 160, 320, 32, 128, 128])?,
            _ince5a: Inception::build(832, [256, 160, 320, 32, 128, 128])?,
            _ince5b: Inception::build(832, [384, 192, 384, 48, 128, 128])?,
            _pool_5: mean_pool(with_pool),
            _pool_o1: with_pool.then(|| AvgPool2D::with(5, |o| o.stride(3))),
            _pool_o2: with_pool.then(|| AvgPool2D::with(5, |o| o.stride(3))),
            heads: classes(num_classes).map(Heads::build).transpose()?,
        })
    }

    /// What the three heads see: the end, after block 4a, after block 4d.
    fn features(&self, x: &Tensor) -> Result<[Tensor; 3]> {
        let x = x.apply(&self._conv)?.apply(&self._pool)?.apply(&self._conv_1)?.apply(&self._conv_2)?;
        let x = x.apply(&self._pool)?.apply(&self._ince3a)?.apply(&self._ince3b)?.apply(&self._pool)?;
        let first = x.apply(&self._ince4a)?;
        let second = first.apply(&self._ince4b)?.apply(&self._ince4c)?.apply(&self._ince4d)?;
        let x = second.apply(&self._ince4e)?.apply(&self._pool)?;
        Ok([x.apply(&self._ince5a)?.apply(&self._ince5b)?, first, second])
    }

    fn end(&self, x: Tensor) -> Result<Tensor> {
        let x = maybe(x, &self._pool_5)?;
        match &self.heads {
            Some(heads) => x.apply(&heads._drop)?.try_squeeze([2, 3])?.apply(&heads._fc_out),
            None => Ok(x),
        }
    }

    fn first(&self, x: Tensor) -> Result<Tensor> {
        let x = maybe(x, &self._pool_o1)?;
        let Some(heads) = &self.heads else { return Ok(x) };
        let x = x.apply(&heads._conv_o1)?.try_flatten(1, -1)?.apply(&heads._fc_o1)?;
        x.try_relu()?.apply(&heads._drop_o1)?.apply(&heads._out1)
    }

    /// Like the first, but for a ReLU that Paddle leaves out.
    fn second(&self, x: Tensor) -> Result<Tensor> {
        let x = maybe(x, &self._pool_o2)?;
        let Some(heads) = &self.heads else { return Ok(x) };
        let x = x.apply(&heads._conv_o2)?.try_flatten(1, -1)?.apply(&heads._fc_o2)?;
        x.apply(&heads._drop_o2)?.apply(&heads._out2)
    }
}

impl Layer for GoogLeNet {
    /// The last head's output alone.
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let [end, ..] = self.features(x)?;
        self.end(end)
    }

    /// The outputs of all three heads.
    fn forward_all(&self, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        let [x] = inputs else { return Err(Error::invalid(format!("takes one input, got {}", inputs.len()))) };
        let [end, first, second] = self.features(x)?;
        Ok(vec![self.end(end)?, self.first(first)?, self.second(second)?])
    }
}

variants! {
    KNOWN: GoogLeNet GoogLeNetOpts -> GoogLeNet, IMAGENET;
    /// GoogLeNet, the first Inception.
    googlenet googlenet_with = (;) imagenet!("GoogLeNet" "80c06f038e905c53ab32c40eca6e26ae");
}
