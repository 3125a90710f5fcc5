//! A program as a `.pdmodel`.

use super::read::whole;
use crate::paddle::program::{Op, Program, Value, VarId};
use crate::paddle::schema::{Kind, Slot};
use sampan_core::{DType, Error, Result};
use sampan_io::pdmodel::{self, Attr, Block, VarKind, dtype_number};
use std::collections::HashSet;

/// The variables that hold shapes: of 32 bits in a `.pdmodel`, until they are cast.
fn short_extents(program: &Program) -> HashSet<VarId> {
    let mut short = HashSet::new();
    for op in program.all_ops() {
        let sliced = op.schema.name == "slice" && op.var("input").is_ok_and(|v| short.contains(&v));
        if op.schema.name == "shape64" || sliced {
            short.extend(op.results("out"));
        }
    }
    short
}

/// Which ops give something that a `.pdmodel` reads: it lacks some of PIR's arguments.
fn read_ops(program: &Program) -> Vec<bool> {
    let mut needed = vec![false; program.vars.len()];
    program.fetches.iter().for_each(|&v| needed[v] = true);
    // What a branch or a loop reads is needed, whatever is decided.
    for op in program.regions.iter().flat_map(|r| &r.ops) {
        for (_, value) in &op.args {
            match value {
                Value::Var(v) => needed[*v] = true,
                Value::Vars(vars) => vars.iter().for_each(|&v| needed[v] = true),
                _ => {}
            }
        }
    }
    program.regions.iter().flat_map(|r| &r.yields).for_each(|&v| needed[v] = true);
    let mut read = vec![false; program.ops.len()];
    for (k, op) in program.ops.iter().enumerate().rev() {
        read[k] = op.results.iter().flat_map(|(_, vars)| vars).any(|&v| needed[v]);
        for slot in op.schema.args.iter().filter(|s| read[k] && !s.classic.is_empty()) {
            match op.get(slot.name) {
                Some(Value::Var(v)) => needed[*v] = true,
                Some(Value::Vars(vars)) => vars.iter().for_each(|&v| needed[v] = true),
                _ => {}
            }
        }
    }
    read
}

/// Attributes that a `.pdmodel` wants beside those of the schema.
fn extra(program: &Program, op: &Op, dtype_of_var: &dyn Fn(VarId) -> DType) -> Vec<(&'static str, Attr)> {
    let empty = |name: &str| op.ints(name).is_ok_and(|v| v.is_empty());
    let in_dtype = || op.var("x").map_or(-1, |x| dtype_number(dtype_of_var(x)));
    match op.schema.name {
        "cast" => vec![("in_dtype", Attr::Int(in_dtype()))],
        "mean" | "max" | "min" | "sum" | "any" | "all" => vec![("reduce_all", Attr::Bool(empty("axis")))],
        "tril" | "triu" => vec![("lower", Attr::Bool(op.schema.name == "tril"))],
        "split" => vec![("num", Attr::Int(0))],
        "split_with_num" => vec![("sections", Attr::Ints(vec![]))],
        "strided_slice" => {
            let n = op.ints("axes").map_or(0, |v| v.len());
            vec![("infer_flags", Attr::Ints(vec![1; n])), ("decrease_axis", Attr::Ints(vec![]))]
        }
        "set_value_with_tensor" => {
            let dtype = op.var("x").map_or(5, |x| dtype_number(program.vars[x].dtype));
            vec![("dtype", Attr::Int(dtype)), ("shape", Attr::Longs(vec![1]))]
        }
        "full" => {
            let value = op.float_or("value", 0.0);
            // The number as text, which keeps all its digits.
            vec![("str_value", Attr::Text(format!("{value}"))), ("force_cpu", Attr::Bool(false))]
        }
        "one_hot" => {
            vec![("dtype", Attr::Int(dtype_number(DType::Float32))), ("allow_out_of_range", Attr::Bool(false))]
        }
        "add" | "subtract" | "multiply" | "divide" | "maximum" | "minimum" | "remainder" | "floor_divide"
        | "elementwise_pow" | "equal" | "not_equal" | "less_than" | "less_equal" | "greater_than" | "greater_equal" => {
            vec![("axis", Attr::Int(-1))]
        }
        "hardswish" => {
            vec![("threshold", Attr::Float(6.0)), ("scale", Attr::Float(6.0)), ("offset", Attr::Float(3.0))]
        }
        _ => vec![],
    }
}

/// A plain value as an attribute.
fn to_attr(kind: Kind, value: &Value) -> Option<Attr> {
    Some(match (kind, value) {
        (Kind::Bool, Value::Bool(b)) => Attr::Bool(*b),
        (Kind::Int32 | Kind::Int32Tensor, Value::Int(i)) => Attr::Int(*i),
        (Kind::Int64 | Kind::Int64Tensor, Value::Int(i)) => Attr::Long(*i),
        (Kind::Float32 | Kind::FloatTensor, Value::Float(f)) => Attr::Float(*f),
        (Kind::Float32 | Kind::FloatTensor, Value::Int(i)) => Attr::Float(*i as f64),
        (Kind::Text, Value::Text(t)) => Attr::Text(t.clone()),
        (Kind::DType, Value::DType(d)) => Attr::Int(d.map_or(-1, dtype_number)),
        (Kind::Int32s | Kind::Int64s { long: false } | Kind::Shape { long: false }, Value::Ints(v)) => {
            Attr::Ints(v.iter().map(|&v| v.clamp(i32::MIN.into(), i32::MAX.into())).collect())
        }
        (Kind::Int64s { long: true } | Kind::Shape { long: true }, Value::Ints(v)) => Attr::Longs(v.clone()),
        (Kind::Float32s, Value::Floats(v)) => Attr::Floats(v.clone()),
        _ => return None,
    })
}

/// The program as a file has it; `unused` gets a variable for each result that nobody reads.
/// A file that is being written: its blocks, the first of which is the program.
pub(super) struct Encoder<'p> {
    pub program: &'p Program,
    short: HashSet<VarId>,
    pub blocks: Vec<Block>,
    unread: usize,
}

pub(super) fn plain(name: &str, kind: VarKind) -> pdmodel::Var {
    pdmodel::Var { name: name.into(), kind, persistable: true, stop_gradient: false, is_parameter: false }
}

pub(crate) fn encode(program: &Program) -> Result<pdmodel::Program> {
    let block = Block { parent: -1, ..Block::default() };
    let mut w = Encoder { program, short: short_extents(program), blocks: vec![block], unread: 0 };
    w.blocks[0].vars.extend([plain("feed", VarKind::Feed), plain("fetch", VarKind::Fetch)]);
    // What regions make is declared there.
    let inside = |r: &'_ crate::paddle::program::Region| {
        r.ops.iter().flat_map(|op| &op.results).flat_map(|(_, v)| v).copied().collect::<Vec<_>>()
    };
    let inside = program.regions.iter().flat_map(inside).collect::<HashSet<_>>();
    for v in (0..program.vars.len()).filter(|v| !inside.contains(v)) {
        let declared = w.var(v);
        w.blocks[0].vars.push(declared);
    }
    let edge = |kind: &str, from: String, to: String, col: usize| pdmodel::Op {
        kind: kind.into(),
        inputs: vec![("X".into(), vec![from])],
        outputs: vec![("Out".into(), vec![to])],
        attrs: vec![("col".into(), Attr::Int(col as i64))],
    };
    // The last one first, as Paddle puts them; some readers count on it.
    for (i, v) in program.feeds.iter().enumerate().rev() {
        let feed = edge("feed", "feed".into(), w.name(*v), i);
        w.blocks[0].ops.push(feed);
    }
    let read = read_ops(program);
    for (_, op) in program.ops.iter().enumerate().filter(|(k, _)| read[*k]) {
        w.op(op, 0)?;
    }
    for (i, v) in program.fetches.iter().enumerate() {
        let fetch = edge("fetch", w.name(*v), "fetch".into(), i);
        w.blocks[0].ops.push(fetch);
    }
    Ok(pdmodel::Program { blocks: w.blocks })
}

impl Encoder<'_> {
    pub fn name(&self, v: VarId) -> String {
        self.program.vars[v].name.clone()
    }

    pub fn names(&self, vars: &[VarId]) -> Vec<String> {
        vars.iter().map(|&v| self.name(v)).collect()
    }

    fn dtype_of(&self, v: VarId) -> DType {
        if self.short.contains(&v) { DType::Int32 } else { self.program.vars[v].dtype }
    }

    /// The declaration of a variable.
    pub fn var(&self, v: VarId) -> pdmodel::Var {
        let var = &self.program.vars[v];
        pdmodel::Var {
            name: var.name.clone(),
            kind: VarKind::Tensor { dtype: Some(self.dtype_of(v)), dims: var.dims.clone() },
            persistable: var.weight,
            stop_gradient: var.stop_gradient,
            is_parameter: var.weight && var.trainable,
        }
    }

    /// Adds an op to a block.
    pub fn op(&mut self, op: &Op, block: usize) -> Result<()> {
        if matches!(op.schema.name, "if" | "while") {
            return self.flow(op, block);
        }
        let mut out = pdmodel::Op { kind: op.schema.classic.into(), ..pdmodel::Op::default() };
        for Slot { name: arg, classic, kind, tensors, .. } in &op.schema.args {
            match op.get(arg) {
                _ if classic.is_empty() => {}
                None => {}
                Some(Value::Var(v)) => {
                    let slot = if kind.is_tensor() { Some(*classic) } else { tensors.map(whole) };
                    let slot = slot.ok_or_else(|| not_written(op, arg))?;
                    out.inputs.push((slot.to_string(), vec![self.name(*v)]));
                }
                Some(Value::Vars(v)) if kind.is_tensor() => out.inputs.push((classic.to_string(), self.names(v))),
                Some(Value::Vars(v)) => {
                    let slot = tensors.ok_or_else(|| not_written(op, arg))?;
                    out.inputs.push((slot.to_string(), self.names(v)));
                    // Readers count the numbers there, and take the tensors.
                    let numbers = vec![-1; v.len()];
                    let long = *kind == Kind::Shape { long: true };
                    let numbers = if long { Attr::Longs(numbers) } else { Attr::Ints(numbers) };
                    out.attrs.push((classic.to_string(), numbers));
                }
                Some(value) => {
                    let attr = to_attr(*kind, value).ok_or_else(|| not_written(op, arg))?;
                    out.attrs.push((classic.to_string(), attr));
                }
            }
        }
        for Slot { name: result, classic, .. } in &op.schema.results {
            let vars = op.results(result);
            // Running statistics are written where they are read.
            let kept = match (op.schema.name, *result) {
                ("batch_norm_", "mean_out") => Some(op.var("mean")?),
                ("batch_norm_", "variance_out") => Some(op.var("variance")?),
                _ => None,
            };
            if let Some(kept) = kept {
                out.outputs.push((classic.to_string(), vec![self.name(kept)]));
            } else if !vars.is_empty() {
                out.outputs.push((classic.to_string(), self.names(vars)));
            } else if !result.is_empty() {
                // A result that nobody reads still has a name, if it is one that PIR knows too.
                self.unread += 1;
                let unread = format!("{}_unread_{}.{}", op.schema.name, self.unread, classic.to_lowercase());
                let bytes = matches!(*classic, "Mask" | "DropoutState");
                let dtype = Some(if bytes { DType::UInt8 } else { DType::Float32 });
                let kind = VarKind::Tensor { dtype, dims: vec![] };
                let declared = pdmodel::Var { persistable: false, stop_gradient: true, ..plain(&unread, kind) };
                self.blocks[block].vars.push(declared);
                out.outputs.push((classic.to_string(), vec![unread]));
            }
        }
        let more = extra(self.program, op, &|v| self.dtype_of(v));
        out.attrs.extend(more.into_iter().map(|(n, a)| (n.to_string(), a)));
        self.blocks[block].ops.push(out);
        Ok(())
    }
}

fn not_written(op: &Op, arg: &str) -> Error {
    Error::invalid(format!("{}: argument `{arg}` cannot be written", op.schema.name)).in_op("save")
}
