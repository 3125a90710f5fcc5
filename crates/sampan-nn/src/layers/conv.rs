//! Convolutions.

use crate::init::KaimingNormal;
use crate::{Base, Layer, ParamAttr, Parameter, layer};
use sampan_core::ops::conv::Conv2dOpts;
use sampan_core::{Result, Tensor, Value, ensure};
use sampan_macros::class;

/// A convolution over images.
#[derive(Layer)]
pub struct Conv2D {
    base: Base,
    /// `[out_channels, in_channels / groups, kernel, kernel]`.
    pub weight: Parameter,
    /// `[out_channels]`.
    pub bias: Option<Parameter>,
    stride: Vec<i64>,
    padding: Value,
    dilation: Vec<i64>,
    groups: usize,
}

#[class(module = "nn", object = layer::object)]
impl Conv2D {
    /// A convolution over images `[n, channels, height, width]`.
    fn build(
        in_channels: usize,
        out_channels: usize,
        kernel_size: &[i64],
        #[opt(1)] stride: &[i64],
        #[opt(0)] padding: &Value,
        #[opt(1)] dilation: &[i64],
        #[opt(1)] groups: usize,
        #[opt(None)] weight_attr: ParamAttr,
        #[opt(None)] bias_attr: ParamAttr,
    ) -> Result<Conv2D> {
        ensure!(
            groups > 0 && in_channels.is_multiple_of(groups),
            "in_channels {in_channels} must be a multiple of groups {groups}"
        );
        let base = Base::new("conv2d");
        let kernel = if let [k] = kernel_size { [*k, *k] } else { [kernel_size[0], kernel_size[1]] };
        let shape = [out_channels, in_channels / groups, kernel[0] as usize, kernel[1] as usize];
        let weight = base.weight(&shape, &weight_attr, &KaimingNormal::new())?;
        let bias = base.bias(&[out_channels], &bias_attr)?;
        let (stride, dilation) = (stride.to_vec(), dilation.to_vec());
        Ok(Conv2D { base, weight, bias, stride, padding: padding.clone(), dilation, groups })
    }
}

impl Layer for Conv2D {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let opts = Conv2dOpts::new()
            .stride(&*self.stride)
            .padding(self.padding.clone())
            .dilation(&*self.dilation)
            .groups(self.groups as i64);
        let bias = self.bias.as_ref().map(Parameter::value).transpose()?;
        x.try_conv2d_with(&self.weight.value()?, bias.as_ref(), opts)
    }
}
