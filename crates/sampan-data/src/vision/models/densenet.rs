//! DenseNet.

use super::blocks::{Chain, classes, finish, join, maybe, mean_pool, within};
use super::known::{IMAGENET, imagenet, variants};
use sampan_core::{Result, Tensor, bail};
use sampan_macros::class;
use sampan_nn::{
    AdaptiveAvgPool2D, Apply, AvgPool2D, Base, BatchNorm, Conv2D, Dropout, Layer, Linear, MaxPool2D, layer,
};

fn norm(channels: usize) -> Result<BatchNorm> {
    BatchNorm::try_with(channels, |o| o.act("relu"))
}

/// A batch norm with a ReLU, then a convolution.
#[derive(Layer)]
struct BNACConvLayer {
    base: Base,
    _batch_norm: BatchNorm,
    _conv: Conv2D,
}

impl BNACConvLayer {
    fn build(input: usize, output: usize, kernel: i64) -> Result<BNACConvLayer> {
        Ok(BNACConvLayer {
            base: Base::of("BNACConvLayer"),
            _batch_norm: norm(input)?,
            _conv: Conv2D::try_with(input, output, kernel, |o| o.padding(kernel / 2).bias_attr(false))?,
        })
    }
}

impl Layer for BNACConvLayer {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x.apply(&self._batch_norm)?.apply(&self._conv)
    }
}

/// Adds `growth` channels to those that come in.
#[derive(Layer)]
struct DenseLayer {
    base: Base,
    bn_ac_func1: BNACConvLayer,
    bn_ac_func2: BNACConvLayer,
    dropout_func: Option<Dropout>,
}

impl DenseLayer {
    fn build(input: usize, growth: usize, bn_size: usize, dropout: f64) -> Result<DenseLayer> {
        Ok(DenseLayer {
            base: Base::of("DenseLayer"),
            bn_ac_func1: BNACConvLayer::build(input, bn_size * growth, 1)?,
            bn_ac_func2: BNACConvLayer::build(bn_size * growth, growth, 3)?,
            dropout_func: (dropout != 0.0)
                .then(|| Dropout::try_with(dropout, |o| o.mode("downscale_in_infer")))
                .transpose()?,
        })
    }
}

impl Layer for DenseLayer {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let new = x.apply(&self.bn_ac_func1)?.apply(&self.bn_ac_func2)?;
        join(&[x.clone(), maybe(new, &self.dropout_func)?])
    }
}

/// Dense layers, each of which sees what all before it made.
#[derive(Layer)]
struct DenseBlock {
    base: Base,
    #[layer(name = "")]
    layers: Chain,
}

impl Layer for DenseBlock {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.layers.run(x)
    }
}

/// Narrows and halves the image between two blocks.
#[derive(Layer)]
struct TransitionLayer {
    base: Base,
    conv_ac_func: BNACConvLayer,
    pool2d_avg: AvgPool2D,
}

impl TransitionLayer {
    fn build(input: usize, output: usize) -> Result<TransitionLayer> {
        Ok(TransitionLayer {
            base: Base::of("TransitionLayer"),
            conv_ac_func: BNACConvLayer::build(input, output, 1)?,
            pool2d_avg: AvgPool2D::try_with(2, |o| o.stride(2))?,
        })
    }
}

impl Layer for TransitionLayer {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x.apply(&self.conv_ac_func)?.apply(&self.pool2d_avg)
    }
}

/// The first convolution, with a batch norm and a ReLU.
#[derive(Layer)]
struct ConvBNLayer {
    base: Base,
    _conv: Conv2D,
    _batch_norm: BatchNorm,
}

impl Layer for ConvBNLayer {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x.apply(&self._conv)?.apply(&self._batch_norm)
    }
}

/// Blocks in which each layer sees what all before it made.
#[derive(Layer)]
pub struct DenseNet {
    base: Base,
    conv1_func: ConvBNLayer,
    pool2d_max: MaxPool2D,
    #[layer(name = "")]
    blocks: Chain,
    batch_norm: BatchNorm,
    pool2d_avg: Option<AdaptiveAvgPool2D>,
    out: Option<Linear>,
}

#[class(module = "vision.models", object = layer::object)]
impl DenseNet {
    /// Blocks in which each layer sees what all before it made: `layers` is 121, 161, 169, 201 or 264; `bn_size` times the
    /// growth is the width inside a layer. Without classes (`num_classes <= 0`) or pooling (`with_pool`) it ends earlier.
    ///
    /// ```
    /// use sampan_core::{DType, Tensor};
    /// use sampan_data::vision::models::DenseNet;
    /// use sampan_nn::Layer;
    /// let net = DenseNet::with(|o| o.num_classes(10));
    /// assert_eq!(net.call(&Tensor::ones([1, 3, 32, 32], DType::Float32))?.shape(), [1, 10]);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    fn build(
        #[opt(121)] layers: i64,
        #[opt(4)] bn_size: usize,
        #[opt(0.0)] dropout: f64,
        #[opt(1000)] num_classes: i64,
        #[opt(true)] with_pool: bool,
    ) -> Result<DenseNet> {
        let (first, growth, sizes) = match layers {
            121 => (64, 32, [6, 12, 24, 16]),
            161 => (96, 48, [6, 12, 36, 24]),
            169 => (64, 32, [6, 12, 32, 32]),
            201 => (64, 32, [6, 12, 48, 32]),
            264 => (64, 32, [6, 12, 64, 48]),
            other => bail!("layers must be 121, 161, 169, 201 or 264, got {other}"),
        };
        let base = Base::of("DenseNet");
        let conv1_func = ConvBNLayer {
            base: Base::of("ConvBNLayer"),
            _conv: Conv2D::try_with(3, first, 7, |o| o.stride(2).padding(3).bias_attr(false))?,
            _batch_norm: norm(first)?,
        };
        let pool2d_max = MaxPool2D::try_with(3, |o| o.stride(2).padding(1))?;
        let mut blocks = Chain::default();
        let mut channels = first;
        for (i, size) in (2..).zip(sizes) {
            let mut block = DenseBlock { base: Base::of("DenseBlock"), layers: Chain::default() };
            for k in 1..=size {
                block.layers.push(format!("conv{i}_{k}"), DenseLayer::build(channels, growth, bn_size, dropout)?);
                channels += growth;
            }
            blocks.push(format!("db_conv_{i}"), block);
            // None follows the last block.
            if i < 5 {
                blocks.push(format!("tr_conv{i}_blk"), TransitionLayer::build(channels, channels / 2)?);
                channels /= 2;
            }
        }
        let bound = 1.0 / (channels as f64).sqrt();
        let head = |n| Linear::try_with(channels, n, |o| o.weight_attr(within(bound)));
        Ok(DenseNet {
            base,
            conv1_func,
            pool2d_max,
            blocks,
            batch_norm: norm(channels)?,
            pool2d_avg: mean_pool(with_pool),
            out: classes(num_classes).map(head).transpose()?,
        })
    }
}

impl Layer for DenseNet {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let x = self.blocks.run(&x.apply(&self.conv1_func)?.apply(&self.pool2d_max)?)?;
        finish(x.apply(&self.batch_norm)?, &self.pool2d_avg, &self.out)
    }
}

variants! {
    KNOWN: DenseNet DenseNetOpts -> DenseNet, IMAGENET;
    /// DenseNet with 121 layers.
    densenet121 densenet121_with = (; layers = 121) imagenet!("DenseNet121" "db1b239ed80a905290fd8b01d3af08e4");
    /// DenseNet with 161 layers.
    densenet161 densenet161_with = (; layers = 161) imagenet!("DenseNet161" "62158869cb315098bd25ddbfd308a853");
    /// DenseNet with 169 layers.
    densenet169 densenet169_with = (; layers = 169) imagenet!("DenseNet169" "82cc7c635c3f19098c748850efb2d796");
    /// DenseNet with 201 layers.
    densenet201 densenet201_with = (; layers = 201) imagenet!("DenseNet201" "16ca29565a7712329cf9e36e02caaf58");
    /// DenseNet with 264 layers.
    densenet264 densenet264_with = (; layers = 264) imagenet!("DenseNet264" "3270ce516b85370bba88cfdd9f60bff4");
}
