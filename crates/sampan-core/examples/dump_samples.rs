//! Writes every op's samples for `scripts/golden.py`: tensors as safetensors, the calls as JSON.

use safetensors::tensor::{Dtype, TensorView};
use sampan_core::{DType, Tensor, Value, op};
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;

fn dtype(d: DType) -> Dtype {
    match d {
        DType::Bool => Dtype::BOOL,
        DType::UInt8 => Dtype::U8,
        DType::Int8 => Dtype::I8,
        DType::Int16 => Dtype::I16,
        DType::Int32 => Dtype::I32,
        DType::Int64 => Dtype::I64,
        DType::Float16 => Dtype::F16,
        DType::BFloat16 => Dtype::BF16,
        DType::Float32 => Dtype::F32,
        DType::Float64 => Dtype::F64,
        // With a last axis of two.
        DType::Complex64 => Dtype::F32,
        DType::Complex128 => Dtype::F64,
    }
}

/// As a word: JSON has no infinities.
fn float(f: f64) -> Json {
    json!({ "float": f.to_string() })
}

fn to_json(v: &Value, tensors: &mut Vec<Tensor>) -> Json {
    let mut tensor = |t: &Tensor| {
        tensors.push(t.clone());
        json!({ "tensor": tensors.len() - 1, "complex": t.is_complex() })
    };
    match v {
        Value::None => Json::Null,
        Value::Bool(b) => json!(b),
        Value::Int(i) => json!(i),
        Value::Float(f) => float(*f),
        Value::Complex(z) => json!({ "real": z.re, "imag": z.im }),
        Value::Str(s) => json!(&**s),
        Value::DType(d) => json!({ "dtype": d.name() }),
        Value::Ints(v) => json!(v.as_slice()),
        Value::Floats(v) => v.iter().map(|&f| float(f)).collect(),
        Value::Tensor(t) => tensor(t),
        Value::Tensors(ts) => ts.iter().map(tensor).collect(),
        Value::List(vs) => vs.iter().map(|v| to_json(v, tensors)).collect(),
        other => panic!("a sample holds a {}", other.type_name()),
    }
}

fn main() {
    let folder = std::env::args().nth(1).expect("usage: dump_samples FOLDER");
    let mut tensors = Vec::new();
    let mut calls = Vec::new();
    for op in op::all() {
        for (i, s) in op.samples.map(|f| f()).unwrap_or_default().iter().enumerate() {
            let Some(values) = s.peer_of(op) else { continue };
            let gradients = s.grad_peer_of(op);
            let args: Vec<Json> = s.positional.iter().map(|v| to_json(v, &mut tensors)).collect();
            let named: BTreeMap<&str, Json> = s.named.iter().map(|(n, v)| (*n, to_json(v, &mut tensors))).collect();
            let mut ask = |peer: &str, values: bool, gradients: bool| {
                calls.push(json!({
                    "op": op.name, "module": op.module, "peer": peer, "sample": i, "args": args, "named": named,
                    "values": values, "gradients": gradients, "up_to_sign": s.up_to_sign,
                }));
            };
            ask(values, true, gradients == Some(values));
            if let Some(other) = gradients.filter(|g| *g != values) {
                ask(other, false, true);
            }
        }
    }
    let bytes: Vec<Vec<u8>> = tensors.iter().map(Tensor::to_bytes).collect();
    let views = tensors.iter().zip(&bytes).enumerate().map(|(i, (t, b))| {
        let mut shape = t.shape().to_vec();
        shape.extend(t.is_complex().then_some(2));
        (i.to_string(), TensorView::new(dtype(t.dtype()), shape, b).expect("bytes fit the shape"))
    });
    std::fs::create_dir_all(&folder).expect("the folder can be made");
    let bytes = safetensors::serialize(views, None).expect("tensors that were just made");
    std::fs::write(format!("{folder}/samples.safetensors"), bytes).expect("writes");
    std::fs::write(format!("{folder}/samples.json"), serde_json::to_string(&calls).expect("is JSON")).expect("writes");
    println!("{} calls of {} ops in {folder}", calls.len(), op::all().len());
}
