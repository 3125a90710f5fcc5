//! Paddle's `.pdparams` and `.pdopt`, and whatever else `paddle.save` writes.
//!
//! A state dict is a pickled dict of NumPy arrays with a table of the tensors' own names. Any other value is pickled with
//! each tensor as a pair of name and array; arrays beside such pairs are arrays, and tensors where there is no pair.
//! Paddle 1.x and 2.x wrote the same forms in older protocols.

use crate::elements::{self, Encoding, Item};
use crate::fault::{Fault, Parse};
use crate::object::{Dict, Key, Object};
use crate::pickle::write::{Tensors, Writer};
use crate::pickle::{Builder, parse};
use crate::{atomic, read_file};
use sampan_core::{Result, Tensor};
use std::io::Write;
use std::path::{Path, PathBuf};

/// The entry of a state dict that gives each tensor's own name.
const NAMES: &str = "StructuredToParameterName@@";
/// The entry that says which tensors were cut into parts, for protocols that cannot hold them whole. Paddle spells it so.
const PARTS: &str = "UnpackBigParamInfor@@";
/// The bytes of a part. Protocols 2 and 3 count in 32 bits, and protocol 2 may need two bytes for one.
const PART_BYTES: usize = (1 << 30) - 1;
/// What `paddle.save` takes if nothing is said.
pub const DEFAULT_PROTOCOL: u8 = 4;
const FORMAT: &str = "Paddle file";

/// Reads what `paddle.save` wrote. Tensors carry the names they had; the table of names is not part of the result.
///
/// ```no_run
/// let state = sampan_io::pdparams::load("resnet50.pdparams")?.tensors();
/// # Ok::<(), sampan_core::Error>(())
/// ```
pub fn load(path: impl AsRef<Path>) -> Result<Object> {
    let path = path.as_ref();
    let read = || decode(&read_file(path)?);
    read().map_err(|e| e.into_error("load", FORMAT, Some(path)))
}

/// Like [`load`], from memory.
pub fn from_bytes(bytes: &[u8]) -> Result<Object> {
    decode(bytes).map_err(|e| e.into_error("load", FORMAT, None))
}

/// Writes what `paddle.load` reads, in the default protocol. Paddle itself refuses [`Object::Bytes`]; we read them back.
pub fn save(path: impl AsRef<Path>, object: &Object) -> Result<()> {
    save_with(path, object, DEFAULT_PROTOCOL)
}

/// Like [`save`], in protocol 2, 3 or 4.
pub fn save_with(path: impl AsRef<Path>, object: &Object, protocol: u8) -> Result<()> {
    let path = path.as_ref();
    let written = atomic::replace(path, |out| encode(out, object, protocol, PART_BYTES));
    written.map_err(|e| e.into_error("save", FORMAT, Some(path)))
}

/// Like [`save`], under another name beside `path`.
pub(crate) fn save_beside(path: &Path, object: &Object) -> Parse<PathBuf> {
    atomic::write_beside(path, |out| encode(out, object, DEFAULT_PROTOCOL, PART_BYTES))
}

/// Like [`save_with`], to memory.
pub fn to_bytes(object: &Object, protocol: u8) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    encode(&mut out, object, protocol, PART_BYTES).map_err(|e| e.into_error("save", FORMAT, None))?;
    Ok(out)
}

pub(crate) fn decode(bytes: &[u8]) -> Parse<Object> {
    read(bytes, false).map(|(object, _)| object)
}

/// The value at the start of `bytes`, and where it ends. `keep_names`: with the table of names, if it has one.
pub(crate) fn read(bytes: &[u8], keep_names: bool) -> Parse<(Object, usize)> {
    let pickle = parse::parse(bytes, 0)?;
    let mut builder = Builder::new(&pickle, bytes.len());
    builder.uint16_is_bfloat16 = true;
    let mut object = builder.build(pickle.root)?;
    if let Object::Dict(dict) = &mut object {
        join_parts(dict)?;
        if let Some(Object::Dict(names)) = dict.remove(NAMES) {
            for (key, name) in names.iter() {
                if let (Some(Object::Tensor(t)), Object::Str(name)) = (dict.get(key), name) {
                    t.set_name(name);
                }
            }
            if keep_names {
                dict.insert(NAMES, names);
            }
            return Ok((object, pickle.end));
        }
    }
    if has_pair(&object) {
        name_pairs(&mut object);
    }
    Ok((object, pickle.end))
}

/// Puts tensors together that were cut into parts.
fn join_parts(dict: &mut Dict) -> Parse<()> {
    let Some(table) = dict.remove(PARTS) else { return Ok(()) };
    let broken = |key: &Key| Fault::damaged(format!("{key}: the parts of this tensor are not in order"));
    for (key, entry) in table.as_dict().ok_or_else(|| Fault::damaged("the table of parts is no dict"))?.iter() {
        let part = |name: &str| entry.as_dict().and_then(|d| d.get(name)).and_then(Object::as_slice);
        let (Some(shape), Some(slices)) = (part("OriginShape"), part("slices")) else { return Err(broken(key)) };
        let shape = elements::shape(shape.iter().map(|d| d.as_int().unwrap_or(-1)))?;
        let mut bytes = Vec::new();
        let mut dtype = None;
        for name in slices {
            let part = name.as_str().and_then(|n| dict.remove(n)).ok_or_else(|| broken(key))?;
            let part = part.as_tensor().ok_or_else(|| broken(key))?;
            if *dtype.get_or_insert(part.dtype()) != part.dtype() {
                return Err(broken(key));
            }
            bytes.extend(elements::bytes_of(part)?);
        }
        let item = Item::Ours(dtype.ok_or_else(|| broken(key))?);
        let whole = elements::tensor(&bytes, Encoding { item, big_endian: false, fortran: false }, &shape);
        dict.insert(key, whole.map_err(|e| e.inside(&key.to_string()))?);
    }
    Ok(())
}

fn is_pair(items: &[Object]) -> bool {
    matches!(items, [Object::Str(_), Object::Tensor(_)])
}

fn has_pair(object: &Object) -> bool {
    match object {
        Object::Tuple(pair) if is_pair(pair) => true,
        Object::List(items) | Object::Tuple(items) => items.iter().any(has_pair),
        Object::Dict(dict) => dict.iter().any(|(_, value)| has_pair(value)),
        _ => false,
    }
}

/// Turns pairs of name and array into named tensors; other arrays stay arrays.
fn name_pairs(object: &mut Object) {
    match object {
        Object::Tuple(pair) if is_pair(pair) => {
            let (Some(Object::Tensor(tensor)), Some(Object::Str(name))) = (pair.pop(), pair.pop()) else {
                unreachable!("the pattern says what they are")
            };
            tensor.set_name(name);
            *object = Object::Tensor(tensor);
        }
        Object::List(items) | Object::Tuple(items) => items.iter_mut().for_each(name_pairs),
        Object::Dict(dict) => dict.values_mut().for_each(name_pairs),
        Object::Tensor(t) => *object = Object::Array(t.clone()),
        _ => {}
    }
}

/// Paddle's own rule: every value is a tensor, or a dict without tensors such as a scheduler's.
fn is_state_dict(object: &Object) -> Option<&Dict> {
    let plain = |value: &Object| match value {
        Object::Tensor(_) => true,
        Object::Dict(_) => value.tensors().is_empty(),
        _ => false,
    };
    object.as_dict().filter(|d| d.iter().all(|(_, v)| plain(v)))
}

fn encode(out: &mut impl Write, object: &Object, protocol: u8, part_bytes: usize) -> Parse<()> {
    let Some(dict) = is_state_dict(object) else {
        let mut writer = Writer::new(out, protocol, Tensors::Named)?;
        writer.object(object)?;
        return writer.finish();
    };
    let mut writer = Writer::new(out, protocol, Tensors::PaddleArrays)?;
    let cut = |t: &Tensor| protocol < 4 && t.numel() > part_bytes / t.dtype().size();
    let mut names = Dict::new();
    let mut large = Vec::new();
    writer.begin_dict()?;
    for (key, value) in dict.iter() {
        if let Object::Tensor(t) = value {
            names.insert(key, t.name());
            if cut(t) {
                large.push((key, t));
                continue;
            }
        }
        writer.entry(key, value).map_err(|e| e.inside(&key.to_string()))?;
    }
    writer.entry(&Key::from(NAMES), &names.into())?;
    let mut table = Dict::new();
    for (key, tensor) in large {
        let step = part_bytes / tensor.dtype().size() * tensor.dtype().size();
        let mut slices = Vec::new();
        for (i, part) in elements::bytes_of(tensor)?.chunks(step).enumerate() {
            let name = format!("{key}@@.{i}");
            writer.part(&name, tensor.dtype(), part)?;
            slices.push(Object::Str(name));
        }
        let shape = tensor.shape().iter().map(|&d| Object::Int(d as i64)).collect();
        let entry = [("OriginShape", Object::Tuple(shape)), ("slices", Object::List(slices))];
        table.insert(key, entry.into_iter().collect::<Dict>());
    }
    if !table.is_empty() {
        writer.entry(&Key::from(PARTS), &table.into())?;
    }
    writer.end_dict()?;
    writer.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The size at which tensors are cut is a gigabyte; here it is a few bytes.
    #[test]
    fn tensors_are_cut_and_joined() {
        let values: Vec<f32> = (0..10).map(|i| i as f32).collect();
        let state: Dict =
            [("big", Tensor::from_vec(values, [5, 2])), ("small", Tensor::new([1i64]))].into_iter().collect();
        let mut bytes = Vec::new();
        encode(&mut bytes, &state.clone().into(), 2, 15).unwrap();
        let found = crate::pickle::from_bytes(&bytes).unwrap();
        let parts = found.as_dict().unwrap().iter().filter(|(k, _)| k.to_string().starts_with("big@@.")).count();
        assert_eq!(parts, 4);
        let back = decode(&bytes).unwrap();
        assert_eq!(back.as_dict().unwrap().get("big"), state.get("big"));
        assert_eq!(back.as_dict().unwrap().len(), 2);
        let mut whole = Vec::new();
        encode(&mut whole, &state.into(), 4, 15).unwrap();
        assert!(!String::from_utf8_lossy(&whole).contains(PARTS));
    }
}
