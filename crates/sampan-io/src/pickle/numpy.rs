//! NumPy's arrays and scalars as pickles hold them.

use super::table::{Node, Pickle, Ref};
use crate::elements::{self, Encoding, Item};
use crate::fault::{Fault, Parse};
use crate::object::Object;
use sampan_core::{DType, Tensor};
use std::borrow::Cow;

fn damaged(what: &str) -> Fault {
    Fault::damaged(format!("{what} is not of the form NumPy writes"))
}

/// The bytes a value stands for, in any of the ways the protocols have to write them.
pub(super) fn bytes<'a>(pickle: &'a Pickle<'_>, r: Ref) -> Parse<Cow<'a, [u8]>> {
    match pickle.node(r) {
        Node::Bytes(b) | Node::OldStr(b) => Ok(Cow::Borrowed(pickle.blob(b))),
        Node::Call { .. } => match pickle.call(r) {
            Some((("_codecs", "encode"), &[text, codec], None))
                if matches!(pickle.text(codec).as_deref(), Some("latin1" | "latin-1")) =>
            {
                let text = pickle.text(text).ok_or_else(|| damaged("an encoded text"))?;
                latin1(text.as_bytes()).map(Cow::Owned).ok_or_else(|| damaged("an encoded text"))
            }
            Some((("builtins" | "__builtin__", "bytes" | "bytearray"), &[], None)) => Ok(Cow::Borrowed(&[])),
            Some((("builtins" | "__builtin__", "bytearray"), &[inner], None))
                if matches!(pickle.node(inner), Node::Bytes(_)) =>
            {
                bytes(pickle, inner)
            }
            _ => Err(damaged("a value of bytes")),
        },
        _ => Err(damaged("a value of bytes")),
    }
}

/// The bytes whose numbers are the characters of a text in UTF-8. Byte by byte, for the texts are whole tensors.
fn latin1(text: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.iter();
    while let Some(&byte) = rest.next() {
        out.push(match byte {
            0..0x80 => byte,
            0xc2 | 0xc3 => byte << 6 | rest.next()? & 0x3f,
            _ => return None,
        });
    }
    Some(out)
}

/// The element type and byte order of `numpy.dtype(code, …)` with its state `(version, order, …)`.
fn dtype(pickle: &Pickle<'_>, r: Ref) -> Parse<(Item, bool)> {
    let Some((("numpy" | "numpy.dtypes", _), args, state)) = pickle.call(r) else { return Err(damaged("a dtype")) };
    let code = args.first().ok_or_else(|| damaged("a dtype"))?;
    if pickle.global(*code) == Some(("ml_dtypes", "bfloat16")) {
        return Ok((Item::Ours(DType::BFloat16), false));
    }
    let code = pickle.text(*code).ok_or_else(|| damaged("a dtype"))?;
    let state = state.and_then(|s| pickle.items(s)).unwrap_or(&[]);
    let order = state.get(1).and_then(|&r| pickle.text(r));
    // A structure lists its fields in the state; its code alone looks like raw bytes.
    if state.get(3).is_some_and(|&r| !matches!(pickle.node(r), Node::None)) {
        return Err(Fault::unsupported("an array of structures; sampan has arrays of numbers only"));
    }
    let big = match order.as_deref() {
        None | Some("<" | "|" | "=") => false,
        Some(">") => true,
        Some(_) => return Err(damaged("a byte order")),
    };
    Ok((Item::from_numpy(code.trim_start_matches(['<', '>', '|', '=']))?, big ^ code.starts_with('>')))
}

fn extents(pickle: &Pickle<'_>, r: Ref) -> Parse<Vec<usize>> {
    let dims = pickle.items(r).ok_or_else(|| damaged("a shape"))?;
    let dims: Option<Vec<i64>> = dims.iter().take(65).map(|&d| pickle.int(d)).collect();
    elements::shape(dims.ok_or_else(|| damaged("a shape"))?)
}

/// An array found in a pickle.
pub(crate) struct Array<'a> {
    shape: Vec<usize>,
    encoding: Encoding,
    data: Cow<'a, [u8]>,
}

impl Array<'_> {
    /// The bytes its tensor takes.
    pub fn byte_len(&self) -> usize {
        // Unsigned numbers widen to at most twice their size.
        self.data.len().saturating_mul(2)
    }

    /// The tensor. Paddle keeps the bits of bfloat16 in arrays of uint16, and takes every such array for one.
    pub fn tensor(mut self, uint16_is_bfloat16: bool) -> Parse<Tensor> {
        if uint16_is_bfloat16 && self.encoding.item == Item::U16 {
            self.encoding.item = Item::Ours(DType::BFloat16);
        }
        elements::tensor(&self.data, self.encoding, &self.shape)
    }
}

/// The array a call makes, if it makes one.
pub(crate) fn array<'a>(pickle: &'a Pickle<'_>, r: Ref) -> Option<Parse<Array<'a>>> {
    match pickle.call(r)? {
        (("numpy.core.multiarray" | "numpy._core.multiarray", "_reconstruct"), _, state) => {
            Some(reconstruct(pickle, state))
        }
        (("numpy.core.numeric" | "numpy._core.numeric", "_frombuffer"), args, _) => Some(from_buffer(pickle, args)),
        _ => None,
    }
}

/// State `(version, shape, dtype, fortran, data)`; the oldest NumPy had no version.
fn reconstruct<'a>(pickle: &'a Pickle<'_>, state: Option<Ref>) -> Parse<Array<'a>> {
    let state = state.and_then(|s| pickle.items(s)).ok_or_else(|| damaged("an array"))?;
    let &[shape, kind, fortran, data] = state.last_chunk::<4>().ok_or_else(|| damaged("an array"))?;
    let (item, big_endian) = dtype(pickle, kind)?;
    let fortran = pickle.int(fortran).ok_or_else(|| damaged("an array"))? != 0;
    let encoding = Encoding { item, big_endian, fortran };
    Ok(Array { shape: extents(pickle, shape)?, encoding, data: bytes(pickle, data)? })
}

/// The values of an array of objects, which is how `numpy.save` keeps what is no array.
pub(crate) fn objects(pickle: &Pickle<'_>, r: Ref) -> Parse<Vec<Ref>> {
    let fault = || damaged("an array of objects");
    let Some((("numpy.core.multiarray" | "numpy._core.multiarray", "_reconstruct"), _, Some(state))) = pickle.call(r)
    else {
        return Err(fault());
    };
    let state = pickle.items(state).ok_or_else(fault)?;
    let &[shape, kind, _, data] = state.last_chunk::<4>().ok_or_else(fault)?;
    let code = pickle.call(kind).and_then(|(_, args, _)| args.first().and_then(|&c| pickle.text(c)));
    let items = pickle.items(data).ok_or_else(fault)?;
    let count = extents(pickle, shape)?.iter().try_fold(1usize, |n, &d| n.checked_mul(d));
    if !matches!(code.as_deref(), Some("O8" | "O" | "|O" | "O4")) || count != Some(items.len()) {
        return Err(fault());
    }
    Ok(items.to_vec())
}

fn from_buffer<'a>(pickle: &'a Pickle<'_>, args: &[Ref]) -> Parse<Array<'a>> {
    let &[data, kind, shape, order] = args.first_chunk::<4>().ok_or_else(|| damaged("an array"))?;
    let (item, big_endian) = dtype(pickle, kind)?;
    let fortran = match pickle.text(order).as_deref() {
        Some("C") => false,
        Some("F") => true,
        _ => return Err(damaged("the order of an array")),
    };
    let encoding = Encoding { item, big_endian, fortran };
    Ok(Array { shape: extents(pickle, shape)?, encoding, data: bytes(pickle, data)? })
}

/// A NumPy scalar becomes the plain number.
pub(super) fn scalar(pickle: &Pickle<'_>, args: &[Ref]) -> Parse<Object> {
    let &[kind, data] = args.first_chunk::<2>().ok_or_else(|| damaged("a scalar"))?;
    let (item, big_endian) = dtype(pickle, kind)?;
    let one = elements::tensor(&bytes(pickle, data)?, Encoding { item, big_endian, fortran: false }, &[])?;
    Ok(match one.dtype() {
        DType::Bool => Object::Bool(one.to_bytes()[0] != 0),
        d if d.is_complex() => return Err(Fault::unsupported("a complex number outside an array")),
        d if d.is_float() => Object::Float(one.try_cast(DType::Float64)?.try_to_vec::<f64>()?[0]),
        _ => Object::Int(one.try_cast(DType::Int64)?.try_to_vec::<i64>()?[0]),
    })
}
