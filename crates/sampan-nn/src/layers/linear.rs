//! Layers around a matrix: products, bilinear forms, lookups.

use super::bound::{Bound, Setting, first};
use crate::init::XavierUniform;
use crate::{Base, Layer, ParamAttr, Parameter, layer};
use sampan_core::{DType, Error, Result, Tensor, Value, ensure};
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
    fn settings(&self) -> Vec<(&'static str, Value)> {
        let shape = self.weight.shape();
        vec![("in_features", shape[0].into()), ("out_features", shape[1].into())]
    }
    fn extra_repr(&self) -> String {
        let shape = self.weight.shape();
        format!("in_features={}, out_features={}, dtype={}", shape[0], shape[1], self.weight.dtype())
    }
}

/// A bilinear form of two inputs for each output feature.
#[derive(Layer)]
pub struct Bilinear {
    base: Base,
    /// `[out_features, in1_features, in2_features]`.
    pub weight: Parameter,
    /// `[1, out_features]`.
    pub bias: Option<Parameter>,
}

#[class(module = "nn", object = layer::object)]
impl Bilinear {
    /// `x1 @ weight[k] @ x2 + bias[k]` for each output feature `k`.
    ///
    /// ```
    /// use sampan_core::{DType, Tensor};
    /// use sampan_nn::{Bilinear, Layer};
    /// let (x1, x2) = (Tensor::ones([5, 2], DType::Float32), Tensor::ones([5, 3], DType::Float32));
    /// assert_eq!(Bilinear::new(2, 3, 4).call_all(&[x1, x2])?[0].shape(), [5, 4]);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    fn build(
        in1_features: usize,
        in2_features: usize,
        out_features: usize,
        #[opt(None)] weight_attr: ParamAttr,
        #[opt(None)] bias_attr: ParamAttr,
    ) -> Result<Bilinear> {
        let base = Base::new("bilinear");
        let weight = base.weight(&[out_features, in1_features, in2_features], &weight_attr, &XavierUniform::new())?;
        let bias = base.bias(&[1, out_features], &bias_attr)?;
        Ok(Bilinear { base, weight, bias })
    }
}

impl Layer for Bilinear {
    fn input_names(&self) -> Vec<&'static str> {
        vec!["x1", "x2"]
    }
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        first(self.forward_all(std::slice::from_ref(x))?)
    }
    fn forward_all(&self, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        let [x1, x2] = inputs else {
            return Err(Error::invalid(format!("takes 2 inputs (x1, x2), got {}", inputs.len()))
                .hint("use call_all for several inputs"));
        };
        let bias = self.bias.as_ref().map(Parameter::value).transpose()?;
        Ok(vec![x1.try_bilinear(x2, &self.weight.value()?, bias.as_ref())?])
    }
    fn extra_repr(&self) -> String {
        let shape = self.weight.shape();
        let dtype = self.weight.dtype();
        format!("in1_features={}, in2_features={}, out_features={}, dtype={dtype}", shape[1], shape[2], shape[0])
    }
}

/// A table of vectors, looked up by number.
#[derive(Layer)]
pub struct Embedding {
    base: Base,
    /// `[num_embeddings, embedding_dim]`.
    pub weight: Parameter,
    op: Bound,
    sparse: bool,
}

#[class(module = "nn", object = layer::object)]
impl Embedding {
    /// A table of `num_embeddings` vectors of `embedding_dim` elements, looked up by number. The vector at `padding_idx`
    /// starts as zero and gets no gradient; vectors longer than `max_norm` in the norm of order `norm_type` are
    /// shortened in place when they are used. Gradients are dense; with `sparse` an `Adam` in its `lazy_mode` leaves the
    /// rows alone that a step has not used.
    ///
    /// ```
    /// use sampan_core::Tensor;
    /// use sampan_nn::{Embedding, Layer};
    /// let words = Embedding::with(10, 3, |o| o.padding_idx(0));
    /// let y = words.call(&Tensor::new([[1i64, 0]]))?;
    /// assert_eq!(y.shape(), [1, 2, 3]);
    /// assert_eq!(y.to_vec::<f32>()[3..], [0.0; 3]);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    fn build(
        num_embeddings: usize,
        embedding_dim: usize,
        #[opt(None)] padding_idx: Option<i64>,
        #[opt(None)] max_norm: Option<f64>,
        #[opt(2.0)] norm_type: f64,
        #[opt(false)] scale_grad_by_freq: bool,
        #[opt(false)] sparse: bool,
        #[opt(None)] _weight: Option<&Tensor>,
        #[opt(false)] _freeze: bool,
        #[opt(None)] device: &Value,
        #[opt(None)] dtype: Option<DType>,
        #[opt(None)] weight_attr: ParamAttr,
    ) -> Result<Embedding> {
        ensure!(num_embeddings > 0, "num_embeddings must be greater than 0");
        ensure!(embedding_dim > 0, "embedding_dim must be greater than 0");
        let n = num_embeddings as i64;
        if let Some(i) = padding_idx {
            ensure!((-n..n).contains(&i), "padding_idx must lie in [-{n}, {n}), got {i}");
        }
        let base = Base::new("embedding").placed(device, dtype)?;
        let shape = [num_embeddings, embedding_dim];
        let weight = match _weight {
            Some(values) => {
                ensure!(values.shape() == shape, "_weight has shape {:?}, expected {shape:?}", values.shape());
                Parameter::with_attr(values.clone(), &ParamAttr::new().trainable(!_freeze))
            }
            None => base.weight(&shape, &weight_attr, &XavierUniform::new())?,
        };
        if _freeze {
            weight.set_trainable(false);
        }
        if let Some(i) = padding_idx {
            let row = weight.tensor().detach().try_narrow(0, i, 1)?;
            row.try_set_value(&Tensor::zeros([1, shape[1]], row.dtype()))?;
        }
        let settings = [
            ("padding_idx", padding_idx.keep()),
            ("max_norm", max_norm.keep()),
            ("norm_type", norm_type.into()),
            ("sparse", sparse.into()),
            ("scale_grad_by_freq", scale_grad_by_freq.into()),
        ];
        Ok(Embedding { base, weight, op: Bound::new("embedding", settings)?, sparse })
    }
}

impl Layer for Embedding {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        // Said whenever it is used: another parameter may have been put in the weight's place.
        if self.sparse {
            self.weight.set_sparse();
        }
        self.op.first(&self.base, [x.into(), self.weight.value()?.into()])
    }
    fn settings(&self) -> Vec<(&'static str, Value)> {
        let shape = self.weight.shape();
        let sizes = vec![("num_embeddings", shape[0].into()), ("embedding_dim", shape[1].into())];
        [sizes, self.op.settings()].concat()
    }
    fn extra_repr(&self) -> String {
        let shape = self.weight.shape();
        format!("{}, {}, {}", shape[0], shape[1], self.op.describe("padding_idx?, sparse, scale_grad_by_freq"))
    }
}
