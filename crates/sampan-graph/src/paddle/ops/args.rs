//! Arguments of Paddle's ops as arguments of ours.

use crate::graph::Arg;
use crate::paddle::import::Importer;
use crate::paddle::program::Op;
use sampan_core::{Result, Value as Plain};

pub fn tensor(r: &mut Importer, op: &Op, name: &str) -> Result<Arg> {
    r.id(op.var(name)?).map(Arg::Tensor)
}

/// A tensor, or none.
pub fn maybe(r: &mut Importer, op: &Op, name: &str) -> Result<Arg> {
    op.var_or_none(name).map_or(Ok(Arg::Plain(Plain::None)), |v| r.id(v).map(Arg::Tensor))
}

pub fn flag(op: &Op, name: &str, default: bool) -> Arg {
    Arg::Plain(Plain::Bool(op.bool(name, default)))
}

pub fn float(op: &Op, name: &str) -> Result<Arg> {
    op.float(name).map(|f| Arg::Plain(Plain::Float(f)))
}

pub fn plain(value: Plain) -> Arg {
    Arg::Plain(value)
}

pub fn text(value: String) -> Arg {
    Arg::Plain(value.into())
}

pub fn ints(value: Vec<i64>) -> Arg {
    Arg::Plain(value.into())
}
