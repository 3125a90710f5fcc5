//! Tensors with more around them.

use crate::given::Given;
use crate::graph::Id;
use crate::onnx::eval::Item;
use crate::onnx::export::Writer;
use crate::onnx::node::{Call, one, op};
use sampan_core::{Result, Tensor};
use sampan_io::onnx::model::Attr;

/// Pads by the lists of a node: begins of all axes, then ends. What is negative is cut off.
pub(super) fn padded(x: &Tensor, begins: &[i64], ends: &[i64], mode: &str, value: f64) -> Result<Tensor> {
    let mut x = x.clone();
    for axis in 0..x.ndim() {
        let n = x.shape()[axis] as i64;
        let (from, to) = ((-begins[axis]).max(0), n - (-ends[axis]).max(0));
        if (from, to) != (0, n) {
            x = op!("slice", &x, [axis as i64], [from], [to])?;
        }
    }
    let pads = begins.iter().zip(ends).flat_map(|(b, e)| [*b.max(&0), *e.max(&0)]).collect::<Vec<_>>();
    if pads.iter().all(|p| *p == 0) {
        return Ok(x);
    }
    if mode == "constant" {
        return op!("pad", &x, pads, "constant", value);
    }
    let ours = match mode {
        "edge" => "replicate",
        "wrap" => "circular",
        other => other,
    };
    let outer = pads.len().min(4);
    if x.ndim() == 4 && x.dtype().is_float() && pads[..outer].iter().all(|p| *p == 0) && mode != "wrap" {
        return op!("pad", &x, vec![pads[6], pads[7], pads[4], pads[5]], ours; data_format = "NCHW");
    }
    for axis in 0..x.ndim() {
        let (n, begin, end) = (x.shape()[axis] as i64, pads[2 * axis], pads[2 * axis + 1]);
        if begin + end == 0 {
            continue;
        }
        let place = |i: i64| match mode {
            "edge" => i.clamp(0, n - 1),
            "wrap" => i.rem_euclid(n),
            _ if n == 1 => 0,
            _ => {
                let around = i.rem_euclid(2 * (n - 1));
                around.min(2 * (n - 1) - around)
            }
        };
        let places = (-begin..n + end).map(place).collect::<Vec<_>>();
        x = op!("index_select", &x, Tensor::try_from_slice(&places, [places.len()])?, axis)?;
    }
    Ok(x)
}

fn pad(c: &Call) -> Result<Tensor> {
    let x = c.x(0)?;
    let old = c.ints("pads").or_else(|| c.ints("paddings"));
    let pads = old.map_or_else(|| c.numbers(1), Ok)?;
    let value = if c.maybe(2).is_some() { c.number(2)? } else { c.float("value", 0.0) };
    let axes = match c.maybe(3) {
        Some(_) => c.numbers(3)?.into_iter().map(|a| c.axis(a, x.ndim())).collect::<Result<Vec<_>>>()?,
        None => (0..x.ndim()).collect(),
    };
    if pads.len() != 2 * axes.len() {
        return Err(c.wrong(format!("{} pads for {} axes", pads.len(), axes.len())));
    }
    let (mut begins, mut ends) = (vec![0; x.ndim()], vec![0; x.ndim()]);
    for (i, &axis) in axes.iter().enumerate() {
        (begins[axis], ends[axis]) = (pads[i], pads[axes.len() + i]);
    }
    padded(x, &begins, &ends, &c.text("mode", "constant"), value)
}

fn center_crop_pad(c: &Call) -> Result<Tensor> {
    let (x, wanted) = (c.x(0)?, c.numbers(1)?);
    let axes = c.ints("axes").unwrap_or_else(|| (0..x.ndim() as i64).collect());
    let (mut begins, mut ends) = (vec![0; x.ndim()], vec![0; x.ndim()]);
    for (axis, n) in axes.into_iter().zip(wanted) {
        let axis = c.axis(axis, x.ndim())?;
        let more = n - x.shape()[axis] as i64;
        begins[axis] = if more >= 0 { more / 2 } else { -((-more) / 2) };
        ends[axis] = more - begins[axis];
    }
    padded(x, &begins, &ends, "constant", 0.0)
}

pub fn read(c: &Call) -> Result<Option<Vec<Item>>> {
    one(match c.node.op.as_str() {
        "Pad" => pad(c)?,
        "CenterCropPad" => center_crop_pad(c)?,
        _ => return Ok(None),
    })
}

/// Pads as ONNX has them: begins of all axes, then ends; and the mode.
fn write_pad(w: &mut Writer, call: &Given, id: Id) -> Result<Option<String>> {
    let (Some(pads), mode) = (call.ints("pad"), call.text("mode").unwrap_or("constant")) else { return Ok(None) };
    let rank = w.known(id).dims.len();
    let last = call.text("data_format").is_some_and(|f| f.ends_with('C'));
    let (mut begins, mut ends) = (vec![0; rank], vec![0; rank]);
    if pads.len() == 2 * rank && mode == "constant" {
        for (i, pair) in pads.chunks(2).enumerate() {
            let axis = if call.bool("pad_from_left_axis") { i } else { rank - 1 - i };
            (begins[axis], ends[axis]) = (pair[0], pair[1]);
        }
    } else {
        // From the last axis on.
        let end = if last { rank - 1 } else { rank };
        for (i, pair) in pads.chunks(2).enumerate() {
            let Some(axis) = end.checked_sub(i + 1) else { return Ok(None) };
            (begins[axis], ends[axis]) = (pair[0], *pair.get(1).unwrap_or(&0));
        }
    }
    let mode = match mode {
        "constant" | "reflect" => mode,
        "replicate" => "edge",
        "circular" if w.opset() >= 19 => "wrap",
        _ => return Ok(None),
    };
    let (x, dtype) = (w.name(id)?, w.known(id).dtype);
    let mut inputs = vec![x, w.ints(&[begins, ends].concat())?];
    if mode == "constant" {
        inputs.push(w.number(call.float("value").unwrap_or(0.0), dtype)?);
    }
    Ok(Some(w.node("Pad", inputs, vec![("mode", Attr::Text(mode.into()))])))
}

pub fn write(w: &mut Writer, call: &Given) -> Result<bool> {
    let (Some(id), "pad") = (call.id("x"), call.name()) else { return Ok(false) };
    match write_pad(w, call, id)? {
        Some(y) => w.bind(call.out(), y),
        None => return Ok(false),
    }
    Ok(true)
}
