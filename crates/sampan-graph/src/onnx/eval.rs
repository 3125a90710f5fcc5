//! A model that runs: every node becomes calls of ours, through `dispatch`, so gradients and tracing work as always.

use super::node::Call;
use super::ops;
use crate::graph::Graph;
use crate::record::unheard;
use crate::trace::{Spec, caught, trace};
use sampan_core::error::Kind;
use sampan_core::{DType, Device, Error, Result, Tensor};
use sampan_io::onnx::model::{Attr, Extent, Function, Model as File, Net, Node, ValueInfo};
use sampan_kernels::buffer::{self, Ceiling, Held, with_budget};
use std::collections::HashMap;
use std::sync::Arc;

/// The newest version of ONNX's operators that is known here.
pub(crate) const NEWEST: i64 = 23;
/// Functions that call functions …: deeper ones are no program's.
const DEEPEST: usize = 64;
/// Bytes that may be computed while a model becomes a graph, besides some for each byte of its weights.
const CONSTANTS: usize = 1 << 30;

/// A model as ONNX describes it, ready to run.
#[derive(Clone, Debug)]
pub struct Model {
    file: File,
    opset: i64,
    inputs: Vec<ValueInfo>,
    /// The bytes that a run may hold at once.
    memory: Option<usize>,
}

/// What a value of a model may be.
#[derive(Clone, Debug)]
pub enum Item {
    /// A tensor.
    Tensor(Tensor),
    /// A sequence of tensors.
    List(Vec<Tensor>),
    /// An optional that holds nothing.
    Nothing,
}

impl From<Tensor> for Item {
    fn from(tensor: Tensor) -> Item {
        Item::Tensor(tensor)
    }
}

/// Where a value comes from, while a program is traced.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Origin {
    /// It is written in the file, or computed from such values alone.
    Fixed,
    /// It follows extents: a number that only this run has.
    Sized,
    /// It follows values.
    Data,
}

#[derive(Clone)]
struct Var {
    item: Item,
    origin: Origin,
    /// What is around the tensors of a sequence counts: there may be any number of them.
    _held: Option<Arc<Held>>,
}

impl Var {
    fn new(item: Item, origin: Origin) -> Result<Var> {
        let held = match &item {
            Item::List(list) => Some(Arc::new(Held::around(list.len())?)),
            _ => None,
        };
        Ok(Var { item, origin, _held: held })
    }
}

/// Names and values; those of the graphs around are seen too.
pub(crate) struct Scope<'s> {
    values: HashMap<&'s str, Var>,
    outer: Option<&'s Scope<'s>>,
}

impl Scope<'_> {
    fn get(&self, name: &str) -> Option<&Var> {
        self.values.get(name).or_else(|| self.outer?.get(name))
    }
}

/// Where nodes are evaluated: the model, its operators' version, and the attributes of the function that calls them.
#[derive(Clone, Copy)]
pub(crate) struct Frame<'m> {
    pub model: &'m Model,
    pub opset: i64,
    pub caller: Option<(&'m Function, &'m [(String, Attr)])>,
    depth: usize,
    tracing: bool,
}

fn damaged(message: String) -> Error {
    Error::invalid(message).in_op("onnx")
}

impl Model {
    pub(crate) fn new(file: File) -> Result<Model> {
        let known = |name: &String| file.graph.initialisers.iter().any(|(n, _)| n == name);
        let inputs = file.graph.inputs.iter().filter(|i| !known(&i.name)).cloned().collect();
        let opset = version(&file.opsets).unwrap_or(if file.ir_version < 3 { 1 } else { NEWEST });
        let mut file = file;
        prepare(&mut file.graph);
        Ok(Model { file, opset, inputs, memory: None })
    }

    /// Sets how many bytes a run may hold at once, beside inputs and weights. Without this it is half of the memory that
    /// tensors may have: a file can ask for any amount in a few bytes.
    pub fn with_memory(self, bytes: usize) -> Model {
        Model { memory: Some(bytes), ..self }
    }

    /// What it is called with.
    pub fn inputs(&self) -> &[ValueInfo] {
        &self.inputs
    }

    /// What it gives.
    pub fn outputs(&self) -> &[ValueInfo] {
        &self.file.graph.outputs
    }

    /// The version of ONNX's operators that it is written in.
    pub fn opset(&self) -> i64 {
        self.opset
    }

    /// The operators it calls, in order.
    pub fn operators(&self) -> Vec<&str> {
        self.file.graph.nodes.iter().map(|n| n.op.as_str()).collect()
    }

    /// Names and values that are written in the file.
    pub fn weights(&self) -> &[(String, Tensor)] {
        &self.file.graph.initialisers
    }

    /// What the model gives for these inputs.
    pub fn run(&self, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        let given = inputs.iter().cloned().map(Item::Tensor).collect::<Vec<_>>();
        let found = self.run_items(&given)?;
        let tensor = |item| match item {
            Item::Tensor(t) => Ok(t),
            _ => Err(damaged("an output is no tensor".into())),
        };
        found.into_iter().map(tensor).collect()
    }

    /// Like [`run`](Model::run), for models that take or give sequences and optionals.
    pub fn run_items(&self, inputs: &[Item]) -> Result<Vec<Item>> {
        self.run_with(inputs, &[])
    }

    /// Like [`run_items`](Model::run_items), with other tensors in place of the first weights.
    pub fn run_with(&self, inputs: &[Item], weights: &[Tensor]) -> Result<Vec<Item>> {
        if inputs.len() != self.inputs.len() {
            let names = self.inputs.iter().map(|i| i.name.as_str()).collect::<Vec<_>>().join(", ");
            return Err(damaged(format!("takes {} inputs ({names}), got {}", self.inputs.len(), inputs.len())));
        }
        let meta = |i: &Item| matches!(i, Item::Tensor(t) if t.device() == Device::Meta);
        let tracing = inputs.iter().any(meta);
        let frame = Frame { model: self, opset: self.opset, caller: None, depth: 0, tracing };
        let mut scope = Scope { values: HashMap::new(), outer: None };
        for (info, item) in self.inputs.iter().zip(inputs) {
            if let (Item::Tensor(t), Some(dtype)) = (item, info.dtype)
                && t.dtype() != dtype
            {
                let (name, got) = (&info.name, t.dtype());
                return Err(Error::dtype(format!("input `{name}` is {dtype}, got {got}")).in_op("onnx"));
            }
            scope.values.insert(&info.name, Var::new(item.clone(), Origin::Data)?);
        }
        for ((name, _), tensor) in self.weights().iter().zip(weights) {
            scope.values.insert(name, Var::new(Item::Tensor(tensor.clone()), Origin::Fixed)?);
        }
        let most = self.memory.unwrap_or_else(|| buffer::memory_limit() / 2);
        let ceiling = Ceiling::new(most);
        // A damaged file may ask for what no op expects.
        let found = ceiling.over(|| caught(|| frame.net(&self.file.graph, scope)));
        found.map_err(|error| match ceiling.was_reached() {
            true => error.hint(format!(
                "a run of this model may hold {:.1} MiB at once; `with_memory`, or `memory_limit` in Python, sets that",
                most as f64 / (1 << 20) as f64
            )),
            false => error,
        })
    }

    /// The model as a graph of our calls, for any extents that its inputs leave open.
    ///
    /// What depends on values in ways that no call has, such as a loop, is an error: such a model can only be [`run`](Model::run).
    pub fn graph(&self) -> Result<Graph> {
        let spec = |info: &ValueInfo| {
            let (Some(dims), Some(dtype)) = (&info.dims, info.dtype) else {
                let message = format!("nothing is known of the shape of the input `{}`", info.name);
                return Err(Error::new(Kind::Unimplemented, message).in_op("onnx"));
            };
            let extent = |d: &Extent| if let Extent::Fixed(n) = d { Some(*n) } else { None };
            Ok(Spec::new(dims.iter().map(extent), dtype).named(&info.name))
        };
        let specs = self.inputs.iter().map(spec).collect::<Result<Vec<_>>>()?;
        // Inputs have no values here, so what takes memory are numbers that the file asks for.
        let weights: usize = self.weights().iter().map(|(_, t)| t.numel() * t.dtype().size()).sum();
        let budget = weights.saturating_mul(8).saturating_add(CONSTANTS);
        let mut graph = with_budget(budget, || trace(|inputs| self.run(inputs), &specs))?;
        graph.name_weights(self.weights().iter().map(|(n, t)| (n.clone(), t)));
        Ok(graph)
    }
}

/// The version of ONNX's own operators.
fn version(opsets: &[(String, i64)]) -> Option<i64> {
    opsets.iter().find(|(domain, _)| domain.is_empty()).map(|(_, v)| *v)
}

/// Says which of a graph's weights are trained: those that are no numbers for shapes and no statistics.
fn prepare(net: &mut Net) {
    let statistics = |name: &String| {
        let takes = |n: &Node| n.op == "BatchNormalization" && n.inputs.iter().skip(3).any(|i| i == name);
        net.nodes.iter().any(takes)
    };
    for (name, tensor) in &net.initialisers {
        tensor.set_name(name.clone());
        tensor.set_persistable(true);
        let trained = tensor.dtype().is_float() && tensor.ndim() > 0 && !statistics(name);
        tensor.set_stop_gradient(!trained);
    }
}

/// Memory of its own for what was computed aside: as a view of something that takes part it would have come from nowhere.
fn own(item: Item, inputs: &[Option<Item>]) -> Result<Item> {
    let Item::Tensor(t) = &item else { return Ok(item) };
    let shared = |i: &Item| matches!(i, Item::Tensor(other) if other.id() != t.id() && other.shares_memory(t));
    match inputs.iter().flatten().any(shared) {
        true => Ok(Item::Tensor(Tensor::from_bytes(&t.to_bytes(), t.dtype(), t.shape())?)),
        false => Ok(item),
    }
}

impl<'m> Frame<'m> {
    /// Evaluates a graph whose inputs are in the scope.
    fn net<'s>(&self, net: &'s Net, mut scope: Scope<'s>) -> Result<Vec<Item>> {
        for (name, tensor) in &net.initialisers {
            // An input of the same name may stand in its place.
            let var = Var::new(Item::Tensor(tensor.clone()), Origin::Fixed)?;
            scope.values.entry(name).or_insert(var);
        }
        self.nodes(&net.nodes, &mut scope)?;
        let found = net.outputs.iter().map(|o| self.read(&scope, &o.name)).collect::<Result<Vec<_>>>()?;
        found.into_iter().map(|v| self.materialised(v)).collect()
    }

    fn read(&self, scope: &Scope<'_>, name: &str) -> Result<Var> {
        scope.get(name).cloned().ok_or_else(|| damaged(format!("`{name}` is read before it is given")))
    }

    /// The graph in an attribute, called with these values: of an `If`, a `Loop` or a `Scan`.
    pub fn block(&self, net: &Net, scope: &Scope<'_>, inputs: Vec<Item>) -> Result<Vec<Item>> {
        let names = net.inputs.iter().map(|i| i.name.as_str());
        let values = names.zip(inputs).map(|(n, item)| Ok((n, Var::new(item, Origin::Data)?)));
        let values = values.collect::<Result<_>>()?;
        self.net(net, Scope { values, outer: Some(scope) })
    }

    fn nodes<'s>(&self, nodes: &'s [Node], scope: &mut Scope<'s>) -> Result<()> {
        for node in nodes {
            let mut origin = Origin::Fixed;
            let mut inputs = Vec::with_capacity(node.inputs.len());
            for name in &node.inputs {
                let var = if name.is_empty() { None } else { Some(self.read(scope, name)?) };
                inputs.push(var);
            }
            for var in inputs.iter().flatten() {
                origin = origin.max(self.origin(var));
            }
            let same = |f: &&Function| f.name == node.op && f.domain == node.domain;
            if let Some(function) = self.model.file.functions.iter().find(same) {
                let outputs = self.function(function, node, inputs)?;
                let given = node.outputs.iter().zip(outputs).filter(|(name, _)| !name.is_empty());
                scope.values.extend(given.map(|(name, var)| (name.as_str(), var)));
                continue;
            }
            let blocks = node.attrs.iter().any(|(_, a)| matches!(a, Attr::Graph(_)));
            let sized = matches!(node.op.as_str(), "Shape" | "Size");
            // What extents alone decide is computed here and now, and not part of the program.
            // Weights that are codes stay what they are.
            let number = |inputs: &[Option<Var>]| node.op != "DequantizeLinear" && self.is_number(inputs);
            let aside = self.tracing && !blocks && (sized || (origin != Origin::Data && number(&inputs)));
            let outputs = if aside {
                let items: Vec<Option<Item>> = inputs.into_iter().map(|v| v.map(|v| v.item)).collect();
                unheard(|| self.call(node, items.clone(), scope)?.into_iter().map(|item| own(item, &items)).collect())
            } else {
                let items = inputs.into_iter().map(|v| v.map(|v| self.materialised(v)).transpose());
                items.collect::<Result<_>>().and_then(|items| self.call(node, items, scope))
            };
            let outputs = outputs.map_err(|e| {
                let name = if node.name.is_empty() { node.outputs.first() } else { Some(&node.name) };
                e.in_layer(format!("{} {}", node.op, name.map_or("", String::as_str)))
            })?;
            let origin = match (aside, sized) {
                (true, true) if origin == Origin::Fixed => Origin::Fixed,
                (true, true) => Origin::Sized,
                (true, false) => origin,
                (false, _) => Origin::Data,
            };
            for (name, item) in node.outputs.iter().zip(outputs) {
                if !name.is_empty() {
                    scope.values.insert(name, Var::new(item, origin)?);
                }
            }
        }
        Ok(())
    }

    fn origin(&self, var: &Var) -> Origin {
        match &var.item {
            Item::Tensor(t) if t.device() == Device::Meta => Origin::Data,
            _ => var.origin,
        }
    }

    /// Are these numbers, and no weights that are trained?
    fn is_number(&self, inputs: &[Option<Var>]) -> bool {
        inputs.iter().flatten().all(|v| match &v.item {
            Item::Tensor(t) => t.stop_gradient(),
            _ => false,
        })
    }

    /// A number that follows extents, as calls that make it: what an array holds, a program could not repeat.
    fn materialised(&self, var: Var) -> Result<Item> {
        let Item::Tensor(t) = &var.item else { return Ok(var.item) };
        if !self.tracing || var.origin != Origin::Sized || t.numel() > 64 || t.ndim() > 1 {
            return Ok(var.item);
        }
        let (dtype, floats) = (t.dtype(), t.dtype().is_float());
        let numbers = unheard(|| t.to_f64_vec());
        let full = |n: f64, shape: &[i64]| {
            let value = if floats { sampan_core::Value::Float(n) } else { sampan_core::Value::Int(n as i64) };
            let value = if dtype == DType::Bool { sampan_core::Value::Bool(n != 0.0) } else { value };
            super::node::op!("full", shape, value, dtype)
        };
        let made = match (t.ndim(), numbers.as_slice()) {
            (0, [n]) => full(*n, &[])?,
            (_, []) => return Ok(var.item),
            (_, all) => {
                let parts = all.iter().map(|&n| full(n, &[1])).collect::<Result<Vec<_>>>()?;
                if parts.len() == 1 { parts[0].clone() } else { super::node::op!("concat", parts, 0)? }
            }
        };
        Ok(Item::Tensor(made))
    }

    fn call(&self, node: &Node, inputs: Vec<Option<Item>>, scope: &Scope<'_>) -> Result<Vec<Item>> {
        let call = Call { node, inputs, frame: self, scope };
        ops::read(&call)?.ok_or_else(|| {
            let domain = if node.domain.is_empty() { String::new() } else { format!("{}.", node.domain) };
            let message = format!("the operator {domain}{} (opset {}) is not known", node.op, self.opset);
            Error::new(Kind::Unimplemented, message).in_op("onnx")
        })
    }

    fn function(&self, function: &Function, node: &Node, inputs: Vec<Option<Var>>) -> Result<Vec<Var>> {
        if self.depth > DEEPEST {
            return Err(damaged(format!("functions that call each other, more than {DEEPEST} deep")));
        }
        let attrs = node.attrs.iter().map(|(n, a)| Ok((n.clone(), self.resolved(a).unwrap_or(a).clone())));
        let attrs = attrs.collect::<Result<Vec<_>>>()?;
        let opset = version(&function.opsets).unwrap_or(self.opset);
        let frame =
            Frame { model: self.model, opset, caller: Some((function, &attrs)), depth: self.depth + 1, ..*self };
        let mut scope = Scope { values: HashMap::new(), outer: None };
        let given = function.inputs.iter().zip(inputs);
        scope.values.extend(given.filter_map(|(name, var)| Some((name.as_str(), var?))));
        frame.nodes(&function.nodes, &mut scope)?;
        function.outputs.iter().map(|name| frame.read(&scope, name)).collect()
    }

    /// An attribute, where a function names one of its caller's.
    pub fn resolved<'a>(&'a self, attr: &'a Attr) -> Option<&'a Attr> {
        let Attr::Caller(name) = attr else { return Some(attr) };
        let (function, given) = self.caller?;
        let find = |list: &'a [(String, Attr)]| list.iter().find(|(n, _)| n == name).map(|(_, a)| a);
        find(given).or_else(|| find(&function.defaults))
    }
}
