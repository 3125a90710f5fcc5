//! Arrays of tensors, and slices between bounds that are computed. Here an array is a tensor with an axis more (see
//! `by_values.rs`), and so it is in what is written.

use super::args::{ints, plain, tensor};
use super::flow::region;
use crate::by_values::WRITE;
use crate::graph::{Arg, Call, Dim, Known, Size};
use crate::paddle::export::{Exporter, Given};
use crate::paddle::import::Importer;
use crate::paddle::program::{Op, Value, VarId};
use sampan_core::{DType, Result, Value as Plain};

/// How many tensors there are, and some more.
fn length(id: usize, plus: i64) -> Size {
    Size { plus, ..Size::extent(id, 0) }
}

/// What one of two ways gives.
fn either(
    w: &mut Exporter,
    cond: VarId,
    like: &Known,
    then: impl FnOnce(&mut Exporter) -> Result<VarId>,
    otherwise: impl FnOnce(&mut Exporter) -> Result<VarId>,
) -> Result<VarId> {
    let then = region(w, vec![], |w| Ok(vec![then(w)?]))?;
    let otherwise = region(w, vec![], |w| Ok(vec![otherwise(w)?]))?;
    let out = w.emit_var("if", like);
    let args = vec![("cond", Value::Var(cond)), ("then", then), ("otherwise", otherwise)];
    w.emit_to("if", args, vec![("", vec![out])])?;
    Ok(out)
}

/// A tensor alone where there was none, behind the last one, or in the place of one.
fn put(w: &mut Exporter, call: &Given) -> Result<bool> {
    let (Some(array), Some(x)) = (call.id("array"), call.id("x")) else { return Ok(false) };
    let known = w.known(call.out()).clone();
    let mut one = known.clone();
    one.dims.splice(..1.min(known.dims.len()), [Dim::Fixed(1)]);
    let (all, x) = (w.var_of(array)?, w.var_of(x)?);
    let row = w.emit("unsqueeze", vec![("x", Value::Var(x)), ("axis", Value::Ints(vec![0]))], &one)?;
    let (len, none) = (w.size(&length(array, 0))?, w.number(0.0, &[1], DType::Int64)?);
    let truth = Known { dims: vec![Dim::Fixed(1)], dtype: DType::Bool, stop_gradient: true };
    let two = |x, y| vec![("x", Value::Var(x)), ("y", Value::Var(y))];
    let empty = w.emit("equal", two(len, none), &truth)?;
    let longer =
        |w: &mut Exporter| w.emit("concat", vec![("x", Value::Vars(vec![all, row])), ("axis", Value::Int(0))], &known);
    let place = call.id("index").map(|id| w.var_of(id)).transpose()?;
    let more = |w: &mut Exporter| {
        let Some(place) = place else { return longer(w) };
        let place = w.cast(place, DType::Int64)?;
        let at = Known { dims: vec![Dim::Fixed(1)], dtype: DType::Int64, stop_gradient: true };
        let at = w.emit("reshape", vec![("x", Value::Var(place)), ("shape", Value::Ints(vec![1]))], &at)?;
        let behind = w.emit("greater_equal", two(at, len), &truth)?;
        let args = vec![
            ("x", Value::Var(all)),
            ("index", Value::Var(at)),
            ("updates", Value::Var(row)),
            ("overwrite", Value::Bool(true)),
        ];
        either(w, behind, &known, longer, |w| w.emit("scatter", args, &known))
    };
    let out = either(w, empty, &known, |_| Ok(row), more)?;
    w.bind(call.out(), out);
    Ok(true)
}

fn between(w: &mut Exporter, call: &Given) -> Result<bool> {
    let Some(axes) = call.ints("axes") else { return Ok(false) };
    let bound = |w: &mut Exporter, name: &str| match (call.sizes(name), call.id(name)) {
        (Some(sizes), _) => w.sizes(&sizes),
        (_, Some(id)) => w.var_of(id).map(Value::Var),
        _ => call.tensors(w, name),
    };
    let args = vec![
        ("input", call.tensor(w, "input")?),
        ("starts", bound(w, "starts")?),
        ("ends", bound(w, "ends")?),
        ("infer_flags", Value::Ints(vec![-1; axes.len()])),
        ("axes", Value::Ints(axes)),
        ("decrease_axis", Value::Ints(call.ints("gone").unwrap_or_default())),
    ];
    w.give("slice", args, call.out())?;
    Ok(true)
}

pub fn write(w: &mut Exporter, call: &Given) -> Result<bool> {
    match call.name() {
        "array_write" => put(w, call),
        "slice_between" => between(w, call),
        _ => Ok(false),
    }
}

/// A part of an array.
fn part(r: &mut Importer, array: VarId, from: Size, to: Size) -> Result<usize> {
    let known = r.known(array);
    let args = vec![
        ("input", Arg::Tensor(r.id(array)?)),
        ("axes", ints(vec![0])),
        ("starts", Arg::Sizes(vec![from])),
        ("ends", Arg::Sizes(vec![to])),
    ];
    r.call_new("slice", args, known)
}

/// The tensor at a place that a value names.
fn picked(r: &mut Importer, array: VarId, place: VarId, out: VarId) -> Result<()> {
    let at = Known { dims: vec![Dim::Fixed(1)], dtype: r.program.vars[place].dtype, stop_gradient: true };
    let index = Arg::Tensor(r.id(place)?);
    let index = r.call_new("reshape", vec![("x", index), ("shape", ints(vec![1]))], at)?;
    let known = r.known(array);
    let args = vec![("x", Arg::Tensor(r.id(array)?)), ("index", Arg::Tensor(index)), ("axis", plain(Plain::Int(0)))];
    let cut = r.call_new("index_select", args, known)?;
    r.call("squeeze", vec![("x", Arg::Tensor(cut)), ("axis", ints(vec![0]))], &[out])
}

/// The tensor at a place, which must be there; from the end if it is negative.
fn at(r: &mut Importer, array: VarId, place: i64, out: VarId) -> Result<()> {
    let args = vec![("x", Arg::Tensor(r.id(array)?)), ("index", plain(Plain::List(vec![Plain::Int(place)])))];
    r.call("getitem", args, &[out])
}

fn written(r: &mut Importer, op: &Op) -> Result<()> {
    let (array, x) = (tensor(r, op, "array")?, tensor(r, op, "x")?);
    let place = op.var("i")?;
    let Arg::Tensor(id) = array else { unreachable!("it is a tensor") };
    let index = match r.extents_of(place) {
        Some([size]) if size.as_extent() == Some((id, 0)) => plain(Plain::None),
        _ => Arg::Tensor(r.id(place)?),
    };
    let output = r.define(op.first_result()?);
    let args = vec![array, x, index];
    r.graph.calls.push(Call { op: &WRITE, args, outputs: vec![output], no_grad: false, source: None });
    Ok(())
}

/// The tensors side by side, along an axis of their own or one that they have, and how many each adds to it.
fn joined(r: &mut Importer, op: &Op) -> Result<bool> {
    let (array, stack) = (op.var("x")?, op.bool("use_stack", false));
    let id = r.id(array)?;
    let mut known = r.known(array);
    let (out, rank) = (op.first_result()?, known.dims.len() as i64);
    let (axis, own) = (op.int("axis").unwrap_or(0), rank - i64::from(!stack));
    let axis = if axis < 0 { axis.saturating_add(own) } else { axis };
    if !(0..own).contains(&axis) {
        return Ok(false);
    }
    let to = |axis: i64| vec![("x", Arg::Tensor(id)), ("source", ints(vec![0])), ("destination", ints(vec![axis]))];
    if stack {
        r.call("moveaxis", to(axis), &[out])?;
    } else {
        known.dims[..=axis as usize].rotate_left(1);
        let moved = r.call_new("moveaxis", to(axis), known)?;
        let axes = [("start_axis", axis), ("stop_axis", axis + 1)].map(|(n, a)| (n, plain(Plain::Int(a))));
        r.call("flatten", [vec![("x", Arg::Tensor(moved))], axes.to_vec()].concat(), &[out])?;
    }
    if let Some(&counts) = op.results("out_index").first() {
        let each = if stack { plain(Plain::Int(1)) } else { Arg::Size(Size::extent(id, axis as usize + 1)) };
        let dtype = plain(Plain::DType(DType::Int32));
        let args = vec![("shape", Arg::Sizes(vec![length(id, 0)])), ("fill_value", each), ("dtype", dtype)];
        r.call("full", args, &[counts])?;
    }
    Ok(true)
}

/// The tensor at a place, and the array without it.
fn popped(r: &mut Importer, op: &Op) -> Result<()> {
    let (array, index) = (op.var("input")?, op.int("index").unwrap_or(-1));
    let id = r.id(array)?;
    at(r, array, index, op.result("out")?)?;
    let next =
        |i: i64| if index < 0 { length(id, index.saturating_add(i)) } else { Size::fixed(index.saturating_add(i)) };
    let (before, behind) = (part(r, array, Size::fixed(0), next(0))?, part(r, array, next(1), length(id, 0))?);
    let args = vec![("x", Arg::Tensors(vec![before, behind])), ("axis", plain(Plain::Int(0)))];
    r.call("concat", args, &[op.result("array_out")?])
}

pub fn read(r: &mut Importer, op: &Op) -> Result<bool> {
    match op.schema.name {
        "create_array" => {
            let out = op.first_result()?;
            let var = &r.program.vars[out];
            let shape = var.dims.iter().map(|&d| d.max(0)).collect::<Vec<_>>();
            let dtype = plain(Plain::DType(var.dtype));
            let args = vec![("shape", ints(shape)), ("fill_value", plain(Plain::Int(0))), ("dtype", dtype)];
            r.call("full", args, &[out])?;
        }
        "array_length" => {
            let id = r.id(op.var("x")?)?;
            r.follow(op.first_result()?, length(id, 0));
        }
        "array_read" => picked(r, op.var("array")?, op.var("i")?, op.first_result()?)?,
        "array_write_" => written(r, op)?,
        "array_to_tensor" => return joined(r, op),
        "array_pop" => popped(r, op)?,
        "slice_array" => {
            let args = vec![
                ("input", tensor(r, op, "input")?),
                ("axes", ints(vec![0])),
                ("starts", r.sizes(op, "starts")?),
                ("ends", r.sizes(op, "ends")?),
            ];
            r.call("slice", args, &[op.first_result()?])?;
        }
        "slice_array_dense" => match (op.get("starts"), r.sizes(op, "starts")) {
            (_, Ok(Arg::Plain(Plain::Ints(place)))) if place.len() == 1 => {
                at(r, op.var("input")?, place[0], op.first_result()?)?;
            }
            (Some(_), _) => picked(r, op.var("input")?, op.var("starts")?, op.first_result()?)?,
            _ => return Ok(false),
        },
        _ => return Ok(false),
    }
    Ok(true)
}
