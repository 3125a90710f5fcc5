//! The share of right answers.

use super::{Metric, object, take};
use sampan_core::{DType, Error, Result, Tensor, ensure};
use sampan_macros::{class, function};

/// The share of samples whose label is among the highest scores.
#[derive(Clone, Debug)]
pub struct Accuracy {
    topk: Vec<usize>,
    names: Vec<String>,
    right: Vec<f64>,
    count: usize,
}

#[class(module = "metric", object = object)]
impl Accuracy {
    /// The share of samples whose label is among the `k` highest scores, for each `k` of `topk`. Labels are class numbers
    /// of shape `[N]` or `[N, 1]`, or one-hot `[N, classes]`.
    ///
    /// ```
    /// use sampan_core::Tensor;
    /// use sampan_nn::metric::{Accuracy, Metric};
    /// let mut m = Accuracy::new();
    /// let scores = Tensor::new([[0.1f32, 0.9], [0.8, 0.2]]);
    /// let batch = m.compute(&[scores], &[Tensor::new([1i64, 1])])?;
    /// m.update(&batch)?;
    /// assert_eq!(m.accumulate(), [0.5]);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    fn build(#[opt(1)] topk: &[i64], #[opt(None)] name: Option<&str>) -> Result<Accuracy> {
        ensure!(!topk.is_empty() && topk.iter().all(|&k| k > 0), "topk needs positive numbers, got {topk:?}");
        let name = name.unwrap_or("acc");
        let names = if topk.iter().max() == Some(&1) {
            vec![name.to_string()]
        } else {
            topk.iter().map(|k| format!("{name}_top{k}")).collect()
        };
        let topk: Vec<usize> = topk.iter().map(|&k| k as usize).collect();
        Ok(Accuracy { right: vec![0.0; topk.len()], topk, names, count: 0 })
    }
}

/// One where the label is the class with the i-th highest score, else zero: shape `[…, k]`.
fn hits(scores: &Tensor, label: &Tensor, k: usize) -> Result<Tensor> {
    let (scores, label) = (scores.detach(), label.detach());
    let Some((&classes, samples)) = scores.shape().split_last() else {
        return Err(Error::invalid("scores need an axis of classes").received("a 0-d tensor"));
    };
    let wrong = || {
        Error::invalid(format!("labels of shape {:?} do not fit scores of shape {:?}", label.shape(), scores.shape()))
            .hint("labels are class numbers of shape [N] or [N, 1], or one-hot")
    };
    let one_hot = label.shape() == scores.shape() && classes != 1;
    let classes_of = if one_hot { label.try_argmax(-1i64)? } else { label.clone() };
    if classes_of.numel() != samples.iter().product::<usize>() {
        return Err(wrong());
    }
    let column: Vec<i64> = samples.iter().map(|&n| n as i64).chain([1]).collect();
    let label = classes_of.try_cast(DType::Int64)?.try_reshape(column)?;
    let (_, best) = scores.try_topk(k.min(classes) as i64)?;
    best.try_equal(&label)?.try_cast(DType::Float32)
}

impl Metric for Accuracy {
    fn name(&self) -> Vec<String> {
        self.names.clone()
    }

    fn compute(&self, outputs: &[Tensor], labels: &[Tensor]) -> Result<Vec<Tensor>> {
        let (Some(scores), Some(label)) = (outputs.first(), labels.first()) else {
            return Err(Error::invalid("takes scores and labels").in_op("Accuracy"));
        };
        let most = self.topk.iter().copied().max().unwrap_or(1);
        Ok(vec![hits(scores, label, most).map_err(|e| e.in_op("Accuracy"))?])
    }

    fn update(&mut self, batch: &[Tensor]) -> Result<Vec<f64>> {
        let [hits] = take(batch, "Accuracy", "what compute returned")?;
        let columns = hits.shape().last().copied().unwrap_or(1).max(1);
        let samples = hits.numel() / columns;
        let values = hits.to_f64_vec();
        self.count += samples;
        let counts = self.topk.iter().map(|&k| values.chunks(columns).map(|row| row.iter().take(k).sum::<f64>()).sum());
        let counts: Vec<f64> = counts.collect();
        self.right.iter_mut().zip(&counts).for_each(|(r, c)| *r += c);
        Ok(counts.into_iter().map(|c| share(c, samples)).collect())
    }

    fn accumulate(&self) -> Vec<f64> {
        self.right.iter().map(|&r| share(r, self.count)).collect()
    }

    fn reset(&mut self) {
        self.right.fill(0.0);
        self.count = 0;
    }

    fn state(&self) -> Vec<f64> {
        [&[self.count as f64], &self.right[..]].concat()
    }

    fn set_state(&mut self, state: &[f64]) {
        if let [count, right @ ..] = state
            && right.len() == self.right.len()
        {
            self.count = *count as usize;
            self.right.copy_from_slice(right);
        }
    }
}

fn share(part: f64, of: usize) -> f64 {
    if of == 0 { 0.0 } else { part / of as f64 }
}

/// The share of samples whose label is among the `k` highest scores, as a 0-d tensor. Where the tensors `correct` and
/// `total` of one element are given, the numbers of right answers and of samples are written into them.
///
/// ```
/// use sampan_core::Tensor;
/// let scores = Tensor::new([[0.1f32, 0.7, 0.2], [0.5, 0.2, 0.3]]);
/// let total = Tensor::new([0i32]);
/// let acc = sampan_nn::metric::accuracy(&scores, &Tensor::new([[1i64], [2]]), 2, None, Some(&total))?;
/// assert_eq!((acc.to_f64(), total.to_vec::<i32>()), (1.0, vec![2]));
/// # Ok::<(), sampan_core::Error>(())
/// ```
#[function(module = "metric")]
pub fn accuracy(
    input: &Tensor,
    label: &Tensor,
    #[default(1)] k: usize,
    #[default(None)] correct: Option<&Tensor>,
    #[default(None)] total: Option<&Tensor>,
) -> Result<Tensor> {
    let run = || {
        ensure!(k > 0, "k must be positive");
        let hits = hits(input, label, k)?;
        let samples: usize = hits.shape().iter().rev().skip(1).product();
        let right: f64 = hits.to_f64_vec().iter().sum();
        for (name, place, count) in [("correct", correct, right), ("total", total, samples as f64)] {
            let Some(place) = place else { continue };
            ensure!(place.numel() == 1, "{name} must have one element, got shape {:?}", place.shape());
            place.try_set_value(&Tensor::full(place.shape(), count, place.dtype()))?;
        }
        Ok(Tensor::new(share(right, samples) as f32))
    };
    run().map_err(|e: Error| e.in_op("accuracy"))
}
