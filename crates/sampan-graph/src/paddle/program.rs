//! A program in Paddle's ops, without the accidents of either file format.

use super::schema::{Kind, Schema};
use sampan_core::{DType, Error, Result, Tensor};

/// The number of a variable.
pub(crate) type VarId = usize;

/// Branches inside of branches, at most.
pub(crate) const DEEPEST: usize = 64;

#[derive(Clone, Default)]
pub(crate) struct Program {
    pub vars: Vec<Var>,
    pub ops: Vec<Op>,
    pub feeds: Vec<VarId>,
    pub fetches: Vec<VarId>,
    /// Of a program that is written: the values of its weights.
    pub tensors: Vec<(VarId, Tensor)>,
    /// Values that are written in the program itself.
    pub constants: Vec<(VarId, Tensor)>,
    /// What branches and the steps of loops compute; ops name them by number.
    pub regions: Vec<Region>,
}

/// A part of a program that values decide about. It sees the variables around it.
#[derive(Clone, Default)]
pub(crate) struct Region {
    /// The variables that a loop gives it.
    pub args: Vec<VarId>,
    pub ops: Vec<Op>,
    /// What it gives; of a loop first whether it goes on.
    pub yields: Vec<VarId>,
}

impl Program {
    /// All ops, those of regions too.
    pub fn all_ops(&self) -> impl Iterator<Item = &Op> {
        self.ops.iter().chain(self.regions.iter().flat_map(|r| &r.ops))
    }

    /// Lets a region, and those in it, read another variable in place of one.
    pub fn put_in_place(&mut self, region: usize, from: VarId, to: VarId) {
        let put = |v: &mut VarId| {
            if *v == from {
                *v = to
            }
        };
        let mut regions = vec![region];
        while let Some(region) = regions.pop().and_then(|at| self.regions.get_mut(at)) {
            region.yields.iter_mut().for_each(put);
            for (_, value) in region.ops.iter_mut().flat_map(|op| &mut op.args) {
                match value {
                    Value::Var(v) => put(v),
                    Value::Vars(all) => all.iter_mut().for_each(put),
                    Value::Region(at) => regions.push(*at),
                    _ => {}
                }
            }
        }
    }

    /// A region that an op names.
    pub fn region(&self, op: &Op, name: &str) -> Result<&Region> {
        let found = if let Some(Value::Region(i)) = op.get(name) { self.regions.get(*i) } else { None };
        found.ok_or_else(|| op.bad(name, "a region"))
    }
}

#[derive(Clone)]
pub(crate) struct Var {
    pub name: String,
    /// -1 for any extent.
    pub dims: Vec<i64>,
    pub dtype: DType,
    /// Does the file of parameters hold it?
    pub weight: bool,
    pub trainable: bool,
    pub stop_gradient: bool,
}

#[derive(Clone)]
pub(crate) struct Op {
    pub schema: &'static Schema,
    pub args: Vec<(&'static str, Value)>,
    pub results: Vec<(&'static str, Vec<VarId>)>,
}

/// An argument.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Var(VarId),
    /// Tensors, or numbers that are computed, each a tensor of one element.
    Vars(Vec<VarId>),
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    DType(Option<DType>),
    Ints(Vec<i64>),
    Floats(Vec<f64>),
    /// The number of a region.
    Region(usize),
}

impl Op {
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.args.iter().find(|(n, _)| *n == name).map(|(_, v)| v)
    }

    fn bad(&self, name: &str, expected: &str) -> Error {
        let message = format!("{}: argument `{name}` must be {expected}, got {:?}", self.schema.name, self.get(name));
        Error::invalid(message).in_op("load")
    }

    pub fn var(&self, name: &str) -> Result<VarId> {
        self.var_or_none(name).ok_or_else(|| self.bad(name, "a tensor"))
    }

    pub fn var_or_none(&self, name: &str) -> Option<VarId> {
        match self.get(name) {
            Some(Value::Var(v)) => Some(*v),
            Some(Value::Vars(v)) if v.len() == 1 => Some(v[0]),
            _ => None,
        }
    }

    pub fn vars(&self, name: &str) -> Result<Vec<VarId>> {
        match self.get(name) {
            Some(Value::Vars(v)) => Ok(v.clone()),
            Some(Value::Var(v)) => Ok(vec![*v]),
            None => Ok(Vec::new()),
            _ => Err(self.bad(name, "tensors")),
        }
    }

    pub fn bool(&self, name: &str, default: bool) -> bool {
        match self.get(name) {
            Some(Value::Bool(b)) => *b,
            Some(Value::Int(i)) => *i != 0,
            _ => default,
        }
    }

    pub fn int(&self, name: &str) -> Result<i64> {
        match self.get(name) {
            Some(Value::Int(i)) => Ok(*i),
            Some(Value::Float(f)) if f.fract() == 0.0 && f.abs() < 9e15 => Ok(*f as i64),
            _ => Err(self.bad(name, "a whole number")),
        }
    }

    pub fn float(&self, name: &str) -> Result<f64> {
        match self.get(name) {
            Some(Value::Float(f)) => Ok(*f),
            Some(Value::Int(i)) => Ok(*i as f64),
            _ => Err(self.bad(name, "a number")),
        }
    }

    pub fn float_or(&self, name: &str, default: f64) -> f64 {
        self.float(name).unwrap_or(default)
    }

    pub fn text(&self, name: &str, default: &'static str) -> String {
        match self.get(name) {
            Some(Value::Text(t)) => t.clone(),
            _ => default.into(),
        }
    }

    pub fn ints(&self, name: &str) -> Result<Vec<i64>> {
        match self.get(name) {
            Some(Value::Ints(v)) => Ok(v.clone()),
            Some(Value::Int(i)) => Ok(vec![*i]),
            None => Ok(Vec::new()),
            _ => Err(self.bad(name, "whole numbers")),
        }
    }

    pub fn dtype(&self, name: &str) -> Option<DType> {
        match self.get(name) {
            Some(Value::DType(d)) => *d,
            _ => None,
        }
    }

    pub fn results(&self, name: &str) -> &[VarId] {
        self.results.iter().find(|(n, _)| *n == name).map_or(&[], |(_, v)| v)
    }

    pub fn first_result(&self) -> Result<VarId> {
        self.result(self.schema.results[0].name)
    }

    /// A result that must be there.
    pub fn result(&self, name: &str) -> Result<VarId> {
        let first = self.results(name).first().copied();
        first.ok_or_else(|| Error::invalid(format!("{}: it gives no `{name}`", self.schema.name)).in_op("load"))
    }
}

impl Kind {
    /// Is the argument a variable in both formats?
    pub fn is_tensor(self) -> bool {
        matches!(self, Kind::Tensor | Kind::Tensors)
    }
}
