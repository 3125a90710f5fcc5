//! What a step does to the parameters, and what that says about the optimizer.

use crate::ParameterPair;
use crate::compare::{Context, Finding};
use crate::recording::numbers;
use serde_json::Value;

/// What one step did to a parameter on both sides, in numbers: the tensors of all parameters at once would be too much.
pub(super) struct Step {
    pub pair: ParameterPair,
    /// A bias, or a weight of a normalisation?
    pub flat: bool,
    /// Norms of the reference's update and of the candidate's.
    pub ours: f64,
    theirs: f64,
    /// The factor by which the candidate's update is the reference's, if it is.
    pub ratio: Option<f64>,
    /// The share of the parameter itself in the residual, if that is all there is.
    pub decay: Option<f64>,
    /// The residual: its norm, its greatest value and its mean, and the greatest of the reference's update.
    residual: f64,
    pub max: f64,
    pub mean: f64,
    pub relative: f64,
}

fn norm(v: &[f64]) -> f64 {
    dot(v, v).sqrt()
}

fn dot(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(a, b)| a * b).sum()
}

/// What was added to `before`.
fn moved(mut after: Vec<f64>, before: &[f64]) -> Option<Vec<f64>> {
    after.iter_mut().zip(before).for_each(|(a, b)| *a -= b);
    (after.len() == before.len()).then_some(after)
}

/// The norm of `x - k y`.
fn rest(x: &[f64], k: f64, y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(a, b)| (a - k * b).powi(2)).sum::<f64>().sqrt()
}

impl Step {
    /// `before`: the parameter; `ours` and `theirs`: the updates, in the candidate's form.
    fn new(pair: &ParameterPair, flat: bool, before: &[f64], ours: &[f64], theirs: &[f64]) -> Step {
        let greatest = |v: &[f64]| v.iter().fold(0.0f64, |m, x| m.max(x.abs()));
        let off = |i: usize| theirs[i] - ours[i];
        let all = || 0..theirs.len().min(ours.len());
        let sum = |f: &dyn Fn(usize) -> f64| all().map(f).sum::<f64>();
        let size = sum(&|i| off(i).powi(2)).sqrt();
        let largest = all().fold(0.0f64, |m, i| m.max(off(i).abs()));
        let k = dot(ours, theirs) / dot(ours, ours).max(1e-300);
        let c = sum(&|i| off(i) * before[i]) / dot(before, before).max(1e-300);
        let decayed = sum(&|i| (off(i) - c * before[i]).powi(2)).sqrt();
        Step {
            pair: pair.clone(),
            flat,
            ours: norm(ours),
            theirs: norm(theirs),
            ratio: (norm(ours) > 0.0 && rest(theirs, k, ours) < 1e-2 * norm(theirs)).then_some(k),
            decay: (norm(before) > 1e-9 && decayed < 0.1 * size).then_some(c),
            residual: size,
            max: largest,
            mean: sum(&|i| off(i).abs()) / before.len().max(1) as f64,
            relative: largest / greatest(ours).max(1e-12),
        }
    }

    pub fn differs(&self, adaptive: bool) -> bool {
        let limit = if adaptive { 5e-2 } else { 5e-3 };
        self.residual > limit * self.ours.max(self.theirs).max(1e-12)
    }
}

/// What the recorded step did to each pair of parameters.
pub(super) fn of(cx: &Context<'_>) -> Vec<Step> {
    let (Some(ours), Some(theirs)) = (cx.a.section("optimizer"), cx.b.section("optimizer")) else { return Vec::new() };
    let mut found = Vec::new();
    let size = |t: &sampan_core::Tensor| numbers(t).map_or(0.0, |v| v.iter().fold(0.0f64, |m, x| m.max(x.abs())));
    let large = cx.a.section("backward").map_or(0.0, |s| s.iter().map(|(_, t)| size(t)).fold(0.0, f64::max));
    for p in cx.pairing.parameters.iter().filter(|p| p.transform.put.is_none()) {
        let get = || {
            let (x1, y1) = (ours.get(&cx.at_step(&p.reference))?, theirs.get(&cx.at_step(&p.candidate))?);
            let (x0, y0) = (cx.a.tensor("parameters", &p.reference)?, cx.b.tensor("parameters", &p.candidate)?);
            let form = |t: &sampan_core::Tensor| p.transform.apply(t, y0.shape()).ok().and_then(|t| numbers(&t));
            let flat = cx.b.structure.parameters().find(|q| q.name == p.candidate).is_none_or(|q| q.shape.len() < 2);
            // The largest weights have hundreds of megabytes, so that each is let go as soon as it can be.
            let (ours, before) = (moved(form(x1)?, &form(x0)?)?, numbers(y0)?);
            let mut theirs = moved(numbers(y1)?, &before)?;
            let count = before.len();
            // A recording that was cut or edited may hold tensors of other shapes.
            if ours.len() != count {
                return None;
            }
            // A gradient that is nothing but rounding, as that of a key's bias, is a step of its own on each side, and an
            // adaptive optimizer makes it as large as any other.
            let gradient = |side: &crate::Recording, name: &str| side.tensor("backward", &cx.at_step(name)).cloned();
            let gradients = gradient(cx.a, &p.reference).zip(gradient(cx.b, &p.candidate));
            let gradients = gradients.and_then(|(g, h)| form(&g).zip(numbers(&h)));
            if let Some((g, h)) = gradients.filter(|(g, h)| g.len() == count && h.len() == count) {
                for i in
                    (0..theirs.len()).filter(|&i| (g[i] - h[i]).abs() > 1e-2 * g[i].abs() && g[i].abs() < 1e-4 * large)
                {
                    theirs[i] = ours[i];
                }
            }
            Some(Step::new(p, flat, &before, &ours, &theirs))
        };
        found.extend(get());
    }
    found
}

/// What the updates themselves say.
pub(super) fn explain(
    cx: &Context<'_>,
    all: &[&Step],
    differing: &[&&Step],
    make: &dyn Fn(&str, String, &str) -> Finding,
) -> Finding {
    let rate =
        cx.b.tensor("lr", &format!("lr_{}", cx.b.structure.step))
            .and_then(numbers)
            .and_then(|v| v.first().copied())
            .unwrap_or(1.0);
    let decays: Option<Vec<f64>> = differing.iter().map(|s| s.decay).collect();
    if let Some(c) = decays.filter(|c| c.iter().all(|x| (x - c[0]).abs() < 0.1 * c[0].abs())) {
        let cause = if differing.iter().all(|s| s.flat) { "weight_decay_on_bias_norm" } else { "weight_decay" };
        let more = if c[0] < 0.0 { "more" } else { "less" };
        let sentence = format!(
            "{} of {} parameters, the first of them {}, are decayed {more} in the candidate: by {:.2e} of their value for each unit of the learning rate",
            differing.len(),
            all.len(),
            differing[0].pair.candidate,
            c[0].abs() / rate
        );
        return make(cause, sentence, "confirmed");
    }
    if let Some(clip) = clipped(cx, differing) {
        return make("gradient_clipping", clip, "likely");
    }
    let ratios: Option<Vec<f64>> = all.iter().filter(|s| s.ours > 1e-12).map(|s| s.ratio).collect();
    if let Some(k) = ratios.filter(|k| !k.is_empty() && k.iter().all(|x| (x - k[0]).abs() < 2e-2 * k[0].abs())) {
        let k = k[0];
        let momentum = cx.b.structure.optimizer.as_ref().and_then(|o| o.config.get("momentum")).and_then(Value::as_f64);
        let nesterov = momentum.is_some_and(|m| (k - 1.0 - m).abs() < 1e-2 || (1.0 / k - 1.0 - m).abs() < 1e-2);
        if nesterov {
            return make(
                "nesterov",
                format!("the first update is {k:.4} times the reference's, which is what Nesterov's momentum does"),
                "confirmed",
            );
        }
        return make(
            "update_scaled",
            format!(
                "every update is {k:.4} times the reference's: the learning rate, clipping or accumulation differs"
            ),
            "likely",
        );
    }
    let first = differing[0];
    make(
        "",
        format!(
            "the update of {} differs (and of {} others) although the gradients agree",
            first.pair.candidate,
            differing.len() - 1
        ),
        "unknown",
    )
}

/// Are gradients cut on one side only, or in another way?
fn clipped(cx: &Context<'_>, differing: &[&&Step]) -> Option<String> {
    let clip = |side: &crate::Recording, reference: bool| -> bool {
        let configured = side.structure.optimizer.as_ref().is_some_and(|o| o.config.contains_key("clip"));
        let (Some(raw), Some(used)) = (side.section("backward"), side.section("stepped")) else { return configured };
        configured
            || differing.iter().any(|s| {
                let name = if reference { &s.pair.reference } else { &s.pair.candidate };
                let key = cx.at_step(name);
                matches!((raw.get(&key), used.get(&key)), (Some(x), Some(y)) if crate::diff::diff(x, y, 1e-4).differs)
            })
    };
    match (clip(cx.a, true), clip(cx.b, false)) {
        (true, false) => Some("the reference clips its gradients before the step, the candidate does not".into()),
        (false, true) => Some("the candidate clips its gradients before the step, the reference does not".into()),
        (true, true) => {
            Some("both sides clip their gradients, and in other ways: by norm, by the norm of each, or by value".into())
        }
        _ => None,
    }
}
