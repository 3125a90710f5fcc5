//! Losses that compare distances, ranks and classes by a margin.

use crate::ops::loss::{Reduction, same_shape, sign_samples};
use crate::ops::prelude::*;

/// `max(0, -label * (input - other) + margin)`, reduced: `input` should rank above `other` where the label is 1, below
/// where it is -1.
///
/// ```
/// # use sampan_core::Tensor;
/// let (x, y, label) = (Tensor::new([1.0f32]), Tensor::new([3.0f32]), Tensor::new([1.0f32]));
/// assert_eq!(x.margin_ranking_loss(&y, &label).to_f64(), 2.0);
/// ```
#[op(module = "nn.functional", samples = ranking_samples)]
fn margin_ranking_loss(
    input: &Tensor,
    other: &Tensor,
    label: &Tensor,
    #[opt(0.0)] margin: f64,
    #[opt("mean")] reduction: &str,
) -> Result<Tensor> {
    let reduction = Reduction::parse(reduction)?;
    Ok(reduction.apply(&(other.try_subtract(input)?.try_multiply(label)? + margin).relu()))
}

/// `input` where the label is 1, `max(0, margin - input)` where it is -1, reduced.
///
/// ```
/// # use sampan_core::Tensor;
/// let loss = Tensor::new([0.25f32, 0.25]).hinge_embedding_loss(&Tensor::new([1.0f32, -1.0]));
/// assert_eq!(loss.to_f64(), 0.5);
/// ```
#[op(module = "nn.functional", samples = hinge_samples)]
fn hinge_embedding_loss(
    input: &Tensor,
    label: &Tensor,
    #[opt(1.0)] margin: f64,
    #[opt("mean")] reduction: &str,
) -> Result<Tensor> {
    let reduction = Reduction::parse(reduction)?;
    same_shape(("input", input), ("label", label))?;
    let near = label.equal(1).where_cond(input, 0.0);
    let far = label.equal(-1).where_cond((margin - input).relu(), 0.0);
    Ok(reduction.apply(&(near + far)))
}

/// One minus the cosine between the inputs where the label is 1, the cosine beyond `margin` where it is -1.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([[1.0f32, 2.0]]);
/// assert!(x.cosine_embedding_loss(&x, &Tensor::new([1i64])).to_f64().abs() < 1e-6);
/// ```
#[op(module = "nn.functional", samples = cosine_samples)]
fn cosine_embedding_loss(
    input1: &Tensor,
    input2: &Tensor,
    label: &Tensor,
    #[opt(0.0)] margin: f64,
    #[opt("mean")] reduction: &str,
) -> Result<Tensor> {
    let reduction = Reduction::parse(reduction)?;
    ensure!(label.ndim() == 1, "label must have one axis, got shape {:?}", label.shape());
    same_shape(("input1", input1), ("input2", input2))?;
    ensure!(matches!(input1.ndim(), 1 | 2), "the inputs must have 1 or 2 axes, got shape {:?}", input1.shape());
    let length = |t: &Tensor| t.square().sum(-1) + 1e-11;
    let cosine = (input1 * input2).sum(-1) / (length(input1) * length(input2)).sqrt();
    let near = label.equal(1).where_cond(1.0 - &cosine, 0.0);
    let far = label.equal(-1).where_cond((cosine - margin).relu(), 0.0);
    Ok(reduction.apply(&(near + far)))
}

/// The `p`-norm of the difference along the last axis, `epsilon` being added to each element of it.
fn distance(x: &Tensor, y: &Tensor, p: f64, epsilon: f64) -> Tensor {
    let d = x - y + epsilon;
    if p == 2.0 {
        d.square().sum(-1).sqrt()
    } else if p == f64::INFINITY {
        d.abs().max(-1)
    } else if p == 1.0 {
        d.abs().sum(-1)
    } else {
        d.abs().pow(p).sum(-1).pow(1.0 / p)
    }
}

/// `max(0, d(input, positive) - d(input, negative) + margin)` with the `p`-norm as distance. With `swap` the negative may
/// also be measured from the positive, whichever is closer.
///
/// ```
/// # use sampan_core::Tensor;
/// let (a, n) = (Tensor::new([[0.0f32]]), Tensor::new([[0.25f32]]));
/// assert!((a.triplet_margin_loss(&a, &n).to_f64() - 0.75).abs() < 1e-4);
/// ```
#[op(module = "nn.functional", samples = triplet_samples, amp = "black")]
fn triplet_margin_loss(
    input: &Tensor,
    positive: &Tensor,
    negative: &Tensor,
    #[opt(1.0)] margin: f64,
    #[opt(2.0)] p: f64,
    #[opt(1e-6)] epsilon: f64,
    #[opt(false)] swap: bool,
    #[opt("mean")] reduction: &str,
) -> Result<Tensor> {
    ensure!(p > 0.0, "p must be positive, got {p}");
    triplet_margin_with_distance_loss(
        input,
        positive,
        negative,
        |x, y| distance(x, y, p, epsilon),
        margin,
        swap,
        reduction,
    )
}

/// The triplet loss with any distance: `max(0, d(input, positive) - d(input, negative) + margin)`.
///
/// ```
/// # use sampan_core::{Tensor, ops::loss_margin::triplet_margin_with_distance_loss};
/// let (a, n) = (Tensor::new([[0.0f32]]), Tensor::new([[0.25f32]]));
/// let city = |x: &Tensor, y: &Tensor| (x - y).abs().sum(-1);
/// let loss = triplet_margin_with_distance_loss(&a, &a, &n, city, 1.0, false, "mean").unwrap();
/// assert_eq!(loss.to_f64(), 0.75);
/// ```
pub fn triplet_margin_with_distance_loss(
    input: &Tensor,
    positive: &Tensor,
    negative: &Tensor,
    distance: impl Fn(&Tensor, &Tensor) -> Tensor,
    margin: f64,
    swap: bool,
    reduction: &str,
) -> Result<Tensor> {
    let reduction = Reduction::parse(reduction)?;
    ensure!(margin >= 0.0, "margin must not be negative, got {margin}");
    same_shape(("input", input), ("positive", positive))?;
    same_shape(("input", input), ("negative", negative))?;
    crate::dispatch::outermost(|| {
        let near = distance(input, positive);
        let mut far = distance(input, negative);
        if swap {
            far = far.try_minimum(distance(positive, negative))?;
        }
        Ok(reduction.apply(&(near.try_subtract(far)? + margin).relu()))
    })
}

/// The hinge of every wrong class against the labelled one: the mean over classes of `max(0, margin - x[label] + x)^p`,
/// times the label's `weight`.
///
/// ```
/// # use sampan_core::Tensor;
/// let loss = Tensor::new([[2.0f32, 2.0]]).multi_margin_loss(&Tensor::new([0i64]));
/// assert_eq!(loss.to_f64(), 0.5);
/// ```
#[op(module = "nn.functional", samples = multi_margin_samples)]
fn multi_margin_loss(
    input: &Tensor,
    label: &Tensor,
    #[opt(1)] p: i64,
    #[opt(1.0)] margin: f64,
    #[opt(None)] weight: Option<&Tensor>,
    #[opt("mean")] reduction: &str,
) -> Result<Tensor> {
    let reduction = Reduction::parse(reduction)?;
    let &[rows, classes] = input.shape() else { bail!("input must be a matrix, got shape {:?}", input.shape()) };
    ensure!(label.numel() == rows, "{rows} rows need as many labels, got shape {:?}", label.shape());
    ensure!(p == 1 || p == 2, "p must be 1 or 2, got {p}");
    let label = label.reshape_to([rows]);
    let right = input.try_pick(&label, NONE)?.unsqueeze(1);
    let over = (margin - right + input).relu();
    let over = if p == 2 { over.square() } else { over };
    // The labelled class itself always adds margin^p.
    let mut loss = over.mean(1) - margin.powi(p as i32) / classes as f64;
    if let Some(w) = weight {
        ensure!(w.shape() == [classes], "weight has shape {:?}, there are {classes} classes", w.shape());
        loss = loss * w.unsqueeze(0).expand(input.shape()).pick(&label, NONE);
    }
    Ok(reduction.apply(&loss))
}

/// No label is ignored by this number.
const NONE: i64 = i64::MIN;

/// The hinge of every other class against each labelled one, for rows with several labels; a row's labels end at -1.
///
/// ```
/// # use sampan_core::Tensor;
/// let loss = Tensor::new([[2.0f32, 2.0]]).multi_label_margin_loss(&Tensor::new([[0i64, -1]]));
/// assert_eq!(loss.to_f64(), 0.5);
/// ```
#[op(module = "nn.functional", samples = multi_label_samples)]
fn multi_label_margin_loss(input: &Tensor, label: &Tensor, #[opt("mean")] reduction: &str) -> Result<Tensor> {
    let reduction = Reduction::parse(reduction)?;
    let &[rows, classes] = input.shape() else { bail!("input must be a matrix, got shape {:?}", input.shape()) };
    same_shape(("input", input), ("label", label))?;
    if label.device().has_values()
        && let Some((i, &l)) = label.to_f64_vec().iter().enumerate().find(|(_, l)| **l < -1.0 || **l >= classes as f64)
    {
        return Err(Error::range(format!("label {l} at position {i} is no class: there are {classes} classes"))
            .hint(format!("labels must lie in [0, {classes}) or be -1, which ends a row's list")));
    }
    let label = label.cast(DType::Int64);
    let ended = label.equal(-1).cast(DType::Int64).cumsum(1);
    let valid = ended.equal(0);
    let place = label.maximum(0);
    let scores = input.take_along_axis(&place, 1);
    // is_target[n, c]: some valid label of row n is c.
    let numbers = crate::ops::creation::arange(classes as i64, None, 1).reshape_to([1, 1, classes]);
    let same = label.unsqueeze(2).equal(numbers).logical_and(valid.unsqueeze(2));
    let other = same.any(1).logical_not().unsqueeze(1).logical_and(valid.unsqueeze(2));
    let over = (1f64 - scores.unsqueeze(2) + input.unsqueeze(1)).relu();
    let loss = other.where_cond(over, 0.0).sum([1, 2]) / classes as f64;
    debug_assert_eq!(loss.shape(), [rows]);
    Ok(reduction.apply(&loss))
}

/// Binary cross entropy of every class's logit, averaged over the classes and then reduced.
///
/// ```
/// # use sampan_core::Tensor;
/// let loss = Tensor::new([[0.0f32, 0.0]]).multi_label_soft_margin_loss(&Tensor::new([[1.0f32, 0.0]]), None, "mean");
/// assert!((loss.to_f64() - 2f64.ln()).abs() < 1e-6);
/// ```
#[op(module = "nn.functional", samples = soft_margin_samples)]
fn multi_label_soft_margin_loss(
    input: &Tensor,
    label: &Tensor,
    #[default(None)] weight: Option<&Tensor>,
    #[default("mean")] reduction: &str,
) -> Result<Tensor> {
    let reduction = Reduction::parse(reduction)?;
    let mut loss = input.try_logistic_nll(&label.cast(input.dtype()))?;
    if let Some(w) = weight {
        loss = loss.try_multiply(w)?;
    }
    Ok(reduction.apply(&loss.mean(-1)))
}

/// The N-pair loss: the similarity of anchors and positives of one label against those of others, and `l2_reg` of their
/// lengths.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([[1.0f32, 0.0]]);
/// assert!((x.npair_loss(&x, &Tensor::new([0.0f32]), 0.0).to_f64()).abs() < 1e-6);
/// ```
#[op(module = "nn.functional", samples = npair_samples)]
fn npair_loss(anchor: &Tensor, positive: &Tensor, labels: &Tensor, #[default(0.002)] l2_reg: f64) -> Result<Tensor> {
    same_shape(("anchor", anchor), ("positive", positive))?;
    let &[rows, _] = anchor.shape() else { bail!("anchor must be a matrix, got shape {:?}", anchor.shape()) };
    ensure!(rows > 0, "there must be at least one pair");
    ensure!(labels.numel() == rows, "{rows} rows need as many labels, got shape {:?}", labels.shape());
    let labels = labels.reshape_to([rows, 1]);
    let same = labels.equal(labels.t()).cast(anchor.dtype());
    let target = &same / same.sum(1).unsqueeze(1);
    let length = |t: &Tensor| t.square().sum(1).mean(());
    let lengths = (length(anchor) + length(positive)) * (0.25 * l2_reg);
    let rows_loss = -(&target * anchor.matmul(&positive.t()).log_softmax(-1)).sum(1);
    Ok(lengths + (target * rows_loss.unsqueeze(1)).sum(0).mean(()))
}

fn signs(shape: impl AsRef<[usize]>) -> Tensor {
    bools(shape).cast(DType::Int64) * 2 - 1
}

fn ranking_samples() -> Vec<Sample> {
    vec![
        sample![distinct([2, 3]), randn([2, 3]), signs([2, 3]).cast(DType::Float32)],
        sample![distinct([4]), randn([4]), signs([4]).cast(DType::Float32); margin = 0.3, reduction = "none"],
    ]
}
fn hinge_samples() -> Vec<Sample> {
    let mut samples = sign_samples();
    samples.push(sample![randn([3]), values([1.0f32, -1.0, -1.0], [3]); margin = 0.4].no_grad("labels are signs"));
    samples
}
fn cosine_samples() -> Vec<Sample> {
    vec![
        sample![randn([3, 4]), uniform([3, 4], -1.0, 1.0), values([1i64, -1, 1], [3])],
        sample![randn([3, 4]), positive([3, 4]), values([-1i64, -1, -1], [3]); margin = 0.1, reduction = "none"],
        sample![randn([3, 2]), positive([3, 2]), values([1i64, 1, -1], [3]); reduction = "sum"],
    ]
}
fn triplet_samples() -> Vec<Sample> {
    let three = || (randn([2, 3]), uniform([2, 3], -1.0, 1.0), positive([2, 3]));
    let (a, p, n) = three();
    vec![
        sample![a.clone(), p.clone(), n.clone()],
        sample![a.clone(), p.clone(), n.clone(); swap = true, margin = 2.0, reduction = "none"],
        sample![a.clone(), p.clone(), n.clone(); p = 1.0, margin = 3.0, reduction = "sum"],
        sample![a, p, n; p = 3.0, margin = 2.0],
    ]
}
fn multi_margin_samples() -> Vec<Sample> {
    vec![
        sample![randn([3, 4]), ints([3], 0, 4)],
        sample![randn([3, 4]), ints([3], 0, 4); p = 2, margin = 0.7, reduction = "none"],
        sample![randn([3, 4]), ints([3], 0, 4); weight = positive([4]), reduction = "sum"],
    ]
}
fn multi_label_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 4]), values([3i64, 0, -1, 1, 1, -1, -1, -1], [2, 4])],
        sample![randn([2, 3]), values([2i64, 0, 1, -1, 1, 2], [2, 3]); reduction = "none"],
    ]
}
fn soft_margin_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 3]), uniform([2, 3], 0.0, 1.0)],
        sample![randn([2, 3]), uniform([2, 3], 0.0, 1.0), positive([2, 3]), "none"],
    ]
}
fn npair_samples() -> Vec<Sample> {
    vec![sample![randn([3, 4]), uniform([3, 4], -1.0, 1.0), values([0i64, 1, 0], [3])]]
}
