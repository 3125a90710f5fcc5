//! ONNX's `ModelProto` as data: graphs of nodes, with their attributes and initialisers. What the nodes mean is not known
//! here.

use super::encode::encode;
use super::tensor::{self, Beside};
use super::{FORMAT, text};
use crate::cursor::Cursor;
use crate::fault::{Fault, Parse};
use crate::proto::{self, Field};
use crate::{atomic, read_file};
use sampan_core::{DType, Result, Tensor};
use std::path::Path;

/// Graphs in attributes of nodes of graphs …: deeper ones are no program's.
const DEEPEST: usize = 32;
/// More than this in one file, and values are written beside it: a message ends at two gigabytes.
const LARGEST: usize = 1 << 30;

/// A model: its graph, and which version of which operators it is written in.
#[derive(Clone, Debug, Default)]
pub struct Model {
    /// The version of the format.
    pub ir_version: i64,
    /// Who wrote it.
    pub producer: String,
    /// Domains of operators, `""` being ONNX's own, and their versions.
    pub opsets: Vec<(String, i64)>,
    /// What it computes.
    pub graph: Net,
    /// Operators that the model defines itself.
    pub functions: Vec<Function>,
}

/// A graph of nodes.
#[derive(Clone, Debug, Default)]
pub struct Net {
    /// Its name.
    pub name: String,
    /// What is computed, in order.
    pub nodes: Vec<Node>,
    /// Values that are there before, by name.
    pub initialisers: Vec<(String, Tensor)>,
    /// What it is called with; initialisers may be among them.
    pub inputs: Vec<ValueInfo>,
    /// What it gives.
    pub outputs: Vec<ValueInfo>,
}

/// A call of an operator.
#[derive(Clone, Debug, Default)]
pub struct Node {
    /// The operator.
    pub op: String,
    /// Whose operator; `""` is ONNX itself.
    pub domain: String,
    /// Its own name, which may be empty.
    pub name: String,
    /// The values it reads; an empty name stands for one that is left out.
    pub inputs: Vec<String>,
    /// The values it gives; an empty name stands for one that nobody reads.
    pub outputs: Vec<String>,
    /// Its settings.
    pub attrs: Vec<(String, Attr)>,
}

/// An attribute of a node.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum Attr {
    Int(i64),
    Float(f32),
    Text(Vec<u8>),
    Tensor(Tensor),
    Graph(Box<Net>),
    Ints(Vec<i64>),
    Floats(Vec<f32>),
    Texts(Vec<Vec<u8>>),
    /// In a function: the attribute of its caller under this name.
    Caller(String),
    /// Of a kind that is not read.
    Unknown,
}

/// What is known of a value.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ValueInfo {
    /// Its name.
    pub name: String,
    /// The type of its elements; none if it is no tensor or of a type that sampan lacks.
    pub dtype: Option<DType>,
    /// The extents, if their number is known.
    pub dims: Option<Vec<Extent>>,
}

/// An extent of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Extent {
    /// It is this number.
    Fixed(usize),
    /// It may be any; those of the same name are equal.
    Named(String),
}

/// An operator that a model defines.
#[derive(Clone, Debug, Default)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Its domain.
    pub domain: String,
    /// The names of its arguments.
    pub inputs: Vec<String>,
    /// The names of its results.
    pub outputs: Vec<String>,
    /// What it is made of.
    pub nodes: Vec<Node>,
    /// The operators that these are.
    pub opsets: Vec<(String, i64)>,
    /// Attributes that a caller may leave out.
    pub defaults: Vec<(String, Attr)>,
}

impl Node {
    /// An attribute by its name.
    pub fn attr(&self, name: &str) -> Option<&Attr> {
        self.attrs.iter().find(|(n, _)| n == name).map(|(_, a)| a)
    }
}

/// Reads a model. Values beside the file are read from its folder alone.
pub fn load(path: impl AsRef<Path>) -> Result<Model> {
    let path = path.as_ref();
    let read = || decode(&read_file(path)?, Some(atomic::folder_of(path)));
    read().map_err(|e| e.into_error("load", FORMAT, Some(path)))
}

/// Like [`load`], from memory.
pub fn from_bytes(bytes: &[u8]) -> Result<Model> {
    decode(bytes, None).map_err(|e| e.into_error("load", FORMAT, None))
}

/// Reads a `TensorProto`, as test data has them: its name and its values.
pub fn tensor_from_bytes(bytes: &[u8]) -> Result<(String, Tensor)> {
    tensor::read(bytes, &mut Beside::new(None)).map_err(|e| e.into_error("load", "ONNX tensor", None))
}

/// Writes a model. Values of more than a gigabyte go into `path.data`.
pub fn save(path: impl AsRef<Path>, model: &Model) -> Result<()> {
    let path = path.as_ref();
    let size = |(_, t): &(String, Tensor)| t.numel() * t.dtype().size();
    let total: usize = model.graph.initialisers.iter().map(size).sum();
    let write = || -> Parse<Vec<u8>> {
        if total <= LARGEST {
            return Ok(encode(model, None)?.0);
        }
        let name = path.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned()) + ".data";
        let mut beside = tensor::Written { name, bytes: Vec::with_capacity(total) };
        let message = encode(model, Some(&mut beside))?;
        atomic::write(path.with_file_name(&beside.name), &beside.bytes)?;
        Ok(message.0)
    };
    let bytes = write().map_err(|e| e.into_error("save", FORMAT, Some(path)))?;
    atomic::write(path, &bytes)
}

/// The bytes of a model, with all values inside.
pub fn to_bytes(model: &Model) -> Result<Vec<u8>> {
    encode(model, None).map(|m| m.0).map_err(|e| e.into_error("save", FORMAT, None))
}

fn opset(bytes: &[u8]) -> Parse<(String, i64)> {
    let (mut domain, mut version) = (String::new(), 1);
    for field in proto::fields(bytes) {
        match field? {
            (1, Field::Bytes(b)) => domain = text(b)?,
            (2, Field::Varint(v)) => version = v as i64,
            _ => {}
        }
    }
    if domain == "ai.onnx" {
        domain.clear();
    }
    Ok((domain, version))
}

fn decode(bytes: &[u8], folder: Option<&Path>) -> Parse<Model> {
    let mut beside = Beside::new(folder);
    let mut model = Model::default();
    let mut found = false;
    for field in proto::fields(bytes) {
        match field? {
            (1, Field::Varint(v)) => model.ir_version = v as i64,
            (2, Field::Bytes(b)) => model.producer = text(b)?,
            (7, Field::Bytes(b)) => (model.graph, found) = (net(b, &mut beside, 0)?, true),
            (8, Field::Bytes(b)) => model.opsets.push(opset(b)?),
            (25, Field::Bytes(b)) => model.functions.push(function(b, &mut beside)?),
            _ => {}
        }
    }
    if found { Ok(model) } else { Err(Fault::damaged("there is no graph in it")) }
}

fn function(bytes: &[u8], beside: &mut Beside<'_>) -> Parse<Function> {
    let mut f = Function::default();
    for field in proto::fields(bytes) {
        match field? {
            (1, Field::Bytes(b)) => f.name = text(b)?,
            (4, Field::Bytes(b)) => f.inputs.push(text(b)?),
            (5, Field::Bytes(b)) => f.outputs.push(text(b)?),
            (7, Field::Bytes(b)) => f.nodes.push(node(b, beside, 0)?),
            (9, Field::Bytes(b)) => f.opsets.push(opset(b)?),
            (10, Field::Bytes(b)) => f.domain = text(b)?,
            (11, Field::Bytes(b)) => f.defaults.push(attr(b, beside, 0)?),
            _ => {}
        }
    }
    Ok(f)
}

fn net(bytes: &[u8], beside: &mut Beside<'_>, depth: usize) -> Parse<Net> {
    if depth > DEEPEST {
        return Err(Fault::damaged(format!("graphs inside of graphs, more than {DEEPEST} deep")));
    }
    let mut net = Net::default();
    for field in proto::fields(bytes) {
        match field? {
            (1, Field::Bytes(b)) => net.nodes.push(node(b, beside, depth)?),
            (2, Field::Bytes(b)) => net.name = text(b)?,
            (5, Field::Bytes(b)) => net.initialisers.push(tensor::read(b, beside)?),
            (11, Field::Bytes(b)) => net.inputs.push(value_info(b)?),
            (12, Field::Bytes(b)) => net.outputs.push(value_info(b)?),
            (15, Field::Bytes(_)) => return Err(Fault::unsupported("a sparse initialiser")),
            _ => {}
        }
    }
    Ok(net)
}

fn node(bytes: &[u8], beside: &mut Beside<'_>, depth: usize) -> Parse<Node> {
    let mut node = Node::default();
    for field in proto::fields(bytes) {
        match field? {
            (1, Field::Bytes(b)) => node.inputs.push(text(b)?),
            (2, Field::Bytes(b)) => node.outputs.push(text(b)?),
            (3, Field::Bytes(b)) => node.name = text(b)?,
            (4, Field::Bytes(b)) => node.op = text(b)?,
            (5, Field::Bytes(b)) => node.attrs.push(attr(b, beside, depth)?),
            (7, Field::Bytes(b)) if b != b"ai.onnx" => node.domain = text(b)?,
            _ => {}
        }
    }
    Ok(node)
}

fn attr(bytes: &[u8], beside: &mut Beside<'_>, depth: usize) -> Parse<(String, Attr)> {
    let (mut name, mut kind, mut found) = (String::new(), 0, None);
    let (mut ints, mut floats, mut texts) = (Vec::new(), Vec::new(), Vec::new());
    for field in proto::fields(bytes) {
        let (number, field) = field?;
        match (number, &field) {
            (1, Field::Bytes(b)) => name = text(b)?,
            (2, Field::Fixed32(v)) => found = Some(Attr::Float(f32::from_bits(*v))),
            (3, Field::Varint(v)) => found = Some(Attr::Int(*v as i64)),
            (4, Field::Bytes(b)) => found = Some(Attr::Text(b.to_vec())),
            (5, Field::Bytes(b)) => found = Some(Attr::Tensor(tensor::read(b, beside)?.1)),
            (6, Field::Bytes(b)) => found = Some(Attr::Graph(Box::new(net(b, beside, depth + 1)?))),
            (7, Field::Fixed32(v)) => floats.push(f32::from_bits(*v)),
            (7, Field::Bytes(b)) => {
                let mut packed = Cursor::new(b);
                while packed.remaining() > 0 {
                    floats.push(f32::from_bits(packed.u32()?));
                }
            }
            (8, _) => {
                let mut all = Vec::new();
                tensor::varints(&field, &mut all)?;
                ints.extend(all.into_iter().map(|v| v as i64));
            }
            (9, Field::Bytes(b)) => texts.push(b.to_vec()),
            (20, Field::Varint(v)) => kind = *v,
            (21, Field::Bytes(b)) => found = Some(Attr::Caller(text(b)?)),
            _ => {}
        }
    }
    // A number that is zero and a list without elements take no bytes.
    let attr = match (found, kind) {
        (Some(Attr::Caller(name)), _) => Attr::Caller(name),
        (Some(attr), 0..=5) => attr,
        (None, 1) => Attr::Float(0.0),
        (None, 2) => Attr::Int(0),
        (None, 3) => Attr::Text(Vec::new()),
        (_, 6) => Attr::Floats(floats),
        (_, 7) => Attr::Ints(ints),
        (_, 8) => Attr::Texts(texts),
        (_, 0) if !ints.is_empty() => Attr::Ints(ints),
        (_, 0) if !floats.is_empty() => Attr::Floats(floats),
        (_, 0) if !texts.is_empty() => Attr::Texts(texts),
        _ => Attr::Unknown,
    };
    Ok((name, attr))
}

fn value_info(bytes: &[u8]) -> Parse<ValueInfo> {
    let mut info = ValueInfo::default();
    for field in proto::fields(bytes) {
        match field? {
            (1, Field::Bytes(b)) => info.name = text(b)?,
            (2, Field::Bytes(b)) => {
                for field in proto::fields(b) {
                    if let (1, Field::Bytes(b)) = field? {
                        tensor_type(b, &mut info)?;
                    }
                }
            }
            _ => {}
        }
    }
    Ok(info)
}

fn tensor_type(bytes: &[u8], info: &mut ValueInfo) -> Parse<()> {
    for field in proto::fields(bytes) {
        match field? {
            (1, Field::Varint(v)) => info.dtype = tensor::dtype_of(v),
            (2, Field::Bytes(b)) => {
                let mut dims = Vec::new();
                for field in proto::fields(b) {
                    let (1, Field::Bytes(b)) = field? else { continue };
                    let mut extent = Extent::Named(String::new());
                    for field in proto::fields(b) {
                        match field? {
                            (1, Field::Varint(v)) => {
                                if let Ok(n) = usize::try_from(v as i64) {
                                    extent = Extent::Fixed(n);
                                }
                            }
                            (2, Field::Bytes(b)) => extent = Extent::Named(text(b)?),
                            _ => {}
                        }
                    }
                    dims.push(extent);
                }
                info.dims = Some(dims);
            }
            _ => {}
        }
    }
    Ok(())
}
