//! What a file holds: plain values, tensors, and lists and dicts of them.

use sampan_core::error::Kind;
use sampan_core::{Error, Result, Tensor};
use std::collections::{BTreeMap, HashMap};
use std::fmt;

/// A value that can be saved and loaded, as `paddle.save` and `paddle.load` take and give them.
///
/// ```
/// use sampan_core::Tensor;
/// use sampan_io::{Dict, Object};
/// let state: Dict = [("epoch", Object::from(3i64)), ("weight", Tensor::new([1.0f32]).into())].into_iter().collect();
/// assert_eq!(state.get("epoch").and_then(Object::as_int), Some(3));
/// ```
#[derive(Clone, Default)]
#[allow(missing_docs)]
pub enum Object {
    #[default]
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Str(String),
    Bytes(Vec<u8>),
    Tensor(Tensor),
    /// A NumPy array beside tensors, which Python keeps apart from them.
    Array(Tensor),
    List(Vec<Object>),
    Tuple(Vec<Object>),
    Dict(Dict),
}

/// A key of a [`Dict`].
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)]
pub enum Key {
    Str(String),
    Int(i64),
}

/// A map that keeps the order of its entries, as Python's does.
#[derive(Clone, Default)]
pub struct Dict {
    entries: Vec<(Key, Object)>,
    places: HashMap<Key, usize>,
}

impl Dict {
    /// An empty one.
    pub fn new() -> Dict {
        Dict::default()
    }

    /// Puts an entry at the end, or in the place of one with the same key.
    pub fn insert(&mut self, key: impl Into<Key>, value: impl Into<Object>) {
        let (key, value) = (key.into(), value.into());
        match self.places.get(&key) {
            Some(&i) => self.entries[i].1 = value,
            None => {
                self.places.insert(key.clone(), self.entries.len());
                self.entries.push((key, value));
            }
        }
    }

    /// The value of a key.
    pub fn get(&self, key: impl Into<Key>) -> Option<&Object> {
        self.places.get(&key.into()).map(|&i| &self.entries[i].1)
    }

    /// Takes an entry out; the order of the others stays.
    pub fn remove(&mut self, key: impl Into<Key>) -> Option<Object> {
        let gone = self.places.remove(&key.into())?;
        self.places.values_mut().filter(|i| **i > gone).for_each(|i| *i -= 1);
        Some(self.entries.remove(gone).1)
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Has it none?
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The entries in order.
    pub fn iter(&self) -> impl Iterator<Item = (&Key, &Object)> {
        self.entries.iter().map(|(k, v)| (k, v))
    }

    /// The values in order, to be changed.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut Object> {
        self.entries.iter_mut().map(|(_, v)| v)
    }
}

impl IntoIterator for Dict {
    type Item = (Key, Object);
    type IntoIter = std::vec::IntoIter<(Key, Object)>;
    fn into_iter(self) -> Self::IntoIter {
        self.entries.into_iter()
    }
}

impl<K: Into<Key>, V: Into<Object>> FromIterator<(K, V)> for Dict {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Dict {
        let mut dict = Dict::new();
        entries.into_iter().for_each(|(k, v)| dict.insert(k, v));
        dict
    }
}

impl Object {
    /// What it is, in a word.
    pub fn type_name(&self) -> &'static str {
        match self {
            Object::None => "None",
            Object::Bool(_) => "bool",
            Object::Int(_) => "int",
            Object::Float(_) => "float",
            Object::Str(_) => "str",
            Object::Bytes(_) => "bytes",
            Object::Tensor(_) => "Tensor",
            Object::Array(_) => "ndarray",
            Object::List(_) => "list",
            Object::Tuple(_) => "tuple",
            Object::Dict(_) => "dict",
        }
    }

    /// The tensor, if it is one, or an array as one.
    pub fn as_tensor(&self) -> Option<&Tensor> {
        if let Object::Tensor(t) | Object::Array(t) = self { Some(t) } else { None }
    }

    /// The number, if it is a whole one.
    pub fn as_int(&self) -> Option<i64> {
        if let Object::Int(i) = self { Some(*i) } else { None }
    }

    /// The number, if it is one.
    pub fn as_float(&self) -> Option<f64> {
        match self {
            Object::Float(f) => Some(*f),
            Object::Int(i) => Some(*i as f64),
            _ => None,
        }
    }

    /// The text, if it is one.
    pub fn as_str(&self) -> Option<&str> {
        if let Object::Str(s) = self { Some(s) } else { None }
    }

    /// The dict, if it is one.
    pub fn as_dict(&self) -> Option<&Dict> {
        if let Object::Dict(d) = self { Some(d) } else { None }
    }

    /// The elements, if it is a list or a tuple.
    pub fn as_slice(&self) -> Option<&[Object]> {
        if let Object::List(v) | Object::Tuple(v) = self { Some(v) } else { None }
    }

    /// Every tensor in it with the way to it: `model.fc.weight`, `stack.0`. Other values are passed over.
    pub fn tensors(&self) -> BTreeMap<String, Tensor> {
        let mut found = BTreeMap::new();
        self.visit("", &mut |name, value| {
            if let Some(t) = value.as_tensor() {
                found.insert(name.to_string(), t.clone());
            }
        });
        found
    }

    /// Shows every value that is no list, tuple or dict, with the way to it.
    pub fn visit(&self, name: &str, see: &mut dyn FnMut(&str, &Object)) {
        let join = |key: &dyn fmt::Display| if name.is_empty() { key.to_string() } else { format!("{name}.{key}") };
        match self {
            Object::List(v) | Object::Tuple(v) => v.iter().enumerate().for_each(|(i, x)| x.visit(&join(&i), see)),
            Object::Dict(d) => d.iter().for_each(|(k, x)| x.visit(&join(k), see)),
            leaf => see(name, leaf),
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Key::Str(s) => f.write_str(s),
            Key::Int(i) => write!(f, "{i}"),
        }
    }
}

/// Two tensors are the same here if dtype, shape and bits are; so NaN equals itself.
impl PartialEq for Object {
    fn eq(&self, other: &Object) -> bool {
        match (self, other) {
            (Object::None, Object::None) => true,
            (Object::Bool(a), Object::Bool(b)) => a == b,
            (Object::Int(a), Object::Int(b)) => a == b,
            (Object::Float(a), Object::Float(b)) => a.to_bits() == b.to_bits(),
            (Object::Str(a), Object::Str(b)) => a == b,
            (Object::Bytes(a), Object::Bytes(b)) => a == b,
            (Object::Tensor(a), Object::Tensor(b)) | (Object::Array(a), Object::Array(b)) => {
                (a.dtype(), a.shape()) == (b.dtype(), b.shape())
                    && a.device() == b.device()
                    && (a.device() == sampan_core::Device::Meta || a.to_bytes() == b.to_bytes())
            }
            (Object::List(a), Object::List(b)) | (Object::Tuple(a), Object::Tuple(b)) => a == b,
            (Object::Dict(a), Object::Dict(b)) => a == b,
            _ => false,
        }
    }
}

impl PartialEq for Dict {
    fn eq(&self, other: &Dict) -> bool {
        self.entries == other.entries
    }
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Object::None => f.write_str("None"),
            Object::Bool(b) => fmt::Debug::fmt(b, f),
            Object::Int(i) => fmt::Debug::fmt(i, f),
            Object::Float(x) => fmt::Debug::fmt(x, f),
            Object::Str(s) => fmt::Debug::fmt(s, f),
            Object::Bytes(b) => write!(f, "{} bytes", b.len()),
            Object::Tensor(t) | Object::Array(t) => write!(f, "{} {:?}", t.dtype(), t.shape()),
            Object::List(v) | Object::Tuple(v) => f.debug_list().entries(v).finish(),
            Object::Dict(d) => fmt::Debug::fmt(d, f),
        }
    }
}

impl fmt::Debug for Dict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.entries.iter().map(|(k, v)| (k, v))).finish()
    }
}

macro_rules! from {
    ($($target:ident: $($t:ty => |$x:ident| $make:expr),+;)+) => { $($(
        impl From<$t> for $target {
            fn from($x: $t) -> $target { $make }
        }
    )+)+ };
}

from! {
    Key: &str => |s| Key::Str(s.into()), String => |s| Key::Str(s), &String => |s| Key::Str(s.clone()),
         i64 => |i| Key::Int(i), &Key => |k| k.clone();
    Object: bool => |b| Object::Bool(b), i64 => |i| Object::Int(i), f64 => |f| Object::Float(f),
            &str => |s| Object::Str(s.into()), String => |s| Object::Str(s), Vec<u8> => |b| Object::Bytes(b),
            Tensor => |t| Object::Tensor(t), &Tensor => |t| Object::Tensor(t.clone()),
            Vec<Object> => |v| Object::List(v), Dict => |d| Object::Dict(d),
            BTreeMap<String, Tensor> => |m| Object::Dict(m.into_iter().collect()),
            &BTreeMap<String, Tensor> => |m| Object::Dict(m.iter().collect());
}

/// A state dict out of a loaded value: a dict of tensors, and nothing else.
impl TryFrom<Object> for BTreeMap<String, Tensor> {
    type Error = Error;
    fn try_from(object: Object) -> Result<BTreeMap<String, Tensor>> {
        let Object::Dict(dict) = object else {
            let message = format!("a dict of tensors is wanted, and there is a {}", object.type_name());
            return Err(Error::new(Kind::InvalidType, message).in_op("state_dict"));
        };
        dict.into_iter()
            .map(|(key, value)| match value {
                Object::Tensor(t) | Object::Array(t) => Ok((key.to_string(), t)),
                other => {
                    let message = format!("a dict of tensors is wanted, and {key} is a {}", other.type_name());
                    let hint = "take the entry that holds the tensors, or use Object::tensors()";
                    Err(Error::new(Kind::InvalidType, message).hint(hint).in_op("state_dict"))
                }
            })
            .collect()
    }
}
