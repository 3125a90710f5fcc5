//! Connectionist temporal classification.

use crate::autograd::vjp;
use crate::ops::loss::Reduction;
use crate::ops::prelude::*;
use sampan_kernels::ctc::{self, Ctc};

/// Stands for ln 0 in the composite, where infinities would turn gradients into NaN.
const NEVER: f64 = -1e30;

/// The integers of a batch: labels row by row, frames and lengths of each sequence.
struct Batch {
    labels: Vec<i64>,
    frames: Vec<i64>,
    lengths: Vec<i64>,
}

fn check_shapes(log_probs: &Tensor, labels: &Tensor, frames: &Tensor, lengths: &Tensor, blank: i64) -> Result<()> {
    let &[_, batch, classes] = log_probs.shape() else {
        bail!("log_probs must have the axes frame, batch, class; got shape {:?}", log_probs.shape())
    };
    if !log_probs.dtype().is_float() {
        return Err(Error::dtype(format!("log_probs must be floats, got {}", log_probs.dtype())));
    }
    ensure!(
        labels.ndim() == 2 && labels.dim(0) == batch,
        "labels must have one row for each of {batch} sequences, got shape {:?}",
        labels.shape()
    );
    for (name, t) in [("input_lengths", frames), ("label_lengths", lengths)] {
        ensure!(t.shape() == [batch], "{name} needs one element for each of {batch} sequences, got {:?}", t.shape());
    }
    ensure!((0..classes as i64).contains(&blank), "blank must lie in [0, {classes}), got {blank}");
    Ok(())
}

/// The values, checked against each other.
fn check_values(log_probs: &Tensor, labels: &Tensor, frames: &Tensor, lengths: &Tensor) -> Result<Batch> {
    let read = |t: &Tensor| t.try_cast(DType::Int64)?.try_to_vec::<i64>();
    let batch = Batch { labels: read(labels)?, frames: read(frames)?, lengths: read(lengths)? };
    let (most, width, classes) = (log_probs.dim(0), labels.dim(1), log_probs.dim(2));
    for n in 0..log_probs.dim(1) {
        let (t, l) = (batch.frames[n], batch.lengths[n]);
        ensure!((0..=most as i64).contains(&t), "input_lengths[{n}] is {t}, log_probs has {most} frames");
        ensure!((0..=width as i64).contains(&l), "label_lengths[{n}] is {l}, labels have {width} columns");
        let row = &batch.labels[n * width..][..l as usize];
        if let Some(i) = row.iter().position(|l| !(0..classes as i64).contains(l)) {
            return Err(Error::range(format!(
                "label {} at position [{n}, {i}] is no class: there are {classes} classes",
                row[i]
            )));
        }
    }
    Ok(batch)
}

/// Minus the log-likelihood of each row of labels under log-probabilities `[frames, batch, classes]`; 0 where no
/// alignment fits into the frames.
#[op(internal, module = "nn.functional", samples = nll_samples, reference = nll_composite, peer = "torch_ctc")]
fn ctc_nll(
    cx: &Cx,
    log_probs: &Tensor,
    labels: &Tensor,
    input_lengths: &Tensor,
    label_lengths: &Tensor,
    blank: i64,
) -> Result<Tensor> {
    check_shapes(log_probs, labels, input_lengths, label_lengths, blank)?;
    let out = cx.out([log_probs.dim(1)], log_probs.dtype())?;
    cx.cpu(|| {
        let batch = check_values(log_probs, labels, input_lengths, label_lengths)?;
        let p = log_probs.contiguous();
        ctc::loss(&job(&p, labels, &batch, blank), p.values().slice(), out.values_mut().slice());
        Ok(())
    })?;
    cx.grad(out, &[log_probs, labels, input_lengths, label_lengths], move |g| {
        let dp = g.if_needed(0, || g.saved(0).ctc_nll_grad(g.saved(1), g.saved(2), g.saved(3), &g.grad(), blank));
        Ok([dp, None, None, None])
    })
}

fn job<'a>(p: &Tensor, labels: &Tensor, batch: &'a Batch, blank: i64) -> Ctc<'a> {
    Ctc {
        batch: p.dim(1),
        classes: p.dim(2),
        labels: &batch.labels,
        width: labels.dim(1),
        frames: &batch.frames,
        lengths: &batch.lengths,
        blank: blank as usize,
    }
}

/// The gradient of `ctc_nll` with respect to the log-probabilities: minus the posterior of each class, times `grad`.
#[op(
    internal,
    module = "nn.functional",
    samples = nll_grad_samples,
    reference = nll_grad_composite,
    peer = "lambda p, y, n, k, g, blank: torch_pull(lambda z: torch_ctc(z, y, n, k, blank), p, g)"
)]
fn ctc_nll_grad(
    cx: &Cx,
    log_probs: &Tensor,
    labels: &Tensor,
    input_lengths: &Tensor,
    label_lengths: &Tensor,
    grad: &Tensor,
    blank: i64,
) -> Result<Tensor> {
    check_shapes(log_probs, labels, input_lengths, label_lengths, blank)?;
    let batch = log_probs.dim(1);
    ensure!(grad.shape() == [batch], "grad must have one value for each of {batch} sequences, got {:?}", grad.shape());
    let out = cx.out(log_probs.shape(), log_probs.dtype())?;
    cx.cpu(|| {
        let batch = check_values(log_probs, labels, input_lengths, label_lengths)?;
        let (p, grad) = (log_probs.contiguous(), grad.in_dtype(log_probs.dtype())?.in_rows()?);
        let job = job(&p, labels, &batch, blank);
        ctc::backward(&job, p.values().slice(), grad.values().slice(), out.values_mut().slice());
        Ok(())
    })?;
    cx.grad(out, &[log_probs, labels, input_lengths, label_lengths, grad], move |g| {
        let (labels, frames, lengths) = (g.saved(1), g.saved(2), g.saved(3));
        let mut out = vjp(&[g.saved(0), g.saved(4)], &[Some(g.grad())], |t| {
            Ok(vec![nll_grad_composite(&t[0], labels, frames, lengths, &t[1], blank)?])
        })?;
        let d_grad = out.pop().flatten();
        Ok(vec![out.pop().flatten(), None, None, None, d_grad])
    })
}

fn nll_grad_composite(
    log_probs: &Tensor,
    labels: &Tensor,
    input_lengths: &Tensor,
    label_lengths: &Tensor,
    grad: &Tensor,
    blank: i64,
) -> Result<Tensor> {
    let found = vjp(&[log_probs], &[Some(grad.clone())], |t| {
        Ok(vec![nll_composite(&t[0], labels, input_lengths, label_lengths, blank)?])
    })?;
    Ok(found[0].clone().unwrap_or_else(|| log_probs * 0.0))
}

/// The recursion over frames in differentiable ops.
fn nll_composite(
    log_probs: &Tensor,
    labels: &Tensor,
    input_lengths: &Tensor,
    label_lengths: &Tensor,
    blank: i64,
) -> Result<Tensor> {
    let batch = check_values(log_probs, labels, input_lengths, label_lengths)?;
    let (frames, rows, width) = (log_probs.dim(0), log_probs.dim(1), labels.dim(1));
    let states = 2 * width + 1;
    let dtype = log_probs.dtype();
    let mut extended = vec![blank; rows * states];
    let mut skip = vec![NEVER; rows * states];
    let mut start = vec![NEVER; rows * states];
    let mut last = vec![NEVER; rows * states];
    for n in 0..rows {
        let length = batch.lengths[n] as usize;
        for i in 0..length {
            extended[n * states + 2 * i + 1] = batch.labels[n * width + i];
        }
        let own = &extended[n * states..][..states];
        for s in 2..states {
            if own[s] != blank && own[s] != own[s - 2] {
                skip[n * states + s] = 0.0;
            }
        }
        start[n * states..][..2.min(states)].fill(0.0);
        last[n * states + 2 * length] = 0.0;
        if length > 0 {
            last[n * states + 2 * length - 1] = 0.0;
        }
    }
    let table = |v: Vec<f64>| Tensor::from_vec(v, [rows, states]).cast(dtype);
    let extended = Tensor::from_vec(extended, [rows, states]);
    let (skip, start, last) = (table(skip), table(start), table(last));
    let emit = |t: usize| log_probs.try_select(0, t).map(|p| p.take_along_axis(&extended, 1));
    let never = |n: usize| Tensor::full([rows, n], NEVER, dtype);
    let mut alpha = start;
    for t in 0..frames {
        let next = if t == 0 {
            &alpha + emit(0)?
        } else {
            let shifted = |by: usize| -> Result<Tensor> {
                let by = by.min(states);
                Ok(crate::ops::joining::concat(&[never(by), alpha.try_narrow(1, 0, states - by)?], 1))
            };
            let ways = [alpha.clone(), shifted(1)?, shifted(2)? + &skip];
            crate::ops::joining::stack(&ways, 0).logsumexp(0) + emit(t)?
        };
        let runs: Vec<Bool> = batch.frames.iter().map(|&f| Bool::from((t as i64) < f)).collect();
        alpha = Tensor::from_vec(runs, [rows, 1]).where_cond(next, &alpha);
    }
    let total = (alpha + last).logsumexp(1);
    let possible = total.detach().greater_than(NEVER / 2.0);
    Ok(possible.where_cond(-total, 0.0))
}

/// The CTC loss of logits `[frames, batch, classes]`, to which a softmax is applied first. `labels` has one row for each
/// sequence, of which `label_lengths` count; `input_lengths` are the frames of each. The mean divides each loss by its
/// label length first; `norm_by_times` divides the gradient by the frames.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([[[0.0f32, 0.0]]]);
/// let one = Tensor::new([1i64]);
/// let loss = x.ctc_loss(&Tensor::new([[1i32]]), &one, &one);
/// assert!((loss.to_f64() - 2f64.ln()).abs() < 1e-6);
/// ```
#[op(module = "nn.functional", samples = ctc_samples)]
fn ctc_loss(
    log_probs: &Tensor,
    labels: &Tensor,
    input_lengths: &Tensor,
    label_lengths: &Tensor,
    #[opt(0)] blank: i64,
    #[opt("mean")] reduction: &str,
    #[opt(false)] norm_by_times: bool,
    #[opt(false)] zero_infinity: bool,
) -> Result<Tensor> {
    // An impossible alignment costs 0 here, as in Paddle, so there is no infinity to replace.
    let _ = zero_infinity;
    let reduction = Reduction::parse(reduction)?;
    check_shapes(log_probs, labels, input_lengths, label_lengths, blank)?;
    let mut loss = log_probs.log_softmax(-1).try_ctc_nll(labels, input_lengths, label_lengths, blank)?;
    if norm_by_times {
        let scaled = &loss / input_lengths.cast(loss.dtype());
        loss = &scaled + (&loss - &scaled).detach();
    }
    Ok(match reduction {
        Reduction::Mean => (loss / label_lengths.cast(log_probs.dtype())).mean(()),
        other => other.apply(&loss),
    })
}

fn nll_samples() -> Vec<Sample> {
    vec![
        sample![
            uniform([4, 2, 3], -2.0, -0.2),
            values([1i64, 2, 1, 1], [2, 2]),
            values([4i64, 3], [2]),
            values([2i64, 1], [2]),
            0
        ],
        sample![uniform([3, 1, 3], -2.0, -0.2), values([0i32, 0], [1, 2]), values([3i64], [1]), values([2i64], [1]), 2],
        sample![uniform([2, 1, 3], -2.0, -0.2), values([1i64, 1], [1, 2]), values([2i64], [1]), values([2i64], [1]), 0],
    ]
}
fn nll_grad_samples() -> Vec<Sample> {
    vec![sample![
        uniform([3, 2, 3], -2.0, -0.2),
        values([1i64, 2, 1, 0], [2, 2]),
        values([3i64, 2], [2]),
        values([2i64, 1], [2]),
        randn([2]),
        0
    ]]
}
fn ctc_samples() -> Vec<Sample> {
    let labels = || values([1i32, 2, 3, 3], [2, 2]);
    let lengths = |a: i64, b: i64| values([a, b], [2]);
    vec![
        sample![randn([5, 2, 4]), labels(), lengths(5, 4), lengths(2, 2)],
        sample![randn([4, 2, 4]), labels(), lengths(4, 3), lengths(2, 1); reduction = "none", blank = 0],
        sample![randn([4, 2, 5]), labels(), lengths(4, 4), lengths(2, 2); reduction = "sum", blank = 4],
        sample![randn([4, 2, 4]), labels(), lengths(4, 3), lengths(2, 1); norm_by_times = true, reduction = "sum"]
            .no_grad("the gradient is scaled by design"),
    ]
}
