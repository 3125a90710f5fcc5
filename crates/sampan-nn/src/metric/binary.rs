//! Metrics of a yes or no.

use super::{Metric, object, take};
use sampan_core::{DType, Result, Tensor, ensure};
use sampan_macros::class;

/// Predictions and labels of a batch, one pair for each sample.
fn pairs(batch: &[Tensor], metric: &str) -> Result<Vec<(f64, f64)>> {
    let [predictions, labels] = take(batch, metric, "predictions and labels")?;
    let same = predictions.numel() == labels.numel();
    let fail = |e: sampan_core::Error| e.in_op(metric);
    (|| {
        ensure!(same, "predictions of shape {:?} for labels of shape {:?}", predictions.shape(), labels.shape());
        Ok(predictions.to_f64_vec().into_iter().zip(labels.to_f64_vec()).collect())
    })()
    .map_err(fail)
}

/// The share of right answers among those that say yes.
#[derive(Clone, Debug)]
pub struct Precision {
    name: String,
    tp: u64,
    fp: u64,
}

#[class(module = "metric", object = object)]
impl Precision {
    /// The share of samples with label 1 among those predicted with a probability of at least one half.
    ///
    /// ```
    /// use sampan_core::Tensor;
    /// use sampan_nn::metric::{Metric, Precision};
    /// let mut m = Precision::new();
    /// m.update(&[Tensor::new([0.1f32, 0.5, 0.6, 0.7]), Tensor::new([0i64, 1, 1, 0])])?;
    /// assert!((m.accumulate()[0] - 2.0 / 3.0).abs() < 1e-12);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    fn build(#[opt("precision")] name: &str) -> Result<Precision> {
        Ok(Precision { name: name.into(), tp: 0, fp: 0 })
    }
}

fn quotient(part: u64, rest: u64) -> f64 {
    if part + rest == 0 { 0.0 } else { part as f64 / (part + rest) as f64 }
}

impl Metric for Precision {
    fn name(&self) -> Vec<String> {
        vec![self.name.clone()]
    }
    fn update(&mut self, batch: &[Tensor]) -> Result<Vec<f64>> {
        for (prediction, label) in pairs(batch, "Precision")? {
            if (prediction + 0.5).floor() == 1.0 {
                *(if label == 1.0 { &mut self.tp } else { &mut self.fp }) += 1;
            }
        }
        Ok(self.accumulate())
    }
    fn accumulate(&self) -> Vec<f64> {
        vec![quotient(self.tp, self.fp)]
    }
    fn reset(&mut self) {
        (self.tp, self.fp) = (0, 0);
    }
    fn state(&self) -> Vec<f64> {
        vec![self.tp as f64, self.fp as f64]
    }
    fn set_state(&mut self, state: &[f64]) {
        if let &[tp, fp] = state {
            (self.tp, self.fp) = (tp as u64, fp as u64);
        }
    }
}

/// The share of what should be found that is found.
#[derive(Clone, Debug)]
pub struct Recall {
    name: String,
    tp: u64,
    missed: u64,
}

#[class(module = "metric", object = object)]
impl Recall {
    /// The share of samples predicted with a probability above one half among those with label 1.
    ///
    /// ```
    /// use sampan_core::Tensor;
    /// use sampan_nn::metric::{Metric, Recall};
    /// let mut m = Recall::new();
    /// m.update(&[Tensor::new([0.1f32, 0.6, 0.7]), Tensor::new([1i64, 1, 0])])?;
    /// assert_eq!(m.accumulate(), [0.5]);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    fn build(#[opt("recall")] name: &str) -> Result<Recall> {
        Ok(Recall { name: name.into(), tp: 0, missed: 0 })
    }
}

impl Metric for Recall {
    fn name(&self) -> Vec<String> {
        vec![self.name.clone()]
    }
    fn update(&mut self, batch: &[Tensor]) -> Result<Vec<f64>> {
        for (prediction, label) in pairs(batch, "Recall")? {
            if label == 1.0 {
                *(if prediction.round_ties_even() == 1.0 { &mut self.tp } else { &mut self.missed }) += 1;
            }
        }
        Ok(self.accumulate())
    }
    fn accumulate(&self) -> Vec<f64> {
        vec![quotient(self.tp, self.missed)]
    }
    fn reset(&mut self) {
        (self.tp, self.missed) = (0, 0);
    }
    fn state(&self) -> Vec<f64> {
        vec![self.tp as f64, self.missed as f64]
    }
    fn set_state(&mut self, state: &[f64]) {
        if let &[tp, missed] = state {
            (self.tp, self.missed) = (tp as u64, missed as u64);
        }
    }
}

/// The area under a curve over all thresholds.
#[derive(Clone, Debug)]
pub struct Auc {
    name: String,
    precision_recall: bool,
    /// Samples with label 1 and 0 by probability.
    positive: Vec<f64>,
    negative: Vec<f64>,
}

#[class(module = "metric", object = object)]
impl Auc {
    /// The area under the ROC curve (or the precision-recall curve, `curve="PR"`) from probabilities `[N, 2]`, of which the
    /// second column counts, in `num_thresholds` steps.
    ///
    /// ```
    /// use sampan_core::Tensor;
    /// use sampan_nn::metric::{Auc, Metric};
    /// let mut m = Auc::new();
    /// m.update(&[Tensor::new([[0.9f32, 0.1], [0.2, 0.8]]), Tensor::new([[0i64], [1]])])?;
    /// assert_eq!(m.accumulate(), [1.0]);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    fn build(#[opt("ROC")] curve: &str, #[opt(4095)] num_thresholds: usize, #[opt("auc")] name: &str) -> Result<Auc> {
        ensure!(["ROC", "PR"].contains(&curve), "curve must be \"ROC\" or \"PR\", got {curve:?}");
        ensure!(
            (1..=1 << 24).contains(&num_thresholds),
            "num_thresholds must lie between 1 and {}, beyond which single precision tells no more scores apart; got \
             {num_thresholds}",
            1 << 24
        );
        let zeros = vec![0.0; num_thresholds + 1];
        Ok(Auc { name: name.into(), precision_recall: curve == "PR", positive: zeros.clone(), negative: zeros })
    }
}

impl Metric for Auc {
    fn name(&self) -> Vec<String> {
        vec![self.name.clone()]
    }

    fn update(&mut self, batch: &[Tensor]) -> Result<Vec<f64>> {
        let [predictions, labels] = take(batch, "Auc", "predictions and labels")?;
        let fail = |e: sampan_core::Error| e.in_op("Auc");
        let steps = (self.positive.len() - 1) as f64;
        let bins = (|| {
            ensure!(
                predictions.shape() == [labels.numel(), 2],
                "predictions have shape [{}, 2], one row for each label, got {:?}",
                labels.numel(),
                predictions.shape()
            );
            let probabilities: Vec<f64> = predictions.to_f64_vec().chunks(2).map(|row| row[1]).collect();
            let outside = probabilities.iter().find(|p| !(0.0..=1.0).contains(*p));
            ensure!(outside.is_none(), "predictions are probabilities from 0 to 1, got {outside:?}");
            // In the precision the probabilities came in, so that one on a border falls where Paddle puts it.
            let single = predictions.dtype() != DType::Float64;
            let bin = move |p: f64| if single { (p as f32 * steps as f32) as usize } else { (p * steps) as usize };
            Ok(probabilities.into_iter().map(bin))
        })()
        .map_err(fail)?;
        for (bin, label) in bins.zip(labels.to_f64_vec()) {
            *(if label != 0.0 { &mut self.positive[bin] } else { &mut self.negative[bin] }) += 1.0;
        }
        Ok(self.accumulate())
    }

    fn accumulate(&self) -> Vec<f64> {
        let (mut positive, mut negative, mut area) = (0.0, 0.0, 0.0);
        let mut last_precision = 1.0;
        let all: f64 = self.positive.iter().sum();
        for (p, n) in self.positive.iter().zip(&self.negative).rev() {
            let (was_positive, was_negative) = (positive, negative);
            (positive, negative) = (positive + p, negative + n);
            if self.precision_recall {
                let precision = if positive + negative > 0.0 { positive / (positive + negative) } else { 1.0 };
                area += (positive - was_positive) * (precision + last_precision) / 2.0;
                last_precision = precision;
            } else {
                area += (negative - was_negative) * (positive + was_positive) / 2.0;
            }
        }
        let whole = if self.precision_recall { all } else { positive * negative };
        vec![if whole > 0.0 { area / whole } else { 0.0 }]
    }

    fn reset(&mut self) {
        self.positive.fill(0.0);
        self.negative.fill(0.0);
    }

    fn state(&self) -> Vec<f64> {
        [&self.positive[..], &self.negative[..]].concat()
    }

    fn set_state(&mut self, state: &[f64]) {
        let n = self.positive.len();
        if state.len() == 2 * n {
            self.positive.copy_from_slice(&state[..n]);
            self.negative.copy_from_slice(&state[n..]);
        }
    }
}
