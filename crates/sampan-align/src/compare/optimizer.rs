//! One step of the optimizers: what they are set to, and what they do to the parameters.

use super::{Check, CheckResult, Context, Finding, LogRow, Report};
use crate::diff::Diff;
use crate::recording::numbers;
use crate::{Config, Optimizer, ParameterPair, settings};
use serde_json::Value;
use std::collections::BTreeMap;

/// Settings of an optimizer in one language.
fn canonical(o: &Optimizer) -> BTreeMap<&'static str, Value> {
    let c = &o.config;
    let number = |names: &[&str]| names.iter().find_map(|n| c.get(*n).and_then(Value::as_f64));
    let truth = |names: &[&str]| names.iter().find_map(|n| c.get(*n).and_then(Value::as_bool));
    let beta = |i: usize, name: &str| {
        number(&[name]).or_else(|| c.get("betas").and_then(|b| b.get(i)).and_then(Value::as_f64))
    };
    let momentum = number(&["momentum"]).unwrap_or(0.0);
    let class = o.class.to_lowercase();
    let kind = if class == "momentum" || (class == "sgd" && momentum > 0.0) { "momentum".into() } else { class };
    let mut found = BTreeMap::new();
    found.insert("weight_decay", Value::from(decay(c)));
    let mut put = |key, value: Option<Value>| value.map(|v| found.insert(key, v));
    put("nesterov", Some(Value::from(truth(&["nesterov", "use_nesterov"]).unwrap_or(false))));
    if kind == "momentum" {
        put("momentum", Some(Value::from(momentum)));
    }
    if kind.contains("adam") {
        put("beta1", beta(0, "beta1").map(Value::from));
        put("beta2", beta(1, "beta2").map(Value::from));
        put("epsilon", number(&["eps", "epsilon"]).map(Value::from));
        put("amsgrad", Some(Value::from(truth(&["amsgrad"]).unwrap_or(false))));
    } else if kind == "rmsprop" {
        put("epsilon", number(&["eps", "epsilon"]).map(Value::from));
        put("rho", number(&["alpha", "rho"]).map(Value::from));
    }
    put("class", Some(Value::from(kind)));
    found
}

fn decay(c: &Config) -> f64 {
    ["weight_decay", "coeff"].iter().find_map(|n| c.get(*n).and_then(Value::as_f64)).unwrap_or(0.0)
}

/// Weight decay of one parameter.
fn decay_of(o: &Optimizer, name: &str) -> f64 {
    let group = o.groups.iter().rev().find(|g| g.parameters.iter().any(|p| p == name));
    match group {
        Some(g) if g.config.contains_key("weight_decay") => decay(&g.config),
        _ => decay(&o.config),
    }
}

fn cause_of(key: &str) -> &'static str {
    match key {
        "class" => "optimizer_type",
        "weight_decay" => "weight_decay",
        "nesterov" => "nesterov",
        "momentum" => "momentum",
        "beta1" | "beta2" => "adam_betas",
        "epsilon" => "adam_epsilon",
        "amsgrad" => "amsgrad",
        _ => "optimizer_setting",
    }
}

struct Step {
    pair: ParameterPair,
    /// Before the step, both updates, and the gradient, in the candidate's form.
    before: Vec<f64>,
    ours: Vec<f64>,
    theirs: Vec<f64>,
    flat: bool,
}

fn norm(v: &[f64]) -> f64 {
    v.iter().map(|x| x * x).sum::<f64>().sqrt()
}

fn dot(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(a, b)| a * b).sum()
}

impl Step {
    fn residual(&self) -> Vec<f64> {
        self.theirs.iter().zip(&self.ours).map(|(t, o)| t - o).collect()
    }
    fn differs(&self, adaptive: bool) -> bool {
        let limit = if adaptive { 5e-2 } else { 5e-3 };
        norm(&self.residual()) > limit * norm(&self.ours).max(norm(&self.theirs)).max(1e-12)
    }
    /// The factor by which the candidate's update is the reference's, if it is.
    fn ratio(&self) -> Option<f64> {
        let k = dot(&self.ours, &self.theirs) / dot(&self.ours, &self.ours).max(1e-300);
        let rest: Vec<f64> = self.theirs.iter().zip(&self.ours).map(|(t, o)| t - k * o).collect();
        (norm(&self.ours) > 0.0 && norm(&rest) < 1e-2 * norm(&self.theirs)).then_some(k)
    }
    /// The share of the parameter itself in the residual, if that is all there is.
    fn decay(&self) -> Option<f64> {
        let r = self.residual();
        let c = dot(&r, &self.before) / dot(&self.before, &self.before).max(1e-300);
        let rest: Vec<f64> = r.iter().zip(&self.before).map(|(r, p)| r - c * p).collect();
        (norm(&self.before) > 1e-9 && norm(&rest) < 0.1 * norm(&r)).then_some(c)
    }
}

fn steps(cx: &Context<'_>) -> Vec<Step> {
    let (Some(ours), Some(theirs)) = (cx.a.section("optimizer"), cx.b.section("optimizer")) else { return Vec::new() };
    let mut found = Vec::new();
    let size = |t: &sampan_core::Tensor| numbers(t).map_or(0.0, |v| v.iter().fold(0.0f64, |m, x| m.max(x.abs())));
    let large = cx.a.section("backward").map_or(0.0, |s| s.iter().map(|(_, t)| size(t)).fold(0.0, f64::max));
    for p in cx.pairing.parameters.iter().filter(|p| p.transform.put.is_none()) {
        let get = || {
            let (x1, y1) =
                (ours.get(&format!("step0:{}", p.reference))?, theirs.get(&format!("step0:{}", p.candidate))?);
            let (x0, y0) = (cx.a.tensor("parameters", &p.reference)?, cx.b.tensor("parameters", &p.candidate)?);
            let form = |t: &sampan_core::Tensor| p.transform.apply(t, y0.shape()).ok().and_then(|t| numbers(&t));
            let (x0, x1, y0, y1) = (form(x0)?, form(x1)?, numbers(y0)?, numbers(y1)?);
            // A recording that was cut or edited may hold tensors of other shapes.
            let count = y0.len();
            if [x0.len(), x1.len(), y1.len()].iter().any(|n| *n != count) {
                return None;
            }
            let minus = |u: &[f64], v: &[f64]| u.iter().zip(v).map(|(a, b)| a - b).collect::<Vec<_>>();
            let flat = cx.b.structure.parameters().find(|q| q.name == p.candidate).is_none_or(|q| q.shape.len() < 2);
            let (ours, mut theirs) = (minus(&x1, &x0), minus(&y1, &y0));
            // A gradient that is nothing but rounding, as that of a key's bias, is a step of its own on each side, and an
            // adaptive optimizer makes it as large as any other.
            let gradient =
                |side: &crate::Recording, name: &str| side.tensor("backward", &format!("step0:{name}")).cloned();
            let gradients = gradient(cx.a, &p.reference).zip(gradient(cx.b, &p.candidate));
            let gradients = gradients.and_then(|(g, h)| form(&g).zip(numbers(&h)));
            if let Some((g, h)) = gradients.filter(|(g, h)| g.len() == count && h.len() == count) {
                for i in
                    (0..theirs.len()).filter(|&i| (g[i] - h[i]).abs() > 1e-2 * g[i].abs() && g[i].abs() < 1e-4 * large)
                {
                    theirs[i] = ours[i];
                }
            }
            Some(Step { pair: p.clone(), ours, theirs, before: y0, flat })
        };
        found.extend(get());
    }
    found
}

fn is_buffer(cx: &Context<'_>, name: &str) -> bool {
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
        configured(cx, a, b, &make, &mut found);
    }
    let all = steps(cx);
    if all.is_empty() && found.is_empty() {
        return;
    }
    if !cx.random {
        statistics(cx, &all, report);
    }
    let class = cx.b.structure.optimizer.as_ref().map_or(String::new(), |o| o.class.to_lowercase());
    let adaptive = class.contains("ada") || class.contains("rms") || class.contains("lamb");
    let trained: Vec<&Step> = all.iter().filter(|s| !is_buffer(cx, &s.pair.candidate)).collect();
    let differing: Vec<&&Step> = trained.iter().filter(|s| s.differs(adaptive)).collect();
    let inherited = cx.random
        || report.checks.iter().any(|c| matches!(c.check, Check::Backward | Check::Forward) && !c.ok)
        || report.findings.iter().any(|f| f.visible && matches!(f.check.as_str(), "forward" | "backward" | "loss"));
    // Another learning rate is another step, and was found already.
    let inherited = inherited || report.findings.iter().any(|f| f.candidate == "lr_0");
    if let Some(f) = found.iter_mut().find(|f| f.cause == "weight_decay")
        && !differing.is_empty()
        && differing.iter().all(|s| s.flat)
    {
        f.cause = "weight_decay_on_bias_norm".into();
    }
    if !differing.is_empty() && !inherited && found.is_empty() {
        found.push(by_numbers(cx, &trained, &differing, &make));
    } else if differing.is_empty() && !trained.is_empty() && !cx.random {
        // Set otherwise, and without effect on this step.
        found.iter_mut().for_each(|f| f.visible = false);
    }
    let rows: Vec<LogRow> = trained
        .iter()
        .map(|s| {
            let max = s.residual().iter().fold(0.0f64, |m, x| m.max(x.abs()));
            let mean = s.residual().iter().map(|x| x.abs()).sum::<f64>() / s.before.len().max(1) as f64;
            let relative = max / s.ours.iter().fold(1e-12f64, |m, x| m.max(x.abs()));
            LogRow {
                key: s.pair.reference.clone(),
                diff: Diff { mean, max, min: 0.0, relative, differs: s.differs(adaptive), remark: String::new() },
            }
        })
        .collect();
    report.findings.append(&mut found);
    if !rows.is_empty() && !cx.random {
        let ok = rows.iter().all(|r| !r.diff.differs);
        report.checks.push(CheckResult { check: Check::Optimizer, ok, rows });
    }
}

fn configured(
    cx: &Context<'_>,
    a: &Optimizer,
    b: &Optimizer,
    make: &dyn Fn(&str, String, &str) -> Finding,
    found: &mut Vec<Finding>,
) {
    let (x, y) = (canonical(a), canonical(b));
    let shown = |v: &Value| v.as_str().map_or(v.to_string(), str::to_string);
    if x["class"] != y["class"] {
        let pair = (shown(&x["class"]), shown(&y["class"]));
        let cause = match (pair.0.as_str(), pair.1.as_str()) {
            ("adam", "adamw") | ("adamw", "adam") => "adamw_or_adam",
            ("sgd", "momentum") | ("momentum", "sgd") => "momentum",
            _ => "optimizer_type",
        };
        found.push(make(cause, format!("the reference uses {}, the candidate {}", a.class, b.class), "confirmed"));
        return;
    }
    for (key, v) in x.iter().filter(|(k, _)| !matches!(**k, "class" | "weight_decay")) {
        let Some(w) = y.get(key) else { continue };
        let same = match (v.as_f64(), w.as_f64()) {
            (Some(p), Some(q)) => (p - q).abs() <= 1e-6 * p.abs().max(q.abs()),
            _ => v == w,
        };
        if !same {
            let sentence =
                format!("{key} of the optimizer is {} in the reference and {} in the candidate", shown(v), shown(w));
            found.push(make(cause_of(key), sentence, "confirmed"));
        }
    }
    // Decay may differ for some parameters only.
    let pairs = cx.pairing.parameters.iter().filter(|p| !is_buffer(cx, &p.candidate));
    let differing: Vec<(&ParameterPair, f64, f64)> = pairs
        .map(|p| (p, decay_of(a, &p.reference), decay_of(b, &p.candidate)))
        .filter(|(_, d, e)| (d - e).abs() > 1e-9)
        .collect();
    let flat = |p: &ParameterPair| {
        cx.b.structure.parameters().find(|q| q.name == p.candidate).is_none_or(|q| q.shape.len() < 2)
    };
    if let Some((p, d, e)) = differing.first() {
        let cause = if differing.iter().all(|(p, ..)| flat(p)) { "weight_decay_on_bias_norm" } else { "weight_decay" };
        let sentence = format!(
            "weight decay is {d} in the reference and {e} in the candidate for {} parameters, the first of them {}",
            differing.len(),
            p.candidate
        );
        found.push(make(cause, sentence, "confirmed"));
    }
    let clip = |o: &Optimizer| o.config.get("clip").and_then(Value::as_str).map(str::to_string);
    if let (Some(p), Some(q)) = (clip(a), clip(b)) {
        let value = |o: &Optimizer| o.config.get("clip_value").and_then(Value::as_f64).unwrap_or(0.0);
        if p != q || (value(a) - value(b)).abs() > 1e-9 {
            let sentence = format!(
                "gradients are clipped by {p} ({}) in the reference and by {q} ({}) in the candidate",
                value(a),
                value(b)
            );
            found.push(make("gradient_clipping", sentence, "confirmed"));
        }
    }
}

/// What the updates themselves say.
fn by_numbers(
    cx: &Context<'_>,
    all: &[&Step],
    differing: &[&&Step],
    make: &dyn Fn(&str, String, &str) -> Finding,
) -> Finding {
    let rate = cx.b.tensor("lr", "lr_0").and_then(numbers).and_then(|v| v.first().copied()).unwrap_or(1.0);
    let decays: Option<Vec<f64>> = differing.iter().map(|s| s.decay()).collect();
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
    let ratios: Option<Vec<f64>> = all.iter().filter(|s| norm(&s.ours) > 1e-12).map(|s| s.ratio()).collect();
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
                let key = format!("step0:{name}");
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

/// Running statistics of batch normalisation after the step.
fn statistics(cx: &Context<'_>, all: &[Step], report: &mut Report) {
    let mut noted = false;
    for s in all.iter().filter(|s| is_buffer(cx, &s.pair.candidate)) {
        if !s.differs(false) || norm(&s.ours) < 1e-9 {
            continue;
        }
        let variance = s.pair.candidate.ends_with("_variance") || s.pair.candidate.ends_with("running_var");
        let (x, y) = (cx.a.structure.layer(&s.pair.reference_layer), cx.b.structure.layer(&s.pair.candidate_layer));
        let set = x.zip(y).and_then(|(x, y)| {
            let all = settings::differences(("batch_norm", "batch_norm"), cx.sides(), (&x.config, &y.config), 4);
            all.into_iter().find(|d| d.cause == "bn_momentum")
        });
        if set.is_none() && variance {
            // PyTorch keeps the variance of a population, n / (n - 1) times that of the batch; Paddle that of the batch.
            if !noted && cx.sides().0 != cx.sides().1 {
                report.notes.push(format!(
                    "{}: PyTorch's running variance is n / (n - 1) times Paddle's; it shows with small batches and is no mistake",
                    s.pair.candidate
                ));
                noted = true;
            }
            continue;
        }
        let sentence = match (&set, s.ratio()) {
            (Some(d), _) => format!(
                "its running statistics move otherwise: the share of the new batch is {} in the reference and {} in the candidate; \
                 Paddle's momentum is one minus PyTorch's",
                d.reference, d.candidate
            ),
            (None, Some(k)) => format!("its running statistics move {k:.3} times as fast as the reference's"),
            _ => "its running statistics move otherwise than the reference's".into(),
        };
        if report.findings.iter().any(|f| f.candidate == s.pair.candidate_layer && f.visible) {
            continue;
        }
        report.findings.retain(|f| !(f.candidate == s.pair.candidate_layer && f.cause == "bn_momentum"));
        report.findings.push(Finding {
            check: "optimizer".into(),
            place: "layer".into(),
            reference: s.pair.reference_layer.clone(),
            candidate: s.pair.candidate_layer.clone(),
            cause: if set.is_some() || s.ratio().is_some() { "bn_momentum".into() } else { String::new() },
            sentence: format!("{}: {sentence}", s.pair.candidate_layer),
            certainty: "confirmed".into(),
            visible: true,
            ..Finding::default()
        });
    }
}
