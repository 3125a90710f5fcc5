//! safetensors: tensors by name, with notes in text.

use crate::cursor::Cursor;
use crate::elements::{self, Encoding, Item};
use crate::fault::{Fault, Parse};
use crate::{atomic, read_file};
use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, Metadata, TensorInfo};
use sampan_core::{DType, Result, Tensor};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::path::Path;

const FORMAT: &str = "safetensors";

/// What a safetensors file holds.
#[derive(Clone, Default)]
pub struct Contents {
    /// The tensors by name.
    pub tensors: BTreeMap<String, Tensor>,
    /// The notes (`__metadata__`).
    pub notes: BTreeMap<String, String>,
}

/// Reads a file.
pub fn load(path: impl AsRef<Path>) -> Result<Contents> {
    let path = path.as_ref();
    let read = || decode(&read_file(path)?);
    read().map_err(|e| e.into_error("load", FORMAT, Some(path)))
}

/// Reads a file in memory.
pub fn from_bytes(bytes: &[u8]) -> Result<Contents> {
    decode(bytes).map_err(|e| e.into_error("load", FORMAT, None))
}

/// Writes a file. The same contents give the same bytes.
pub fn save(
    path: impl AsRef<Path>,
    tensors: &BTreeMap<String, Tensor>,
    notes: &BTreeMap<String, String>,
) -> Result<()> {
    let path = path.as_ref();
    let written = atomic::replace(path, |out| encode(out, tensors, notes));
    written.map_err(|e| e.into_error("save", FORMAT, Some(path)))
}

/// A file in memory.
pub fn to_bytes(tensors: &BTreeMap<String, Tensor>, notes: &BTreeMap<String, String>) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    encode(&mut out, tensors, notes).map_err(|e| e.into_error("save", FORMAT, None))?;
    Ok(out)
}

const DTYPES: [(Dtype, Item, &str); 14] = [
    (Dtype::BOOL, Item::Ours(DType::Bool), "BOOL"),
    (Dtype::U8, Item::Ours(DType::UInt8), "U8"),
    (Dtype::I8, Item::Ours(DType::Int8), "I8"),
    (Dtype::I16, Item::Ours(DType::Int16), "I16"),
    (Dtype::I32, Item::Ours(DType::Int32), "I32"),
    (Dtype::I64, Item::Ours(DType::Int64), "I64"),
    (Dtype::F16, Item::Ours(DType::Float16), "F16"),
    (Dtype::BF16, Item::Ours(DType::BFloat16), "BF16"),
    (Dtype::F32, Item::Ours(DType::Float32), "F32"),
    (Dtype::F64, Item::Ours(DType::Float64), "F64"),
    (Dtype::C64, Item::Ours(DType::Complex64), "C64"),
    (Dtype::U16, Item::U16, "U16"),
    (Dtype::U32, Item::U32, "U32"),
    (Dtype::U64, Item::U64, "U64"),
];

pub(crate) fn decode(bytes: &[u8]) -> Parse<Contents> {
    let damaged = |e| Fault::damaged(format!("the file does not hold together: {e}"));
    let (_, header) = SafeTensors::read_metadata(bytes).map_err(damaged)?;
    let notes = header.metadata().as_ref().map(|m| m.clone().into_iter().collect()).unwrap_or_default();
    let mut tensors = BTreeMap::new();
    for (name, view) in SafeTensors::deserialize(bytes).map_err(damaged)?.tensors() {
        let found = DTYPES.iter().find(|(d, ..)| *d == view.dtype());
        let item = found.map(|&(_, item, _)| item).ok_or_else(|| {
            Fault::unsupported(format!("{name}: elements of type {:?}, which sampan does not have", view.dtype()))
        })?;
        let shape = elements::shape(view.shape().iter().map(|&d| d as i64)).map_err(|e| e.inside(&name))?;
        let encoding = Encoding { item, big_endian: false, fortran: false };
        let tensor = elements::tensor(view.data(), encoding, &shape).map_err(|e| e.inside(&name))?;
        tensors.insert(name, tensor);
    }
    Ok(Contents { tensors, notes })
}

/// Does it look like one? A length, and JSON after it.
pub(crate) fn is(bytes: &[u8]) -> bool {
    bytes.get(8) == Some(&b'{') && bytes[..8] != [0; 8] && bytes[5..8] == [0; 3]
}

/// The longest header the format allows.
const MAX_HEADER: u64 = 100_000_000;

/// Name, dtype, shape and the format's own name of the dtype.
type Listed = (String, Option<DType>, Vec<usize>, String);

/// Every tensor in the order of the data, and where the file ends: from the header alone.
pub(crate) fn header(start: &[u8], rest: &mut impl Read) -> Parse<(Vec<Listed>, u64)> {
    let mut cursor = Cursor::new(start);
    let len = cursor.u64()?;
    if len > MAX_HEADER {
        return Err(Fault::damaged(format!("a header of {len} bytes, where {MAX_HEADER} are allowed")));
    }
    let mut text = start[8..].to_vec();
    rest.take(len.saturating_sub(text.len() as u64)).read_to_end(&mut text)?;
    let text = text.get(..len as usize).ok_or_else(|| Fault::damaged("the file ends within its header"))?;
    let header: Metadata =
        serde_json::from_slice(text).map_err(|e| Fault::damaged(format!("the header cannot be read: {e}")))?;
    let mut tensors: Vec<_> = header.tensors().into_iter().collect();
    tensors.sort_by_key(|(_, info)| info.data_offsets);
    let data_len = tensors.last().map_or(0, |(_, info)| info.data_offsets.1);
    let entry = |(name, info): (String, &TensorInfo)| {
        let item = DTYPES.iter().find(|(d, ..)| *d == info.dtype).map(|&(_, item, _)| item.dtype());
        (name, item, info.shape.clone(), format!("{:?}", info.dtype))
    };
    Ok((tensors.into_iter().map(entry).collect(), 8 + len + data_len as u64))
}

/// Header length, header in JSON, data. Written here because the crate's writer wants everything in memory at once and
/// puts the notes in a random order.
fn encode(out: &mut impl Write, tensors: &BTreeMap<String, Tensor>, notes: &BTreeMap<String, String>) -> Parse<()> {
    // Wide elements first: then every tensor is aligned to its element.
    let mut order: Vec<_> = tensors.iter().collect();
    order.sort_by_key(|(_, t)| std::cmp::Reverse(t.dtype().size()));
    let mut header = serde_json::Map::new();
    if !notes.is_empty() {
        header.insert("__metadata__".into(), serde_json::json!(notes));
    }
    let mut end = 0;
    for (name, tensor) in &order {
        if *name == "__metadata__" {
            return Err(Fault::unsupported("a tensor named __metadata__, which is the name of the notes"));
        }
        let begin = end;
        end += tensor.numel() * tensor.dtype().size();
        let listed = DTYPES.iter().find(|(_, item, _)| *item == Item::Ours(tensor.dtype()));
        let Some((_, _, dtype)) = listed else {
            let what = format!("{name}: elements of type {}, which the format does not have", tensor.dtype());
            return Err(Fault::unsupported(what).hint("cast it to complex64, or save as_real(x)"));
        };
        let entry = serde_json::json!({ "dtype": dtype, "shape": tensor.shape(), "data_offsets": [begin, end] });
        header.insert(name.to_string(), entry);
    }
    let mut text = serde_json::Value::from(header).to_string();
    text.push_str(&" ".repeat(text.len().next_multiple_of(8) - text.len()));
    out.write_all(&(text.len() as u64).to_le_bytes())?;
    out.write_all(text.as_bytes())?;
    for (name, tensor) in order {
        out.write_all(&elements::bytes_of(tensor).map_err(|e| e.inside(name))?)?;
    }
    Ok(())
}
