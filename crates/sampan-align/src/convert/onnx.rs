//! The weights of an ONNX graph, with what its nodes tell about them.

use super::structure::{Convention, Kind, Packed, Structure, Weight};
use crate::Transform;
use sampan_core::ops::joining;
use sampan_core::{Error, Result, Tensor};
use sampan_io::onnx::{Graph, Use};
use std::collections::{HashMap, HashSet};

/// The gates of a recurrent node in ONNX's order, by their places in PyTorch's and Paddle's: input, forget, cell, output;
/// reset, update, new.
fn gates(op: &str) -> Option<&'static [usize]> {
    match op {
        "LSTM" => Some(&[0, 3, 1, 2]),
        "GRU" => Some(&[1, 0, 2]),
        "RNN" => Some(&[0]),
        _ => None,
    }
}

/// The weights that `W`, `R` or `B` of a recurrent node holds, with the names of layer `number` of a stack.
fn recurrent(used: &Use, tensor: &Tensor, layer: &str, number: usize) -> Result<Vec<(String, Tensor, Packed)>> {
    let Some(gates) = gates(&used.op) else { return Ok(Vec::new()) };
    let names: &[(&str, Option<usize>)] = match used.input {
        1 => &[("weight_ih", None)],
        2 => &[("weight_hh", None)],
        3 => &[("bias_ih", Some(0)), ("bias_hh", Some(1))],
        _ => return Ok(Vec::new()),
    };
    let directions = tensor.shape().first().copied().unwrap_or(0);
    let mut found = Vec::new();
    for direction in 0..directions {
        for &(name, half) in names {
            let packed = Packed { direction: (direction, directions), half, gates };
            let end = if direction == 0 { "" } else { "_reverse" };
            found.push((format!("{layer}.{name}_l{number}{end}"), packed.take(tensor)?, packed));
        }
    }
    Ok(found)
}

impl Packed {
    /// The weight out of the graph's tensor.
    fn take(&self, whole: &Tensor) -> Result<Tensor> {
        let mut one = whole.try_narrow(0, self.direction.0 as i64, 1)?.try_squeeze(vec![0i64])?;
        if let Some(half) = self.half {
            one = one.try_chunk(2, 0)?[half].clone();
        }
        let mut order = vec![0; self.gates.len()];
        self.gates.iter().enumerate().for_each(|(at, &gate)| order[gate] = at);
        blocks(&one, &order)
    }

    /// The graph's tensor out of its weights.
    pub(super) fn join(parts: &[(Packed, Tensor)]) -> Result<Tensor> {
        let mut directions = Vec::new();
        for direction in 0..parts.first().map_or(0, |(p, _)| p.direction.1) {
            let mut own: Vec<&(Packed, Tensor)> = parts.iter().filter(|(p, _)| p.direction.0 == direction).collect();
            own.sort_by_key(|(p, _)| p.half);
            let halves: Vec<Tensor> = own.iter().map(|(p, t)| blocks(t, p.gates)).collect::<Result<_>>()?;
            if halves.is_empty() || own[0].0.half.is_some() && halves.len() != 2 {
                return Err(Error::invalid("a recurrent layer lacks weights that the graph keeps in one tensor"));
            }
            directions.push(joining::try_concat(&halves, 0)?.try_unsqueeze(vec![0i64])?);
        }
        joining::try_concat(&directions, 0)
    }
}

/// Equal blocks of rows in another order.
fn blocks(tensor: &Tensor, order: &[usize]) -> Result<Tensor> {
    let transform = Transform { gates: Some(order.to_vec()), ..Transform::default() };
    transform.apply(tensor, tensor.shape())
}

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
pub(super) fn structure(name: String, graph: &Graph) -> Result<Structure> {
    let mut found: Vec<((usize, usize), Weight)> = Vec::new();
    let mut seen = HashSet::new();
    let numbers = stacked(graph);
    for (weight, used) in graph.initialisers.iter().flat_map(|w| w.uses.iter().map(move |u| (w, u))) {
        if let Some((layer, number)) = numbers.get(&used.node) {
            for (key, tensor, packed) in recurrent(used, &weight.tensor, layer, *number)? {
                let own_name = weight.name.clone();
                let entry = Weight { own_name, packed: Some(packed), ..Weight::of(key, tensor, Kind::Same) };
                found.push(((used.node, used.input), entry));
            }
            continue;
        }
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
    Ok(Structure { name, convention: Some(Convention::Torch), ordered: true, weights })
}

/// The recurrent nodes: the layer of each, and its number in it, for a stack is a node for each of its layers.
fn stacked(graph: &Graph) -> HashMap<usize, (String, usize)> {
    let uses = graph.initialisers.iter().flat_map(|w| &w.uses);
    let mut nodes: Vec<(usize, String)> =
        uses.filter(|u| gates(&u.op).is_some() && u.input == 1).map(|u| (u.node, layer_of(u))).collect();
    nodes.sort();
    nodes.dedup();
    let mut counts: HashMap<String, usize> = HashMap::new();
    let number = |(node, layer): (usize, String)| {
        let count = counts.entry(layer.clone()).or_default();
        *count += 1;
        (node, (layer, *count - 1))
    };
    nodes.into_iter().map(number).collect()
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

    #[test]
    fn gates_are_taken_apart_and_put_together() {
        let ramp = |shape: &[usize]| {
            let values: Vec<f32> = (0..shape.iter().product::<usize>()).map(|i| i as f32).collect();
            Tensor::try_from_slice(&values, shape).unwrap()
        };
        let of = |op: &str, input: usize, whole: &Tensor| {
            let used = Use { alias: String::new(), node: 0, name: String::new(), op: op.into(), input, turned: false };
            recurrent(&used, whole, "rnn", 1).unwrap()
        };
        for (op, input, shape, names, second) in [
            ("LSTM", 1, &[2, 4, 1][..], &["weight_ih_l1", "weight_ih_l1_reverse"][..], [4., 6., 7., 5.].to_vec()),
            ("LSTM", 3, &[1, 8], &["bias_ih_l1", "bias_hh_l1"], [4., 6., 7., 5.].to_vec()),
            ("GRU", 2, &[2, 3, 1], &["weight_hh_l1", "weight_hh_l1_reverse"], [4., 3., 5.].to_vec()),
        ] {
            let whole = ramp(shape);
            let parts = of(op, input, &whole);
            assert_eq!(parts.iter().map(|p| p.0.trim_start_matches("rnn.")).collect::<Vec<_>>(), names);
            assert_eq!(parts[1].1.to_vec::<f32>(), second, "{op}");
            let parts: Vec<(Packed, Tensor)> = parts.into_iter().map(|(_, t, p)| (p, t)).collect();
            let joined = Packed::join(&parts).unwrap();
            assert_eq!((joined.shape(), joined.to_bytes()), (whole.shape(), whole.to_bytes()));
            assert!(input != 3 || Packed::join(&parts[..1]).is_err());
        }
    }
}
