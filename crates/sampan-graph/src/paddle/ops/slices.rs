//! Indices and slices, read and written.

use super::args::{ints, plain, tensor};
use crate::by_values::SLICE;
use crate::graph::{Arg, Call, Dim, Known, Size};
use crate::index::{Bounds, OPEN};
use crate::paddle::export::{Exporter, Given};
use crate::paddle::import::Importer;
use crate::paddle::program::{Op, Value, VarId};
use sampan_core::{Result, Value as Plain};

fn getitem(w: &mut Exporter, call: &Given) -> Result<bool> {
    let Some(id) = call.id("x") else { return Ok(false) };
    let known = w.known(id).clone();
    let Some(b) = Bounds::of(call, known.dims.len()) else { return Ok(false) };
    if b.picks.len() > 1 || b.picks.iter().any(|&(t, _)| w.known(t).dims.len() != 1 || !w.known(t).dtype.is_int()) {
        return Ok(false);
    }
    let out = w.known(call.out()).clone();
    let between = |w: &Exporter, var: VarId| w.like(var, out.dtype);
    let mut x = w.var_of(id)?;
    let mut rank = known.dims.len();
    let mut b = b;
    for i in 0..b.axes.len() {
        // Versions of Paddle differ in what ends a slice that goes back to the first: turned around, it goes forward.
        let (step, last) = (b.steps[i], b.starts[i].as_fixed());
        let (Some(last), Some(end)) = (last, b.ends[i].as_fixed()) else { continue };
        if step > 0 || end > -OPEN {
            continue;
        }
        let axis = b.axes[i];
        if last < 0 {
            return Ok(false);
        }
        let mut like = between(w, x);
        like.dims[axis as usize] = Dim::Free(usize::MAX);
        if last != OPEN {
            let args = vec![
                ("input", Value::Var(x)),
                ("starts", Value::Ints(vec![0])),
                ("ends", Value::Ints(vec![last + 1])),
                ("axes", Value::Ints(vec![axis])),
                ("infer_flags", Value::Ints(vec![1])),
                ("decrease_axis", Value::Ints(vec![])),
            ];
            x = w.emit("slice", args, &like)?;
        }
        x = w.emit("flip", vec![("x", Value::Var(x)), ("axis", Value::Ints(vec![axis]))], &like)?;
        (b.starts[i], b.ends[i], b.steps[i]) = (Size::fixed(0), Size::fixed(OPEN), -step);
    }
    if !b.axes.is_empty() {
        let (starts, ends) = (w.sizes(&b.starts)?, w.sizes(&b.ends)?);
        let mut like = between(w, x);
        b.axes.iter().for_each(|&a| like.dims[a as usize] = Dim::Free(usize::MAX));
        let axes = ("axes", Value::Ints(b.axes.clone()));
        if b.steps.iter().all(|s| *s == 1) {
            let mut d = 0;
            like.dims.retain(|_| {
                d += 1;
                !b.gone.contains(&(d - 1))
            });
            let args = vec![
                ("input", Value::Var(x)),
                ("starts", starts),
                ("ends", ends),
                axes,
                ("infer_flags", Value::Ints(vec![1; b.axes.len()])),
                ("decrease_axis", Value::Ints(b.gone.clone())),
            ];
            x = w.emit("slice", args, &like)?;
        } else {
            let args = vec![
                ("x", Value::Var(x)),
                ("starts", starts),
                ("ends", ends),
                ("strides", Value::Ints(b.steps.clone())),
                axes,
            ];
            x = w.emit("strided_slice", args, &like)?;
            if !b.gone.is_empty() {
                let mut d = 0;
                like.dims.retain(|_| {
                    d += 1;
                    !b.gone.contains(&(d - 1))
                });
                x = w.emit("squeeze", vec![("x", Value::Var(x)), ("axis", Value::Ints(b.gone.clone()))], &like)?;
            }
        }
        rank -= b.gone.len();
    }
    for &(t, axis) in &b.picks {
        let mut like = between(w, x);
        like.dims[axis as usize] = w.known(t).dims[0];
        let index = w.var_of(t)?;
        x = w.emit(
            "gather",
            vec![("x", Value::Var(x)), ("index", Value::Var(index)), ("axis", Value::Int(axis))],
            &like,
        )?;
    }
    if b.new.is_empty() {
        if b.axes.is_empty() && b.picks.is_empty() {
            x = w.emit("assign", vec![("x", Value::Var(x))], &out)?;
        }
        w.program.vars[x].dims = crate::paddle::export::dims(&out);
        w.bind(call.out(), x);
    } else {
        debug_assert!(rank + b.new.len() == out.dims.len());
        w.give("unsqueeze", vec![("x", Value::Var(x)), ("axis", Value::Ints(b.new))], call.out())?;
    }
    Ok(true)
}

fn setitem(w: &mut Exporter, call: &Given) -> Result<bool> {
    let Some(id) = call.id("x") else { return Ok(false) };
    let known = w.known(id).clone();
    let Some(b) = Bounds::of(call, known.dims.len()) else { return Ok(false) };
    if call.bool("accumulate") || !b.picks.is_empty() || !b.new.is_empty() {
        return Ok(false);
    }
    let value = match call.id("value") {
        Some(v) => {
            let v = w.var_of(v)?;
            w.cast(v, known.dtype)?
        }
        None => match call.float("value") {
            Some(v) => w.number(v, &[1], known.dtype)?,
            None => return Ok(false),
        },
    };
    let (starts, ends) = (w.sizes(&b.starts)?, w.sizes(&b.ends)?);
    let args = vec![
        ("x", call.tensor(w, "x")?),
        ("values", Value::Var(value)),
        ("starts", starts),
        ("ends", ends),
        ("steps", Value::Ints(b.steps)),
        ("axes", Value::Ints(b.axes)),
        ("decrease_axes", Value::Ints(b.gone)),
        ("none_axes", Value::Ints(vec![])),
    ];
    w.give("set_value_with_tensor", args, call.out())?;
    Ok(true)
}

fn slice(w: &mut Exporter, call: &Given) -> Result<bool> {
    let Some(id) = call.id("input") else { return Ok(false) };
    let (Some(axes), Some(starts), Some(ends)) = (call.ints("axes"), call.sizes("starts"), call.sizes("ends")) else {
        return Ok(false);
    };
    let (starts, ends) = (w.sizes(&starts)?, w.sizes(&ends)?);
    let args = vec![
        ("input", Value::Var(w.var_of(id)?)),
        ("starts", starts),
        ("ends", ends),
        ("infer_flags", Value::Ints(vec![1; axes.len()])),
        ("axes", Value::Ints(axes)),
        ("decrease_axis", Value::Ints(vec![])),
    ];
    w.give("slice", args, call.out())?;
    Ok(true)
}

/// A region that every axis names, as the slices that change something.
fn view(w: &mut Exporter, call: &Given, x: VarId, from: &Known) -> Result<bool> {
    let (Some(starts), Some(lens), Some(steps)) = (call.sizes("starts"), call.sizes("lens"), call.ints("steps")) else {
        return Ok(false);
    };
    let to = w.known(call.out()).clone();
    let (mut b, rank) = (Bounds::default(), from.dims.len());
    for axis in 0..rank {
        if from.dims[axis] == to.dims[axis] && starts[axis].as_fixed() == Some(0) && steps[axis] == 1 {
            continue;
        }
        let (start, step) = (&starts[axis], steps[axis]);
        let Some(first) = start.as_fixed().filter(|_| step > 0) else { return Ok(false) };
        let mut end = lens[axis].clone();
        match end.as_fixed() {
            Some(n) => end = Size::fixed(first + n * step),
            None if step == 1 => end.plus += first * end.over,
            None => return Ok(false),
        }
        b.axes.push(axis as i64);
        b.starts.push(start.clone());
        b.ends.push(end);
        b.steps.push(step);
    }
    let (starts, ends) = (w.sizes(&b.starts)?, w.sizes(&b.ends)?);
    let (n, axes) = (b.axes.len(), ("axes", Value::Ints(b.axes)));
    if b.steps.iter().all(|s| *s == 1) {
        let flags = ("infer_flags", Value::Ints(vec![1; n]));
        let args = vec![
            ("input", Value::Var(x)),
            ("starts", starts),
            ("ends", ends),
            axes,
            flags,
            ("decrease_axis", Value::Ints(vec![])),
        ];
        w.give("slice", args, call.out())?;
    } else {
        let args =
            vec![("x", Value::Var(x)), ("starts", starts), ("ends", ends), ("strides", Value::Ints(b.steps)), axes];
        w.give("strided_slice", args, call.out())?;
    }
    Ok(true)
}

pub fn write(w: &mut Exporter, call: &Given) -> Result<bool> {
    match (call.name(), call.id("x")) {
        ("getitem", _) => getitem(w, call),
        ("setitem", _) => setitem(w, call),
        ("slice", _) => slice(w, call),
        ("view_slice", Some(id)) => {
            let (x, from) = (w.var_of(id)?, w.known(id).clone());
            view(w, call, x, &from)
        }
        _ => Ok(false),
    }
}

/// The bounds of a slice as parts of an index.
fn index_of(axes: &[i64], starts: &[i64], ends: &[i64], steps: &[i64], gone: &[i64], rank: usize) -> Vec<Plain> {
    let mut index = vec![Plain::List(vec![Plain::None, Plain::None, Plain::None]); rank];
    for (i, &axis) in axes.iter().enumerate() {
        let at = usize::try_from(if axis < 0 { axis + rank as i64 } else { axis }).unwrap_or(usize::MAX);
        let (start, end, step) = (starts[i], ends[i], steps.get(i).copied().unwrap_or(1));
        let end = if end >= OPEN || end <= -OPEN { Plain::None } else { Plain::Int(end) };
        if let Some(part) = index.get_mut(at) {
            *part = match gone.contains(&axis) {
                true => Plain::Int(start),
                false => Plain::List(vec![Plain::Int(start), end, Plain::Int(step)]),
            };
        }
    }
    index
}

/// What is known of a value before axes of one element were taken from it.
fn with_ones(mut known: Known, gone: &[i64]) -> Known {
    let rank = (known.dims.len() + gone.len()) as i64;
    let mut gone: Vec<i64> = gone.iter().map(|a| if *a < 0 { a + rank } else { *a }).collect();
    gone.sort_unstable();
    for axis in gone {
        let at = usize::try_from(axis).unwrap_or(0).min(known.dims.len());
        known.dims.insert(at, Dim::Fixed(1));
    }
    known
}

/// One place of an axis, which a value names: the step of a loop over a tensor.
fn picked(r: &mut Importer, op: &Op) -> Result<bool> {
    let (axes, gone) = (op.ints("axes")?, op.ints("decrease_axis")?);
    let (Some(start), [_]) = (op.var_or_none("starts"), &axes[..]) else { return Ok(false) };
    if gone != axes || r.sizes(op, "starts").is_ok() {
        return Ok(false);
    }
    let known = r.known(op.first_result()?);
    let at = Known { dims: vec![Dim::Fixed(1)], dtype: r.program.vars[start].dtype, stop_gradient: true };
    let index = Arg::Tensor(r.id(start)?);
    let index = r.call_new("reshape", vec![("x", index), ("shape", ints(vec![1]))], at)?;
    let args =
        vec![("x", tensor(r, op, "input")?), ("index", Arg::Tensor(index)), ("axis", plain(Plain::Int(axes[0])))];
    let cut = r.call_new("index_select", args, with_ones(known, &gone))?;
    r.call("squeeze", vec![("x", Arg::Tensor(cut)), ("axis", ints(gone))], &[op.first_result()?])?;
    Ok(true)
}

/// Bounds that values decide.
fn between(r: &mut Importer, op: &Op) -> Result<bool> {
    if r.sizes(op, "starts").is_ok() && r.sizes(op, "ends").is_ok() {
        return Ok(false);
    }
    let bound = |r: &mut Importer, name: &str| match (r.sizes(op, name), op.get(name)) {
        (Ok(known), _) => Ok(known),
        (_, Some(Value::Vars(vars))) => r.ids(vars).map(Arg::Tensors),
        _ => tensor(r, op, name),
    };
    let gone = op.ints("decrease_axis")?;
    let (axes, from) = (ints(op.ints("axes")?), tensor(r, op, "input")?);
    let args = vec![from, axes, bound(r, "starts")?, bound(r, "ends")?, ints(gone)];
    let output = r.define(op.first_result()?);
    r.graph.calls.push(Call { op: &SLICE, args, outputs: vec![output], no_grad: false, source: None });
    Ok(true)
}

/// A number of an index.
fn part(size: &Size) -> Arg {
    size.as_fixed().map_or_else(|| Arg::Size(size.clone()), |n| plain(Plain::Int(n)))
}

/// The index of single places, each of which must be there, and of slices beside them.
fn indexed(r: &mut Importer, op: &Op) -> Result<bool> {
    let (axes, gone) = (op.ints("axes")?, op.ints("decrease_axis")?);
    let mut sizes = |name: &str| -> Result<Vec<Size>> {
        Ok(match r.sizes(op, name)? {
            Arg::Plain(Plain::Ints(all)) => all.iter().map(|&n| Size::fixed(n)).collect(),
            Arg::Sizes(all) => all,
            _ => vec![],
        })
    };
    let (starts, ends) = (sizes("starts")?, sizes("ends")?);
    if gone.is_empty() || gone.iter().any(|a| !axes.contains(a)) || [starts.len(), ends.len()] != [axes.len(); 2] {
        return Ok(false);
    }
    let none = || plain(Plain::None);
    let mut index = vec![plain(Plain::List(vec![Plain::None; 3])); r.program.vars[op.var("input")?].dims.len()];
    for ((axis, start), end) in axes.iter().zip(&starts).zip(&ends) {
        let Some(at) = usize::try_from(*axis).ok().and_then(|at| index.get_mut(at)) else { return Ok(false) };
        let open = end.as_fixed().is_some_and(|n| n >= OPEN);
        *at = if gone.contains(axis) {
            let next = Size { plus: start.plus.saturating_add(start.over), ..start.clone() };
            let last = start.as_fixed() == Some(-1);
            if !(if last { open } else { *end == next }) {
                return Ok(false);
            }
            part(start)
        } else {
            Arg::List(vec![part(start), if open { none() } else { part(end) }, none()])
        };
    }
    let args = vec![("x", tensor(r, op, "input")?), ("index", Arg::List(index))];
    r.call("getitem", args, &[op.first_result()?])?;
    Ok(true)
}

pub fn read(r: &mut Importer, op: &Op) -> Result<bool> {
    let name = op.schema.name;
    match name {
        "slice" if picked(r, op)? || between(r, op)? => {}
        "slice" | "strided_slice" => {
            if name == "slice" && (r.symbolic(op)? || indexed(r, op)?) {
                return Ok(true);
            }
            let from = if name == "slice" { "input" } else { "x" };
            let axes = op.ints("axes")?;
            let gone = if name == "slice" { op.ints("decrease_axis")? } else { vec![] };
            let mut args = vec![(from, tensor(r, op, from)?), ("axes", ints(axes))];
            let (mut ends, strides) = (r.sizes(op, "ends")?, op.ints("strides").unwrap_or_default());
            if let (Arg::Plain(Plain::Ints(ends)), "strided_slice") = (&mut ends, name) {
                // Backwards, Paddle's -1 is the place before the first.
                let backwards = ends.iter_mut().zip(&strides).filter(|(e, s)| **e == -1 && **s < 0);
                backwards.for_each(|(e, _)| *e = -OPEN - 1);
            }
            args.extend([("starts", r.sizes(op, "starts")?), ("ends", ends)]);
            if name == "strided_slice" {
                args.push(("strides", r.sizes(op, "strides")?));
            }
            if gone.is_empty() {
                r.call(name, args, &[op.first_result()?])?;
            } else {
                let known = r.known(op.first_result()?);
                let cut = r.call_new(name, args, with_ones(known, &gone))?;
                r.call("squeeze", vec![("x", Arg::Tensor(cut)), ("axis", ints(gone))], &[op.first_result()?])?;
            }
        }
        "set_value_with_tensor" => {
            let (axes, gone) = (op.ints("axes")?, op.ints("decrease_axes")?);
            let (starts, ends, steps) = (op.ints("starts")?, op.ints("ends")?, op.ints("steps")?);
            if !op.ints("none_axes")?.is_empty() || starts.len() != axes.len() || ends.len() != axes.len() {
                return Ok(false);
            }
            let rank = r.program.vars[op.var("x")?].dims.len();
            let index = index_of(&axes, &starts, &ends, &steps, &gone, rank);
            let args = vec![
                ("x", tensor(r, op, "x")?),
                ("index", plain(Plain::List(index))),
                ("value", tensor(r, op, "values")?),
            ];
            r.call("setitem", args, &[op.first_result()?])?;
        }
        _ => return Ok(false),
    }
    Ok(true)
}
