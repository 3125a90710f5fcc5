//! What the peer answered (`scripts/optim_golden.py`), and its recipes as arguments of our classes.

use sampan_core::{Dict, Object, Value, class};
use sampan_nn::regularizer::{L1Decay, L2Decay};
use sampan_nn::{ClipGrad, ClipGradByGlobalNorm, ClipGradByNorm, ClipGradByValue, Schedule};
use serde_json::Value as Json;
use std::sync::LazyLock;

/// Everything the peer answered.
pub static GOLDEN: LazyLock<Json> = LazyLock::new(|| {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/optim_golden.json");
    let text = std::fs::read_to_string(path).expect("tests/optim_golden.json is committed");
    serde_json::from_str(&text).unwrap()
});

/// The cases of a part.
pub fn cases(part: &str) -> &'static [Json] {
    GOLDEN[part].as_array().unwrap()
}

/// A list of numbers.
pub fn floats(v: &Json) -> Vec<f64> {
    v.as_array().unwrap_or_else(|| panic!("{v} is no list")).iter().map(|x| x.as_f64().unwrap()).collect()
}

/// Equal within a tolerance relative to the larger of one and the value.
#[track_caller]
pub fn close(what: &str, ours: &[f64], peer: &[f64], tol: f64) {
    assert_eq!(ours.len(), peer.len(), "{what}: lengths differ");
    for (i, (a, b)) in ours.iter().zip(peer).enumerate() {
        assert!((a - b).abs() <= tol * b.abs().max(1.0), "{what}, element {i}: {a} against the peer's {b}");
    }
}

/// A clip of a recipe.
pub fn clip(v: &Json) -> ClipGrad {
    let (kind, value) = v.as_object().unwrap().iter().next().unwrap();
    match kind.as_str() {
        "value" => {
            let max = value[0].as_f64().unwrap();
            value[1]
                .as_f64()
                .map_or_else(|| ClipGradByValue::new(max), |min| ClipGradByValue::with(max, |o| o.min(min)))
        }
        "norm" => ClipGradByNorm::new(value.as_f64().unwrap()),
        _ => ClipGradByGlobalNorm::new(value.as_f64().unwrap()),
    }
}

/// The schedule `[class, arguments]`, built through the registry.
pub fn schedule(v: &Json) -> Schedule {
    let name = v[0].as_str().unwrap();
    let args = v[1].as_object().unwrap();
    let named: Vec<(&str, Value)> = args
        .iter()
        .map(|(k, v)| {
            let value = match (k.as_str(), v.as_f64()) {
                ("lr_lambda", Some(base)) if name == "MultiplicativeDecay" => {
                    sampan_nn::callable::EpochFactor::from(move |_: i64| base).into()
                }
                ("lr_lambda", Some(base)) => {
                    sampan_nn::callable::EpochFactor::from(move |e: i64| base.powf(e as f64)).into()
                }
                ("scale_fn", Some(base)) => sampan_nn::callable::Scale::from(move |x: f64| base.powf(x)).into(),
                _ => argument(k, v),
            };
            (k.as_str(), value)
        })
        .collect();
    built(class::find("optimizer.lr", name).unwrap().make(Vec::new(), named).unwrap())
}

fn built(object: Object) -> Schedule {
    object.downcast::<Schedule>().unwrap().clone()
}

/// An argument of a recipe.
pub fn argument(name: &str, v: &Json) -> Value {
    match v {
        Json::Null => Value::None,
        Json::Bool(b) => Value::Bool(*b),
        Json::String(s) => s.as_str().into(),
        Json::Number(n) => n.as_i64().map_or_else(|| Value::Float(n.as_f64().unwrap()), Value::Int),
        Json::Array(list) if list.iter().all(|x| x.is_i64()) => {
            Value::from(list.iter().map(|x| x.as_i64().unwrap()).collect::<Vec<_>>())
        }
        Json::Array(_) => Value::Floats(floats(v)),
        Json::Object(o) => match (name, o.iter().next().unwrap()) {
            ("grad_clip", _) => clip(v).into(),
            (_, (kind, c)) if kind == "L1" => L1Decay(c.as_f64().unwrap()).into(),
            (_, (kind, c)) if kind == "L2" => L2Decay(c.as_f64().unwrap()).into(),
            (_, (kind, s)) if kind == "schedule" => Value::Object(Object::new(schedule(s))),
            _ => panic!("{name}: {v}"),
        },
    }
}

/// A state of plain values.
pub fn dict(v: &Json) -> Dict {
    let value = |k: &str, v: &Json| match v {
        Json::Object(_) => Value::Dict(dict(v)),
        _ => argument(k, v),
    };
    v.as_object().unwrap().iter().map(|(k, v)| (k.clone(), value(k, v))).collect()
}
