//! A program from a `.pdmodel`.

use super::read_flow::Flow;
use crate::paddle::program::{Op, Program, Value, Var, VarId};
use crate::paddle::schema::{self, Kind, Schema, Slot};
use sampan_core::{DType, Error, Result, Tensor};
use sampan_io::pdmodel::{self, Attr, VarKind, dtype_of};
use std::collections::HashMap;

pub(super) fn not_read(message: String) -> Error {
    Error::new(sampan_core::error::Kind::Unimplemented, message).in_op("load")
}

fn from_attr(kind: Kind, attr: &Attr) -> Option<Value> {
    Some(match attr {
        Attr::Int(i) | Attr::Long(i) if kind == Kind::DType => Value::DType(dtype_of(*i)),
        Attr::Int(i) | Attr::Long(i) if kind == Kind::Bool => Value::Bool(*i != 0),
        Attr::Int(i) | Attr::Long(i) => Value::Int(*i),
        Attr::Float(f) | Attr::Float64(f) => Value::Float(*f),
        Attr::Text(t) => Value::Text(t.clone()),
        Attr::Ints(v) | Attr::Longs(v) => Value::Ints(v.clone()),
        Attr::Floats(v) | Attr::Float64s(v) => Value::Floats(v.clone()),
        Attr::Bool(b) => Value::Bool(*b),
        Attr::Texts(_) | Attr::Bools(_) | Attr::Block(_) | Attr::Unknown(_) => return None,
    })
}

/// What a name stands for while a program is read: every write gives it a variable of its own, as PIR has it.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub var: VarId,
    /// Has it a value by now?
    pub given: bool,
}

/// A program that is being read.
pub(super) struct Reader<'f> {
    pub file: &'f pdmodel::Program,
    pub program: Program,
    pub scope: HashMap<&'f str, Place>,
    /// What names stood for before, for leaving a block again.
    pub before: Vec<(&'f str, Option<Place>)>,
    /// Blocks that were read; each is a part of one op.
    pub blocks: Vec<bool>,
    pub flow: Flow<'f>,
    /// Variables that turn others around, and numbers that are truth values: which.
    pub nots: HashMap<VarId, VarId>,
    pub casts: HashMap<VarId, VarId>,
    /// The block whose ops read a name, or none where several do.
    pub readers: HashMap<&'f str, Option<usize>>,
    edges: [Vec<(i64, VarId)>; 2],
}

impl<'f> Reader<'f> {
    pub fn set(&mut self, name: &'f str, place: Place) {
        self.before.push((name, self.scope.insert(name, place)));
    }

    /// Declares the variables of a block.
    pub fn declare(&mut self, block: &'f pdmodel::Block) -> Result<()> {
        for v in &block.vars {
            let (dtype, dims) = match &v.kind {
                VarKind::Tensor { dtype, dims } => (dtype, dims.clone()),
                // An axis more, for how many there are.
                VarKind::Array { dtype, dims } => (dtype, [&[-1], &dims[..]].concat()),
                _ => continue,
            };
            let array = matches!(v.kind, VarKind::Array { .. });
            let dtype = match dtype {
                Some(dtype) => *dtype,
                None if v.persistable => return Err(not_read(format!("`{}` has a dtype that sampan lacks", v.name))),
                None => DType::Float32,
            };
            let var = self.program.vars.len();
            let weight = v.persistable && !array;
            self.set(&v.name, Place { var, given: weight || array });
            self.program.vars.push(Var {
                name: v.name.clone(),
                dims,
                dtype,
                weight,
                trainable: weight && !v.stop_gradient,
                stop_gradient: v.stop_gradient,
            });
            if array {
                // Nothing makes one: it is there, and empty.
                let schema = schema::find("create_array").expect("it is in the table");
                self.program.ops.push(Op { schema, args: vec![], results: vec![("out", vec![var])] });
            }
        }
        Ok(())
    }

    pub fn place(&self, name: &str) -> Result<Place> {
        let found = self.scope.get(name).copied();
        found.ok_or_else(|| Error::invalid(format!("`{name}` is not declared")).in_op("load"))
    }

    pub fn var(&self, name: &str) -> Result<VarId> {
        Ok(self.place(name)?.var)
    }

    pub fn vars(&self, names: &[String]) -> Result<Vec<VarId>> {
        names.iter().map(|name| self.var(name)).collect()
    }

    /// The variable of a name that is written now. A parameter stays what it is.
    pub fn written(&mut self, name: &'f str) -> Result<VarId> {
        let Place { mut var, given } = self.place(name)?;
        if given && !self.program.vars[var].weight {
            self.program.vars.push(self.program.vars[var].clone());
            var = self.program.vars.len() - 1;
        }
        self.set(name, Place { var, given: true });
        Ok(var)
    }

    pub fn all_written(&mut self, names: &'f [String]) -> Result<Vec<VarId>> {
        names.iter().map(|name| self.written(name)).collect()
    }

    /// Reads the ops of a block.
    pub fn ops(&mut self, ops: &'f [pdmodel::Op], depth: usize) -> Result<()> {
        for op in ops {
            self.settle(op)?;
            match op.kind.as_str() {
                "feed" | "fetch" if depth == 0 => {
                    let col = op.attr("col").and_then(|a| if let Attr::Int(i) = a { Some(*i) } else { None });
                    let feeds = op.kind == "feed";
                    let vars = if feeds { self.all_written(op.output("Out"))? } else { self.vars(op.input("X"))? };
                    self.edges[usize::from(!feeds)].extend(vars.into_iter().map(|v| (col.unwrap_or(0), v)));
                }
                "assign_value" => {
                    let tensor = assigned(op)?;
                    let vars = self.all_written(op.output("Out"))?;
                    self.program.constants.extend(vars.into_iter().map(|v| (v, tensor.clone())));
                }
                "conditional_block" | "conditional_block_infer" => self.branch(op, depth)?,
                "select_input" => self.choice(op)?,
                "while" => self.repeated(op, depth)?,
                _ => {
                    let mut read = self.op(op)?;
                    align_axis(op, &mut read, &mut self.program)?;
                    self.note(&read);
                    self.program.ops.push(read);
                }
            }
        }
        self.close()
    }
}

/// Reads a program.
pub(crate) fn decode(file: &pdmodel::Program) -> Result<Program> {
    let mut reader = Reader {
        file,
        program: Program::default(),
        scope: HashMap::new(),
        before: Vec::new(),
        blocks: vec![false; file.blocks.len()],
        flow: Flow::default(),
        nots: HashMap::new(),
        casts: HashMap::new(),
        readers: HashMap::new(),
        edges: [Vec::new(), Vec::new()],
    };
    for (at, block) in file.blocks.iter().enumerate() {
        let plain = block.ops.iter().filter(|op| !matches!(op.attr("sub_block"), Some(Attr::Block(_))));
        for name in plain.flat_map(|op| &op.inputs).flat_map(|(_, names)| names) {
            let known = reader.readers.entry(name).or_insert(Some(at));
            *known = known.filter(|k| *k == at);
        }
    }
    let first = file.blocks.first().ok_or_else(|| Error::invalid("a program without a block").in_op("load"))?;
    reader.blocks[0] = true;
    reader.declare(first)?;
    reader.ops(&first.ops, 0)?;
    let Reader { mut program, mut edges, .. } = reader;
    for list in &mut edges {
        list.sort_by_key(|(col, _)| *col);
    }
    let [feeds, fetches] = edges.map(|list| list.into_iter().map(|(_, v)| v).collect());
    (program.feeds, program.fetches) = (feeds, fetches);
    Ok(program)
}

/// The op of the schema, where a type stands for several.
fn schema_of(op: &pdmodel::Op) -> Result<&'static Schema> {
    let flag = |name: &str| matches!(op.attr(name), Some(Attr::Bool(true)));
    let wanted = match op.kind.as_str() {
        "tril_triu" => Some(if flag("lower") { "tril" } else { "triu" }),
        "split" => match op.attr("num") {
            Some(Attr::Int(n)) if *n > 0 => Some("split_with_num"),
            _ => Some("split"),
        },
        // Older names of the same.
        "matmul" | "mul" => return Err(not_read(format!("`{}`, an op of Paddle 1", op.kind))),
        "reduce_mean" | "mean" => Some("mean"),
        "flatten2" => return Err(not_read("`flatten2`, an op of Paddle 1".into())),
        "not_equal" => Some("not_equal"),
        _ => None,
    };
    let found = match wanted {
        Some(name) => schema::find(name),
        None => schema::find_classic(&op.kind).next(),
    };
    found.ok_or_else(|| {
        not_read(format!("the program calls `{}`, which has no counterpart here yet", op.kind))
            .hint("the network's code runs as it is; load its parameters with set_state_dict")
    })
}

/// Where an op takes one tensor that holds all the numbers, by where it takes one for each: `Shape`, `StartsTensor` …
pub(super) fn whole(each: &str) -> &str {
    match each {
        "ShapeTensor" | "expand_shapes_tensor" => "Shape",
        "ShapeTensorList" => "ShapeTensor",
        "repeat_times_tensor" => "RepeatTimes",
        other => other.strip_suffix("List").unwrap_or(""),
    }
}

impl<'f> Reader<'f> {
    fn op(&mut self, op: &'f pdmodel::Op) -> Result<Op> {
        let vars = |names: &[String]| self.vars(names);
        let schema = schema_of(op)?;
        let mut args = Vec::new();
        for slot in &schema.args {
            let given = op.input(slot.classic);
            let tensors = slot.tensors.map_or(&[][..], |s| op.input(s));
            let whole = slot.tensors.map_or(&[][..], |s| op.input(whole(s)));
            let value = if slot.kind.is_tensor() {
                match slot.kind {
                    _ if given.is_empty() => None,
                    Kind::Tensors => Some(Value::Vars(vars(given)?)),
                    _ => Some(Value::Var(vars(given)?[0])),
                }
            } else if !whole.is_empty() {
                Some(Value::Var(vars(whole)?[0]))
            } else if !tensors.is_empty() {
                Some(Value::Vars(vars(tensors)?))
            } else {
                op.attr(slot.classic).and_then(|a| from_attr(slot.kind, a))
            };
            args.extend(value.map(|v| (slot.name, v)));
        }
        if matches!(op.attr("reduce_all"), Some(Attr::Bool(true))) && schema.arg("axis").is_some() {
            args.retain(|(n, _)| *n != "axis");
            args.push(("axis", Value::Ints(vec![])));
        }
        if op.kind == "fill_constant" {
            let text = op.attr("str_value").and_then(|a| if let Attr::Text(t) = a { Some(t.as_str()) } else { None });
            if let Some(value) = text.filter(|t| !t.is_empty()).and_then(number) {
                args.retain(|(n, _)| *n != "value");
                args.push(("value", Value::Float(value)));
            }
        }
        if op.kind == "write_to_array" {
            // What it writes into stands among its results alone.
            let array = op.output("Out").first().map(|name| self.var(name)).transpose()?;
            args.extend(array.map(|v| ("array", Value::Var(v))));
        }
        let result = |s: &'static Slot| Ok((s.name, self.all_written(op.output(s.classic))?));
        let results = schema.results.iter().filter(|s| !s.name.is_empty()).map(result).collect::<Result<_>>()?;
        Ok(Op { schema, args, results })
    }
}

/// Paddle 2 says where the axes of `y` lie among those of `x`; others match them from the last.
fn align_axis(file: &pdmodel::Op, op: &mut Op, program: &mut Program) -> Result<()> {
    let Some(Attr::Int(axis @ 0..)) = file.attr("axis").filter(|_| file.kind.starts_with("elementwise_")) else {
        return Ok(());
    };
    let (x, y) = (op.var("x")?, op.var("y")?);
    let (rank, own) = (program.vars[x].dims.len() as i64, program.vars[y].dims.len() as i64);
    let behind = rank - own - axis;
    if behind <= 0 || behind > 64 {
        return Ok(());
    }
    let mut var = program.vars[y].clone();
    (var.weight, var.trainable, var.name) = (false, false, format!("{}@{axis}", var.name));
    var.dims.extend(std::iter::repeat_n(1, behind as usize));
    program.vars.push(var);
    let wide = program.vars.len() - 1;
    let schema = schema::find("unsqueeze").expect("it is in the table");
    let args = vec![("x", Value::Var(y)), ("axis", Value::Ints((own..own + behind).collect()))];
    program.ops.push(Op { schema, args, results: vec![("out", vec![wide])] });
    op.args.retain(|(n, _)| *n != "y");
    op.args.push(("y", Value::Var(wide)));
    Ok(())
}

/// A number as Paddle writes it, `inf` and `nan` included.
fn number(text: &str) -> Option<f64> {
    match text {
        "True" | "true" => Some(1.0),
        "False" | "false" => Some(0.0),
        other => other.parse().ok(),
    }
}

/// The values of `assign_value`.
fn assigned(op: &pdmodel::Op) -> Result<Tensor> {
    let whole = |name: &str| match op.attr(name) {
        Some(Attr::Ints(v) | Attr::Longs(v)) => v.clone(),
        _ => vec![],
    };
    let real = |name: &str| match op.attr(name) {
        Some(Attr::Floats(v) | Attr::Float64s(v)) => v.clone(),
        _ => vec![],
    };
    let shape = whole("shape").iter().map(|&d| usize::try_from(d).unwrap_or(0)).collect::<Vec<_>>();
    let number = op.attr("dtype").map_or(5, |a| if let Attr::Int(i) = a { *i } else { 5 });
    let dtype = dtype_of(number).ok_or_else(|| not_read(format!("assign_value of Paddle's dtype number {number}")))?;
    let mut values = [whole("int32_values"), whole("int64_values"), whole("bool_values")].concat();
    let reals = [real("fp32_values"), real("fp64_values"), real("values")].concat();
    values.extend(whole("values"));
    constant(&shape, dtype, &values, &reals)
}

/// A tensor of numbers that are written in a program.
pub(crate) fn constant(shape: &[usize], dtype: DType, wholes: &[i64], reals: &[f64]) -> Result<Tensor> {
    let numel = shape.iter().try_fold(1usize, |n, &d| n.checked_mul(d));
    let fits = |len: usize| numel == Some(len);
    let tensor = match (wholes.is_empty(), reals.is_empty()) {
        (false, _) if fits(wholes.len()) => Tensor::from_vec(wholes.to_vec(), shape),
        (_, false) if fits(reals.len()) => Tensor::from_vec(reals.to_vec(), shape),
        (true, true) if fits(0) => Tensor::from_vec(Vec::<f32>::new(), shape),
        _ => {
            let count = wholes.len().max(reals.len());
            return Err(Error::invalid(format!("a constant of shape {shape:?} has {count} values")).in_op("load"));
        }
    };
    tensor.try_cast(dtype)
}
