//! A softmax over very many classes.

use crate::init::XavierUniform;
use crate::{Base, Layer, ParamAttr, Parameter, layer};
use sampan_core::ops::joining::try_concat;
use sampan_core::{Error, Result, Tensor, Value, ensure};
use sampan_macros::class;

/// The adaptive softmax: frequent classes in the head, rare ones in clusters with small factors.
#[derive(Layer)]
pub struct AdaptiveLogSoftmaxWithLoss {
    base: Base,
    /// `[in_features, cutoffs[0] + clusters]`.
    pub head_weight: Parameter,
    /// One number for each column of the head.
    pub head_bias: Option<Parameter>,
    /// For each cluster `[in_features, small]` and `[small, classes of the cluster]`.
    pub tail_weights: Vec<[Parameter; 2]>,
    /// The first class of each cluster, then the number of classes.
    #[layer(skip)]
    cutoffs: Vec<i64>,
}

#[class(module = "nn", object = layer::object)]
impl AdaptiveLogSoftmaxWithLoss {
    /// A softmax and its loss over `n_classes` classes sorted by how frequent they are. Classes below `cutoffs[0]` and one
    /// entry for each cluster are in the head; cluster `i` has the classes from `cutoffs[i]` to the next cutoff and
    /// `in_features / div_value^(i + 1)` features.
    ///
    /// ```
    /// use sampan_core::Tensor;
    /// use sampan_nn::AdaptiveLogSoftmaxWithLoss;
    /// let layer = AdaptiveLogSoftmaxWithLoss::new(8, 10, [3, 6]);
    /// let (log_p, loss) = layer.of(&Tensor::randn([2, 8]), &Tensor::new([0i64, 9]))?;
    /// assert_eq!((log_p.shape(), loss.shape()), (&[2][..], &[][..]));
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    fn build(
        in_features: usize,
        n_classes: usize,
        cutoffs: &[i64],
        #[opt(None)] weight_attr: ParamAttr,
        #[opt(None)] bias_attr: ParamAttr,
        #[opt(4.0)] div_value: f64,
        #[opt(false)] head_bias: bool,
    ) -> Result<AdaptiveLogSoftmaxWithLoss> {
        let rising = cutoffs.windows(2).all(|w| w[0] < w[1]);
        let inside = |&c: &i64| c > 0 && (c as usize) < n_classes;
        ensure!(
            !cutoffs.is_empty() && rising && cutoffs.iter().all(inside),
            "cutoffs must rise strictly between 0 and n_classes {n_classes}, got {cutoffs:?}"
        );
        ensure!(div_value > 0.0, "div_value must be positive, got {div_value}");
        let base = Base::new("adaptive_log_softmax_with_loss");
        let weight = |shape: &[usize]| base.weight(shape, &weight_attr, &XavierUniform::new());
        let clusters = cutoffs.len();
        let head_size = cutoffs[0] as usize + clusters;
        let head_weight = weight(&[in_features, head_size])?;
        let head_bias = if head_bias { base.bias(&[head_size], &bias_attr)? } else { None };
        let cutoffs = [cutoffs, &[n_classes as i64]].concat();
        let tail = |i: usize| {
            let small = (in_features as f64 / div_value.powi(i as i32 + 1)).floor() as usize;
            let classes = (cutoffs[i + 1] - cutoffs[i]) as usize;
            Ok([weight(&[in_features, small])?, weight(&[small, classes])?])
        };
        let tail_weights = (0..clusters).map(tail).collect::<Result<Vec<_>>>()?;
        Ok(AdaptiveLogSoftmaxWithLoss { base, head_weight, head_bias, tail_weights, cutoffs })
    }
}

impl AdaptiveLogSoftmaxWithLoss {
    /// The log-probability of each label and the mean loss.
    pub fn of(&self, input: &Tensor, label: &Tensor) -> Result<(Tensor, Tensor)> {
        let mut outputs = self.call_all(&[input.clone(), label.clone()])?;
        let loss = outputs.remove(1);
        Ok((outputs.remove(0), loss))
    }

    /// The log-probabilities of all classes, `[rows, n_classes]`.
    pub fn log_prob(&self, input: &Tensor) -> Result<Tensor> {
        let bias = self.head_bias.as_ref().map(Parameter::value).transpose()?;
        let head = input.try_linear(&self.head_weight.value()?, bias.as_ref())?.try_log_softmax(1)?;
        let short = self.cutoffs[0] as usize;
        let mut parts = vec![head.try_narrow(1, 0, short)?];
        for (i, [down, up]) in self.tail_weights.iter().enumerate() {
            let logits = input.try_matmul(&down.value()?)?.try_matmul(&up.value()?)?;
            parts.push(logits.try_log_softmax(1)?.try_add(head.try_narrow(1, short + i, 1)?)?);
        }
        try_concat(&parts, 1)
    }

    /// The most probable class of each row.
    pub fn predict(&self, input: &Tensor) -> Result<Tensor> {
        self.log_prob(input)?.try_argmax(1)
    }
}

impl Layer for AdaptiveLogSoftmaxWithLoss {
    fn input_names(&self) -> Vec<&'static str> {
        vec!["input", "label"]
    }
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.log_prob(x)
    }
    fn forward_all(&self, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        if let [input] = inputs {
            return Ok(vec![self.log_prob(input)?]);
        }
        let [input, label] = inputs else {
            return Err(Error::invalid(format!("takes 2 inputs (input, label), got {}", inputs.len())));
        };
        let tails = self.tail_weights.iter().map(|[down, up]| Ok(Value::Tensors(vec![down.value()?, up.value()?])));
        let tails = Value::List(tails.collect::<Result<Vec<_>>>()?);
        let bias = self.head_bias.as_ref().map(Parameter::value).transpose()?;
        let head = self.head_weight.value()?;
        let cutoffs = &self.cutoffs[..];
        let (output, loss) = input.try_adaptive_log_softmax_with_loss(label, &head, tails, cutoffs, bias.as_ref())?;
        Ok(vec![output, loss])
    }
}
