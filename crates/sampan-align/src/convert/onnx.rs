//! The weights of an ONNX graph, with what its nodes tell about them.

use super::structure::{Convention, Kind, Structure, Weight};
use sampan_io::onnx::{Graph, Use};
use std::collections::HashSet;

/// What an input of a node is: the name it would have in a state, what its layer is, and how a matrix lies.
fn known(used: &Use) -> Option<(&'static str, Kind, Option<Convention>)> {
    let names: &[&str] = match used.op.as_str() {
        "Conv" | "ConvTranspose" | "Gemm" => &["", "weight", "bias"],
        "BatchNormalization" => &["", "weight", "bias", "running_mean", "running_var"],
        "LayerNormalization" | "InstanceNormalization" | "GroupNormalization" => &["", "weight", "bias"],
        "MatMul" | "PRelu" => &["", "weight"],
        "Gather" => &["weight"],
        _ => return None,
    };
    let name = names.get(used.input).copied().filter(|n| !n.is_empty())?;
    let kind = match used.op.as_str() {
        "Gemm" | "MatMul" => Kind::Linear,
        "Gather" => Kind::Embedding,
        "Conv" | "ConvTranspose" | "PRelu" => Kind::Same,
        _ => Kind::Norm,
    };
    // `y = x W` is how Paddle keeps W; turned on the way, it lies as PyTorch's.
    let lies = if used.turned { Convention::Torch } else { Convention::Paddle };
    Some((name, kind, (kind == Kind::Linear && name == "weight").then_some(lies)))
}

/// The layer that a node belongs to: `/layer1/layer1.0/conv1/Conv` is of `layer1.0.conv1`.
fn layer_of(used: &Use) -> String {
    let mut parts: Vec<&str> = used.name.split('/').filter(|p| !p.is_empty()).collect();
    parts.pop();
    let mut scopes: Vec<&str> = Vec::new();
    for scope in parts {
        // A scope in a list repeats the name of the list: `layer1`, then `layer1.0`.
        if scopes.last().is_some_and(|last| scope.strip_prefix(last).is_some_and(|rest| rest.starts_with('.'))) {
            scopes.pop();
        }
        scopes.push(scope);
    }
    if scopes.is_empty() { format!("node{}", used.node) } else { scopes.join(".") }
}

/// The weights in the order in which the graph uses them. Constants that only shape the graph are left out.
pub(super) fn structure(name: String, graph: &Graph) -> Structure {
    let mut found: Vec<((usize, usize), Weight)> = Vec::new();
    let mut seen = HashSet::new();
    for (weight, used) in graph.initialisers.iter().flat_map(|w| w.uses.iter().map(move |u| (w, u))) {
        let role = known(used);
        let leaf = used.alias.rsplit('.').next().unwrap_or_default();
        let named = used.alias.contains('.') && !used.alias.contains("::") && !used.alias.contains('/');
        let (kind, convention) = match role {
            Some((_, kind, convention)) => (kind, convention),
            // A bias is added by a node of its own where the product is a `MatMul`.
            None if named && weight.tensor.dtype().is_float() => (Kind::Unknown, None),
            None => continue,
        };
        let plain = named && ["weight", "bias", "running_mean", "running_var"].contains(&leaf);
        let key = match role {
            // A weight that lost its name in the export has that of its node.
            Some((role, ..)) if !plain => format!("{}.{role}", layer_of(used)),
            _ => used.alias.clone(),
        };
        if seen.insert(key.clone()) {
            let mut entry = Weight::of(key, weight.tensor.clone(), kind);
            (entry.convention, entry.own_name) = (convention, weight.name.clone());
            found.push(((used.node, used.input), entry));
        }
    }
    found.sort_by_key(|(place, _)| *place);
    let weights = found.into_iter().map(|(_, weight)| weight).collect();
    Structure { name, convention: Some(Convention::Torch), ordered: true, weights }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_of_a_node_are_the_path_of_its_layer() {
        let layer = |name: &str| {
            let (alias, op) = (String::new(), String::new());
            layer_of(&Use { alias, node: 3, name: name.into(), op, input: 1, turned: false })
        };
        assert_eq!(layer("/layer1/layer1.0/conv1/Conv"), "layer1.0.conv1");
        assert_eq!(layer("/a/MatMul"), "a");
        assert_eq!(layer("/encoder/layers.0/layers.0.1/fc/Gemm"), "encoder.layers.0.1.fc");
        assert_eq!(layer("Conv_7"), "node3");
    }
}
