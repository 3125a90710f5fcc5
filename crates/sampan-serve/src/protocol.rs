//! KServe's requests and answers, as JSON and with binary tensors behind it.

use axum::body::Bytes;
use sampan_core::{DType, Layout, Tensor};
use sampan_kernels::buffer::Buffer;
use serde_json::{Map, Value, json};
use std::collections::VecDeque;

/// What is wrong with a request: the status of the answer, and a sentence.
#[derive(Debug, Clone)]
pub(crate) struct Wrong(pub(crate) u16, pub(crate) String);

pub(crate) fn bad(message: impl Into<String>) -> Wrong {
    Wrong(400, message.into())
}

type Read<T> = Result<T, Wrong>;

/// KServe's names of types.
const TYPES: [(&str, DType); 11] = [
    ("FP32", DType::Float32),
    ("FP64", DType::Float64),
    ("FP16", DType::Float16),
    ("BF16", DType::BFloat16),
    ("INT8", DType::Int8),
    ("INT16", DType::Int16),
    ("INT32", DType::Int32),
    ("INT64", DType::Int64),
    ("UINT8", DType::UInt8),
    ("BOOL", DType::Bool),
    ("COMPLEX64", DType::Complex64),
];

pub(crate) fn type_name(dtype: DType) -> &'static str {
    TYPES.iter().find(|(_, d)| *d == dtype).map_or("BYTES", |(name, _)| name)
}

/// The values of a tensor as they came: they are copied once, to where the model reads them.
#[derive(Clone)]
pub(crate) struct Given {
    pub(crate) dtype: DType,
    pub(crate) shape: Vec<usize>,
    pieces: Vec<Bytes>,
}

impl Given {
    /// The tensors of some requests as one, below each other; the shapes are alike but for the rows.
    pub(crate) fn together(parts: &[&Given]) -> Read<Tensor> {
        let mut shape = parts[0].shape.clone();
        if parts.len() > 1 {
            shape[0] = parts.iter().map(|p| p.shape[0]).sum();
        }
        let pieces = || parts.iter().flat_map(|p| &p.pieces);
        let full = |e: &dyn std::fmt::Display| Wrong(503, e.to_string());
        let mut buffer = Buffer::try_uninit(pieces().map(Bytes::len).sum()).map_err(|e| full(&e))?;
        let mut rest = buffer.bytes_mut();
        for piece in pieces() {
            let (own, left) = rest.split_at_mut(piece.len());
            own.copy_from_slice(piece);
            rest = left;
        }
        Tensor::from_buffer(buffer, Layout::contiguous(&shape), parts[0].dtype).map_err(|e| bad(e.to_string()))
    }
}

/// A tensor of a request.
pub(crate) struct Named {
    pub(crate) name: String,
    pub(crate) values: Given,
}

/// A body in the pieces in which it came.
struct Body(VecDeque<Bytes>);

impl Body {
    fn len(&self) -> usize {
        self.0.iter().map(Bytes::len).sum()
    }

    /// Takes so many bytes from the front, or all there are.
    fn take(&mut self, bytes: usize) -> Vec<Bytes> {
        let (mut taken, mut left) = (Vec::new(), bytes);
        while left > 0
            && let Some(piece) = self.0.front_mut()
        {
            let part = piece.split_to(left.min(piece.len()));
            left -= part.len();
            taken.push(part);
            if piece.is_empty() {
                self.0.pop_front();
            }
        }
        taken
    }
}

/// A request for an answer.
pub(crate) struct Request {
    pub(crate) id: Option<String>,
    pub(crate) inputs: Vec<Named>,
    /// The outputs that are wanted, and whether in binary; all of them if it is empty.
    pub(crate) outputs: Vec<(String, bool)>,
    /// Are outputs binary that do not say?
    pub(crate) binary: bool,
}

/// Reads a request: `header` bytes of JSON, and the binary tensors behind it.
pub(crate) fn read(body: Vec<Bytes>, header: Option<usize>) -> Read<Request> {
    let mut rest = Body(body.into());
    let header = header.unwrap_or(rest.len());
    if header > rest.len() {
        return Err(bad(format!("Inference-Header-Content-Length is {header}, the body has {} bytes", rest.len())));
    }
    let json: Value =
        serde_json::from_slice(&rest.take(header).concat()).map_err(|e| bad(format!("the body is not JSON: {e}")))?;
    let inputs = json.get("inputs").and_then(Value::as_array).ok_or_else(|| bad("`inputs` must be a list"))?;
    let mut read = Vec::with_capacity(inputs.len().min(64));
    for input in inputs {
        read.push(tensor(input, &mut rest)?);
    }
    if rest.len() > 0 {
        return Err(bad(format!("{} bytes follow the last binary tensor", rest.len())));
    }
    let flag = |of: &Value, name: &str| of.get("parameters").and_then(|p| p.get(name)).and_then(Value::as_bool);
    let binary = flag(&json, "binary_data_output").unwrap_or(false);
    let mut outputs = Vec::new();
    for output in json.get("outputs").and_then(Value::as_array).into_iter().flatten() {
        let name = output.get("name").and_then(Value::as_str).ok_or_else(|| bad("an output has no name"))?;
        outputs.push((name.to_string(), flag(output, "binary_data").unwrap_or(binary)));
    }
    let id = json.get("id").and_then(Value::as_str).map(str::to_string);
    Ok(Request { id, inputs: read, outputs, binary })
}

fn tensor(input: &Value, rest: &mut Body) -> Read<Named> {
    let name = input.get("name").and_then(Value::as_str).ok_or_else(|| bad("an input has no name"))?.to_string();
    let wrong = |what: String| bad(format!("input `{name}`: {what}"));
    let kind = input.get("datatype").and_then(Value::as_str).ok_or_else(|| wrong("it has no datatype".into()))?;
    let known = TYPES.iter().find(|(n, _)| *n == kind).map(|(_, d)| *d);
    let dtype = known.ok_or_else(|| wrong(format!("the datatype {kind} is not known")))?;
    let extents = input.get("shape").and_then(Value::as_array).ok_or_else(|| wrong("it has no shape".into()))?;
    let extent = |v: &Value| v.as_u64().and_then(|n| usize::try_from(n).ok());
    let shape = extents.iter().map(extent).collect::<Option<Vec<_>>>();
    let shape = shape.filter(|s| s.len() <= 8).ok_or_else(|| wrong("the shape must be a few whole numbers".into()))?;
    let numel = shape.iter().try_fold(1usize, |n, &e| n.checked_mul(e));
    let bytes = numel.and_then(|n| n.checked_mul(dtype.size()));
    let (Some(numel), Some(bytes)) = (numel, bytes) else { return Err(wrong("the shape is too large".into())) };
    let size = input.get("parameters").and_then(|p| p.get("binary_data_size"));
    let pieces = if let Some(size) = size {
        let size = size.as_u64().and_then(|n| usize::try_from(n).ok());
        let size = size.ok_or_else(|| wrong("binary_data_size must be a whole number".into()))?;
        if size != bytes || size > rest.len() {
            return Err(wrong(format!("{bytes} bytes are needed, binary_data_size is {size}, {} follow", rest.len())));
        }
        let own = rest.take(size);
        if dtype == DType::Bool && own.iter().any(|piece| piece.iter().any(|&b| b > 1)) {
            return Err(wrong("a truth value is a byte of 0 or 1".into()));
        }
        own
    } else {
        let data = input.get("data").ok_or_else(|| wrong("it has neither data nor binary_data_size".into()))?;
        // Nothing is made room for that was not sent.
        let mut flat = Vec::new();
        flatten(data, &mut flat, 0).ok_or_else(|| wrong("data must be numbers or truth values".into()))?;
        if flat.len() != numel {
            return Err(wrong(format!("shape {shape:?} needs {numel} numbers, got {}", flat.len())));
        }
        let made = numbers(&flat, dtype, &shape).ok_or_else(|| wrong(format!("a number does not fit {kind}")))?;
        vec![made.map_err(|e| wrong(e.to_string()))?.to_bytes().into()]
    };
    Ok(Named { name, values: Given { dtype, shape, pieces } })
}

/// The numbers of nested lists.
fn flatten<'a>(value: &'a Value, out: &mut Vec<&'a Value>, depth: usize) -> Option<()> {
    match value {
        Value::Array(all) if depth < 16 => all.iter().try_for_each(|v| flatten(v, out, depth + 1)),
        Value::Number(_) | Value::Bool(_) => {
            out.push(value);
            Some(())
        }
        _ => None,
    }
}

fn numbers(flat: &[&Value], dtype: DType, shape: &[usize]) -> Option<sampan_core::Result<Tensor>> {
    let whole = |v: &&Value| v.as_i64().or_else(|| v.as_bool().map(i64::from));
    Some(match dtype {
        DType::Float32 | DType::Float64 | DType::Float16 | DType::BFloat16 => {
            let all = flat.iter().map(|v| v.as_f64().or_else(|| v.as_bool().map(|b| b as u8 as f64)));
            let all = all.collect::<Option<Vec<f64>>>()?;
            if dtype == DType::Float32 {
                let all: Vec<f32> = all.into_iter().map(|v| v as f32).collect();
                Tensor::try_from_slice(&all, shape)
            } else {
                Tensor::try_from_slice(&all, shape).and_then(|t| t.try_cast(dtype))
            }
        }
        DType::Complex64 | DType::Complex128 => return None,
        _ => {
            let all = flat.iter().map(whole).collect::<Option<Vec<i64>>>()?;
            let limits = match dtype {
                DType::UInt8 => (0, 255),
                DType::Int8 => (-128, 127),
                DType::Int16 => (i16::MIN as i64, i16::MAX as i64),
                DType::Int32 => (i32::MIN as i64, i32::MAX as i64),
                DType::Bool => (0, 1),
                _ => (i64::MIN, i64::MAX),
            };
            if all.iter().any(|v| *v < limits.0 || *v > limits.1) {
                return None;
            }
            Tensor::try_from_slice(&all, shape).and_then(|t| t.try_cast(dtype))
        }
    })
}

/// An answer: its JSON, and the binary tensors behind it.
pub(crate) fn write(
    model: &str,
    version: &str,
    id: Option<&str>,
    outputs: &[(String, Tensor, bool)],
) -> (Vec<u8>, Vec<u8>) {
    let mut list = Vec::new();
    let mut binary = Vec::new();
    for (name, tensor, as_bytes) in outputs {
        let mut entry = Map::new();
        entry.insert("name".into(), json!(name));
        entry.insert("datatype".into(), json!(type_name(tensor.dtype())));
        entry.insert("shape".into(), json!(tensor.shape()));
        let bytes = tensor.to_bytes();
        if *as_bytes || tensor.dtype().is_complex() {
            entry.insert("parameters".into(), json!({ "binary_data_size": bytes.len() }));
            binary.extend(bytes);
        } else {
            entry.insert("data".into(), data(tensor));
        }
        list.push(Value::Object(entry));
    }
    let mut answer = json!({ "model_name": model, "model_version": version, "outputs": list });
    if let Some(id) = id {
        answer["id"] = json!(id);
    }
    (answer.to_string().into_bytes(), binary)
}

/// The values as JSON has them: what is not finite is null.
fn data(tensor: &Tensor) -> Value {
    match tensor.dtype() {
        DType::Float32 => Value::Array(
            // By way of the shortest text that reads back as the same number.
            tensor
                .to_vec::<f32>()
                .iter()
                .map(|v| v.to_string().parse::<f64>().map_or(Value::Null, |v| json!(v)))
                .collect(),
        ),
        DType::Float64 | DType::Float16 | DType::BFloat16 => tensor.to_f64_vec().iter().map(|v| json!(v)).collect(),
        DType::Bool => tensor.to_f64_vec().iter().map(|v| json!(*v != 0.0)).collect(),
        _ => match tensor.try_cast(DType::Int64) {
            Ok(t) => t.to_vec::<i64>().iter().map(|v| json!(v)).collect(),
            Err(_) => Value::Null,
        },
    }
}
