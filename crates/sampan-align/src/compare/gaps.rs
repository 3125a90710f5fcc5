//! The catalogue of what may be wrong between two layers: calls that are missing, added, moved, or fed otherwise.

use super::causes::Cause;
use super::graph::is_glue;
use super::{Context, shown};
use crate::relations;
use crate::{Call, kinds};
use sampan_core::Tensor;

/// Calls that compute something and that only one of the sides makes.
pub(crate) fn unmatched<'c>(calls_a: &[&'c Call], calls_b: &[&'c Call]) -> [Vec<&'c Call>; 2] {
    // How a mask is made matters only where it is used all the same.
    let found = without_partner(calls_a, calls_b, |c| !c.constant);
    if found.iter().all(Vec::is_empty) { without_partner(calls_a, calls_b, |_| true) } else { found }
}

fn without_partner<'c>(
    calls_a: &[&'c Call],
    calls_b: &[&'c Call],
    counts: impl Fn(&Call) -> bool,
) -> [Vec<&'c Call>; 2] {
    let solid = |calls: &[&'c Call]| {
        calls.iter().copied().filter(|c| counts(c) && !is_glue(&kinds::kind(&c.op))).collect::<Vec<_>>()
    };
    let (mut only_a, mut only_b) = (solid(calls_a), solid(calls_b));
    // What both call, paired or not, is not what is missing.
    only_a.retain(|a| match only_b.iter().position(|b| kinds::kind(&b.op) == kinds::kind(&a.op)) {
        Some(i) => {
            only_b.remove(i);
            false
        }
        None => true,
    });
    [only_a, only_b]
}

/// Why the input of a call differs although the layers before it agree.
pub(crate) fn of_gap(
    cx: &Context<'_>,
    calls_a: &[&Call],
    calls_b: &[&Call],
    at: (&Call, &Call),
    input: usize,
    x: &Tensor,
    y: &Tensor,
) -> Cause {
    let named = |calls: Vec<&Call>| calls.into_iter().map(|c| (kinds::kind(&c.op), shown(c))).collect::<Vec<_>>();
    let [only_a, only_b] = unmatched(calls_a, calls_b).map(named);
    let relation = relations::explain(x, y);
    let evidence = relation.as_ref().map(|r| r.sentence.clone());
    let moved = moved_around(cx, at.1);
    let kind = kinds::kind(&at.1.op);
    let shifted = relation.as_ref().is_some_and(|r| matches!(r.cause, "shift" | "off_by_one")) && kind == "embedding";
    let cause = if shifted {
        Cause::new("off_by_one", format!("its indices differ: {}", evidence.clone().unwrap_or_default()), true)
    } else if matches!(kind.as_str(), "mha" | "attention") && input > 0 && x.numel() != y.numel() + 1 && is_mask(x) {
        Cause::new("attention_mask", "its mask is another one", relation.is_some())
    } else if let Some(sentence) = moved {
        Cause::new("layer_order", sentence, true)
    } else if let Some(r) = relation.as_ref().filter(|r| r.cause.starts_with("activation")) {
        // What the numbers say weighs more than which calls there are.
        Cause::new(r.cause, r.sentence.clone(), true)
    } else if let Some((_, name)) = only_b.iter().find(|(k, _)| matches!(k.as_str(), "tril" | "triu")) {
        Cause::new(
            "attention_mask",
            format!("the mask is made otherwise: {name} has no counterpart in the reference"),
            false,
        )
    } else if let Some((kind, name)) = only_a.first() {
        let (word, what) = missing(kind, relation.as_ref().map(|r| r.cause));
        Cause::new(word, format!("{what}: {name} of the reference has no counterpart"), relation.is_some())
    } else if let Some((kind, name)) = only_b.first() {
        let (word, what) = extra(kind);
        Cause::new(word, format!("{what}: {name} has no counterpart in the reference"), relation.is_some())
    } else if let Some(r) = &relation {
        let word = match r.cause {
            "element_order" | "axis_order" if calls_b.iter().any(|c| kinds::kind(&c.op) == "flatten") => {
                "flatten_order"
            }
            "element_order" | "axis_order" | "sample_order" | "reversed" => "axis_order",
            other => other,
        };
        Cause::new(word, r.sentence.clone(), true)
    } else if let Some(cause) = other_input(cx, at.0, y) {
        cause
    } else if let Some(d) = glue_arguments(calls_a, calls_b) {
        d
    } else {
        Cause { sentence: "the cause is not in the catalogue".into(), certainty: "unknown".into(), ..Cause::default() }
    };
    let cause = before_softmax(cause, at.1);
    match evidence {
        Some(e) if !cause.sentence.contains(&e) => cause.because(e),
        _ => cause,
    }
}

/// Two kinds of values at most, as masks have.
fn is_mask(t: &Tensor) -> bool {
    let v = crate::recording::numbers(t).unwrap_or_default();
    let low = v.iter().copied().fold(f64::INFINITY, f64::min);
    let high = v.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    v.iter().all(|x| *x == low || *x == high)
}

/// What is wrong just before a softmax is a matter of attention.
fn before_softmax(mut cause: Cause, at: &Call) -> Cause {
    if kinds::kind(&at.op) == "softmax" {
        cause.word = match cause.word.as_str() {
            "scale" => "attention_scale".into(),
            "mask_missing" | "mask_extra" | "residual_missing" | "residual_extra" | "sign" => "attention_mask".into(),
            _ => cause.word,
        };
    }
    cause
}

fn missing(kind: &str, relation: Option<&str>) -> (&'static str, &'static str) {
    match kind {
        k if kinds::is_activation(k) => ("activation_missing", "an activation is missing"),
        "add" | "sub" if relation == Some("shift") => ("constant", "a constant is not added"),
        "add" => ("residual_missing", "a sum is missing, as of a residual connection"),
        "mul" | "div" | "pow" => ("scale", "a factor is missing"),
        "masked_fill" | "where" => ("mask_missing", "a mask is missing"),
        "softmax" | "log_softmax" => ("softmax_missing", "a softmax is missing"),
        k if k.contains("pool") => ("layer_missing", "a pooling layer is missing"),
        k if k.contains("norm") => ("norm_missing", "a normalisation is missing"),
        k if k.starts_with("drop") => ("layer_missing", "a dropout is missing"),
        _ => ("layer_missing", "a layer or call is missing"),
    }
}

fn extra(kind: &str) -> (&'static str, &'static str) {
    match kind {
        k if kinds::is_activation(k) => ("activation_extra", "there is one activation too many"),
        "add" => ("residual_extra", "there is one sum too many"),
        "mul" | "div" | "pow" => ("scale", "there is one factor too many"),
        "masked_fill" | "where" => ("mask_extra", "there is one mask too many"),
        k if k.contains("norm") => ("norm_extra", "there is one normalisation too many"),
        _ => ("layer_extra", "there is one layer or call too many"),
    }
}

/// Is the call, or one that gives it its input, paired out of order?
fn moved_around(cx: &Context<'_>, at: &Call) -> Option<String> {
    let index = cx.b.structure.calls.iter().position(|c| std::ptr::eq(c, at))?;
    let near = cx.pairing.calls.iter().filter(|p| p.moved);
    let close = near.filter(|p| p.candidate.abs_diff(index) <= 3).min_by_key(|p| p.candidate.abs_diff(index))?;
    Some(format!(
        "{} runs at another place in the order than in the reference",
        shown(&cx.b.structure.calls[close.candidate])
    ))
}

/// The output of another layer than in the reference goes in.
fn other_input(cx: &Context<'_>, at: &Call, y: &Tensor) -> Option<Cause> {
    let calls = cx.a.structure.calls.iter().filter(|c| !c.container && !std::ptr::eq(*c, at));
    let same =
        calls.filter(|c| !c.inputs.is_empty() && !is_glue(&kinds::kind(&c.op)) && c.op != "output").find(|c| {
            let made = c.outputs.first().and_then(|k| cx.a.tensor("forward", k));
            made.is_some_and(|t| t.shape() == y.shape() && t.numel() > 1 && !cx.diff(t, y, 2).differs)
        })?;
    Some(Cause::new("other_input", format!("it gets the output of what is {} in the reference", shown(same)), true))
}

/// Calls that move values with other arguments.
fn glue_arguments(calls_a: &[&Call], calls_b: &[&Call]) -> Option<Cause> {
    for (a, b) in calls_a.iter().zip(calls_b) {
        if kinds::kind(&a.op) != kinds::kind(&b.op) {
            let sentence = format!("{} stands where the reference has {}", shown(b), shown(a));
            return Some(Cause::new("axis_order", sentence, false));
        }
    }
    let takes =
        |c: &&&Call| matches!(kinds::kind(&c.op).as_str(), "getitem" | "split" | "roll" | "gather" | "index_select");
    if let Some(b) = calls_b.iter().find(takes)
        && calls_a.iter().any(|a| takes(&a))
    {
        return Some(Cause::new("index", format!("{} takes another part than in the reference", shown(b)), false));
    }
    None
}
