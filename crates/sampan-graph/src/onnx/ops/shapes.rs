//! The same elements in other shapes and orders, and several tensors as one.

use crate::given::Given;
use crate::graph::{Dim, Id, Size};
use crate::onnx::eval::Item;
use crate::onnx::export::Writer;
use crate::onnx::node::{Call, many, one, op, shape_of};
use sampan_core::{DType, Result, Tensor};
use sampan_io::onnx::model::Attr;
use sampan_kernels::buffer::Held;

fn reshape(c: &Call) -> Result<Tensor> {
    let x = c.x(0)?;
    let shape = c.numbers_or("shape", 1)?.ok_or_else(|| c.wrong("there is no shape"))?;
    let keep = !c.flag("allowzero");
    let extent = |(i, &n): (usize, &i64)| match n {
        0 if keep => x.shape().get(i).map(|&n| n as i64).ok_or_else(|| c.wrong("a 0 beyond the input's axes")),
        n => Ok(n),
    };
    let mut shape = shape.iter().enumerate().map(extent).collect::<Result<Vec<_>>>()?;
    if let (Some(at), true) = (shape.iter().position(|n| *n == -1), x.numel() == 0) {
        shape[at] = 0;
    }
    op!("reshape", x, shape)
}

fn flatten(c: &Call) -> Result<Tensor> {
    let x = c.x(0)?;
    let axis = c.int("axis", 1);
    let at = if axis < 0 { axis + x.ndim() as i64 } else { axis }.max(0) as usize;
    let (rows, rest) = x.shape().split_at(at.min(x.ndim()));
    let count = |n: &[usize]| n.iter().product::<usize>() as i64;
    if x.numel() == 0 || x.ndim() == 0 {
        return op!("reshape", x, vec![count(rows), count(rest)]);
    }
    match at {
        1 if x.ndim() > 2 => op!("flatten", x, 1i64),
        0 => op!("reshape", x, [1i64, -1]),
        _ => op!("reshape", x, vec![-1, count(rest)]),
    }
}

fn unsqueeze(c: &Call) -> Result<Tensor> {
    let x = c.x(0)?;
    let axes = c.numbers_or("axes", 1)?.unwrap_or_default();
    let rank = x.ndim() + axes.len();
    let mut axes = axes.iter().map(|&a| c.axis(a, rank).map(|a| a as i64)).collect::<Result<Vec<_>>>()?;
    axes.sort_unstable();
    op!("unsqueeze", x, axes)
}

fn squeeze(c: &Call) -> Result<Tensor> {
    let x = c.x(0)?;
    match c.numbers_or("axes", 1)? {
        None => op!("squeeze", x),
        Some(axes) => {
            let axes = axes.iter().map(|&a| c.axis(a, x.ndim()).map(|a| a as i64)).collect::<Result<Vec<_>>>()?;
            op!("squeeze", x, axes)
        }
    }
}

fn transpose(c: &Call) -> Result<Tensor> {
    let x = c.x(0)?;
    let reversed = || (0..x.ndim() as i64).rev().collect();
    let perm = c.ints("perm").unwrap_or_else(reversed);
    op!("transpose", x, perm)
}

fn split(c: &Call) -> Result<Vec<Tensor>> {
    let x = c.x(0)?;
    let axis = c.axis(c.int("axis", 0), x.ndim())?;
    let (extent, n) = (x.shape()[axis] as i64, c.node.outputs.len() as i64);
    let sizes = c.numbers_or("split", 1)?.unwrap_or_else(|| {
        // All parts alike, but for the last.
        let n = c.int("num_outputs", n).max(1);
        let part = (extent + n - 1) / n;
        (0..n).map(|i| part.min(extent - i * part).max(0)).collect()
    });
    split_at(x, &sizes, axis)
}

/// Parts of given lengths along an axis.
pub(super) fn split_at(x: &Tensor, sizes: &[i64], axis: usize) -> Result<Vec<Tensor>> {
    // There may be as many as there are numbers in a tensor.
    let _held = Held::around(sizes.len())?;
    if sizes.len() > 1 && sizes.iter().all(|n| *n > 0) {
        return crate::onnx::node::call("split", vec![x.into(), sizes.into(), axis.into()], vec![]);
    }
    let mut at = 0;
    let part = |n: &i64| {
        let (begin, end) = (at, at + n);
        at = end;
        op!("slice", x, [axis as i64], [begin], [end])
    };
    sizes.iter().map(part).collect()
}

fn expand(c: &Call) -> Result<Tensor> {
    let (x, shape) = (c.x(0)?, c.numbers(1)?);
    expanded(x, &shape)
}

/// A tensor spread over a shape; extents of 1 in that leave the tensor's own.
pub(super) fn expanded(x: &Tensor, shape: &[i64]) -> Result<Tensor> {
    let rank = x.ndim().max(shape.len());
    let own = std::iter::repeat_n(1, rank - x.ndim()).chain(shape_of(x));
    let wanted = std::iter::repeat_n(1, rank - shape.len()).chain(shape.iter().copied());
    let shape = own.zip(wanted).map(|(a, b)| if b == 1 { a } else { b }).collect::<Vec<_>>();
    op!("expand", x, shape)
}

/// Channels as blocks of pixels, or pixels as channels.
fn depth(c: &Call, to_space: bool) -> Result<Tensor> {
    let x = c.x(0)?;
    let b = c.int("blocksize", 1);
    let [n, ch, h, w] = shape_of(x)[..] else { return Err(c.wrong("it takes a batch of images")) };
    if b < 1 {
        return Err(c.wrong(format!("a blocksize of {b}")));
    }
    if !to_space {
        let y = op!("transpose", op!("reshape", x, [n, ch, h / b, b, w / b, b])?, [0i64, 3, 5, 1, 2, 4])?;
        return op!("reshape", y, [n, ch * b * b, h / b, w / b]);
    }
    let out = ch / (b * b);
    let y = match c.text("mode", "DCR").as_str() {
        "CRD" => return op!("pixel_shuffle", x, b),
        _ => op!("transpose", op!("reshape", x, [n, b, b, out, h, w])?, [0i64, 3, 4, 1, 5, 2])?,
    };
    op!("reshape", y, [n, out, h * b, w * b])
}

fn shape(c: &Call) -> Result<Tensor> {
    let all = shape_of(c.x(0)?);
    let rank = all.len() as i64;
    let at = |n: i64| (if n < 0 { n + rank } else { n }).clamp(0, rank) as usize;
    let (start, end) = (at(c.int("start", 0)), at(c.int("end", rank)));
    let part = all.get(start..end).unwrap_or(&[]);
    Tensor::try_from_slice(part, [part.len()])
}

pub fn read(c: &Call) -> Result<Option<Vec<Item>>> {
    one(match c.node.op.as_str() {
        "Reshape" => reshape(c)?,
        "Flatten" => flatten(c)?,
        "Squeeze" => squeeze(c)?,
        "Unsqueeze" => unsqueeze(c)?,
        "Transpose" => transpose(c)?,
        "Concat" => {
            let all = c.tensors()?;
            if all.len() == 1 { all[0].clone() } else { op!("concat", all, c.int("axis", 1))? }
        }
        "Split" => return many(split(c)?),
        "Expand" => expand(c)?,
        "Tile" if c.inputs.len() == 3 => {
            let (x, times, axis) = (c.x(0)?, c.number(1)? as i64, c.number(2)? as i64);
            let mut all = vec![1; x.ndim()];
            all[c.axis(axis, x.ndim())?] = times;
            op!("tile", x, all)?
        }
        "Tile" => op!("tile", c.x(0)?, c.numbers(1)?)?,
        "DepthToSpace" => depth(c, true)?,
        "SpaceToDepth" => depth(c, false)?,
        "Shape" => shape(c)?,
        "Size" => Tensor::try_from_slice(&[c.x(0)?.numel() as i64], [0usize; 0])?.try_cast(DType::Int64)?,
        _ => return Ok(None),
    })
}

/// The pieces that a call gives have these names.
fn bind_all(w: &mut Writer, call: &Given, names: Vec<String>) {
    for (&id, name) in call.0.outputs.iter().zip(names) {
        w.bind(id, name);
    }
}

/// The shape of a result in terms of that of its input: 0 keeps an extent, one -1 is found.
fn write_reshape(w: &mut Writer, call: &Given, id: Id) -> Result<bool> {
    let (from, to) = (w.known(id).clone(), w.known(call.out()).clone());
    let kept = |i: usize| matches!((from.dims.get(i), to.dims[i]), (Some(Dim::Free(a)), Dim::Free(b)) if *a == b);
    let open = (0..to.dims.len()).filter(|&i| to.dims[i].fixed().is_none() && !kept(i)).count();
    let zero = to.dims.contains(&Dim::Fixed(0));
    let shape = match (open, call.sizes("shape")) {
        (0 | 1, _) if !zero => {
            let of = |(i, d): (usize, &Dim)| d.fixed().map_or(if kept(i) { 0 } else { -1 }, |n| n as i64);
            w.ints(&to.dims.iter().enumerate().map(of).collect::<Vec<_>>())?
        }
        (_, Some(sizes)) => w.sizes(&sizes)?,
        _ => return Ok(false),
    };
    let x = w.name(id)?;
    let y = match (zero, w.opset() >= 14) {
        (false, _) => w.op("Reshape", &[&x, &shape]),
        (true, true) => w.node("Reshape", vec![x, shape], vec![("allowzero", Attr::Int(1))]),
        (true, false) => return Ok(false),
    };
    w.bind(call.out(), y);
    Ok(true)
}

fn write_split(w: &mut Writer, call: &Given, id: Id) -> Result<bool> {
    let axis = call.int("axis").unwrap_or(0);
    let rank = w.known(id).dims.len() as i64;
    let at = usize::try_from(if axis < 0 { axis + rank } else { axis }).unwrap_or(0);
    let alone = matches!(call.name(), "unbind" | "unstack");
    let of = |&id: &Id| if alone { Some(1) } else { w.known(id).dims.get(at)?.fixed().map(|n| n as i64) };
    let sizes = call.0.outputs.iter().map(of).collect::<Option<Vec<_>>>();
    let whole = w.known(id).dims.get(at).and_then(|d| d.fixed()).map(|n| n as i64);
    if sizes.as_ref().is_some_and(|s| whole.is_some_and(|n| s.iter().sum::<i64>() != n)) {
        // Parts that overlap.
        return Ok(false);
    }
    let (x, n) = (w.name(id)?, call.0.outputs.len());
    let attrs = vec![("axis", Attr::Int(axis))];
    let mut names = match sizes {
        Some(sizes) => {
            let sizes = w.ints(&sizes)?;
            w.nodes("Split", vec![x, sizes], attrs, n)
        }
        None if w.opset() >= 18 => {
            let attrs = vec![("axis", Attr::Int(axis)), ("num_outputs", Attr::Int(n as i64))];
            w.nodes("Split", vec![x], attrs, n)
        }
        None => w.nodes("Split", vec![x], attrs, n),
    };
    if alone {
        let axes = w.ints(&[axis])?;
        names = names.into_iter().map(|n| w.op("Squeeze", &[&n, &axes])).collect();
    }
    bind_all(w, call, names);
    Ok(true)
}

pub fn write(w: &mut Writer, call: &Given) -> Result<bool> {
    let out = w.known(call.out()).clone();
    if matches!(call.name(), "concat" | "stack") {
        let ids = call.ids("x");
        let axis = call.int("axis").unwrap_or(0);
        let mut names = Vec::new();
        for id in ids {
            let name = w.cast_id(id, out.dtype)?;
            names.push(if call.name() == "stack" {
                let axes = w.ints(&[axis])?;
                w.op("Unsqueeze", &[&name, &axes])
            } else {
                name
            });
        }
        let y = w.node("Concat", names, vec![("axis", Attr::Int(axis))]);
        w.bind(call.out(), y);
        return Ok(true);
    }
    let Some(id) = call.id("x") else { return Ok(false) };
    let (x, from) = (w.name(id)?, w.known(id).clone());
    let perm = |w: &mut Writer, perm: Vec<i64>| w.node("Transpose", vec![x.clone()], vec![("perm", Attr::Ints(perm))]);
    let y = match call.name() {
        "reshape" | "reshape_to" | "flatten" | "view_as" | "unflatten" => return write_reshape(w, call, id),
        "transpose" => {
            let Some(order) = call.ints("perm") else { return Ok(false) };
            let rank = from.dims.len() as i64;
            perm(w, order.into_iter().map(|a| if a < 0 { a + rank } else { a }).collect())
        }
        "t" => perm(w, (0..from.dims.len() as i64).rev().collect()),
        "squeeze" => {
            let own = || (0..from.dims.len() as i64).filter(|&i| from.dims[i as usize] == Dim::Fixed(1)).collect();
            let rank = from.dims.len() as i64;
            let Some(axes) = call.arg("axis").map_or_else(|| Some(own()), |_| call.ints("axis")) else {
                return Ok(false);
            };
            // An axis that is no one stays, as it does here.
            let at = |a: &i64| from.dims.get(usize::try_from(if *a < 0 { a + rank } else { *a }).ok()?);
            let axes = axes.into_iter().filter(|a| at(a) == Some(&Dim::Fixed(1))).collect::<Vec<_>>();
            if axes.is_empty() {
                w.op("Identity", &[&x])
            } else {
                let axes = w.ints(&axes)?;
                w.op("Squeeze", &[&x, &axes])
            }
        }
        "unsqueeze" => {
            // Axes are added one after the other.
            let Some(axes) = call.ints("axis") else { return Ok(false) };
            let mut y = x.clone();
            for axis in axes {
                let axis = w.ints(&[axis])?;
                y = w.op("Unsqueeze", &[&y, &axis]);
            }
            y
        }
        "split" | "chunk" | "split_at" | "tensor_split" | "unbind" | "unstack" => return write_split(w, call, id),
        "tile" => {
            let Some(times) = call.sizes("repeat_times") else { return Ok(false) };
            let lead = times.len().saturating_sub(from.dims.len());
            let mut y = x.clone();
            if lead > 0 {
                let axes = w.ints(&(0..lead as i64).collect::<Vec<_>>())?;
                y = w.op("Unsqueeze", &[&y, &axes]);
            }
            let missing = from.dims.len().saturating_sub(times.len());
            let times = std::iter::repeat_n(Size::fixed(1), missing).chain(times).collect::<Vec<_>>();
            let times = w.sizes(&times)?;
            w.op("Tile", &[&y, &times])
        }
        "expand" | "broadcast_to" => {
            let Some(sizes) = call.sizes("shape") else { return Ok(false) };
            let own = |s: Size| if s.as_fixed() == Some(-1) { Size::fixed(1) } else { s };
            let shape = w.sizes(&sizes.into_iter().map(own).collect::<Vec<_>>())?;
            w.op("Expand", &[&x, &shape])
        }
        "expand_as" => {
            let Some(like) = call.id("y") else { return Ok(false) };
            let shape = w.shape(like)?;
            w.op("Expand", &[&x, &shape])
        }
        "flip" => {
            let Some(axes) = call.ints("axis") else { return Ok(false) };
            let n = axes.len();
            let (starts, ends) = (w.ints(&vec![i64::MAX; n])?, w.ints(&vec![i64::MIN; n])?);
            let (axes, steps) = (w.ints(&axes)?, w.ints(&vec![-1; n])?);
            w.op("Slice", &[&x, &starts, &ends, &axes, &steps])
        }
        "pixel_shuffle" if call.text("data_format").is_none_or(|f| f == "NCHW") => {
            let factor = Attr::Int(call.int("upscale_factor").unwrap_or(1));
            w.node("DepthToSpace", vec![x.clone()], vec![("blocksize", factor), ("mode", Attr::Text("CRD".into()))])
        }
        "contiguous" | "positive" => w.op("Identity", &[&x]),
        _ => return Ok(false),
    };
    w.bind(call.out(), y);
    Ok(true)
}
