//! Ops that are one operator of ONNX, argument by argument: `simple.txt`, read in both directions.

use crate::given::Given;
use crate::graph::Arg;
use crate::onnx::eval::Item;
use crate::onnx::export::Writer;
use crate::onnx::node::{Call, call, many};
use sampan_core::{DType, Result, Value};
use sampan_io::onnx::model::Attr;
use std::sync::LazyLock;

pub(super) struct Pair {
    pub ours: &'static str,
    pub theirs: &'static str,
    /// The first version of ONNX's operators that has it.
    pub since: i64,
    pub inputs: Vec<&'static str>,
    /// ONNX's attribute, its default, and our parameter.
    pub attrs: Vec<(&'static str, f64, &'static str)>,
}

pub(super) static PAIRS: LazyLock<Vec<Pair>> = LazyLock::new(|| {
    let lines = include_str!("simple.txt").lines().filter(|l| !l.is_empty() && !l.starts_with('#'));
    lines
        .map(|line| {
            let mut words = line.split(' ');
            let (ours, theirs) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
            let (theirs, since) = theirs.split_once('@').unwrap_or((theirs, "1"));
            let (mut inputs, mut attrs) = (Vec::new(), Vec::new());
            for word in words {
                match word.split_once(':') {
                    None => inputs.push(word),
                    Some((name, rest)) => {
                        let (default, param) = rest.split_once('=').unwrap_or((rest, name));
                        attrs.push((name, default.parse().expect("simple.txt has numbers for defaults"), param));
                    }
                }
            }
            Pair { ours, theirs, since: since.parse().unwrap_or(1), inputs, attrs }
        })
        .collect()
});

pub fn read(c: &Call) -> Result<Option<Vec<Item>>> {
    let Some(pair) = PAIRS.iter().find(|p| p.theirs == c.node.op && p.ours != "detach") else { return Ok(None) };
    if c.maybe(0).is_none() {
        // A sequence, which passes through `Identity` as it is.
        return Ok(None);
    }
    let inputs = (0..pair.inputs.len()).map(|i| c.x(i).map(Value::from)).collect::<Result<_>>()?;
    let attrs = pair.attrs.iter().map(|&(name, default, ours)| (ours, Value::Float(c.float(name, default)))).collect();
    many(call(pair.ours, inputs, attrs)?)
}

pub fn write(w: &mut Writer, call: &Given) -> Result<bool> {
    let found = PAIRS.iter().find(|p| p.ours == call.name() && p.since <= w.opset());
    let (Some(pair), out) = (found, w.known(call.out()).dtype) else { return Ok(false) };
    // What ONNX has no word for must be as it always is.
    let said = |name: &str| pair.inputs.contains(&name) || pair.attrs.iter().any(|(_, _, ours)| *ours == name);
    let usual = call.0.op.params.iter().zip(&call.0.args).all(|(p, arg)| match (arg, p.default) {
        _ if said(p.name) => true,
        (Arg::Plain(value), Some(default)) => format!("{value:?}") == format!("{:?}", default()),
        _ => false,
    });
    if !usual {
        return Ok(false);
    }
    let mut inputs = Vec::new();
    for name in &pair.inputs {
        let Some(id) = call.id(name) else { return Ok(false) };
        let own = w.known(id).dtype;
        // Functions of whole numbers are computed in the result's dtype.
        let dtype = match pair.theirs {
            "Not" => DType::Bool,
            _ if out.is_float() => out,
            _ => own,
        };
        if dtype.is_complex() || own.is_complex() {
            return Ok(false);
        }
        inputs.push(w.cast_id(id, dtype)?);
    }
    let mut attrs = Vec::new();
    for &(theirs, default, ours) in &pair.attrs {
        attrs.push((theirs, Attr::Float(call.float(ours).unwrap_or(default) as f32)));
    }
    let y = w.node(pair.theirs, inputs, attrs);
    w.bind(call.out(), y);
    Ok(true)
}
