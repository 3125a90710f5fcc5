//! safetensors: tensors by name, with notes in text.

use crate::cursor::Cursor;
use crate::elements::{self, Encoding, Item};
use crate::fault::{Fault, Parse};
use crate::{atomic, read_file};
use sampan_core::{DType, Result, Tensor};
use serde_json::Value;
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

const DTYPES: [(&str, Item); 14] = [
    ("BOOL", Item::Ours(DType::Bool)),
    ("U8", Item::Ours(DType::UInt8)),
    ("I8", Item::Ours(DType::Int8)),
    ("I16", Item::Ours(DType::Int16)),
    ("I32", Item::Ours(DType::Int32)),
    ("I64", Item::Ours(DType::Int64)),
    ("F16", Item::Ours(DType::Float16)),
    ("BF16", Item::Ours(DType::BFloat16)),
    ("F32", Item::Ours(DType::Float32)),
    ("F64", Item::Ours(DType::Float64)),
    ("C64", Item::Ours(DType::Complex64)),
    ("U16", Item::U16),
    ("U32", Item::U32),
    ("U64", Item::U64),
];

/// A tensor as the header lists it.
struct Listed {
    name: String,
    dtype: String,
    shape: Vec<usize>,
    /// Where its elements lie in the data.
    begin: usize,
    end: usize,
}

impl Listed {
    fn read(name: &str, entry: &Value) -> Option<Listed> {
        let sizes = |key: &str| -> Option<Vec<usize>> {
            entry.get(key)?.as_array()?.iter().map(|n| n.as_u64()?.try_into().ok()).collect()
        };
        let dtype = entry.get("dtype")?.as_str()?.to_string();
        let &[begin, end] = sizes("data_offsets")?.as_slice() else { return None };
        Some(Listed { name: name.to_string(), dtype, shape: sizes("shape")?, begin, end })
    }

    fn item(&self) -> Option<Item> {
        DTYPES.iter().find(|(name, _)| *name == self.dtype).map(|&(_, item)| item)
    }
}

/// The tensors in the order of the data, which they must fill without a gap, and the notes.
fn parse(header: &[u8]) -> Parse<(Vec<Listed>, BTreeMap<String, String>)> {
    let unreadable = |why: &dyn std::fmt::Display| Fault::damaged(format!("the header cannot be read: {why}"));
    let header: serde_json::Map<String, Value> = serde_json::from_slice(header).map_err(|e| unreadable(&e))?;
    let (mut tensors, mut notes) = (Vec::new(), BTreeMap::new());
    for (name, entry) in &header {
        match (name.as_str(), entry) {
            ("__metadata__", Value::Null) => {}
            ("__metadata__", Value::Object(texts)) => {
                for (key, text) in texts {
                    let text = text.as_str().ok_or_else(|| unreadable(&format!("the note {key:?} is no text")))?;
                    notes.insert(key.clone(), text.to_string());
                }
            }
            _ => tensors.push(Listed::read(name, entry).ok_or_else(|| unreadable(&format!("{name:?} is no tensor")))?),
        }
    }
    tensors.sort_by_key(|t| (t.begin, t.end));
    let mut at = 0;
    for t in &tensors {
        if t.begin != at || t.end < t.begin {
            return Err(Fault::damaged(format!("{}: its data do not follow those before it", t.name)));
        }
        at = t.end;
    }
    Ok((tensors, notes))
}

/// The length of the header, which comes first.
fn header_len(cursor: &mut Cursor) -> Parse<usize> {
    let len = cursor.u64()?;
    if len > MAX_HEADER {
        return Err(Fault::damaged(format!("a header of {len} bytes, where {MAX_HEADER} are allowed")));
    }
    Ok(len as usize)
}

pub(crate) fn decode(bytes: &[u8]) -> Parse<Contents> {
    let mut cursor = Cursor::new(bytes);
    let len = header_len(&mut cursor)?;
    let (listed, notes) = parse(cursor.take(len)?)?;
    let data_len = listed.last().map_or(0, |t| t.end);
    if cursor.remaining() != data_len {
        let found = cursor.remaining();
        return Err(Fault::damaged(format!("the header speaks of {data_len} bytes of data, there are {found}")));
    }
    let mut tensors = BTreeMap::new();
    for t in listed {
        let data = cursor.take(t.end - t.begin)?;
        let item = t.item().ok_or_else(|| {
            Fault::unsupported(format!("{}: elements of type {}, which sampan does not have", t.name, t.dtype))
        })?;
        let shape = elements::shape(t.shape.iter().map(|&d| d as i64)).map_err(|e| e.inside(&t.name))?;
        let encoding = Encoding { item, big_endian: false, fortran: false };
        let tensor = elements::tensor(data, encoding, &shape).map_err(|e| e.inside(&t.name))?;
        tensors.insert(t.name, tensor);
    }
    Ok(Contents { tensors, notes })
}

/// Does it look like one? A length, and JSON after it.
pub(crate) fn is(bytes: &[u8]) -> bool {
    bytes.get(8) == Some(&b'{') && bytes[..8] != [0; 8] && bytes[5..8] == [0; 3]
}

/// The longest header the format allows.
const MAX_HEADER: u64 = 100_000_000;

/// Name, dtype, shape and the format's own name of the dtype of every tensor in the order of the data, and where the file
/// ends: from the header alone.
pub(crate) fn header(
    start: &[u8],
    rest: &mut impl Read,
) -> Parse<(Vec<(String, Option<DType>, Vec<usize>, String)>, u64)> {
    let len = header_len(&mut Cursor::new(start))?;
    let mut text = start[8..].to_vec();
    rest.take(len.saturating_sub(text.len()) as u64).read_to_end(&mut text)?;
    let text = text.get(..len).ok_or_else(|| Fault::damaged("the file ends within its header"))?;
    let (tensors, _) = parse(text)?;
    let data_len = tensors.last().map_or(0, |t| t.end);
    let entry = |t: Listed| {
        let item = t.item().map(Item::dtype);
        (t.name, item, t.shape, t.dtype)
    };
    Ok((tensors.into_iter().map(entry).collect(), (8 + len as u64).saturating_add(data_len as u64)))
}

/// Header length, header in JSON, data.
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
        let listed = DTYPES.iter().find(|(_, item)| *item == Item::Ours(tensor.dtype()));
        let Some((dtype, _)) = listed else {
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
