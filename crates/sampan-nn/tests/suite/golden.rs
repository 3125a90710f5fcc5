//! Outputs, gradients, statistics and names of every layer against the real peer's, recorded by
//! `scripts/layers_golden.py`.

use crate::table::{Row, fill, rows, wave};
use safetensors::SafeTensors;
use safetensors::tensor::TensorView;
use sampan_core::class::{self, ClassDef};
use sampan_core::{DType, GradOptions, Result, Tensor, Value, grad};
use sampan_nn::{Layer, Members};
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;

struct Peer<'a> {
    recorded: SafeTensors<'a>,
    failures: Vec<String>,
    compared: usize,
}

impl Peer<'_> {
    fn compare(&mut self, key: &str, ours: &Tensor, tol: f64) {
        self.compared += 1;
        let Ok(peer) = self.recorded.tensor(key) else {
            self.failures.push(format!("{key}: the peer has no such tensor"));
            return;
        };
        if let Some(failure) = difference(ours, &peer, tol) {
            self.failures.push(format!("{key}: {failure}"));
        }
    }
}

fn difference(ours: &Tensor, peer: &TensorView, tol: f64) -> Option<String> {
    let values: Vec<f64> =
        peer.data().chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap()).into()).collect();
    if ours.shape() != peer.shape() {
        return Some(format!("shape {:?} against the peer's {:?}", ours.shape(), peer.shape()));
    }
    let scale = values.iter().fold(0.0f64, |m, v| m.max(v.abs()));
    let close = |a: f64, b: f64| (a - b).abs() <= tol * (b.abs() + 0.1 * scale + 1e-3);
    let found = ours.to_f64_vec().into_iter().zip(values).enumerate().find(|(_, (a, b))| !close(*a, *b));
    found.map(|(i, (a, b))| format!("element {i} is {a} against the peer's {b}"))
}

fn fixture() -> Vec<u8> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/layers.safetensors");
    std::fs::read(path).expect("tests/layers.safetensors is committed")
}

#[test]
fn layers_agree_with_the_peer() {
    let bytes = fixture();
    let (_, header) = SafeTensors::read_metadata(&bytes).unwrap();
    let notes = header.metadata().clone().unwrap_or_default();
    let recorded = SafeTensors::deserialize(&bytes).unwrap();
    let mut peer = Peer { recorded, failures: Vec::new(), compared: 0 };
    for (name, rows) in rows() {
        let Some(class) = class::find("nn", &name) else { continue };
        for (i, row) in rows.iter().enumerate().filter(|(_, row)| !row.has("no_peer")) {
            let key = format!("{name}/{i}");
            let Some(note) = notes.get(&key) else {
                peer.failures.push(format!("{key}: not recorded, run scripts/layers_golden.py"));
                continue;
            };
            let note: Json = serde_json::from_str(note).unwrap();
            if let Err(e) = check(&mut peer, &key, class, row, &note) {
                peer.failures.push(format!("{key}: {e}"));
            }
        }
    }
    eprintln!("{} tensors compared", peer.compared);
    assert!(peer.failures.is_empty(), "{} disagree:\n{}", peer.failures.len(), peer.failures.join("\n"));
}

/// Names, order and defaults of the arguments are the peer's.
#[test]
fn constructors_take_what_the_peer_s_take() {
    let bytes = fixture();
    let (_, header) = SafeTensors::read_metadata(&bytes).unwrap();
    let notes = header.metadata().clone().unwrap_or_default();
    let signatures: BTreeMap<String, Json> = serde_json::from_str(&notes["signatures"]).unwrap();
    let mut failures = Vec::new();
    for (name, theirs) in signatures {
        let Some(class) = class::find("nn", &name) else { continue };
        let ours = class.params.iter().map(|p| match p.default {
            None => json!([p.name]),
            Some(default) => json!([p.name, in_json(&default())]),
        });
        let ours = Json::Array(ours.collect());
        // `1` and `1.0` are the same default.
        let plain = |v: &Json| v.to_string().replace(".0]", "]");
        if plain(&ours) != plain(&theirs) {
            failures.push(format!("{name}: {ours}, the peer's {theirs}"));
        }
    }
    assert!(failures.is_empty(), "{} differ:\n{}", failures.len(), failures.join("\n"));
}

fn in_json(v: &Value) -> Json {
    match v {
        Value::None => Json::Null,
        Value::Bool(b) => (*b).into(),
        Value::Int(i) => (*i).into(),
        Value::Float(f) => (*f).into(),
        Value::Str(s) => s.to_string().into(),
        Value::DType(d) => d.to_string().into(),
        Value::Ints(v) => v.to_vec().into(),
        other => panic!("no default is {other:?}"),
    }
}

fn check(peer: &mut Peer, key: &str, class: &ClassDef, row: &Row, note: &Json) -> Result<()> {
    let dtype = note["dtype"].as_str().and_then(DType::from_name).expect("a dtype");
    let tol = row.tol().unwrap_or(if dtype == DType::Float64 { 3e-7 } else { 1e-5 });
    let layer = row.build_in(class, dtype)?;
    names(peer, key, &*layer, note);
    layer.to_dtype(dtype)?;
    fill(&*layer);
    let inputs = row.inputs(dtype);
    if !row.has("random") {
        let outputs = layer.call_all(&inputs)?;
        for (i, out) in outputs.iter().enumerate() {
            peer.compare(&format!("{key}/out{i}"), out, tol);
        }
        if !row.has("no_peer_grad") {
            gradients(peer, key, &*layer, &inputs, &outputs, tol * 10.0)?;
        }
        for (name, t) in layer.state_dict().iter().filter(|(_, t)| t.stop_gradient()) {
            peer.compare(&format!("{key}/state:{name}"), t, tol);
        }
    }
    layer.eval();
    for (i, out) in layer.call_all(&inputs)?.iter().enumerate() {
        // Where evaluation is no different, the peer's output is recorded once.
        let own = format!("{key}/eval{i}");
        let once = peer.recorded.tensor(&own).is_err() && !row.has("random");
        peer.compare(&if once { format!("{key}/out{i}") } else { own }, out, tol);
    }
    Ok(())
}

fn gradients(
    peer: &mut Peer,
    key: &str,
    layer: &dyn Layer,
    inputs: &[Tensor],
    outputs: &[Tensor],
    tol: f64,
) -> Result<()> {
    let mut leaves: Vec<(String, Tensor)> = Vec::new();
    for (i, t) in inputs.iter().enumerate().filter(|(_, t)| t.requires_grad()) {
        leaves.push((format!("{key}/grad_in{i}"), t.clone()));
    }
    for (name, p) in layer.named_parameters().iter().filter(|(_, p)| p.trainable()) {
        leaves.push((format!("{key}/grad:{name}"), p.tensor()));
    }
    let tracked: Vec<Tensor> = outputs.iter().filter(|t| t.requires_grad()).cloned().collect();
    let incoming = tracked.iter().map(|t| Some(Tensor::from_vec(wave(t.numel(), 1.0, 0.0), t.shape()).cast(t.dtype())));
    let options = GradOptions { allow_unused: true, ..Default::default() };
    let wanted: Vec<Tensor> = leaves.iter().map(|(_, t)| t.clone()).collect();
    let found = grad(&tracked, &wanted, &incoming.collect::<Vec<_>>(), options)?;
    for ((name, _), g) in leaves.iter().zip(found) {
        match g {
            Some(g) => peer.compare(name, &g, tol),
            None => peer.failures.push(format!("{name}: we have no gradient")),
        }
    }
    Ok(())
}

/// A list of one number as the number: both are told as either.
fn plain(description: &str) -> String {
    let one = |part: &str| match part.split_once("=[") {
        Some((name, list)) if list.ends_with(']') => format!("{name}={}", list.trim_end_matches(']')),
        _ => match part.split_once('=').and_then(|(name, v)| Some((name, v.parse::<f64>().ok()?))) {
            Some((name, number)) => format!("{name}={number}"),
            None => part.to_string(),
        },
    };
    description.split(", ").map(one).collect::<Vec<_>>().join(", ")
}

/// The description of the layer, and its name and those of its parameters and buffers, apart from the layer's number.
fn names(peer: &mut Peer, key: &str, layer: &dyn Layer, note: &Json) {
    let Some(prefix) = note["prefix"].as_str() else { return };
    let full = layer.base().expect("a layer of ours has a base").full_name().to_string();
    let ours = full.rsplit_once('_').map_or("", |(prefix, _)| prefix);
    if ours != prefix {
        peer.failures.push(format!("{key}: is called {ours}, the peer's {prefix}"));
    }
    // Where the peer says nothing about a layer, we may.
    let (ours, theirs) = (layer.extra_repr(), note["repr"].as_str().unwrap_or_default());
    if plain(&ours) != plain(theirs) && !theirs.is_empty() {
        peer.failures.push(format!("{key}: is described as {ours}, the peer's as {theirs}"));
    }
    let ours: serde_json::Map<String, Json> =
        layer.state_dict().iter().map(|(name, t)| (name.clone(), Json::from(unnumbered(&t.name())))).collect();
    if note["names"] != Json::Object(ours.clone()) {
        peer.failures.push(format!("{key}: members {ours:?}, the peer's {}", note["names"]));
    }
}

/// `linear_3.w_0` as `linear.w_0`.
fn unnumbered(name: &str) -> String {
    match name.split_once('.') {
        Some((layer, member)) => format!("{}.{member}", layer.rsplit_once('_').map_or(layer, |(prefix, _)| prefix)),
        None => name.into(),
    }
}
