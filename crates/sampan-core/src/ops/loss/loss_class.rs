//! Losses on class labels beside cross entropy itself.

use crate::ops::cross_entropy::{CrossEntropyOpts, as_rows, or_one};
use crate::ops::loss::{Reduction, constant};
use crate::ops::prelude::*;

/// The negative of the log-probability that each label names, with classes on axis 1. The mean is weighted by class and
/// leaves labels equal to `ignore_index` out; `weight` gets no gradient.
///
/// ```
/// # use sampan_core::Tensor;
/// let log_p = Tensor::new([[-1.0f32, -2.0]]);
/// assert_eq!(log_p.nll_loss(&Tensor::new([1i64])).to_f64(), 2.0);
/// ```
#[op(module = "nn.functional", samples = nll_samples, amp = "black")]
fn nll_loss(
    input: &Tensor,
    label: &Tensor,
    #[opt(None)] weight: Option<&Tensor>,
    #[opt(-100)] ignore_index: i64,
    #[opt("mean")] reduction: &str,
) -> Result<Tensor> {
    let reduction = Reduction::parse(reduction)?;
    ensure!(input.ndim() >= 2, "input must have the axes batch and class, got shape {:?}", input.shape());
    let classes = input.dim(1);
    let mut expected = input.shape_vec();
    expected.remove(1);
    ensure!(label.shape() == expected.as_slice(), "label must have shape {expected:?}, got {:?}", label.shape());
    if let Some(w) = weight {
        ensure!(w.shape() == [classes], "weight has shape {:?}, there are {classes} classes", w.shape());
    }
    let rows = as_rows(input, 1);
    let labels = label.reshape_to([label.numel()]);
    let mut loss = -rows.try_pick(&labels, ignore_index)?;
    let ones = || Tensor::full_on([classes], 1.0, input.dtype(), input.device());
    let weight = weight.map_or_else(ones, |w| constant(w).cast(input.dtype()));
    let weights = weight.unsqueeze(0).expand(rows.shape()).pick(&labels, ignore_index);
    loss = loss * &weights;
    Ok(match reduction {
        Reduction::None => loss.reshape_to(expected),
        Reduction::Sum => loss.sum(()),
        Reduction::Mean => loss.sum(()) / or_one(&weights.sum(())),
    })
}

/// Cross entropy of logits without a reduction, the class axis kept with extent 1; with `return_softmax` also the softmax.
///
/// ```
/// # use sampan_core::Tensor;
/// let out = Tensor::new([[0.0f32, 0.0]]).softmax_with_cross_entropy(&Tensor::new([[1i64]]));
/// assert_eq!(out.shape(), [1, 1]);
/// ```
#[op(module = "nn.functional", samples = softmax_ce_samples, amp = "black", results("loss", "softmax"))]
fn softmax_with_cross_entropy(
    logits: &Tensor,
    label: &Tensor,
    #[opt(false)] soft_label: bool,
    #[opt(-100)] ignore_index: i64,
    #[opt(true)] numeric_stable_mode: bool,
    #[opt(false)] return_softmax: bool,
    #[opt(-1)] axis: i64,
) -> Result<Varying> {
    // The only mode there is.
    let _ = numeric_stable_mode;
    let at = resolve_axis(axis, logits.ndim())?;
    ensure!(logits.ndim() > 0, "logits must have at least one axis");
    let label = if label.ndim() + 1 == logits.ndim() { label.unsqueeze(at) } else { label.clone() };
    let opts = CrossEntropyOpts::new().soft_label(soft_label).ignore_index(ignore_index).axis(axis).reduction("none");
    let loss = logits.try_cross_entropy_with(&label, opts)?;
    Ok(Varying(if return_softmax { vec![loss, logits.softmax(axis)] } else { vec![loss] }))
}

/// Cross entropy of cosines with a margin on the labelled class, whose angle `t` enters as
/// `cos(margin1 * t + margin2) - margin3`; all are scaled by `scale` (ArcFace, CosFace, SphereFace).
///
/// ```
/// # use sampan_core::{Tensor, ops::loss_class::MarginCrossEntropyOpts};
/// let opts = MarginCrossEntropyOpts::new().margin2(0.0).scale(1.0);
/// let out = Tensor::new([[0.5f32, 0.5]]).margin_cross_entropy_with(&Tensor::new([1i64]), opts);
/// assert!((out.0[0].to_f64() - 2f64.ln()).abs() < 1e-6);
/// ```
#[op(
    module = "nn.functional",
    samples = margin_samples,
    // Paddle computes it on GPUs only.
    peer = "lambda x, y, margin1=1.0, margin2=0.5, margin3=0.0, scale=64.0, return_softmax=False, reduction='mean': ( \
            y := y.flatten(), \
            angle := torch.acos(x) * margin1 + margin2, \
            z := scale * torch.where(F.one_hot(y, x.shape[1]) > 0, torch.cos(angle) - margin3, x), \
            loss := F.cross_entropy(z, y, reduction=reduction), \
            [loss[:, None] if reduction == 'none' else loss, torch.softmax(z, -1)][:1 + return_softmax])[-1]",
    amp = "black",
    results("loss", "softmax")
)]
fn margin_cross_entropy(
    logits: &Tensor,
    label: &Tensor,
    #[opt(1.0)] margin1: f64,
    #[opt(0.5)] margin2: f64,
    #[opt(0.0)] margin3: f64,
    #[opt(64.0)] scale: f64,
    #[opt(false)] return_softmax: bool,
    #[opt("mean")] reduction: Option<&str>,
) -> Result<Varying> {
    let reduction = Reduction::parse(reduction.unwrap_or("none"))?;
    let &[rows, classes] = logits.shape() else { bail!("logits must be a matrix, got shape {:?}", logits.shape()) };
    ensure!(classes > 0, "logits must have at least one class");
    ensure!(label.numel() == rows, "{rows} rows need as many labels, got shape {:?}", label.shape());
    let labels = label.reshape_to([rows]);
    let cosine = logits.try_pick(&labels, NONE)?;
    let with_margin = if margin1 == 1.0 && margin2 == 0.0 {
        cosine.clone()
    } else {
        // The arc cosine has no slope at its ends; stay a little inside.
        let angle = cosine.clip(-1.0 + 1e-7, 1.0 - 1e-7).acos();
        (angle * margin1 + margin2).cos()
    } - margin3;
    let moved = (logits + (with_margin - cosine).unpick(&labels, classes as i64, NONE)) * scale;
    let (loss, ..) = moved.cross_entropy_rows(&labels, NONE);
    let loss = reduction.apply(&loss.unsqueeze(1));
    Ok(Varying(if return_softmax { vec![loss, moved.softmax(-1)] } else { vec![loss] }))
}

/// No label is ignored by this number.
const NONE: i64 = i64::MIN;

/// The adaptive softmax: frequent classes and one entry for each cluster in the head, rare classes in clusters of their
/// own with small factors. Gives the log-probability of each label and the mean loss. `tail_weights` is a list of pairs
/// of matrices; `cutoffs` are the bounds of the clusters, the last one being the number of classes.
///
/// ```
/// # use sampan_core::{DType, Tensor, Value};
/// let x = Tensor::new([[1.0f32, 2.0]]);
/// let head = Tensor::zeros([2, 3], DType::Float32);
/// let tail = Value::List(vec![Value::Tensors(vec![
///     Tensor::zeros([2, 1], DType::Float32), Tensor::zeros([1, 2], DType::Float32),
/// ])]);
/// let (_, loss) = x.adaptive_log_softmax_with_loss(&Tensor::new([3i64]), &head, tail, [2, 4], None);
/// assert!((loss.to_f64() - 6f64.ln()).abs() < 1e-6);
/// ```
#[op(module = "nn.functional", samples = adaptive_samples, results("output", "loss"))]
fn adaptive_log_softmax_with_loss(
    input: &Tensor,
    label: &Tensor,
    head_weight: &Tensor,
    tail_weights: &Value,
    cutoffs: &[i64],
    #[default(None)] head_bias: Option<&Tensor>,
) -> Result<(Tensor, Tensor)> {
    let batched = label.ndim() == 1;
    ensure!(
        label.ndim() <= 1 && input.ndim() == label.ndim() + 1,
        "input must be a matrix with a vector of labels, or a vector with one label; got {:?} and {:?}",
        input.shape(),
        label.shape()
    );
    let (input, label) =
        if batched { (input.clone(), label.clone()) } else { (input.unsqueeze(0), label.unsqueeze(0)) };
    let rows = input.dim(0);
    ensure!(label.numel() == rows, "{rows} rows need as many labels, got {}", label.numel());
    ensure!(
        cutoffs.windows(2).all(|w| w[0] < w[1]) && cutoffs.first().is_some_and(|&c| c > 0),
        "cutoffs must rise from a positive number, got {cutoffs:?}"
    );
    let tails = pairs(tail_weights)?;
    ensure!(
        tails.len() + 1 == cutoffs.len(),
        "{} cutoffs need {} tails, got {}",
        cutoffs.len(),
        cutoffs.len() - 1,
        tails.len()
    );
    let classes = cutoffs[cutoffs.len() - 1];
    if label.device() == Device::Meta {
        return Err(Error::invalid("the work depends on the values of the labels, which a meta tensor lacks"));
    }
    let labels = label.cast(DType::Int64).to_vec::<i64>();
    if let Some(i) = labels.iter().position(|l| !(0..classes).contains(l)) {
        return Err(Error::range(format!(
            "label {} at position {i} is no class: there are {classes} classes",
            labels[i]
        )));
    }

    // Where each label stands in the head: itself, or its cluster's entry.
    let cluster = |l: i64| cutoffs.iter().position(|&c| l < c).expect("checked above");
    let entry = |l: i64| match cluster(l) {
        0 => l,
        k => cutoffs[0] + k as i64 - 1,
    };
    let index = |v: Vec<i64>| Tensor::try_from_slice(&v, [v.len()]);
    let head = input.try_matmul(head_weight)?;
    let head = head_bias.map_or(Ok(head.clone()), |b| head.try_add(b))?;
    let mut output = head.log_softmax(1).try_pick(&index(labels.iter().map(|&l| entry(l)).collect())?, NONE)?;
    for (k, (down, up)) in tails.iter().enumerate() {
        let members: Vec<i64> = (0..rows as i64).filter(|&i| cluster(labels[i as usize]) == k + 1).collect();
        if members.is_empty() {
            continue;
        }
        let local = index(members.iter().map(|&i| labels[i as usize] - cutoffs[k]).collect())?;
        let members = index(members)?;
        let logits = input.index_select(&members, 0).try_matmul(down)?.try_matmul(up)?;
        let log_p = logits.log_softmax(1).try_pick(&local, NONE)?;
        output = output + log_p.unselect(&members, 0, rows as i64);
    }
    let loss = -output.mean(());
    Ok((if batched { output } else { output.squeeze(0) }, loss))
}

/// A list of pairs of matrices.
fn pairs(value: &Value) -> Result<Vec<(Tensor, Tensor)>> {
    let wrong = || Error::dtype("tail_weights must be a list of pairs of matrices");
    let one = |v: &Value| {
        let mut ts = Vec::new();
        v.for_each_tensor(&mut |t| ts.push(t.clone()));
        <[Tensor; 2]>::try_from(ts).map(|[a, b]| (a, b)).map_err(|_| wrong())
    };
    match value {
        Value::List(list) => list.iter().map(one).collect(),
        Value::Tensors(ts) if ts.is_empty() => Ok(Vec::new()),
        Value::None => Ok(Vec::new()),
        _ => Err(wrong()),
    }
}

fn nll_samples() -> Vec<Sample> {
    vec![
        sample![randn([3, 4]), ints([3], 0, 4)],
        sample![randn([4, 3]), values([0i64, 1, 2, 1], [4]); weight = positive([3]), ignore_index = 1]
            .peer(
                "lambda x, y, weight, ignore_index: (w := weight.detach()[y] * (y != ignore_index), \
                    -(w * torch.gather(x, 1, y[:, None])[:, 0]).sum() / w.sum())[-1]",
            )
            .constant(&["weight"]),
        sample![randn([2, 3, 2, 1]), ints([2, 2, 1], 0, 3); reduction = "none"].peer("torch.nn.functional.nll_loss"),
        sample![randn([2, 3, 2]), ints([2, 2], 0, 3); reduction = "sum"].peer("torch.nn.functional.nll_loss"),
    ]
}
fn softmax_ce_samples() -> Vec<Sample> {
    // Paddle gives the softmax no gradient.
    vec![
        sample![randn([3, 4]), ints([3, 1], 0, 4)],
        sample![randn([3, 4]), ints([3, 1], 0, 4); return_softmax = true].grad_peer(
            "lambda x, y, return_softmax: (F.cross_entropy(x, y[:, 0], reduction='none')[:, None], \
                torch.softmax(x, -1))",
        ),
        sample![randn([2, 3, 2]), ints([2, 1, 2], 0, 3); axis = 1],
        sample![randn([3, 4]), randn([3, 4]).softmax(-1); soft_label = true].constant(&["label"]),
    ]
}
fn margin_samples() -> Vec<Sample> {
    vec![
        sample![uniform([3, 4], -0.8, 0.8), ints([3], 0, 4); scale = 4.0],
        sample![uniform([3, 4], -0.8, 0.8), ints([3, 1], 0, 4); margin1 = 1.2, margin3 = 0.1, scale = 2.0, return_softmax = true, reduction = "none"],
        sample![uniform([2, 3], -0.8, 0.8), ints([2], 0, 3); margin2 = 0.0, scale = 2.0, reduction = "sum"],
    ]
}
fn adaptive_samples() -> Vec<Sample> {
    let tails = || {
        Value::List(vec![
            Value::Tensors(vec![randn([3, 2]), uniform([2, 2], -1.0, 1.0)]),
            Value::Tensors(vec![uniform([3, 1], -1.0, 1.0), randn([1, 3])]),
        ])
    };
    vec![
        sample![randn([4, 3]), values([1i64, 3, 6, 2], [4]), randn([3, 4]), tails(), [2, 4, 7]],
        sample![randn([2, 3]), values([5i64, 4], [2]), randn([3, 4]), tails(), [2, 4, 7], randn([4])],
    ]
}
