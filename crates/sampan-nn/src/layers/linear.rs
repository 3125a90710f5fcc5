//! Layers around a matrix product.

use crate::init::XavierUniform;
use crate::{Base, Layer, ParamAttr, Parameter, layer};
use sampan_core::{Result, Tensor};
use sampan_macros::class;

/// `x @ weight + bias` with a weight of shape `[in_features, out_features]`.
#[derive(Layer)]
pub struct Linear {
    base: Base,
    /// `[in_features, out_features]`.
    pub weight: Parameter,
    /// `[out_features]`.
    pub bias: Option<Parameter>,
}

#[class(module = "nn", object = layer::object)]
impl Linear {
    /// `x @ weight + bias` with a weight of shape `[in_features, out_features]`: Xavier uniform weights, a zero bias.
    ///
    /// ```
    /// use sampan_core::Tensor;
    /// use sampan_nn::{Layer, Linear};
    /// let y = Linear::new(3, 4).call(&Tensor::new([[1.0f32, 2.0, 3.0]]))?;
    /// assert_eq!(y.shape(), [1, 4]);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    fn build(
        in_features: usize,
        out_features: usize,
        #[opt(None)] weight_attr: ParamAttr,
        #[opt(None)] bias_attr: ParamAttr,
    ) -> Result<Linear> {
        let base = Base::new("linear");
        let weight = base.weight(&[in_features, out_features], &weight_attr, &XavierUniform::new())?;
        let bias = base.bias(&[out_features], &bias_attr)?;
        Ok(Linear { base, weight, bias })
    }
}

impl Layer for Linear {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let bias = self.bias.as_ref().map(Parameter::value).transpose()?;
        x.try_linear(&self.weight.value()?, bias.as_ref())
    }
    fn extra_repr(&self) -> String {
        let shape = self.weight.shape();
        format!("in_features={}, out_features={}", shape[0], shape[1])
    }
}
