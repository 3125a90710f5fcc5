//! Parts of tensors by place, and values written at places.

use super::shapes::expanded;
use crate::given::Given;
use crate::graph::{Id, Size};
use crate::index::{Bounds, OPEN};
use crate::onnx::eval::Item;
use crate::onnx::export::Writer;
use crate::onnx::node::{Call, one, op, shape_of};
use crate::record::unheard;
use sampan_core::{DType, Device, Result, Tensor};
use sampan_io::onnx::model::Attr;

/// Places counted from the end as places from 0.
fn from_zero(index: &Tensor, extent: usize) -> Result<Tensor> {
    let index = if index.dtype() == DType::Int64 { index.clone() } else { op!("cast", index, DType::Int64)? };
    if index.device() != Device::Meta {
        // Most places are written in the file, and need no further calls.
        let all = unheard(|| index.try_to_vec::<i64>())?;
        if all.iter().all(|i| *i >= 0) {
            return Ok(index);
        }
    }
    op!("where_cond", op!("less_than", &index, 0i64)?, op!("add", &index, extent)?, &index)
}

fn gather(c: &Call) -> Result<Tensor> {
    let (x, index) = (c.x(0)?, c.x(1)?);
    let axis = c.axis(c.int("axis", 0), x.ndim())?;
    if index.device() == Device::Meta && axis == 0 && x.ndim() == 2 && x.dtype().is_float() {
        // Words of a table; they are never negative.
        return op!("embedding", index, x);
    }
    let index = from_zero(index, x.shape()[axis])?;
    let flat = op!("reshape", &index, [-1i64])?;
    let found = op!("index_select", x, flat, axis)?;
    if index.ndim() == 1 {
        return Ok(found);
    }
    let mut shape = shape_of(x);
    shape.splice(axis..=axis, shape_of(&index));
    op!("reshape", found, shape)
}

fn gather_elements(c: &Call) -> Result<Tensor> {
    let (x, index) = (c.x(0)?, c.x(1)?);
    if x.ndim() == 0 {
        return Ok(x.clone());
    }
    let axis = c.axis(c.int("axis", 0), x.ndim())?;
    op!("take_along_axis", x, from_zero(index, x.shape()[axis])?, axis, false)
}

/// Rows of places, each from 0, with the number of the batch in front of each.
fn places_nd(x: &Tensor, index: &Tensor, batch: usize) -> Result<Tensor> {
    let last = index.ndim() - 1;
    let mut parts = Vec::new();
    for b in 0..batch {
        let mut shape = vec![1; index.ndim()];
        shape[b] = index.shape()[b] as i64;
        let mut whole = shape_of(index);
        whole[last] = 1;
        parts.push(op!("expand", op!("reshape", op!("arange", 0i64, shape[b], 1i64)?, shape)?, whole)?);
    }
    for i in 0..index.shape()[last] {
        let part = op!("slice", index, [last as i64], [i as i64], [i as i64 + 1])?;
        parts.push(from_zero(&part, x.shape()[batch + i])?);
    }
    if parts.len() == 1 { Ok(parts.remove(0)) } else { op!("concat", parts, last) }
}

fn gather_nd(c: &Call) -> Result<Tensor> {
    let (x, index) = (c.x(0)?, c.x(1)?);
    let batch = c.int("batch_dims", 0).max(0) as usize;
    if index.ndim() == 0 || batch + index.shape()[index.ndim() - 1] > x.ndim() {
        return Err(c.wrong("the indices do not fit the data"));
    }
    let places = index.shape()[index.ndim() - 1];
    if places == 0 {
        // All of it, at every place.
        let shape = [shape_of(index)[..index.ndim() - 1].to_vec(), shape_of(x)[batch..].to_vec()].concat();
        return op!("expand", x, shape);
    }
    op!("gather_nd", x, places_nd(x, index, batch)?)
}

fn reduction(c: &Call) -> Result<&'static str> {
    Ok(match c.text("reduction", "none").as_str() {
        "none" => "assign",
        "add" => "add",
        "mul" => "mul",
        "max" => "amax",
        "min" => "amin",
        other => return Err(c.lacking(format!("the reduction {other:?}"))),
    })
}

fn scatter_elements(c: &Call) -> Result<Tensor> {
    let (x, index, updates) = (c.x(0)?, c.x(1)?, c.x(2)?);
    let axis = c.axis(c.int("axis", 0), x.ndim())?;
    let index = from_zero(index, x.shape()[axis])?;
    op!("put_along_axis", x, index, updates, axis, reduction(c)?; broadcast = false)
}

fn scatter_nd(c: &Call) -> Result<Tensor> {
    let (x, index, updates) = (c.x(0)?, c.x(1)?, c.x(2)?);
    let reduce = reduction(c)?;
    let k = *index.shape().last().ok_or_else(|| c.wrong("indices without axes"))?;
    if k > x.ndim() {
        return Err(c.wrong("the indices do not fit the data"));
    }
    // Rows of the axes that are named, by one number each.
    let (named, rest) = x.shape().split_at(k);
    let rows = named.iter().product::<usize>() as i64;
    let width = rest.iter().product::<usize>() as i64;
    let places = places_nd(x, index, 0)?;
    let mut flat: Option<Tensor> = None;
    for (i, &n) in named.iter().enumerate() {
        let part = op!("slice", &places, [index.ndim() as i64 - 1], [i as i64], [i as i64 + 1])?;
        flat = Some(match flat {
            None => part,
            Some(f) => op!("add", op!("multiply", &f, n)?, &part)?,
        });
    }
    let flat = flat.ok_or_else(|| c.wrong("indices that name no axis"))?;
    let flat = op!("reshape", flat, [-1i64, 1])?;
    let flat = op!("expand", &flat, vec![flat.shape()[0] as i64, width])?;
    let table = op!("reshape", x, [rows, width])?;
    let updates = op!("reshape", updates, shape_of(&flat))?;
    let written = op!("put_along_axis", table, flat, updates, 0i64, reduce; broadcast = false)?;
    op!("reshape", written, shape_of(x))
}

/// Where a slice begins, where it ends and how far it steps, along one axis; all from 0, and backwards if it steps so.
fn bounds(start: i64, end: i64, step: i64, n: i64) -> (i64, i64) {
    let at = |i: i64| if i < 0 { i.saturating_add(n) } else { i };
    if step > 0 {
        (at(start).clamp(0, n), at(end).clamp(0, n))
    } else {
        (at(start).clamp(-1, n - 1), at(end).clamp(-1, n - 1))
    }
}

fn slice(c: &Call) -> Result<Tensor> {
    let x = c.x(0)?;
    let need = |v: Option<Vec<i64>>| v.ok_or_else(|| c.wrong("there are no bounds"));
    let (starts, ends) = (need(c.numbers_or("starts", 1)?)?, need(c.numbers_or("ends", 2)?)?);
    let axes = c.numbers_or("axes", 3)?.unwrap_or_else(|| (0..starts.len() as i64).collect());
    let steps = if c.maybe(4).is_some() { c.numbers(4)? } else { vec![1; starts.len()] };
    if axes.len() != starts.len() || ends.len() != starts.len() || steps.len() != starts.len() {
        return Err(c.wrong("the bounds are lists of other lengths"));
    }
    let (mut on, mut from, mut to, mut by, mut turned) = (vec![], vec![], vec![], vec![], vec![]);
    for i in 0..starts.len() {
        let axis = c.axis(axes[i], x.ndim())?;
        let n = x.shape()[axis] as i64;
        let (start, end) = bounds(starts[i], ends[i], steps[i], n);
        let step = steps[i];
        if step == 0 {
            return Err(c.wrong("a step of 0"));
        }
        on.push(axis as i64);
        if step > 0 {
            from.push(start);
            to.push(end.max(start));
            by.push(step);
        } else {
            // The same elements forwards, then turned around.
            let count = ((start - end) + -step - 1).max(0) / -step;
            let last = start + (count - 1) * step;
            from.push(if count == 0 { 0 } else { last });
            to.push(if count == 0 { 0 } else { start + 1 });
            by.push(-step);
            turned.push(axis as i64);
        }
    }
    let y = match by.iter().all(|s| *s == 1) {
        true => op!("slice", x, on, from, to)?,
        false => op!("strided_slice", x, on, from, to, by)?,
    };
    if turned.is_empty() { Ok(y) } else { op!("flip", y, turned) }
}

fn compress(c: &Call) -> Result<Tensor> {
    let (x, condition) = (c.x(0)?, c.x(1)?);
    let (x, axis) = match c.attr("axis") {
        Some(_) => (x.clone(), c.axis(c.int("axis", 0), x.ndim())?),
        None => (op!("reshape", x, [-1i64])?, 0),
    };
    op!("index_select", x, op!("reshape", op!("nonzero", condition)?, [-1i64])?, axis)
}

fn reverse_sequence(c: &Call) -> Result<Tensor> {
    let (x, lengths) = (c.x(0)?, c.x(1)?);
    let (time, batch) = (c.int("time_axis", 0) as usize, c.int("batch_axis", 1) as usize);
    if time > 1 || batch > 1 || time == batch || x.ndim() < 2 {
        return Err(c.wrong("time and batch are the first two axes"));
    }
    let along = |axis: usize, t: &Tensor| {
        let mut shape = vec![1; x.ndim()];
        shape[axis] = t.numel() as i64;
        op!("reshape", t, shape)
    };
    let steps = along(time, &op!("arange", 0i64, x.shape()[time], 1i64, DType::Int64)?)?;
    let ends = along(batch, &op!("cast", lengths, DType::Int64)?)?;
    let back = op!("subtract", op!("subtract", &ends, 1i64)?, &steps)?;
    let places = op!("where_cond", op!("less_than", &steps, &ends)?, back, steps)?;
    op!("take_along_axis", x, expanded(&places, &shape_of(x))?, time, false)
}

pub fn read(c: &Call) -> Result<Option<Vec<Item>>> {
    one(match c.node.op.as_str() {
        "Gather" => gather(c)?,
        "GatherElements" => gather_elements(c)?,
        "GatherND" => gather_nd(c)?,
        "Scatter" | "ScatterElements" => scatter_elements(c)?,
        "ScatterND" => scatter_nd(c)?,
        "Slice" => slice(c)?,
        "Compress" => compress(c)?,
        "ReverseSequence" => reverse_sequence(c)?,
        "NonZero" => op!("transpose", op!("nonzero", c.x(0)?)?, [1i64, 0])?,
        _ => return Ok(None),
    })
}

fn write_getitem(w: &mut Writer, call: &Given, id: Id) -> Result<bool> {
    let rank = w.known(id).dims.len();
    let Some(b) = Bounds::of(call, rank) else { return Ok(false) };
    let fits = |&(t, _): &(Id, i64)| w.known(t).dtype.is_int();
    if b.picks.len() > 1 || !b.picks.iter().all(fits) {
        return Ok(false);
    }
    let mut y = w.name(id)?;
    if !b.axes.is_empty() {
        let wide = |s: &Size| match s.as_fixed() {
            Some(OPEN) => Size::fixed(i64::MAX),
            Some(n) if n == -OPEN - 1 => Size::fixed(i64::MIN),
            _ => s.clone(),
        };
        let starts = w.sizes(&b.starts.iter().map(wide).collect::<Vec<_>>())?;
        let ends = w.sizes(&b.ends.iter().map(wide).collect::<Vec<_>>())?;
        let (axes, steps) = (w.ints(&b.axes)?, w.ints(&b.steps)?);
        y = w.op("Slice", &[&y, &starts, &ends, &axes, &steps]);
    }
    if !b.gone.is_empty() {
        let axes = w.ints(&b.gone)?;
        y = w.op("Squeeze", &[&y, &axes]);
    }
    for &(t, axis) in &b.picks {
        let index = w.name(t)?;
        y = w.node("Gather", vec![y, index], vec![("axis", Attr::Int(axis))]);
    }
    if !b.new.is_empty() {
        let axes = w.ints(&b.new)?;
        y = w.op("Unsqueeze", &[&y, &axes]);
    }
    w.bind(call.out(), y);
    Ok(true)
}

pub fn write(w: &mut Writer, call: &Given) -> Result<bool> {
    let id = call.id("x").or_else(|| call.id("input")).or_else(|| call.id("arr"));
    let Some(id) = id else { return Ok(false) };
    let x = w.name(id)?;
    let y = match call.name() {
        "getitem" => return write_getitem(w, call, id),
        "slice" | "strided_slice" => {
            let (Some(axes), Some(starts), Some(ends)) = (call.ints("axes"), call.sizes("starts"), call.sizes("ends"))
            else {
                return Ok(false);
            };
            let mut inputs = vec![x, w.sizes(&starts)?, w.sizes(&ends)?, w.ints(&axes)?];
            if call.name() == "strided_slice" {
                let Some(steps) = call.ints("strides") else { return Ok(false) };
                inputs.push(w.ints(&steps)?);
            }
            w.node("Slice", inputs, vec![])
        }
        "gather" | "index_select" => {
            let Some(index) = call.id("index") else { return Ok(false) };
            let column = w.known(index).dims.len() == 2;
            let mut index = w.name(index)?;
            if column {
                let flat = w.ints(&[-1])?;
                index = w.op("Reshape", &[&index, &flat]);
            }
            w.node("Gather", vec![x, index], vec![("axis", Attr::Int(call.int("axis").unwrap_or(0)))])
        }
        "embedding" => {
            let (Some(table), None) = (call.id("weight"), call.arg("max_norm")) else { return Ok(false) };
            let rows = w.known(table).dims.first().and_then(|d| d.fixed()).unwrap_or(0) as i64;
            let table = w.name(table)?;
            let y = w.op("Gather", &[&table, &x]);
            match call.int("padding_idx") {
                None => y,
                Some(i) => {
                    // Words that only fill up are nothing.
                    let (dtype, out) = (w.known(id).dtype, w.known(call.out()).dtype);
                    let filler = w.number(if i < 0 { i + rows } else { i } as f64, dtype)?;
                    let hit = w.op("Equal", &[&x, &filler]);
                    let axes = w.ints(&[-1])?;
                    let hit = w.op("Unsqueeze", &[&hit, &axes]);
                    let zero = w.number(0.0, out)?;
                    w.op("Where", &[&hit, &zero, &y])
                }
            }
        }
        "gather_nd" => {
            let Some(index) = call.id("index") else { return Ok(false) };
            let index = w.cast_id(index, DType::Int64)?;
            w.op("GatherND", &[&x, &index])
        }
        "take_along_axis" => {
            let (Some(index), Some(axis)) = (call.id("indices"), call.int("axis")) else { return Ok(false) };
            // Along the other axes as many as there are: what is spread, is not said in ONNX.
            let (own, other) = (&w.known(id).dims, &w.known(index).dims);
            let at = if axis < 0 { axis + own.len() as i64 } else { axis } as usize;
            if own.len() != other.len() || (0..own.len()).any(|i| i != at && own[i] != other[i]) {
                return Ok(false);
            }
            let index = w.name(index)?;
            w.node("GatherElements", vec![x, index], vec![("axis", Attr::Int(axis))])
        }
        "tril" | "triu" => {
            let k = w.number(call.float("diagonal").unwrap_or(0.0), DType::Int64)?;
            if w.opset() < 14 {
                return Ok(false);
            }
            w.node("Trilu", vec![x, k], vec![("upper", Attr::Int(i64::from(call.name() == "triu")))])
        }
        "nonzero" if !call.bool("as_tuple") => {
            let y = w.op("NonZero", &[&x]);
            w.node("Transpose", vec![y], vec![("perm", Attr::Ints(vec![1, 0]))])
        }
        _ => return Ok(false),
    };
    w.bind(call.out(), y);
    Ok(true)
}
