//! Inception, version 3.

use super::blocks::{ConvNorm, ConvNormActivation, classes, maybe, mean_pool, within};
use super::inception_blocks::{InceptionBlock, halving};
use super::known::{hapi, variants};
use sampan_core::{Result, Tensor};
use sampan_macros::class;
use sampan_nn::{AdaptiveAvgPool2D, Apply, Base, Dropout, Layer, LayerList, Linear, MaxPool2D, layer};

/// The convolutions before the blocks.
#[derive(Layer)]
struct InceptionStem {
    base: Base,
    conv_1a_3x3: ConvNormActivation,
    conv_2a_3x3: ConvNormActivation,
    conv_2b_3x3: ConvNormActivation,
    max_pool: MaxPool2D,
    conv_3b_1x1: ConvNormActivation,
    conv_4a_3x3: ConvNormActivation,
}

impl InceptionStem {
    fn build() -> Result<InceptionStem> {
        Ok(InceptionStem {
            base: Base::of("InceptionStem"),
            conv_1a_3x3: halving(3, 32)?,
            conv_2a_3x3: ConvNorm::new(32, 32, [3, 3]).unpadded().build()?,
            conv_2b_3x3: ConvNorm::new(32, 64, [3, 3]).build()?,
            max_pool: MaxPool2D::try_with(3, |o| o.stride(2))?,
            conv_3b_1x1: ConvNorm::new(64, 80, [1, 1]).build()?,
            conv_4a_3x3: ConvNorm::new(80, 192, [3, 3]).unpadded().build()?,
        })
    }
}

impl Layer for InceptionStem {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let x = x.apply(&self.conv_1a_3x3)?.apply(&self.conv_2a_3x3)?.apply(&self.conv_2b_3x3)?;
        x.apply(&self.max_pool)?.apply(&self.conv_3b_1x1)?.apply(&self.conv_4a_3x3)?.apply(&self.max_pool)
    }
}

/// Blocks of branches side by side, for images `[n, 3, 299, 299]`.
#[derive(Layer)]
pub struct InceptionV3 {
    base: Base,
    inception_stem: InceptionStem,
    inception_block_list: LayerList,
    avg_pool: Option<AdaptiveAvgPool2D>,
    dropout: Option<Dropout>,
    fc: Option<Linear>,
}

/// Channels at the end.
const FEATURES: usize = 2048;

#[class(module = "vision.models", object = layer::object)]
impl InceptionV3 {
    /// Blocks of branches side by side, for images `[n, 3, 299, 299]`. Without classes (`num_classes <= 0`) or pooling
    /// (`with_pool`) it ends earlier.
    ///
    /// ```
    /// use sampan_core::{DType, Tensor};
    /// use sampan_data::vision::models::InceptionV3;
    /// use sampan_nn::Layer;
    /// let net = InceptionV3::with(|o| o.num_classes(10));
    /// assert_eq!(net.call(&Tensor::ones([1, 3, 75, 75], DType::Float32))?.shape(), [1, 10]);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    fn build(#[opt(1000)] num_classes: i64, #[opt(true)] with_pool: bool) -> Result<InceptionV3> {
        let base = Base::of("InceptionV3");
        let inception_stem = InceptionStem::build()?;
        let mut inception_block_list = LayerList::new();
        inception_block_list.append(InceptionBlock::a(192, 32)?).append(InceptionBlock::a(256, 64)?);
        inception_block_list.append(InceptionBlock::a(288, 64)?).append(InceptionBlock::b(288)?);
        for width in [128, 160, 160, 192] {
            inception_block_list.append(InceptionBlock::c(768, width)?);
        }
        inception_block_list.append(InceptionBlock::d(768)?).append(InceptionBlock::e(1280)?);
        inception_block_list.append(InceptionBlock::e(FEATURES)?);
        let avg_pool = mean_pool(with_pool);
        let classes = classes(num_classes);
        let dropout = classes.map(|_| Dropout::try_with(0.2, |o| o.mode("downscale_in_infer"))).transpose()?;
        let bound = 1.0 / (FEATURES as f64).sqrt();
        let fc = classes.map(|n| Linear::try_with(FEATURES, n, |o| o.weight_attr(within(bound)))).transpose()?;
        Ok(InceptionV3 { base, inception_stem, inception_block_list, avg_pool, dropout, fc })
    }
}

impl Layer for InceptionV3 {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let x = x.apply(&self.inception_stem)?;
        let x = self.inception_block_list.iter().try_fold(x, |x, block| block.call(&x))?;
        let x = maybe(x, &self.avg_pool)?;
        match &self.fc {
            Some(fc) => maybe(x.try_reshape([-1, FEATURES as i64])?, &self.dropout)?.apply(fc),
            None => Ok(x),
        }
    }
}

variants! {
    KNOWN: InceptionV3 InceptionV3Opts -> InceptionV3, [1, 3, 299, 299];
    /// Inception, version 3.
    inception_v3 inception_v3_with = (;) hapi!("inception_v3" "649a4547c3243e8b59c656f41fe330b8");
}
