//! What a file holds, in a table.

use crate::fault::{Fault, Parse};
use crate::{Format, Object, elements, npy, safetensors};
use sampan_core::{DType, Result};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// One value of a file.
#[derive(Clone, PartialEq, Debug)]
pub struct Entry {
    /// The way to it: `model.fc.weight`.
    pub name: String,
    /// The dtype, if it is a tensor.
    pub dtype: Option<DType>,
    /// The shape, if it is a tensor.
    pub shape: Vec<usize>,
    /// The bytes its elements or characters take.
    pub bytes: usize,
    /// The type and, if it is short, the value.
    pub summary: String,
}

/// What a file holds.
#[derive(Clone, PartialEq, Debug)]
pub struct Description {
    /// Its format.
    pub format: Format,
    /// Its values in order.
    pub entries: Vec<Entry>,
}

impl Description {
    /// Number of elements of all tensors.
    pub fn numel(&self) -> usize {
        self.entries.iter().filter(|e| e.dtype.is_some()).map(|e| e.shape.iter().product::<usize>()).sum()
    }

    /// Bytes of all values.
    pub fn bytes(&self) -> usize {
        self.entries.iter().map(|e| e.bytes).sum()
    }
}

/// Tells what a file holds.
pub fn describe(path: impl AsRef<Path>) -> Result<Description> {
    let path = path.as_ref();
    if let Some(description) = by_header(path).map_err(|e| e.into_error("describe", "cannot read", Some(path)))? {
        return Ok(description);
    }
    let (format, object) = crate::open(path)?;
    let mut entries = Vec::new();
    object.visit("", &mut |name, value| entries.push(entry(name, value)));
    Ok(Description { format, entries })
}

/// The formats whose header says everything: the tensors, which may be large, are not read.
fn by_header(path: &Path) -> Parse<Option<Description>> {
    crate::check_regular(path)?;
    let mut file = File::open(path)?;
    let file_len = file.metadata()?.len();
    let mut start = Vec::new();
    // Longer than any header of an array with 64 axes.
    file.by_ref().take(1 << 16).read_to_end(&mut start)?;
    match Format::from_bytes(&start) {
        Some(Format::Npy) if npy::pickled(&start).is_none() => {
            let header = npy::header(&start)?;
            let end = header.data as u64 + elements::byte_len(&header.shape, header.encoding.item)? as u64;
            complete(file_len, end)?;
            let entry = tensor_entry(String::new(), Some(header.encoding.item.dtype()), header.shape, "");
            Ok(Some(Description { format: Format::Npy, entries: vec![entry] }))
        }
        _ if safetensors::is(&start) => {
            let (tensors, end) = safetensors::header(&start, &mut file)?;
            complete(file_len, end)?;
            let entries = tensors
                .into_iter()
                .map(|(name, dtype, shape, foreign)| tensor_entry(name, dtype, shape, &foreign))
                .collect();
            Ok(Some(Description { format: Format::SafeTensors, entries }))
        }
        _ => Ok(None),
    }
}

fn complete(file_len: u64, end: u64) -> Parse<()> {
    if file_len != end {
        return Err(Fault::damaged(format!("by its header the file has {end} bytes, and {file_len} are there")));
    }
    Ok(())
}

/// A tensor; where sampan has no such dtype, its foreign name stands for it.
fn tensor_entry(name: String, dtype: Option<DType>, shape: Vec<usize>, foreign: &str) -> Entry {
    let numel = shape.iter().fold(1usize, |n, &d| n.saturating_mul(d));
    let kind = dtype.map_or(foreign, |d| d.name());
    let summary = format!("{kind} {shape:?}");
    Entry { name, dtype, bytes: numel.saturating_mul(dtype.map_or(0, DType::size)), shape, summary }
}

fn entry(name: &str, value: &Object) -> Entry {
    let (dtype, shape) = value.as_tensor().map_or((None, Vec::new()), |t| (Some(t.dtype()), t.shape().to_vec()));
    let bytes = match value {
        Object::None => 0,
        Object::Bool(_) => 1,
        Object::Int(_) | Object::Float(_) => 8,
        Object::Str(s) => s.len(),
        Object::Bytes(b) => b.len(),
        Object::Tensor(t) | Object::Array(t) => t.numel() * t.dtype().size(),
        Object::List(_) | Object::Tuple(_) | Object::Dict(_) => 0,
    };
    let summary = match value {
        Object::Str(s) if s.chars().count() > 60 => format!("{:?}…", s.chars().take(60).collect::<String>()),
        other => format!("{other:?}"),
    };
    Entry { name: name.into(), dtype, shape, bytes, summary }
}
