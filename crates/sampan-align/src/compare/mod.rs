//! The checkpoints of a reproduction: forward, data, metric, loss, optimizer, backward, training, initialisation.

mod backward;
mod blocks;
mod causes;
mod data;
mod ends;
mod forward;
mod gaps;
mod graph;
mod optimizer;
mod outputs;
mod rhythm;
mod training;
mod verdict;
mod weights;

pub use verdict::{Check, CheckResult, Finding, LogRow, Options, Report, Row};

use crate::diff::{self, Diff};
use crate::{Call, CallPair, Pairing, Recording, kinds, pair};
use sampan_core::error::Kind;
use sampan_core::{Error, Result, Tensor};
use std::collections::HashMap;

/// Everything that the checks look at.
pub(crate) struct Context<'r> {
    pub a: &'r Recording,
    pub b: &'r Recording,
    pub pairing: Pairing,
    pub asked: Option<f64>,
    /// Does something draw random numbers on both sides, so that what comes after it differs?
    pub random: bool,
    /// How far the weights lie apart at the beginning of a step that is not the first, relative to their size.
    pub drift: f64,
    kinds_a: Vec<String>,
    kinds_b: Vec<String>,
}

impl<'r> Context<'r> {
    fn call_a(&self, p: &CallPair) -> &'r Call {
        &self.a.structure.calls[p.reference]
    }
    fn call_b(&self, p: &CallPair) -> &'r Call {
        &self.b.structure.calls[p.candidate]
    }
    fn kind_a(&self, p: &CallPair) -> &str {
        &self.kinds_a[p.reference]
    }
    fn kind_b(&self, p: &CallPair) -> &str {
        &self.kinds_b[p.candidate]
    }
    fn sides(&self) -> (&'r str, &'r str) {
        (&self.a.structure.side, &self.b.structure.side)
    }
    /// Compares with the tolerance of a number of layers.
    fn diff(&self, x: &Tensor, y: &Tensor, depth: usize) -> Diff {
        diff::diff(x, y, diff::tolerance(x.dtype(), y.dtype(), depth, self.asked) + 30.0 * self.drift)
    }
    /// The key of a parameter's gradient or value at the recorded step.
    fn at_step(&self, name: &str) -> String {
        format!("step{}:{name}", self.b.structure.step)
    }
    /// Are these tensors of a step of training that is not the first, so that rounding has moved the weights apart?
    fn trained(&self) -> bool {
        self.a.structure.step.min(self.b.structure.step) > 0
    }
}

/// The name of a call for people: a layer's name, or the function and the layer that calls it.
pub(crate) fn shown(call: &Call) -> String {
    let place = if call.place.is_empty() { String::new() } else { format!(" ({})", call.place) };
    if call.function {
        let layer = if call.layer.is_empty() { "the model" } else { &call.layer };
        format!("the call of {} in {layer}{place}", call.op.trim_matches('_'))
    } else {
        format!(
            "{} ({}{})",
            call.key,
            call.op,
            if call.place.is_empty() { String::new() } else { format!(", {}", call.place) }
        )
    }
}

/// A tensor in a few words.
fn in_words(t: Option<&Tensor>) -> String {
    let Some(t) = t else { return String::new() };
    let shape = t.shape().iter().map(|d| d.to_string()).collect::<Vec<_>>().join(", ");
    let Some(v) = crate::recording::numbers(t).filter(|v| !v.is_empty()) else { return format!("[{shape}]") };
    let mean = v.iter().sum::<f64>() / v.len() as f64;
    let deviation = (v.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / v.len() as f64).sqrt();
    let low = v.iter().copied().fold(f64::INFINITY, f64::min);
    let high = v.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    format!("[{shape}] {}: mean {mean:.5}, deviation {deviation:.5}, {low:.5} to {high:.5}", t.dtype())
}

/// Settings, inputs and outputs of a pair of calls, for the reader.
pub(crate) fn detail(cx: &Context<'_>, p: &CallPair) -> Vec<[String; 3]> {
    let (a, b) = (cx.call_a(p), cx.call_b(p));
    let settings = |c: &Call| {
        let told = c.config.iter().filter(|(k, v)| !v.is_null() && k.as_str() != "refuses");
        told.map(|(k, v)| format!("{k}={v}")).collect::<Vec<_>>().join(", ")
    };
    let mut rows = vec![["settings".to_string(), settings(a), settings(b)]];
    for i in 0..a.inputs.len().max(b.inputs.len()).min(4) {
        let get = |r: &Recording, c: &Call| in_words(c.inputs.get(i).and_then(|k| r.tensor("forward", k)));
        rows.push([format!("input {i}"), get(cx.a, a), get(cx.b, b)]);
    }
    let get = |r: &Recording, c: &Call| in_words(c.outputs.first().and_then(|k| r.tensor("forward", k)));
    rows.push(["output".to_string(), get(cx.a, a), get(cx.b, b)]);
    let forced = cx.b.tensor("forced", &format!("{}:out0", b.key));
    if forced.is_some() {
        rows.push(["on the reference's input".to_string(), get(cx.a, a), in_words(forced)]);
    }
    rows
}

/// Compares two recordings.
pub fn compare(a: &Recording, b: &Recording, options: &Options) -> Result<Report> {
    if let Some(tolerance) = options.tolerance.filter(|t| t.is_nan() || *t < 0.0) {
        let why = format!("the tolerance is a relative difference, zero or more, got {tolerance}");
        return Err(Error::new(Kind::InvalidArgument, why).in_op("align"));
    }
    let pairing = pair(&a.structure, &b.structure, &options.corrections)?;
    let named = |r: &Recording| format!("{} {}", r.structure.side, r.structure.version).trim().to_string();
    let or = |name: String, word: &str| if name.is_empty() { word.to_string() } else { name };
    let mut report = Report {
        reference: or(named(a), "reference"),
        candidate: or(named(b), "candidate"),
        pairs: if pairing.layers.is_empty() { String::new() } else { pairing.table(&a.structure, &b.structure) },
        ..Report::default()
    };
    for (side, r) in [("reference", a), ("candidate", b)] {
        report.notes.extend(r.structure.notes.iter().map(|n| format!("{side}: {n}")));
    }
    report.notes.extend(pairing.doubts.iter().cloned());
    let kind = |r: &Recording| r.structure.calls.iter().map(|c| kinds::kind(&c.op)).collect();
    let mut context = Context {
        a,
        b,
        pairing,
        asked: options.tolerance,
        random: false,
        drift: 0.0,
        kinds_a: kind(a),
        kinds_b: kind(b),
    };
    context.random = context.pairing.calls.iter().any(|p| forward::draws(&context, p));
    if context.random {
        report.notes.push(
            "dropout is at work on both sides and draws its own numbers, so each call is judged on the reference's input alone; \
             set both models to evaluation mode, or p to 0, to compare them as they run"
                .into(),
        );
    }

    context.drift = if context.trained() { weights::drift(&context) } else { 0.0 };
    let strangers = weights::strangers(&context);
    if options.wants(Check::Data) {
        data::check(&context, &mut report);
    }
    let models = options.wants(Check::Forward) || options.wants(Check::Backward) || options.wants(Check::Loss);
    let parted = weights::parted(&context, &mut report);
    if models && !strangers && !parted {
        forward::check(&context, options, &mut report);
        backward::check(&context, options, &mut report);
        weights::check(&context, &mut report);
        if options.wants(Check::Forward) {
            outputs::check(&context, &mut report);
        }
    }
    ends::stopped(&context, &mut report);
    if options.wants(Check::Metric) {
        data::metrics(&context, &mut report);
    }
    if options.wants(Check::Training) {
        rhythm::check(&context, &mut report);
    }
    if options.wants(Check::Optimizer) || options.wants(Check::Training) {
        training::rates(&context, &mut report);
    }
    if options.wants(Check::Optimizer) && !strangers && !parted {
        optimizer::check(&context, &mut report);
    }
    if options.wants(Check::Training) {
        training::losses(&context, &mut report, strangers);
    }
    if options.checks.contains(&Check::Initialisation) || (options.wants(Check::Initialisation) && strangers) {
        weights::initialisation(&context, strangers, &mut report);
    }
    data::plain_files(&context, options, &mut report);
    lacking(&context, &mut report);
    finish(&context, &mut report);
    let seen = |check: &Check| {
        report.checks.iter().any(|c| c.check == *check) || report.findings.iter().any(|f| f.check == check.name())
    };
    let unseen: Vec<&str> = options.checks.iter().filter(|check| !seen(check)).map(|check| check.name()).collect();
    let nothing = match unseen.len() {
        0 if !report.checks.is_empty() || !report.findings.is_empty() => return Ok(report),
        n if n < options.checks.len() => {
            report
                .notes
                .push(format!("not compared, for the recordings have nothing in common for it: {}", unseen.join(", ")));
            return Ok(report);
        }
        0 => "that could be compared".to_string(),
        _ => format!("for {}", unseen.join(", ")),
    };
    let hint = "both are recordings of the same kind of run, or files of reprod_log with the same keys";
    Err(Error::new(Kind::NotFound, format!("the recordings have nothing in common {nothing}"))
        .hint(hint)
        .in_op("align"))
}

/// Says what only one side recorded; outputs that are missing altogether are a difference.
fn lacking(context: &Context<'_>, report: &mut Report) {
    let empty = |r: &Recording, section: &str| r.section(section).is_none_or(|t| t.is_empty());
    for section in ["forward", "backward", "loss"] {
        let side = match (empty(context.a, section), empty(context.b, section)) {
            (true, false) => "reference",
            (false, true) => "candidate",
            _ => continue,
        };
        let sentence = format!("nothing of {section} was compared: the {side}'s recording has none of it");
        let stopped = report.findings.iter().any(|f| f.visible);
        if section == "forward" && !stopped && !context.a.structure.calls.is_empty() {
            report.findings.push(Finding {
                check: section.into(),
                place: section.into(),
                reference: section.into(),
                candidate: section.into(),
                sentence,
                cause: "not_recorded".into(),
                certainty: "confirmed".into(),
                visible: true,
                ..Finding::default()
            });
        } else {
            report.notes.push(sentence);
        }
    }
}

/// Orders the findings: what shows in the numbers before what does not, early before late, forward before backward.
fn finish(context: &Context<'_>, report: &mut Report) {
    let stage = |f: &Finding| Check::ALL.iter().position(|c| c.name() == f.check).unwrap_or(9);
    // A parameter that differs by itself is the reason for what its users get.
    report.findings.sort_by_key(|f| (!f.visible, stage(f), f.place != "weights", f.order));
    let mut seen = HashMap::new();
    report.findings.retain(|f| {
        seen.insert((f.reference.clone(), f.candidate.clone(), f.cause.clone(), f.check == "data"), ()).is_none()
    });
    let failed: Vec<&str> = report.findings.iter().filter(|f| f.visible).map(|f| f.check.as_str()).collect();
    for check in &mut report.checks {
        // Gradients may differ by rounding and be right all the same; NaN on one side alone never is.
        let nan = check.rows.iter().any(|r| r.diff.differs && r.diff.remark.contains("NaN"));
        check.ok = check.ok && !nan && !failed.contains(&check.check.name());
    }
    if !report.findings.iter().any(|f| f.visible)
        && let Some((check, row)) = report
            .checks
            .iter()
            .filter(|c| !c.ok)
            .find_map(|c| c.rows.iter().find(|r| r.diff.differs).map(|r| (c.check, r)))
    {
        // Nobody is to blame, and yet the result is another one: at least say where it begins.
        let how =
            if row.diff.remark.is_empty() { format!("by up to {:.3e}", row.diff.max) } else { row.diff.remark.clone() };
        report.findings.insert(
            0,
            Finding {
                check: check.name().into(),
                place: check.name().into(),
                reference: row.key.clone(),
                candidate: row.key.clone(),
                sentence: format!("{} differs ({how}), and no single call explains it", row.key),
                certainty: "unknown".into(),
                visible: true,
                ..Finding::default()
            },
        );
    }
    // What the calls say, and not what follows from an earlier fault, decides.
    report.ok = report.findings.is_empty() && report.checks.iter().all(|c| c.ok);
    let stopped = |r: &Recording| r.structure.notes.iter().any(|n| n.starts_with("the ") && n.contains(" stopped"));
    if stopped(context.a) || stopped(context.b) {
        report.ok = false;
    }
}
