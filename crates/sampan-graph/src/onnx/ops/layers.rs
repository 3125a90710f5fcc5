//! Norms, softmax and dropout.

use crate::given::Given;
use crate::onnx::eval::Item;
use crate::onnx::export::Writer;
use crate::onnx::node::{Call, many, one, op, shape_of};
use crate::record::unheard;
use sampan_core::{DType, Result, Tensor};
use sampan_io::onnx::model::Attr;

/// A vector that lies along the channels.
fn along_channels(t: &Tensor, rank: usize) -> Result<Tensor> {
    let mut shape = vec![1; rank];
    shape[1.min(rank - 1)] = -1;
    op!("reshape", t, shape)
}

fn batch_norm(c: &Call) -> Result<Vec<Tensor>> {
    let (x, epsilon) = (c.x(0)?, c.float("epsilon", 1e-5));
    let (scale, bias, mean, var) = (c.x(1)?, c.x(2)?, c.x(3)?, c.x(4)?);
    let old = c.opset() < 7 && c.attr("is_test").is_some() && !c.flag("is_test");
    if !c.flag("training_mode") && !old {
        let narrow = x.dtype() == mean.dtype();
        if narrow && x.ndim() > 1 && x.dtype().is_float() {
            return Ok(vec![op!("batch_norm", x, mean, var, scale, bias; epsilon = epsilon)?]);
        }
        let of = |t: &Tensor| along_channels(t, x.ndim());
        let sd = op!("sqrt", op!("add", var, epsilon)?)?;
        let y = op!("divide", op!("subtract", x, of(mean)?)?, of(&sd)?)?;
        return Ok(vec![op!("cast", op!("add", op!("multiply", y, of(scale)?)?, of(bias)?)?, x.dtype())?]);
    }
    let momentum = c.float("momentum", 0.9);
    let axes = (0..x.ndim() as i64).filter(|a| *a != 1).collect::<Vec<_>>();
    let now = op!("mean", x, axes.clone())?;
    let spread = op!("var", x, axes, false)?;
    let of = |t: &Tensor| along_channels(t, x.ndim());
    let sd = op!("sqrt", op!("add", &spread, epsilon)?)?;
    let y = op!("divide", op!("subtract", x, of(&now)?)?, of(&sd)?)?;
    let y = op!("add", op!("multiply", y, of(scale)?)?, of(bias)?)?;
    let mixed =
        |old: &Tensor, new: &Tensor| op!("add", op!("multiply", old, momentum)?, op!("multiply", new, 1.0 - momentum)?);
    Ok(vec![y, mixed(mean, &now)?, mixed(var, &spread)?])
}

/// Subtracts the mean over axes and divides by the deviation: the result, the mean, and one over the deviation.
fn standardised(x: &Tensor, axes: &[i64], epsilon: f64) -> Result<(Tensor, Tensor, Tensor)> {
    let mean = op!("mean", x, axes, true)?;
    let apart = op!("subtract", x, &mean)?;
    let var = op!("mean", op!("multiply", &apart, &apart)?, axes, true)?;
    let inverse = op!("rsqrt", op!("add", var, epsilon)?)?;
    Ok((op!("multiply", apart, &inverse)?, mean, inverse))
}

fn layer_norm(c: &Call) -> Result<Vec<Tensor>> {
    let (x, scale, bias, epsilon) = (c.x(0)?, c.x(1)?, c.maybe(2), c.float("epsilon", 1e-5));
    let axis = c.axis(c.int("axis", -1), x.ndim())?;
    let normal = &x.shape()[axis..];
    let fits = scale.shape() == normal && bias.is_none_or(|b| b.shape() == normal);
    if fits && !c.wants(1) && !c.wants(2) {
        let shape = shape_of(x)[axis..].to_vec();
        let bias = bias.map_or(sampan_core::Value::None, Into::into);
        return Ok(vec![op!("layer_norm", x, shape, scale, bias, epsilon)?]);
    }
    let axes = (axis as i64..x.ndim() as i64).collect::<Vec<_>>();
    let (y, mean, inverse) = standardised(x, &axes, epsilon)?;
    let mut y = op!("multiply", y, scale)?;
    if let Some(bias) = bias {
        y = op!("add", y, bias)?;
    }
    Ok(vec![y, mean, inverse])
}

fn group_norm(c: &Call) -> Result<Tensor> {
    let (x, scale, bias) = (c.x(0)?, c.x(1)?, c.x(2)?);
    let (groups, epsilon) = (c.int("num_groups", 1), c.float("epsilon", 1e-5));
    let (mut scale, mut bias) = (scale.clone(), bias.clone());
    if c.opset() < 21 {
        // One number for each group, as it was at first.
        let each = x.shape()[1] as i64 / groups.max(1);
        let spread = |t: &Tensor| op!("repeat_interleave", t, each, 0i64);
        if scale.numel() as i64 == groups && each != 1 {
            (scale, bias) = (spread(&scale)?, spread(&bias)?);
        }
    }
    let y = op!("group_norm", x, groups, epsilon)?;
    op!("add", op!("multiply", y, along_channels(&scale, x.ndim())?)?, along_channels(&bias, x.ndim())?)
}

fn softmax(c: &Call, ours: &str) -> Result<Tensor> {
    let x = c.x(0)?;
    if c.opset() >= 13 {
        return op!(ours, x, c.int("axis", -1));
    }
    // Early versions take a matrix: everything from an axis on is one.
    let axis = c.axis(c.int("axis", 1), x.ndim())?;
    if axis + 1 == x.ndim() {
        return op!(ours, x, -1i64);
    }
    let width = x.shape()[axis..].iter().product::<usize>() as i64;
    let flat = op!("reshape", x, [-1i64, width])?;
    op!("reshape", op!(ours, flat, -1i64)?, shape_of(x))
}

fn hardmax(c: &Call) -> Result<Tensor> {
    let x = c.x(0)?;
    let flat = c.opset() < 13;
    let axis = c.axis(c.int("axis", if flat { 1 } else { -1 }), x.ndim())?;
    let (x2, axis) = match flat && axis + 1 != x.ndim() {
        true => (op!("reshape", x, [-1i64, x.shape()[axis..].iter().product::<usize>() as i64])?, 1),
        false => (x.clone(), axis),
    };
    let mut shape = vec![1; x2.ndim()];
    shape[axis] = x2.shape()[axis] as i64;
    let places = op!("reshape", op!("arange", 0i64, shape[axis], 1i64)?, shape)?;
    let hit = op!("equal", op!("argmax", &x2, axis, true)?, places)?;
    op!("reshape", op!("cast", hit, x.dtype())?, shape_of(x))
}

fn dropout(c: &Call) -> Result<Vec<Tensor>> {
    let x = c.x(0)?;
    let ratio = if c.maybe(1).is_some() { c.number(1)? } else { c.float("ratio", 0.5) };
    let training = c.maybe(2).is_some() && c.number(2)? != 0.0;
    if !training || ratio == 0.0 {
        let y = match c.opset() < 12 && !c.wants(1) {
            // The early ones drop in training alone, which a layer can be switched to.
            true => op!("dropout", x, ratio; training = false)?,
            false => x.clone(),
        };
        let mask = if c.wants(1) { vec![op!("full_like", x, true, DType::Bool)?] } else { vec![] };
        return Ok([vec![y], mask].concat());
    }
    let kept = op!("greater_equal", op!("uniform", shape_of(x); min = 0.0, max = 1.0)?, ratio)?;
    let y = op!("multiply", op!("multiply", x, op!("cast", &kept, x.dtype())?)?, 1.0 / (1.0 - ratio))?;
    Ok(vec![y, kept])
}

fn lp_normalization(c: &Call) -> Result<Tensor> {
    let (x, axis) = (c.x(0)?, c.int("axis", -1));
    let norm = op!("norm", x, c.int("p", 2) as f64, axis, true)?;
    op!("divide", x, norm)
}

pub fn read(c: &Call) -> Result<Option<Vec<Item>>> {
    one(match c.node.op.as_str() {
        "BatchNormalization" => return many(batch_norm(c)?),
        "InstanceNormalization" => {
            let (x, scale, bias) = (c.x(0)?, c.x(1)?, c.x(2)?);
            op!("instance_norm", x; weight = scale, bias = bias, eps = c.float("epsilon", 1e-5))?
        }
        "LayerNormalization" => return many(layer_norm(c)?),
        "RMSNormalization" => {
            let (x, scale) = (c.x(0)?, c.x(1)?);
            let axis = c.axis(c.int("axis", -1), x.ndim())? as i64;
            let axes = (axis..x.ndim() as i64).collect::<Vec<_>>();
            let square = op!("mean", op!("multiply", x, x)?, axes, true)?;
            let y = op!("multiply", x, op!("rsqrt", op!("add", square, c.float("epsilon", 1e-5))?)?)?;
            op!("multiply", y, scale)?
        }
        "GroupNormalization" => group_norm(c)?,
        "LRN" => {
            let (alpha, beta, bias) = (c.float("alpha", 1e-4), c.float("beta", 0.75), c.float("bias", 1.0));
            op!("local_response_norm", c.x(0)?, c.int("size", 1), alpha, beta, bias)?
        }
        "LpNormalization" => lp_normalization(c)?,
        "MeanVarianceNormalization" => {
            let axes = c.ints("axes").unwrap_or_else(|| vec![0, 2, 3]);
            let x = c.x(0)?;
            let apart = op!("subtract", x, op!("mean", x, axes.clone(), true)?)?;
            let var = op!("mean", op!("multiply", &apart, &apart)?, axes, true)?;
            op!("divide", apart, op!("add", op!("sqrt", var)?, 1e-9)?)?
        }
        "Softmax" => softmax(c, "softmax")?,
        "LogSoftmax" => softmax(c, "log_softmax")?,
        "Hardmax" => hardmax(c)?,
        "Dropout" => return many(dropout(c)?),
        _ => return Ok(None),
    })
}

/// Is the last axis the channels'?
fn channels_last(call: &Given) -> bool {
    call.text("data_format").is_some_and(|f| f.ends_with('C') && f.len() > 2)
}

/// The channels moved to the second axis, or back to the last.
pub(super) fn moved(w: &mut Writer, x: String, rank: usize, back: bool) -> String {
    let mut perm = (0..rank as i64).collect::<Vec<_>>();
    if back {
        perm[1..].rotate_left(1);
    } else {
        perm[1..].rotate_right(1);
    }
    w.node("Transpose", vec![x], vec![("perm", Attr::Ints(perm))])
}

fn write_batch_norm(w: &mut Writer, call: &Given) -> Result<Option<String>> {
    let ids = (call.id("x"), call.id("running_mean"), call.id("running_var"));
    let (Some(x), Some(mean), Some(var)) = ids else { return Ok(None) };
    if call.bool("training") && !call.bool("use_global_stats") {
        return Ok(None);
    }
    let (rank, last) = (w.known(x).dims.len(), channels_last(call));
    let channels = w.known(mean).dims.first().and_then(|d| d.fixed()).unwrap_or(0);
    let dtype = w.known(mean).dtype;
    let mut affine = Vec::new();
    for (name, value) in [("weight", 1.0), ("bias", 0.0)] {
        affine.push(match call.id(name) {
            Some(id) => w.name(id)?,
            None => {
                let full = unheard(|| op!("full", [channels], value, dtype))?;
                w.tensor(&full)
            }
        });
    }
    let mut x = w.name(x)?;
    if last {
        x = moved(w, x, rank, false);
    }
    let inputs = vec![x, affine.remove(0), affine.remove(0), w.name(mean)?, w.name(var)?];
    let epsilon = Attr::Float(call.float("epsilon").unwrap_or(1e-5) as f32);
    let mut y = w.node("BatchNormalization", inputs, vec![("epsilon", epsilon)]);
    if last {
        y = moved(w, y, rank, true);
    }
    Ok(Some(match call.text("activation") {
        None | Some("") => y,
        Some("relu") => w.op("Relu", &[&y]),
        Some("relu6") => {
            let (low, high) = (w.number(0.0, DType::Float32)?, w.number(6.0, DType::Float32)?);
            w.op("Clip", &[&y, &low, &high])
        }
        Some("hardswish") => {
            let attrs = vec![("alpha", Attr::Float(1.0 / 6.0)), ("beta", Attr::Float(0.5))];
            let s = w.node("HardSigmoid", vec![y.clone()], attrs);
            w.op("Mul", &[&y, &s])
        }
        Some(_) => return Ok(None),
    }))
}

/// Scales and shifts by what is given.
fn affine(w: &mut Writer, call: &Given, mut y: String, shape: Option<&[i64]>) -> Result<String> {
    for (name, theirs) in [("weight", "Mul"), ("bias", "Add")] {
        if let Some(id) = call.id(name) {
            let mut t = w.name(id)?;
            if let Some(shape) = shape {
                let shape = w.ints(shape)?;
                t = w.op("Reshape", &[&t, &shape]);
            }
            y = w.op(theirs, &[&y, &t]);
        }
    }
    Ok(y)
}

fn write_layer_norm(w: &mut Writer, call: &Given) -> Result<Option<String>> {
    let (Some(x), Some(shape)) = (call.id("x"), call.ints("normalized_shape")) else { return Ok(None) };
    let (epsilon, n) = (call.float("epsilon").unwrap_or(1e-5), shape.len() as i64);
    let (name, dtype) = (w.name(x)?, w.known(x).dtype);
    let flat = |w: &Writer, name: &str| call.id(name).is_some_and(|id| w.known(id).dims.len() != shape.len());
    let shaped = (flat(w, "weight") || flat(w, "bias")).then_some(shape.as_slice());
    if let (true, Some(weight), None) = (w.opset() >= 17, call.id("weight"), shaped) {
        let mut inputs = vec![name, w.name(weight)?];
        if let Some(bias) = call.id("bias") {
            inputs.push(w.name(bias)?);
        }
        let attrs = vec![("axis", Attr::Int(-n)), ("epsilon", Attr::Float(epsilon as f32))];
        return Ok(Some(w.node("LayerNormalization", inputs, attrs)));
    }
    let axes = (-n..0).collect::<Vec<_>>();
    let mean = super::reduce::reduce(w, "ReduceMean", &name, Some(&axes), true)?;
    let apart = w.op("Sub", &[&name, &mean]);
    let square = w.op("Mul", &[&apart, &apart]);
    let var = super::reduce::reduce(w, "ReduceMean", &square, Some(&axes), true)?;
    let epsilon = w.number(epsilon, dtype)?;
    let var = w.op("Add", &[&var, &epsilon]);
    let sd = w.op("Sqrt", &[&var]);
    let y = w.op("Div", &[&apart, &sd]);
    affine(w, call, y, shaped).map(Some)
}

/// Groups are the channels of an instance norm.
fn write_group_norm(w: &mut Writer, call: &Given) -> Result<Option<String>> {
    let (Some(x), Some(groups)) = (call.id("x"), call.int("num_groups")) else { return Ok(None) };
    if channels_last(call) {
        return Ok(None);
    }
    let (rank, dtype) = (w.known(x).dims.len(), w.known(x).dtype);
    let (shape, whole) = (w.ints(&[0, groups, -1])?, w.shape(x)?);
    let name = w.name(x)?;
    let flat = w.op("Reshape", &[&name, &shape]);
    let ones = unheard(|| op!("full", [groups], 1.0, dtype))?;
    let zeros = unheard(|| op!("full", [groups], 0.0, dtype))?;
    let inputs = vec![flat, w.tensor(&ones), w.tensor(&zeros)];
    let epsilon = Attr::Float(call.float("epsilon").unwrap_or(1e-5) as f32);
    let y = w.node("InstanceNormalization", inputs, vec![("epsilon", epsilon)]);
    let y = w.op("Reshape", &[&y, &whole]);
    let mut along = vec![1; rank];
    along[1] = -1;
    affine(w, call, y, Some(&along)).map(Some)
}

fn write_instance_norm(w: &mut Writer, call: &Given) -> Result<Option<String>> {
    let Some(x) = call.id("x") else { return Ok(None) };
    let channels = w.known(x).dims.get(1).and_then(|d| d.fixed());
    let (Some(channels), true, false) = (channels, call.bool("use_input_stats"), channels_last(call)) else {
        return Ok(None);
    };
    let dtype = w.known(x).dtype;
    let mut inputs = vec![w.name(x)?];
    for (name, value) in [("weight", 1.0), ("bias", 0.0)] {
        inputs.push(match call.id(name) {
            Some(id) => w.name(id)?,
            None => {
                let full = unheard(|| op!("full", [channels], value, dtype))?;
                w.tensor(&full)
            }
        });
    }
    let epsilon = Attr::Float(call.float("eps").unwrap_or(1e-5) as f32);
    Ok(Some(w.node("InstanceNormalization", inputs, vec![("epsilon", epsilon)])))
}

pub fn write(w: &mut Writer, call: &Given) -> Result<bool> {
    let y = match call.name() {
        "batch_norm" | "batch_norm_activation" => write_batch_norm(w, call)?,
        "layer_norm" => write_layer_norm(w, call)?,
        "group_norm" => write_group_norm(w, call)?,
        "instance_norm" => write_instance_norm(w, call)?,
        "dropout" => match (call.id("x"), call.bool("training")) {
            (Some(id), false) => {
                let (x, dtype) = (w.name(id)?, w.known(id).dtype);
                match call.text("mode") {
                    Some("downscale_in_infer") => {
                        let kept = w.number(1.0 - call.float("p").unwrap_or(0.5), dtype)?;
                        Some(w.op("Mul", &[&x, &kept]))
                    }
                    _ => Some(w.op("Identity", &[&x])),
                }
            }
            _ => None,
        },
        "local_response_norm" => match (call.id("x"), channels_last(call)) {
            (Some(id), false) => {
                let x = w.name(id)?;
                let number = |name: &str, default: f64| Attr::Float(call.float(name).unwrap_or(default) as f32);
                let attrs = vec![
                    ("size", Attr::Int(call.int("size").unwrap_or(1))),
                    ("alpha", number("alpha", 1e-4)),
                    ("beta", number("beta", 0.75)),
                    ("bias", number("k", 1.0)),
                ];
                Some(w.node("LRN", vec![x], attrs))
            }
            _ => None,
        },
        _ => None,
    };
    match y {
        Some(y) => w.bind(call.out(), y),
        None => return Ok(false),
    }
    Ok(true)
}
