//! A node and what it is called with, as `ops` reads it.

use super::eval::{Frame, Item, Scope};
use crate::record::unheard;
use sampan_core::error::Kind;
use sampan_core::{DType, Error, Result, Tensor, Value, dispatch, function};
use sampan_io::onnx::model::{Attr, Net, Node};

/// Calls one of our ops: arguments in order, then by name.
pub(crate) fn call(name: &str, args: Vec<Value>, named: Vec<(&str, Value)>) -> Result<Vec<Tensor>> {
    if let Some(found) = sampan_core::op::find(name) {
        return Ok(dispatch::dispatch(found, found.bind(args, named)?)?.into_vec());
    }
    // What vision needs is a function of another room, which a small program may lack.
    let lacking = || Error::new(Kind::Unimplemented, format!("`{name}` is not part of this program")).in_op("onnx");
    match function::find("vision.ops", name).ok_or_else(lacking)?.call(args, named)? {
        Value::Tensor(t) => Ok(vec![t]),
        Value::Tensors(all) => Ok(all),
        _ => Err(lacking()),
    }
}

/// One tensor of a call: `op!("softmax", x; axis = 1)`.
macro_rules! op {
    ($name:expr $(, $a:expr)* $(; $($k:ident = $v:expr),+)?) => {
        $crate::onnx::node::call(
            $name,
            vec![$(sampan_core::Value::from($a)),*],
            vec![$($((stringify!($k), sampan_core::Value::from($v))),+)?],
        ).map(|mut all| all.swap_remove(0))
    };
}
pub(crate) use op;

/// What a node gives: one tensor.
pub(crate) fn one(tensor: Tensor) -> Result<Option<Vec<Item>>> {
    Ok(Some(vec![Item::Tensor(tensor)]))
}

/// Several tensors.
pub(crate) fn many(tensors: impl IntoIterator<Item = Tensor>) -> Result<Option<Vec<Item>>> {
    Ok(Some(tensors.into_iter().map(Item::Tensor).collect()))
}

/// A node that is being evaluated.
pub(crate) struct Call<'a> {
    pub node: &'a Node,
    pub inputs: Vec<Option<Item>>,
    pub frame: &'a Frame<'a>,
    pub scope: &'a Scope<'a>,
}

impl Call<'_> {
    pub fn opset(&self) -> i64 {
        self.frame.opset
    }

    /// An error of this node.
    pub fn wrong(&self, message: impl std::fmt::Display) -> Error {
        Error::invalid(format!("{}: {message}", self.node.op)).in_op("onnx")
    }

    /// Something that ONNX has and sampan does not.
    pub fn lacking(&self, message: impl std::fmt::Display) -> Error {
        Error::new(Kind::Unimplemented, format!("{}: {message}", self.node.op)).in_op("onnx")
    }

    /// A tensor, if it is given.
    pub fn maybe(&self, i: usize) -> Option<&Tensor> {
        match self.inputs.get(i) {
            Some(Some(Item::Tensor(t))) => Some(t),
            _ => None,
        }
    }

    /// A tensor that must be given.
    pub fn x(&self, i: usize) -> Result<&Tensor> {
        self.maybe(i).ok_or_else(|| self.wrong(format!("input {i} must be a tensor")))
    }

    /// A sequence that must be given.
    pub fn list(&self, i: usize) -> Result<&[Tensor]> {
        match self.inputs.get(i) {
            Some(Some(Item::List(list))) => Ok(list),
            _ => Err(self.wrong(format!("input {i} must be a sequence"))),
        }
    }

    /// All tensors that are given.
    pub fn tensors(&self) -> Result<Vec<Tensor>> {
        (0..self.inputs.len()).map(|i| self.x(i).cloned()).collect()
    }

    /// Is somebody interested in this output?
    pub fn wants(&self, i: usize) -> bool {
        self.node.outputs.get(i).is_some_and(|n| !n.is_empty())
    }

    pub fn attr(&self, name: &str) -> Option<&Attr> {
        self.frame.resolved(self.node.attr(name)?)
    }

    pub fn int(&self, name: &str, default: i64) -> i64 {
        match self.attr(name) {
            Some(Attr::Int(i)) => *i,
            _ => default,
        }
    }

    pub fn flag(&self, name: &str) -> bool {
        self.int(name, 0) != 0
    }

    pub fn float(&self, name: &str, default: f64) -> f64 {
        match self.attr(name) {
            // As the number was written: 0.01, not the float32 next to it.
            Some(Attr::Float(f)) => f.to_string().parse().unwrap_or(f64::from(*f)),
            Some(Attr::Int(i)) => *i as f64,
            _ => default,
        }
    }

    pub fn text(&self, name: &str, default: &str) -> String {
        match self.attr(name) {
            Some(Attr::Text(t)) => String::from_utf8_lossy(t).into_owned(),
            _ => default.into(),
        }
    }

    pub fn ints(&self, name: &str) -> Option<Vec<i64>> {
        match self.attr(name) {
            Some(Attr::Ints(v)) => Some(v.clone()),
            Some(Attr::Int(i)) => Some(vec![*i]),
            _ => None,
        }
    }

    pub fn floats(&self, name: &str) -> Option<Vec<f64>> {
        match self.attr(name) {
            Some(Attr::Floats(v)) => Some(v.iter().map(|&f| f64::from(f)).collect()),
            _ => None,
        }
    }

    pub fn texts(&self, name: &str) -> Option<Vec<String>> {
        match self.attr(name) {
            Some(Attr::Texts(v)) => Some(v.iter().map(|t| String::from_utf8_lossy(t).into_owned()).collect()),
            _ => None,
        }
    }

    pub fn dtype(&self, name: &str) -> Result<Option<DType>> {
        match self.attr(name) {
            Some(Attr::Int(i)) => {
                let found = sampan_io::onnx::dtype_of(*i as u64);
                found.map(Some).ok_or_else(|| self.lacking(format!("elements of ONNX's type number {i}")))
            }
            _ => Ok(None),
        }
    }

    pub fn net(&self, name: &str) -> Result<&Net> {
        match self.attr(name) {
            Some(Attr::Graph(net)) => Ok(net),
            _ => Err(self.wrong(format!("attribute `{name}` must be a graph"))),
        }
    }

    /// Whole numbers of an input, whose values must be known.
    pub fn numbers(&self, i: usize) -> Result<Vec<i64>> {
        let t = self.x(i)?;
        unheard(|| t.try_cast(DType::Int64)?.try_to_vec::<i64>())
    }

    /// Whole numbers that may be an attribute, as they were in early versions, or an input.
    pub fn numbers_or(&self, name: &str, i: usize) -> Result<Option<Vec<i64>>> {
        match self.ints(name) {
            Some(v) => Ok(Some(v)),
            None => self.maybe(i).map(|_| self.numbers(i)).transpose(),
        }
    }

    /// One number of an input, whose value must be known.
    pub fn number(&self, i: usize) -> Result<f64> {
        let t = self.x(i)?;
        let all = unheard(|| t.try_cast(DType::Float64)?.try_to_vec::<f64>())?;
        all.first().copied().ok_or_else(|| self.wrong(format!("input {i} has no elements")))
    }

    /// An axis from 0.
    pub fn axis(&self, axis: i64, rank: usize) -> Result<usize> {
        let at = if axis < 0 { axis + rank as i64 } else { axis };
        usize::try_from(at)
            .ok()
            .filter(|a| *a < rank)
            .ok_or_else(|| self.wrong(format!("axis {axis} of a tensor of {rank} axes")))
    }
}

/// The shape as whole numbers.
pub(crate) fn shape_of(t: &Tensor) -> Vec<i64> {
    t.shape().iter().map(|&n| n as i64).collect()
}
