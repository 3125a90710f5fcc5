//! Graphs as programs in Paddle's ops. What an op becomes is said in `ops`.

use super::ops;
use super::program::{Op, Program, Value, Var, VarId};
use super::schema;
pub(crate) use crate::given::Given;
use crate::graph::{Call, Dim, Graph, Id, Known, Size};
use crate::lower::{lowered, tensor_ids};
use sampan_core::error::Kind;
use sampan_core::{DType, Error, Result, Tensor};
use std::collections::{HashMap, HashSet};

/// The program of a graph.
pub(crate) fn program(graph: &Graph) -> Result<Program> {
    if let Some(&(target, _)) = graph.writes.iter().find(|(t, _)| graph.weight_of(*t).is_some()) {
        let name = graph.weight_of(target).map_or("", |w| w.name.as_str());
        let message = format!("the program writes the tensor `{name}`, which a saved model cannot");
        return Err(Error::new(Kind::Unimplemented, message).hint("save it in eval mode").in_op("save"));
    }
    let mut w = Exporter {
        graph,
        program: Program::default(),
        of: vec![None; graph.values.len()],
        names: HashSet::new(),
        instead: HashMap::new(),
        zeros: None,
    };
    for weight in &graph.weights {
        let known = &graph.values[weight.value];
        let trainable = weight.shared && !weight.tensor.stop_gradient();
        let var = w.var(&weight.name, known, true, trainable);
        w.of[weight.value] = Some(var);
        w.program.tensors.push((var, weight.tensor.detach()));
    }
    for input in &graph.inputs {
        let var = w.var(&input.name, &graph.values[input.value], false, false);
        w.program.feeds.push(var);
        w.of[input.value] = Some(var);
    }
    graph.calls.iter().try_for_each(|call| w.call(call))?;
    for &id in &graph.outputs {
        let mut var = w.var_of(id)?;
        if w.program.feeds.contains(&var) || w.program.vars[var].weight || w.program.fetches.contains(&var) {
            // An output of its own.
            let known = graph.values[id].clone();
            var = w.emit("assign", vec![("x", Value::Var(var))], &known)?;
        }
        w.program.fetches.push(var);
    }
    // Weights that became others, and that nobody else reads, are none.
    let mut read = vec![false; w.program.vars.len()];
    for op in w.program.all_ops() {
        for (_, value) in &op.args {
            match value {
                Value::Var(v) => read[*v] = true,
                Value::Vars(vars) => vars.iter().for_each(|&v| read[v] = true),
                _ => {}
            }
        }
    }
    for id in w.instead.keys() {
        if let Some(var) = w.of[*id].filter(|&v| !read[v]) {
            w.program.vars[var].weight = false;
            w.program.tensors.retain(|(v, _)| *v != var);
        }
    }
    Ok(w.program)
}

/// A program that is being written.
pub(crate) struct Exporter<'g> {
    pub graph: &'g Graph,
    pub program: Program,
    of: Vec<Option<VarId>>,
    names: HashSet<String>,
    /// Weights that are written as others.
    instead: HashMap<Id, VarId>,
    zeros: Option<VarId>,
}

/// Extents as Paddle has them.
pub(crate) fn dims(known: &Known) -> Vec<i64> {
    known.dims.iter().map(|d| d.fixed().map_or(-1, |n| n as i64)).collect()
}

fn failed(call: &Call, why: &str) -> Error {
    let at = call.source.as_ref().map_or(String::new(), |s| format!(" ({s})"));
    Error::new(Kind::Unimplemented, format!("{}{at} has no form in Paddle's files: {why}", call.op.name)).in_op("save")
}

impl Exporter<'_> {
    fn var(&mut self, name: &str, known: &Known, weight: bool, trainable: bool) -> VarId {
        let mut unique = name.to_string();
        let mut k = 1;
        while !self.names.insert(unique.clone()) {
            unique = format!("{name}_{k}");
            k += 1;
        }
        let stop_gradient = known.stop_gradient && !trainable;
        let dims = dims(known);
        self.program.vars.push(Var { name: unique, dims, dtype: known.dtype, weight, trainable, stop_gradient });
        self.program.vars.len() - 1
    }

    pub fn var_of(&self, id: Id) -> Result<VarId> {
        self.of[id].ok_or_else(|| Error::invalid(format!("value {id} is read before it is given")).in_op("save"))
    }

    /// A weight with other values, in the place of one of the graph.
    pub fn weight_instead(&mut self, id: Id, name: &str, tensor: Tensor) -> VarId {
        if let Some(&var) = self.instead.get(&id) {
            return var;
        }
        let var = self.new_weight(name, tensor);
        self.instead.insert(id, var);
        var
    }

    fn new_weight(&mut self, name: &str, tensor: Tensor) -> VarId {
        let dims = tensor.shape().iter().map(|&n| Dim::Fixed(n)).collect();
        let known = Known { dims, dtype: tensor.dtype(), stop_gradient: true };
        let var = self.var(name, &known, true, false);
        self.program.tensors.push((var, tensor));
        var
    }

    /// The number zero among the weights, once.
    pub fn zeros_weight(&mut self) -> Result<VarId> {
        if let Some(var) = self.zeros {
            return Ok(var);
        }
        let var = self.new_weight("zero_point", Tensor::try_from_slice(&[0f32], [1usize])?);
        self.zeros = Some(var);
        Ok(var)
    }

    pub fn known(&self, id: Id) -> &Known {
        &self.graph.values[id]
    }

    /// A value of the graph is this variable.
    pub fn bind(&mut self, id: Id, var: VarId) {
        self.of[id] = Some(var);
    }

    /// Adds an op with one result that is read.
    pub fn emit(&mut self, name: &'static str, args: Vec<(&'static str, Value)>, like: &Known) -> Result<VarId> {
        let to = self.var(&format!("{name}_{}.tmp_0", self.program.ops.len()), like, false, false);
        self.emit_to(name, args, vec![("", vec![to])])?;
        Ok(to)
    }

    /// Adds an op; an empty name of a result stands for the first.
    pub fn emit_to(
        &mut self,
        name: &'static str,
        args: Vec<(&'static str, Value)>,
        results: Vec<(&'static str, Vec<VarId>)>,
    ) -> Result<()> {
        let schema =
            schema::find(name).ok_or_else(|| Error::invalid(format!("{name} is in no table")).in_op("save"))?;
        let named = |n: &'static str| if n.is_empty() { schema.results[0].name } else { n };
        let results = results.into_iter().map(|(n, v)| (named(n), v)).collect();
        self.program.ops.push(Op { schema, args, results });
        Ok(())
    }

    /// Adds an op that gives a value of the graph.
    pub fn give(&mut self, name: &'static str, args: Vec<(&'static str, Value)>, id: Id) -> Result<()> {
        let known = self.graph.values[id].clone();
        let var = self.emit(name, args, &known)?;
        self.bind(id, var);
        Ok(())
    }

    /// A variable that no value of the graph is.
    pub fn emit_var(&mut self, name: &str, like: &Known) -> VarId {
        self.var(&format!("{name}_{}.tmp_0", self.program.ops.len()), like, false, false)
    }

    /// A variable for a value that an op is about to give.
    pub fn fresh(&mut self, id: Id, name: &str) -> VarId {
        let known = self.graph.values[id].clone();
        let var = self.var(&format!("{name}_{}.tmp_0", self.program.ops.len()), &known, false, false);
        self.bind(id, var);
        var
    }

    /// The same values in another dtype.
    pub fn cast(&mut self, var: VarId, dtype: DType) -> Result<VarId> {
        if self.program.vars[var].dtype == dtype {
            return Ok(var);
        }
        let like = self.like(var, dtype);
        self.emit("cast", vec![("x", Value::Var(var)), ("dtype", Value::DType(Some(dtype)))], &like)
    }

    /// What is known of a variable, with another dtype.
    pub fn like(&self, var: VarId, dtype: DType) -> Known {
        let v = &self.program.vars[var];
        let dim = |&d: &i64| usize::try_from(d).map_or(Dim::Free(usize::MAX), Dim::Fixed);
        Known { dims: v.dims.iter().map(dim).collect(), dtype, stop_gradient: v.stop_gradient }
    }

    /// A number as a tensor.
    pub fn number(&mut self, value: f64, shape: &[i64], dtype: DType) -> Result<VarId> {
        let known =
            Known { dims: shape.iter().map(|&n| Dim::Fixed(n.max(0) as usize)).collect(), dtype, stop_gradient: true };
        let args = vec![
            ("shape", Value::Ints(shape.to_vec())),
            ("value", Value::Float(value)),
            ("dtype", Value::DType(Some(dtype))),
        ];
        self.emit("full", args, &known)
    }

    /// A number that follows extents, as a tensor of shape [1].
    pub fn size(&mut self, size: &Size) -> Result<VarId> {
        let one = Known { dims: vec![Dim::Fixed(1)], dtype: DType::Int64, stop_gradient: true };
        if let Some(n) = size.as_fixed() {
            return self.number(n as f64, &[1], DType::Int64);
        }
        let mut product = None;
        for &(id, axis) in &size.extents {
            let x = self.var_of(id)?;
            let rank = self.known(id).dims.len();
            let all = Known { dims: vec![Dim::Fixed(rank)], ..one.clone() };
            let shape = self.emit("shape64", vec![("input", Value::Var(x))], &all)?;
            let axis = axis as i64;
            let args = vec![
                ("input", Value::Var(shape)),
                ("starts", Value::Ints(vec![axis])),
                ("ends", Value::Ints(vec![axis + 1])),
                ("axes", Value::Ints(vec![0])),
                ("infer_flags", Value::Ints(vec![1])),
                ("decrease_axis", Value::Ints(vec![])),
            ];
            let extent = self.emit("slice", args, &one)?;
            // A shape is 32 bits in a .pdmodel.
            let cast = vec![("x", Value::Var(extent)), ("dtype", Value::DType(Some(DType::Int64)))];
            let extent = self.emit("cast", cast, &one)?;
            product = Some(match product {
                None => extent,
                Some(p) => self.emit("multiply", vec![("x", Value::Var(p)), ("y", Value::Var(extent))], &one)?,
            });
        }
        let mut value = product.expect("there are extents");
        for (op, n, idle) in [("multiply", size.times, 1), ("add", size.plus, 0), ("floor_divide", size.over, 1)] {
            if n != idle {
                let n = self.number(n as f64, &[1], DType::Int64)?;
                value = self.emit(op, vec![("x", Value::Var(value)), ("y", Value::Var(n))], &one)?;
            }
        }
        Ok(value)
    }

    /// Numbers for a shape or the bounds of a slice: plain, or computed.
    pub fn sizes(&mut self, sizes: &[Size]) -> Result<Value> {
        match sizes.iter().map(Size::as_fixed).collect::<Option<Vec<_>>>() {
            Some(fixed) => Ok(Value::Ints(fixed)),
            None => Ok(Value::Vars(sizes.iter().map(|s| self.size(s)).collect::<Result<_>>()?)),
        }
    }

    fn call(&mut self, call: &Call) -> Result<()> {
        if ops::write(self, &Given(call))? {
            return Ok(());
        }
        if call.op.primitive && call.op.reference.is_none() {
            return Err(failed(call, "it is no op of Paddle's, and made of no others"));
        }
        // Composites are written as what they call.
        let inner = lowered(call, self.graph).map_err(|e| failed(call, &e.to_string()))?;
        self.inline(call, &inner)
    }

    /// Writes the calls of another graph, whose inputs are the tensors of a call.
    fn inline(&mut self, call: &Call, inner: &Graph) -> Result<()> {
        let mut ids = Vec::new();
        call.args.iter().for_each(|a| tensor_ids(a, &mut ids));
        let inputs = ids.into_iter().map(|id| self.var_of(id)).collect::<Result<Vec<_>>>()?;
        let outputs = self.block(inner, inputs).map_err(|e| match e.kind() {
            Kind::InvalidArgument => failed(call, &e.to_string()),
            _ => e,
        })?;
        for (&id, var) in call.outputs.iter().zip(outputs) {
            self.bind(id, var);
        }
        Ok(())
    }

    /// Writes the calls of a graph whose inputs are these variables; those that it gives.
    pub fn block(&mut self, inner: &Graph, inputs: Vec<VarId>) -> Result<Vec<VarId>> {
        let mut of = vec![None; inner.values.len()];
        for (input, var) in inner.inputs.iter().zip(inputs) {
            of[input.value] = Some(var);
        }
        let program = std::mem::take(&mut self.program);
        let names = std::mem::take(&mut self.names);
        let zeros = self.zeros;
        let mut w = Exporter { graph: inner, program, of, names, instead: HashMap::new(), zeros };
        let write = |w: &mut Exporter| -> Result<Vec<VarId>> {
            for weight in &inner.weights {
                let known = &inner.values[weight.value];
                // A number among the lines of an op: written where it is used.
                if weight.tensor.numel() != 1 || !weight.tensor.dtype().is_float() {
                    return Err(Error::invalid("it makes a tensor of its own").in_op("save"));
                }
                let shape = dims(known);
                let var = w.number(weight.tensor.try_item()?.to_f64(), &shape, known.dtype)?;
                w.of[weight.value] = Some(var);
            }
            inner.calls.iter().try_for_each(|c| w.call(c))?;
            inner.outputs.iter().map(|&id| w.var_of(id)).collect()
        };
        let outputs = write(&mut w);
        (self.program, self.names, self.zeros) = (w.program, w.names, w.zeros);
        outputs
    }
}

impl Given<'_> {
    /// A tensor that must be there.
    pub fn tensor(&self, w: &Exporter, name: &str) -> Result<Value> {
        let id = self.id(name).ok_or_else(|| failed(self.0, &format!("`{name}` is no tensor")))?;
        w.var_of(id).map(Value::Var)
    }

    pub fn optional(
        &self,
        w: &Exporter,
        name: &'static str,
        to: &'static str,
    ) -> Result<Option<(&'static str, Value)>> {
        self.id(name).map(|id| Ok((to, Value::Var(w.var_of(id)?)))).transpose()
    }

    pub fn tensors(&self, w: &Exporter, name: &str) -> Result<Value> {
        Ok(Value::Vars(self.ids(name).into_iter().map(|id| w.var_of(id)).collect::<Result<_>>()?))
    }
}
