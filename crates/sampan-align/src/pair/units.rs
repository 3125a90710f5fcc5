//! What is paired: calls of layers and functions, or layers with parameters where nothing ran.

use crate::kinds;
use crate::{Layer, Structure};

/// One thing to be paired.
#[derive(Clone, Debug)]
pub(crate) struct Unit {
    /// Index of the call; unused for layers that did not run.
    pub call: usize,
    pub layer: String,
    pub key: String,
    pub kind: String,
    pub is_layer: bool,
    /// Made of constants alone?
    pub constant: bool,
    /// Shapes of the parameters, each with its sides sorted: a transposed weight is the same weight.
    pub parameters: Vec<Vec<usize>>,
    pub output: Vec<usize>,
    pub stats: Option<[f64; 4]>,
}

fn sorted(shape: &[usize]) -> Vec<usize> {
    let mut s: Vec<usize> = shape.iter().copied().filter(|&d| d != 1).collect();
    s.sort_unstable();
    s
}

/// Parameters of a layer and of all that is in it.
pub(crate) fn subtree<'s>(side: &'s Structure, layer: &str) -> impl Iterator<Item = &'s crate::Parameter> {
    let layer = layer.to_string();
    side.layers
        .iter()
        .filter(move |l| {
            l.name == layer
                || l.name.strip_prefix(layer.as_str()).is_some_and(|r| r.starts_with('.') || layer.is_empty())
        })
        .flat_map(|l| &l.parameters)
}

fn shapes(side: &Structure, layer: &str) -> Vec<Vec<usize>> {
    let mut all: Vec<_> = subtree(side, layer).filter(|p| !p.shape.is_empty()).map(|p| sorted(&p.shape)).collect();
    all.sort();
    all
}

/// The calls in order of execution, without those that hold others.
pub(crate) fn of_calls(side: &Structure) -> Vec<Unit> {
    let leaf = |(i, call): (usize, &crate::Call)| Unit {
        call: i,
        layer: call.layer.clone(),
        key: call.key.clone(),
        kind: kinds::kind(&call.op),
        is_layer: !call.function,
        constant: call.constant,
        parameters: if call.function { Vec::new() } else { shapes(side, &call.layer) },
        output: call.shapes.first().map_or(Vec::new(), |s| sorted(s)),
        stats: call.stats,
    };
    side.calls.iter().enumerate().filter(|(_, c)| !c.container).map(leaf).collect()
}

/// Does it keep the projections of attention in one weight?
pub(crate) fn is_fused(side: &Structure) -> bool {
    side.parameters().any(|p| p.name.ends_with("in_proj_weight"))
}

/// What a layer is, by its class or, in a file of weights, by its parameters.
fn kind_of(layer: &Layer) -> String {
    if !layer.class.is_empty() {
        return kinds::kind(&layer.class);
    }
    let has = |end: &str| layer.parameters.iter().any(|p| p.name.ends_with(end));
    let weight = layer.parameters.iter().find(|p| p.name.ends_with("weight"));
    match weight.map(|w| w.shape.len()) {
        _ if has("running_mean") || has("_mean") => "batch_norm".into(),
        _ if has("weight_ih_l0") || has("weight_hh_l0") || has("weight_ih") => "rnn".into(),
        _ if has("in_proj_weight") => "mha".into(),
        Some(5) => "conv3d".into(),
        Some(4) => "conv2d".into(),
        Some(3) => "conv1d".into(),
        Some(2) if has("bias") => "linear".into(),
        Some(2) => "matrix".into(),
        Some(1) => "norm".into(),
        _ => String::new(),
    }
}

/// The name of the layer that parameters belong to once those of a recurrent stack or of an attention are one layer.
fn owner(side: &Structure, layer: &str, fold: bool) -> String {
    let parts: Vec<&str> = layer.split('.').collect();
    let n = parts.len();
    if n >= 2 && parts[n - 1].starts_with("cell") && parts[n - 2].parse::<u32>().is_ok() {
        return parts[..n - 2].join(".");
    }
    let up = parts[..n.saturating_sub(1)].join(".");
    let class = |name: &str| side.layer(name).map_or(String::new(), |l| kinds::kind(&l.class));
    if matches!(parts[n - 1], "q_proj" | "k_proj" | "v_proj" | "out_proj") && n >= 2 {
        let torch =
            side.layers.iter().any(|l| l.name == up && l.parameters.iter().any(|p| p.name.ends_with("in_proj_weight")));
        let ours = side.layers.iter().any(|l| l.name == format!("{up}.q_proj"));
        if torch || class(&up) == "mha" || (fold && ours) {
            return up;
        }
    }
    layer.to_string()
}

/// The layers that have parameters, in order of definition.
pub(crate) fn of_layers(side: &Structure, fold: bool) -> Vec<Unit> {
    let mut units: Vec<Unit> = Vec::new();
    for layer in side.layers.iter().filter(|l| !l.parameters.is_empty()) {
        let name = owner(side, &layer.name, fold);
        if let Some(known) = units.iter_mut().find(|u| u.layer == name) {
            known.parameters.extend(layer.parameters.iter().map(|p| sorted(&p.shape)));
            known.parameters.sort();
            continue;
        }
        let kind = match side.layer(&name) {
            _ if name != layer.name && layer.name.ends_with("_proj") => "mha".into(),
            _ if name != layer.name => "rnn".into(),
            own => kind_of(own.unwrap_or(layer)),
        };
        let mut parameters: Vec<_> =
            layer.parameters.iter().filter(|p| !p.shape.is_empty()).map(|p| sorted(&p.shape)).collect();
        parameters.sort();
        units.push(Unit {
            call: 0,
            key: name.clone(),
            layer: name,
            kind,
            is_layer: true,
            constant: false,
            parameters,
            output: Vec::new(),
            stats: None,
        });
    }
    units
}
