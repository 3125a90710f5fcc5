//! The order of the training: gradients that are not cleared, steps that are left out, weights that are written to.

use super::{Context, Finding, Report};
use crate::{Step, Structure};

/// Gradients of one size. Two losses with a way back each may well be one sum with one.
fn same_gradient(x: &Step, y: &Step) -> bool {
    match (x.gradient, y.gradient) {
        (Some(p), Some(q)) => (p - q).abs() <= 2e-3 * p.max(q),
        _ => x.gradient.is_none() && y.gradient.is_none(),
    }
}

/// What differs in one step, if it does: cause, sentence.
fn difference(n: usize, x: &Step, y: &Step) -> Option<(&'static str, String)> {
    let onto = |s: &Step| s.backwards.first().copied().unwrap_or(false);
    let sides = |of_x: bool| if of_x { ("reference", "candidate") } else { ("candidate", "reference") };
    if onto(x) != onto(y) && !same_gradient(x, y) {
        let (one, other) = sides(onto(x));
        return Some((
            "gradients_not_cleared",
            format!(
                "the {one} does not clear its gradients before step {n}, so that those of the step before are added to; the \
                 {other} does"
            ),
        ));
    }
    let (p, q) = (x.backwards.len(), y.backwards.len());
    if p != q && p > 0 && q > 0 {
        let (one, other) = sides(p > q);
        let longer = if p > q { x } else { y };
        // Gradients that are cleared between two ways back were made for a step that did not come.
        if longer.backwards.iter().skip(1).any(|onto| !onto) {
            let (cause, verb) =
                if one == "candidate" { ("step_skipped", "leaves out") } else { ("step_extra", "makes") };
            let sentence = match cause {
                "step_skipped" => format!(
                    "the candidate {verb} the optimizer's step {n}: gradients are made and cleared, and no step is taken with them"
                ),
                _ => format!("the candidate {verb} a step {n} that the reference leaves out"),
            };
            return Some((cause, sentence));
        }
        if !same_gradient(x, y) {
            return Some((
                "gradients_accumulated",
                format!(
                    "the {one} adds up the gradients of {} ways back before step {n}, the {other} those of {}",
                    p.max(q),
                    p.min(q)
                ),
            ));
        }
    }
    if x.stepped != y.stepped && p > 0 && q > 0 {
        return Some(match x.stepped {
            true => (
                "step_skipped",
                format!("the candidate leaves out the optimizer's step {n}, and the reference takes it"),
            ),
            false => ("step_extra", format!("the candidate takes step {n}, and the reference does not")),
        });
    }
    if x.written.is_empty() != y.written.is_empty() {
        let (one, _) = sides(!x.written.is_empty());
        let name = x.written.first().or(y.written.first()).cloned().unwrap_or_default();
        return Some((
            "weights_written",
            format!(
                "something other than the optimizer writes to {name} of the {one} between step {} and step {n}",
                n.max(1) - 1
            ),
        ));
    }
    None
}

/// Names the first step whose order is another one.
pub(crate) fn check(cx: &Context<'_>, report: &mut Report) {
    let steps = |s: &Structure| s.steps.clone();
    let (a, b) = (steps(&cx.a.structure), steps(&cx.b.structure));
    let found = a.iter().zip(&b).enumerate().find_map(|(n, (x, y))| Some((n, difference(n, x, y)?)));
    let Some((n, (cause, sentence))) = found else { return };
    report.findings.push(Finding {
        check: "training".into(),
        place: "training".into(),
        reference: format!("step {n}"),
        candidate: format!("step {n}"),
        cause: cause.into(),
        sentence,
        certainty: "confirmed".into(),
        visible: true,
        ..Finding::default()
    });
}
