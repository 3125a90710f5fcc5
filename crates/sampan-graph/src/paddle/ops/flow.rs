//! Branches and loops.

use crate::flow::{COND, WHILE};
use crate::graph::{Arg, Call, Graph};
use crate::paddle::export::{Exporter, Given};
use crate::paddle::import::Importer;
use crate::paddle::program::{Op, Region, Value, VarId};
use sampan_core::{DType, Result};
use std::sync::Arc;

fn blocks<'a>(call: &Given<'a>, names: [&str; 2]) -> Option<[&'a Graph; 2]> {
    let of = |name: &str| if let Some(Arg::Block(graph)) = call.0.arg(name) { Some(&**graph) } else { None };
    Some([of(names[0])?, of(names[1])?])
}

/// Writes ops aside, as a region; what `f` gives is what the region gives, each computed in it.
pub fn region(
    w: &mut Exporter,
    args: Vec<VarId>,
    f: impl FnOnce(&mut Exporter) -> Result<Vec<VarId>>,
) -> Result<Value> {
    let outer = std::mem::take(&mut w.program.ops);
    let given = f(w).and_then(|vars| vars.into_iter().map(|v| copied(w, v)).collect::<Result<Vec<_>>>());
    let ops = std::mem::replace(&mut w.program.ops, outer);
    w.program.regions.push(Region { args, ops, yields: given? });
    Ok(Value::Region(w.program.regions.len() - 1))
}

fn copied(w: &mut Exporter, var: VarId) -> Result<VarId> {
    let like = w.like(var, w.program.vars[var].dtype);
    w.emit("assign", vec![("x", Value::Var(var))], &like)
}

fn vars(w: &Exporter, call: &Given, name: &str) -> Result<Vec<VarId>> {
    call.ids(name).into_iter().map(|id| w.var_of(id)).collect()
}

pub fn write(w: &mut Exporter, call: &Given) -> Result<bool> {
    match call.name() {
        "cond_block" => {
            let (Some(pred), Some(both)) = (call.id("pred"), blocks(call, ["then", "otherwise"])) else {
                return Ok(false);
            };
            let pred = w.var_of(pred)?;
            let (pred, inputs) = (w.cast(pred, DType::Bool)?, vars(w, call, "inputs")?);
            let then = region(w, vec![], |w| w.block(both[0], inputs.clone()))?;
            let otherwise = region(w, vec![], |w| w.block(both[1], inputs))?;
            let args = vec![("cond", Value::Var(pred)), ("then", then), ("otherwise", otherwise)];
            let results = call.0.outputs.iter().map(|&id| w.fresh(id, "if")).collect();
            w.emit_to("if", args, vec![("", results)])?;
        }
        "while_block" => {
            let Some([condition, body]) = blocks(call, ["condition", "body"]) else { return Ok(false) };
            let (state, outer) = (vars(w, call, "state")?, vars(w, call, "inputs")?);
            let asked = |w: &mut Exporter, state: &[VarId]| -> Result<VarId> {
                let found = w.block(condition, [state, &outer].concat())?[0];
                w.cast(found, DType::Bool)
            };
            let first = asked(w, &state)?;
            let inside = state.iter().map(|&v| w.emit_var("state", &w.like(v, w.program.vars[v].dtype)));
            let inside = inside.collect::<Vec<_>>();
            let body = region(w, inside.clone(), |w| {
                let next = w.block(body, [inside.as_slice(), &outer].concat())?;
                Ok([vec![asked(w, &next)?], next].concat())
            })?;
            let args = vec![("cond", Value::Var(first)), ("inputs", Value::Vars(state)), ("body", body)];
            let results = call.0.outputs.iter().map(|&id| w.fresh(id, "while")).collect();
            w.emit_to("while", args, vec![("", results)])?;
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// The graph of a region and the variables that it takes from around it.
fn block(r: &mut Importer, region: &Region, args: &[VarId]) -> Result<(Graph, Vec<VarId>)> {
    let mut inner = r.inside(args)?;
    inner.ops(&region.ops)?;
    inner.graph.outputs = region.yields.iter().map(|&v| inner.id(v)).collect::<Result<_>>()?;
    Ok(inner.finished())
}

/// Graphs that take the same inputs: those of both, after the first.
fn alike(r: &mut Importer, found: Vec<(Graph, Vec<VarId>)>, own: usize) -> (Vec<VarId>, Vec<Arg>) {
    let mut all: Vec<VarId> = Vec::new();
    for v in found.iter().flat_map(|(_, taken)| taken) {
        if !all.contains(v) {
            all.push(*v);
        }
    }
    let blocks = found.into_iter().map(|(mut graph, taken)| {
        let inputs = graph.inputs.split_off(own);
        for &v in &all {
            let input = match taken.iter().position(|t| *t == v) {
                Some(at) => inputs[at].clone(),
                None => {
                    let value = graph.add_value(r.known(v));
                    crate::graph::Input { name: r.program.vars[v].name.clone(), value }
                }
            };
            graph.inputs.push(input);
        }
        graph.prune();
        Arg::Block(Arc::new(graph))
    });
    let blocks = blocks.collect();
    (all, blocks)
}

pub fn read(r: &mut Importer, op: &Op) -> Result<bool> {
    let results = op.results("out").to_vec();
    match op.schema.name {
        "if" => {
            let pred = r.id(op.var("cond")?)?;
            let mut found = Vec::new();
            for name in ["then", "otherwise"] {
                let region = r.program.region(op, name)?;
                found.push(block(r, region, &[])?);
            }
            let (taken, blocks) = alike(r, found, 0);
            let inputs = r.ids(&taken)?;
            let args = [vec![Arg::Tensor(pred), Arg::Tensors(inputs)], blocks].concat();
            let outputs = results.iter().map(|&v| r.define(v)).collect();
            r.graph.calls.push(Call { op: &COND, args, outputs, no_grad: false, source: None });
        }
        "while" => {
            let region = r.program.region(op, "body")?;
            let mut state = vec![r.id(op.var("cond")?)?];
            state.extend(r.ids(&op.vars("inputs")?)?);
            // Whether it goes on is part of the state; a step gives it with the rest.
            let first = op.var("cond")?;
            let args = [vec![first], region.args.clone()].concat();
            let body = block(r, region, &args)?;
            let asked = {
                let mut inner = r.inside(&args)?;
                inner.graph.outputs = vec![inner.graph.inputs[0].value];
                inner.finished()
            };
            let (taken, blocks) = alike(r, vec![asked, body], args.len());
            let inputs = r.ids(&taken)?;
            let known = r.known(first);
            let mut outputs = vec![r.graph.add_value(known)];
            outputs.extend(results.iter().map(|&v| r.define(v)));
            let args = [vec![Arg::Tensors(state), Arg::Tensors(inputs)], blocks].concat();
            r.graph.calls.push(Call { op: &WHILE, args, outputs, no_grad: false, source: None });
        }
        _ => return Ok(false),
    }
    Ok(true)
}
