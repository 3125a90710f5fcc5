//! Paddle's tensors in binary: `.pdiparams`, which `paddle.jit.save` writes, and `paddle.save(…, use_binary_format=True)`.
//!
//! One tensor after the other, each with a small header, and no names: those are in the program, in the same order.

use crate::cursor::Cursor;
use crate::elements::{self, Encoding, Item};
use crate::fault::{Fault, Parse};
use crate::proto::{self, Field, Message};
use crate::{atomic, read_file};
use sampan_core::{DType, Result, Tensor};
use std::io::Write;
use std::path::Path;

const FORMAT: &str = "Paddle binary file";
/// How every such file begins: version 0, no levels of detail, version 0 again.
pub(crate) const MAGIC: &[u8] = &[0; 16];

/// Paddle's numbers of the dtypes.
pub(crate) const DTYPES: [(u64, DType); 12] = [
    (0, DType::Bool),
    (1, DType::Int16),
    (2, DType::Int32),
    (3, DType::Int64),
    (4, DType::Float16),
    (5, DType::Float32),
    (6, DType::Float64),
    (20, DType::UInt8),
    (21, DType::Int8),
    (22, DType::BFloat16),
    (23, DType::Complex64),
    (24, DType::Complex128),
];

/// Reads all tensors of a file.
pub fn load(path: impl AsRef<Path>) -> Result<Vec<Tensor>> {
    let path = path.as_ref();
    let read = || decode(&read_file(path)?);
    read().map_err(|e| e.into_error("load", FORMAT, Some(path)))
}

/// Like [`load`], from memory.
pub fn from_bytes(bytes: &[u8]) -> Result<Vec<Tensor>> {
    decode(bytes).map_err(|e| e.into_error("load", FORMAT, None))
}

/// Writes tensors one after the other.
pub fn save(path: impl AsRef<Path>, tensors: &[Tensor]) -> Result<()> {
    let path = path.as_ref();
    let written = atomic::replace(path, |out| tensors.iter().try_for_each(|t| encode(out, t)));
    written.map_err(|e| e.into_error("save", FORMAT, Some(path)))
}

/// Like [`save`], to memory.
pub fn to_bytes(tensors: &[Tensor]) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    let written = tensors.iter().try_for_each(|t| encode(&mut out, t));
    written.map_err(|e| e.into_error("save", FORMAT, None))?;
    Ok(out)
}

pub(crate) fn decode(bytes: &[u8]) -> Parse<Vec<Tensor>> {
    let mut cursor = Cursor::new(bytes);
    let mut tensors = Vec::new();
    while cursor.remaining() > 0 {
        let at = cursor.at;
        tensors.push(one(&mut cursor).map_err(|e| e.at(at))?);
    }
    Ok(tensors)
}

fn version(cursor: &mut Cursor<'_>) -> Parse<()> {
    match cursor.u32()? {
        0 => Ok(()),
        other => Err(Fault::unsupported(format!("version {other} of a tensor; 0 is known"))),
    }
}

fn one(cursor: &mut Cursor<'_>) -> Parse<Tensor> {
    version(cursor)?;
    // Levels of detail: where the sequences of an old kind of batch begin. They say nothing about the values.
    for _ in 0..cursor.u64()? {
        let len = cursor.u64()?;
        cursor.take_u64(len)?;
    }
    version(cursor)?;
    let len = cursor.u32()? as usize;
    let (mut code, mut dims) = (None, Vec::new());
    for field in proto::fields(cursor.take(len)?) {
        match field? {
            (1, Field::Varint(v)) => code = Some(v),
            (2, Field::Varint(d)) if dims.len() < 65 => dims.push(d as i64),
            (2, Field::Bytes(packed)) => {
                let mut packed = Cursor::new(packed);
                while packed.remaining() > 0 && dims.len() < 65 {
                    dims.push(proto::varint(&mut packed)? as i64);
                }
            }
            _ => {}
        }
    }
    let code = code.ok_or_else(|| Fault::damaged("a tensor without a dtype"))?;
    let dtype = DTYPES.iter().find(|(c, _)| *c == code).map(|&(_, d)| d).ok_or_else(|| {
        Fault::unsupported(format!("a tensor of Paddle's dtype number {code}, which sampan does not have"))
    })?;
    let shape = elements::shape(dims)?;
    let item = Item::Ours(dtype);
    let data = cursor.take(elements::byte_len(&shape, item)?)?;
    elements::tensor(data, Encoding { item, big_endian: false, fortran: false }, &shape)
}

fn encode(out: &mut impl Write, tensor: &Tensor) -> Parse<()> {
    let data = elements::bytes_of(tensor)?;
    let code = DTYPES.iter().find(|(_, d)| *d == tensor.dtype()).expect("every dtype is listed").0;
    let header = Message::new().int(1, code as i64);
    let header = tensor.shape().iter().fold(header, |h, &d| h.int(2, d as i64));
    out.write_all(MAGIC)?;
    out.write_all(&(header.0.len() as u32).to_le_bytes())?;
    out.write_all(&header.0)?;
    Ok(out.write_all(&data)?)
}
