//! What losses are made of: the element that each label names, and elements put at labels.

use crate::graph::{Dim, Known};
use crate::paddle::export::{Exporter, Given};
use crate::paddle::program::{Value, VarId};
use sampan_core::{DType, Result};

/// Zeros like a variable.
fn zeros(w: &mut Exporter, var: VarId) -> Result<VarId> {
    let like = w.like(var, w.program.vars[var].dtype);
    let args = vec![("x", Value::Var(var)), ("value", Value::Float(0.0)), ("dtype", Value::DType(Some(like.dtype)))];
    w.emit("full_like", args, &like)
}

fn choose(w: &mut Exporter, condition: VarId, x: VarId, y: VarId) -> Result<VarId> {
    let like = w.like(y, w.program.vars[y].dtype);
    w.emit("where", vec![("condition", Value::Var(condition)), ("x", Value::Var(x)), ("y", Value::Var(y))], &like)
}

/// A vector as a column.
fn column(w: &mut Exporter, var: VarId) -> Result<VarId> {
    let mut like = w.like(var, w.program.vars[var].dtype);
    like.dims.push(Dim::Fixed(1));
    w.emit("unsqueeze", vec![("x", Value::Var(var)), ("axis", Value::Ints(vec![1]))], &like)
}

pub fn write(w: &mut Exporter, call: &Given) -> Result<bool> {
    if !matches!(call.name(), "pick" | "unpick") {
        return Ok(false);
    }
    let (Some(x), Some(labels)) = (call.id("x"), call.id("labels")) else { return Ok(false) };
    let (x, labels) = (w.var_of(x)?, w.var_of(labels)?);
    let labels = w.cast(labels, DType::Int64)?;
    let out = w.known(call.out()).clone();
    let ignored = w.number(call.int("ignore_index").unwrap_or(-100) as f64, &[1], DType::Int64)?;
    let truth = w.like(labels, DType::Bool);
    let left_out = w.emit("equal", vec![("x", Value::Var(labels)), ("y", Value::Var(ignored))], &truth)?;
    // A label that is left out names the first class, and what is found there is not taken.
    let first = zeros(w, labels)?;
    let safe = choose(w, left_out, first, labels)?;
    let y = if call.name() == "pick" {
        let places = column(w, safe)?;
        let like = w.like(places, out.dtype);
        let args = vec![("arr", Value::Var(x)), ("indices", Value::Var(places)), ("axis", Value::Int(1))];
        let found = w.emit("take_along_axis", args, &like)?;
        let found = w.emit("squeeze", vec![("x", Value::Var(found)), ("axis", Value::Ints(vec![1]))], &out)?;
        let nothing = zeros(w, found)?;
        choose(w, left_out, nothing, found)?
    } else {
        let Some(classes) = call.int("classes").filter(|n| *n > 0) else { return Ok(false) };
        let nothing = zeros(w, x)?;
        let kept = choose(w, left_out, nothing, x)?;
        let kept = column(w, kept)?;
        let single = Known { dtype: DType::Float32, ..out.clone() };
        let hot = w.emit("one_hot", vec![("x", Value::Var(safe)), ("num_classes", Value::Int(classes))], &single)?;
        let hot = w.cast(hot, out.dtype)?;
        w.emit("multiply", vec![("x", Value::Var(hot)), ("y", Value::Var(kept))], &out)?
    };
    w.bind(call.out(), y);
    Ok(true)
}
