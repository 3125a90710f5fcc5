//! Arguments of ops as run-time values: what Python passes, what a graph records.

use crate::{Complex64, Complex128, DType, Error, Result, Tensor};
use sampan_formula::Bound;
use smallvec::SmallVec;
use std::any::Any;
use std::sync::Arc;

pub use sampan_kernels::Scalar;

/// A tensor or a plain number: the second operand of arithmetic.
#[derive(Clone, Debug)]
pub enum Operand {
    /// A tensor.
    Tensor(Tensor),
    /// A number that never becomes a tensor.
    Scalar(Scalar),
}

impl Operand {
    /// The tensor, if it is one.
    pub fn tensor(&self) -> Option<&Tensor> {
        match self {
            Operand::Tensor(t) => Some(t),
            Operand::Scalar(_) => None,
        }
    }
}

/// A list of integers given as one number or as a list.
#[derive(Clone, Debug, PartialEq)]
pub struct Ints(pub SmallVec<[i64; 4]>);

/// Axes to work on: all of them, or those named.
#[derive(Clone, Debug, PartialEq)]
pub struct Axes(pub Option<SmallVec<[i64; 4]>>);

impl Axes {
    /// Every axis.
    pub const ALL: Axes = Axes(None);

    /// The axes as sorted positions without repeats, checked against a rank.
    pub fn resolve(&self, rank: usize) -> Result<SmallVec<[usize; 5]>> {
        let Some(list) = &self.0 else { return Ok((0..rank).collect()) };
        if list.is_empty() {
            return Ok((0..rank).collect());
        }
        let mut out = SmallVec::new();
        for &a in list {
            let a = crate::shape::axis(a, rank)?;
            if rank == 0 {
                continue;
            }
            if out.contains(&a) {
                return Err(Error::invalid(format!("axis {a} is named twice in {list:?}")));
            }
            out.push(a);
        }
        out.sort_unstable();
        Ok(out)
    }

    /// The axes as one flag for each axis of a tensor.
    pub fn mask(&self, rank: usize) -> Result<SmallVec<[bool; 5]>> {
        let mut mask = SmallVec::from_elem(false, rank);
        for a in self.resolve(rank)? {
            mask[a] = true;
        }
        Ok(mask)
    }
}

/// An argument of an op.
#[derive(Clone, Debug)]
pub enum Value {
    /// Left out.
    None,
    /// A truth value.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A floating-point number.
    Float(f64),
    /// A complex number.
    Complex(Complex128),
    /// A word, such as a mode.
    Str(Arc<str>),
    /// An element type.
    DType(DType),
    /// Integers.
    Ints(SmallVec<[i64; 4]>),
    /// Floating-point numbers.
    Floats(Vec<f64>),
    /// A tensor.
    Tensor(Tensor),
    /// Several tensors.
    Tensors(Vec<Tensor>),
    /// Anything nested: lists of lists, indices.
    List(Vec<Value>),
    /// Values by name: a parameter group, the state of an optimizer.
    Dict(Dict),
    /// Something of another crate's: an initializer, a layer, a schedule.
    Object(Object),
}

/// Values by name, in the order they were put in.
#[derive(Clone, Debug, Default)]
pub struct Dict(Vec<(String, Value)>);

impl Dict {
    /// An empty one.
    pub fn new() -> Dict {
        Dict::default()
    }

    /// The value of a name.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|(n, _)| n == name).map(|(_, v)| v)
    }

    /// Adds a value, or replaces the one of that name.
    pub fn insert(&mut self, name: impl Into<String>, value: impl Into<Value>) {
        let (name, value) = (name.into(), value.into());
        match self.0.iter_mut().find(|(n, _)| *n == name) {
            Some((_, old)) => *old = value,
            None => self.0.push((name, value)),
        }
    }

    /// Names and values in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(n, v)| (n.as_str(), v))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Is there none?
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Names are expected to differ.
impl<K: Into<String>, V: Into<Value>> FromIterator<(K, V)> for Dict {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(pairs: I) -> Dict {
        Dict(pairs.into_iter().map(|(k, v)| (k.into(), v.into())).collect())
    }
}

/// A shared thing of any type, for arguments that are neither numbers, words nor tensors.
#[derive(Clone)]
pub struct Object {
    type_name: &'static str,
    inner: Arc<dyn Any + Send + Sync>,
}

impl Object {
    /// Holds a thing; it comes back by [`downcast`](Object::downcast) to the same type.
    pub fn new<T: Any + Send + Sync>(thing: T) -> Object {
        Object { type_name: std::any::type_name::<T>(), inner: Arc::new(thing) }
    }

    /// The thing, if it is a `T`.
    pub fn downcast<T: Any>(&self) -> Option<&T> {
        self.inner.downcast_ref()
    }

    /// The type it was made from.
    pub fn type_name(&self) -> &'static str {
        self.type_name
    }
}

impl std::fmt::Debug for Object {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.type_name)
    }
}

impl Value {
    /// `None` or the value.
    pub fn optional<T: Into<Value>>(v: Option<T>) -> Value {
        v.map_or(Value::None, Into::into)
    }

    /// What a person would call this kind of value.
    pub fn type_name(&self) -> &'static str {
        match self {
            Value::None => "None",
            Value::Bool(_) => "bool",
            Value::Int(_) => "int",
            Value::Float(_) => "float",
            Value::Complex(_) => "complex",
            Value::Str(_) => "str",
            Value::DType(_) => "dtype",
            Value::Ints(_) => "list of int",
            Value::Floats(_) => "list of float",
            Value::Tensor(_) => "Tensor",
            Value::Tensors(_) => "list of Tensor",
            Value::List(_) => "list",
            Value::Dict(_) => "dict",
            Value::Object(o) => o.type_name(),
        }
    }

    /// Its kind, and the value where that is short.
    fn in_words(&self) -> String {
        match self {
            Value::Int(i) => format!("the int {i}"),
            Value::Float(f) => format!("the float {f}"),
            Value::Str(s) => format!("the str {s:?}"),
            other => other.type_name().into(),
        }
    }

    /// Calls `f` for each tensor in it.
    pub fn for_each_tensor<'a>(&'a self, f: &mut impl FnMut(&'a Tensor)) {
        match self {
            Value::Tensor(t) => f(t),
            Value::Tensors(ts) => ts.iter().for_each(f),
            Value::List(vs) => vs.iter().for_each(|v| v.for_each_tensor(f)),
            Value::Dict(d) => d.0.iter().for_each(|(_, v)| v.for_each_tensor(f)),
            _ => {}
        }
    }

    /// Calls `f` for the place of each tensor in it.
    pub(crate) fn for_each_tensor_mut(&mut self, f: &mut impl FnMut(&mut Tensor)) {
        match self {
            Value::Tensor(t) => f(t),
            Value::Tensors(ts) => ts.iter_mut().for_each(f),
            Value::List(vs) => vs.iter_mut().for_each(|v| v.for_each_tensor_mut(f)),
            Value::Dict(d) => d.0.iter_mut().for_each(|(_, v)| v.for_each_tensor_mut(f)),
            _ => {}
        }
    }

    /// Replaces each tensor in it.
    pub fn map_tensors(&mut self, f: &mut impl FnMut(&Tensor) -> Result<Tensor>) -> Result<()> {
        match self {
            Value::Tensor(t) => *t = f(t)?,
            Value::Tensors(ts) => {
                for t in ts {
                    *t = f(t)?;
                }
            }
            Value::List(vs) => {
                for v in vs {
                    v.map_tensors(f)?;
                }
            }
            Value::Dict(d) => {
                for (_, v) in &mut d.0 {
                    v.map_tensors(f)?;
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// The arguments of one call, in the order of the op's signature.
pub type Args = SmallVec<[Value; 4]>;

macro_rules! from {
    ($($from:ty => $to:ty, |$v:ident| $e:expr;)*) => {$(
        impl From<$from> for $to { #[inline] fn from($v: $from) -> $to { $e } }
    )*};
}
from! {
    bool => Operand, |v| Operand::Scalar(v.into());
    i32 => Operand, |v| Operand::Scalar(v.into());
    i64 => Operand, |v| Operand::Scalar(v.into());
    f32 => Operand, |v| Operand::Scalar(v.into());
    f64 => Operand, |v| Operand::Scalar(v.into());
    Complex64 => Operand, |v| Operand::Scalar(v.into());
    Complex128 => Operand, |v| Operand::Scalar(v.into());
    Scalar => Operand, |v| Operand::Scalar(v);
    Tensor => Operand, |v| Operand::Tensor(v);
    &Tensor => Operand, |v| Operand::Tensor(v.clone());
    &Operand => Operand, |v| v.clone();
    () => Value, |_v| Value::None;
    bool => Value, |v| Value::Bool(v);
    i32 => Value, |v| Value::Int(v as i64);
    i64 => Value, |v| Value::Int(v);
    usize => Value, |v| Value::Int(v as i64);
    f32 => Value, |v| Value::Float(v as f64);
    f64 => Value, |v| Value::Float(v);
    Complex64 => Value, |v| Value::from(Scalar::from(v));
    Complex128 => Value, |v| Value::Complex(v);
    &str => Value, |v| Value::Str(v.into());
    String => Value, |v| Value::Str(v.into());
    DType => Value, |v| Value::DType(v);
    Tensor => Value, |v| Value::Tensor(v);
    &Tensor => Value, |v| Value::Tensor(v.clone());
    Vec<Tensor> => Value, |v| Value::Tensors(v);
    Vec<i64> => Value, |v| Value::Ints(v.into());
    &[i64] => Value, |v| Value::Ints(SmallVec::from_slice(v));
    Vec<f64> => Value, |v| Value::Floats(v);
    &[f64] => Value, |v| Value::Floats(v.to_vec());
    Object => Value, |v| Value::Object(v);
    Dict => Value, |v| Value::Dict(v);
    Vec<Value> => Value, |v| Value::List(v);
    Ints => Value, |v| Value::Ints(v.0);
    Axes => Value, |v| v.0.map_or(Value::None, Value::Ints);
    Option<Scalar> => Value, |v| v.map_or(Value::None, Value::from);
    Scalar => Value, |v| match v {
        Scalar::Bool(b) => Value::Bool(b),
        Scalar::Int(i) => Value::Int(i),
        Scalar::Float(f) => Value::Float(f),
        Scalar::Complex(z) => Value::Complex(z),
    };
    Operand => Value, |v| match v {
        Operand::Tensor(t) => Value::Tensor(t),
        Operand::Scalar(s) => s.into(),
    };
    i32 => Ints, |v| Ints(SmallVec::from_slice(&[v as i64]));
    i64 => Ints, |v| Ints(SmallVec::from_slice(&[v]));
    usize => Ints, |v| Ints(SmallVec::from_slice(&[v as i64]));
    Vec<i64> => Ints, |v| Ints(v.into());
    SmallVec<[i64; 4]> => Ints, |v| Ints(v);
    &SmallVec<[i64; 4]> => Ints, |v| Ints(v.clone());
    &[i64] => Ints, |v| Ints(SmallVec::from_slice(v));
    &Vec<i64> => Ints, |v| Ints(SmallVec::from_slice(v));
    &[usize] => Ints, |v| Ints(v.iter().map(|&x| x as i64).collect());
    Vec<usize> => Ints, |v| Ints(v.iter().map(|&x| x as i64).collect());
    &crate::Shape => Ints, |v| Ints(v.iter().map(|&x| x as i64).collect());
    crate::Shape => Ints, |v| Ints(v.iter().map(|&x| x as i64).collect());
    () => Axes, |_v| Axes(None);
    i32 => Axes, |v| Axes(Some(SmallVec::from_slice(&[v as i64])));
    i64 => Axes, |v| Axes(Some(SmallVec::from_slice(&[v])));
    usize => Axes, |v| Axes(Some(SmallVec::from_slice(&[v as i64])));
    Option<i64> => Axes, |v| Axes(v.map(|v| SmallVec::from_slice(&[v])));
    Vec<i64> => Axes, |v| Axes(Some(v.into()));
    &[i64] => Axes, |v| Axes(Some(SmallVec::from_slice(v)));
    &[usize] => Axes, |v| Axes(Some(v.iter().map(|&x| x as i64).collect()));
    Vec<usize> => Axes, |v| Axes(Some(v.iter().map(|&x| x as i64).collect()));
    &Axes => Axes, |v| v.clone();
}
macro_rules! from_array {
    ($($t:ty),*) => {$(
        impl<const N: usize> From<[$t; N]> for Ints {
            fn from(v: [$t; N]) -> Ints { Ints(v.iter().map(|&x| x as i64).collect()) }
        }
        impl<const N: usize> From<[$t; N]> for Axes {
            fn from(v: [$t; N]) -> Axes { Axes(Some(v.iter().map(|&x| x as i64).collect())) }
        }
        impl<const N: usize> From<[$t; N]> for Value {
            fn from(v: [$t; N]) -> Value { Value::Ints(v.iter().map(|&x| x as i64).collect()) }
        }
    )*};
}
from_array!(i32, i64, usize);
/// A tuple; a list of tensors alone is `Value::Tensors`.
impl<A: Into<Value>, B: Into<Value>> From<(A, B)> for Value {
    fn from((a, b): (A, B)) -> Value {
        Value::List(vec![a.into(), b.into()])
    }
}
impl<A: Into<Value>, B: Into<Value>, C: Into<Value>> From<(A, B, C)> for Value {
    fn from((a, b, c): (A, B, C)) -> Value {
        Value::List(vec![a.into(), b.into(), c.into()])
    }
}
impl<const N: usize> From<[f64; N]> for Value {
    fn from(v: [f64; N]) -> Value {
        Value::Floats(v.to_vec())
    }
}

/// A Rust type that an op's body takes as a parameter: how it is read from a [`Value`].
pub trait Arg<'a>: Sized {
    /// What to call it in an error.
    const EXPECTED: &'static str;
    /// Reads it, or `None` if the value is of another kind.
    fn read(v: &'a Value) -> Option<Self>;
    /// Reads it, or says which argument is wrong.
    fn get(v: &'a Value, name: &str) -> Result<Self> {
        Self::read(v)
            .ok_or_else(|| Error::dtype(format!("argument `{name}` must be {}, got {}", Self::EXPECTED, v.in_words())))
    }
}

macro_rules! arg {
    ($($t:ty, $expected:literal, $($p:pat => $e:expr),+;)*) => {$(
        impl<'a> Arg<'a> for $t {
            const EXPECTED: &'static str = $expected;
            #[inline]
            fn read(v: &'a Value) -> Option<Self> {
                match v { $($p => Some($e),)+ _ => None }
            }
        }
    )*};
}
arg! {
    &'a Tensor, "a Tensor", Value::Tensor(t) => t;
    &'a [Tensor], "a list of Tensors", Value::Tensors(ts) => ts, Value::Tensor(t) => std::slice::from_ref(t);
    bool, "a bool", Value::Bool(b) => *b, Value::Int(i) => *i != 0;
    i64, "an int", Value::Int(i) => *i, Value::Bool(b) => *b as i64;
    f64, "a float", Value::Float(f) => *f, Value::Int(i) => *i as f64, Value::Bool(b) => *b as u8 as f64;
    &'a str, "a str", Value::Str(s) => s;
    &'a Dict, "a dict", Value::Dict(d) => d;
    DType, "a dtype", Value::DType(d) => *d;
    &'a [i64], "an int or a list of ints", Value::Ints(v) => v, Value::Int(i) => std::slice::from_ref(i);
    Ints, "an int or a list of ints", Value::Ints(v) => Ints(v.clone()), Value::Int(i) => Ints(SmallVec::from_slice(&[*i]));
    &'a [f64], "a list of floats", Value::Floats(v) => v, Value::Float(f) => std::slice::from_ref(f);
    Axes, "an int, a list of ints or None", Value::None => Axes(None), Value::Ints(v) => Axes(Some(v.clone())),
        Value::Int(i) => Axes(Some(SmallVec::from_slice(&[*i])));
    Scalar, "a number", Value::Bool(b) => Scalar::Bool(*b), Value::Int(i) => Scalar::Int(*i),
        Value::Float(f) => Scalar::Float(*f), Value::Complex(z) => Scalar::Complex(*z);
    Operand, "a Tensor or a number", Value::Tensor(t) => Operand::Tensor(t.clone()),
        Value::Bool(b) => Operand::Scalar(Scalar::Bool(*b)), Value::Int(i) => Operand::Scalar(Scalar::Int(*i)),
        Value::Float(f) => Operand::Scalar(Scalar::Float(*f)), Value::Complex(z) => Operand::Scalar(Scalar::Complex(*z));
}

impl<'a> Arg<'a> for usize {
    const EXPECTED: &'static str = "an int that is not negative";
    #[inline]
    fn read(v: &'a Value) -> Option<Self> {
        if let Value::Int(i) = v { usize::try_from(*i).ok() } else { None }
    }
}

/// Whole numbers are numbers too.
impl<'a> Arg<'a> for Vec<f64> {
    const EXPECTED: &'static str = "a number or a list of numbers";
    fn read(v: &'a Value) -> Option<Self> {
        match v {
            Value::Floats(v) => Some(v.clone()),
            Value::Ints(v) => Some(v.iter().map(|&i| i as f64).collect()),
            Value::List(v) => v.iter().map(f64::read).collect(),
            one => f64::read(one).map(|v| vec![v]),
        }
    }
}

impl<'a, const N: usize> Arg<'a> for [f64; N] {
    const EXPECTED: &'static str = "a list of numbers of a fixed length";
    fn read(v: &'a Value) -> Option<Self> {
        Vec::<f64>::read(v)?.try_into().ok()
    }
}

/// Points.
impl<'a, const N: usize, const M: usize> Arg<'a> for [[f64; M]; N] {
    const EXPECTED: &'static str = "a list of lists of numbers, of fixed lengths";
    fn read(v: &'a Value) -> Option<Self> {
        let Value::List(rows) = v else { return None };
        rows.iter().map(<[f64; M]>::read).collect::<Option<Vec<_>>>()?.try_into().ok()
    }
}

impl<'a> Arg<'a> for Bound {
    const EXPECTED: &'static str = "a formula";
    fn read(v: &'a Value) -> Option<Self> {
        if let Value::Object(o) = v { o.downcast::<Bound>().cloned() } else { None }
    }
}

impl From<Bound> for Value {
    fn from(formula: Bound) -> Value {
        Value::Object(Object::new(formula))
    }
}

impl<'a> Arg<'a> for &'a Value {
    const EXPECTED: &'static str = "any value";
    fn read(v: &'a Value) -> Option<Self> {
        Some(v)
    }
}

impl<'a, T: Arg<'a>> Arg<'a> for Option<T> {
    const EXPECTED: &'static str = T::EXPECTED;
    #[inline]
    fn read(v: &'a Value) -> Option<Self> {
        match v {
            Value::None => Some(None),
            other => T::read(other).map(Some),
        }
    }
}
