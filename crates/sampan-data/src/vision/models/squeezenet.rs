//! SqueezeNet.

use super::blocks::{Chain, classes, join};
use super::known::{IMAGENET, imagenet, variants};
use sampan_core::{Result, Tensor, bail};
use sampan_macros::class;
use sampan_nn::{AdaptiveAvgPool2D, Apply, Base, Conv2D, Dropout, Layer, MaxPool2D, layer};

/// A convolution and a ReLU.
#[derive(Layer)]
struct MakeFireConv {
    base: Base,
    _conv: Conv2D,
}

impl MakeFireConv {
    fn build(input: usize, output: usize, kernel: i64) -> Result<MakeFireConv> {
        let _conv = Conv2D::try_with(input, output, kernel, |o| o.padding(kernel / 2))?;
        Ok(MakeFireConv { base: Base::of("MakeFireConv"), _conv })
    }
}

impl Layer for MakeFireConv {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x.apply(&self._conv)?.try_relu()
    }
}

/// Narrows, then widens by 1 by 1 and 3 by 3 side by side.
#[derive(Layer)]
struct MakeFire {
    base: Base,
    _conv: MakeFireConv,
    _conv_path1: MakeFireConv,
    _conv_path2: MakeFireConv,
}

impl MakeFire {
    fn build(input: usize, squeezed: usize, expanded: usize) -> Result<MakeFire> {
        Ok(MakeFire {
            base: Base::of("MakeFire"),
            _conv: MakeFireConv::build(input, squeezed, 1)?,
            _conv_path1: MakeFireConv::build(squeezed, expanded, 1)?,
            _conv_path2: MakeFireConv::build(squeezed, expanded, 3)?,
        })
    }
}

impl Layer for MakeFire {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let x = x.apply(&self._conv)?;
        join(&[x.apply(&self._conv_path1)?, x.apply(&self._conv_path2)?])
    }
}

/// Fire modules: few parameters.
#[derive(Layer)]
pub struct SqueezeNet {
    base: Base,
    _conv: Conv2D,
    _pool: MaxPool2D,
    #[layer(name = "")]
    fires: Chain,
    _drop: Dropout,
    _conv9: Option<Conv2D>,
    _avg_pool: AdaptiveAvgPool2D,
    /// Fires that are followed by a maximum, counted from 1.
    pooled: [usize; 2],
    with_pool: bool,
}

#[class(module = "vision.models", object = layer::object)]
impl SqueezeNet {
    /// Fire modules, of `version` `"1.0"` or `"1.1"`, which needs less than half the work. Without classes
    /// (`num_classes <= 0`) or pooling (`with_pool`) it ends earlier.
    ///
    /// ```
    /// use sampan_core::{DType, Tensor};
    /// use sampan_data::vision::models::SqueezeNet;
    /// use sampan_nn::Layer;
    /// let net = SqueezeNet::with("1.1", |o| o.num_classes(10));
    /// assert_eq!(net.call(&Tensor::ones([1, 3, 32, 32], DType::Float32))?.shape(), [1, 10]);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    fn build(version: &str, #[opt(1000)] num_classes: i64, #[opt(true)] with_pool: bool) -> Result<SqueezeNet> {
        let (channels, kernel, padding, pooled) = match version {
            "1.0" => (96, 7, 0, [3, 7]),
            "1.1" => (64, 3, 1, [2, 4]),
            other => bail!("version must be \"1.0\" or \"1.1\", got {other:?}"),
        };
        let base = Base::of("SqueezeNet");
        let _conv = Conv2D::try_with(3, channels, kernel, |o| o.stride(2).padding(padding))?;
        let _pool = MaxPool2D::try_with(3, |o| o.stride(2))?;
        let mut fires = Chain::default();
        let mut input = channels;
        for i in 1..=8usize {
            let step = i.div_ceil(2);
            fires.push(format!("_conv{i}"), MakeFire::build(input, 16 * step, 64 * step)?);
            input = 128 * step;
        }
        Ok(SqueezeNet {
            base,
            _conv,
            _pool,
            fires,
            _drop: Dropout::try_with(0.5, |o| o.mode("downscale_in_infer"))?,
            _conv9: classes(num_classes).map(|n| Conv2D::try_new(512, n, 1)).transpose()?,
            _avg_pool: AdaptiveAvgPool2D::try_new(1)?,
            pooled,
            with_pool,
        })
    }
}

impl Layer for SqueezeNet {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let mut x = x.apply(&self._conv)?.try_relu()?.apply(&self._pool)?;
        for (i, fire) in self.fires.layers().enumerate() {
            x = x.apply(fire)?;
            if self.pooled.contains(&(i + 1)) {
                x = x.apply(&self._pool)?;
            }
        }
        if let Some(conv) = &self._conv9 {
            x = x.apply(&self._drop)?.apply(conv)?;
        }
        if self.with_pool { x.try_relu()?.apply(&self._avg_pool)?.try_squeeze([2, 3]) } else { Ok(x) }
    }
}

variants! {
    KNOWN: SqueezeNet SqueezeNetOpts -> SqueezeNet, IMAGENET;
    /// SqueezeNet 1.0.
    squeezenet1_0 squeezenet1_0_with = ("1.0";) imagenet!("SqueezeNet1_0" "30b95af60a2178f03cf9b66cd77e1db1");
    /// SqueezeNet 1.1.
    squeezenet1_1 squeezenet1_1_with = ("1.1";) imagenet!("SqueezeNet1_1" "a11250d3a1f91d7131fd095ebbf09eee");
}
