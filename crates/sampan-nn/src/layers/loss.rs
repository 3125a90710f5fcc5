//! Losses: the mathematics is in `sampan-core`; a layer holds the arguments.

use super::bound::op_layers;
use crate::callable::Callable;
use crate::layer::{self, Of};
use crate::{Base, Layer, call_values};
use sampan_core::ops::geometry::PairwiseDistanceOpts;
use sampan_core::ops::loss_margin::triplet_margin_with_distance_loss;
use sampan_core::value::Arg;
use sampan_core::{Error, Object, Result, Tensor, Value, ensure};
use sampan_macros::{class, function};
use std::sync::Arc;

/// Refuses an unknown reduction when the loss is made, not when it is first used.
fn check_reduction(word: &str) -> Result<()> {
    let known = matches!(word, "none" | "mean" | "sum");
    ensure!(known, "reduction must be \"none\", \"mean\" or \"sum\", got {word:?}");
    Ok(())
}

op_layers! {
    /// The cross entropy of class scores against labels, or against probabilities with `soft_label`; softmax included
    /// unless `use_softmax` is false.
    ///
    /// ```
    /// use sampan_core::{DType, Tensor};
    /// use sampan_nn::CrossEntropyLoss;
    /// let loss = CrossEntropyLoss::with(|o| o.label_smoothing(0.1));
    /// let value = loss.of(&Tensor::zeros([2, 4], DType::Float32), &Tensor::new([0i64, 3]))?;
    /// assert!((value.to_f64() - 4f64.ln()).abs() < 1e-6);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    CrossEntropyLoss = "cross_entropy" (
        #[opt(None)] weight: Option<&Tensor>,
        #[opt(-100)] ignore_index: i64,
        #[opt("mean")] reduction: &str,
        #[opt(false)] soft_label: bool,
        #[opt(-1)] axis: i64,
        #[opt(true)] use_softmax: bool,
        #[opt(0.0)] label_smoothing: f64,
    ) { check_reduction(reduction)?; };
    /// The cross entropy of log-probabilities against labels.
    NLLLoss = "nll_loss" (
        #[opt(None)] weight: Option<&Tensor>,
        #[opt(-100)] ignore_index: i64,
        #[opt("mean")] reduction: &str,
    ) { check_reduction(reduction)?; };
    /// The cross entropy of probabilities of yes against labels in `[0, 1]`.
    BCELoss = "binary_cross_entropy" (
        #[opt(None)] weight: Option<&Tensor>,
        #[opt("mean")] reduction: &str,
    ) { check_reduction(reduction)?; };
    /// The cross entropy of scores whose sigmoid is the probability of yes against labels in `[0, 1]`; `pos_weight`
    /// weighs the positive labels.
    BCEWithLogitsLoss = "binary_cross_entropy_with_logits" (
        #[opt(None)] weight: Option<&Tensor>,
        #[opt("mean")] reduction: &str,
        #[opt(None)] pos_weight: Option<&Tensor>,
    ) { check_reduction(reduction)?; };
    /// The squared difference.
    ///
    /// ```
    /// use sampan_core::Tensor;
    /// use sampan_nn::MSELoss;
    /// let value = MSELoss::new().of(&Tensor::new([1.0f32, 2.0]), &Tensor::new([1.0f32, 4.0]))?;
    /// assert_eq!(value.to_f64(), 2.0);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    MSELoss = "mse_loss" (#[opt("mean")] reduction: &str) { check_reduction(reduction)?; };
    /// The absolute difference.
    L1Loss = "l1_loss" (#[opt("mean")] reduction: &str) { check_reduction(reduction)?; };
    /// Squares of small differences and absolute values of those beyond `delta`; divided by `delta` unless `is_huber`.
    SmoothL1Loss = "smooth_l1_loss" (
        #[opt("mean")] reduction: &str,
        #[opt(1.0)] delta: f64,
        #[opt(true)] is_huber: bool,
    ) { check_reduction(reduction)?; };
    /// The Kullback-Leibler divergence of log-probabilities from a target.
    KLDivLoss = "kl_div" (#[opt("mean")] reduction: &str, #[opt(false)] log_target: bool) {
        if reduction != "batchmean" {
            check_reduction(reduction)?;
        }
    };
    /// `max(0, margin - label * (input - other))`: which of two should rank higher.
    MarginRankingLoss = "margin_ranking_loss" (
        #[opt(0.0)] margin: f64,
        #[opt("mean")] reduction: &str,
    ) { check_reduction(reduction)?; };
    /// `input` where the label is 1, `max(0, margin - input)` where it is -1.
    HingeEmbeddingLoss = "hinge_embedding_loss" (
        #[opt(1.0)] margin: f64,
        #[opt("mean")] reduction: &str,
    ) { check_reduction(reduction)?; };
    /// `1 - cos` of pairs that belong together (label 1), `max(0, cos - margin)` of those that do not (-1).
    CosineEmbeddingLoss = "cosine_embedding_loss" (
        #[opt(0.0)] margin: f64,
        #[opt("mean")] reduction: &str,
    ) { check_reduction(reduction)?; };
    /// `max(0, d(input, positive) - d(input, negative) + margin)` with the distance of norm `p`.
    TripletMarginLoss = "triplet_margin_loss" (
        #[opt(1.0)] margin: f64,
        #[opt(2.0)] p: f64,
        #[opt(1e-6)] epsilon: f64,
        #[opt(false)] swap: bool,
        #[opt("mean")] reduction: &str,
    ) { check_reduction(reduction)?; };
    /// The mean over classes of the cross entropy of each class by itself.
    MultiLabelSoftMarginLoss = "multi_label_soft_margin_loss" (
        #[opt(None)] weight: Option<&Tensor>,
        #[opt("mean")] reduction: &str,
    ) { check_reduction(reduction)?; };
    /// The hinge of every wrong class against every labelled one.
    MultiLabelMarginLoss = "multi_label_margin_loss" (
        #[opt("mean")] reduction: &str,
    ) { check_reduction(reduction)?; };
    /// The hinge, to the power `p`, of every wrong class against the labelled one.
    MultiMarginLoss = "multi_margin_loss" (
        #[opt(1)] p: i64,
        #[opt(1.0)] margin: f64,
        #[opt(None)] weight: Option<&Tensor>,
        #[opt("mean")] reduction: &str,
    ) { check_reduction(reduction)?; };
    /// `log(1 + exp(-label * input))` with labels 1 and -1.
    SoftMarginLoss = "soft_margin_loss" (#[opt("mean")] reduction: &str) { check_reduction(reduction)?; };
    /// The negative log-likelihood of counts; `input` is the logarithm of the rate unless `log_input` is false, and `full`
    /// adds Stirling's approximation of the constant term.
    PoissonNLLLoss = "poisson_nll_loss" (
        #[opt(true)] log_input: bool,
        #[opt(false)] full: bool,
        #[opt(1e-8)] epsilon: f64,
        #[opt("mean")] reduction: &str,
    ) { check_reduction(reduction)?; };
    /// The negative log-likelihood of numbers with a predicted mean and variance; `full` adds the constant term.
    GaussianNLLLoss = "gaussian_nll_loss" (
        #[opt(false)] full: bool,
        #[opt(1e-6)] epsilon: f64,
        #[opt("mean")] reduction: &str,
    ) { check_reduction(reduction)?; };
    /// Connectionist temporal classification: the negative log-likelihood of `labels` under all alignments with the frames
    /// of `log_probs` `[time, batch, classes]` (unscaled scores: the softmax is included).
    CTCLoss = "ctc_loss" (
        #[opt(0)] blank: i64,
        #[opt("mean")] reduction: &str,
        #[opt(false)] zero_infinity: bool,
    ) { check_reduction(reduction)?; };
    /// The loss of a recurrent transducer: the negative log-likelihood of `label` under log-probabilities
    /// `[batch, frames, labels + 1, classes]`.
    RNNTLoss = "rnnt_loss" (
        #[opt(0)] blank: i64,
        #[opt(0.001)] fastemit_lambda: f64,
        #[opt("mean")] reduction: &str,
    ) { check_reduction(reduction)?; };
}

/// The typed form of a call, with the names of the inputs.
macro_rules! of {
    ($($name:ident($($input:ident),+);)*) => {$(
        impl $name {
            /// The loss of these inputs.
            pub fn of(&self, $($input: &Tensor),+) -> Result<Tensor> {
                Ok(self.call_all(&[$($input.clone()),+])?.swap_remove(0))
            }
        }
    )*};
}
of! {
    CrossEntropyLoss(input, label);
    NLLLoss(input, label);
    BCELoss(input, label);
    BCEWithLogitsLoss(logit, label);
    MSELoss(input, label);
    L1Loss(input, label);
    SmoothL1Loss(input, label);
    KLDivLoss(input, label);
    MarginRankingLoss(input, other, label);
    HingeEmbeddingLoss(input, label);
    CosineEmbeddingLoss(input1, input2, label);
    TripletMarginLoss(input, positive, negative);
    MultiLabelSoftMarginLoss(input, label);
    MultiLabelMarginLoss(input, label);
    MultiMarginLoss(input, label);
    SoftMarginLoss(input, label);
    PoissonNLLLoss(input, label);
    GaussianNLLLoss(input, label, variance);
    CTCLoss(log_probs, labels, input_lengths, label_lengths);
    RNNTLoss(input, label, input_lengths, label_lengths);
    TripletMarginWithDistanceLoss(input, positive, negative);
}

impl CTCLoss {
    /// [`of`](CTCLoss::of) with gradients divided by the number of frames of each sequence.
    pub fn of_normed(
        &self,
        log_probs: &Tensor,
        labels: &Tensor,
        input_lengths: &Tensor,
        label_lengths: &Tensor,
    ) -> Result<Tensor> {
        let inputs = [log_probs, labels, input_lengths, label_lengths].map(Clone::clone);
        let mut normed = |inputs: &[Tensor]| {
            let by_times = [("norm_by_times", Value::Bool(true))];
            self.op.call_with(&self.base, inputs.iter().map(Value::from), by_times)
        };
        Ok(layer::call_with(&Of(self), &inputs, &mut normed)?.swap_remove(0))
    }
}

/// A distance between the rows of two tensors.
#[derive(Clone)]
pub struct Distance(Arc<dyn Fn(&Tensor, &Tensor) -> Result<Tensor> + Send + Sync>);

impl<F: Fn(&Tensor, &Tensor) -> Result<Tensor> + Send + Sync + 'static> From<F> for Distance {
    fn from(f: F) -> Distance {
        Distance(Arc::new(f))
    }
}
impl From<Distance> for Value {
    fn from(d: Distance) -> Value {
        Value::Object(Object::new(d))
    }
}
impl<'a> Arg<'a> for Distance {
    const EXPECTED: &'static str = "a function of two Tensors";
    fn read(v: &'a Value) -> Option<Self> {
        let Value::Object(o) = v else { return None };
        let one = |out: Value| match out {
            Value::Tensor(t) => Ok(t),
            other => Err(Error::dtype(format!("the distance must be a Tensor, got {}", other.type_name()))),
        };
        // A function of another language gets both tensors as one list.
        let foreign = |f: &Callable| {
            let f = f.0.clone();
            Distance(Arc::new(move |a, b| one(f(Value::Tensors(vec![a.clone(), b.clone()]))?)))
        };
        let layer = |layer: &Arc<dyn Layer>| {
            let layer = layer.clone();
            Distance(Arc::new(move |a, b| one(call_values(&*layer, vec![a.into(), b.into()])?)))
        };
        let own = o.downcast::<Distance>().cloned();
        own.or_else(|| o.downcast().map(foreign)).or_else(|| o.downcast().map(layer))
    }
}

/// Euclidean, unless another one is given.
fn distance_or_euclidean(given: Option<Distance>) -> Distance {
    let euclidean = |x: &Tensor, y: &Tensor| x.try_pairwise_distance_with(y, PairwiseDistanceOpts::new());
    given.unwrap_or_else(|| euclidean.into())
}

/// [`TripletMarginWithDistanceLoss`] as a function, for those who call by name.
///
/// ```
/// use sampan_core::{Tensor, Value, function};
/// use sampan_nn::Distance;
/// let city = Value::from(Distance::from(|x: &Tensor, y: &Tensor| Ok((x - y).abs().sum(-1))));
/// let (a, n) = (Value::from(Tensor::new([[0.0f32]])), Value::from(Tensor::new([[0.25f32]])));
/// let loss = function::find("nn.functional", "triplet_margin_with_distance_loss").expect("it is registered");
/// let loss = loss.call(vec![a.clone(), a, n, city], vec![])?;
/// assert!(matches!(loss, Value::Tensor(loss) if loss.to_f64() == 0.75));
/// # Ok::<(), sampan_core::Error>(())
/// ```
#[function(module = "nn.functional", name = "triplet_margin_with_distance_loss")]
fn triplet_margin_with_distance_loss_by_name(
    input: &Tensor,
    positive: &Tensor,
    negative: &Tensor,
    #[default(None)] distance_function: Option<Distance>,
    #[default(1.0)] margin: f64,
    #[default(false)] swap: bool,
    #[default("mean")] reduction: &str,
) -> Result<Tensor> {
    let distance = distance_or_euclidean(distance_function);
    let distance = |x: &Tensor, y: &Tensor| sampan_core::error::unwrap((distance.0)(x, y));
    triplet_margin_with_distance_loss(input, positive, negative, distance, margin, swap, reduction)
}

/// The triplet loss with any distance.
#[derive(Layer)]
pub struct TripletMarginWithDistanceLoss {
    base: Base,
    #[layer(skip)]
    distance: Distance,
    margin: f64,
    swap: bool,
    reduction: String,
}

#[class(module = "nn", object = layer::object)]
impl TripletMarginWithDistanceLoss {
    /// `max(0, d(input, positive) - d(input, negative) + margin)` with any distance, Euclidean by default; `swap` takes the
    /// negative's distance from the positive where that is smaller.
    ///
    /// ```
    /// use sampan_core::Tensor;
    /// use sampan_nn::TripletMarginWithDistanceLoss;
    /// let city = |x: &Tensor, y: &Tensor| Ok((x - y).abs().sum(-1));
    /// let loss = TripletMarginWithDistanceLoss::with(|o| o.distance_function(city));
    /// let (a, n) = (Tensor::new([[0.0f32]]), Tensor::new([[0.25f32]]));
    /// assert_eq!(loss.of(&a, &a, &n)?.to_f64(), 0.75);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    fn build(
        #[opt(None)] distance_function: Option<Distance>,
        #[opt(1.0)] margin: f64,
        #[opt(false)] swap: bool,
        #[opt("mean")] reduction: &str,
    ) -> Result<TripletMarginWithDistanceLoss> {
        check_reduction(reduction)?;
        Ok(TripletMarginWithDistanceLoss {
            base: Base::new("triplet_margin_with_distance_loss"),
            distance: distance_or_euclidean(distance_function),
            margin,
            swap,
            reduction: reduction.into(),
        })
    }
}

impl Layer for TripletMarginWithDistanceLoss {
    fn input_names(&self) -> Vec<&'static str> {
        vec!["input", "positive", "negative"]
    }
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        Ok(self.forward_all(std::slice::from_ref(x))?.swap_remove(0))
    }
    fn forward_all(&self, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        let [input, positive, negative] = inputs else {
            return Err(Error::invalid(format!("takes 3 inputs (input, positive, negative), got {}", inputs.len())));
        };
        let distance = |x: &Tensor, y: &Tensor| sampan_core::error::unwrap((self.distance.0)(x, y));
        let reduction = &self.reduction;
        let loss =
            triplet_margin_with_distance_loss(input, positive, negative, distance, self.margin, self.swap, reduction)?;
        Ok(vec![loss])
    }
}
