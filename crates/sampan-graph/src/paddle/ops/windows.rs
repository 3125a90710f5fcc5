//! Convolutions, pools and other sizes of images.

use super::args::{flag, ints, tensor, text};
use crate::graph::{Arg, Dim, Known};
use crate::paddle::export::{Exporter, Given};
use crate::paddle::import::Importer;
use crate::paddle::program::{Op, Value, VarId};
use sampan_core::{DType, Result, Value as Plain};

/// Adds an axis of one before the last, so that a sequence becomes an image.
fn widen(w: &mut Exporter, x: VarId, dtype: DType) -> Result<VarId> {
    let mut like = w.like(x, dtype);
    like.dims.insert(2, Dim::Fixed(1));
    w.emit("unsqueeze", vec![("x", Value::Var(x)), ("axis", Value::Ints(vec![2]))], &like)
}

fn widened(known: &Known) -> Known {
    let mut known = known.clone();
    known.dims.insert(2, Dim::Fixed(1));
    known
}

fn conv(w: &mut Exporter, call: &Given, n: usize, transposed: bool) -> Result<bool> {
    let (Some(x), Some(f)) = (call.id("x"), call.id("weight")) else { return Ok(false) };
    let out = w.known(call.out()).clone();
    let format = call.text("data_format").unwrap_or("NCHW").to_string();
    let first = format.starts_with("NC");
    let (Some((mut pads, algorithm)), Some(mut strides)) = (call.padding(n), call.each("stride", n, 1)) else {
        return Ok(false);
    };
    let Some(mut dilations) = call.each("dilation", n, 1) else { return Ok(false) };
    if call.arg("output_size").is_some() || (n == 1 && !first) {
        return Ok(false);
    }
    let mut extra = call.each("output_padding", n, 0).unwrap_or_default();
    if extra.iter().all(|e| *e == 0) {
        extra.clear();
    }
    let (mut x, mut f) = (w.var_of(x)?, w.var_of(f)?);
    let mut known = out.clone();
    if n == 1 {
        (x, f) = (widen(w, x, out.dtype)?, widen(w, f, out.dtype)?);
        known = widened(&out);
        strides.insert(0, 1);
        dilations.insert(0, 1);
        let zeros = vec![0; pads.len()];
        pads = [zeros, pads].concat();
        if !extra.is_empty() {
            extra.insert(0, 0);
        }
    }
    let format = match (n, first) {
        (1, _) | (2, true) => "NCHW",
        (2, false) => "NHWC",
        (_, true) => "NCDHW",
        (_, false) => "NDHWC",
    };
    let args = vec![
        ("filter", Value::Var(f)),
        ("strides", Value::Ints(strides)),
        ("paddings", Value::Ints(pads)),
        ("padding_algorithm", Value::Text(algorithm.into())),
        ("dilations", Value::Ints(dilations)),
        ("groups", Value::Int(call.int("groups").unwrap_or(1))),
        ("data_format", Value::Text(format.into())),
    ];
    let y = match (n, transposed) {
        (3, true) => return Ok(false),
        (_, true) => {
            let more =
                [("x", Value::Var(x)), ("output_size", Value::Ints(vec![])), ("output_padding", Value::Ints(extra))];
            w.emit("conv2d_transpose", args.into_iter().chain(more).collect(), &known)?
        }
        (3, _) => w.emit("conv3d", args.into_iter().chain([("input", Value::Var(x))]).collect(), &known)?,
        _ => w.emit("conv2d", args.into_iter().chain([("input", Value::Var(x))]).collect(), &known)?,
    };
    let y = biased(w, call, y, &known, first)?;
    narrow(w, call, y, n)?;
    Ok(true)
}

/// Adds a bias along the channels.
fn biased(w: &mut Exporter, call: &Given, y: VarId, known: &Known, first: bool) -> Result<VarId> {
    let Some(bias) = call.id("bias") else { return Ok(y) };
    let channels = w.known(bias).dims[0];
    let mut b = w.var_of(bias)?;
    if first {
        let mut shape = vec![1; known.dims.len()];
        shape[1] = channels.fixed().map_or(-1, |n| n as i64);
        let mut dims = vec![Dim::Fixed(1); known.dims.len()];
        dims[1] = channels;
        let like = Known { dims, ..w.known(bias).clone() };
        b = w.emit("reshape", vec![("x", Value::Var(b)), ("shape", Value::Ints(shape))], &like)?;
    }
    w.emit("add", vec![("x", Value::Var(y)), ("y", Value::Var(b))], known)
}

/// Takes the axis away that [`widen`] added.
fn narrow(w: &mut Exporter, call: &Given, y: VarId, n: usize) -> Result<()> {
    if n == 1 {
        w.give("squeeze", vec![("x", Value::Var(y)), ("axis", Value::Ints(vec![2]))], call.out())?;
    } else {
        w.bind(call.out(), y);
    }
    Ok(())
}

fn pool(w: &mut Exporter, call: &Given, n: usize, max: bool, adaptive: bool) -> Result<bool> {
    let Some(x) = call.id("x") else { return Ok(false) };
    if call.bool("return_mask") || call.arg("divisor_override").is_some() {
        return Ok(false);
    }
    let out = w.known(call.out()).clone();
    let format = call.text("data_format").unwrap_or("NCHW").to_string();
    let (mut kernel, mut strides, mut pads, mut algorithm) = (vec![], vec![1; n], vec![0; n], "EXPLICIT");
    if adaptive {
        // The result's own extents, where they were not kept with None.
        let at = if format.starts_with("NC") { 2 } else { 1 };
        for d in &out.dims[at..at + n] {
            let Dim::Fixed(size) = d else { return Ok(false) };
            kernel.push(*size as i64);
        }
    } else {
        let Some(k) = call.each("kernel_size", n, 1) else { return Ok(false) };
        let Some(s) = call.arg("stride").map_or(Some(k.clone()), |_| call.each("stride", n, 1)) else {
            return Ok(false);
        };
        let Some((p, a)) = call.padding(n) else { return Ok(false) };
        (kernel, strides, pads, algorithm) = (k, s, p, a);
    }
    let (mut x, mut known) = (w.var_of(x)?, out.clone());
    if n == 1 {
        x = widen(w, x, out.dtype)?;
        known = widened(&out);
        kernel.insert(0, 1);
        strides.insert(0, 1);
        let zeros = vec![0; pads.len()];
        pads = [zeros, pads].concat();
    }
    if adaptive && max {
        // Paddle's pool2d takes the whole image for a window here; the one that also finds positions does not.
        let off = |name| (name, Value::Bool(false));
        let args = vec![
            ("x", Value::Var(x)),
            ("kernel_size", Value::Ints(kernel)),
            ("strides", Value::Ints(strides)),
            ("paddings", Value::Ints(pads)),
            off("global_pooling"),
            ("adaptive", Value::Bool(true)),
            off("ceil_mode"),
        ];
        let y = w.emit("max_pool2d_with_index", args, &known)?;
        narrow(w, call, y, n)?;
        return Ok(true);
    }
    let name = if n == 3 { "pool3d" } else { "pool2d" };
    let args = vec![
        ("x", Value::Var(x)),
        ("kernel_size", Value::Ints(kernel)),
        ("strides", Value::Ints(strides)),
        ("paddings", Value::Ints(pads)),
        ("ceil_mode", Value::Bool(call.bool("ceil_mode"))),
        ("exclusive", Value::Bool(call.arg("exclusive").is_none() || call.bool("exclusive"))),
        ("data_format", Value::Text(if n == 1 { "NCHW".into() } else { format })),
        ("pooling_type", Value::Text(if max { "max" } else { "avg" }.into())),
        ("global_pooling", Value::Bool(false)),
        ("adaptive", Value::Bool(adaptive)),
        ("padding_algorithm", Value::Text(algorithm.into())),
    ];
    let y = w.emit(name, args, &known)?;
    narrow(w, call, y, n)?;
    Ok(true)
}

fn interpolate(w: &mut Exporter, call: &Given) -> Result<bool> {
    let out = w.known(call.out()).clone();
    let mode = call.text("mode").unwrap_or("nearest").to_lowercase();
    let name = match (mode.as_str(), out.dims.len()) {
        ("nearest", 4) => "nearest_interp",
        ("bilinear", 4) => "bilinear_interp",
        ("bicubic", 4) => "bicubic_interp",
        _ => return Ok(false),
    };
    if call.bool("antialias") || call.text("data_format").is_some_and(|f| f != "NCHW") {
        return Ok(false);
    }
    let size = [out.dims[2].fixed(), out.dims[3].fixed()];
    let (mut h, mut v, mut scale) = (-1, -1, vec![]);
    // A scale that is computed again from the extents is what the extents say.
    let scaled = call.plain("scale_factor").filter(|_| !call.bool("recompute_scale_factor"));
    match (scaled, size) {
        (Some(Plain::Float(f)), _) => scale = vec![*f, *f],
        (Some(Plain::Int(i)), _) => scale = vec![*i as f64; 2],
        (Some(Plain::Floats(f)), _) if f.len() == 2 => scale.clone_from(f),
        (Some(Plain::Ints(f)), _) if f.len() == 2 => scale = f.iter().map(|&i| i as f64).collect(),
        (None | Some(Plain::None), [Some(a), Some(b)]) => (h, v) = (a as i64, b as i64),
        _ => return Ok(false),
    }
    let args = vec![
        ("x", call.tensor(w, "x")?),
        ("data_format", Value::Text("NCHW".into())),
        ("out_d", Value::Int(-1)),
        ("out_h", Value::Int(h)),
        ("out_w", Value::Int(v)),
        ("scale", Value::Floats(scale)),
        ("interp_method", Value::Text(mode)),
        ("align_corners", Value::Bool(call.bool("align_corners"))),
        ("align_mode", Value::Int(call.int("align_mode").unwrap_or(0))),
    ];
    w.give(name, args, call.out())?;
    Ok(true)
}

pub fn write(w: &mut Exporter, call: &Given) -> Result<bool> {
    match call.name() {
        "conv1d" => conv(w, call, 1, false),
        "conv2d" => conv(w, call, 2, false),
        "conv3d" => conv(w, call, 3, false),
        "conv1d_transpose" => conv(w, call, 1, true),
        "conv2d_transpose" => conv(w, call, 2, true),
        "max_pool1d" => pool(w, call, 1, true, false),
        "max_pool2d" => pool(w, call, 2, true, false),
        "max_pool3d" => pool(w, call, 3, true, false),
        "avg_pool1d" => pool(w, call, 1, false, false),
        "avg_pool2d" => pool(w, call, 2, false, false),
        "avg_pool3d" => pool(w, call, 3, false, false),
        "adaptive_avg_pool1d" => pool(w, call, 1, false, true),
        "adaptive_avg_pool2d" => pool(w, call, 2, false, true),
        "adaptive_max_pool1d" => pool(w, call, 1, true, true),
        "adaptive_max_pool2d" => pool(w, call, 2, true, true),
        "interpolate" | "upsample" => interpolate(w, call),
        _ => Ok(false),
    }
}

/// Padding as our ops take it.
fn read_padding(op: &Op) -> Result<Arg> {
    Ok(match op.text("padding_algorithm", "EXPLICIT").as_str() {
        "EXPLICIT" => ints(op.ints("paddings")?),
        word => text(word.into()),
    })
}

/// Pools of images and volumes, by windows or by the extents of the result.
fn read_pool(r: &mut Importer, op: &Op) -> Result<bool> {
    let name = op.schema.name;
    let max = name == "max_pool2d_with_index" || op.text("pooling_type", "max") == "max";
    let x = ("x", tensor(r, op, "x")?);
    let format = ("data_format", text(op.text("data_format", if name == "pool3d" { "NCDHW" } else { "NCHW" })));
    let (adaptive, global) = (op.bool("adaptive", false), op.bool("global_pooling", false));
    let n = if name == "pool3d" { 3 } else { 2 };
    if adaptive || global {
        let size = if global { vec![1; n] } else { op.ints("kernel_size")? };
        let ours = match (max, n) {
            (true, 2) => "adaptive_max_pool2d",
            (true, _) => "adaptive_max_pool3d",
            (false, 2) => "adaptive_avg_pool2d",
            (false, _) => "adaptive_avg_pool3d",
        };
        let mut args = vec![x, ("output_size", ints(size))];
        if !max {
            args.push(format);
        }
        if max && op.results("mask").len() == 1 && name == "max_pool2d_with_index" {
            args.push(("return_mask", Arg::Plain(Plain::Bool(true))));
            r.call(ours, args, &[op.first_result()?, op.result("mask")?])?;
            return Ok(true);
        }
        r.call(ours, args, &[op.first_result()?])?;
        return Ok(true);
    }
    let mut args = vec![
        x,
        ("kernel_size", ints(op.ints("kernel_size")?)),
        ("stride", ints(op.ints("strides")?)),
        ("padding", read_padding(op)?),
        ("ceil_mode", flag(op, "ceil_mode", false)),
    ];
    if !max {
        args.push(("exclusive", flag(op, "exclusive", true)));
    }
    args.push(format);
    let ours = match (max, n) {
        (true, 2) => "max_pool2d",
        (true, _) => "max_pool3d",
        (false, 2) => "avg_pool2d",
        (false, _) => "avg_pool3d",
    };
    if name == "max_pool2d_with_index" {
        args.push(("return_mask", Arg::Plain(Plain::Bool(true))));
        r.call(ours, args, &[op.first_result()?, op.result("mask")?])?;
    } else {
        r.call(ours, args, &[op.first_result()?])?;
    }
    Ok(true)
}

pub fn read(r: &mut Importer, op: &Op) -> Result<bool> {
    let name = op.schema.name;
    match name {
        "conv2d" | "depthwise_conv2d" | "conv3d" | "conv2d_transpose" | "depthwise_conv2d_transpose" => {
            let transposed = name.ends_with("transpose");
            let mut args = vec![
                ("x", tensor(r, op, if transposed { "x" } else { "input" })?),
                ("weight", tensor(r, op, "filter")?),
                ("stride", ints(op.ints("strides")?)),
                ("padding", read_padding(op)?),
                ("dilation", ints(op.ints("dilations")?)),
                ("groups", Arg::Plain(Plain::Int(op.int("groups").unwrap_or(1)))),
            ];
            let format = op.text("data_format", "NCHW");
            args.push(("data_format", text(if format == "AnyLayout" { "NCHW".into() } else { format })));
            if transposed {
                let (extra, size) = (op.ints("output_padding")?, op.ints("output_size")?);
                if !extra.is_empty() {
                    args.push(("output_padding", ints(extra)));
                }
                if !size.is_empty() {
                    args.push(("output_size", ints(size)));
                }
            }
            let ours = match (name, transposed) {
                ("conv3d", _) => "conv3d",
                (_, true) => "conv2d_transpose",
                _ => "conv2d",
            };
            r.call(ours, args, &[op.first_result()?])?;
        }
        "pool2d" | "pool3d" | "max_pool2d_with_index" => return read_pool(r, op),
        "nearest_interp" | "bilinear_interp" | "bicubic_interp" | "linear_interp" => {
            let x = tensor(r, op, "x")?;
            let rank = r.program.vars[op.var("x")?].dims.len();
            let spatial = rank.saturating_sub(2);
            let scale = match op.get("scale") {
                Some(Value::Floats(v)) => v.clone(),
                Some(Value::Float(f)) if *f > 0.0 => vec![*f; spatial],
                _ => vec![],
            };
            let size = ["out_d", "out_h", "out_w"].map(|n| op.int(n).unwrap_or(-1));
            let size = &size[3 - spatial.min(3)..];
            let mut args = vec![
                ("x", x),
                ("mode", text(name.trim_end_matches("_interp").into())),
                ("align_corners", flag(op, "align_corners", false)),
                ("align_mode", Arg::Plain(Plain::Int(op.int("align_mode").unwrap_or(0)))),
                ("data_format", text(op.text("data_format", "NCHW"))),
            ];
            if op.var_or_none("out_size").is_some()
                || !op.vars("size_tensor")?.is_empty()
                || op.var_or_none("scale_tensor").is_some()
            {
                return Ok(false);
            }
            if size.iter().all(|s| *s > 0) {
                args.push(("size", ints(size.to_vec())));
            } else if scale.len() == spatial {
                args.push(("scale_factor", Arg::Plain(scale.into())));
            } else {
                return Ok(false);
            }
            r.call("interpolate", args, &[op.first_result()?])?;
        }
        _ => return Ok(false),
    }
    Ok(true)
}
