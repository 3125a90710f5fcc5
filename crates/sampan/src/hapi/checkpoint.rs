//! Everything a training run needs to go on to the bit, in one safetensors file.

use super::{Callback, Model, Position};
use sampan_core::error::Kind;
use sampan_core::{Dict, Error, Result, Tensor, Value, random};
use sampan_data::LoaderState;
use sampan_io::safetensors;
use sampan_nn::Members;
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::path::Path;

const FORMAT: &str = "sampan-checkpoint-1";

/// What a checkpoint holds.
pub struct Contents {
    /// The network's state.
    pub model: BTreeMap<String, Tensor>,
    /// The optimizer's state.
    pub optimizer: Dict,
    /// How far training had come.
    pub position: Position,
    /// The generator.
    pub random: (u64, u64),
    /// The name and the state of each callback that has one.
    pub callbacks: Vec<(String, Vec<f64>)>,
}

fn broken(path: &Path, why: impl std::fmt::Display) -> Error {
    Error::new(Kind::InvalidArgument, format!("{} is no checkpoint of a run: {why}", path.display()))
        .in_op("checkpoint")
}

/// A float in JSON, to the bit: JSON has no word for infinity.
fn float(f: f64) -> Json {
    if f.is_finite() { json!(f) } else { json!({ "float": f.to_string() }) }
}

fn to_float(v: &Json) -> Option<f64> {
    v.as_f64().or_else(|| v.get("float")?.as_str()?.parse().ok())
}

/// A value as JSON, its tensors put aside under `name`.
fn to_json(name: &str, value: &Value, tensors: &mut BTreeMap<String, Tensor>) -> Result<Json> {
    Ok(match value {
        Value::None => Json::Null,
        Value::Bool(b) => json!(b),
        Value::Int(i) => json!({ "int": i }),
        Value::Float(f) => float(*f),
        Value::Str(s) => json!(&**s),
        Value::Tensor(t) => {
            tensors.insert(name.to_string(), t.clone());
            json!({ "tensor": name })
        }
        Value::Ints(v) => v.iter().map(|i| json!({ "int": i })).collect(),
        Value::Floats(v) => v.iter().map(|f| float(*f)).collect(),
        Value::Tensors(_) | Value::List(_) => {
            let items: Vec<Value> = match value {
                Value::Tensors(ts) => ts.iter().map(Value::from).collect(),
                Value::List(vs) => vs.clone(),
                _ => Vec::new(),
            };
            let each = items.iter().enumerate().map(|(i, v)| to_json(&format!("{name}.{i}"), v, tensors));
            Json::Array(each.collect::<Result<_>>()?)
        }
        Value::Dict(d) => {
            let each = d.iter().map(|(k, v)| Ok(json!([k, to_json(&format!("{name}.{k}"), v, tensors)?])));
            json!({ "dict": each.collect::<Result<Vec<Json>>>()? })
        }
        other => {
            return Err(Error::invalid(format!("a checkpoint cannot hold a {}", other.type_name())).in_op("checkpoint"));
        }
    })
}

fn from_json(json: &Json, tensors: &BTreeMap<String, Tensor>) -> Option<Value> {
    Some(match json {
        Json::Null => Value::None,
        Json::Bool(b) => Value::Bool(*b),
        Json::Number(_) => Value::Float(json.as_f64()?),
        Json::String(s) => Value::from(s.as_str()),
        Json::Array(items) => Value::List(items.iter().map(|v| from_json(v, tensors)).collect::<Option<_>>()?),
        Json::Object(o) => match o.iter().next()? {
            (key, v) if key == "int" => Value::Int(v.as_i64()?),
            (key, _) if key == "float" => Value::Float(to_float(json)?),
            (key, v) if key == "tensor" => Value::Tensor(tensors.get(v.as_str()?)?.clone()),
            (key, v) if key == "dict" => {
                let pair = |p: &Json| Some((p.get(0)?.as_str()?.to_string(), from_json(p.get(1)?, tensors)?));
                Value::Dict(v.as_array()?.iter().map(pair).collect::<Option<Vec<_>>>()?.into_iter().collect())
            }
            _ => return None,
        },
    })
}

/// Writes model, optimizer, schedule, generator, callbacks and position. The file appears whole or not at all.
pub fn save(path: &Path, model: &Model, callbacks: &[Box<dyn Callback>]) -> Result<()> {
    let mut tensors: BTreeMap<String, Tensor> =
        model.network().state_dict().into_iter().map(|(k, t)| (format!("model.{k}"), t)).collect();
    let optimizer = match model.optimizer() {
        Some(o) => to_json("optimizer", &Value::Dict(o.state_dict()?), &mut tensors)?,
        None => Json::Null,
    };
    // Gradients that add up over several batches are part of the state as well.
    for (name, p) in model.network().named_parameters() {
        if let Some(grad) = p.grad() {
            tensors.insert(format!("gradient.{name}"), grad);
        }
    }
    let at = model.position();
    let (seed, offset) = random::state();
    let floats = |state: &[f64]| state.iter().copied().map(float).collect::<Vec<Json>>();
    let kept = callbacks.iter().map(|c| (c.name(), c.state())).filter(|(_, state)| !state.is_empty());
    let state = json!({
        "optimizer": optimizer,
        "epoch": at.epoch,
        "step": at.step,
        "global_step": at.global_step,
        "loader": at.loader.as_ref().map(LoaderState::to_numbers),
        "random": [seed, offset],
        "sampler": at.sampler,
        "metrics": at.metrics.iter().map(|m| floats(m)).collect::<Vec<_>>(),
        "callbacks": kept.map(|(name, state)| json!([name, floats(&state)])).collect::<Vec<_>>(),
    });
    let notes = BTreeMap::from([("format".to_string(), FORMAT.to_string()), ("state".to_string(), state.to_string())]);
    safetensors::save(path, &tensors, &notes)
}

/// Reads a checkpoint.
pub fn read(path: &Path) -> Result<Contents> {
    let file = safetensors::load(path)?;
    parse(path, file).map(|(contents, _)| contents)
}

fn parse(path: &Path, file: safetensors::Contents) -> Result<(Contents, BTreeMap<String, Tensor>)> {
    if file.notes.get("format").map(String::as_str) != Some(FORMAT) {
        return Err(broken(path, "it holds tensors only").hint("weights alone are loaded with `Model::load`"));
    }
    let state: Json = file
        .notes
        .get("state")
        .and_then(|s| serde_json::from_str(s).ok())
        .ok_or_else(|| broken(path, "its notes cannot be read"))?;
    let contents = || -> Option<(Contents, BTreeMap<String, Tensor>)> {
        let count = |key: &str| state.get(key)?.as_u64().map(|n| n as usize);
        let numbers = |v: &Json| v.as_array()?.iter().map(Json::as_u64).collect::<Option<Vec<u64>>>();
        let random = numbers(state.get("random")?)?;
        let loader = match state.get("loader")? {
            Json::Null => None,
            v => Some(LoaderState::from_numbers(&numbers(v)?).ok()?),
        };
        let floats = |v: &Json| v.as_array()?.iter().map(to_float).collect::<Option<Vec<f64>>>();
        let named = |v: &Json| Some((v.get(0)?.as_str()?.to_string(), floats(v.get(1)?)?));
        let optimizer = match from_json(state.get("optimizer")?, &file.tensors)? {
            Value::Dict(d) => d,
            _ => Dict::new(),
        };
        let part = |prefix: &str| -> BTreeMap<String, Tensor> {
            let strip = |(k, t): (&String, &Tensor)| Some((k.strip_prefix(prefix)?.to_string(), t.clone()));
            file.tensors.iter().filter_map(strip).collect()
        };
        let contents = Contents {
            model: part("model."),
            optimizer,
            position: Position {
                epoch: count("epoch")?,
                step: count("step")?,
                global_step: count("global_step")?,
                loader,
                sampler: numbers(state.get("sampler")?)?,
                metrics: state.get("metrics")?.as_array()?.iter().map(floats).collect::<Option<_>>()?,
            },
            random: (*random.first()?, *random.get(1)?),
            callbacks: state.get("callbacks")?.as_array()?.iter().map(named).collect::<Option<_>>()?,
        };
        Some((contents, part("gradient.")))
    };
    contents().ok_or_else(|| broken(path, "its notes are not complete"))
}

/// Goes on from a checkpoint: a model and an optimizer of the same form take over its state.
pub fn load(path: &Path, model: &mut Model, callbacks: &mut [Box<dyn Callback>]) -> Result<()> {
    let (contents, gradients) = parse(path, safetensors::load(path)?)?;
    model.network().set_state_dict(&contents.model)?;
    if let Some(optimizer) = model.optimizer_mut() {
        optimizer.set_state_dict(&contents.optimizer)?;
    }
    for (name, p) in model.network().named_parameters() {
        p.tensor().set_grad(gradients.get(&name).cloned());
    }
    // By name, so that a callback more or less does not give one the state of another.
    let mut kept = contents.callbacks;
    for callback in callbacks {
        if let Some(at) = kept.iter().position(|(name, _)| name == callback.name()) {
            callback.set_state(model, &kept.remove(at).1);
        }
    }
    model.set_position(contents.position);
    random::set_state(contents.random);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use sampan_core::DType;

    #[test]
    fn values_survive_json_to_the_bit() {
        let mut tensors = BTreeMap::new();
        let inner: Dict = [("lr", Value::Float(0.1 + 0.2)), ("n", Value::Int(i64::MAX))].into_iter().collect();
        let odd = [f64::INFINITY, f64::NEG_INFINITY, 1e-320, 5e300, -0.0];
        let dict: Dict = [
            ("t", Value::Tensor(Tensor::full([2], 1.5, DType::Float32))),
            ("d", Value::Dict(inner)),
            ("odd", Value::List(odd.iter().map(|f| Value::Float(*f)).collect())),
            ("s", Value::from("inf")),
            ("none", Value::None),
        ]
        .into_iter()
        .collect();
        let json = to_json("optimizer", &Value::Dict(dict.clone()), &mut tensors).unwrap().to_string();
        assert_eq!(tensors.keys().collect::<Vec<_>>(), ["optimizer.t"]);
        let back = from_json(&serde_json::from_str(&json).unwrap(), &tensors).unwrap();
        assert_eq!(format!("{back:?}"), format!("{:?}", Value::Dict(dict)));
    }
}
