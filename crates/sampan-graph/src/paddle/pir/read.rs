//! A program from JSON.

use super::TYPES;
use crate::paddle::classic::constant;
use crate::paddle::program::{DEEPEST, Op, Program, Region, Value, Var, VarId};
use crate::paddle::schema::{self, Kind};
use sampan_core::error::Kind as ErrorKind;
use sampan_core::{DType, Error, Result};
use serde_json::Value as Json;
use std::collections::HashMap;

fn damaged(message: impl Into<String>) -> Error {
    Error::invalid(format!("PIR program: {}", message.into())).in_op("load")
}

/// An attribute as a plain value.
fn from_attr(value: &Json) -> Option<Value> {
    let (kind, data) = (value.get("#")?.as_str()?, value.get("D"));
    let float = |v: &Json| match v.as_str() {
        None => v.as_f64(),
        Some("INF" | "inf") => Some(f64::INFINITY),
        Some("-INF" | "-inf") => Some(f64::NEG_INFINITY),
        Some("NAN" | "nan") => Some(f64::NAN),
        Some(_) => None,
    };
    Some(match kind.split("a_").nth(1)? {
        "bool" => Value::Bool(data?.as_bool()?),
        "i8" | "i16" | "i32" | "i64" | "ui8" | "index" => Value::Int(data?.as_i64()?),
        "f32" | "f64" => Value::Float(float(data?)?),
        "str" => Value::Text(data?.as_str()?.into()),
        "dtype" => {
            let name = data?.as_str()?;
            Value::DType(TYPES.iter().find(|(_, d)| d.to_string() == name).map(|&(_, d)| d))
        }
        "intarray" => Value::Ints(data?.as_array()?.iter().map(Json::as_i64).collect::<Option<_>>()?),
        "array" => {
            let items = data?.as_array()?.iter().map(from_attr).collect::<Option<Vec<_>>>()?;
            let whole = |v: &Value| if let Value::Int(i) = v { Some(*i) } else { None };
            let number = |v: &Value| match v {
                Value::Int(i) => Some(*i as f64),
                Value::Float(f) => Some(*f),
                _ => None,
            };
            match items.iter().map(whole).collect::<Option<Vec<_>>>() {
                Some(ints) => Value::Ints(ints),
                None => Value::Floats(items.iter().map(number).collect::<Option<_>>()?),
            }
        }
        "scalar" => from_attr(data?)?,
        _ => return None,
    })
}

/// What is known of the values of a file.
#[derive(Default)]
struct Reader {
    program: Program,
    vars: HashMap<i64, VarId>,
    /// Several values as one: the numbers that `combine` took, and the ops whose results are lists.
    lists: HashMap<i64, Vec<VarId>>,
    /// The op and the result whose pieces a later `split` names.
    pending: HashMap<i64, (usize, &'static str)>,
    numbers: HashMap<i64, f64>,
    arrays: HashMap<i64, Vec<i64>>,
    /// Arrays of tensors, which are written in place: which array a value is, and what each holds by now.
    places: HashMap<i64, usize>,
    held: Vec<VarId>,
}

/// What PIR calls an array of tensors.
const ARRAY: &str = "1.t_dense_tensor_array";

impl Reader {
    fn define(&mut self, out: &Json, name: Option<String>) -> Result<VarId> {
        let number = out.get("%").and_then(Json::as_i64).ok_or_else(|| damaged("a result without a number"))?;
        let kind = out.get("TT").ok_or_else(|| damaged("a result without a type"))?;
        let data = kind.get("D").and_then(Json::as_array);
        let element = data.and_then(|d| d.first()?.get("#")?.as_str());
        let dtype = element.and_then(|e| TYPES.iter().find(|(n, _)| *n == e)).map_or(DType::Float32, |&(_, d)| d);
        let dims = data.and_then(|d| d.get(1)?.as_array()?.iter().map(Json::as_i64).collect::<Option<Vec<_>>>());
        let v = self.program.vars.len();
        let mut dims = dims.unwrap_or_default();
        if kind.get("#").and_then(Json::as_str) == Some(ARRAY) {
            // An axis more, for how many there are.
            dims.insert(0, -1);
            self.places.insert(number, self.held.len());
            self.held.push(v);
        }
        self.program.vars.push(Var {
            name: name.unwrap_or_else(|| format!("v{number}")),
            dims,
            dtype,
            weight: false,
            trainable: false,
            stop_gradient: false,
        });
        self.vars.insert(number, v);
        Ok(v)
    }

    fn var(&self, number: i64) -> Result<VarId> {
        if let Some(&held) = self.places.get(&number).and_then(|&place| self.held.get(place)) {
            return Ok(held);
        }
        self.vars.get(&number).copied().ok_or_else(|| damaged(format!("value {number} is read before it is given")))
    }

    /// An op has changed an array, and gives it first; then what it took away.
    fn changed(&mut self, array: i64, outputs: &[&Json]) {
        let number = |out: &&Json| out.get("%").and_then(Json::as_i64).unwrap_or(-1);
        let made = outputs.iter().filter_map(|out| self.vars.get(&number(out)).copied()).collect::<Vec<_>>();
        let (Some(&place), [changed, taken @ ..]) = (self.places.get(&array), &made[..]) else { return };
        let Some(held) = self.held.get_mut(place) else { return };
        // Paddle says nothing true of the shapes here.
        let dims = self.program.vars[*held].dims.clone();
        taken.iter().for_each(|&v| self.program.vars[v].dims = dims[1.min(dims.len())..].to_vec());
        self.program.vars[*changed].dims = dims;
        *held = *changed;
        self.places.insert(number(&outputs[0]), place);
    }

    /// A new variable like another.
    fn like(&mut self, var: VarId) -> VarId {
        self.program.vars.push(self.program.vars[var].clone());
        self.program.vars.len() - 1
    }

    fn outputs(op: &Json) -> Result<Vec<&Json>> {
        match op.get("O") {
            Some(Json::Array(all)) => Ok(all.iter().collect()),
            Some(one) => Ok(vec![one]),
            None => Err(damaged("an op without results")),
        }
    }

    fn op(&mut self, op: &Json, depth: usize) -> Result<()> {
        let name = op.get("#").and_then(Json::as_str).ok_or_else(|| damaged("an op without a name"))?;
        let empty = Vec::new();
        let list = |key: &str| op.get(key).and_then(Json::as_array).unwrap_or(&empty);
        let inputs = list("I").iter().map(|i| i.get("%").and_then(Json::as_i64).unwrap_or(0)).collect::<Vec<_>>();
        let outputs = Self::outputs(op)?;
        if name == "p" {
            let label = list("A").get(3).and_then(Json::as_str).ok_or_else(|| damaged("a parameter without a name"))?;
            let v = self.define(outputs[0], Some(label.into()))?;
            let flag = |i: usize| list("OA").get(i).and_then(Json::as_i64) != Some(0);
            if label.ends_with("__non_persistable") {
                // A place for what dropout draws, which no file keeps.
                let shape = self.program.vars[v].dims.iter().map(|&d| d.max(0) as usize).collect::<Vec<_>>();
                let zeros = vec![0; shape.iter().product::<usize>().min(1)];
                self.program.constants.push((v, constant(&shape, self.program.vars[v].dtype, &zeros, &[])?));
                return Ok(());
            }
            let var = &mut self.program.vars[v];
            (var.weight, var.stop_gradient) = (true, flag(1));
            var.trainable = !var.stop_gradient;
            return Ok(());
        }
        let attrs = list("A")
            .iter()
            .filter_map(|a| Some((a.get("N")?.as_str()?, from_attr(a.get("AT")?)?)))
            .collect::<HashMap<_, _>>();
        let number = |out: &Json| out.get("%").and_then(Json::as_i64).unwrap_or(-1);
        match name {
            "1.data" | "1.feed" => {
                let label = attrs.get("name").and_then(|v| if let Value::Text(t) = v { Some(t.clone()) } else { None });
                let v = self.define(outputs.first().ok_or_else(|| damaged("an input without a value"))?, label)?;
                self.program.feeds.push(v);
                return Ok(());
            }
            "1.fetch" => {
                let v = self.var(*inputs.first().ok_or_else(|| damaged("an output without a value"))?)?;
                self.program.fetches.push(v);
                return Ok(());
            }
            "0.combine" => {
                let all = inputs.iter().map(|&i| self.var(i)).collect::<Result<Vec<_>>>()?;
                outputs.first().map(|out| self.lists.insert(number(out), all));
                return Ok(());
            }
            "0.split" => return self.split(&inputs, &outputs),
            "1.if" | "1.while" => return self.flow(op, &inputs, &outputs, depth),
            _ if op.get("regions").is_some_and(|r| r.as_array().is_some_and(|r| !r.is_empty())) => {
                let message = format!("the program branches ({name}), which is not read yet");
                return Err(Error::new(ErrorKind::Unimplemented, message).in_op("load"));
            }
            "1.full_int_array" => {
                let out = outputs.first().ok_or_else(|| damaged("an array without a value"))?;
                let Some(Value::Ints(values)) = attrs.get("value") else {
                    return Err(damaged("an array of no integers"));
                };
                let v = self.define(out, None)?;
                let tensor = constant(&[values.len()], self.program.vars[v].dtype, values, &[])?;
                self.program.constants.push((v, tensor));
                self.arrays.insert(number(out), values.clone());
                return Ok(());
            }
            "1.assign_value_" | "1.assign_value" => {
                let out = outputs.first().ok_or_else(|| damaged("a constant without a value"))?;
                let v = self.define(out, None)?;
                let shape = match attrs.get("shape") {
                    Some(Value::Ints(s)) => s.iter().map(|&d| usize::try_from(d).unwrap_or(0)).collect::<Vec<_>>(),
                    _ => vec![],
                };
                let (wholes, reals) = match attrs.get("values") {
                    Some(Value::Ints(v)) => (v.clone(), vec![]),
                    Some(Value::Floats(v)) => (vec![], v.clone()),
                    _ => (vec![], vec![]),
                };
                let tensor = constant(&shape, self.program.vars[v].dtype, &wholes, &reals)?;
                self.program.constants.push((v, tensor));
                return Ok(());
            }
            "1.full" => {
                if let (Some(Value::Float(f)), Some(out)) = (attrs.get("value"), outputs.first()) {
                    self.numbers.insert(number(out), *f);
                }
            }
            "1.full_with_tensor" => {
                let (value, shape) = (inputs.first().copied().unwrap_or(0), inputs.get(1).copied().unwrap_or(0));
                let value =
                    *self.numbers.get(&value).ok_or_else(|| damaged("full_with_tensor of a computed number"))?;
                let shape = self.sizes(shape)?;
                let v = self.define(outputs.first().ok_or_else(|| damaged("a tensor without a value"))?, None)?;
                let dtype = Value::DType(Some(self.program.vars[v].dtype));
                let args = vec![("shape", shape), ("value", Value::Float(value)), ("dtype", dtype)];
                let schema = schema::find("full").expect("it is in the table");
                self.program.ops.push(Op { schema, args, results: vec![("out", vec![v])] });
                return Ok(());
            }
            _ => {}
        }
        self.known(name, &inputs, &attrs, &outputs)
    }

    /// What a branch or a loop computes; the number of the region.
    fn region(&mut self, region: &Json, depth: usize) -> Result<usize> {
        if depth > DEEPEST {
            return Err(damaged(format!("branches inside of branches, more than {DEEPEST} deep")));
        }
        let block = region.pointer("/blocks/0").ok_or_else(|| damaged("a region without a block"))?;
        let list = |key: &str| block.get(key).and_then(Json::as_array).map_or(&[][..], Vec::as_slice);
        let mut found = Region::default();
        for arg in list("args") {
            // They are named as results are, but for the sign.
            let number = arg.get("#").or_else(|| arg.get("%")).cloned().unwrap_or(Json::Null);
            let kind = arg.get("TT").cloned().unwrap_or(Json::Null);
            found.args.push(self.define(&serde_json::json!({"%": number, "TT": kind}), None)?);
        }
        let outer = std::mem::take(&mut self.program.ops);
        let mut read = || -> Result<()> {
            for op in list("ops") {
                if op.get("#").and_then(Json::as_str) == Some("2.yield") {
                    let inputs = op.get("I").and_then(Json::as_array).map_or(&[][..], Vec::as_slice);
                    let var = |i: &Json| self.var(i.get("%").and_then(Json::as_i64).unwrap_or(0));
                    found.yields = inputs.iter().map(var).collect::<Result<_>>()?;
                } else {
                    self.op(op, depth + 1)?;
                }
            }
            Ok(())
        };
        let result = read();
        found.ops = std::mem::replace(&mut self.program.ops, outer);
        result?;
        self.program.regions.push(found);
        Ok(self.program.regions.len() - 1)
    }

    fn flow(&mut self, op: &Json, inputs: &[i64], outputs: &[&Json], depth: usize) -> Result<()> {
        let branches = op.get("#").and_then(Json::as_str) == Some("1.if");
        let names: &[&str] = if branches { &["then", "otherwise"] } else { &["body"] };
        let regions = op.get("regions").and_then(Json::as_array).map_or(&[][..], Vec::as_slice);
        if regions.len() != names.len() || inputs.is_empty() {
            return Err(damaged("a branch or loop without its regions"));
        }
        let mut args = vec![("cond", Value::Var(self.var(inputs[0])?))];
        if !branches {
            let state = inputs[1..].iter().map(|&i| self.var(i)).collect::<Result<_>>()?;
            args.push(("inputs", Value::Vars(state)));
        }
        // Arrays of around that are written in a region are changed by it.
        let before = self.held.clone();
        let mut after = Vec::new();
        let mut numbers = Vec::new();
        for (name, region) in names.iter().zip(regions) {
            numbers.push(self.region(region, depth)?);
            args.push((name, Value::Region(numbers[numbers.len() - 1])));
            after.push(self.held[..before.len()].to_vec());
            self.held[..before.len()].copy_from_slice(&before);
        }
        let mut results = outputs.iter().map(|out| self.define(out, None)).collect::<Result<Vec<_>>>()?;
        for (place, &array) in before.iter().enumerate() {
            if after.iter().all(|held| held[place] == array) {
                continue;
            }
            for (&number, held) in numbers.iter().zip(&after) {
                self.program.regions[number].yields.push(held[place]);
            }
            if let Some((_, Value::Vars(state))) = args.get_mut(1).filter(|_| !branches) {
                state.push(array);
                let inside = self.like(array);
                self.program.regions[numbers[0]].args.push(inside);
                self.program.put_in_place(numbers[0], array, inside);
            }
            let result = self.like(array);
            results.push(result);
            self.held[place] = result;
        }
        let schema = schema::find(if branches { "if" } else { "while" }).expect("it is in the table");
        self.program.ops.push(Op { schema, args, results: vec![("out", results)] });
        Ok(())
    }

    /// Numbers for a shape: plain, or a tensor.
    fn sizes(&self, number: i64) -> Result<Value> {
        Ok(match (self.arrays.get(&number), self.lists.get(&number)) {
            (Some(values), _) => Value::Ints(values.clone()),
            (_, Some(vars)) => Value::Vars(vars.clone()),
            _ => Value::Var(self.var(number)?),
        })
    }

    fn split(&mut self, inputs: &[i64], outputs: &[&Json]) -> Result<()> {
        let from = *inputs.first().ok_or_else(|| damaged("a split of nothing"))?;
        if let Some(vars) = self.lists.get(&from).cloned() {
            for (out, v) in outputs.iter().zip(vars) {
                self.vars.insert(out.get("%").and_then(Json::as_i64).unwrap_or(-1), v);
            }
            return Ok(());
        }
        let (op, result) = self.pending.get(&from).copied().ok_or_else(|| damaged("a split of no list"))?;
        let vars = outputs.iter().map(|out| self.define(out, None)).collect::<Result<Vec<_>>>()?;
        self.program.ops[op].results.retain(|(n, _)| *n != result);
        self.program.ops[op].results.push((result, vars));
        Ok(())
    }

    /// An op of the schema.
    fn known(&mut self, name: &str, inputs: &[i64], attrs: &HashMap<&str, Value>, outputs: &[&Json]) -> Result<()> {
        let short = name.strip_prefix("1.").unwrap_or(name);
        // Who reads what `increment_` wrote in place is not followed.
        let known = Some(short).filter(|name| *name != "increment_");
        let schema =
            known.and_then(|name| schema::find(if name == "shape" { "shape64" } else { name })).ok_or_else(|| {
                let message = format!("the program calls `{short}`, which has no counterpart here yet");
                Error::new(ErrorKind::Unimplemented, message)
                    .hint("the network's code runs as it is; load its parameters with set_state_dict")
                    .in_op("load")
            })?;
        let into = inputs.first().copied().unwrap_or(0);
        let mut inputs = inputs.iter().copied();
        let mut args = Vec::new();
        for slot in &schema.args {
            let operand = match slot.kind {
                // `full` has its shape and its number as attributes.
                _ if schema.name == "full" => None,
                Kind::Tensor | Kind::Tensors | Kind::Shape { .. } => inputs.next(),
                Kind::FloatTensor | Kind::Int32Tensor | Kind::Int64Tensor => inputs.next(),
                _ => None,
            };
            let value = match (slot.kind, operand) {
                (_, None) => attrs.get(slot.name).cloned(),
                (_, Some(0)) => None,
                (Kind::Tensors, Some(i)) => Some(Value::Vars(match self.lists.get(&i) {
                    Some(vars) => vars.clone(),
                    None => vec![self.var(i)?],
                })),
                (Kind::Shape { .. }, Some(i)) => Some(self.sizes(i)?),
                (Kind::FloatTensor | Kind::Int32Tensor | Kind::Int64Tensor, Some(i)) => match self.numbers.get(&i) {
                    Some(n) => Some(Value::Float(*n)),
                    None => Some(Value::Var(self.var(i)?)),
                },
                (_, Some(i)) => Some(Value::Var(self.var(i)?)),
            };
            args.extend(value.map(|v| (slot.name, v)));
        }
        if matches!(attrs.get("reduce_all"), Some(Value::Bool(true))) {
            args.retain(|(n, _)| *n != "axis");
            args.push(("axis", Value::Ints(vec![])));
        }
        let at = self.program.ops.len();
        let mut results = Vec::new();
        for (slot, out) in schema.results.iter().filter(|s| !s.name.is_empty()).zip(outputs) {
            if slot.kind == Kind::Tensors {
                self.pending.insert(out.get("%").and_then(Json::as_i64).unwrap_or(-1), (at, slot.name));
            } else {
                results.push((slot.name, vec![self.define(out, None)?]));
            }
        }
        if matches!(short, "array_write_" | "array_pop") {
            self.changed(into, outputs);
        }
        self.program.ops.push(Op { schema, args, results });
        Ok(())
    }
}

/// Reads a program.
pub(crate) fn decode(text: &str) -> Result<Program> {
    let file: Json = serde_json::from_str(text).map_err(|e| damaged(format!("it is no JSON: {e}")))?;
    let magic = file.pointer("/base_code/magic").and_then(Json::as_str);
    if magic != Some("pir") {
        return Err(damaged("it is another kind of JSON").hint("jit.save of Paddle 3 writes such files"));
    }
    let ops = file.pointer("/program/regions/0/blocks/0/ops").and_then(Json::as_array);
    let mut reader = Reader::default();
    for op in ops.ok_or_else(|| damaged("there are no ops in it"))? {
        reader.op(op, 0)?;
    }
    super::codes::from_arithmetic(&mut reader.program);
    Ok(reader.program)
}
