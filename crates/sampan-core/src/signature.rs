//! What a call may be given: shared by ops and by the classes that are built from arguments.

use crate::value::Args;
use crate::{Error, Result, Value};
use std::fmt;

/// One parameter of an op or a class.
pub struct Param {
    /// Paddle's name.
    pub name: &'static str,
    /// What it may hold.
    pub kind: Kind,
    /// May it be `None`?
    pub optional: bool,
    /// The value when left out; required without one.
    pub default: Option<fn() -> Value>,
    /// The default as written in the source.
    pub default_repr: &'static str,
}

/// What a parameter may hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Kind {
    Tensor,
    Tensors,
    Operand,
    Int,
    Float,
    Bool,
    Str,
    DType,
    Ints,
    Floats,
    Scalar,
    Any,
}

/// The name of something callable and its parameters.
#[derive(Clone, Copy)]
pub struct Signature {
    /// Paddle's name.
    pub name: &'static str,
    /// The parameters, in order.
    pub params: &'static [Param],
    /// Other accepted argument names: (alias, name).
    pub aliases: &'static [(&'static str, &'static str)],
}

/// As a person reads it: `sum(x, axis=None, keepdim=false)`.
impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let one =
            |p: &Param| if p.default.is_some() { format!("{}={}", p.name, p.default_repr) } else { p.name.into() };
        write!(f, "{}({})", self.name, self.params.iter().map(one).collect::<Vec<_>>().join(", "))
    }
}

impl Signature {
    /// Position of a parameter by its name or one of its aliases. `input` and `dim` are understood everywhere.
    pub fn position(&self, name: &str) -> Option<usize> {
        let at = |n: &str| self.params.iter().position(|p| p.name == n);
        at(name).or_else(|| self.aliases.iter().find(|(a, _)| *a == name).and_then(|(_, n)| at(n))).or_else(|| {
            match name {
                "input" => at("x"),
                "other" => at("y"),
                "dim" => at("axis"),
                "keep_dim" => at("keepdim"),
                "size" => at("shape"),
                _ => None,
            }
        })
    }

    /// `meshgrid(a, b)` is `meshgrid([a, b])`.
    fn gather_tensors(&self, mut positional: Vec<Value>) -> Vec<Value> {
        let wanted = self.params.first().is_some_and(|p| p.kind == Kind::Tensors);
        let n = positional.iter().take_while(|v| matches!(v, Value::Tensor(_))).count();
        if wanted && n > 0 {
            let rest = positional.split_off(n);
            let tensors = positional.into_iter().filter_map(|v| if let Value::Tensor(t) = v { Some(t) } else { None });
            positional = vec![Value::Tensors(tensors.collect())];
            positional.extend(rest);
        }
        positional
    }

    /// Puts positional and named arguments in the order of the signature and fills in defaults.
    pub fn bind(&self, positional: Vec<Value>, named: Vec<(&str, Value)>) -> Result<Args> {
        let fail = |message: String| Error::dtype(message).hint(self.to_string()).in_op(self.name);
        let positional = self.gather_tensors(positional);
        if positional.len() > self.params.len() {
            let (most, got) = (self.params.len(), positional.len());
            return Err(fail(format!("takes at most {most} arguments, got {got}")));
        }
        let mut slots: Vec<Option<Value>> = positional.into_iter().map(Some).collect();
        slots.resize_with(self.params.len(), || None);
        for (name, value) in named {
            let i = self.position(name).ok_or_else(|| fail(format!("has no argument `{name}`")))?;
            if slots[i].replace(value).is_some() {
                return Err(fail(format!("got two values for argument `{}`", self.params[i].name)));
            }
        }
        self.params
            .iter()
            .zip(slots)
            .map(|(p, slot)| match (slot, p.default) {
                (Some(v), _) => Ok(v),
                (None, Some(default)) => Ok(default()),
                (None, None) => Err(fail(format!("argument `{}` is missing", p.name))),
            })
            .collect()
    }
}
