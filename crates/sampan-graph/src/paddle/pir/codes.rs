//! Codes as arithmetic: Paddle 3 reads `quantize_linear` and `dequantize_linear` from a `.json`, but computes nonsense with them on
//! a CPU (its own files too), so a program has what they stand for instead. Here they are found again.

use crate::paddle::program::{Op, Program, Value, Var, VarId};
use crate::paddle::schema;
use sampan_core::{DType, Error, Result};
use std::collections::{HashMap, HashSet};

struct Rewriter {
    vars: Vec<Var>,
    ops: Vec<Op>,
}

impl Rewriter {
    fn var(&mut self, dims: Vec<i64>) -> VarId {
        let name = format!("codes_{}", self.vars.len());
        self.vars.push(Var { name, dims, dtype: DType::Float32, weight: false, trainable: false, stop_gradient: true });
        self.vars.len() - 1
    }

    fn emit(&mut self, name: &'static str, args: Vec<(&'static str, Value)>, to: VarId) -> Result<VarId> {
        let schema =
            schema::find(name).ok_or_else(|| Error::invalid(format!("{name} is in no table")).in_op("save"))?;
        self.ops.push(Op { schema, args, results: vec![(schema.results[0].name, vec![to])] });
        Ok(to)
    }

    /// The step of codes, laid out as it spreads over them.
    fn step(&mut self, op: &Op, axes: usize) -> Result<VarId> {
        let scale = op.var("scale")?;
        let to = self.var(self.vars[scale].dims.clone());
        let args = vec![
            ("x", Value::Var(scale)),
            ("scale", Value::Float(1.0 / 127.0)),
            ("bias", Value::Float(0.0)),
            ("bias_after_scale", Value::Bool(true)),
        ];
        let step = self.emit("scale", args, to)?;
        let Some(axis) = usize::try_from(op.int("quant_axis")?).ok().filter(|&a| a < axes) else { return Ok(step) };
        let mut shape = vec![1; axes];
        shape[axis] = self.vars[scale].dims.first().copied().unwrap_or(1);
        let to = self.var(shape.clone());
        shape[axis] = -1;
        self.emit("reshape", vec![("x", Value::Var(step)), ("shape", Value::Ints(shape))], to)
    }

    fn rewrite(&mut self, op: &Op) -> Result<()> {
        let (mut x, y) = (op.var("x")?, op.first_result()?);
        let dims = self.vars[x].dims.clone();
        let step = self.step(op, dims.len())?;
        if op.schema.name == "dequantize_linear" {
            if self.vars[x].dtype != DType::Float32 {
                let to = self.var(dims);
                let cast = vec![("x", Value::Var(x)), ("dtype", Value::DType(Some(DType::Float32)))];
                x = self.emit("cast", cast, to)?;
            }
            self.emit("multiply", vec![("x", Value::Var(x)), ("y", Value::Var(step))], y)?;
            return Ok(());
        }
        let to = self.var(dims.clone());
        let scaled = self.emit("divide", vec![("x", Value::Var(x)), ("y", Value::Var(step))], to)?;
        let to = self.var(dims);
        let mut args = vec![("x", Value::Var(scaled))];
        if schema::find("round").is_some_and(|s| s.arg("decimals").is_some()) {
            args.push(("decimals", Value::Int(0)));
        }
        let rounded = self.emit("round", args, to)?;
        let args = vec![("x", Value::Var(rounded)), ("min", Value::Float(-128.0)), ("max", Value::Float(127.0))];
        self.emit("clip", args, y)?;
        Ok(())
    }
}

fn is_coded(op: &Op) -> bool {
    matches!(op.schema.name, "quantize_linear" | "dequantize_linear")
}

/// The program without such ops; `None` if it has none.
pub(super) fn as_arithmetic(program: &Program) -> Result<Option<Program>> {
    if !program.all_ops().any(is_coded) {
        return Ok(None);
    }
    let mut all = program.clone();
    let mut r = Rewriter { vars: std::mem::take(&mut all.vars), ops: vec![] };
    for ops in std::iter::once(&mut all.ops).chain(all.regions.iter_mut().map(|region| &mut region.ops)) {
        for op in std::mem::take(ops) {
            if is_coded(&op) { r.rewrite(&op)? } else { r.ops.push(op) }
        }
        *ops = std::mem::take(&mut r.ops);
    }
    all.vars = r.vars;
    Ok(Some(all))
}

/// The op that gives each variable.
type Made<'p> = HashMap<VarId, &'p Op>;

fn is(op: &Op, name: &str) -> bool {
    op.schema.name == name
}

fn number(op: &Op, name: &str) -> Option<f64> {
    op.float(name).ok()
}

/// The range that the steps of `x` are made of, and the axis that they lie along, -1 for one step.
fn range(made: &Made, vars: &[Var], x: VarId, step: VarId) -> Option<(VarId, i64)> {
    let mut op = *made.get(&step)?;
    let floats = vars[step].dtype == DType::Float32;
    let (x, mut axis) = (&vars[x].dims, -1);
    if is(op, "reshape") {
        let shape = op.ints("shape").ok()?;
        axis = shape.iter().position(|n| *n == -1)? as i64;
        if shape.len() != x.len() || shape.iter().enumerate().any(|(i, n)| i as i64 != axis && *n != 1) {
            return None;
        }
        op = *made.get(&op.var("x").ok()?)?;
    }
    let step = is(op, "scale") && number(op, "bias")? == 0.0 && (number(op, "scale")? * 127.0 - 1.0).abs() < 1e-6;
    let from = op.var("x").ok().filter(|_| step && floats)?;
    let dims = vars[from].dims.as_slice();
    let one = dims.iter().all(|n| *n == 1);
    let fits = match usize::try_from(axis) {
        Ok(axis) => dims.len() == 1 && (one || dims[0] == x[axis]),
        // Several lie along the last axes, and one with more axes than `x` gives it more.
        Err(_) => one && dims.len() <= x.len() && (dims.len() < 2 || dims.len() == x.len()),
    };
    fits.then_some((from, axis))
}

/// Are two variables the same, or made of the same in the same way?
fn alike(made: &Made, a: VarId, b: VarId) -> bool {
    let by = |v: VarId| made.get(&v).map(|op| (op.schema.name, &op.args));
    a == b || by(a).is_some_and(|a| Some(a) == by(b))
}

/// What becomes codes, and its range and axis: `clip(round(x / step), -128, 127)`.
fn coded(made: &Made, vars: &[Var], clip: &Op) -> Option<(VarId, VarId, i64)> {
    let bounds = is(clip, "clip") && (number(clip, "min")?, number(clip, "max")?) == (-128.0, 127.0);
    let round = made.get(&clip.var("x").ok().filter(|_| bounds)?)?;
    let plain = is(round, "round") && matches!(round.get("decimals"), None | Some(Value::Int(0)));
    let divide = made.get(&round.var("x").ok().filter(|_| plain)?)?;
    let x = divide.var("x").ok().filter(|&x| is(divide, "divide") && vars[x].dtype == DType::Float32)?;
    let (from, axis) = range(made, vars, x, divide.var("y").ok()?)?;
    Some((x, from, axis))
}

/// Codes that become numbers, and their range and axis: `codes * step`.
fn decoded(made: &Made, vars: &[Var], multiply: &Op) -> Option<(VarId, VarId, i64)> {
    let x = multiply.var("x").ok().filter(|_| is(multiply, "multiply"))?;
    let (from, axis) = range(made, vars, x, multiply.var("y").ok()?)?;
    let op = made.get(&x).filter(|_| vars[x].dtype == DType::Float32)?;
    if let Some((_, other, along)) = coded(made, vars, op) {
        return (along == axis && alike(made, from, other)).then_some((x, from, axis));
    }
    let codes = op.var("x").ok().filter(|&v| is(op, "cast") && vars[v].dtype == DType::Int8)?;
    Some((codes, from, axis))
}

/// The variables that somebody reads as the floats they are: not to decode them, nor as int8.
fn floats(program: &Program, made: &Made) -> HashSet<VarId> {
    let mut read: HashSet<VarId> = program.fetches.iter().copied().collect();
    read.extend(program.regions.iter().flat_map(|r| &r.yields));
    for op in program.all_ops() {
        let int8 = is(op, "cast") && op.first_result().is_ok_and(|v| program.vars[v].dtype == DType::Int8);
        let codes = decoded(made, &program.vars, op).map(|found| found.0);
        for (_, value) in &op.args {
            match value {
                Value::Var(v) if int8 || codes == Some(*v) => {}
                Value::Var(v) => _ = read.insert(*v),
                Value::Vars(all) => read.extend(all),
                _ => {}
            }
        }
    }
    read
}

/// Makes `quantize_linear` and `dequantize_linear` of the arithmetic that stands for them.
pub(super) fn from_arithmetic(program: &mut Program) {
    let made: Made = program.all_ops().filter_map(|op| Some((op.first_result().ok()?, op))).collect();
    // As floats they may be no numbers, which no code says.
    let floats = floats(program, &made);
    let ops = program.all_ops().filter_map(|op| {
        let found = |(x, scale, axis), name| {
            let args = vec![("x", Value::Var(x)), ("scale", Value::Var(scale)), ("quant_axis", Value::Int(axis))];
            let results = vec![("y", vec![op.first_result().ok()?])];
            Some(Op { schema: schema::find(name)?, args, results })
        };
        let codes = |v: Result<VarId>| v.is_ok_and(|v| !floats.contains(&v));
        if let Some(there) = coded(&made, &program.vars, op) {
            return found(there, "quantize_linear").filter(|_| codes(op.first_result()));
        }
        let back = decoded(&made, &program.vars, op)?;
        // Of an int8 they are codes in any case.
        let int8 = program.vars[back.0].dtype == DType::Int8;
        found(back, "dequantize_linear").filter(|_| int8 || codes(op.var("x")))
    });
    let mut ops: HashMap<VarId, Op> = ops.filter_map(|op| Some((op.first_result().ok()?, op))).collect();
    let all = program.ops.iter_mut().chain(program.regions.iter_mut().flat_map(|r| &mut r.ops));
    for op in all {
        if let Some(codes) = op.first_result().ok().and_then(|v| ops.remove(&v)) {
            *op = codes;
        }
    }
}
