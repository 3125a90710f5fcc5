//! Objects as a pickle.

use crate::elements::{self, Item};
use crate::fault::{Fault, Parse};
use crate::object::{Key, Object};
use sampan_core::{DType, Tensor};
use std::collections::HashMap;
use std::io::Write;

/// How a tensor inside of lists and dicts is written.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Tensors {
    /// A NumPy array; bfloat16 as raw pairs of bytes.
    Arrays,
    /// A NumPy array as Paddle takes it: the bits of bfloat16 as uint16.
    PaddleArrays,
    /// The pair of name and array that Paddle makes a tensor of.
    Named,
    /// A reference to a storage, which PyTorch keeps beside the pickle.
    Storages,
}

/// Writes one pickle.
pub(crate) struct Writer<W: Write> {
    out: W,
    protocol: u8,
    pub tensors: Tensors,
    /// The tensors that were referred to as storages, in order.
    storages: Vec<Tensor>,
    /// Globals and dtypes that were written once and are recalled by number.
    memo: HashMap<String, u32>,
    depth: usize,
}

impl<W: Write> Writer<W> {
    pub fn new(mut out: W, protocol: u8, tensors: Tensors) -> Parse<Writer<W>> {
        if !(2..=4).contains(&protocol) {
            return Err(Fault::damaged(format!("protocol {protocol} is asked for; 2, 3 and 4 can be written")));
        }
        out.write_all(&[0x80, protocol])?;
        Ok(Writer { out, protocol, tensors, storages: Vec::new(), memo: HashMap::new(), depth: 0 })
    }

    /// The last instruction.
    pub fn finish(self) -> Parse<()> {
        self.finish_beside().map(drop)
    }

    /// Like [`finish`](Writer::finish), for a pickle with storages beside it, which it gives.
    pub fn finish_beside(mut self) -> Parse<Vec<Tensor>> {
        self.out.write_all(b".")?;
        Ok(self.storages)
    }

    fn op(&mut self, bytes: &[u8]) -> Parse<()> {
        Ok(self.out.write_all(bytes)?)
    }

    pub fn object(&mut self, object: &Object) -> Parse<()> {
        if self.depth == super::MAX_DEPTH {
            return Err(Fault::unsupported(format!("values nested deeper than {}", super::MAX_DEPTH)));
        }
        self.depth += 1;
        match object {
            Object::None => self.op(b"N")?,
            Object::Bool(true) => self.op(&[0x88])?,
            Object::Bool(false) => self.op(&[0x89])?,
            Object::Int(i) => self.int(*i)?,
            Object::Float(f) => {
                self.op(b"G")?;
                self.op(&f.to_be_bytes())?;
            }
            Object::Str(s) => self.text(s)?,
            Object::Bytes(b) => self.bytes(b)?,
            Object::Tensor(t) if self.tensors == Tensors::Named => {
                self.text(&t.name())?;
                self.array(t)?;
                self.op(&[0x86])?;
            }
            Object::Tensor(t) | Object::Array(t) if self.tensors == Tensors::Storages => self.storage(t)?,
            Object::Tensor(t) | Object::Array(t) => self.array(t)?,
            Object::List(items) => self.list_of(items.iter(), |w, item| w.object(item))?,
            Object::Tuple(items) => {
                self.op(b"(")?;
                items.iter().try_for_each(|i| self.object(i))?;
                self.op(b"t")?;
            }
            Object::Dict(dict) => self.dict_of(dict.iter(), |w, (k, v)| w.entry(k, v))?,
        }
        self.depth -= 1;
        Ok(())
    }

    pub fn begin_dict(&mut self) -> Parse<()> {
        self.op(b"}(")
    }

    pub fn end_dict(&mut self) -> Parse<()> {
        self.op(b"u")
    }

    pub fn entry(&mut self, key: &Key, value: &Object) -> Parse<()> {
        match key {
            Key::Str(s) => self.text(s)?,
            Key::Int(i) => self.int(*i)?,
        }
        self.object(value)
    }

    fn int(&mut self, i: i64) -> Parse<()> {
        if let Ok(small) = u8::try_from(i) {
            return self.op(&[b'K', small]);
        }
        if let Ok(short) = i32::try_from(i) {
            self.op(b"J")?;
            return self.op(&short.to_le_bytes());
        }
        self.op(&[0x8a, 8])?;
        self.op(&i.to_le_bytes())
    }

    /// An object of one of Python's classes, whose fields are written as entries of a dict.
    pub fn instance(&mut self, module: &str, class: &str, fields: impl FnOnce(&mut Self) -> Parse<()>) -> Parse<()> {
        self.global(module, class)?;
        self.op(&[b')', 0x81])?;
        self.begin_dict()?;
        fields(self)?;
        self.end_dict()?;
        self.op(b"b")
    }

    /// A field of such an object.
    pub fn field(&mut self, name: &str, value: &Object) -> Parse<()> {
        self.text(name)?;
        self.object(value)
    }

    /// A dict whose entries are written one by one.
    pub fn dict_of<T>(
        &mut self,
        mut entries: impl Iterator<Item = T>,
        mut write: impl FnMut(&mut Self, T) -> Parse<()>,
    ) -> Parse<()> {
        self.begin_dict()?;
        entries.try_for_each(|entry| write(self, entry))?;
        self.end_dict()
    }

    /// A list whose elements are written one by one.
    pub fn list_of<T>(
        &mut self,
        mut items: impl Iterator<Item = T>,
        mut write: impl FnMut(&mut Self, T) -> Parse<()>,
    ) -> Parse<()> {
        self.op(b"](")?;
        items.try_for_each(|item| write(self, item))?;
        self.op(b"e")
    }

    pub fn text(&mut self, s: &str) -> Parse<()> {
        match u32::try_from(s.len()) {
            Ok(n) if n < 256 && self.protocol >= 4 => self.op(&[0x8c, n as u8])?,
            Ok(n) => {
                self.op(b"X")?;
                self.op(&n.to_le_bytes())?;
            }
            Err(_) if self.protocol >= 4 => {
                self.op(&[0x8d])?;
                self.op(&(s.len() as u64).to_le_bytes())?;
            }
            Err(_) => return Err(too_long(self.protocol)),
        }
        self.op(s.as_bytes())
    }

    fn bytes(&mut self, b: &[u8]) -> Parse<()> {
        if self.protocol == 2 {
            return self.encoded(b);
        }
        match u32::try_from(b.len()) {
            Ok(n) if n < 256 => self.op(&[b'C', n as u8])?,
            Ok(n) => {
                self.op(b"B")?;
                self.op(&n.to_le_bytes())?;
            }
            Err(_) if self.protocol >= 4 => {
                self.op(&[0x8e])?;
                self.op(&(b.len() as u64).to_le_bytes())?;
            }
            Err(_) => return Err(too_long(self.protocol)),
        }
        self.op(b)
    }

    /// Protocol 2 has no bytes: they travel as a text of the same code points, which is encoded when it is read.
    fn encoded(&mut self, b: &[u8]) -> Parse<()> {
        let len = b.len() + b.iter().filter(|&&c| c >= 0x80).count();
        let len = u32::try_from(len).map_err(|_| too_long(self.protocol))?;
        self.global("_codecs", "encode")?;
        self.op(b"X")?;
        self.op(&len.to_le_bytes())?;
        let mut text = Vec::new();
        for chunk in b.chunks(1 << 16) {
            text.clear();
            for &c in chunk {
                match c {
                    0..0x80 => text.push(c),
                    _ => text.extend([0xc0 | c >> 6, 0x80 | c & 0x3f]),
                }
            }
            self.op(&text)?;
        }
        self.text("latin1")?;
        self.op(&[0x86, b'R'])
    }

    /// Writes something once; later uses recall it.
    fn once(&mut self, key: String, write: impl FnOnce(&mut Self) -> Parse<()>) -> Parse<()> {
        if let Some(&n) = self.memo.get(&key) {
            return self.op(&[b'h', n as u8]);
        }
        write(self)?;
        let n = self.memo.len() as u32;
        self.memo.insert(key, n);
        self.op(&[b'q', n as u8])
    }

    fn global(&mut self, module: &str, name: &str) -> Parse<()> {
        self.once(format!("{module} {name}"), |w| w.op(format!("c{module}\n{name}\n").as_bytes()))
    }

    fn dtype(&mut self, dtype: DType) -> Parse<()> {
        let paddle = self.tensors != Tensors::Arrays;
        let code = if paddle && dtype == DType::BFloat16 { "u2" } else { Item::numpy_code(dtype) };
        self.once(code.to_string(), |w| {
            w.global("numpy", "dtype")?;
            w.text(code)?;
            w.op(&[0x89, 0x88, 0x87, b'R'])?;
            // The state: version, byte order, no fields or names, size and alignment as usual, no flags.
            w.op(b"(K\x03")?;
            w.text(if dtype.size() == 1 || code == "V2" { "|" } else { "<" })?;
            w.op(b"NNN")?;
            // NumPy states size and alignment of raw bytes alone.
            if code == "V2" {
                w.op(b"K\x02K\x01")?
            } else {
                w.op(b"J\xff\xff\xff\xffJ\xff\xff\xff\xff")?
            };
            w.op(b"K\0tb")
        })
    }

    /// A tensor as PyTorch rebuilds it: `(storage, offset, shape, strides, requires_grad, hooks)`.
    fn storage(&mut self, tensor: &Tensor) -> Parse<()> {
        let place = self.storages.iter().position(|t| t.id() == tensor.id()).unwrap_or(self.storages.len());
        if place == self.storages.len() {
            self.storages.push(tensor.clone());
        }
        self.global("torch._utils", "_rebuild_tensor_v2")?;
        self.op(b"((")?;
        self.text("storage")?;
        self.global("torch", &format!("{}Storage", crate::pth::storage_name(tensor.dtype())))?;
        self.text(&place.to_string())?;
        self.text("cpu")?;
        self.int(tensor.numel() as i64)?;
        self.op(b"tQK\0(")?;
        tensor.shape().iter().try_for_each(|&d| self.int(d as i64))?;
        self.op(b"t(")?;
        let steps =
            (0..tensor.shape().len()).map(|i| tensor.shape()[i + 1..].iter().map(|&d| d.max(1)).product::<usize>());
        steps.into_iter().try_for_each(|step| self.int(step as i64))?;
        self.op(&[b't', 0x89])?;
        self.global("collections", "OrderedDict")?;
        self.op(b")RtR")
    }

    /// An array in the form NumPy's own pickles have. The old name of its module is known to every NumPy.
    pub fn array(&mut self, tensor: &Tensor) -> Parse<()> {
        self.shaped(tensor.shape(), tensor.dtype(), &elements::bytes_of(tensor)?)
    }

    /// An array of objects without dimensions that holds one value.
    pub fn only(&mut self, object: &Object) -> Parse<()> {
        self.global("numpy.core.multiarray", "_reconstruct")?;
        self.global("numpy", "ndarray")?;
        self.op(b"K\0\x85")?;
        self.once("b".into(), |w| w.bytes(b"b"))?;
        self.op(&[0x87, b'R'])?;
        self.op(b"(K\x01)")?;
        self.global("numpy", "dtype")?;
        self.text("O8")?;
        self.op(&[0x89, 0x88, 0x87, b'R'])?;
        self.op(b"(K\x03")?;
        self.text("|")?;
        // The last number says that the elements are references.
        self.op(b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK?tb")?;
        self.op(&[0x89])?;
        self.op(b"](")?;
        self.object(object)?;
        self.op(b"etb")
    }

    /// Part of an array, flat.
    pub fn part(&mut self, key: &str, dtype: DType, bytes: &[u8]) -> Parse<()> {
        self.text(key)?;
        self.shaped(&[bytes.len() / dtype.size()], dtype, bytes)
    }

    fn shaped(&mut self, shape: &[usize], dtype: DType, bytes: &[u8]) -> Parse<()> {
        self.global("numpy.core.multiarray", "_reconstruct")?;
        self.global("numpy", "ndarray")?;
        self.op(b"K\0\x85")?;
        self.once("b".into(), |w| w.bytes(b"b"))?;
        self.op(&[0x87, b'R'])?;
        self.op(b"(K\x01(")?;
        shape.iter().try_for_each(|&d| self.int(d as i64))?;
        self.op(b"t")?;
        self.dtype(dtype)?;
        self.op(&[0x89])?;
        self.bytes(bytes)?;
        self.op(b"tb")
    }
}

fn too_long(protocol: u8) -> Fault {
    Fault::unsupported(format!("pickle protocol {protocol} has no values of more than 4 GB")).hint("use protocol 4")
}
