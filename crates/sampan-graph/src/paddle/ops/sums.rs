//! What makes few numbers of many: sums, means, extremes, positions, and running ones.

use crate::graph::{Arg, Dim};
use crate::paddle::export::{Exporter, Given};
use crate::paddle::import::Importer;
use crate::paddle::program::{Op, Value};
use sampan_core::{Result, Value as Plain};

const REDUCTIONS: [&str; 8] = ["sum", "mean", "max", "min", "prod", "any", "all", "logsumexp"];

/// Variances and deviations, by their means.
fn spread(w: &mut Exporter, call: &Given, id: usize) -> Result<bool> {
    let (from, out) = (w.known(id).clone(), w.known(call.out()).clone());
    let rank = from.dims.len();
    let Some(axes) = call.arg("axis").map_or(Some((0..rank as i64).collect()), |_| call.ints("axis")) else {
        return Ok(false);
    };
    let at = |a: i64| usize::try_from(if a < 0 { a + rank as i64 } else { a }).ok();
    let count = axes.iter().map(|&a| from.dims.get(at(a)?)?.fixed()).product::<Option<usize>>();
    let correction = match call.plain("unbiased") {
        Some(Plain::Bool(b)) => f64::from(u8::from(*b)),
        _ => call.float("correction").unwrap_or(1.0),
    };
    let Some(n) = count.map(|n| n as f64).filter(|n| *n > correction && !axes.is_empty()) else { return Ok(false) };
    let mut kept = from.clone();
    axes.iter().filter_map(|&a| at(a)).for_each(|a| kept.dims[a] = Dim::Fixed(1));
    let mean =
        |x, keepdim| vec![("x", Value::Var(x)), ("axis", Value::Ints(axes.clone())), ("keepdim", Value::Bool(keepdim))];
    let x = w.var_of(id)?;
    let m = w.emit("mean", mean(x, true), &kept)?;
    let d = w.emit("subtract", vec![("x", Value::Var(x)), ("y", Value::Var(m))], &from)?;
    let d = w.emit("square", vec![("x", Value::Var(d))], &from)?;
    let v = w.emit("mean", mean(d, call.bool("keepdim")), &out)?;
    let scaled = vec![
        ("x", Value::Var(v)),
        ("scale", Value::Float(n / (n - correction))),
        ("bias", Value::Float(0.0)),
        ("bias_after_scale", Value::Bool(true)),
    ];
    let v = w.emit("scale", scaled, &out)?;
    match call.name() {
        "std" => w.give("sqrt", vec![("x", Value::Var(v))], call.out())?,
        _ => w.bind(call.out(), v),
    }
    Ok(true)
}

pub fn write(w: &mut Exporter, call: &Given) -> Result<bool> {
    let name = call.name();
    let known = w.known(call.out()).clone();
    let Some(id) = call.id("x") else { return Ok(false) };
    if let Some(&theirs) = REDUCTIONS.iter().find(|n| **n == name) {
        let Some(axis) = call.arg("axis").map_or(Some(vec![]), |_| call.ints("axis")) else { return Ok(false) };
        let mut x = w.var_of(id)?;
        // Whole numbers are summed in the result's type.
        if matches!(theirs, "sum" | "mean" | "prod") {
            x = w.cast(x, known.dtype)?;
        }
        if matches!(theirs, "any" | "all") {
            x = w.cast(x, sampan_core::DType::Bool)?;
        }
        let all = axis.is_empty();
        let mut args =
            vec![("x", Value::Var(x)), ("axis", Value::Ints(axis)), ("keepdim", Value::Bool(call.bool("keepdim")))];
        if matches!(theirs, "prod" | "logsumexp") {
            args.push(("reduce_all", Value::Bool(all)));
        }
        if theirs == "sum" {
            args.push(("dtype", Value::DType(None)));
        }
        w.give(theirs, args, call.out())?;
        return Ok(true);
    }
    match name {
        "argmax" | "argmin" => {
            let theirs = if name == "argmax" { "argmax" } else { "argmin" };
            let args = vec![
                ("x", call.tensor(w, "x")?),
                ("axis", Value::Int(call.int("axis").unwrap_or(0))),
                ("keepdims", Value::Bool(call.bool("keepdim"))),
                ("flatten", Value::Bool(call.arg("axis").is_none())),
                ("dtype", Value::DType(Some(known.dtype))),
            ];
            w.give(theirs, args, call.out())?;
        }
        "vector_norm" => {
            let (Some(p), axis) = (call.float("p").filter(|p| p.is_finite()), call.ints("axis")) else {
                return Ok(false);
            };
            let axis = match (call.arg("axis"), axis.as_deref()) {
                (None, _) => None,
                (_, Some([one])) => Some(*one),
                _ => return Ok(false),
            };
            let x = w.var_of(id)?;
            let x = w.cast(x, known.dtype)?;
            let args = vec![
                ("x", Value::Var(x)),
                ("porder", Value::Float(p)),
                ("axis", Value::Int(axis.unwrap_or(-1))),
                ("epsilon", Value::Float(1e-12)),
                ("keepdim", Value::Bool(call.bool("keepdim"))),
                ("asvector", Value::Bool(axis.is_none())),
            ];
            w.give("p_norm", args, call.out())?;
        }
        "std" | "var" => return spread(w, call, id),
        "cumprod" => {
            let Some(dim) = call.int("dim") else { return Ok(false) };
            let x = w.var_of(id)?;
            let x = w.cast(x, known.dtype)?;
            let off = |name| (name, Value::Bool(false));
            let args = vec![("x", Value::Var(x)), ("dim", Value::Int(dim)), off("exclusive"), off("reverse")];
            w.give("cumprod", args, call.out())?;
        }
        "sort" | "argsort" => {
            let args = vec![
                ("x", call.tensor(w, "x")?),
                ("axis", Value::Int(call.int("axis").unwrap_or(-1))),
                ("descending", Value::Bool(call.bool("descending"))),
                ("stable", Value::Bool(call.bool("stable"))),
            ];
            let values = w.like(w.var_of(id)?, w.known(id).dtype);
            let (mut out, mut indices) = (Vec::new(), Vec::new());
            match name {
                "sort" => out.push(w.fresh(call.out(), "sort")),
                _ => {
                    out.push(w.emit_var("sorted", &values));
                    indices.push(w.fresh(call.out(), "argsort"));
                }
            }
            w.emit_to("argsort", args, vec![("out", out), ("indices", indices)])?;
        }
        "cumsum" => {
            let x = w.var_of(id)?;
            let x = w.cast(x, known.dtype)?;
            let args = vec![
                ("x", Value::Var(x)),
                ("axis", Value::Int(call.int("axis").unwrap_or(-1))),
                ("flatten", Value::Bool(call.arg("axis").is_none())),
                ("exclusive", Value::Bool(false)),
                ("reverse", Value::Bool(false)),
            ];
            w.give("cumsum", args, call.out())?;
        }
        _ => return Ok(false),
    }
    Ok(true)
}

pub fn read(r: &mut Importer, op: &Op) -> Result<bool> {
    let name = op.schema.name;
    if !REDUCTIONS.contains(&name)
        && !matches!(name, "argmax" | "argmin" | "cumsum" | "cumprod" | "p_norm" | "numel" | "nonzero" | "argsort")
    {
        return Ok(false);
    }
    let out = [op.first_result()?];
    if name == "nonzero" {
        let x = r.id(op.var("condition")?)?;
        r.call("nonzero", vec![("x", Arg::Tensor(x))], &out)?;
        return Ok(true);
    }
    let x = ("x", Arg::Tensor(r.id(op.var("x")?)?));
    let flag = |ours, theirs: &str| (ours, Arg::Plain(Plain::Bool(op.bool(theirs, false))));
    let axis = |name: &str| -> Result<Arg> {
        let axis = op.ints(name)?;
        Ok(Arg::Plain(if axis.is_empty() { Plain::None } else { axis.into() }))
    };
    match name {
        "argmax" | "argmin" => {
            let whole = op.bool("flatten", false);
            let axis = if whole { Plain::None } else { Plain::Int(op.int("axis")?) };
            let dtype = r.program.vars[out[0]].dtype;
            let args = vec![
                x,
                ("axis", Arg::Plain(axis)),
                flag("keepdim", "keepdims"),
                ("dtype", Arg::Plain(Plain::DType(dtype))),
            ];
            r.call(name, args, &out)?;
        }
        "cumsum" => {
            if op.bool("exclusive", false) || op.bool("reverse", false) {
                return Ok(false);
            }
            let axis = if op.bool("flatten", false) { Plain::None } else { Plain::Int(op.int("axis")?) };
            r.call("cumsum", vec![x, ("axis", Arg::Plain(axis))], &out)?;
        }
        "cumprod" => {
            if op.bool("exclusive", false) || op.bool("reverse", false) {
                return Ok(false);
            }
            r.call("cumprod", vec![x, ("dim", Arg::Plain(Plain::Int(op.int("dim")?)))], &out)?;
        }
        "p_norm" => {
            let p = Arg::Plain(Plain::Float(op.float("porder")?));
            let axis = if op.bool("asvector", false) { Plain::None } else { Plain::Int(op.int("axis")?) };
            r.call("norm", vec![x, ("p", p), ("axis", Arg::Plain(axis)), flag("keepdim", "keepdim")], &out)?;
        }
        "numel" => r.numel(op.var("x")?, out[0])?,
        "argsort" => {
            let order = |ours| (ours, Arg::Plain(Plain::Bool(op.bool(ours, false))));
            let args = vec![x, ("axis", Arg::Plain(Plain::Int(op.int("axis")?))), order("descending"), order("stable")];
            r.call("sort", args.clone(), &out)?;
            r.call("argsort", args, &[op.result("indices")?])?;
        }
        "sum" => {
            let dtype = op.dtype("dtype").map_or(Plain::None, Plain::DType);
            r.call(
                "sum",
                vec![x, ("axis", axis("axis")?), ("dtype", Arg::Plain(dtype)), flag("keepdim", "keepdim")],
                &out,
            )?;
        }
        _ => r.call(name, vec![x, ("axis", axis("axis")?), flag("keepdim", "keepdim")], &out)?,
    }
    Ok(true)
}
