//! Shapes, joins and lookups.

use super::args::{ints, plain, tensor};
use crate::graph::{Arg, Dim, Known, Size};
use crate::paddle::export::{Exporter, Given};
use crate::paddle::import::Importer;
use crate::paddle::program::{Op, Value, VarId};
use sampan_core::{Result, Value as Plain};

/// The shape of a result in terms of that of its input: 0 keeps an extent, one -1 is found.
fn reshape(w: &mut Exporter, call: &Given, x: VarId, from: &Known, shape: Option<&[Size]>) -> Result<()> {
    let to = w.known(call.out()).clone();
    let kept = |i: usize| matches!((from.dims.get(i), to.dims[i]), (Some(Dim::Free(a)), Dim::Free(b)) if *a == b);
    let open = (0..to.dims.len()).filter(|&i| to.dims[i].fixed().is_none() && !kept(i)).count();
    let value = match (open, shape) {
        (0 | 1, _) => Value::Ints(
            to.dims
                .iter()
                .enumerate()
                .map(|(i, d)| d.fixed().map_or(if kept(i) { 0 } else { -1 }, |n| n as i64))
                .collect(),
        ),
        (_, Some(sizes)) => w.sizes(sizes)?,
        _ => return Err(sampan_core::Error::invalid("a shape with two unknown extents").in_op("save")),
    };
    w.give("reshape", vec![("x", Value::Var(x)), ("shape", value)], call.out())
}

/// The pieces of a result that is a list.
fn pieces(w: &mut Exporter, call: &Given, name: &'static str) -> Vec<(&'static str, Vec<VarId>)> {
    vec![("", call.0.outputs.iter().map(|&id| w.fresh(id, name)).collect())]
}

pub fn write(w: &mut Exporter, call: &Given) -> Result<bool> {
    let out = call.out();
    let id = call.id("x");
    let x = id.map(|id| w.var_of(id)).transpose()?;
    let from = id.map(|id| w.known(id).clone());
    match (call.name(), x, from) {
        ("flatten", Some(x), Some(_)) if w.known(out).dims.iter().filter(|d| d.fixed().is_none()).count() > 1 => {
            let axes = ["start_axis", "stop_axis"].map(|n| call.int(n).map(|a| (n, Value::Int(a))));
            let [Some(start), Some(stop)] = axes else { return Ok(false) };
            w.give("flatten", vec![("x", Value::Var(x)), start, stop], out)?;
        }
        ("reshape" | "reshape_to" | "flatten" | "view_as" | "unflatten", Some(x), Some(from)) => {
            let shape = call.sizes("shape");
            reshape(w, call, x, &from, shape.as_deref())?;
        }
        ("transpose", Some(x), _) => {
            let Some(perm) = call.ints("perm") else { return Ok(false) };
            w.give("transpose", vec![("x", Value::Var(x)), ("perm", Value::Ints(perm))], out)?;
        }
        ("t", Some(x), Some(from)) => {
            let perm = (0..from.dims.len() as i64).rev().collect();
            w.give("transpose", vec![("x", Value::Var(x)), ("perm", Value::Ints(perm))], out)?;
        }
        ("squeeze", Some(x), Some(_)) => {
            let Some(axis) = call.arg("axis").map_or(Some(vec![]), |_| call.ints("axis")) else { return Ok(false) };
            w.give("squeeze", vec![("x", Value::Var(x)), ("axis", Value::Ints(axis))], out)?;
        }
        ("unsqueeze", Some(x), _) => {
            let Some(axis) = call.ints("axis") else { return Ok(false) };
            w.give("unsqueeze", vec![("x", Value::Var(x)), ("axis", Value::Ints(axis))], out)?;
        }
        ("concat", ..) => {
            let args = vec![("x", call.tensors(w, "x")?), ("axis", Value::Int(call.int("axis").unwrap_or(0)))];
            w.give("concat", args, out)?;
        }
        ("split" | "chunk" | "split_at" | "tensor_split", Some(x), Some(from)) => {
            let axis = call.int("axis").unwrap_or(0);
            let at = usize::try_from(if axis < 0 { axis + from.dims.len() as i64 } else { axis }).unwrap_or(0);
            let sizes = call.0.outputs.iter().map(|&id| w.known(id).dims[at].fixed().map(|n| n as i64));
            let sizes = sizes.collect::<Option<Vec<_>>>();
            // Pieces of `tensor_split` may overlap, or leave something out.
            let whole = from.dims[at].fixed().map(|n| n as i64);
            if sizes.as_ref().is_some_and(|s| whole.is_some_and(|n| s.iter().sum::<i64>() != n)) {
                return Ok(false);
            }
            let args = vec![("x", Value::Var(x)), ("axis", Value::Int(axis))];
            match sizes {
                Some(sizes) => {
                    let args = args.into_iter().chain([("sections", Value::Ints(sizes))]).collect();
                    let results = pieces(w, call, "split");
                    w.emit_to("split", args, results)?;
                }
                None => {
                    let num = ("num", Value::Int(call.0.outputs.len() as i64));
                    let results = pieces(w, call, "split");
                    w.emit_to("split_with_num", args.into_iter().chain([num]).collect(), results)?;
                }
            }
        }
        ("unstack", Some(x), _) => {
            let num = call.0.outputs.len() as i64;
            let args = vec![
                ("x", Value::Var(x)),
                ("axis", Value::Int(call.int("axis").unwrap_or(0))),
                ("num", Value::Int(num)),
            ];
            let results = pieces(w, call, "unstack");
            w.emit_to("unstack", args, results)?;
        }
        ("tile", Some(x), _) => {
            let Some(times) = call.sizes("repeat_times") else { return Ok(false) };
            let times = w.sizes(&times)?;
            w.give("tile", vec![("x", Value::Var(x)), ("repeat_times", times)], out)?;
        }
        ("expand" | "broadcast_to", Some(x), Some(from)) => {
            let to = w.known(out).clone();
            let lead = to.dims.len() - from.dims.len().min(to.dims.len());
            let plain = to.dims.iter().enumerate().map(|(i, d)| match (d, i.checked_sub(lead).map(|j| from.dims[j])) {
                (d, Some(f)) if *d == f => Some(-1),
                (d, _) => d.fixed().map(|n| n as i64),
            });
            let shape = match plain.collect::<Option<Vec<_>>>() {
                Some(shape) => Value::Ints(shape),
                None => {
                    let Some(sizes) = call.sizes("shape") else { return Ok(false) };
                    w.sizes(&sizes)?
                }
            };
            w.give("expand", vec![("x", Value::Var(x)), ("shape", shape)], out)?;
        }
        ("expand_as", Some(x), _) => {
            let shape = crate::paddle::export::dims(w.known(out));
            let args = vec![("x", Value::Var(x)), ("y", call.tensor(w, "y")?), ("target_shape", Value::Ints(shape))];
            w.give("expand_as", args, out)?;
        }
        ("gather", Some(x), _) => {
            let args = vec![
                ("x", Value::Var(x)),
                ("index", call.tensor(w, "index")?),
                ("axis", Value::Int(call.int("axis").unwrap_or(0))),
            ];
            w.give("gather", args, out)?;
        }
        ("meshgrid", ..) => {
            // Paddle's has one order of axes.
            if call.text("indexing").is_some_and(|order| order != "ij") {
                return Ok(false);
            }
            let args = vec![("inputs", call.tensors(w, "inputs")?)];
            let results = pieces(w, call, "meshgrid");
            w.emit_to("meshgrid", args, results)?;
        }
        ("take_along_axis" | "take_along", ..) => {
            let own = if call.name() == "take_along" { "x" } else { "arr" };
            let (Some(x), Some(index)) = (call.id(own), call.id("indices")) else { return Ok(false) };
            let axis = call.int("axis").unwrap_or(0);
            // In Paddle's files indices are spread beforehand.
            let (shape, other) = (&w.known(x).dims, &w.known(index).dims);
            let at = if axis < 0 { axis + shape.len() as i64 } else { axis } as usize;
            let spread = shape.len() != other.len() || (0..shape.len()).any(|i| i != at && shape[i] != other[i]);
            if shape.is_empty() || spread && call.name() == "take_along_axis" && call.bool("broadcast") {
                return Ok(false);
            }
            let args = vec![
                ("arr", Value::Var(w.var_of(x)?)),
                ("indices", Value::Var(w.var_of(index)?)),
                ("axis", Value::Int(axis)),
            ];
            w.give("take_along_axis", args, out)?;
        }
        ("embedding", Some(x), Some(_)) => {
            if call.arg("max_norm").is_some() {
                return Ok(false);
            }
            let padding = match (call.int("padding_idx"), call.id("weight").map(|id| w.known(id).dims[0])) {
                (Some(p), Some(rows)) if p < 0 => match rows.fixed() {
                    Some(rows) => rows as i64 + p,
                    None => return Ok(false),
                },
                (p, _) => p.unwrap_or(-1),
            };
            let args = vec![
                ("x", Value::Var(x)),
                ("weight", call.tensor(w, "weight")?),
                ("padding_idx", Value::Int(padding)),
                ("sparse", Value::Bool(false)),
            ];
            w.give("embedding", args, out)?;
        }
        ("roll", Some(x), _) => {
            let (Some(shifts), axis) = (call.ints("shifts"), call.ints("axis").unwrap_or_default()) else {
                return Ok(false);
            };
            w.give(
                "roll",
                vec![("x", Value::Var(x)), ("shifts", Value::Ints(shifts)), ("axis", Value::Ints(axis))],
                out,
            )?;
        }
        ("pad", Some(x), Some(from)) => return pad(w, call, x, &from),
        ("put_along_axis", ..) => {
            let (Some(arr), Some(axis)) = (call.id("arr"), call.int("axis")) else { return Ok(false) };
            let (Some(indices), Some(values)) = (call.id("indices"), call.id("values")) else { return Ok(false) };
            if w.known(indices).dims != w.known(values).dims {
                return Ok(false);
            }
            let args = vec![
                ("arr", Value::Var(w.var_of(arr)?)),
                ("indices", Value::Var(w.var_of(indices)?)),
                ("values", Value::Var(w.var_of(values)?)),
                ("axis", Value::Int(axis)),
                ("reduce", Value::Text(call.text("reduce").unwrap_or("assign").into())),
                ("include_self", Value::Bool(call.bool("include_self"))),
            ];
            w.give("put_along_axis", args, out)?;
        }
        ("unfold", Some(x), _) => {
            let mut args = vec![("x", Value::Var(x))];
            for (name, n) in [("kernel_sizes", 2), ("strides", 2), ("paddings", 4), ("dilations", 2)] {
                let Some(values) = call.each(name, n, 1) else { return Ok(false) };
                let values = if n == 4 && values.len() == 2 { [values.clone(), values].concat() } else { values };
                args.push((name, Value::Ints(values)));
            }
            w.give("unfold", args, out)?;
        }
        _ => return Ok(false),
    }
    Ok(true)
}

fn pad(w: &mut Exporter, call: &Given, x: VarId, from: &Known) -> Result<bool> {
    let (Some(pads), mode) = (call.ints("pad"), call.text("mode").unwrap_or("constant")) else { return Ok(false) };
    let (rank, last) = (from.dims.len(), call.text("data_format").is_some_and(|f| f.ends_with('C')));
    if mode == "constant" {
        let mut all = vec![0; 2 * rank];
        if pads.len() == 2 * rank {
            if !call.bool("pad_from_left_axis") {
                return Ok(false);
            }
            all.clone_from(&pads);
        } else {
            // From the last axis on.
            let end = if last { rank - 1 } else { rank };
            for (i, pair) in pads.chunks(2).enumerate() {
                let Some(axis) = end.checked_sub(i + 1) else { return Ok(false) };
                all[2 * axis..2 * axis + 2].copy_from_slice(pair);
            }
        }
        let value = Value::Float(call.float("value").unwrap_or(0.0));
        w.give("pad", vec![("x", Value::Var(x)), ("pad_value", value), ("paddings", Value::Ints(all))], call.out())?;
        return Ok(true);
    }
    if rank != 4 || pads.len() != 4 || last {
        return Ok(false);
    }
    let (to, mut deep) = (w.known(call.out()).clone(), from.clone());
    deep.dims.insert(2, Dim::Fixed(1));
    let x = w.emit("unsqueeze", vec![("x", Value::Var(x)), ("axis", Value::Ints(vec![2]))], &deep)?;
    let mut padded = to;
    padded.dims.insert(2, Dim::Fixed(1));
    let args = vec![
        ("x", Value::Var(x)),
        ("paddings", Value::Ints(pads.into_iter().chain([0, 0]).collect())),
        ("mode", Value::Text(mode.into())),
        ("pad_value", Value::Float(0.0)),
        ("data_format", Value::Text("NCDHW".into())),
    ];
    let x = w.emit("pad3d", args, &padded)?;
    w.give("squeeze", vec![("x", Value::Var(x)), ("axis", Value::Ints(vec![2]))], call.out())?;
    Ok(true)
}

pub fn read(r: &mut Importer, op: &Op) -> Result<bool> {
    let name = op.schema.name;
    match name {
        "reshape" => {
            let args = vec![("x", tensor(r, op, "x")?), ("shape", r.sizes(op, "shape")?)];
            r.call("reshape", args, &[op.first_result()?])?;
        }
        "flatten" => {
            let args = vec![
                ("x", tensor(r, op, "x")?),
                ("start_axis", plain(Plain::Int(op.int("start_axis")?))),
                ("stop_axis", plain(Plain::Int(op.int("stop_axis")?))),
            ];
            r.call("flatten", args, &[op.first_result()?])?;
        }
        "transpose" => {
            let args = vec![("x", tensor(r, op, "x")?), ("perm", ints(op.ints("perm")?))];
            r.call("transpose", args, &[op.first_result()?])?;
        }
        "squeeze" | "unsqueeze" => {
            if r.symbolic(op)? {
                return Ok(true);
            }
            let axis = op.ints("axis")?;
            let axis = if axis.is_empty() { plain(Plain::None) } else { ints(axis) };
            let args = vec![("x", tensor(r, op, "x")?), ("axis", axis)];
            r.call(name, args, &[op.first_result()?])?;
        }
        "concat" | "stack" => {
            if r.symbolic(op)? {
                return Ok(true);
            }
            let args = vec![("x", Arg::Tensors(r.ids(&op.vars("x")?)?)), ("axis", plain(Plain::Int(op.int("axis")?)))];
            r.call(name, args, &[op.first_result()?])?;
        }
        "split" | "split_with_num" => {
            let parts = if name == "split" { ints(op.ints("sections")?) } else { plain(Plain::Int(op.int("num")?)) };
            let args = vec![
                ("x", tensor(r, op, "x")?),
                ("num_or_sections", parts),
                ("axis", plain(Plain::Int(op.int("axis")?))),
            ];
            r.call("split", args, op.results("out"))?;
        }
        "unstack" => {
            let args = vec![("x", tensor(r, op, "x")?), ("axis", plain(Plain::Int(op.int("axis")?)))];
            r.call("unstack", args, op.results("out"))?;
        }
        "tile" => {
            let args = vec![("x", tensor(r, op, "x")?), ("repeat_times", r.sizes(op, "repeat_times")?)];
            r.call("tile", args, &[op.first_result()?])?;
        }
        "expand" => {
            let args = vec![("x", tensor(r, op, "x")?), ("shape", r.sizes(op, "shape")?)];
            r.call("expand", args, &[op.first_result()?])?;
        }
        "expand_as" => {
            let args = match op.var_or_none("y") {
                Some(y) => vec![("x", tensor(r, op, "x")?), ("y", Arg::Tensor(r.id(y)?))],
                None => return Ok(false),
            };
            r.call("expand_as", args, &[op.first_result()?])?;
        }
        "gather" => {
            let args = vec![
                ("x", tensor(r, op, "x")?),
                ("index", tensor(r, op, "index")?),
                ("axis", plain(Plain::Int(op.int("axis").unwrap_or(0)))),
            ];
            r.call("gather", args, &[op.first_result()?])?;
        }
        "meshgrid" => {
            let inputs = Arg::Tensors(r.ids(&op.vars("inputs")?)?);
            r.call("meshgrid", vec![("inputs", inputs)], op.results("out"))?;
        }
        "take_along_axis" => {
            let args = vec![
                ("arr", tensor(r, op, "arr")?),
                ("indices", tensor(r, op, "indices")?),
                ("axis", plain(Plain::Int(op.int("axis").unwrap_or(0)))),
                ("broadcast", plain(Plain::Bool(false))),
            ];
            r.call("take_along_axis", args, &[op.first_result()?])?;
        }
        "embedding" => {
            let padding = op.int("padding_idx").unwrap_or(-1);
            let padding = if padding < 0 { Plain::None } else { Plain::Int(padding) };
            let args =
                vec![("x", tensor(r, op, "x")?), ("weight", tensor(r, op, "weight")?), ("padding_idx", plain(padding))];
            r.call("embedding", args, &[op.first_result()?])?;
        }
        "roll" => {
            let axis = op.ints("axis")?;
            let axis = if axis.is_empty() { plain(Plain::None) } else { ints(axis) };
            let args = vec![("x", tensor(r, op, "x")?), ("shifts", ints(op.ints("shifts")?)), ("axis", axis)];
            r.call("roll", args, &[op.first_result()?])?;
        }
        "pad" | "pad3d" => {
            let mut args = vec![("x", tensor(r, op, "x")?), ("pad", ints(op.ints("paddings")?))];
            args.push(("value", plain(Plain::Float(op.float_or("pad_value", 0.0)))));
            if name == "pad3d" {
                args.push(("mode", plain(op.text("mode", "constant").into())));
                args.push(("data_format", plain(op.text("data_format", "NCDHW").into())));
            }
            r.call("pad", args, &[op.first_result()?])?;
        }
        "shape64" => {
            r.shape(op.var("input")?, op.first_result()?)?;
        }
        "repeat_interleave" => {
            let args = vec![
                ("x", tensor(r, op, "x")?),
                ("repeats", plain(Plain::Int(op.int("repeats")?))),
                ("axis", plain(Plain::Int(op.int("axis")?))),
            ];
            r.call("repeat_interleave", args, &[op.first_result()?])?;
        }
        "put_along_axis" => {
            let args = vec![
                ("arr", tensor(r, op, "arr")?),
                ("indices", tensor(r, op, "indices")?),
                ("values", tensor(r, op, "values")?),
                ("axis", plain(Plain::Int(op.int("axis")?))),
                ("reduce", plain(op.text("reduce", "assign").into())),
                ("include_self", plain(Plain::Bool(op.bool("include_self", true)))),
            ];
            r.call("put_along_axis", args, &[op.first_result()?])?;
        }
        "unfold" => {
            let mut args = vec![("x", tensor(r, op, "x")?)];
            for n in ["kernel_sizes", "strides", "paddings", "dilations"] {
                args.push((n, ints(op.ints(n)?)));
            }
            r.call("unfold", args, &[op.first_result()?])?;
        }
        _ => return Ok(false),
    }
    Ok(true)
}
