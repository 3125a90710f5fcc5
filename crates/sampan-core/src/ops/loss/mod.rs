//! Losses between predictions and targets, element by element.

pub mod cross_entropy;
pub mod ctc_loss;
pub mod loss_class;
pub mod loss_margin;
pub mod many_classes;
pub mod rnnt_loss;
pub mod squared_error;

use crate::ops::prelude::*;
use std::f64::consts::PI;

/// What becomes of the losses of single elements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reduction {
    None,
    Mean,
    Sum,
}

impl Reduction {
    pub fn parse(name: &str) -> Result<Reduction> {
        match name {
            "none" => Ok(Reduction::None),
            "mean" => Ok(Reduction::Mean),
            "sum" => Ok(Reduction::Sum),
            other => Err(Error::invalid(format!("reduction must be \"none\", \"mean\" or \"sum\", got \"{other}\""))),
        }
    }

    pub fn apply(self, loss: &Tensor) -> Tensor {
        match self {
            Reduction::None => loss.clone(),
            Reduction::Sum => loss.sum(()),
            Reduction::Mean => loss.mean(()),
        }
    }
}

/// Both shapes must be the same; broadcasting a target by mistake is a common error that trains silently.
pub(crate) fn same_shape(a: (&str, &Tensor), b: (&str, &Tensor)) -> Result<()> {
    if a.1.shape() == b.1.shape() {
        return Ok(());
    }
    Err(Error::invalid(format!("{} has shape {:?}, {} has {:?}", a.0, a.1.shape(), b.0, b.1.shape()))
        .hint("both must have one shape"))
}

/// The targets of cross entropies and divergences are constants, as in Paddle: a network that made them is not trained by
/// these losses. What this gives has the values and no history.
pub(crate) fn constant(target: &Tensor) -> Tensor {
    target.detach()
}

/// `(input - label)^2`, reduced.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([1.0f32, 3.0]).mse_loss(&Tensor::new([0.0f32, 0.0])).to_f64(), 5.0);
/// ```
#[op(module = "nn.functional", samples = pair_samples)]
fn mse_loss(input: &Tensor, label: &Tensor, #[opt("mean")] reduction: &str) -> Result<Tensor> {
    let reduction = Reduction::parse(reduction)?;
    let dtype = input.dtype();
    let plain = matches!(dtype, DType::Float32 | DType::Float64) && label.dtype() == dtype;
    // With mixed precision the parts have precisions of their own.
    if plain && input.shape() == label.shape() && !crate::amp::enabled() {
        let share = if reduction == Reduction::Mean { 1.0 / input.numel() as f64 } else { 1.0 };
        return input.try_squared_error(label, share, reduction != Reduction::None);
    }
    Ok(reduction.apply(&input.try_subtract(label)?.square()))
}

/// `(input - label)^2`.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([3.0f32]).square_error_cost(&Tensor::new([1.0f32])).to_vec::<f32>(), [4.0]);
/// ```
#[op(module = "nn.functional", samples = plain_pairs)]
fn square_error_cost(input: &Tensor, label: &Tensor) -> Result<Tensor> {
    Ok(input.try_subtract(label)?.square())
}

/// `|input - label|`, reduced.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([1.0f32, -3.0]).l1_loss(&Tensor::new([0.0f32, 0.0])).to_f64(), 2.0);
/// ```
#[op(module = "nn.functional", samples = pair_samples)]
fn l1_loss(input: &Tensor, label: &Tensor, #[opt("mean")] reduction: &str) -> Result<Tensor> {
    let reduction = Reduction::parse(reduction)?;
    Ok(reduction.apply(&input.try_subtract(label)?.abs()))
}

/// `x^2 / 2` up to `delta` away from zero, beyond that the straight line that continues it.
#[op(
    internal,
    module = "nn.functional",
    samples = huber_samples,
    peer = "lambda x, d: F.huber_loss(x, torch.zeros_like(x), 'none', d)"
)]
fn huber(cx: &Cx, x: &Tensor, delta: f64) -> Result<Tensor> {
    ensure!(delta > 0.0, "delta must be positive, got {delta}");
    let f = formula!(|x; delta| {
        let a = x.abs();
        select(a.le(delta), 0.5 * x * x, delta * (a - 0.5 * delta))
    });
    // Written by hand: both pieces have the slope of `x` held between the ends.
    cx.by_input(f, formula!(|x, g; delta| g * x.max(-delta).min(delta)), x)
}

/// The Huber loss: quadratic for differences up to `delta`, linear beyond; divided by `delta` without `is_huber`.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([3.0f32]).smooth_l1_loss(&Tensor::new([0.0f32])).to_f64(), 2.5);
/// ```
#[op(module = "nn.functional", samples = smooth_samples, amp = "black")]
fn smooth_l1_loss(
    input: &Tensor,
    label: &Tensor,
    #[opt("mean")] reduction: &str,
    #[opt(1.0)] delta: f64,
    #[opt(true)] is_huber: bool,
) -> Result<Tensor> {
    let reduction = Reduction::parse(reduction)?;
    let loss = input.try_subtract(label)?.try_huber(delta)?;
    Ok(reduction.apply(&if is_huber { loss } else { loss / delta }))
}

/// The logarithm of a probability is not let below this.
const LOG_FLOOR: f64 = -100.0;

/// Binary cross entropy of probabilities, element by element.
#[op(
    internal,
    module = "nn.functional",
    samples = bernoulli_samples,
    peer = "lambda x, y: torch.nn.functional.binary_cross_entropy(x, y, reduction='none')"
)]
fn bernoulli_nll(cx: &Cx, x: &Tensor, label: &Tensor) -> Result<Tensor> {
    same_shape(("input", x), ("label", label))?;
    cx.cpu(|| {
        // The comparison is written so that NaN passes: it is to be seen in the loss.
        if let Some(i) = x.to_f64_vec().iter().position(|p| *p < 0.0 || *p > 1.0) {
            return Err(Error::invalid(format!("the probability at position {i} lies outside of [0, 1]"))
                .hint("use binary_cross_entropy_with_logits for values before the sigmoid"));
        }
        Ok(())
    })?;
    let nll = formula!(|x, y| {
        let (hit, miss) = (x.ln().max(LOG_FLOOR), (1.0 - x).ln().max(LOG_FLOOR));
        (y - 1.0) * miss - y * hit
    });
    let out = cx.float_values(nll, (x, label))?;
    cx.grad(out, &[x, label], |g| {
        let (x, y) = (g.saved(0), g.saved(1));
        let floor = |t: Tensor| t.maximum(LOG_FLOOR);
        Ok([
            g.if_needed(0, || g.grad() * (x - y) / (x * (1.0 - x)).maximum(1e-12)),
            g.if_needed(1, || g.grad() * (floor((1f64 - x).log()) - floor(x.log()))),
        ])
    })
}

/// `-(label ln(input) + (1 - label) ln(1 - input))` of probabilities `input`, times `weight`, reduced. The label gets no
/// gradient.
///
/// ```
/// # use sampan_core::Tensor;
/// let loss = Tensor::new([0.5f32]).binary_cross_entropy(&Tensor::new([1.0f32]), None, "mean");
/// assert!((loss.to_f64() - 2f64.ln()).abs() < 1e-6);
/// ```
#[op(module = "nn.functional", samples = bce_samples, amp = "black")]
fn binary_cross_entropy(
    input: &Tensor,
    label: &Tensor,
    #[default(None)] weight: Option<&Tensor>,
    #[default("mean")] reduction: &str,
) -> Result<Tensor> {
    let reduction = Reduction::parse(reduction)?;
    // Half types cannot hold the small products of the gradient.
    let wide = if input.dtype().is_half() { DType::Float32 } else { input.dtype() };
    let mut loss = input.cast(wide).try_bernoulli_nll(&constant(label).cast(wide))?;
    if let Some(w) = weight {
        loss = loss.try_multiply(w.cast(wide))?;
    }
    Ok(reduction.apply(&loss).cast(input.dtype()))
}

/// `(1 - y) max(x, 0) + y max(-x, 0) + ln(1 + e^-|x|)`: the cross entropy of the sigmoid of `x` with `y`, in one pass.
#[op(
    internal,
    module = "nn.functional",
    samples = plain_pairs,
    peer = "lambda x, y: torch.nn.functional.binary_cross_entropy_with_logits(x, y, reduction='none')"
)]
fn logistic_nll(cx: &Cx, x: &Tensor, y: &Tensor) -> Result<Tensor> {
    same_shape(("logit", x), ("label", y))?;
    // A factor of zero takes an infinite logit out.
    let nll = formula!(|x, y| x.max(0.0).times(1.0 - y) + (-x).max(0.0).times(y) + (-x.abs()).exp().log1p());
    let out = cx.float_values(nll, (x, y))?;
    cx.grad(out, &[x, y], |g| {
        let (x, y) = (g.saved(0), g.saved(1));
        Ok([g.if_needed(0, || g.grad() * (x.sigmoid() - y)), g.if_needed(1, || -(g.grad() * x))])
    })
}

/// Binary cross entropy of logits, without overflow; `pos_weight` scales the positive class, `weight` every element. The
/// label and `pos_weight` get no gradient.
///
/// ```
/// # use sampan_core::Tensor;
/// let loss = Tensor::new([0.0f32]).binary_cross_entropy_with_logits(&Tensor::new([1.0f32]), None, "mean", None);
/// assert!((loss.to_f64() - 2f64.ln()).abs() < 1e-6);
/// ```
#[op(module = "nn.functional", samples = bce_logits_samples, amp = "black")]
fn binary_cross_entropy_with_logits(
    logit: &Tensor,
    label: &Tensor,
    #[default(None)] weight: Option<&Tensor>,
    #[default("mean")] reduction: &str,
    #[default(None)] pos_weight: Option<&Tensor>,
) -> Result<Tensor> {
    let reduction = Reduction::parse(reduction)?;
    same_shape(("logit", logit), ("label", label))?;
    let label = constant(label).cast(logit.dtype());
    let mut loss = match pos_weight.map(constant) {
        None => logit.try_logistic_nll(&label)?,
        Some(w) => {
            // The plain loss, with the share that the positive class has of the whole as the label.
            let hit = label.try_multiply(w)?;
            let whole = 1.0 - &label + &hit;
            let share = hit / crate::ops::cross_entropy::or_one(&whole);
            &whole * logit.try_expand(share.shape())?.try_logistic_nll(&share)?
        }
    };
    if let Some(w) = weight {
        loss = loss.try_multiply(w)?;
    }
    Ok(reduction.apply(&loss))
}

/// The focal loss on logits: cross entropy that fades for what is already well classified, by the power `gamma`. The
/// label's gradient is that of the fading alone.
///
/// ```
/// # use sampan_core::Tensor;
/// let loss = Tensor::new([50.0f32]).sigmoid_focal_loss(&Tensor::new([1.0f32]));
/// assert!(loss.to_f64() < 1e-6);
/// ```
#[op(module = "nn.functional", samples = focal_samples, amp = "black")]
fn sigmoid_focal_loss(
    logit: &Tensor,
    label: &Tensor,
    #[opt(None)] normalizer: Option<&Tensor>,
    #[opt(0.25)] alpha: f64,
    #[opt(2.0)] gamma: f64,
    #[opt("sum")] reduction: &str,
) -> Result<Tensor> {
    let reduction = Reduction::parse(reduction)?;
    if let Some(n) = normalizer {
        ensure!(n.ndim() <= 1, "normalizer must have at most one axis, got shape {:?}", n.shape());
    }
    let label = label.cast(logit.dtype());
    let p = logit.sigmoid();
    let missed = &p + &label - &p * &label * 2.0;
    let balance = &label * (2.0 * alpha - 1.0) + (1.0 - alpha);
    let mut loss = balance * missed.pow(gamma) * logit.try_logistic_nll(&constant(&label))?;
    if let Some(n) = normalizer {
        loss = loss.try_divide(n)?;
    }
    Ok(reduction.apply(&loss))
}

/// `-label ln(input + epsilon) - (1 - label) ln(1 - input + epsilon)`. The label gets no gradient.
///
/// ```
/// # use sampan_core::Tensor;
/// let loss = Tensor::new([[0.5f32]]).log_loss(&Tensor::new([[1.0f32]]), 1e-4);
/// assert!((loss.to_f64() - 0.6929).abs() < 1e-3);
/// ```
#[op(module = "nn.functional", samples = log_loss_samples, amp = "black")]
fn log_loss(input: &Tensor, label: &Tensor, #[default(1e-4)] epsilon: f64) -> Result<Tensor> {
    same_shape(("input", input), ("label", label))?;
    let label = &constant(label);
    Ok(-(label * (input + epsilon).log()) - (1.0 - label) * (1f64 - input + epsilon).log())
}

/// The Kullback-Leibler divergence `label * (ln(label) - input)` for log-probabilities `input`; the label holds
/// log-probabilities too with `log_target`. `reduction` may also be `"batchmean"`. The label gets no gradient.
///
/// ```
/// # use sampan_core::Tensor;
/// let p = Tensor::new([0.25f32, 0.75]);
/// assert_eq!(p.log().kl_div(&p, "sum", false).to_f64(), 0.0);
/// ```
#[op(module = "nn.functional", samples = kl_samples)]
fn kl_div(
    input: &Tensor,
    label: &Tensor,
    #[default("mean")] reduction: &str,
    #[default(false)] log_target: bool,
) -> Result<Tensor> {
    same_shape(("input", input), ("label", label))?;
    let batch = reduction == "batchmean";
    let reduction = if batch { Reduction::Sum } else { Reduction::parse(reduction)? };
    let label = &constant(label);
    let loss = if log_target {
        label.exp() * (label - input)
    } else {
        // Nothing is lost where the target is zero; its logarithm must not be looked at there.
        let present = label.greater_than(0.0);
        let safe = present.where_cond(label, 1.0);
        present.where_cond(label * (safe.log() - input), 0.0)
    };
    let total = reduction.apply(&loss);
    Ok(if batch && input.ndim() > 0 { total / input.dim(0) as f64 } else { total })
}

/// The negative log-likelihood of counts `label` under a Poisson distribution of rate `input`, or `e^input` with
/// `log_input`; `full` adds Stirling's approximation of the constant.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([0.0f32]).poisson_nll_loss(&Tensor::new([2.0f32])).to_f64(), 1.0);
/// ```
#[op(module = "nn.functional", samples = poisson_samples)]
fn poisson_nll_loss(
    input: &Tensor,
    label: &Tensor,
    #[opt(true)] log_input: bool,
    #[opt(false)] full: bool,
    #[opt(1e-8)] epsilon: f64,
    #[opt("mean")] reduction: &str,
) -> Result<Tensor> {
    let reduction = Reduction::parse(reduction)?;
    ensure!(epsilon > 0.0, "epsilon must be positive, got {epsilon}");
    same_shape(("input", input), ("label", label))?;
    let mut loss = if log_input { input.exp() - label * input } else { input - label * (input + epsilon).log() };
    if full {
        let many = label.greater_than(1.0);
        let n = many.where_cond(label, 1.0);
        let stirling = &n * n.log() - &n + (&n * (2.0 * PI)).log() * 0.5;
        loss = loss + many.where_cond(stirling, 0.0);
    }
    Ok(reduction.apply(&loss))
}

/// The negative log-likelihood of `label` under normal distributions of mean `input` and given variance, which is kept
/// above `epsilon`; `full` adds the constant.
///
/// ```
/// # use sampan_core::Tensor;
/// let (x, y, v) = (Tensor::new([1.0f32]), Tensor::new([3.0f32]), Tensor::new([1.0f32]));
/// assert_eq!(x.gaussian_nll_loss(&y, &v).to_f64(), 2.0);
/// ```
#[op(module = "nn.functional", samples = gaussian_samples)]
fn gaussian_nll_loss(
    input: &Tensor,
    label: &Tensor,
    variance: &Tensor,
    #[opt(false)] full: bool,
    #[opt(1e-6)] epsilon: f64,
    #[opt("mean")] reduction: &str,
) -> Result<Tensor> {
    let reduction = Reduction::parse(reduction)?;
    let (shape, rank) = (input.shape(), input.ndim());
    let lead = &shape[..rank.saturating_sub(1)];
    let variance = match variance.shape() {
        s if s == shape => variance.clone(),
        s if rank > 0 && s == lead => variance.unsqueeze(-1),
        s if rank > 0 && s.len() == rank && &s[..rank - 1] == lead && s[rank - 1] == 1 => variance.clone(),
        s => bail!("variance must have shape {shape:?}, {lead:?} or {lead:?} with a last axis of 1, got {s:?}"),
    };
    if variance.device().has_values() && variance.numel() > 0 && variance.detach().min(()).to_f64() < 0.0 {
        bail!("variance must not be negative");
    }
    // The floor is a constant: it keeps the value, not the gradient.
    let floor = variance.detach();
    let variance = &variance + (floor.maximum(epsilon) - &floor);
    let mut loss = (variance.log() + input.try_subtract(label)?.square() / &variance) * 0.5;
    if full {
        loss = loss + 0.5 * (2.0 * PI).ln();
    }
    Ok(reduction.apply(&loss))
}

/// `ln(1 + e^(-label * input))` for labels of -1 and 1, reduced.
///
/// ```
/// # use sampan_core::Tensor;
/// let loss = Tensor::new([0.0f32]).soft_margin_loss(&Tensor::new([1.0f32]));
/// assert!((loss.to_f64() - 2f64.ln()).abs() < 1e-6);
/// ```
#[op(module = "nn.functional", samples = sign_samples)]
fn soft_margin_loss(input: &Tensor, label: &Tensor, #[opt("mean")] reduction: &str) -> Result<Tensor> {
    let reduction = Reduction::parse(reduction)?;
    same_shape(("input", input), ("label", label))?;
    Ok(reduction.apply(&-(label.cast(input.dtype()) * input).log_sigmoid()))
}

/// One hot labels softened: `(1 - epsilon) * label` plus `epsilon` times `prior_dist`, which gets no gradient, or the
/// uniform distribution.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([[0.0f32, 1.0]]).label_smooth(None, 0.5).to_vec::<f32>(), [0.25, 0.75]);
/// ```
#[op(module = "nn.functional", samples = smooth_label_samples)]
fn label_smooth(
    label: &Tensor,
    #[default(None)] prior_dist: Option<&Tensor>,
    #[default(0.1)] epsilon: f64,
) -> Result<Tensor> {
    ensure!((0.0..=1.0).contains(&epsilon), "epsilon must lie in [0, 1], got {epsilon}");
    ensure!(label.ndim() > 0, "label must have an axis of classes");
    let kept = label * (1.0 - epsilon);
    match prior_dist {
        Some(prior) => {
            ensure!(
                prior.numel() == label.dim(-1),
                "prior_dist has {} elements, there are {} classes",
                prior.numel(),
                label.dim(-1)
            );
            Ok(kept + constant(prior).reshape_to([prior.numel()]) * epsilon)
        }
        None => Ok(kept + epsilon / label.dim(-1) as f64),
    }
}

/// One minus twice the overlap of predictions and labels over their total, averaged over the batch. `label` holds class
/// numbers with a last axis of 1.
///
/// ```
/// # use sampan_core::Tensor;
/// let loss = Tensor::new([[0.0f32, 1.0]]).dice_loss(&Tensor::new([[1i64]]), 1e-5);
/// assert!(loss.to_f64().abs() < 1e-4);
/// ```
#[op(module = "nn.functional", samples = dice_samples)]
fn dice_loss(input: &Tensor, label: &Tensor, #[default(1e-5)] epsilon: f64) -> Result<Tensor> {
    let rank = input.ndim();
    ensure!(rank >= 2, "input must have at least 2 axes, got shape {:?}", input.shape());
    let mut expected = input.shape_vec();
    let classes = std::mem::replace(&mut expected[rank - 1], 1);
    ensure!(label.shape() == expected.as_slice(), "label must have shape {expected:?}, got {:?}", label.shape());
    let hot = label.squeeze(-1).try_one_hot(classes as i64)?.cast(input.dtype());
    let axes: Vec<i64> = (1..rank as i64).collect();
    let overlap = (input * &hot).sum(axes.clone());
    let total = input.sum(axes.clone()) + hot.sum(axes);
    Ok((1f64 - overlap * 2.0 / (total + epsilon)).mean(()))
}

/// Rows of `maxlen` ones and zeros: as many leading ones as `x` says; `maxlen` is the largest of them by default.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([1i64, 3]).sequence_mask(None).to_vec::<i64>(), [1, 0, 0, 1, 1, 1]);
/// ```
#[op(non_diff, module = "nn.functional", samples = sequence_samples)]
fn sequence_mask(
    cx: &Cx,
    x: &Tensor,
    #[default(None)] maxlen: Option<i64>,
    #[opt(DType::Int64)] dtype: DType,
) -> Result<Tensor> {
    let maxlen = match maxlen {
        Some(n) if n >= 0 => n as usize,
        Some(n) => bail!("maxlen must not be negative, got {n}"),
        None => {
            cx.needs_values()?;
            x.to_f64_vec().into_iter().fold(0.0, f64::max) as usize
        }
    };
    let mut shape = x.shape_vec();
    shape.push(maxlen);
    let out = cx.out(&shape, dtype)?;
    cx.cpu(|| {
        let lengths = x.to_f64_vec();
        sampan_kernels::arrange::length_mask(out.values_mut().slice(), maxlen, &lengths);
        Ok(())
    })?;
    Ok(out)
}

pub(crate) fn pair_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 3]), uniform([2, 3], -1.0, 1.0)],
        sample![randn([2, 3]), uniform([2, 3], -1.0, 1.0); reduction = "none"],
        sample![randn([5]), uniform([5], -1.0, 1.0); reduction = "sum"],
        sample![randn([]), uniform([], -1.0, 1.0)],
    ]
}
fn plain_pairs() -> Vec<Sample> {
    vec![sample![randn([2, 3]), uniform([2, 3], 0.0, 1.0)], sample![randn([0, 3]), uniform([0, 3], 0.0, 1.0)]]
}
fn huber_samples() -> Vec<Sample> {
    vec![sample![randn([2, 3]), 1.0], sample![randn([4]), 0.5], sample![randn([0]), 0.5]]
}
fn smooth_samples() -> Vec<Sample> {
    let mut samples = pair_samples();
    samples.push(sample![randn([2, 3]), uniform([2, 3], -1.0, 1.0); delta = 0.4]);
    samples.push(sample![randn([2, 3]), uniform([2, 3], -1.0, 1.0); delta = 0.4, is_huber = false]);
    samples
}
fn probabilities(shape: impl AsRef<[usize]>) -> Tensor {
    uniform(shape, 0.1, 0.9)
}
fn targets(shape: impl AsRef<[usize]>) -> Tensor {
    uniform(shape, 0.0, 1.0)
}
fn bernoulli_samples() -> Vec<Sample> {
    vec![sample![probabilities([2, 3]), targets([2, 3])], sample![probabilities([0]), targets([0])]]
}
fn bce_samples() -> Vec<Sample> {
    vec![
        sample![probabilities([2, 3]), targets([2, 3])].constant(&["label"]),
        sample![probabilities([2, 3]), targets([2, 3]), positive([3]), "none"].constant(&["label"]),
        sample![probabilities([4]), targets([4]), Value::None, "sum"].constant(&["label"]),
    ]
}
fn bce_logits_samples() -> Vec<Sample> {
    let constants = &["label", "pos_weight"];
    vec![
        sample![randn([2, 3]), targets([2, 3])].constant(constants),
        sample![randn([2, 3]), targets([2, 3]), positive([3]), "none"].constant(constants),
        sample![randn([2, 3]), targets([2, 3]), Value::None, "sum", positive([3])].constant(constants),
    ]
}
fn focal_samples() -> Vec<Sample> {
    let formula = "lambda x, y, normalizer=1, alpha=0.25, gamma=2.0, reduction='sum': ( \
        p := torch.sigmoid(x), \
        wrong := p + y - 2 * p * y, \
        loss := F.binary_cross_entropy_with_logits(x, y.detach(), reduction='none') / normalizer, \
        loss := loss * wrong ** gamma * (alpha * y + (1 - alpha) * (1 - y)), \
        loss if reduction == 'none' else getattr(loss, reduction)())[-1]";
    // The label is a constant in one of the two places where it stands.
    vec![
        sample![randn([2, 3]), targets([2, 3])].constant(&["label"]),
        sample![randn([2, 3]), targets([2, 3]); normalizer = positive([1]), alpha = 0.6, gamma = 1.5, reduction = "none"]
            .constant(&["label"]),
        sample![randn([2, 2]), targets([2, 2]); reduction = "mean"].peer(formula).constant(&["label"]),
    ]
}
fn log_loss_samples() -> Vec<Sample> {
    vec![
        sample![probabilities([3, 1]), targets([3, 1])].constant(&["label"]),
        sample![probabilities([3, 1]), targets([3, 1]), 0.1].constant(&["label"]),
    ]
}
fn kl_samples() -> Vec<Sample> {
    let edge = "none: a target at the edge of its range";
    vec![
        sample![randn([2, 3]), probabilities([2, 3])].constant(&["label"]),
        sample![randn([2, 3]), probabilities([2, 3]), "batchmean"].constant(&["label"]),
        sample![randn([2, 3]), randn([2, 3]), "none", true].constant(&["label"]),
        sample![randn([2]), values([0.0f32, 1.0], [2]), "sum"].constant(&["label"]).grad_peer(edge),
    ]
}
fn poisson_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 3]), positive([2, 3])],
        sample![positive([2, 3]), values([0.5f32, 1.5, 3.0, 2.0, 0.7, 5.0], [2, 3]); log_input = false, full = true],
        sample![randn([2, 3]), positive([2, 3]); reduction = "none"],
    ]
}
fn gaussian_samples() -> Vec<Sample> {
    // Paddle gives the variance no gradient.
    let grads = "torch.nn.functional.gaussian_nll_loss";
    vec![
        sample![randn([2, 3]), uniform([2, 3], -1.0, 1.0), positive([2, 3])].grad_peer(grads),
        sample![randn([2, 3]), uniform([2, 3], -1.0, 1.0), positive([2]); full = true, reduction = "none"]
            .grad_peer(grads),
        sample![randn([2, 3]), uniform([2, 3], -1.0, 1.0), positive([2, 1]); reduction = "sum"].grad_peer(grads),
    ]
}
/// Predictions with labels of -1 and 1.
pub(crate) fn sign_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 3]), values([1.0f32, -1.0, -1.0, 1.0, 1.0, -1.0], [2, 3])].no_grad("labels are signs"),
        sample![randn([3]), values([1i64, -1, 1], [3]); reduction = "none"],
        sample![randn([3]), values([1i64, -1, 1], [3]); reduction = "sum"],
    ]
}
fn smooth_label_samples() -> Vec<Sample> {
    vec![
        sample![uniform([2, 3], 0.0, 1.0)],
        sample![uniform([2, 3], 0.0, 1.0), positive([1, 3]), 0.3].constant(&["prior_dist"]),
    ]
}
fn dice_samples() -> Vec<Sample> {
    vec![sample![probabilities([3, 4]), ints([3, 1], 0, 4)], sample![probabilities([2, 2, 3]), ints([2, 2, 1], 0, 3)]]
}
fn sequence_samples() -> Vec<Sample> {
    vec![
        sample![values([1i64, 3, 0], [3]), 4],
        sample![values([1i64, 3], [2])],
        sample![values([1i32, 2], [1, 2]), 2; dtype = DType::Float32],
    ]
}
