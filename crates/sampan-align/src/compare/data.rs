//! Inputs, batches of a loader, metrics, and files that `reprod_log` wrote without any structure.

use super::{Check, CheckResult, Context, Finding, LogRow, Options, Report};
use crate::diff;
use crate::relations;
use crate::{Recording, Tensors};
use sampan_core::Tensor;

/// The threshold of `reprod_log` for the mean of the differences.
const THRESHOLD: f64 = 1e-6;

/// Why a batch differs, in the words of the catalogue.
fn cause(x: &Tensor, y: &Tensor) -> (String, String) {
    let shapes = || {
        let (a, b) = (x.shape(), y.shape());
        (String::new(), format!("shapes are {a:?} and {b:?}: cropped, resized or batched otherwise"))
    };
    let Some(r) = relations::explain(x, y) else {
        return if x.shape() == y.shape() {
            (String::new(), "the values have nothing simple in common".into())
        } else {
            shapes()
        };
    };
    let word = match r.cause {
        "affine" | "shift" | "channel_affine" => "normalisation_constants",
        "scale" => "value_range",
        "axis_order" => "layout",
        other => other,
    };
    (word.to_string(), r.sentence)
}

fn keys(a: &Tensors, b: &Tensors) -> (Vec<String>, Vec<String>, Vec<String>) {
    let names = |t: &Tensors| t.iter().map(|(k, _)| k.to_string()).collect::<Vec<_>>();
    let (x, y) = (names(a), names(b));
    let both = x.iter().filter(|k| y.contains(k)).cloned().collect();
    (
        both,
        x.iter().filter(|k| !y.contains(k)).cloned().collect(),
        y.iter().filter(|k| !x.contains(k)).cloned().collect(),
    )
}

fn missing(report: &mut Report, section: &str, only: (&[String], &[String])) {
    for (names, side, other) in [(only.0, "reference", "candidate"), (only.1, "candidate", "reference")] {
        if let Some(first) = names.first() {
            let more = if names.len() > 1 { format!(" and {} more", names.len() - 1) } else { String::new() };
            report.notes.push(format!("{section}: {first}{more} of the {side} is not in the {other}"));
        }
    }
}

fn compared(cx: &Context<'_>, report: &mut Report, section: &str, place: &str, check: Check) -> Option<Vec<LogRow>> {
    let (a, b) = (cx.a.section(section)?, cx.b.section(section)?);
    let (both, only_a, only_b) = keys(a, b);
    missing(report, section, (&only_a, &only_b));
    let mut rows = Vec::new();
    for (order, key) in both.iter().enumerate() {
        let (x, y) = (a.get(key)?, b.get(key)?);
        let d = cx.diff(x, y, 0);
        if d.differs && !report.findings.iter().any(|f| f.place == place) {
            let (word, why) = cause(x, y);
            report.findings.push(Finding {
                check: check.name().into(),
                place: place.into(),
                reference: key.clone(),
                candidate: key.clone(),
                certainty: if word.is_empty() { "unknown".into() } else { "confirmed".into() },
                cause: word,
                sentence: format!("{key} differs: {why}"),
                visible: true,
                order,
                ..Finding::default()
            });
        }
        rows.push(LogRow { key: key.clone(), diff: d });
    }
    Some(rows)
}

pub(crate) fn check(cx: &Context<'_>, report: &mut Report) {
    let mut rows = compared(cx, report, "inputs", "data", Check::Data).unwrap_or_default();
    let plain = cx.a.structure.calls.is_empty();
    if !plain || cx.a.section("inputs").is_some() {
        rows.extend(compared(cx, report, "data", "data", Check::Data).unwrap_or_default());
    }
    if !rows.is_empty() {
        report.checks.push(CheckResult { check: Check::Data, ok: rows.iter().all(|r| !r.diff.differs), rows });
    }
}

pub(crate) fn metrics(cx: &Context<'_>, report: &mut Report) {
    if cx.a.structure.calls.is_empty() {
        return;
    }
    let inherited = report.findings.iter().any(|f| f.visible && f.check == "forward");
    let before = report.findings.len();
    let Some(rows) = compared(cx, report, "metric", "metric", Check::Metric) else { return };
    for f in report.findings.iter_mut().skip(before) {
        let one = |r: &Recording| {
            r.tensor("metric", &f.candidate).and_then(crate::recording::numbers).and_then(|v| v.first().copied())
        };
        if let (Some(x), Some(y)) = (one(cx.a), one(cx.b)) {
            let ratio = y / x;
            f.sentence = format!("the metric {} is {x:.6} in the reference and {y:.6} in the candidate", f.candidate);
            if (ratio - 100.0).abs() < 1e-3 || (ratio - 0.01).abs() < 1e-6 {
                f.cause = "metric_scale".into();
                f.certainty = "confirmed".into();
                f.sentence += ": one of them in percent";
            }
        }
    }
    // With another output a metric differs by itself.
    if inherited {
        report.findings.truncate(before);
    }
    report.checks.push(CheckResult { check: Check::Metric, ok: rows.iter().all(|r| !r.diff.differs), rows });
}

/// Files of `reprod_log`: tensors by name, compared by the mean of their differences.
pub(crate) fn plain_files(cx: &Context<'_>, options: &Options, report: &mut Report) {
    if !cx.a.structure.calls.is_empty() && !cx.b.structure.calls.is_empty() {
        return;
    }
    // Rates and losses of two models are compared as what they are.
    let models = !cx.a.structure.layers.is_empty() && !cx.b.structure.layers.is_empty();
    let known = if models { &["inputs", "parameters", "lr", "losses"][..] } else { &["inputs", "parameters"] };
    let sections = |r: &Recording| r.sections.keys().cloned().collect::<Vec<_>>();
    let (mut ours, mut theirs) = (sections(cx.a), sections(cx.b));
    // Two single files are compared whatever they are called.
    let renamed = ours.len() == 1 && theirs.len() == 1 && ours != theirs;
    if !renamed {
        ours.retain(|s| theirs.contains(s) && !known.contains(&s.as_str()));
        theirs = ours.clone();
    }
    for (one, other) in ours.iter().zip(&theirs) {
        let check = check_of(one);
        if !options.wants(check) || (one == "losses" && report.checks.iter().any(|c| c.check == check)) {
            continue;
        }
        let (Some(a), Some(b)) = (cx.a.section(one), cx.b.section(other)) else { continue };
        let (both, only_a, only_b) = keys(a, b);
        missing(report, one, (&only_a, &only_b));
        let mut ok = only_a.is_empty() && only_b.is_empty();
        let mut rows = Vec::new();
        for (order, key) in both.iter().enumerate() {
            let (Some(x), Some(y)) = (a.get(key), b.get(key)) else { continue };
            let mut d = diff::diff(x, y, f64::INFINITY);
            // `reprod_log` transposes a weight whose shape fits only so.
            d.differs = d.mean > options.tolerance.unwrap_or(THRESHOLD) || d.mean.is_nan() || d.remark.contains("NaN");
            if d.differs && ok {
                let (word, why) = cause(x, y);
                report.findings.push(Finding {
                    check: check.name().into(),
                    place: check.name().into(),
                    reference: key.clone(),
                    candidate: key.clone(),
                    certainty: if word.is_empty() { "unknown".into() } else { "likely".into() },
                    cause: word,
                    sentence: format!("{key} is the first tensor of {one} that differs: {why}"),
                    evidence: vec![format!("mean of the differences {:.3e}, greatest {:.3e}", d.mean, d.max)],
                    visible: true,
                    order,
                    ..Finding::default()
                });
            }
            ok &= !d.differs;
            rows.push(LogRow { key: key.clone(), diff: d });
        }
        report.checks.retain(|c| c.check != check || !c.rows.is_empty());
        report.checks.push(CheckResult { check, ok, rows });
    }
}

fn check_of(section: &str) -> Check {
    match section {
        s if s.contains("data") => Check::Data,
        s if s.contains("metric") => Check::Metric,
        "losses" | "backward" | "bp_align" | "gradients" => Check::Backward,
        s if s.contains("loss") => Check::Loss,
        s if s.contains("lr") || s.contains("optim") => Check::Optimizer,
        s if s.contains("train") => Check::Training,
        _ => Check::Forward,
    }
}
