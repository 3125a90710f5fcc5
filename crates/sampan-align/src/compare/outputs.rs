//! What the models gave that is no tensor: numbers, texts, nothing at all.

use super::{Context, Finding, Report};
use crate::recording::numbers;
use crate::{Output, Recording};
use serde_json::Value;

fn shown(place: &str) -> String {
    if place.is_empty() { "the output".into() } else { format!("the output at {place}") }
}

/// Is it a tensor of the model, which is compared as such? An array that the model made of one is not.
fn is_tensor(part: &Output) -> bool {
    part.key.as_ref().is_some_and(|k| !k.starts_with("(output)"))
}

/// A number, also that of a tensor of one element.
fn number(side: &Recording, part: &Output) -> Option<f64> {
    let tensor = part.key.as_ref().and_then(|k| side.tensor("forward", k)).filter(|t| t.numel() == 1);
    tensor
        .and_then(|t| numbers(t)?.first().copied())
        .or(part.value.as_f64())
        .or_else(|| part.value.as_str()?.parse().ok())
}

fn in_words(part: &Output) -> String {
    match (&part.key, &part.value) {
        (Some(_), _) => "a tensor".into(),
        (_, Value::Null) if part.known => "None".into(),
        (_, Value::Null) => format!("a {}", part.class),
        (_, value) => value.to_string(),
    }
}

/// Do they differ, as far as they can be compared?
fn differ(cx: &Context<'_>, x: &Output, y: &Output) -> bool {
    if is_tensor(x) && is_tensor(y) {
        return false;
    }
    let tensor = |side: &Recording, part: &Output| part.key.as_ref().and_then(|k| side.tensor("forward", k).cloned());
    if let (Some(p), Some(q)) = (tensor(cx.a, x), tensor(cx.b, y)) {
        return cx.diff(&p, &q, 8).differs;
    }
    if !(x.known || x.key.is_some()) || !(y.known || y.key.is_some()) {
        return false;
    }
    match (number(cx.a, x), number(cx.b, y)) {
        (Some(p), Some(q)) if !x.value.is_boolean() && !y.value.is_boolean() => {
            let limit = cx.asked.unwrap_or(1e-4) + 30.0 * cx.drift;
            !((p - q).abs() <= limit * p.abs().max(q.abs()) || p == q || p.is_nan() && q.is_nan())
        }
        _ => x.key.is_some() != y.key.is_some() || x.value != y.value,
    }
}

/// Compares the parts that are no tensors, and names those that are not compared.
pub(crate) fn check(cx: &Context<'_>, report: &mut Report) {
    let (ours, theirs) = (&cx.a.structure.output, &cx.b.structure.output);
    if ours.is_empty() || theirs.is_empty() {
        return;
    }
    let tensors = |parts: &[Output]| parts.iter().filter(|p| is_tensor(p)).count();
    let (p, q) = (tensors(ours), tensors(theirs));
    if p != q {
        report.notes.push(format!(
            "the reference gives {p} tensors and the candidate {q}; they are compared in order, and those too many are not"
        ));
    }
    // Tensors are paired in order, whatever holds them; the others by their place.
    for x in ours.iter().filter(|x| !is_tensor(x)) {
        let Some(y) = theirs.iter().find(|y| y.place == x.place) else {
            report.notes.push(format!(
                "{} is {} in the reference alone; it is not compared",
                shown(&x.place),
                in_words(x)
            ));
            continue;
        };
        if !x.known && x.key.is_none() {
            report.notes.push(format!("{} is a {}, which is not compared", shown(&x.place), x.class));
        }
        if !cx.random && differ(cx, x, y) && !report.findings.iter().any(|f| f.visible) {
            report.findings.push(finding(x, y));
        }
    }
    for y in theirs.iter().filter(|y| !is_tensor(y)) {
        match ours.iter().find(|x| x.place == y.place) {
            None => report.notes.push(format!(
                "{} is {} in the candidate alone; it is not compared",
                shown(&y.place),
                in_words(y)
            )),
            Some(x)
                if x.key.is_some() && !cx.random && differ(cx, x, y) && !report.findings.iter().any(|f| f.visible) =>
            {
                report.findings.push(finding(x, y));
            }
            _ => {}
        }
    }
}

fn finding(x: &Output, y: &Output) -> Finding {
    Finding {
        check: "forward".into(),
        place: "output".into(),
        reference: format!("(output){}", x.place),
        candidate: format!("(output){}", y.place),
        cause: "output_value".into(),
        sentence: match (&x.key, &y.key) {
            (Some(_), Some(_)) => format!("{} is an array that differs", shown(&x.place)),
            _ => {
                format!("{} is {} in the reference and {} in the candidate", shown(&x.place), in_words(x), in_words(y))
            }
        },
        certainty: "confirmed".into(),
        visible: true,
        order: usize::MAX,
        ..Finding::default()
    }
}
