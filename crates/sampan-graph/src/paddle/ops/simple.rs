//! Ops that are one op of Paddle, argument by argument: `simple.txt`, read in both directions.

use crate::graph::Arg;
use crate::paddle::export::{Exporter, Given};
use crate::paddle::import::Importer;
use crate::paddle::program::{Op, Value};
use crate::paddle::schema::{self, Kind, Schema};
use sampan_core::{Result, Value as Plain};
use std::sync::LazyLock;

struct Pair {
    ours: &'static str,
    schema: &'static Schema,
    /// Our parameter, and Paddle's.
    args: Vec<(&'static str, &'static str)>,
    /// Paddle's parameters that have one value only.
    fixed: Vec<(&'static str, Value)>,
}

static PAIRS: LazyLock<Vec<Pair>> = LazyLock::new(|| {
    let lines = include_str!("simple.txt").lines().filter(|l| !l.is_empty() && !l.starts_with('#'));
    lines
        .map(|line| {
            let mut words = line.split(' ');
            let (ours, theirs) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
            let schema = schema::find(theirs).unwrap_or_else(|| panic!("simple.txt: {theirs} is in no schema"));
            let (mut args, mut fixed) = (Vec::new(), Vec::new());
            for word in words {
                match (word.strip_prefix('+').map(|w| w.split_once('=')), word.split_once('=')) {
                    (Some(Some((name, "false"))), _) => fixed.push((name, Value::Bool(false))),
                    (Some(Some((name, number))), _) => fixed.push((name, Value::Float(number.parse().unwrap_or(0.0)))),
                    (_, Some(pair)) => args.push(pair),
                    (_, None) => args.push((word, word)),
                }
            }
            Pair { ours, schema, args, fixed }
        })
        .collect()
});

pub fn write(w: &mut Exporter, call: &Given) -> Result<bool> {
    // Paddle 2.6 does not know this one yet; it is written as the choice that it is.
    let Some(pair) = PAIRS.iter().find(|p| p.ours == call.name() && p.ours != "masked_fill") else { return Ok(false) };
    let mut args = pair.fixed.clone();
    for &(ours, theirs) in &pair.args {
        let slot = pair.schema.arg(theirs).expect("both tables name it");
        let value = match slot.kind {
            Kind::Tensor => call.id(ours).map(|id| w.var_of(id).map(Value::Var)).transpose()?,
            Kind::Tensors => Some(call.tensors(w, ours)?),
            Kind::Bool => Some(Value::Bool(call.bool(ours))),
            Kind::Int32 | Kind::Int64 | Kind::Int32Tensor | Kind::Int64Tensor => call.int(ours).map(Value::Int),
            Kind::Float32 | Kind::FloatTensor => call.float(ours).map(Value::Float),
            Kind::Text => call.text(ours).map(|t| Value::Text(t.into())),
            Kind::DType => call.dtype(ours).map(|d| Value::DType(Some(d))),
            Kind::Int32s | Kind::Int64s { .. } | Kind::Shape { .. } => call.ints(ours).map(Value::Ints),
            Kind::Float32s | Kind::Region => None,
        };
        match value {
            Some(value) => args.push((theirs, value)),
            None if call.arg(ours).is_none() && theirs == "axis" => args.push((theirs, Value::Int(-1))),
            None => return Ok(false),
        }
    }
    let given = &call.0.outputs;
    let results = match pair.schema.results[0].kind {
        Kind::Tensors => vec![("", given.iter().map(|&id| w.fresh(id, pair.schema.name)).collect())],
        _ => pair
            .schema
            .results
            .iter()
            .zip(given)
            .map(|(s, &id)| (s.name, vec![w.fresh(id, pair.schema.name)]))
            .collect(),
    };
    w.emit_to(pair.schema.name, args, results)?;
    Ok(true)
}

pub fn read(r: &mut Importer, op: &Op) -> Result<bool> {
    let Some(pair) =
        PAIRS.iter().find(|p| p.schema.name == op.schema.name && p.ours != "detach" && p.ours != "matrix_product")
    else {
        return Ok(false);
    };
    let mut named = Vec::new();
    for &(ours, theirs) in &pair.args {
        let slot = pair.schema.arg(theirs).expect("both tables name it");
        let arg = match (slot.kind, op.get(theirs)) {
            (_, None) => continue,
            (Kind::Tensor, _) => Arg::Tensor(r.id(op.var(theirs)?)?),
            (Kind::Tensors, _) => Arg::Tensors(r.ids(&op.vars(theirs)?)?),
            (_, Some(Value::Bool(b))) => Arg::Plain(Plain::Bool(*b)),
            (Kind::Int32 | Kind::Int64 | Kind::Int32Tensor | Kind::Int64Tensor, Some(_)) => {
                Arg::Plain(Plain::Int(op.int(theirs)?))
            }
            (_, Some(Value::Int(i))) => Arg::Plain(Plain::Int(*i)),
            (_, Some(Value::Float(f))) => Arg::Plain(Plain::Float(*f)),
            (_, Some(Value::Text(t))) => Arg::Plain(t.as_str().into()),
            (_, Some(Value::Ints(v))) => Arg::Plain(v.clone().into()),
            _ => return Ok(false),
        };
        named.push((ours, arg));
    }
    let results = match pair.schema.results[0].kind {
        Kind::Tensors => op.results(pair.schema.results[0].name).to_vec(),
        _ => pair.schema.results.iter().filter_map(|s| op.results(s.name).first().copied()).collect(),
    };
    r.call(pair.ours, named, &results)?;
    Ok(true)
}
