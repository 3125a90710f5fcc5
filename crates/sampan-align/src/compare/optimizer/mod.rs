//! One step of the optimizers: what they are set to, and what they do to the parameters.

mod settings;
mod statistics;
mod updates;

use super::{Check, CheckResult, Context, Finding, LogRow, Report};
use crate::diff::Diff;
use updates::Step;

pub(super) fn is_buffer(cx: &Context<'_>, name: &str) -> bool {
    cx.b.structure.parameters().any(|p| p.name == name && p.buffer)
}

pub(crate) fn check(cx: &Context<'_>, report: &mut Report) {
    let mut found: Vec<Finding> = Vec::new();
    let make = |cause: &str, sentence: String, certainty: &str| Finding {
        check: "optimizer".into(),
        place: "optimizer".into(),
        reference: "optimizer".into(),
        candidate: "optimizer".into(),
        cause: cause.into(),
        sentence,
        certainty: certainty.into(),
        visible: true,
        ..Finding::default()
    };
    if let (Some(a), Some(b)) = (&cx.a.structure.optimizer, &cx.b.structure.optimizer) {
        settings::compare(cx, a, b, &make, &mut found);
    }
    let all = updates::of(cx);
    if all.is_empty() && found.is_empty() {
        return;
    }
    if !cx.random {
        statistics::compare(cx, &all, report);
    }
    let class = cx.b.structure.optimizer.as_ref().map_or(String::new(), |o| o.class.to_lowercase());
    let adaptive = class.contains("ada") || class.contains("rms") || class.contains("lamb");
    let trained: Vec<&Step> = all.iter().filter(|s| !is_buffer(cx, &s.pair.candidate)).collect();
    let differing: Vec<&&Step> = trained.iter().filter(|s| s.differs(adaptive)).collect();
    let inherited = cx.random
        || report.checks.iter().any(|c| matches!(c.check, Check::Backward | Check::Forward) && !c.ok)
        || report.findings.iter().any(|f| f.visible && matches!(f.check.as_str(), "forward" | "backward" | "loss"));
    // Another learning rate is another step, and was found already.
    let rate = format!("lr_{}", cx.b.structure.step);
    let inherited = inherited
        || report.findings.iter().any(|f| f.candidate == rate)
        || report.notes.iter().any(|n| n == super::backward::FLIPS);
    if let Some(f) = found.iter_mut().find(|f| f.cause == "weight_decay")
        && !differing.is_empty()
        && differing.iter().all(|s| s.flat)
    {
        f.cause = "weight_decay_on_bias_norm".into();
    }
    if !differing.is_empty() && !inherited && found.is_empty() {
        found.push(updates::explain(cx, &trained, &differing, &make));
    } else if differing.is_empty() && !trained.is_empty() && !cx.random {
        // Set otherwise, and without effect on this step.
        found.iter_mut().for_each(|f| f.visible = false);
    }
    let rows: Vec<LogRow> = trained
        .iter()
        .map(|s| {
            let differs = s.differs(adaptive);
            let diff = Diff { mean: s.mean, max: s.max, relative: s.relative, differs, ..Diff::default() };
            LogRow { key: s.pair.reference.clone(), diff }
        })
        .collect();
    report.findings.append(&mut found);
    if !rows.is_empty() && !cx.random {
        let ok = rows.iter().all(|r| !r.diff.differs) || report.notes.iter().any(|n| n == super::backward::FLIPS);
        report.checks.push(CheckResult { check: Check::Optimizer, ok, rows });
    }
}
