//! VGG.

use super::blocks::{classes, finish};
use super::known::{IMAGENET, Known, hapi};
use sampan_core::value::Arg;
use sampan_core::{Result, Tensor};
use sampan_macros::class;
use sampan_nn::{
    AdaptiveAvgPool2D, AnyLayer, Base, BatchNorm2D, Conv2D, Dropout, Layer, Linear, MaxPool2D, ReLU, Sequential,
    SharedLayer, layer, sequential,
};

/// A stack of convolutions and three layers that classify.
#[derive(Layer)]
pub struct VGG {
    base: Base,
    features: AnyLayer,
    avgpool: Option<AdaptiveAvgPool2D>,
    classifier: Option<Sequential>,
}

#[class(module = "vision.models", object = layer::object)]
impl VGG {
    /// `features`, which end with 512 channels, pooled to 7 by 7 and classified by three layers with dropout. Without
    /// classes (`num_classes <= 0`) or pooling (`with_pool`) it ends earlier.
    ///
    /// ```
    /// use sampan_core::{DType, Tensor};
    /// use sampan_data::vision::models::VGG;
    /// use sampan_nn::{Conv2D, Layer};
    /// let net = VGG::with(Conv2D::new(3, 512, 3), |o| o.num_classes(0));
    /// assert_eq!(net.call(&Tensor::ones([1, 3, 16, 16], DType::Float32))?.shape(), [1, 512, 7, 7]);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    fn build(features: SharedLayer, #[opt(1000)] num_classes: i64, #[opt(true)] with_pool: bool) -> Result<VGG> {
        Ok(VGG {
            base: Base::of("VGG"),
            features: features.0,
            avgpool: with_pool.then(|| AdaptiveAvgPool2D::new([7, 7])),
            classifier: classes(num_classes).map(|n| {
                sequential![
                    Linear::new(512 * 7 * 7, 4096),
                    ReLU::new(),
                    Dropout::new(0.5),
                    Linear::new(4096, 4096),
                    ReLU::new(),
                    Dropout::new(0.5),
                    Linear::new(4096, n),
                ]
            }),
        })
    }
}

impl Layer for VGG {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        finish(self.features.call(x)?, &self.avgpool, &self.classifier)
    }
}

/// Convolutions in each of five stages, which have 64, 128, 256, 512 and 512 channels and end with a maximum.
type Stages = [usize; 5];

fn features(stages: Stages, batch_norm: bool) -> Result<Sequential> {
    let mut layers = Sequential::new();
    let mut input = 3;
    for (channels, convolutions) in [64, 128, 256, 512, 512].into_iter().zip(stages) {
        for _ in 0..convolutions {
            layers.append(Conv2D::try_with(input, channels, 3, |o| o.padding(1))?);
            if batch_norm {
                layers.append(BatchNorm2D::try_new(channels)?);
            }
            layers.append(ReLU::new());
            input = channels;
        }
        layers.append(MaxPool2D::try_with(2, |o| o.stride(2))?);
    }
    Ok(layers)
}

macro_rules! vggs {
    ($($name:ident $with:ident $layers:literal $stages:expr, $weights:expr;)*) => {
        $(
            #[doc = concat!("VGG with ", $layers, " layers.")]
            #[track_caller]
            pub fn $name() -> VGG {
                sampan_core::error::unwrap($with(false, |o| o))
            }
            #[doc = concat!("[`", stringify!($name), "`] with optional arguments; `batch_norm` puts one after each convolution.")]
            pub fn $with(batch_norm: bool, options: impl FnOnce(VGGOpts) -> VGGOpts) -> Result<VGG> {
                VGG::try_with(features($stages, batch_norm)?, options)
            }
        )*
        pub(super) const KNOWN: &[Known] = &[$(Known {
            name: stringify!($name),
            doc: concat!("VGG with ", $layers, " layers."),
            input: IMAGENET,
            weights: $weights,
            class: "VGG",
            arguments: |mut arguments| {
                let given = arguments.iter().position(|(name, _)| *name == "batch_norm").map(|at| arguments.remove(at));
                let batch_norm = given.map(|(name, value)| bool::get(&value, name)).transpose()?.unwrap_or(false);
                let features = SharedLayer::from(features($stages, batch_norm)?);
                Ok((vec![features.into()], arguments))
            },
        }),*];
    };
}

vggs! {
    vgg11 vgg11_with "11" [1, 1, 2, 2, 2], None;
    vgg13 vgg13_with "13" [2, 2, 2, 2, 2], None;
    vgg16 vgg16_with "16" [2, 2, 3, 3, 3], hapi!("vgg16" "89bbffc0f87d260be9b8cdc169c991c4");
    vgg19 vgg19_with "19" [2, 2, 4, 4, 4], hapi!("vgg19" "23b18bb13d8894f60f54e642be79a0dd");
}
