//! What several models share: blocks, heads, small formulas.

use sampan_core::ops::joining::try_concat;
use sampan_core::{Result, Tensor};
use sampan_nn::init::Uniform;
use sampan_nn::{
    AdaptiveAvgPool2D, AnyLayer, Apply, Base, BatchNorm2D, Conv2D, Hardswish, Layer, Members, ParamAttr, Path, ReLU,
    ReLU6, Swish, Visitor,
};
use std::sync::Arc;

/// Layers applied one after the other. As a field `#[layer(name = "")]` their names stand directly in the layer that owns
/// them, as if each were a field of its own.
#[derive(Default)]
pub(super) struct Chain(Vec<(String, AnyLayer)>);

impl Chain {
    pub fn push(&mut self, name: impl Into<String>, layer: impl Layer) {
        self.0.push((name.into(), Arc::new(layer)));
    }

    pub fn layers(&self) -> impl Iterator<Item = &AnyLayer> {
        self.0.iter().map(|(_, layer)| layer)
    }

    pub fn run(&self, x: &Tensor) -> Result<Tensor> {
        self.layers().try_fold(x.clone(), |x, layer| layer.call(&x))
    }
}

impl<N: Into<String>, L: Layer> FromIterator<(N, L)> for Chain {
    fn from_iter<I: IntoIterator<Item = (N, L)>>(layers: I) -> Chain {
        let mut chain = Chain::default();
        layers.into_iter().for_each(|(name, layer)| chain.push(name, layer));
        chain
    }
}

impl Members for Chain {
    fn visit(&self, path: &Path, visitor: &mut dyn Visitor) {
        self.0.iter().for_each(|(name, layer)| layer.visit(&path.join(name), visitor));
    }
}

/// Makes the fields of a struct members of the layer that owns it in a field `#[layer(name = "")]`, under their own names: parts
/// of a model that are there together or not at all.
macro_rules! group {
    ($name:ident { $($field:ident),* }) => {
        impl ::sampan_nn::Members for $name {
            fn visit(&self, path: &::sampan_nn::Path, visitor: &mut dyn ::sampan_nn::Visitor) {
                $(::sampan_nn::Members::visit(&self.$field, &path.join(stringify!($field)), visitor);)*
            }
        }
    };
}
pub(super) use group;

/// An activation that a block may have.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Act {
    None,
    Relu,
    Relu6,
    Hardswish,
    Swish,
}

impl Act {
    pub fn layer(self) -> Option<AnyLayer> {
        match self {
            Act::None => None,
            Act::Relu => Some(Arc::new(ReLU::new())),
            Act::Relu6 => Some(Arc::new(ReLU6::new())),
            Act::Hardswish => Some(Arc::new(Hardswish::new())),
            Act::Swish => Some(Arc::new(Swish::new())),
        }
    }
}

/// What a [`ConvNormActivation`] is made from: a convolution that keeps the image's size, statistics of 0.9 and 1e-5, a
/// ReLU, unless told otherwise.
pub(super) struct ConvNorm {
    channels: (usize, usize),
    kernel: [i64; 2],
    stride: i64,
    padding: [i64; 2],
    groups: usize,
    act: Act,
    /// Momentum and epsilon of the batch norm.
    statistics: (f64, f64),
}

impl ConvNorm {
    pub fn new(input: usize, output: usize, kernel: [i64; 2]) -> ConvNorm {
        ConvNorm {
            channels: (input, output),
            kernel,
            stride: 1,
            padding: kernel.map(|k| (k - 1) / 2),
            groups: 1,
            act: Act::Relu,
            statistics: (0.9, 1e-5),
        }
    }

    pub fn stride(self, stride: i64) -> ConvNorm {
        ConvNorm { stride, ..self }
    }

    pub fn unpadded(self) -> ConvNorm {
        ConvNorm { padding: [0, 0], ..self }
    }

    pub fn groups(self, groups: usize) -> ConvNorm {
        ConvNorm { groups, ..self }
    }

    pub fn act(self, act: Act) -> ConvNorm {
        ConvNorm { act, ..self }
    }

    pub fn statistics(self, momentum: f64, epsilon: f64) -> ConvNorm {
        ConvNorm { statistics: (momentum, epsilon), ..self }
    }

    pub fn build(self) -> Result<ConvNormActivation> {
        let base = Base::of("ConvNormActivation");
        let (input, output) = self.channels;
        let conv = Conv2D::try_with(input, output, self.kernel, |o| {
            o.stride(self.stride).padding(self.padding).groups(self.groups).bias_attr(false)
        })?;
        let (momentum, epsilon) = self.statistics;
        let norm = BatchNorm2D::try_with(output, |o| o.momentum(momentum).epsilon(epsilon))?;
        Ok(ConvNormActivation { base, conv, norm, act: self.act.layer() })
    }
}

/// A convolution, a batch norm and an activation.
#[derive(Layer)]
pub struct ConvNormActivation {
    base: Base,
    #[layer(name = "0")]
    conv: Conv2D,
    #[layer(name = "1")]
    norm: BatchNorm2D,
    #[layer(name = "2")]
    act: Option<AnyLayer>,
}

impl Layer for ConvNormActivation {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let y = x.apply(&self.conv)?;
        match &self.act {
            Some(act) => self.norm.call_then(&y, &**act),
            None => y.apply(&self.norm),
        }
    }
}

/// The number of classes, if a head for them is wanted.
pub(super) fn classes(num_classes: i64) -> Option<usize> {
    usize::try_from(num_classes).ok().filter(|n| *n > 0)
}

/// `x` after a layer that may be missing.
pub(super) fn maybe<L: Layer>(x: Tensor, layer: &Option<L>) -> Result<Tensor> {
    layer.as_ref().map_or(Ok(x.clone()), |layer| x.apply(layer))
}

/// The end of most models: pooling and a head on flat features, where there are any.
pub(super) fn finish<P: Layer, H: Layer>(x: Tensor, pool: &Option<P>, head: &Option<H>) -> Result<Tensor> {
    let x = maybe(x, pool)?;
    match head {
        Some(head) => x.try_flatten(1, -1)?.apply(head),
        None => Ok(x),
    }
}

/// Tensors joined along the channels.
pub(super) fn join(parts: &[Tensor]) -> Result<Tensor> {
    try_concat(parts, 1)
}

/// Uniform first values within `bound` of zero.
pub(super) fn within(bound: f64) -> ParamAttr {
    Uniform::new(-bound, bound).into()
}

/// `value` rounded to a multiple of `divisor`, at least that, and not more than a tenth below `value`.
pub(super) fn divisible(value: f64, divisor: usize) -> usize {
    let rounded = ((value + divisor as f64 / 2.0) as usize / divisor * divisor).max(divisor);
    if (rounded as f64) < 0.9 * value { rounded + divisor } else { rounded }
}

/// `int(channels * scale)`.
pub(super) fn scaled(channels: usize, scale: f64) -> usize {
    (channels as f64 * scale) as usize
}

/// The mean of each channel, where it is wanted.
pub(super) fn mean_pool(wanted: bool) -> Option<AdaptiveAvgPool2D> {
    wanted.then(|| AdaptiveAvgPool2D::new(1))
}
