//! Cross entropy and what it is made of: rows of logits with class labels.

use crate::gpu::rows::Labelled;
use crate::ops::loss::Reduction;
use crate::ops::prelude::*;
use crate::ops::reduction::SumOpts;
use sampan_kernels::softmax as kernel;

/// Labels as int64 in row-major order, each checked to be a class or `ignore_index`.
pub(super) fn checked_labels(labels: &Tensor, classes: usize, ignore_index: i64) -> Result<Vec<i64>> {
    let labels = labels.try_cast(DType::Int64)?.try_to_vec::<i64>()?;
    if let Some((at, label)) = kernel::bad_label(&labels, classes, ignore_index) {
        return Err(Error::range(format!("label {label} at position {at} is no class: there are {classes} classes"))
            .hint(format!("labels must lie in [0, {classes}) or equal ignore_index ({ignore_index})")));
    }
    Ok(labels)
}

/// Labels as a GPU takes them, which checks them itself.
fn as_labels(labels: &Tensor) -> Result<Tensor> {
    labels.detach().in_dtype(DType::Int64)?.in_rows()
}

fn check_rows(x: &Tensor, labels: &Tensor) -> Result<(usize, usize)> {
    let &[rows, classes] = x.shape() else { bail!("x must be a matrix of rows and classes, got {:?}", x.shape()) };
    ensure!(labels.shape() == [rows], "{rows} rows need as many labels, got shape {:?}", labels.shape());
    if !labels.dtype().is_int() {
        return Err(Error::dtype(format!("labels must be integers, got {}", labels.dtype()))
            .hint("pass soft_label=True if the labels are probabilities"));
    }
    Ok((rows, classes))
}

/// The element of each row of `x` that its label names; zero where the label is `ignore_index`.
#[op(
    internal,
    module = "nn.functional",
    samples = pick_samples,
    peer = "lambda x, y, ignore: (k := y == ignore, \
            torch.gather(x, 1, y.masked_fill(k, 0)[:, None])[:, 0].masked_fill(k, 0))[-1]"
)]
fn pick(cx: &Cx, x: &Tensor, labels: &Tensor, ignore_index: i64) -> Result<Tensor> {
    let (rows, classes) = check_rows(x, labels)?;
    let out = cx.out([rows], x.dtype())?;
    cx.run(
        || {
            let labels = checked_labels(labels, classes, ignore_index)?;
            kernel::pick(x.values().view(), &labels, ignore_index, out.values_mut().slice());
            Ok(())
        },
        |gpu| {
            let labels = &as_labels(labels)?;
            let rows = Labelled { op: "pick", rows, classes, ignore: ignore_index, labels };
            rows.pick(gpu, &x.in_rows()?, false, &out)
        },
    )?;
    cx.grad(out, &[labels], move |g| {
        Ok([g.if_needed(0, || g.grad().unpick(g.saved(0), classes as i64, ignore_index)), None])
    })
}

/// Rows of `classes` zeros, with each element of `x` at its label: the transpose of `pick`.
#[op(
    internal,
    module = "nn.functional",
    samples = unpick_samples,
    peer = "lambda x, y, n, ignore: (k := y == ignore, \
            torch.where(k, 0, x)[:, None] * F.one_hot(y.masked_fill(k, 0), n))[-1]"
)]
fn unpick(cx: &Cx, x: &Tensor, labels: &Tensor, classes: i64, ignore_index: i64) -> Result<Tensor> {
    ensure!(x.ndim() == 1 && x.shape() == labels.shape(), "x and labels must be vectors of one length");
    ensure!(classes >= 0, "the number of classes cannot be {classes}");
    let classes = classes as usize;
    let out = cx.zeros([x.numel(), classes], x.dtype())?;
    cx.run(
        || {
            let labels = checked_labels(labels, classes, ignore_index)?;
            let x = x.contiguous();
            kernel::unpick(x.values().slice(), &labels, ignore_index, classes, out.values_mut().slice());
            Ok(())
        },
        |gpu| {
            let (labels, rows) = (&as_labels(labels)?, x.numel());
            let rows = Labelled { op: "unpick", rows, classes, ignore: ignore_index, labels };
            rows.pick(gpu, &x.in_rows()?, true, &out)
        },
    )?;
    cx.grad(out, &[labels], move |g| Ok([g.if_needed(0, || g.grad().pick(g.saved(0), ignore_index)), None]))
}

/// Cross entropy of rows of logits with class labels: the loss of each row (zero where the label is `ignore_index`), its
/// largest logit, and `ln(sum(e^(x - largest)))`. These two stay apart: added up, a large logit would swallow the rest.
#[op(
    internal,
    fused_on_gpu,
    module = "nn.functional",
    samples = rows_samples,
    reference = cross_entropy_rows_composite,
    peer = "lambda x, y, ignore: (F.cross_entropy(x, y.long(), ignore_index=ignore, reduction='none'), \
            torch.amax(x, 1), torch.logsumexp(x, 1) - torch.amax(x, 1))",
    amp = "black",
    results("loss", "peak", "rest")
)]
fn cross_entropy_rows(cx: &Cx, x: &Tensor, labels: &Tensor, ignore_index: i64) -> Result<(Tensor, Tensor, Tensor)> {
    let (rows, classes) = check_rows(x, labels)?;
    let dtype = x.dtype();
    if !dtype.is_float() {
        return Err(Error::dtype(format!("logits must be floats, got {dtype}")));
    }
    let wide = if dtype.is_half() { DType::Float32 } else { dtype };
    let (loss, peak, rest) = (cx.out([rows], dtype)?, cx.out([rows], wide)?, cx.out([rows], wide)?);
    let cpu = || {
        let labels = checked_labels(labels, classes, ignore_index)?;
        let x = x.contiguous();
        let (mut loss, mut peak, mut rest) = (loss.values_mut(), peak.values_mut(), rest.values_mut());
        let (loss, peak, rest) = (loss.slice(), peak.slice(), rest.slice());
        kernel::cross_entropy(x.values().slice(), &labels, classes, ignore_index, loss, peak, rest);
        Ok(())
    };
    cx.run(cpu, |gpu| {
        let labels = &as_labels(labels)?;
        let on = Labelled { op: "cross_entropy", rows, classes, ignore: ignore_index, labels };
        on.cross_entropy(gpu, &x.in_rows()?, [&loss, &peak, &rest])
    })?;
    cx.grad_from_outputs((loss, peak, rest), &[1, 2], &[x, labels], move |g| {
        let (x, labels, peak, rest) = (g.saved(0), g.saved(1), g.output(1), g.output(2));
        let mut dx = x.cross_entropy_rows_grad(labels, peak, rest, &g.grad_of(0), ignore_index, true);
        if g.has_grad(1) || g.has_grad(2) {
            let (peak, rest) = (peak.unsqueeze(1), rest.unsqueeze(1));
            let top = x.tie_mask(&peak);
            let top = &top / top.sum_with(1, SumOpts::new().keepdim(true));
            let (of_peak, of_rest) = (g.grad_of(1).unsqueeze(1), g.grad_of(2).unsqueeze(1));
            dx = dx + (x - peak - rest).exp() * &of_rest + top * (of_peak - of_rest);
        }
        Ok([Some(dx), None])
    })
}

fn cross_entropy_rows_composite(x: &Tensor, labels: &Tensor, ignore_index: i64) -> Result<(Tensor, Tensor, Tensor)> {
    let peak = x.max(1);
    let rest = (x - peak.unsqueeze(1)).exp().sum(1).log();
    Ok((-x.log_softmax(-1).pick(labels, ignore_index), peak, rest))
}

/// The gradient of `cross_entropy_rows` with respect to the logits: `(softmax - one_hot) * grad`, zero in ignored rows.
/// Without `hot` only the softmax counts.
#[op(
    internal,
    fused_on_gpu,
    module = "nn.functional",
    samples = rows_grad_samples,
    reference = rows_grad_composite,
    peer = "lambda x, y, peak, rest, g, ignore, hot: ( \
            g := torch.where(y == ignore, 0, g)[:, None], \
            torch.exp(x - (peak + rest)[:, None]) * g - F.one_hot(y, x.shape[1]) * g * hot)[-1]"
)]
fn cross_entropy_rows_grad(
    cx: &Cx,
    x: &Tensor,
    labels: &Tensor,
    peak: &Tensor,
    rest: &Tensor,
    grad: &Tensor,
    ignore_index: i64,
    hot: bool,
) -> Result<Tensor> {
    let (rows, classes) = check_rows(x, labels)?;
    let dtype = x.dtype();
    let right = [peak, rest, grad].iter().all(|t| t.shape() == [rows]);
    ensure!(right, "peak, rest and grad need one element a row");
    let out = cx.out(x.shape(), dtype)?;
    let cpu = || {
        let labels = checked_labels(labels, classes, ignore_index)?;
        let (x, grad) = (x.contiguous(), grad.in_dtype(dtype)?.in_rows()?);
        let wide = dtype.wide();
        let (peak, rest) = (peak.in_dtype(wide)?.in_rows()?, rest.in_dtype(wide)?.in_rows()?);
        let (x, peak, rest, grad) = (x.values(), peak.values(), rest.values(), grad.values());
        let (peak, rest, grad) = (peak.slice(), rest.slice(), grad.slice());
        let mut out = out.values_mut();
        kernel::cross_entropy_backward(x.slice(), &labels, classes, ignore_index, peak, rest, grad, hot, out.slice());
        Ok(())
    };
    cx.run(cpu, |gpu| {
        let (labels, wide) = (&as_labels(labels)?, dtype.wide());
        let on = Labelled { op: "cross_entropy", rows, classes, ignore: ignore_index, labels };
        let plain = |t: &Tensor, dtype: DType| t.in_dtype(dtype)?.in_rows();
        let with = [plain(peak, wide)?, plain(rest, wide)?, plain(grad, dtype)?];
        on.cross_entropy_back(gpu, &x.in_rows()?, [&with[0], &with[1], &with[2]], hot, &out)
    })?;
    cx.grad(out, &[x, labels, peak, rest, grad], move |g| {
        let (x, labels, peak, rest, inner) = (g.saved(0), g.saved(1), g.saved(2), g.saved(3), g.saved(4));
        let gg = g.grad();
        let bent = &gg * x.cross_entropy_rows_grad(labels, peak, rest, inner, ignore_index, false);
        let ones = Tensor::full_like_scalar(inner, 1.0);
        Ok([
            g.if_needed(0, || bent.clone()),
            None,
            g.if_needed(2, || -bent.sum(1)),
            g.if_needed(3, || -bent.sum(1)),
            g.if_needed(4, || (&gg * x.cross_entropy_rows_grad(labels, peak, rest, &ones, ignore_index, hot)).sum(1)),
        ])
    })
}

fn rows_grad_composite(
    x: &Tensor,
    labels: &Tensor,
    peak: &Tensor,
    rest: &Tensor,
    grad: &Tensor,
    ignore_index: i64,
    hot: bool,
) -> Result<Tensor> {
    let classes = x.dim(1) as i64;
    let ones = Tensor::full_like_scalar(x, 1.0);
    let grad = grad * ones.pick(labels, ignore_index);
    let p = (x - peak.unsqueeze(1) - rest.unsqueeze(1)).exp() * grad.unsqueeze(1);
    Ok(if hot { p - grad.unpick(labels, classes, ignore_index) } else { p })
}

/// The class axis moved to the end and all others made one: rows of classes.
pub(crate) fn as_rows(x: &Tensor, axis: usize) -> Tensor {
    let classes = x.shape()[axis];
    let rows = x.numel() / classes.max(1);
    moved_last(x, axis).reshape_to([rows, classes])
}

fn moved_last(x: &Tensor, axis: usize) -> Tensor {
    if axis + 1 == x.ndim() {
        return x.clone();
    }
    let mut perm: Vec<i64> = (0..x.ndim() as i64).collect();
    perm.remove(axis);
    perm.push(axis as i64);
    x.transpose(perm)
}

/// One where it is zero, else itself: a divisor for an empty count.
pub(crate) fn or_one(t: &Tensor) -> Tensor {
    t + t.detach().equal(0.0).cast(t.dtype())
}

/// The cross entropy of logits `input` with labels along `axis`.
///
/// Labels are class numbers, of the input's shape without `axis` or with extent 1 there, or with `soft_label`
/// probabilities of the input's shape. `weight` scales each class, `label_smoothing` mixes in the uniform distribution,
/// and without `use_softmax` the input already holds probabilities. Soft labels get no gradient, but for what `weight`
/// makes of them.
///
/// ```
/// # use sampan_core::Tensor;
/// let loss = Tensor::new([[0.0f32, 0.0]]).cross_entropy(&Tensor::new([1i64]));
/// assert!((loss.to_f64() - 2f64.ln()).abs() < 1e-6);
/// ```
#[op(module = "nn.functional", samples = cross_entropy_samples, alias(target = label, x = input), amp = "black")]
fn cross_entropy(
    input: &Tensor,
    label: &Tensor,
    #[opt(None)] weight: Option<&Tensor>,
    #[opt(-100)] ignore_index: i64,
    #[opt("mean")] reduction: &str,
    #[opt(false)] soft_label: bool,
    #[opt(-1)] axis: i64,
    #[opt(true)] use_softmax: bool,
    #[opt(0.0)] label_smoothing: f64,
) -> Result<Tensor> {
    let reduction = Reduction::parse(reduction)?;
    ensure!(input.ndim() > 0, "input must have at least one axis");
    if !input.dtype().is_float() {
        return Err(Error::dtype(format!("input must be a float tensor, got {}", input.dtype())));
    }
    ensure!((0.0..=1.0).contains(&label_smoothing), "label_smoothing must lie in [0, 1], got {label_smoothing}");
    let axis = resolve_axis(axis, input.ndim())?;
    let classes = input.shape()[axis];
    if let Some(w) = weight {
        ensure!(w.shape() == [classes], "weight has shape {:?}, there are {classes} classes", w.shape());
    }
    let mut kept = input.shape_vec();
    kept[axis] = 1;
    let mut dropped = input.shape_vec();
    dropped.remove(axis);

    if soft_label || label_smoothing > 0.0 {
        let hard =
            label.shape() == dropped.as_slice() || (!soft_label && label.shape() == kept.as_slice() && classes != 1);
        ensure!(ignore_index <= 0 || !soft_label, "soft labels cannot be ignored, got ignore_index={ignore_index}");
        let mut target = if hard && !soft_label {
            let flat = label.reshape_to([label.numel()]);
            let ones = Tensor::full_on([label.numel()], 1.0, input.dtype(), label.device());
            ones.unpick(&flat, classes as i64, ignore_index)
        } else {
            if label.shape() != input.shape() {
                return Err(Error::invalid(format!(
                    "soft labels need the shape of input {:?}, got {:?}",
                    input.shape(),
                    label.shape()
                )));
            }
            as_rows(&label.cast(input.dtype()), axis)
        };
        if label_smoothing > 0.0 {
            target = target * (1.0 - label_smoothing) + label_smoothing / classes as f64;
        }
        return soft_cross_entropy(
            input,
            &target,
            weight,
            reduction,
            axis,
            use_softmax,
            &kept,
            hard.then_some(&dropped),
        );
    }

    let with_axis = label.shape() == kept.as_slice();
    if !with_axis && label.shape() != dropped.as_slice() {
        return Err(Error::invalid(format!(
            "label must have shape {dropped:?} or {kept:?} for an input of shape {:?} with classes on axis {axis}, got {:?}",
            input.shape(),
            label.shape()
        ))
        .hint("pass soft_label=True if the label holds one probability for each class"));
    }
    let labels = label.reshape_to([label.numel()]);
    let rows = as_rows(input, axis);
    let mut loss = if use_softmax {
        rows.try_cross_entropy_rows(&labels, ignore_index)?.0
    } else {
        -or_one_where_ignored(&rows, &labels, ignore_index)?.log()
    };
    let weights = |w: &Tensor| w.cast(input.dtype()).unsqueeze(0).expand(rows.shape()).pick(&labels, ignore_index);
    let weights = weight.map(weights);
    if let Some(w) = &weights {
        loss = loss * w;
    }
    let shape = if with_axis { &kept } else { &dropped };
    match (reduction, weights) {
        (Reduction::Mean, None) if ignore_index >= 0 => {
            let ones = Tensor::full_like_scalar(&rows, 1.0);
            Ok(loss.sum(()) / or_one(&ones.pick(&labels, ignore_index).sum(())))
        }
        (Reduction::Mean, Some(w)) => Ok(loss.sum(()) / or_one(&w.sum(()))),
        (reduction, _) => Ok(reduction.apply(&loss.reshape_to(shape))),
    }
}

/// The probability each label names; one, whose logarithm is zero, in ignored rows.
fn or_one_where_ignored(rows: &Tensor, labels: &Tensor, ignore_index: i64) -> Result<Tensor> {
    let ones = Tensor::full_like_scalar(rows, 1.0);
    Ok(rows.try_pick(labels, ignore_index)? + (1.0 - ones.pick(labels, ignore_index)))
}

/// Cross entropy with one probability for each class, `target` being rows.
fn soft_cross_entropy(
    input: &Tensor,
    target: &Tensor,
    weight: Option<&Tensor>,
    reduction: Reduction,
    axis: usize,
    use_softmax: bool,
    kept: &Shape,
    dropped: Option<&Shape>,
) -> Result<Tensor> {
    let rows = as_rows(input, axis);
    let log = if use_softmax { rows.log_softmax(-1) } else { rows.log() };
    let mut loss = -(super::constant(target) * log).sum(1);
    let weights = weight.map(|w| target.matmul(&w.cast(target.dtype())));
    if let Some(w) = &weights {
        loss = loss * w;
    }
    match (reduction, weights) {
        (Reduction::Mean, Some(w)) => Ok(loss.sum(()) / or_one(&w.sum(()))),
        (reduction, _) => Ok(reduction.apply(&loss.reshape_to(dropped.unwrap_or(kept)))),
    }
}

fn classes(shape: impl AsRef<[usize]>, n: i64) -> Tensor {
    ints(shape, 0, n)
}

fn pick_samples() -> Vec<Sample> {
    vec![sample![randn([4, 3]), values([0i64, 2, -100, 1], [4]), -100], sample![randn([0, 3]), classes([0], 3), -100]]
}
fn unpick_samples() -> Vec<Sample> {
    vec![sample![randn([4]), values([0i64, 2, -1, 1], [4]), 3, -1], sample![randn([0]), classes([0], 3), 3, -100]]
}
fn rows_samples() -> Vec<Sample> {
    vec![
        sample![randn([4, 3]), values([0i64, 2, 1, 1], [4]), -100],
        sample![randn([3, 4]), values([3i32, 1, 0], [3]), 1],
        sample![randn([0, 3]), classes([0], 3), -100],
    ]
}
fn rows_grad_samples() -> Vec<Sample> {
    vec![
        sample![randn([4, 3]), values([0i64, 2, 1, 1], [4]), positive([4]), randn([4]), randn([4]), 2, true],
        sample![randn([2, 3]), values([0i64, 2], [2]), positive([2]), positive([2]), randn([2]), -100, false],
    ]
}
fn cross_entropy_samples() -> Vec<Sample> {
    let soft = || randn([3, 4]).softmax(-1);
    vec![
        sample![randn([3, 4]), classes([3], 4)],
        sample![randn([3, 4]), classes([3, 1], 4); reduction = "none"],
        sample![randn([4, 3]), values([0i64, 1, 2, 1], [4]); weight = positive([3]), ignore_index = 1],
        sample![randn([4, 3]), values([0i64, 1, 2, 1], [4]); ignore_index = 1],
        sample![randn([2, 3, 2, 2]), classes([2, 2, 2], 3); axis = 1, reduction = "sum"],
        sample![randn([3, 4]), soft(); soft_label = true].constant(&["label"]),
        sample![randn([3, 4]), soft(); soft_label = true, weight = positive([4]), reduction = "none"]
            .constant(&["label"]),
        sample![randn([3, 4]), classes([3], 4); label_smoothing = 0.2],
        sample![positive([3, 4]), classes([3], 4); use_softmax = false],
        sample![randn([3, 4]), values([0i64, -100, 3], [3])],
    ]
}
