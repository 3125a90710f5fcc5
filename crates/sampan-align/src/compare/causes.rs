//! The catalogue: why two calls that are the same thing give different results.

use super::{Context, Finding, shown};
use crate::evaluate::{self, Parameters};
use crate::relations;
use crate::settings::{self, Difference};
use crate::{Call, CallPair, kinds};
use sampan_core::Tensor;

/// A cause with what speaks for it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cause {
    pub word: String,
    pub sentence: String,
    pub evidence: Vec<String>,
    pub certainty: String,
}

impl Cause {
    pub fn new(word: &str, sentence: impl Into<String>, confirmed: bool) -> Cause {
        let certainty = if confirmed { "confirmed" } else { "likely" };
        Cause { word: word.into(), sentence: sentence.into(), evidence: Vec::new(), certainty: certainty.into() }
    }
    fn unknown() -> Cause {
        let sentence =
            "settings and weights are the same as far as they are recorded; the cause is not in the catalogue";
        Cause { sentence: sentence.into(), certainty: "unknown".into(), ..Cause::default() }
    }
    pub fn because(mut self, evidence: impl Into<String>) -> Cause {
        self.evidence.push(evidence.into());
        self
    }
}

/// The candidate's parameters of a call by role, in Paddle's form.
pub(crate) fn parameters(cx: &Context<'_>, p: &CallPair) -> Parameters {
    of_side(cx, p, false)
}

fn of_side(cx: &Context<'_>, p: &CallPair, reference: bool) -> Parameters {
    let (side, call) = if reference { (cx.a, cx.call_a(p)) } else { (cx.b, cx.call_b(p)) };
    let mut found = Parameters::new();
    let names: Vec<String> = match side.structure.layer(&call.layer) {
        Some(l) if !call.function => l.parameters.iter().map(|q| q.name.clone()).collect(),
        _ => call.uses.clone(),
    };
    for (i, name) in names.iter().enumerate() {
        let role = match name.rsplit('.').next().unwrap_or("") {
            "_mean" => "running_mean",
            "_variance" => "running_var",
            last if call.function && i == 0 && last != "bias" => "weight",
            last => last,
        };
        let Some(t) = side.tensor("parameters", name) else { continue };
        let flip = side.structure.side == "torch" && kinds::kind(&call.op) == "linear" && role == "weight";
        found.insert(role.to_string(), if flip { t.t() } else { t.clone() });
    }
    found
}

fn json(v: &serde_json::Value) -> String {
    match v.as_f64() {
        Some(x) if x == x.trunc() && x.abs() < 1e6 => format!("{}", x as i64),
        _ => v.to_string(),
    }
}

fn setting(d: &Difference) -> String {
    format!("{} is {} in the reference and {} in the candidate", d.key, json(&d.reference), json(&d.candidate))
}

fn differences(cx: &Context<'_>, p: &CallPair) -> Vec<Difference> {
    let (a, b) = (cx.call_a(p), cx.call_b(p));
    let rank = a.shapes.first().map_or(0, Vec::len);
    settings::differences((cx.kind_a(p), cx.kind_b(p)), cx.sides(), (&a.config, &b.config), rank)
}

/// Why a call gives another result on the same input.
pub(crate) fn of_call(cx: &Context<'_>, p: &CallPair, output: Option<&Tensor>) -> Cause {
    let (a, b) = (cx.call_a(p), cx.call_b(p));
    let right = a.outputs.first().and_then(|k| cx.a.tensor("forward", k));
    if cx.kind_a(p) != cx.kind_b(p) {
        return other_kind(cx.kind_a(p), cx.kind_b(p), a, b);
    }
    let found = differences(cx, p);
    // The mode changes what a layer does more than any setting.
    if let Some(d) = found.iter().find(|d| d.key == "training") {
        return Cause::new(
            "train_eval_mode",
            format!("it is in {} mode, the reference's in {} mode", mode(&d.candidate), mode(&d.reference)),
            true,
        );
    }
    let training = |c: &Call| c.config.get("training").and_then(|t| t.as_bool());
    if let (Some(x), Some(y)) = (training(a), training(b))
        && x != y
        && !a.function
        && !b.function
        && matches!(cx.kind_b(p), "mha" | "lstm" | "gru" | "rnn")
    {
        let word = |t: bool| if t { "training" } else { "evaluation" };
        return Cause::new(
            "train_eval_mode",
            format!("it is in {} mode, the reference's in {} mode", word(y), word(x)),
            true,
        );
    }
    if let Some(cause) = super::weights::cause(cx, p) {
        return cause;
    }
    if matches!(cx.kind_b(p), "mha" | "attention") && distinct(a) != distinct(b) {
        let sentence = format!(
            "it gets {} tensors and the reference's {}: a mask is missing or too much",
            distinct(b),
            distinct(a)
        );
        return Cause::new("attention_mask", sentence, false);
    }
    if let Some(cause) = by_settings(cx, p, &found, right, output) {
        return cause;
    }
    if matches!(cx.kind_b(p), "gru" | "gru_cell") {
        return Cause::new(
            "gru_reset_after",
            "weights and settings agree, so the gates are combined otherwise: the reset gate is applied before the product \
             with the hidden state on one side and after it on the other",
            false,
        );
    }
    if cx.kind_b(p) == "add"
        && let Some(cause) = other_summand(cx, a, right, output)
    {
        return cause;
    }
    if let (Some(x), Some(y)) = (right, output)
        && let Some(r) = relations::explain(x, y)
    {
        return Cause::new(word(r.cause, cx.kind_b(p)), r.sentence, true);
    }
    if let Some(y) = output
        && y.dtype() != right.map_or(y.dtype(), |x| x.dtype())
    {
        let sentence =
            format!("it computes in {}, the reference in {}", y.dtype(), right.map_or(y.dtype(), |x| x.dtype()));
        return Cause::new("half_precision", sentence, false);
    }
    Cause::unknown()
}

fn distinct(c: &Call) -> usize {
    c.inputs.iter().collect::<std::collections::HashSet<_>>().len()
}

/// What is added differs: a position one off, a mask with another sign.
fn other_summand(cx: &Context<'_>, a: &Call, right: Option<&Tensor>, output: Option<&Tensor>) -> Option<Cause> {
    let input = a.inputs.first().and_then(|k| cx.a.tensor("forward", k))?;
    let (x, y) = (right?.try_subtract(input).ok()?, output?.try_subtract(input).ok()?);
    let r = relations::explain(&x, &y)?;
    Some(Cause::new(r.cause, format!("what is added differs: {}", r.sentence), true))
}

fn mode(v: &serde_json::Value) -> &'static str {
    if v.as_bool() == Some(true) { "training" } else { "evaluation" }
}

/// The word of the catalogue for a relation that was seen at a call of a kind.
fn word(relation: &'static str, kind: &str) -> &'static str {
    match (relation, kind) {
        ("scale", k) if kinds::is_loss(k) => "loss_reduction",
        ("scale", "attention" | "mha" | "matmul") => "attention_scale",
        ("scale", "dropout") => "dropout_mode",
        (r, _) => r,
    }
}

fn other_kind(ka: &str, kb: &str, a: &Call, b: &Call) -> Cause {
    let cause = match (ka, kb) {
        _ if kinds::is_activation(ka) && kinds::is_activation(kb) => "activation_type",
        _ if ka.contains("pool") && kb.contains("pool") => "pool_type",
        _ if ka.contains("norm") && kb.contains("norm") => "norm_type",
        _ if kinds::is_loss(ka) && kinds::is_loss(kb) => "loss_type",
        ("lstm" | "gru" | "rnn", "lstm" | "gru" | "rnn") => "rnn_type",
        ("add" | "sub" | "mul" | "div", "add" | "sub" | "mul" | "div") => "arithmetic",
        ("mean" | "sum", "mean" | "sum") if b.layer == "(program)" => "loss_reduction",
        ("mean" | "sum" | "max" | "min", "mean" | "sum" | "max" | "min") => "reduction_type",
        _ => "layer_type",
    };
    Cause::new(
        cause,
        format!("it is {}, and the reference has {}", b.op.trim_matches('_'), a.op.trim_matches('_')),
        true,
    )
}

/// Settings that differ, and whether they explain the numbers.
fn by_settings(
    cx: &Context<'_>,
    p: &CallPair,
    found: &[Difference],
    right: Option<&Tensor>,
    output: Option<&Tensor>,
) -> Option<Cause> {
    let (a, b) = (cx.call_a(p), cx.call_b(p));
    let silent = |d: &&Difference| matches!(d.cause, "bn_momentum" | "dropout_p");
    let telling: Vec<&Difference> = found.iter().filter(|d| !silent(d)).collect();
    let chosen = telling.first().copied().or(found.first())?;
    let mut cause = Cause::new(chosen.cause, setting(chosen), false);
    for other in telling.iter().skip(1) {
        cause = cause.because(setting(other));
    }
    // The candidate's weights under the reference's settings: if that gives the reference's output, the settings are all.
    let inputs: Vec<Tensor> = a.inputs.iter().filter_map(|k| cx.a.tensor("forward", k).cloned()).collect();
    let weights = of_side(cx, p, false);
    let with = |side: &str, call: &Call| evaluate::evaluate(side, cx.kind_b(p), &call.config, &weights, &inputs);
    if let (Some(x), Some(y)) = (right, with(cx.sides().0, a))
        && !cx.diff(x, &y, 8).differs
    {
        let same = output.zip(with(cx.sides().1, b)).is_some_and(|(o, z)| !cx.diff(o, &z, 8).differs);
        let more = if same { ", and with its own it gives the candidate's" } else { "" };
        cause = cause
            .because(format!("computed again with the reference's settings it gives the reference's output{more}"));
        cause.certainty = "confirmed".into();
    }
    Some(cause)
}

/// Settings that differ without showing in the numbers of this run.
pub(crate) fn silent(cx: &Context<'_>, p: &CallPair, order: usize) -> Vec<Finding> {
    let (a, b) = (cx.call_a(p), cx.call_b(p));
    let related = |d: &Difference| {
        let harmless =
            ["flatten_order", "reduction_axis", "concat_axis", "constant", "rnn_batch_first", "interpolation_size"];
        // Zero probability, or no layer between which dropout would act.
        let idle = d.cause == "dropout_p" && matches!(cx.kind_b(p), "mha" | "lstm" | "gru" | "rnn");
        // A mask that is given and one that is built in block the same, for the outputs are the same.
        let mask = d.cause == "attention_mask" && distinct(a) != distinct(b);
        !harmless.contains(&d.cause) && !mask && (!idle || d.candidate != d.reference)
    };
    differences(cx, p)
        .into_iter()
        .filter(related)
        .map(|d| Finding {
            check: if b.layer == "(program)" { "loss".into() } else { "forward".into() },
            place: if b.function { "function".into() } else { "layer".into() },
            reference: a.key.clone(),
            candidate: b.key.clone(),
            cause: d.cause.into(),
            sentence: format!(
                "{} is set otherwise: {}; it does not show in the numbers of this run",
                shown(b),
                setting(&d)
            ),
            evidence: Vec::new(),
            certainty: "likely".into(),
            visible: false,
            order,
            ..Finding::default()
        })
        .chain(other_activation(cx, p, order))
        .collect()
}

/// Another activation whose values happen to be the same here: relu6 of small numbers.
fn other_activation(cx: &Context<'_>, p: &CallPair, order: usize) -> Option<Finding> {
    let (ka, kb) = (cx.kind_a(p), cx.kind_b(p));
    // These two are how others are written.
    let plain = |k: &str| kinds::is_activation(k) && !matches!(k, "clamp" | "hardtanh");
    let (a, b) = (cx.call_a(p), cx.call_b(p));
    (ka != kb && plain(ka) && plain(kb)).then(|| Finding {
        check: "forward".into(),
        place: if b.function { "function".into() } else { "layer".into() },
        reference: a.key.clone(),
        candidate: b.key.clone(),
        cause: "activation_type".into(),
        sentence: format!(
            "{} stands where the reference has {}; it does not show in the numbers of this run",
            shown(b),
            shown(a)
        ),
        certainty: "confirmed".into(),
        order,
        ..Finding::default()
    })
}
