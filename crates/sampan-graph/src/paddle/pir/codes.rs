//! Codes as arithmetic: Paddle 3 reads `quantize_linear` and `dequantize_linear` from a `.json`, but computes nonsense with them on
//! a CPU (its own files too), so a program has what they stand for instead.

use crate::paddle::program::{Op, Program, Value, Var, VarId};
use crate::paddle::schema;
use sampan_core::{DType, Error, Result};

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
