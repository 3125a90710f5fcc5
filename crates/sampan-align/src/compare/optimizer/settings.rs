//! What the optimizers are set to.

use super::is_buffer;
use crate::compare::{Context, Finding};
use crate::{Config, Optimizer, ParameterPair};
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

/// Settings that differ, of all parameters or of some.
pub(super) fn compare(
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
