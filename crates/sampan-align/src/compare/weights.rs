//! Parameters: are they the same, and if not, how do they differ?

use super::causes::Cause;
use super::{Check, CheckResult, Context, Finding, LogRow, Report};
use crate::diff::{Diff, slices};
use crate::recording::numbers;
use crate::relations;
use crate::{CallPair, ParameterPair};
use sampan_core::Tensor;

/// The reference's parameter in the candidate's form, and the candidate's.
fn tensors(cx: &Context<'_>, p: &ParameterPair) -> Option<(Tensor, Tensor)> {
    let x = cx.a.tensor("parameters", &p.reference)?;
    let mut y = cx.b.tensor("parameters", &p.candidate)?.clone();
    if let Some((start, len)) = p.transform.put {
        y = y.try_narrow(0, start as i64, len as i64).ok()?;
    }
    let x = p.transform.apply(x, y.shape()).ok()?;
    Some((x, y))
}

fn compared(cx: &Context<'_>, p: &ParameterPair) -> Option<(Tensor, Tensor, Diff)> {
    let (x, y) = tensors(cx, p)?;
    // Weights are copied, not computed: they agree to the last bit or nearly so, until they are trained.
    let mut d = crate::diff::diff(&x, &y, 1e-6);
    d.differs &= !cx.trained();
    Some((x, y, d))
}

/// The distance of all weights, relative to their size.
pub(crate) fn drift(cx: &Context<'_>) -> f64 {
    let (mut far, mut size) = (0.0, 0.0);
    for p in &cx.pairing.parameters {
        let Some((x, y)) = tensors(cx, p) else { continue };
        let (Some(v), Some(w)) = (numbers(&x), numbers(&y)) else { continue };
        far += v.iter().zip(&w).map(|(a, b)| (a - b).powi(2)).sum::<f64>();
        size += v.iter().map(|a| a * a).sum::<f64>();
    }
    if size > 0.0 { (far / size).sqrt() } else { 0.0 }
}

/// More than this is no rounding.
const PARTED: f64 = 1e-3;

/// Weights that have parted before the step whose tensors were recorded: nothing of it says where that began.
pub(crate) fn parted(cx: &Context<'_>, report: &mut Report) -> bool {
    if cx.drift.is_finite() && cx.drift <= PARTED {
        return false;
    }
    let step = cx.b.structure.step;
    report.findings.push(Finding {
        check: "optimizer".into(),
        place: "weights".into(),
        reference: format!("step {step}"),
        candidate: format!("step {step}"),
        cause: "weights_parted".into(),
        sentence: format!(
            "the weights differ already at the beginning of step {step}, by {:.2e} of their size: an update before it is the cause",
            cx.drift
        ),
        certainty: "confirmed".into(),
        visible: true,
        ..Finding::default()
    });
    true
}

/// Were the two models initialised on their own, so that no weight of one is in the other?
pub(crate) fn strangers(cx: &Context<'_>) -> bool {
    let mut differing = 0.0;
    let mut all = 0.0;
    for p in &cx.pairing.parameters {
        let Some((x, _, d)) = compared(cx, p) else { continue };
        // Constants (zeros of a bias, ones of a norm) are equal without having been copied.
        let v = numbers(&x).unwrap_or_default();
        if v.len() > 1 && v.iter().any(|e| *e != v[0]) {
            all += 1.0;
            differing += f64::from(u8::from(d.differs));
        }
    }
    all >= 2.0 && differing / all > 0.8
}

/// Why the weights of a pair of calls differ, if they do.
pub(crate) fn cause(cx: &Context<'_>, p: &CallPair) -> Option<Cause> {
    let (a, b) = (cx.call_a(p), cx.call_b(p));
    if a.function || b.function {
        return None;
    }
    let within =
        |name: &str, layer: &str| name.strip_prefix(layer).is_some_and(|r| layer.is_empty() || r.starts_with('.'));
    let mine = cx.pairing.parameters.iter().filter(|q| q.reference_layer == a.layer && q.candidate_layer == b.layer);
    let mut faults = Vec::new();
    for q in mine {
        if let Some((x, y, d)) = compared(cx, q)
            && d.differs
        {
            faults.push((q, x, y, d));
        }
    }
    let likely = |word: &str, sentence: String| {
        Some(Cause { word: word.into(), sentence, certainty: "confirmed".into(), ..Cause::default() })
    };
    let lost = |left: &[String], layer: &str| -> Vec<String> {
        left.iter().filter(|n| within(n, layer)).map(|n| n.rsplit('.').next().unwrap_or(n).to_string()).collect()
    };
    let (missing, extra) = (lost(&cx.pairing.left_reference, &a.layer), lost(&cx.pairing.left_candidate, &b.layer));
    if let Some(name) = missing.iter().find(|n| n.contains("bias")) {
        return likely("bias_missing", format!("the reference's layer has a {name}, and this one has none"));
    }
    if let Some(name) = extra.iter().find(|n| n.contains("bias")) {
        return likely("bias_extra", format!("it has a {name}, and the reference's layer has none"));
    }
    let (q, x, y, d) = faults.first()?;
    let name = q.candidate.rsplit('.').next().unwrap_or(&q.candidate);
    let raw = cx.a.tensor("parameters", &q.reference)?;
    if q.transform.transpose && raw.shape() == y.shape() && !cx.diff(raw, y, 0).differs {
        let word = "linear_transposed";
        return likely(
            word,
            format!(
                "its {name} is the reference's without being transposed; the two sides keep it [out, in] and [in, out]"
            ),
        );
    }
    if let Ok(turned) = y.try_t()
        && y.ndim() == 2
        && turned.shape() == x.shape()
        && !cx.diff(x, &turned, 0).differs
    {
        return likely("linear_transposed", format!("its {name} is the transposed one of the reference"));
    }
    if matches!(cx.kind_b(p), "lstm" | "gru" | "rnn" | "lstm_cell" | "gru_cell")
        && let Some(order) = gates(x, y)
    {
        return likely("gate_order", format!("the gates in its {name} come in the order {order:?} of the reference's"));
    }
    if let Some(sentence) = forget_bias(x, y, name, cx.kind_b(p)) {
        return likely("lstm_forget_bias", sentence);
    }
    let relation = relations::explain(x, y);
    if let Some(r) = &relation
        && r.cause == "not_finite"
    {
        return likely("not_finite", format!("its {name} is not the reference's: {}", r.sentence));
    }
    if let Some(r) = relation
        && matches!(r.cause, "half_precision" | "scale" | "sign" | "off_by_one" | "channel_order" | "element_order")
    {
        let word = match r.cause {
            "half_precision" => "half_precision",
            "off_by_one" => "off_by_one",
            _ => "weights_changed",
        };
        return likely(word, format!("its {name} is not the reference's: {}", r.sentence));
    }
    let names: Vec<&str> = faults.iter().map(|f| f.0.candidate.rsplit('.').next().unwrap_or("")).collect();
    let how = if d.remark.is_empty() { format!("by up to {:.3e}", d.max) } else { d.remark.clone() };
    likely(
        "weights_not_loaded",
        format!("its {} differ from the reference's {how}: they were not loaded", names.join(" and ")),
    )
}

/// Blocks of rows in another order: gates of a recurrent layer.
fn gates(x: &Tensor, y: &Tensor) -> Option<Vec<usize>> {
    if x.shape() != y.shape() || x.ndim() == 0 {
        return None;
    }
    let (v, w) = (numbers(x)?, numbers(y)?);
    for n in [4usize, 3] {
        if !x.shape()[0].is_multiple_of(n) {
            continue;
        }
        let block = v.len() / n;
        let part = |u: &[f64], i: usize| u[i * block..(i + 1) * block].to_vec();
        let order: Option<Vec<usize>> =
            (0..n).map(|i| (0..n).find(|&j| !slices(&part(&v, j), &part(&w, i), 1e-6).differs)).collect();
        if let Some(order) = order
            && (0..n).all(|i| order.contains(&i))
            && order.iter().enumerate().any(|(i, &j)| i != j)
        {
            return Some(order);
        }
    }
    None
}

/// A constant that was added to the bias of the forget gate.
fn forget_bias(x: &Tensor, y: &Tensor, name: &str, kind: &str) -> Option<String> {
    if !kind.contains("lstm") || !name.contains("bias") || x.shape() != y.shape() {
        return None;
    }
    let (v, w) = (numbers(x)?, numbers(y)?);
    let n = v.len() / 4;
    let rest_same = (0..v.len()).all(|i| (n..2 * n).contains(&i) || (v[i] - w[i]).abs() < 1e-5);
    let by = w.get(n)? - v.get(n)?;
    let constant = (n..2 * n).all(|i| (w[i] - v[i] - by).abs() < 1e-4 || (w[i] - w[n]).abs() < 1e-6);
    (rest_same && constant)
        .then(|| format!("the forget gate's part of its {name} differs by {by:.3}, all else is the same"))
}

/// Parameters that differ in layers whose outputs were not compared.
pub(crate) fn check(cx: &Context<'_>, report: &mut Report) {
    let ran = |name: &str| cx.pairing.calls.iter().any(|p| cx.call_b(p).layer == name && !cx.call_b(p).function);
    for p in &cx.pairing.parameters {
        if p.candidate.contains("num_batches_tracked") || ran(&p.candidate_layer) {
            continue;
        }
        let Some((x, y, d)) = compared(cx, p) else { continue };
        if !d.differs {
            continue;
        }
        let relation = relations::explain(&x, &y);
        let why = relation.as_ref().map_or(format!("by up to {:.3e}", d.max), |r| r.sentence.clone());
        let word = relation.map_or("weights_not_loaded", |r| {
            if matches!(r.cause, "off_by_one" | "not_finite") { r.cause } else { "weights_not_loaded" }
        });
        report.findings.push(Finding {
            check: "forward".into(),
            place: "weights".into(),
            reference: p.reference.clone(),
            candidate: p.candidate.clone(),
            cause: word.into(),
            sentence: format!("the parameter {} differs from the reference's {}: {why}", p.candidate, p.reference),
            certainty: "confirmed".into(),
            visible: true,
            order: usize::MAX,
            ..Finding::default()
        });
    }
}

struct Shape {
    mean: f64,
    deviation: f64,
    /// 1.8 for even, 3 for bell-shaped values.
    kurtosis: f64,
    count: f64,
}

fn shape(t: &Tensor) -> Option<Shape> {
    let v = numbers(t)?;
    let count = v.len() as f64;
    if v.is_empty() {
        return None;
    }
    let mean = v.iter().sum::<f64>() / count;
    let moment = |k: i32| v.iter().map(|x| (x - mean).powi(k)).sum::<f64>() / count;
    let variance = moment(2);
    let kurtosis = if variance > 0.0 { moment(4) / (variance * variance) } else { 0.0 };
    Some(Shape { mean, deviation: variance.sqrt(), kurtosis, count })
}

impl Shape {
    fn words(&self) -> String {
        match self.kurtosis {
            _ if self.deviation < 1e-12 => format!("constant {:.4}", self.mean),
            k if k < 2.2 => format!("uniform within ±{:.4}", self.deviation * 3f64.sqrt()),
            k if k < 2.7 => format!("truncated normal with deviation {:.4}", self.deviation),
            _ => format!("normal with deviation {:.4}", self.deviation),
        }
    }
    fn same(&self, other: &Shape) -> bool {
        let n = self.count.min(other.count);
        let spread = 6.0 / (2.0 * n).sqrt() + 0.02;
        let large = self.deviation.max(other.deviation);
        if large < 1e-12 {
            return (self.mean - other.mean).abs() < 1e-6;
        }
        let form = n < 200.0 || (self.kurtosis - other.kurtosis).abs() < 0.25 + 12.0 / n.sqrt();
        (self.deviation - other.deviation).abs() <= spread * large
            && (self.mean - other.mean).abs() <= 6.0 * large / n.sqrt() + 1e-6
            && form
    }
}

/// Compares how the parameters were drawn, not what was drawn.
pub(crate) fn initialisation(cx: &Context<'_>, strangers: bool, report: &mut Report) {
    let mut rows = Vec::new();
    for (order, p) in cx.pairing.parameters.iter().enumerate() {
        let Some((x, y)) = tensors(cx, p) else { continue };
        let (Some(s), Some(t)) = (shape(&x), shape(&y)) else { continue };
        let relative = (s.deviation - t.deviation).abs() / s.deviation.max(1e-12);
        let same = s.same(&t);
        let (mean, max) = ((s.mean - t.mean).abs(), (s.deviation - t.deviation).abs());
        rows.push(LogRow {
            key: p.reference.clone(),
            diff: Diff { mean, max, min: 0.0, relative, differs: !same, remark: String::new() },
        });
        if !same {
            report.findings.push(Finding {
                check: "initialisation".into(),
                place: "initialisation".into(),
                reference: p.reference.clone(),
                candidate: p.candidate.clone(),
                cause: "initializer".into(),
                sentence: format!(
                    "{} is drawn otherwise: {} in the reference, {} in the candidate",
                    p.candidate,
                    s.words(),
                    t.words()
                ),
                certainty: "confirmed".into(),
                visible: true,
                order,
                ..Finding::default()
            });
        }
    }
    if strangers {
        report.notes.push(
            "the two models have different weights throughout, so only the way they were drawn is compared; \
             `align.copy_weights(reference, candidate)` gives the candidate the reference's"
                .into(),
        );
    }
    if !rows.is_empty() {
        let ok = rows.iter().all(|r| !r.diff.differs);
        report.checks.push(CheckResult { check: Check::Initialisation, ok, rows });
    }
}
