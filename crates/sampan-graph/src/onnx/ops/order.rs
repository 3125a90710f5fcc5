//! Elements by size: the largest, all in order, and each once.

use crate::given::Given;
use crate::graph::{Dim, Id, Size};
use crate::onnx::eval::Item;
use crate::onnx::export::Writer;
use crate::onnx::node::{Call, call, many, op};
use sampan_core::{Result, Tensor};
use sampan_io::onnx::model::Attr;

fn top_k(c: &Call) -> Result<Vec<Tensor>> {
    let x = c.x(0)?;
    let k = if c.maybe(1).is_some() { c.number(1)? as i64 } else { c.int("k", 1) };
    let (axis, largest) = (c.int("axis", -1), c.int("largest", 1) != 0);
    call("topk", vec![x.into(), k.into(), axis.into(), largest.into(), true.into()], vec![])
}

fn unique(c: &Call) -> Result<Vec<Tensor>> {
    let x = c.x(0)?;
    let flags = |name| (name, sampan_core::Value::Bool(true));
    let mut named = vec![flags("return_index"), flags("return_inverse"), flags("return_counts")];
    let axis = c.attr("axis").map(|_| c.axis(c.int("axis", 0), x.ndim())).transpose()?;
    if let Some(axis) = axis {
        named.push(("axis", axis.into()));
    }
    let mut all = call("unique", vec![x.into()], named)?;
    if c.int("sorted", 1) == 0 {
        // In the order in which they come.
        let order = op!("argsort", &all[1])?;
        let places = op!("argsort", &order)?;
        all[0] = op!("index_select", &all[0], &order, axis.unwrap_or(0))?;
        all[2] = op!("index_select", &places, op!("reshape", &all[2], [-1i64])?)?;
        all[1] = op!("index_select", &all[1], &order)?;
        all[3] = op!("index_select", &all[3], &order)?;
    }
    all[2] = op!("reshape", &all[2], [-1i64])?;
    Ok(all)
}

pub fn read(c: &Call) -> Result<Option<Vec<Item>>> {
    match c.node.op.as_str() {
        "TopK" => many(top_k(c)?),
        "Unique" => many(unique(c)?),
        _ => Ok(None),
    }
}

fn write_topk(w: &mut Writer, call: &Given, id: Id) -> Result<bool> {
    let (Some(k), true) = (call.int("k"), call.0.outputs.len() == 2) else { return Ok(false) };
    let (x, k) = (w.name(id)?, w.ints(&[k])?);
    let attrs = vec![
        ("axis", Attr::Int(call.int("axis").unwrap_or(-1))),
        ("largest", Attr::Int(i64::from(call.arg("largest").is_none() || call.bool("largest")))),
    ];
    let names = w.nodes("TopK", vec![x, k], attrs, 2);
    for (&id, name) in call.0.outputs.iter().zip(names) {
        w.bind(id, name);
    }
    Ok(true)
}

/// A sort is the largest or smallest of all.
fn write_sort(w: &mut Writer, call: &Given, id: Id) -> Result<bool> {
    let axis = call.int("axis").unwrap_or(-1);
    let rank = w.known(id).dims.len();
    let at = usize::try_from(if axis < 0 { axis + rank as i64 } else { axis }).unwrap_or(0);
    let extent = match w.known(id).dims.get(at) {
        Some(Dim::Fixed(n)) => Size::fixed(*n as i64),
        Some(Dim::Free(_)) => Size::extent(id, at),
        None => return Ok(false),
    };
    let (x, k) = (w.name(id)?, w.size(&extent)?);
    let attrs = vec![("axis", Attr::Int(axis)), ("largest", Attr::Int(i64::from(call.bool("descending"))))];
    let mut names = w.nodes("TopK", vec![x, k], attrs, 2);
    let chosen = names.swap_remove(usize::from(call.name() == "argsort"));
    w.bind(call.out(), chosen);
    Ok(true)
}

pub fn write(w: &mut Writer, call: &Given) -> Result<bool> {
    match (call.name(), call.id("x")) {
        ("topk", Some(id)) => write_topk(w, call, id),
        ("sort" | "argsort", Some(id)) => write_sort(w, call, id),
        _ => Ok(false),
    }
}
