//! Graphs as models of ONNX. What an op becomes is said in `ops`.

use super::ops;
use crate::given::Given;
use crate::graph::{Call, Dim, Graph, Id, Known, Size};
use crate::lower::{lowered, tensor_ids};
use crate::record::unheard;
use sampan_core::error::Kind;
use sampan_core::{DType, Error, Result, Tensor};
use sampan_io::onnx::code_of;
use sampan_io::onnx::model::{self, Attr, Extent, Model, Net, Node, ValueInfo};
use std::collections::{HashMap, HashSet};
use std::ops::RangeInclusive;
use std::path::Path;

/// The versions of ONNX's operators that can be written.
pub const OPSETS: RangeInclusive<i64> = 13..=21;

/// How a model is written.
#[derive(Clone, Debug)]
pub struct Options {
    /// The version of ONNX's operators.
    pub opset: i64,
    /// The names of the results; others are made up.
    pub outputs: Vec<String>,
}

impl Default for Options {
    fn default() -> Options {
        Options { opset: 17, outputs: Vec::new() }
    }
}

/// Writes a graph as an `.onnx` file.
pub fn save(graph: &Graph, path: impl AsRef<Path>, options: Options) -> Result<()> {
    let path = path.as_ref();
    let model = to_model(graph, &options)?;
    if let Some(folder) = path.parent().filter(|f| !f.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder)
            .map_err(|e| Error::new(Kind::External, format!("{}: {e}", folder.display())).in_op("onnx.export"))?;
    }
    model::save(path, &model)
}

/// The model of a graph.
pub fn to_model(graph: &Graph, options: &Options) -> Result<Model> {
    if !OPSETS.contains(&options.opset) {
        let (least, most) = (OPSETS.start(), OPSETS.end());
        let message = format!("opset {} is not written; it can be {least} to {most}", options.opset);
        return Err(Error::invalid(message).in_op("onnx.export"));
    }
    if let Some(weight) = graph.writes.iter().find_map(|(target, _)| graph.weight_of(*target)) {
        let message = format!("the program writes the tensor `{}`, which a saved model cannot", weight.name);
        return Err(Error::new(Kind::Unimplemented, message).hint("export it in eval mode").in_op("onnx.export"));
    }
    let net = Net { name: "sampan".into(), ..Net::default() };
    let of = vec![None; graph.values.len()];
    let mut w = Writer { graph, state: State { net, opset: options.opset, ..State::default() }, of };
    for weight in &graph.weights {
        let name = w.fresh(&weight.name);
        w.state.net.initialisers.push((name.clone(), weight.tensor.detach()));
        w.bind(weight.value, name);
    }
    for input in &graph.inputs {
        let name = w.fresh(&input.name);
        let info = info(name.clone(), &graph.values[input.value]);
        w.state.net.inputs.push(info);
        w.bind(input.value, name);
    }
    graph.calls.iter().try_for_each(|call| w.call(call))?;
    for (i, &id) in graph.outputs.iter().enumerate() {
        let name = w.fresh(options.outputs.get(i).map_or(&format!("output_{i}"), |n| n));
        let from = w.name(id)?;
        w.state.net.nodes.push(node("Identity", vec![from], vec![name.clone()], vec![]));
        w.state.net.outputs.push(info(name, &graph.values[id]));
    }
    let State { mut net, .. } = w.state;
    rename_outputs(&mut net);
    // Weights that became others are not written twice.
    let mut read = HashSet::new();
    names_read(&net, &mut read);
    let kept = net.initialisers.iter().map(|(n, _)| read.contains(n)).collect::<Vec<_>>();
    let mut kept = kept.into_iter();
    net.initialisers.retain(|_| kept.next().unwrap_or(true));
    // The version of the format that came with each version of the operators.
    let ir_version = match options.opset {
        13 | 14 => 7,
        15..=18 => 8,
        19 | 20 => 9,
        _ => 10,
    };
    let producer = "sampan".into();
    Ok(Model { ir_version, producer, opsets: vec![(String::new(), options.opset)], graph: net, functions: vec![] })
}

/// The names that nodes read, those in blocks too.
fn names_read<'n>(net: &'n Net, read: &mut HashSet<&'n String>) {
    for node in &net.nodes {
        read.extend(&node.inputs);
        for (_, attr) in &node.attrs {
            if let Attr::Graph(block) = attr {
                names_read(block, read);
            }
        }
    }
}

/// Gives results the names of outputs, where nothing but a copy stood between.
fn rename_outputs(net: &mut Net) {
    let mut renamed: HashMap<String, String> = HashMap::new();
    let given: HashSet<&String> = net.nodes.iter().filter(|n| n.op != "Identity").flat_map(|n| &n.outputs).collect();
    // What blocks read keeps its name.
    let mut inside = HashSet::new();
    for (_, attr) in net.nodes.iter().flat_map(|n| &n.attrs) {
        if let Attr::Graph(block) = attr {
            names_read(block, &mut inside);
        }
    }
    for node in net.nodes.iter().rev().take(net.outputs.len()) {
        let known = given.contains(&node.inputs[0]) && !inside.contains(&node.inputs[0]);
        if known && !renamed.contains_key(&node.inputs[0]) {
            renamed.insert(node.inputs[0].clone(), node.outputs[0].clone());
        }
    }
    net.nodes.retain(|n| n.op != "Identity" || renamed.get(&n.inputs[0]) != Some(&n.outputs[0]));
    for name in net.nodes.iter_mut().flat_map(|n| n.inputs.iter_mut().chain(&mut n.outputs)) {
        if let Some(new) = renamed.get(name) {
            name.clone_from(new);
        }
    }
}

pub(crate) fn info(name: String, known: &Known) -> ValueInfo {
    let extent = |d: &Dim| match d {
        Dim::Fixed(n) => Extent::Fixed(*n),
        Dim::Free(s) => Extent::Named(format!("extent_{s}")),
    };
    ValueInfo { name, dtype: Some(known.dtype), dims: Some(known.dims.iter().map(extent).collect()) }
}

fn node(op: &str, inputs: Vec<String>, outputs: Vec<String>, attrs: Vec<(&str, Attr)>) -> Node {
    let attrs = attrs.into_iter().map(|(n, a)| (n.to_string(), a)).collect();
    let name = outputs.first().map_or_else(String::new, |o| format!("{op}_{o}"));
    Node { op: op.into(), domain: String::new(), name, inputs, outputs, attrs }
}

fn failed(call: &Call, why: &str) -> Error {
    let at = call.source.as_ref().map_or(String::new(), |s| format!(" ({s})"));
    Error::new(Kind::Unimplemented, format!("{}{at} has no form in ONNX: {why}", call.op.name)).in_op("onnx.export")
}

/// What is written so far.
#[derive(Default)]
pub(crate) struct State {
    pub net: Net,
    pub opset: i64,
    names: HashSet<String>,
    /// Numbers that were written before, by their values.
    numbers: HashMap<(DType, Vec<usize>, Vec<u8>), String>,
    pub shapes: HashMap<String, String>,
}

/// A model that is being written.
pub(crate) struct Writer<'g> {
    pub graph: &'g Graph,
    pub state: State,
    of: Vec<Option<String>>,
}

impl Writer<'_> {
    pub fn opset(&self) -> i64 {
        self.state.opset
    }

    /// A name that nothing has yet.
    pub fn fresh(&mut self, wanted: &str) -> String {
        let mut unique = wanted.to_string();
        let mut k = 1;
        while unique.is_empty() || !self.state.names.insert(unique.clone()) {
            unique = format!("{wanted}_{k}");
            k += 1;
        }
        unique
    }

    pub fn known(&self, id: Id) -> &Known {
        &self.graph.values[id]
    }

    /// The name of a value.
    pub fn name(&self, id: Id) -> Result<String> {
        let name = self.of[id].clone();
        name.ok_or_else(|| Error::invalid(format!("value {id} is read before it is given")).in_op("onnx.export"))
    }

    /// A value of the graph has this name.
    pub fn bind(&mut self, id: Id, name: String) {
        self.of[id] = Some(name);
    }

    /// Adds a node with several results.
    pub fn nodes(&mut self, op: &str, inputs: Vec<String>, attrs: Vec<(&str, Attr)>, n: usize) -> Vec<String> {
        let at = self.state.net.nodes.len();
        let outputs = (0..n).map(|i| self.fresh(&format!("{}_{at}.{i}", op.to_lowercase()))).collect::<Vec<_>>();
        self.state.net.nodes.push(node(op, inputs, outputs.clone(), attrs));
        outputs
    }

    /// Adds a node with one result.
    pub fn node(&mut self, op: &str, inputs: Vec<String>, attrs: Vec<(&str, Attr)>) -> String {
        self.nodes(op, inputs, attrs, 1).swap_remove(0)
    }

    /// Adds a node without attributes.
    pub fn op(&mut self, op: &str, inputs: &[&str]) -> String {
        self.node(op, inputs.iter().map(|s| s.to_string()).collect(), vec![])
    }

    /// A tensor of the file; the same numbers are written once.
    pub fn tensor(&mut self, tensor: &Tensor) -> String {
        let key = (tensor.dtype(), tensor.shape().to_vec(), unheard(|| tensor.to_bytes()));
        if let Some(name) = self.state.numbers.get(&key) {
            return name.clone();
        }
        let name = self.fresh("number");
        self.state.net.initialisers.push((name.clone(), tensor.clone()));
        self.state.numbers.insert(key, name.clone());
        name
    }

    /// Whole numbers, as a vector.
    pub fn ints(&mut self, numbers: &[i64]) -> Result<String> {
        let tensor = Tensor::try_from_slice(numbers, [numbers.len()])?;
        Ok(self.tensor(&tensor))
    }

    /// One number without axes.
    pub fn number(&mut self, value: f64, dtype: DType) -> Result<String> {
        let tensor = unheard(|| Tensor::try_from_slice(&[value], [0usize; 0])?.try_cast(dtype))?;
        Ok(self.tensor(&tensor))
    }

    /// The same values in another dtype.
    pub fn cast(&mut self, name: String, from: DType, to: DType) -> String {
        match from == to {
            true => name,
            false => self.node("Cast", vec![name], vec![("to", Attr::Int(code_of(to) as i64))]),
        }
    }

    /// A value in a dtype.
    pub fn cast_id(&mut self, id: Id, to: DType) -> Result<String> {
        let (name, from) = (self.name(id)?, self.known(id).dtype);
        Ok(self.cast(name, from, to))
    }

    /// The shape of a value, as a vector.
    pub fn shape(&mut self, id: Id) -> Result<String> {
        let name = self.name(id)?;
        let dims = self.known(id).dims.iter().map(|d| d.fixed().map(|n| n as i64)).collect::<Option<Vec<_>>>();
        if let Some(dims) = dims {
            return self.ints(&dims);
        }
        if let Some(shape) = self.state.shapes.get(&name) {
            return Ok(shape.clone());
        }
        let shape = self.op("Shape", &[&name]);
        self.state.shapes.insert(name, shape.clone());
        Ok(shape)
    }

    /// A number that follows extents, as a vector of one element.
    pub fn size(&mut self, size: &Size) -> Result<String> {
        if let Some(n) = size.as_fixed() {
            return self.ints(&[n]);
        }
        let mut product: Option<String> = None;
        for &(id, axis) in &size.extents {
            let shape = self.shape(id)?;
            let axis = self.ints(&[axis as i64])?;
            let extent = self.op("Gather", &[&shape, &axis]);
            product = Some(match product {
                None => extent,
                Some(p) => self.op("Mul", &[&p, &extent]),
            });
        }
        let mut value = product.expect("there are extents");
        for (op, n, idle) in [("Mul", size.times, 1), ("Add", size.plus, 0), ("Div", size.over, 1)] {
            if n != idle {
                let n = self.ints(&[n])?;
                value = self.op(op, &[&value, &n]);
            }
        }
        Ok(value)
    }

    /// Numbers for a shape or bounds, as a vector.
    pub fn sizes(&mut self, sizes: &[Size]) -> Result<String> {
        if let Some(fixed) = sizes.iter().map(Size::as_fixed).collect::<Option<Vec<_>>>() {
            return self.ints(&fixed);
        }
        let parts = sizes.iter().map(|s| self.size(s)).collect::<Result<Vec<_>>>()?;
        Ok(if parts.len() == 1 { parts[0].clone() } else { self.node("Concat", parts, vec![("axis", Attr::Int(0))]) })
    }

    fn call(&mut self, call: &Call) -> Result<()> {
        if ops::write(self, &Given(call))? {
            return Ok(());
        }
        if call.op.primitive && call.op.reference.is_none() {
            return Err(failed(call, "no operators say it, and it is made of no other ops"));
        }
        // Composites are written as what they call.
        let inner = lowered(call, self.graph).map_err(|e| failed(call, &e.to_string()))?;
        self.inline(call, &inner)
    }

    /// Writes the calls of another graph, whose inputs are the tensors of a call.
    fn inline(&mut self, call: &Call, inner: &Graph) -> Result<()> {
        let mut ids = Vec::new();
        call.args.iter().for_each(|a| tensor_ids(a, &mut ids));
        let names = ids.into_iter().map(|id| self.name(id)).collect::<Result<Vec<_>>>()?;
        let outputs = self.block(inner, names)?;
        for (&id, name) in call.outputs.iter().zip(outputs) {
            self.bind(id, name);
        }
        Ok(())
    }

    /// Writes the calls of a graph whose inputs have these names; the names of its outputs.
    pub fn block(&mut self, inner: &Graph, inputs: Vec<String>) -> Result<Vec<String>> {
        let mut of = vec![None; inner.values.len()];
        for (input, name) in inner.inputs.iter().zip(inputs) {
            of[input.value] = Some(name);
        }
        let mut w = Writer { graph: inner, state: std::mem::take(&mut self.state), of };
        let write = |w: &mut Writer| -> Result<Vec<String>> {
            for weight in &inner.weights {
                let name = w.tensor(&weight.tensor.detach());
                w.bind(weight.value, name);
            }
            inner.calls.iter().try_for_each(|c| w.call(c))?;
            inner.outputs.iter().map(|&id| w.name(id)).collect()
        };
        let outputs = write(&mut w);
        self.state = w.state;
        outputs
    }
}
