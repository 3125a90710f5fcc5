//! Structures from files, and states into them.

use super::onnx;
use super::structure::{Convention, Kind, Packed, Structure, Weight};
use sampan_core::{Error, Result, Tensor};
use sampan_io::{Dict, Format, Object};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// How weights lie in files of a format, where the format belongs to a framework.
pub fn default_convention(format: Option<Format>) -> Option<Convention> {
    match format? {
        Format::PyTorch | Format::Onnx => Some(Convention::Torch),
        Format::Paddle | Format::PaddleBinary => Some(Convention::Paddle),
        _ => None,
    }
}

/// The weights of a file of any format. `entry` names the dict in a checkpoint that holds them; `convention` says how they
/// lie, where the format and the keys do not. `model` names the weights of a file that has no names.
pub fn read(
    path: impl AsRef<Path>,
    entry: Option<&str>,
    convention: Option<Convention>,
    model: Option<&Structure>,
) -> Result<Structure> {
    let path = path.as_ref();
    let name = path.file_name().map_or_else(|| path.display().to_string(), |n| n.to_string_lossy().into_owned());
    let by_path = Format::from_path(path);
    if by_path == Some(Format::Onnx) {
        return onnx::structure(name, &sampan_io::onnx::load(path)?);
    }
    let object = sampan_io::load(path)?;
    if by_path == Some(Format::PaddleBinary) {
        return nameless(name, object, model);
    }
    let dict = state_of(object, entry, &name)?;
    let weights: Vec<Weight> = dict
        .iter()
        .filter_map(|(key, value)| Some(Weight::of(key.to_string(), value.as_tensor()?.clone(), Kind::Unknown)))
        .collect();
    let told = Convention::from_keys(weights.iter().map(|w| w.key.as_str()));
    let ordered = !matches!(by_path, Some(Format::SafeTensors | Format::Npz));
    let mut side =
        Structure { name, convention: convention.or(default_convention(by_path)).or(told), ordered, weights };
    if let Some(model) = model {
        learn_kinds(&mut side, model);
    }
    Ok(side)
}

/// The classes of a model's layers, for the weights that have its names.
fn learn_kinds(side: &mut Structure, model: &Structure) {
    let kinds: HashMap<&str, Kind> = model.weights.iter().map(|w| (w.key.as_str(), w.kind)).collect();
    for weight in &mut side.weights {
        weight.kind = kinds.get(weight.key.as_str()).copied().unwrap_or(weight.kind);
    }
}

/// The dict of tensors in a file: the file itself, or the entry of a checkpoint.
fn state_of(object: Object, entry: Option<&str>, name: &str) -> Result<Dict> {
    let Object::Dict(dict) = object else {
        return Err(Error::invalid(format!("{name} holds a {}, not weights by name", object.type_name())));
    };
    let is_state = |value: &Object| matches!(value, Object::Dict(d) if d.iter().any(|(_, v)| v.as_tensor().is_some()));
    if let Some(entry) = entry {
        return match dict.get(entry) {
            Some(Object::Dict(found)) if is_state(&Object::Dict(found.clone())) => Ok(found.clone()),
            Some(_) => Err(Error::invalid(format!("{entry} in {name} is no dict of weights"))),
            None => {
                let keys: Vec<String> = dict.iter().take(20).map(|(k, _)| k.to_string()).collect();
                Err(Error::invalid(format!("{name} has no entry {entry}; there are {}", keys.join(", "))))
            }
        };
    }
    if dict.iter().any(|(_, value)| value.as_tensor().is_some()) {
        return Ok(dict);
    }
    let states: Vec<String> = dict.iter().filter(|(_, v)| is_state(v)).map(|(k, _)| k.to_string()).collect();
    match &states[..] {
        [] => Err(Error::invalid(format!("there are no weights in {name}"))),
        // One dict of tensors beside numbers is the state; a second one may be a copy or an optimizer's.
        [one] => match dict.get(one.as_str()) {
            Some(Object::Dict(found)) => Ok(found.clone()),
            _ => Err(Error::invalid(format!("there are no weights in {name}"))),
        },
        many => Err(Error::invalid(format!("{name} holds several dicts of weights: {}", many.join(", ")))
            .hint("name the one that is meant with --key")),
    }
}

/// The order of a file without names: that of the tensors' own names.
fn own_order(model: &Structure) -> Result<Vec<&Weight>> {
    let mut weights: Vec<&Weight> = model.weights.iter().filter(|w| !w.own_name.is_empty()).collect();
    if weights.len() != model.weights.len() {
        return Err(Error::invalid(format!("{} does not tell the order of a .pdiparams file", model.name))
            .hint("name a model of the zoo"));
    }
    weights.sort_by(|a, b| a.own_name.cmp(&b.own_name));
    weights.dedup_by(|a, b| a.own_name == b.own_name);
    Ok(weights)
}

fn nameless(name: String, object: Object, model: Option<&Structure>) -> Result<Structure> {
    let tensors: Vec<Tensor> = match object {
        Object::Tensor(one) => vec![one],
        Object::List(list) => list.iter().filter_map(|o| o.as_tensor().cloned()).collect(),
        other => return Err(Error::invalid(format!("{name} holds a {}, not tensors", other.type_name()))),
    };
    let model = model.ok_or_else(|| {
        Error::invalid(format!("{name} holds {} tensors without names", tensors.len()))
            .hint("name the model it was saved from: --source-model resnet50")
    })?;
    let order = own_order(model)?;
    if order.len() != tensors.len() {
        let (have, want) = (tensors.len(), order.len());
        return Err(Error::invalid(format!("{name} holds {have} tensors, and {} has {want}", model.name)));
    }
    let mut by_key: HashMap<&str, Tensor> = HashMap::new();
    for (weight, tensor) in order.iter().zip(tensors) {
        if weight.shape != tensor.shape() {
            let (key, want, have) = (&weight.key, &weight.shape, tensor.shape());
            return Err(Error::invalid(format!(
                "{name}: {key} of {} has the shape {want:?}, and {have:?} stands there",
                model.name
            )));
        }
        by_key.insert(&weight.key, tensor);
    }
    let weights = model.weights.iter().filter_map(|w| {
        let tensor = by_key.get(w.key.as_str())?.clone();
        Some(Weight { own_name: w.own_name.clone(), ..Weight::of(w.key.as_str(), tensor, w.kind) })
    });
    Ok(Structure { name, convention: Some(Convention::Paddle), ordered: true, weights: weights.collect() })
}

/// The target where there is no model: the source's own keys, with the names of statistics that the target's framework
/// gives them.
pub fn like_itself(source: &Structure, convention: Option<Convention>) -> Structure {
    let convention = convention.or(source.convention);
    let crossed = convention != source.convention;
    let renamed = |key: &str| {
        let (prefix, leaf) = key.rsplit_once('.').map_or(("", key), |(p, l)| (p, l));
        let leaf = match (convention, leaf) {
            (Some(Convention::Paddle), "running_mean") => "_mean",
            (Some(Convention::Paddle), "running_var") => "_variance",
            (Some(Convention::Torch), "_mean") => "running_mean",
            (Some(Convention::Torch), "_variance") => "running_var",
            (_, same) => same,
        };
        if prefix.is_empty() { leaf.to_string() } else { format!("{prefix}.{leaf}") }
    };
    let keys: std::collections::HashSet<&str> = source.weights.iter().map(|w| w.key.as_str()).collect();
    let has_bias = |key: &str| keys.contains(format!("{}.bias", key.trim_end_matches(".weight")).as_str());
    let weights = source.weights.iter().filter(|w| !(crossed && w.key.ends_with("num_batches_tracked"))).map(|w| {
        let product = w.shape.len() == 2
            && w.key.ends_with(".weight")
            && (w.kind == Kind::Linear || w.kind == Kind::Unknown && has_bias(&w.key));
        let turned = crossed && product;
        let shape = if turned { w.shape.iter().rev().copied().collect() } else { w.shape.clone() };
        Weight { own_name: w.own_name.clone(), ..Weight::new(renamed(&w.key), shape, w.kind) }
    });
    Structure { name: "the same names".into(), convention, ordered: source.ordered, weights: weights.collect() }
}

/// A state as another framework keeps it: the names of statistics, and products turned. It stays as it is where nothing is
/// asked for, or where it lies so already.
pub fn in_convention(
    state: &[(String, Tensor)],
    target: &Structure,
    convention: Option<Convention>,
) -> Result<(Vec<(String, Tensor)>, Structure)> {
    if convention.is_none() || target.convention.is_none() || convention == target.convention {
        return Ok((state.to_vec(), target.clone()));
    }
    let values: HashMap<&str, &Tensor> = state.iter().map(|(k, t)| (k.as_str(), t)).collect();
    let mut given = target.clone();
    given.weights.retain_mut(|w| {
        w.tensor = values.get(w.key.as_str()).map(|t| (*t).clone());
        w.tensor.is_some()
    });
    let wanted = like_itself(&given, convention);
    let converted = super::convert(&given, &wanted, &super::Mapping::default(), false)?;
    Ok((converted.state, wanted))
}

/// Writes a state in the format that the path names: whole or not at all. `target`: what the state belongs to, which
/// orders a file without names; `template`: the ONNX file whose graph is kept.
pub fn write(
    path: impl AsRef<Path>,
    state: &[(String, Tensor)],
    target: &Structure,
    template: Option<&Path>,
) -> Result<()> {
    let path = path.as_ref();
    match Format::from_path(path) {
        Some(Format::SafeTensors | Format::Npz) => {
            let flat: BTreeMap<String, Tensor> = state.iter().cloned().collect();
            sampan_io::save(path, &flat.into())
        }
        Some(Format::PaddleBinary) => {
            let values: HashMap<&str, &Tensor> = state.iter().map(|(k, t)| (k.as_str(), t)).collect();
            let tensors: Option<Vec<Tensor>> =
                own_order(target)?.into_iter().map(|w| values.get(w.key.as_str()).map(|t| (*t).clone())).collect();
            let tensors =
                tensors.ok_or_else(|| Error::invalid("a .pdiparams file has no names, so no weight can be missing"))?;
            sampan_io::pdiparams::save(path, &tensors)
        }
        Some(Format::Onnx) => {
            let template = template.ok_or_else(|| {
                Error::invalid("weights alone are no ONNX file")
                    .hint("name one with the graph, whose weights are replaced: --model graph.onnx")
            })?;
            let names: HashMap<&str, &str> = target
                .weights
                .iter()
                .filter(|w| !w.own_name.is_empty())
                .map(|w| (w.key.as_str(), w.own_name.as_str()))
                .collect();
            let mut values: HashMap<String, Tensor> = HashMap::new();
            let packed: HashMap<&str, Packed> =
                target.weights.iter().filter_map(|w| Some((w.key.as_str(), w.packed?))).collect();
            let mut parts: HashMap<&str, Vec<(Packed, Tensor)>> = HashMap::new();
            for (key, tensor) in state {
                if let (Some(packed), Some(name)) = (packed.get(key.as_str()), names.get(key.as_str())) {
                    parts.entry(*name).or_default().push((*packed, tensor.clone()));
                    continue;
                }
                let name = names.get(key.as_str()).unwrap_or(&key.as_str()).to_string();
                let old = values.insert(name, tensor.clone());
                if old.is_some_and(|old| old.to_bytes() != tensor.to_bytes()) {
                    return Err(Error::invalid(format!(
                        "the graph keeps one tensor for {key} and another weight, which now differ"
                    ))
                    .hint("export it from a network whose weights are not all alike"));
                }
            }
            for (name, parts) in parts {
                values.insert(name.to_string(), Packed::join(&parts)?);
            }
            sampan_io::onnx::save_like(path, template, &values)
        }
        Some(Format::Npy | Format::Events) => {
            Err(Error::invalid(format!("{} cannot hold weights by name", path.display()))
                .hint("known are .pdparams, .pdiparams, .pth, .safetensors, .npz and, with a graph, .onnx"))
        }
        Some(Format::Paddle | Format::PyTorch) => {
            let own: HashMap<&str, &str> =
                target.weights.iter().map(|w| (w.key.as_str(), w.own_name.as_str())).collect();
            // Paddle keeps the tensors' own names beside the keys; a tensor under two keys is one tensor.
            for (key, tensor) in state {
                if let Some(name) = own.get(key.as_str()).filter(|n| !n.is_empty()) {
                    tensor.set_name(*name);
                }
            }
            let dict: Dict = state.iter().map(|(k, t)| (k, t)).collect();
            sampan_io::save(path, &dict.into())
        }
        None => Err(Error::invalid(format!("the name of {} does not tell the format", path.display()))
            .hint("known are .pdparams, .pdiparams, .pth, .safetensors, .npz and, with a graph, .onnx")),
    }
}
