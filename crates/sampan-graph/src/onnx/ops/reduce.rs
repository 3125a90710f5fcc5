//! Sums, means and extremes along axes.

use crate::given::Given;
use crate::graph::Id;
use crate::onnx::eval::Item;
use crate::onnx::export::Writer;
use crate::onnx::node::{Call, one, op};
use sampan_core::{DType, Result, Tensor, Value};
use sampan_io::onnx::model::Attr;

/// What is reduced, over which axes.
fn reduced(c: &Call, x: &Tensor, ours: &str) -> Result<Tensor> {
    let axes = c.numbers_or("axes", 1)?.unwrap_or_default();
    let keep = c.int("keepdims", 1) != 0;
    if axes.is_empty() && c.flag("noop_with_empty_axes") {
        return Ok(x.clone());
    }
    let axes = match axes.is_empty() {
        true => (0..x.ndim() as i64).collect(),
        false => axes,
    };
    if x.ndim() == 0 {
        return Ok(x.clone());
    }
    if x.numel() == 0 && matches!(ours, "max" | "min") {
        return empty_extreme(c, x, &axes, keep, ours == "max");
    }
    let y = match x.dtype() {
        DType::Bool if matches!(ours, "max" | "min") => {
            let name = if ours == "max" { "any" } else { "all" };
            return op!(name, x, axes, keep);
        }
        _ => op!(ours, x; axis = axes, keepdim = keep)?,
    };
    if y.dtype() == x.dtype() { Ok(y) } else { op!("cast", y, x.dtype()) }
}

/// The largest of nothing is the smallest number there is.
fn empty_extreme(c: &Call, x: &Tensor, axes: &[i64], keep: bool, max: bool) -> Result<Tensor> {
    let mut shape = x.shape().iter().map(|&n| Some(n as i64)).collect::<Vec<_>>();
    for &a in axes {
        shape[c.axis(a, x.ndim())?] = if keep { Some(1) } else { None };
    }
    let shape = shape.into_iter().flatten().collect::<Vec<_>>();
    let value = if max { f64::NEG_INFINITY } else { f64::INFINITY };
    op!("full", shape, value, x.dtype())
}

fn arg(c: &Call, ours: &str) -> Result<Tensor> {
    let x = c.x(0)?;
    let (axis, keep) = (c.axis(c.int("axis", 0), x.ndim())?, c.int("keepdims", 1) != 0);
    if !c.flag("select_last_index") {
        return op!(ours, x, axis, keep);
    }
    let last = op!(ours, op!("flip", x, [axis as i64])?, axis, keep)?;
    op!("add", op!("neg", last)?, x.shape()[axis] as i64 - 1)
}

fn cumulative(c: &Call) -> Result<Tensor> {
    let x = c.x(0)?;
    let axis = c.axis(c.number(1)? as i64, x.ndim())? as i64;
    let (exclusive, reverse) = (c.flag("exclusive"), c.flag("reverse"));
    let mut y = if reverse { op!("flip", x, [axis])? } else { x.clone() };
    if exclusive {
        // One step later, beginning with nothing.
        let n = x.shape()[axis as usize] as i64;
        let mut pads = vec![0; 2 * x.ndim()];
        pads[2 * axis as usize] = 1;
        y = op!("slice", op!("pad", y, pads)?, [axis], [0i64], [n])?;
    }
    y = op!("cumsum", y, axis)?;
    if reverse { op!("flip", y, [axis]) } else { Ok(y) }
}

pub fn read(c: &Call) -> Result<Option<Vec<Item>>> {
    let x = || c.x(0);
    one(match c.node.op.as_str() {
        "ReduceSum" => reduced(c, x()?, "sum")?,
        "ReduceMean" => reduced(c, x()?, "mean")?,
        "ReduceMax" => reduced(c, x()?, "max")?,
        "ReduceMin" => reduced(c, x()?, "min")?,
        "ReduceProd" => reduced(c, x()?, "prod")?,
        "ReduceL1" => reduced(c, &op!("abs", x()?)?, "sum")?,
        "ReduceSumSquare" => reduced(c, &op!("multiply", x()?, x()?)?, "sum")?,
        "ReduceL2" => {
            let dtype = x()?.dtype();
            let wide = if dtype.is_float() { x()?.clone() } else { op!("cast", x()?, DType::Float64)? };
            let y = op!("sqrt", reduced(c, &op!("multiply", &wide, &wide)?, "sum")?)?;
            if dtype == y.dtype() { y } else { op!("cast", y, dtype)? }
        }
        "ReduceLogSum" => op!("log", reduced(c, x()?, "sum")?)?,
        "ReduceLogSumExp" if x()?.numel() == 0 => op!("log", reduced(c, x()?, "sum")?)?,
        "ReduceLogSumExp" => reduced(c, x()?, "logsumexp")?,
        "ArgMax" => arg(c, "argmax")?,
        "ArgMin" => arg(c, "argmin")?,
        "CumSum" => cumulative(c)?,
        _ => return Ok(None),
    })
}

/// Our reductions, and ONNX's.
const REDUCTIONS: [(&str, &str); 6] = [
    ("sum", "ReduceSum"),
    ("mean", "ReduceMean"),
    ("max", "ReduceMax"),
    ("min", "ReduceMin"),
    ("prod", "ReduceProd"),
    ("logsumexp", "ReduceLogSumExp"),
];

/// Adds a reduction over axes, or over all: these are an input in later versions.
pub(super) fn reduce(w: &mut Writer, theirs: &str, x: &str, axes: Option<&[i64]>, keep: bool) -> Result<String> {
    let mut attrs = vec![("keepdims", Attr::Int(i64::from(keep)))];
    let mut inputs = vec![x.to_string()];
    if let Some(axes) = axes {
        if theirs == "ReduceSum" || w.opset() >= 18 {
            inputs.push(w.ints(axes)?);
        } else {
            attrs.push(("axes", Attr::Ints(axes.to_vec())));
        }
    }
    Ok(w.node(theirs, inputs, attrs))
}

/// Variances and deviations, by their means.
fn spread(w: &mut Writer, call: &Given, id: Id, axes: Option<&[i64]>, keep: bool) -> Result<Option<String>> {
    let known = w.known(id).clone();
    let rank = known.dims.len() as i64;
    let extent = |a: i64| known.dims.get(usize::try_from(if a < 0 { a + rank } else { a }).ok()?)?.fixed();
    let over = axes.map_or_else(|| (0..rank).collect(), <[i64]>::to_vec);
    let count = over.iter().map(|&a| extent(a)).product::<Option<usize>>().map(|n| n as f64);
    let correction = match call.plain("unbiased") {
        Some(Value::Bool(b)) => f64::from(u8::from(*b)),
        _ => call.float("correction").unwrap_or(1.0),
    };
    let Some(n) = count.filter(|n| *n > correction && known.dtype.is_float()) else { return Ok(None) };
    let x = w.name(id)?;
    let mean = reduce(w, "ReduceMean", &x, axes, true)?;
    let apart = w.op("Sub", &[&x, &mean]);
    let square = w.op("Mul", &[&apart, &apart]);
    let (sum, n) = (reduce(w, "ReduceSum", &square, axes, keep)?, w.number(n - correction, known.dtype)?);
    let var = w.op("Div", &[&sum, &n]);
    Ok(Some(if call.name() == "std" { w.op("Sqrt", &[&var]) } else { var }))
}

pub fn write(w: &mut Writer, call: &Given) -> Result<bool> {
    let Some(id) = call.id("x") else { return Ok(false) };
    let (name, out) = (call.name(), w.known(call.out()).clone());
    let axes = match call.arg("axis") {
        None => None,
        Some(_) => match call.ints("axis") {
            Some(axes) => Some(axes).filter(|a| !a.is_empty()),
            None => return Ok(false),
        },
    };
    let keep = call.bool("keepdim");
    if let Some((_, theirs)) = REDUCTIONS.iter().find(|(ours, _)| *ours == name) {
        if out.dtype.is_complex() || w.known(id).dtype.is_complex() {
            return Ok(false);
        }
        let x = w.cast_id(id, out.dtype)?;
        let y = reduce(w, theirs, &x, axes.as_deref(), keep)?;
        w.bind(call.out(), y);
        return Ok(true);
    }
    let y = match name {
        "any" | "all" => {
            let x = w.cast_id(id, DType::Bool)?;
            let x = w.cast(x, DType::Bool, DType::Int32);
            // Of nothing, too: none is true, and all are.
            let theirs = if name == "any" { "ReduceSum" } else { "ReduceProd" };
            let y = reduce(w, theirs, &x, axes.as_deref(), keep)?;
            w.cast(y, DType::Int32, DType::Bool)
        }
        "argmax" | "argmin" => {
            let theirs = if name == "argmax" { "ArgMax" } else { "ArgMin" };
            let mut x = w.name(id)?;
            let axis = match axes.as_deref() {
                Some([axis]) => *axis,
                None if !keep => {
                    let shape = w.ints(&[-1])?;
                    x = w.op("Reshape", &[&x, &shape]);
                    0
                }
                _ => return Ok(false),
            };
            let y = w.node(theirs, vec![x], vec![("axis", Attr::Int(axis)), ("keepdims", Attr::Int(i64::from(keep)))]);
            w.cast(y, DType::Int64, out.dtype)
        }
        "vector_norm" => {
            let theirs = match call.float("p") {
                Some(1.0) => "ReduceL1",
                Some(2.0) => "ReduceL2",
                _ => return Ok(false),
            };
            if w.known(id).dtype.is_complex() {
                return Ok(false);
            }
            let x = w.cast_id(id, out.dtype)?;
            reduce(w, theirs, &x, axes.as_deref(), keep)?
        }
        "std" | "var" => match spread(w, call, id, axes.as_deref(), keep)? {
            Some(y) => y,
            None => return Ok(false),
        },
        "cumsum" if w.known(id).dims.is_empty() && axes.is_some() => {
            let x = w.cast_id(id, out.dtype)?;
            w.op("Identity", &[&x])
        }
        "cumsum" => {
            let x = w.cast_id(id, out.dtype)?;
            let (x, axis) = match axes.as_deref() {
                Some([axis]) => (x, *axis),
                None => {
                    let shape = w.ints(&[-1])?;
                    (w.op("Reshape", &[&x, &shape]), 0)
                }
                _ => return Ok(false),
            };
            let axis = w.number(axis as f64, DType::Int64)?;
            w.op("CumSum", &[&x, &axis])
        }
        _ => return Ok(false),
    };
    w.bind(call.out(), y);
    Ok(true)
}
