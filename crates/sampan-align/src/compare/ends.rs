//! How a run ends: with a loss, or with an error.

use super::{Context, Finding, Report};
use crate::Recording;
use sampan_core::Tensor;
use std::collections::HashSet;

/// A loss that differs although everything it is made from agrees.
pub(crate) fn final_loss(cx: &Context<'_>, report: &mut Report) {
    let (Some(x), Some(y)) = (cx.a.tensor("loss", "loss"), cx.b.tensor("loss", "loss")) else { return };
    if cx.random || !cx.diff(x, y, 8).differs || report.findings.iter().any(|f| f.visible) {
        return;
    }
    let one = |t: &Tensor| crate::recording::numbers(t).and_then(|v| v.first().copied()).unwrap_or(0.0);
    let ratio = one(y) / one(x);
    let counts: HashSet<usize> =
        cx.b.structure
            .calls
            .iter()
            .flat_map(|c| &c.shapes)
            .flat_map(|s| [s.first().copied().unwrap_or(1), s.iter().product()])
            .collect();
    let count = counts.iter().filter(|n| **n > 1).find(|n| {
        let n = **n as f64;
        (ratio / n - 1.0).abs() < 1e-3 || (ratio * n - 1.0).abs() < 1e-3
    });
    let (cause, why) = match count {
        _ if one(x).is_nan() != one(y).is_nan() => {
            ("not_finite", format!("it is {} in the reference and {} in the candidate", one(x), one(y)))
        }
        Some(n) => (
            "loss_reduction",
            format!(
                "it is {ratio:.6} times the reference's, which is the {n} elements that one side adds up and the other averages"
            ),
        ),
        None => ("", format!("it is {ratio:.6} times the reference's")),
    };
    report.findings.push(Finding {
        check: "loss".into(),
        place: "loss".into(),
        reference: "loss".into(),
        candidate: "loss".into(),
        cause: cause.into(),
        sentence: format!("the loss differs although the outputs agree: {why}"),
        certainty: if cause.is_empty() { "unknown".into() } else { "confirmed".into() },
        visible: true,
        order: usize::MAX,
        ..Finding::default()
    });
}

/// A side whose program ended with an error.
pub(crate) fn stopped(cx: &Context<'_>, report: &mut Report) {
    let note = |r: &Recording| r.structure.notes.iter().find(|n| n.starts_with("the program stopped")).cloned();
    let (side, name, note) = match (note(cx.a), note(cx.b)) {
        (Some(n), _) => (cx.a, "reference", n),
        (None, Some(n)) => (cx.b, "candidate", n),
        _ => return,
    };
    let last = side.structure.calls.iter().rev().find(|c| !c.container).map_or(String::new(), |c| c.key.clone());
    let pair = cx.pairing.calls.iter().find(|p| cx.call_a(p).key == last || cx.call_b(p).key == last);
    report.findings.push(Finding {
        check: "forward".into(),
        place: "layer".into(),
        reference: pair.map_or(String::new(), |p| cx.call_a(p).key.clone()),
        candidate: pair.map_or(last, |p| cx.call_b(p).key.clone()),
        cause: "error".into(),
        sentence: format!("the {name} does not get to the end: {note}"),
        certainty: "confirmed".into(),
        visible: true,
        order: usize::MAX,
        ..Finding::default()
    });
}
