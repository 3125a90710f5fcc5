//! The initialisers of an ONNX file, what the graph does with them, and other values in their place.
//!
//! No more of the graph is read here than tells what a weight is: which node takes it, as which of its inputs, and whether the
//! node turns it. [`model`] reads and writes all of it.

mod encode;
pub mod model;
mod tensor;

use crate::fault::{Fault, Parse};
use crate::object::Dict;
use crate::proto::{self, Field, Message};
use crate::{atomic, read_file};
use sampan_core::{Result, Tensor};
use std::collections::HashMap;
use std::path::Path;

pub use tensor::{code_of, dtype_of};

const FORMAT: &str = "ONNX file";

/// A weight of a graph.
#[derive(Clone, Debug)]
pub struct Initialiser {
    /// Its name in the graph.
    pub name: String,
    /// Its values.
    pub tensor: Tensor,
    /// What the graph does with it. One tensor may be the weight of several layers, where they have the same values.
    pub uses: Vec<Use>,
}

/// How a node takes a weight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Use {
    /// The name under which the node takes it: an `Identity` may have given it another.
    pub alias: String,
    /// The place of the node in the graph.
    pub node: usize,
    /// The name of the node, which may be empty.
    pub name: String,
    /// What the node computes: `Conv`, `Gemm`, `MatMul` …
    pub op: String,
    /// Which input of the node it is, from 0.
    pub input: usize,
    /// Is a matrix turned on the way, by `transB` of `Gemm` or a `Transpose`?
    pub turned: bool,
}

/// The weights of a graph, in the order in which nodes take them.
#[derive(Clone, Debug)]
pub struct Graph {
    /// The weights.
    pub initialisers: Vec<Initialiser>,
}

/// Reads the weights of a graph. Values beside the file are read from its folder alone.
pub fn load(path: impl AsRef<Path>) -> Result<Graph> {
    let path = path.as_ref();
    let read = || Graph::read(&read_file(path)?, Some(atomic::folder_of(path)));
    read().map_err(|e| e.into_error("load", FORMAT, Some(path)))
}

/// Like [`load`], from memory; values beside the file cannot be read.
pub fn from_bytes(bytes: &[u8]) -> Result<Graph> {
    Graph::read(bytes, None).map_err(|e| e.into_error("load", FORMAT, None))
}

/// Writes the graph of `template` to `path` with other values in place of some of its weights: names, shapes and dtypes
/// stay.
pub fn save_like(path: impl AsRef<Path>, template: impl AsRef<Path>, values: &HashMap<String, Tensor>) -> Result<()> {
    let (path, template) = (path.as_ref(), template.as_ref());
    let read = || replaced(&read_file(template)?, atomic::folder_of(template), values);
    let bytes = read().map_err(|e| e.into_error("save", FORMAT, Some(template)))?;
    atomic::write(path, &bytes)
}

/// A node, as far as it matters.
struct Node {
    name: String,
    op: String,
    inputs: Vec<String>,
    outputs: Vec<String>,
    turns_second: bool,
}

fn text(bytes: &[u8]) -> Parse<String> {
    String::from_utf8(bytes.to_vec()).map_err(|_| Fault::damaged("a name that is no UTF-8"))
}

fn node(message: &[u8]) -> Parse<Node> {
    let mut node =
        Node { name: String::new(), op: String::new(), inputs: Vec::new(), outputs: Vec::new(), turns_second: false };
    for field in proto::fields(message) {
        match field? {
            (1, Field::Bytes(b)) => node.inputs.push(text(b)?),
            (2, Field::Bytes(b)) => node.outputs.push(text(b)?),
            (3, Field::Bytes(b)) => node.name = text(b)?,
            (4, Field::Bytes(b)) => node.op = text(b)?,
            (5, Field::Bytes(b)) => {
                let (mut name, mut value) = (&b""[..], 0);
                for field in proto::fields(b) {
                    match field? {
                        (1, Field::Bytes(b)) => name = b,
                        (3, Field::Varint(v)) => value = v,
                        _ => {}
                    }
                }
                node.turns_second |= name == b"transB" && value != 0;
            }
            _ => {}
        }
    }
    Ok(node)
}

/// The graph of a model.
fn graph_of(bytes: &[u8]) -> Parse<&[u8]> {
    let mut graph = None;
    for field in proto::fields(bytes) {
        if let (7, Field::Bytes(b)) = field? {
            graph = Some(b);
        }
    }
    graph.ok_or_else(|| Fault::damaged("there is no graph in it"))
}

impl Graph {
    pub(crate) fn read(bytes: &[u8], folder: Option<&Path>) -> Parse<Graph> {
        let mut nodes = Vec::new();
        let mut initialisers: Vec<Initialiser> = Vec::new();
        let mut beside = tensor::Beside::new(folder);
        for field in proto::fields(graph_of(bytes)?) {
            match field? {
                (1, Field::Bytes(b)) => nodes.push(node(b)?),
                (5, Field::Bytes(b)) => {
                    let (name, tensor) = tensor::read(b, &mut beside)?;
                    initialisers.push(Initialiser { name, tensor, uses: Vec::new() });
                }
                (15, Field::Bytes(_)) => return Err(Fault::unsupported("a sparse initialiser")),
                _ => {}
            }
        }
        let places: HashMap<String, usize> =
            initialisers.iter().enumerate().map(|(i, w)| (w.name.clone(), i)).collect();
        // What is a weight under another name: behind `Identity`, or turned by `Transpose`.
        let mut also: HashMap<&str, (usize, bool)> =
            places.iter().map(|(name, &i)| (name.as_str(), (i, false))).collect();
        for (at, node) in nodes.iter().enumerate() {
            for (input, name) in node.inputs.iter().enumerate() {
                let Some(&(weight, turned)) = also.get(name.as_str()) else { continue };
                if matches!(node.op.as_str(), "Identity" | "Transpose" | "Cast") && node.outputs.len() == 1 {
                    also.insert(&node.outputs[0], (weight, turned ^ (node.op == "Transpose")));
                    continue;
                }
                let turned = turned ^ (node.turns_second && input == 1);
                let (alias, name, op) = (name.clone(), node.name.clone(), node.op.clone());
                initialisers[weight].uses.push(Use { alias, node: at, name, op, input, turned });
            }
        }
        initialisers.sort_by_key(|w| w.uses.first().map_or((usize::MAX, 0), |u| (u.node, u.input)));
        Ok(Graph { initialisers })
    }

    /// The weights by name, in order.
    pub fn tensors(&self) -> Dict {
        self.initialisers.iter().map(|w| (&w.name, &w.tensor)).collect()
    }
}

/// A model with some of its weights replaced. Everything else is copied as it stands.
fn replaced(bytes: &[u8], folder: &Path, values: &HashMap<String, Tensor>) -> Parse<Vec<u8>> {
    let mut beside = tensor::Beside::new(Some(folder));
    let mut graph = Message::new();
    for field in proto::fields(graph_of(bytes)?) {
        graph = match field? {
            (5, Field::Bytes(b)) => {
                // Values beside the template move into the file, which then stands alone.
                let (name, old) = tensor::read(b, &mut beside)?;
                let new = match values.get(&name) {
                    None if tensor::stands_alone(b) => {
                        graph = graph.bytes(5, b);
                        continue;
                    }
                    given => given.unwrap_or(&old),
                };
                if new.shape() != old.shape() {
                    let (have, want) = (new.shape(), old.shape());
                    return Err(Fault::damaged(format!("{name} has the shape {want:?} there, and {have:?} is given")));
                }
                graph.message(5, &tensor::write(&name, &new.try_cast(old.dtype())?)?)
            }
            (number, field) => graph.field(number, &field),
        };
    }
    let mut model = Message::new();
    for field in proto::fields(bytes) {
        model = match field? {
            (7, _) => model.message(7, &graph),
            (number, field) => model.field(number, &field),
        };
    }
    Ok(model.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A matrix under a name, with its values inside or in a file beside it.
    fn weight(name: &str, beside: Option<&str>) -> Message {
        let message = Message::new().int(1, 2).int(1, 2).int(2, 1).text(8, name);
        let Some(location) = beside else {
            return message.bytes(9, &[1f32, 2., 3., 4.].map(f32::to_le_bytes).concat());
        };
        let entry = |key: &str, value: &str| Message::new().text(1, key).text(2, value);
        let place = |m: Message, key: &str, value: &str| m.message(13, &entry(key, value));
        place(place(place(message, "location", location), "offset", "4"), "length", "16").int(14, 1)
    }

    fn model(weights: &[Message]) -> Vec<u8> {
        let turned = Message::new().text(1, "transB").int(3, 1);
        let gemm = Message::new()
            .text(1, "x")
            .text(1, "w")
            .text(2, "y")
            .text(3, "/fc/Gemm")
            .text(4, "Gemm")
            .message(5, &turned);
        let matmul = Message::new().text(1, "y").text(1, "v").text(2, "z").text(4, "MatMul");
        let graph = Message::new().message(1, &gemm).message(1, &matmul);
        let graph = weights.iter().fold(graph, |g, w| g.message(5, w));
        Message::new().int(1, 8).message(7, &graph).0
    }

    #[test]
    fn nodes_tell_what_weights_are() {
        let graph = from_bytes(&model(&[weight("v", None), weight("w", None), weight("unused", None)])).unwrap();
        let told: Vec<_> = graph
            .initialisers
            .iter()
            .map(|w| (w.name.as_str(), w.uses.first().map(|u| (u.op.as_str(), u.turned))))
            .collect();
        assert_eq!(told, [("w", Some(("Gemm", true))), ("v", Some(("MatMul", false))), ("unused", None)]);
        assert_eq!(graph.initialisers[0].tensor.to_vec::<f32>(), [1., 2., 3., 4.]);
    }

    #[test]
    fn values_beside_the_file_stay_in_its_folder() {
        let folder = std::env::temp_dir().join(format!("sampan-onnx-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("net.onnx");
        std::fs::write(folder.join("net.data"), [0f32, 5., 6., 7., 8.].map(f32::to_le_bytes).concat()).unwrap();
        let read = |location: &str, times: usize| {
            let weights: Vec<_> = (0..times).map(|i| weight(&i.to_string(), Some(location))).collect();
            std::fs::write(&path, model(&weights)).unwrap();
            load(&path)
        };
        assert_eq!(read("net.data", 1).unwrap().initialisers[0].tensor.to_vec::<f32>(), [5., 6., 7., 8.]);
        // Values that many weights claim, as a file that asks for memory would have them.
        assert!(read("net.data", 2).unwrap_err().to_string().contains("more values"));
        for place in ["/etc/passwd", "../net.data", "", "missing"] {
            assert!(read(place, 1).is_err(), "{place}");
        }
        assert!(from_bytes(&model(&[weight("w", Some("net.data"))])).unwrap_err().to_string().contains("beside"));
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn other_values_in_place_of_weights() {
        let folder = std::env::temp_dir().join(format!("sampan-onnx-like-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (template, path) = (folder.join("a.onnx"), folder.join("b.onnx"));
        std::fs::write(&template, model(&[weight("w", None), weight("v", None)])).unwrap();
        let values =
            |shape: [usize; 2]| HashMap::from([("v".to_string(), Tensor::zeros(shape, sampan_core::DType::Float32))]);
        save_like(&path, &template, &values([2, 2])).unwrap();
        let new = load(&path).unwrap();
        assert_eq!(new.initialisers[0].tensor.to_vec::<f32>(), [1., 2., 3., 4.]);
        assert_eq!(new.initialisers[1].tensor.to_vec::<f32>(), [0.; 4]);
        assert_eq!(new.initialisers[0].uses, load(&template).unwrap().initialisers[0].uses);
        assert!(save_like(&path, &template, &values([1, 4])).unwrap_err().to_string().contains("shape"));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
