//! A program as JSON.

use super::TYPES;
use crate::paddle::program::{Op, Program, Region, Value, VarId};
use crate::paddle::schema::{Kind, Slot};
use sampan_core::{DType, Error, Result};
use serde_json::{Value as Json, json};
use std::collections::HashMap;

/// The version that Paddle 3.0 and all later ones read.
const VERSION: u64 = 1;

fn tensor_type(dims: &[i64], dtype: DType) -> Json {
    let (name, _) = TYPES.iter().find(|(_, d)| *d == dtype).expect("every dtype is listed");
    json!({"#": "0.t_dtensor", "D": [{"#": name}, dims, "NCHW", [], 0]})
}

fn typed(kind: &str, value: Json) -> Json {
    json!({"#": kind, "D": value})
}

fn attr(name: &str, value: Json) -> Json {
    json!({"AT": value, "N": name})
}

fn list(kind: &str, values: impl IntoIterator<Item = Json>) -> Json {
    typed("0.a_array", values.into_iter().map(|v| typed(kind, v)).collect())
}

fn dtype_name(dtype: Option<DType>) -> String {
    dtype.map_or("Undefined(ALL_DTYPE)".into(), |d| d.to_string())
}

/// JSON has no number for infinity; readers of Paddle take this word for it.
fn real(v: f64) -> Json {
    match v {
        v if v.is_nan() => json!("NAN"),
        v if v.is_infinite() => json!(if v > 0.0 { "INF" } else { "-INF" }),
        v => json!(v),
    }
}

fn to_attr(kind: Kind, value: &Value) -> Option<Json> {
    Some(match (kind, value) {
        (Kind::Bool, Value::Bool(b)) => typed("0.a_bool", json!(b)),
        (Kind::Int32, Value::Int(i)) => typed("0.a_i32", json!(i)),
        (Kind::Int64, Value::Int(i)) => typed("0.a_i64", json!(i)),
        (Kind::Float32, Value::Float(f)) => typed("0.a_f32", real(f64::from(*f as f32))),
        (Kind::Float32, Value::Int(i)) => typed("0.a_f32", json!(*i as f64)),
        (Kind::Text, Value::Text(t)) => typed("0.a_str", json!(t)),
        (Kind::DType, Value::DType(d)) => typed("1.a_dtype", json!(dtype_name(*d))),
        (Kind::Int32s, Value::Ints(v)) => list("0.a_i32", v.iter().map(|i| json!(i))),
        (Kind::Int64s { .. }, Value::Ints(v)) => list("0.a_i64", v.iter().map(|i| json!(i))),
        (Kind::Float32s, Value::Floats(v)) => list("0.a_f32", v.iter().map(|f| real(*f))),
        _ => return None,
    })
}

/// The ops of a file as they are written.
struct Writer<'a> {
    program: &'a Program,
    ops: Vec<Json>,
    /// The last number that was given to a value; variable `v` has `v + 1`.
    last: i64,
    /// The numbers of what loops give their regions, which are negative.
    args: HashMap<VarId, i64>,
    /// How many regions there are, the program itself among them.
    regions: usize,
}

impl Writer<'_> {
    fn number(&self, v: VarId) -> i64 {
        self.args.get(&v).copied().unwrap_or(v as i64 + 1)
    }

    fn fresh(&mut self) -> i64 {
        self.last += 1;
        self.last
    }

    /// A region of an op.
    fn region(&mut self, region: &Region) -> Result<Json> {
        let (at, outer) = (self.regions, std::mem::take(&mut self.ops));
        self.regions += 1;
        let mut args = Vec::new();
        for &v in &region.args {
            let number = -(self.args.len() as i64) - 1;
            self.args.insert(v, number);
            args.push(json!({"#": number, "TT": self.type_of(v)}));
        }
        region.ops.iter().try_for_each(|op| self.op(op))?;
        let inputs = region.yields.iter().map(|&v| json!({"%": self.number(v)})).collect::<Vec<_>>();
        self.ops.push(json!({"#": "2.yield", "A": [], "I": inputs, "O": [], "OA": []}));
        let ops = std::mem::replace(&mut self.ops, outer);
        let block = json!({"#": format!("block_{at}"), "args": args, "ops": ops});
        Ok(json!({"#": format!("region_{at}"), "blocks": [block]}))
    }

    /// A branch or a loop.
    fn flow(&mut self, op: &Op) -> Result<()> {
        let mut inputs = vec![op.var("cond")?];
        inputs.extend(op.vars("inputs")?);
        let inputs = inputs.into_iter().map(|v| self.number(v)).collect::<Vec<_>>();
        let names: &[&str] = if op.schema.name == "if" { &["then", "otherwise"] } else { &["body"] };
        let program = self.program;
        let regions = names.iter().map(|n| self.region(program.region(op, n)?)).collect::<Result<Vec<_>>>()?;
        let results = op.results("out");
        let outputs = results.iter().map(|&v| (self.number(v), self.type_of(v))).collect();
        let stop = results.iter().map(|&v| self.program.vars[v].stop_gradient).collect::<Vec<_>>();
        self.push(&format!("1.{}", op.schema.name), vec![], &inputs, outputs, &stop);
        if let Some(Json::Object(written)) = self.ops.last_mut() {
            written.insert("regions".into(), Json::Array(regions));
        }
        Ok(())
    }

    fn push(&mut self, kind: &str, attrs: Vec<Json>, inputs: &[i64], outputs: Vec<(i64, Json)>, stop: &[bool]) {
        let inputs = inputs.iter().map(|i| json!({"%": i})).collect::<Vec<_>>();
        let outputs = outputs.into_iter().map(|(n, t)| json!({"%": n, "TT": t})).collect::<Vec<_>>();
        let mut about = vec![attr("stop_gradient", list("0.a_bool", stop.iter().map(|b| json!(b))))];
        if kind == "1.fetch" {
            about.insert(0, attr("persistable", list("0.a_bool", [json!(true)])));
        }
        self.ops.push(json!({"#": kind, "A": attrs, "I": inputs, "O": outputs, "OA": about}));
    }

    fn full(&mut self, to: i64, dims: &[i64], value: f64, dtype: DType, on_cpu: bool) {
        let attrs = vec![
            attr("shape", typed("1.a_intarray", json!(dims))),
            attr("value", typed("0.a_f64", real(value))),
            attr("dtype", typed("1.a_dtype", json!(dtype.to_string()))),
            attr("place", typed("1.a_place", json!([i32::from(on_cpu), 0, ""]))),
        ];
        self.push("1.full", attrs, &[], vec![(to, tensor_type(dims, dtype))], &[true]);
    }

    fn ints(&mut self, values: &[i64]) -> i64 {
        let to = self.fresh();
        let attrs = vec![
            attr("value", list("0.a_i64", values.iter().map(|v| json!(v)))),
            attr("dtype", typed("1.a_dtype", json!("int64"))),
            attr("place", typed("1.a_place", json!([1, 0, ""]))),
        ];
        let kind = tensor_type(&[values.len() as i64], DType::Int64);
        self.push("1.full_int_array", attrs, &[], vec![(to, kind)], &[true]);
        to
    }

    fn type_of(&self, v: VarId) -> Json {
        tensor_type(&self.program.vars[v].dims, self.program.vars[v].dtype)
    }

    /// Several values as one.
    fn combine(&mut self, vars: &[VarId]) -> i64 {
        let to = self.fresh();
        let types = vars.iter().map(|&v| self.type_of(v)).collect::<Vec<_>>();
        let numbers = vars.iter().map(|&v| self.number(v)).collect::<Vec<_>>();
        self.push("0.combine", vec![], &numbers, vec![(to, json!({"#": "0.t_vec", "D": types}))], &[false]);
        to
    }

    /// Numbers that are computed, each of shape [1], as one tensor.
    fn joined(&mut self, vars: &[VarId]) -> i64 {
        let all = self.combine(vars);
        let axis = self.fresh();
        self.full(axis, &[1], 0.0, DType::Int32, true);
        let to = self.fresh();
        let kind = tensor_type(&[vars.len() as i64], DType::Int64);
        self.push("1.concat", vec![], &[all, axis], vec![(to, kind)], &[true]);
        to
    }

    fn operand(&mut self, op: &Op, slot: &Slot) -> Result<Option<i64>> {
        let bad = || Error::invalid(format!("{}: argument `{}` cannot be written", op.schema.name, slot.name));
        let value = op.get(slot.name);
        Ok(match (slot.kind, value) {
            (Kind::Tensor, None) | (Kind::Tensors, None) => Some(0),
            (_, Some(Value::Var(v))) if slot.kind != Kind::Tensors => Some(self.number(*v)),
            (Kind::Tensors, Some(Value::Vars(v))) => Some(self.combine(v)),
            (Kind::Shape { .. }, Some(Value::Vars(v))) => Some(self.joined(v)),
            (Kind::Shape { .. }, Some(Value::Ints(v))) => Some(self.ints(v)),
            (Kind::FloatTensor | Kind::Int32Tensor | Kind::Int64Tensor, Some(Value::Int(_) | Value::Float(_))) => {
                let dtype = match slot.kind {
                    Kind::FloatTensor => DType::Float32,
                    Kind::Int32Tensor => DType::Int32,
                    _ => DType::Int64,
                };
                let to = self.fresh();
                self.full(to, &[1], op.float(slot.name)?, dtype, true);
                Some(to)
            }
            (Kind::Tensor | Kind::Tensors | Kind::Shape { .. }, _) => return Err(bad().in_op("save")),
            (Kind::FloatTensor | Kind::Int32Tensor | Kind::Int64Tensor, _) => return Err(bad().in_op("save")),
            _ => None,
        })
    }

    fn op(&mut self, op: &Op) -> Result<()> {
        let name = op.schema.name;
        if name == "full" {
            return self.full_op(op);
        }
        if matches!(name, "if" | "while") {
            return self.flow(op);
        }
        let (mut inputs, mut attrs) = (Vec::new(), Vec::new());
        for slot in &op.schema.args {
            if let Some(operand) = self.operand(op, slot)? {
                inputs.push(operand);
            } else if let Some(value) = op.get(slot.name) {
                let bad =
                    || Error::invalid(format!("{name}: argument `{}` cannot be written", slot.name)).in_op("save");
                attrs.push(attr(slot.name, to_attr(slot.kind, value).ok_or_else(bad)?));
            }
        }
        if name == "arange" {
            attrs.push(attr("place", typed("1.a_place", json!([1, 0, ""]))));
        }
        if name == "full_like" {
            attrs.push(attr("place", typed("1.a_place", json!([0, 0, ""]))));
        }
        let (mut outputs, mut stop, mut pieces) = (Vec::new(), Vec::new(), Vec::new());
        for slot in op.schema.results.iter().filter(|s| !s.name.is_empty()) {
            let vars = op.results(slot.name);
            if slot.kind == Kind::Tensors {
                let all = self.fresh();
                let types = vars.iter().map(|&v| self.type_of(v)).collect::<Vec<_>>();
                outputs.push((all, json!({"#": "0.t_vec", "D": types})));
                stop.push(false);
                pieces.push((all, vars.to_vec()));
            } else if let Some(&v) = vars.first() {
                outputs.push((self.number(v), self.type_of(v)));
                stop.push(self.program.vars[v].stop_gradient);
            } else {
                let dtype = if slot.name == "mask" { DType::UInt8 } else { DType::Float32 };
                outputs.push((self.fresh(), tensor_type(&[], dtype)));
                stop.push(true);
            }
        }
        // Paddle's name of the form that writes the running statistics.
        self.push(&format!("1.{name}"), attrs, &inputs, outputs, &stop);
        for (all, vars) in pieces.into_iter().filter(|(_, vars)| !vars.is_empty()) {
            let outputs = vars.iter().map(|&v| (self.number(v), self.type_of(v))).collect::<Vec<_>>();
            let stop = vars.iter().map(|&v| self.program.vars[v].stop_gradient).collect::<Vec<_>>();
            self.push("0.split", vec![], &[all], outputs, &stop);
        }
        Ok(())
    }

    fn full_op(&mut self, op: &Op) -> Result<()> {
        let v = op.first_result()?;
        let (to, dtype, value) = (self.number(v), self.program.vars[v].dtype, op.float("value")?);
        match op.get("shape") {
            Some(Value::Vars(sizes)) => {
                let filled = self.fresh();
                self.full(filled, &[1], value, dtype, true);
                let shape = self.joined(sizes);
                let attrs = vec![attr("dtype", typed("1.a_dtype", json!(dtype.to_string())))];
                let kind = self.type_of(v);
                self.push("1.full_with_tensor", attrs, &[filled, shape], vec![(to, kind)], &[true]);
            }
            _ => self.full(to, &op.ints("shape")?, value, dtype, false),
        }
        Ok(())
    }
}

/// The program as a file has it.
pub(crate) fn encode(program: &Program) -> Result<String> {
    if let Some(plain) = super::codes::as_arithmetic(program)? {
        return encode(&plain);
    }
    let last = program.vars.len() as i64;
    let mut w = Writer { program, ops: Vec::new(), last, args: HashMap::new(), regions: 1 };
    for (v, var) in program.vars.iter().enumerate().filter(|(_, v)| v.weight) {
        let out = json!({"%": w.number(v), "TT": tensor_type(&var.dims, var.dtype)});
        let about = json!([1, i32::from(!var.trainable), i32::from(var.trainable)]);
        w.ops.push(json!({"#": "p", "A": [0, 1, 1, var.name], "DA": [], "O": out, "OA": about, "QA": []}));
    }
    for &v in &program.feeds {
        let var = &program.vars[v];
        let attrs = vec![
            attr("name", typed("0.a_str", json!(var.name))),
            attr("shape", typed("1.a_intarray", json!(var.dims))),
            attr("dtype", typed("1.a_dtype", json!(var.dtype.to_string()))),
            attr("place", typed("1.a_place", json!([0, 0, ""]))),
        ];
        let (number, kind) = (w.number(v), w.type_of(v));
        w.push("1.data", attrs, &[], vec![(number, kind)], &[var.stop_gradient]);
    }
    program.ops.iter().try_for_each(|op| w.op(op))?;
    for (i, &v) in program.fetches.iter().enumerate() {
        let attrs = vec![
            attr("name", typed("0.a_str", json!(format!("fetch_name_{i}")))),
            attr("col", typed("0.a_i32", json!(i))),
        ];
        let (from, to, kind) = (w.number(v), w.fresh(), w.type_of(v));
        w.push("1.fetch", attrs, &[from], vec![(to, kind)], &[program.vars[v].stop_gradient]);
    }
    let base = json!({"magic": "pir", "trainable": true, "version": VERSION});
    let block = json!({"#": "block_0", "args": [], "ops": w.ops});
    let program = json!({"regions": [{"#": "region_0", "blocks": [block]}]});
    Ok(json!({"base_code": base, "program": program}).to_string())
}
