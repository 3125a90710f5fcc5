//! Normalisation within a sample: over its last axes, groups of channels, or single channels.

use super::bound::{Bound, first, optional};
use crate::init::Constant;
use crate::{Base, Buffer, Layer, ParamAttr, Parameter, layer};
use sampan_core::ops::random;
use sampan_core::{DType, Result, Tensor, Value, ensure, no_grad};
use sampan_macros::class;

/// Normalises over the last axes.
#[derive(Layer)]
pub struct LayerNorm {
    base: Base,
    /// One for each normalised element.
    pub weight: Option<Parameter>,
    /// One for each normalised element.
    pub bias: Option<Parameter>,
    op: Bound,
    shape: Vec<i64>,
}

#[class(module = "nn", object = layer::object, alias(eps = epsilon))]
impl LayerNorm {
    /// Normalises over the last axes, those of `normalized_shape`, to mean 0 and deviation 1, then scales and shifts.
    ///
    /// ```
    /// use sampan_core::Tensor;
    /// use sampan_nn::{Layer, LayerNorm};
    /// let y = LayerNorm::new(2).call(&Tensor::new([[1.0f32, 3.0]]))?;
    /// assert!((y.to_vec::<f32>()[1] - 1.0).abs() < 1e-4);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    fn build(
        normalized_shape: &[i64],
        #[opt(1e-5)] epsilon: f64,
        #[opt(true)] elementwise_affine: bool,
        #[opt(true)] bias: bool,
        #[opt(None)] device: &Value,
        #[opt(None)] dtype: Option<DType>,
        #[opt(None)] weight_attr: ParamAttr,
        #[opt(None)] bias_attr: ParamAttr,
    ) -> Result<LayerNorm> {
        ensure!(
            normalized_shape.iter().all(|&d| d > 0),
            "normalized_shape must hold positive extents, got {normalized_shape:?}"
        );
        let base = Base::of("LayerNorm").placed(device, dtype)?;
        let shape = [normalized_shape.iter().product::<i64>() as usize];
        let wanted = |on: bool, attr| if on { attr } else { ParamAttr::from(false) };
        let weight = base.parameter(&shape, &wanted(elementwise_affine, weight_attr), false, &Constant::new(1.0))?;
        let bias = base.bias(&shape, &wanted(elementwise_affine && bias, bias_attr))?;
        let settings = [("normalized_shape", normalized_shape.into()), ("epsilon", epsilon.into())];
        Ok(LayerNorm { base, weight, bias, op: Bound::new("layer_norm", settings)?, shape: normalized_shape.to_vec() })
    }
}

impl Layer for LayerNorm {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let affine = [("weight", optional(&self.weight)?), ("bias", optional(&self.bias)?)];
        first(self.op.call_with(&self.base, [x.into()], affine)?)
    }
    fn settings(&self) -> Vec<(&'static str, Value)> {
        let mut settings = self.op.settings();
        settings.push(("normalized_shape", self.shape.as_slice().into()));
        settings
    }
    fn extra_repr(&self) -> String {
        format!("normalized_shape={:?}, {}", self.shape, self.op.describe("epsilon"))
    }
}

/// Normalises over groups of channels.
#[derive(Layer)]
pub struct GroupNorm {
    base: Base,
    /// `[num_channels]`.
    pub weight: Option<Parameter>,
    /// `[num_channels]`.
    pub bias: Option<Parameter>,
    op: Bound,
}

#[class(module = "nn", object = layer::object, alias(eps = epsilon))]
impl GroupNorm {
    /// Normalises each of `num_groups` groups of channels of each sample, then scales and shifts each channel.
    ///
    /// ```
    /// use sampan_core::Tensor;
    /// use sampan_nn::{GroupNorm, Layer};
    /// let y = GroupNorm::new(1, 2).call(&Tensor::new([[[1.0f32], [3.0]]]))?;
    /// assert!((y.to_vec::<f32>()[1] - 1.0).abs() < 1e-4);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    fn build(
        num_groups: usize,
        num_channels: usize,
        #[opt(1e-5)] epsilon: f64,
        #[opt(true)] affine: bool,
        #[opt(None)] device: &Value,
        #[opt(None)] dtype: Option<DType>,
        #[opt(None)] weight_attr: ParamAttr,
        #[opt(None)] bias_attr: ParamAttr,
        #[opt("NCHW")] data_format: &str,
    ) -> Result<GroupNorm> {
        const FORMATS: [&str; 6] = ["NCL", "NCHW", "NCDHW", "NLC", "NHWC", "NDHWC"];
        ensure!(FORMATS.contains(&data_format), "data_format must be one of {FORMATS:?}, got {data_format:?}");
        ensure!(
            num_groups > 0 && num_channels.is_multiple_of(num_groups),
            "num_channels {num_channels} must be a multiple of num_groups {num_groups}"
        );
        let base = Base::of("GroupNorm").placed(device, dtype)?;
        // A learning rate of zero freezes them, as in Paddle.
        let attr = |attr: ParamAttr| match attr.learning_rate {
            _ if !affine => false.into(),
            0.0 => attr.trainable(false),
            _ => attr,
        };
        let weight = base.parameter(&[num_channels], &attr(weight_attr), false, &Constant::new(1.0))?;
        let bias = base.bias(&[num_channels], &attr(bias_attr))?;
        let settings = [
            ("num_groups", num_groups.into()),
            ("num_channels as _", num_channels.into()),
            ("epsilon", epsilon.into()),
            ("data_format", data_format.into()),
        ];
        Ok(GroupNorm { base, weight, bias, op: Bound::new("group_norm", settings)? })
    }
}

impl Layer for GroupNorm {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let affine = [("weight", optional(&self.weight)?), ("bias", optional(&self.bias)?)];
        first(self.op.call_with(&self.base, [x.into()], affine)?)
    }
    fn settings(&self) -> Vec<(&'static str, Value)> {
        self.op.settings()
    }
    fn extra_repr(&self) -> String {
        self.op.describe("num_groups, num_channels, epsilon")
    }
}

macro_rules! instance_norms {
    ($(#[doc = $summary:tt] $(#[doc = $more:tt])* $name:ident [$($rank:tt),*] $format:tt [$($formats:tt),*];)*) => {$(
        #[doc = $summary]
        #[derive(Layer)]
        pub struct $name {
            base: Base,
            /// `[num_features]`.
            pub scale: Option<Parameter>,
            /// `[num_features]`.
            pub bias: Option<Parameter>,
            op: Bound,
        }
        #[class(module = "nn", object = layer::object)]
        impl $name {
            #[doc = $summary]
            $(#[doc = $more])*
            fn build(
                num_features: usize,
                #[opt(1e-5)] epsilon: f64,
                #[opt(0.9)] momentum: f64,
                #[opt(None)] weight_attr: ParamAttr,
                #[opt(None)] bias_attr: ParamAttr,
                #[opt($format)] data_format: &str,
            ) -> Result<$name> {
                let formats = [$($formats),*];
                ensure!(formats.contains(&data_format), "data_format must be one of {formats:?}, got {data_format:?}");
                ensure!(
                    weight_attr.is_wanted() == bias_attr.is_wanted(),
                    "weight_attr and bias_attr must be False together"
                );
                let base = Base::of(stringify!($name));
                let scale = base.parameter(&[num_features], &weight_attr, false, &Constant::new(1.0))?;
                let bias = base.bias(&[num_features], &bias_attr)?;
                let format = if data_format == "NC" { "NCL" } else { data_format };
                let settings = [
                    ("num_features as _", num_features.into()),
                    ("epsilon as eps", epsilon.into()),
                    ("momentum", momentum.into()),
                    ("data_format", format.into()),
                ];
                Ok($name { base, scale, bias, op: Bound::new("instance_norm", settings)? })
            }
        }
        impl Layer for $name {
            fn forward(&self, x: &Tensor) -> Result<Tensor> {
                super::batch_norm::check_rank(x, &[$($rank),*])?;
                let affine = [("weight", optional(&self.scale)?), ("bias", optional(&self.bias)?)];
                first(self.op.call_with(&self.base, [x.into()], affine)?)
            }
            fn extra_repr(&self) -> String {
                self.op.describe("num_features, epsilon")
            }
        }
    )*};
}

instance_norms! {
    /// Normalises each channel of each sample of `[n, channels, length]`.
    InstanceNorm1D [2, 3] "NCL" ["NC", "NCL", "NLC"];
    /// Normalises each channel of each sample of `[n, channels, height, width]`, then scales and shifts it.
    /// `momentum` is accepted: there are no running statistics.
    ///
    /// ```
    /// use sampan_core::Tensor;
    /// use sampan_nn::{InstanceNorm2D, Layer};
    /// let y = InstanceNorm2D::new(1).call(&Tensor::new([[[[1.0f32, 3.0]]]]))?;
    /// assert!((y.to_vec::<f32>()[1] - 1.0).abs() < 1e-4);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    InstanceNorm2D [4] "NCHW" ["NCHW", "NHWC"];
    /// Normalises each channel of each sample of `[n, channels, depth, height, width]`.
    InstanceNorm3D [5] "NCDHW" ["NCDHW", "NDHWC"];
}

/// Divides a weight by its largest singular value.
#[derive(Layer)]
pub struct SpectralNorm {
    base: Base,
    /// Approaches the left singular vector.
    pub weight_u: Buffer,
    /// Approaches the right singular vector.
    pub weight_v: Buffer,
    shape: Vec<i64>,
    dim: i64,
    power_iters: usize,
    eps: f64,
}

#[class(module = "nn", object = layer::object)]
impl SpectralNorm {
    /// Divides a weight, seen as a matrix whose rows lie along `dim`, by its largest singular value, which
    /// `power_iters` power iterations from fixed random vectors approach.
    ///
    /// ```
    /// use sampan_core::Tensor;
    /// use sampan_nn::{Layer, SpectralNorm};
    /// let norm = SpectralNorm::with([2, 2], |o| o.power_iters(50));
    /// let y = norm.call(&Tensor::new([[4.0f32, 0.0], [0.0, 2.0]]))?;
    /// assert!((y.to_vec::<f32>()[0] - 1.0).abs() < 1e-4);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    fn build(
        weight_shape: &[i64],
        #[opt(0)] dim: i64,
        #[opt(1)] power_iters: usize,
        #[opt(1e-12)] eps: f64,
        #[opt(DType::Float32)] dtype: DType,
    ) -> Result<SpectralNorm> {
        ensure!(weight_shape.iter().all(|&d| d > 0), "weight_shape must hold positive extents, got {weight_shape:?}");
        ensure!(
            (0..weight_shape.len() as i64).contains(&dim),
            "dim must lie in [0, {}), got {dim}",
            weight_shape.len()
        );
        let base = Base::of("SpectralNorm").placed(&Value::None, Some(dtype))?;
        let rows = weight_shape[dim as usize];
        let columns = weight_shape.iter().product::<i64>() / rows;
        let weight_u = base.buffer(random::try_randn([rows])?, None)?;
        let weight_v = base.buffer(random::try_randn([columns])?, None)?;
        Ok(SpectralNorm { base, weight_u, weight_v, shape: weight_shape.to_vec(), dim, power_iters, eps })
    }
}

impl Layer for SpectralNorm {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let same = x.shape().iter().map(|&d| d as i64).eq(self.shape.iter().copied());
        ensure!(same, "the weight has shape {:?}, expected weight_shape {:?}", x.shape(), self.shape);
        let (mut u, mut v) = (self.weight_u.tensor(), self.weight_v.tensor());
        let matrix = x.try_moveaxis(self.dim, 0)?.try_reshape([self.shape[self.dim as usize], -1])?;
        no_grad(|| -> Result<()> {
            let unit = |t: Tensor| -> Result<Tensor> {
                let norm = t.try_square()?.try_sum(())?.try_sqrt()?.try_add(self.eps)?;
                t.try_divide(norm)
            };
            for _ in 0..self.power_iters {
                v = unit(matrix.try_t()?.try_mv(&u)?)?;
                u = unit(matrix.try_mv(&v)?)?;
            }
            Ok(())
        })?;
        let sigma = u.try_dot(&matrix.try_mv(&v)?)?;
        x.try_divide(sigma)
    }
    fn extra_repr(&self) -> String {
        format!("weight_shape={:?}, dim={}, power_iters={}", self.shape, self.dim, self.power_iters)
    }
}
