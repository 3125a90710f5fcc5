//! Python's pickles, as data. Nothing in a pickle is run: the few calls that Paddle, NumPy and PyTorch write are known by
//! name and done here, and every other one is an error that names it.

mod escapes;
pub(crate) mod numpy;
pub(crate) mod parse;
pub(crate) mod table;
pub(crate) mod write;

use crate::cursor::Budget;
use crate::fault::{Fault, Parse};
use crate::object::{Dict, Key, Object};
use std::collections::HashMap;
use table::{Node, Pickle, Ref};

/// Lists in lists in lists: deeper than this is no checkpoint, or a value that holds itself.
const MAX_DEPTH: usize = 128;

/// Reads a pickle of protocol 0 to 5. NumPy arrays become tensors.
pub fn from_bytes(bytes: &[u8]) -> sampan_core::Result<Object> {
    let read = || {
        let pickle = parse::parse(bytes, 0)?;
        Builder::new(&pickle, bytes.len()).build(pickle.root)
    };
    read().map_err(|e| e.into_error("load", "pickle", None))
}

/// Writes a pickle of protocol 2, 3 or 4. Tensors become NumPy arrays.
pub fn to_bytes(object: &Object, protocol: u8) -> sampan_core::Result<Vec<u8>> {
    let mut out = Vec::new();
    let write = |out: &mut Vec<u8>| -> Parse<()> {
        let mut writer = write::Writer::new(out, protocol, write::Tensors::Arrays)?;
        writer.object(object)?;
        writer.finish()
    };
    write(&mut out).map_err(|e| e.into_error("save", "pickle", None))?;
    Ok(out)
}

/// What else than NumPy's and Python's own things a pickle may hold.
pub(crate) type Dialect<'d> = dyn Fn(&mut Builder<'_, '_>, Ref) -> Parse<Option<Object>> + 'd;

/// Turns a pickle's table into a tree of objects.
pub(crate) struct Builder<'a, 'd> {
    pub pickle: &'a Pickle<'a>,
    /// Does Paddle's reading of uint16 apply?
    pub uint16_is_bfloat16: bool,
    pub dialect: Option<&'d Dialect<'d>>,
    pub budget: Budget,
    /// A tensor that several places share is one tensor.
    tensors: HashMap<Ref, sampan_core::Tensor>,
    depth: usize,
}

impl<'a, 'd> Builder<'a, 'd> {
    pub fn new(pickle: &'a Pickle<'a>, input_len: usize) -> Builder<'a, 'd> {
        let budget = Budget::for_input(input_len);
        Builder { pickle, uint16_is_bfloat16: false, dialect: None, budget, tensors: HashMap::new(), depth: 0 }
    }

    /// The object at a place.
    pub fn build(&mut self, r: Ref) -> Parse<Object> {
        if self.depth == MAX_DEPTH {
            return Err(Fault::damaged(format!("values nested deeper than {MAX_DEPTH}, or one that holds itself")));
        }
        self.depth += 1;
        let object = self.one(r);
        self.depth -= 1;
        object
    }

    fn one(&mut self, r: Ref) -> Parse<Object> {
        self.budget.value()?;
        Ok(match self.pickle.node(r) {
            Node::None => Object::None,
            Node::Bool(b) => Object::Bool(*b),
            Node::Int(i) => Object::Int(*i),
            Node::Float(f) => Object::Float(*f),
            Node::Str(b) | Node::OldStr(b) => {
                self.budget.bytes(self.pickle.blob(b).len())?;
                Object::Str(self.pickle.text(r).expect("it is a string").into_owned())
            }
            Node::Bytes(b) => {
                self.budget.bytes(self.pickle.blob(b).len())?;
                Object::Bytes(self.pickle.blob(b).to_vec())
            }
            Node::List(items) => Object::List(items.iter().map(|&i| self.build(i)).collect::<Parse<_>>()?),
            Node::Tuple(items) => Object::Tuple(items.iter().map(|&i| self.build(i)).collect::<Parse<_>>()?),
            Node::Dict(pairs) => {
                let mut dict = Dict::new();
                for &(key, value) in pairs {
                    let key = self.key(key)?;
                    let value = self.build(value)?;
                    dict.insert(key, value);
                }
                Object::Dict(dict)
            }
            Node::Global(..) | Node::Call { .. } | Node::Persistent(_) => self.made(r)?,
        })
    }

    fn key(&mut self, r: Ref) -> Parse<Key> {
        match self.build(r)? {
            Object::Str(s) => Ok(Key::Str(s)),
            Object::Int(i) => Ok(Key::Int(i)),
            // Python 2 wrote its text as bytes.
            Object::Bytes(b) if b.is_ascii() => Ok(Key::Str(b.iter().map(|&b| b as char).collect())),
            other => Err(Fault::unsupported(format!(
                "a dict with a key of type {}; sampan knows str and int",
                other.type_name()
            ))),
        }
    }

    /// What a call makes, by the few that are known.
    fn made(&mut self, r: Ref) -> Parse<Object> {
        if let Some(tensor) = self.tensors.get(&r) {
            return Ok(Object::Tensor(tensor.clone()));
        }
        let object = self.call(r)?;
        if let Object::Tensor(t) = &object {
            self.tensors.insert(r, t.clone());
        }
        Ok(object)
    }

    fn call(&mut self, r: Ref) -> Parse<Object> {
        if let Some(dialect) = self.dialect
            && let Some(object) = dialect(self, r)?
        {
            return Ok(object);
        }
        let pickle = self.pickle;
        if let Some(array) = numpy::array(pickle, r) {
            let array = array?;
            self.budget.bytes(array.byte_len())?;
            return Ok(Object::Tensor(array.tensor(self.uint16_is_bfloat16)?));
        }
        match pickle.call(r) {
            Some((("numpy.core.multiarray" | "numpy._core.multiarray", "scalar"), args, _)) => {
                numpy::scalar(pickle, args)
            }
            Some((("_codecs", "encode") | ("builtins" | "__builtin__", "bytes" | "bytearray"), ..)) => {
                let bytes = numpy::bytes(pickle, r)?;
                self.budget.bytes(bytes.len())?;
                Ok(Object::Bytes(bytes.into_owned()))
            }
            // How Paddle writes a tensor of a static graph. Nothing is evaluated: it must be this and no other form.
            Some((("builtins" | "__builtin__", "eval"), &[code, names], None))
                if pickle.text(code).as_deref() == Some("data") =>
            {
                match pickle.node(names) {
                    Node::Dict(pairs) if pairs.len() == 1 && pickle.text(pairs[0].0).as_deref() == Some("data") => {
                        self.build(pairs[0].1)
                    }
                    _ => Err(unknown(pickle, r)),
                }
            }
            _ => Err(unknown(pickle, r)),
        }
    }
}

fn unknown(pickle: &Pickle<'_>, r: Ref) -> Fault {
    let named = pickle.global(r).or_else(|| pickle.call(r).map(|(global, ..)| global));
    match named {
        Some(("builtins" | "__builtin__", "complex")) => Fault::unsupported("a complex number, which sampan does not have"),
        Some((module, name)) => Fault::unsupported(format!(
            "the pickle wants Python's {module}.{name}, which is not among the few things that are data; nothing was run"
        ))
        .hint("save a state_dict of tensors, numbers and strings instead of whole objects"),
        None => Fault::unsupported("the pickle refers to something outside of it"),
    }
}
