//! What a file holds, in a table.

use crate::{Format, Object};
use sampan_core::{DType, Result};
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
    let (format, object) = crate::open(path.as_ref())?;
    let mut entries = Vec::new();
    object.visit("", &mut |name, value| entries.push(entry(name, value)));
    Ok(Description { format, entries })
}

fn entry(name: &str, value: &Object) -> Entry {
    let (dtype, shape) = value.as_tensor().map_or((None, Vec::new()), |t| (Some(t.dtype()), t.shape().to_vec()));
    let bytes = match value {
        Object::None => 0,
        Object::Bool(_) => 1,
        Object::Int(_) | Object::Float(_) => 8,
        Object::Str(s) => s.len(),
        Object::Bytes(b) => b.len(),
        Object::Tensor(t) => t.numel() * t.dtype().size(),
        Object::List(_) | Object::Tuple(_) | Object::Dict(_) => 0,
    };
    let summary = match value {
        Object::Str(s) if s.chars().count() > 60 => format!("{:?}…", s.chars().take(60).collect::<String>()),
        other => format!("{other:?}"),
    };
    Entry { name: name.into(), dtype, shape, bytes, summary }
}
