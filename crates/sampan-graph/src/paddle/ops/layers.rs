//! Products, norms, dropout and losses.

use super::args::{flag, float, ints, maybe, tensor, text};
use crate::graph::{Arg, Dim, Known};
use crate::paddle::export::{Exporter, Given};
use crate::paddle::import::Importer;
use crate::paddle::program::{Op, Value};
use sampan_core::{Result, Value as Plain};

/// What dropout that shrinks when it is switched off is called here, and in programs.
const DOWNSCALE: &str = "downscale_in_infer";

const DOWNGRADE: &str = "downgrade_in_infer";

fn batch_norm(w: &mut Exporter, call: &Given) -> Result<bool> {
    let mut known = w.known(call.out()).clone();
    let (Some(mean), Some(var)) = (call.id("running_mean"), call.id("running_var")) else { return Ok(false) };
    let channels = crate::paddle::export::dims(w.known(mean));
    let dtype = w.known(mean).dtype;
    let mut affine = Vec::new();
    for (name, theirs, value) in [("weight", "scale", 1.0), ("bias", "bias", 0.0)] {
        let v = match call.id(name) {
            Some(id) => w.var_of(id)?,
            None => w.number(value, &channels, dtype)?,
        };
        affine.push((theirs, Value::Var(v)));
    }
    let format =
        if call.text("data_format").is_some_and(|f| f.ends_with('C') && f.len() > 2) { "NHWC" } else { "NCHW" };
    let training = call.bool("training");
    let mut args = vec![
        ("x", call.tensor(w, "x")?),
        ("mean", Value::Var(w.var_of(mean)?)),
        ("variance", Value::Var(w.var_of(var)?)),
        ("is_test", Value::Bool(!training)),
        ("momentum", Value::Float(call.float("momentum").unwrap_or(0.9))),
        ("epsilon", Value::Float(call.float("epsilon").unwrap_or(1e-5))),
        ("data_format", Value::Text(format.into())),
        ("use_global_stats", Value::Bool(call.bool("use_global_stats"))),
        ("trainable_statistics", Value::Bool(false)),
    ];
    args.extend(affine);
    let activation = match call.text("activation") {
        None | Some("") => return w.give("batch_norm_", args, call.out()).map(|()| true),
        Some("relu") => "relu",
        Some("relu6") => "relu6",
        Some("hardswish") => "hardswish",
        Some(_) => return Ok(false),
    };
    known.stop_gradient = false;
    let y = w.emit("batch_norm_", args, &known)?;
    w.give(activation, vec![("x", Value::Var(y))], call.out())?;
    Ok(true)
}

/// A vector of what may be of more axes.
fn flat(w: &mut Exporter, call: &Given, name: &'static str, to: &'static str) -> Result<Option<(&'static str, Value)>> {
    let Some(id) = call.id(name) else { return Ok(None) };
    let (var, known) = (w.var_of(id)?, w.known(id).clone());
    if known.dims.len() == 1 {
        return Ok(Some((to, Value::Var(var))));
    }
    let n = known.dims.iter().map(|d| d.fixed()).product::<Option<usize>>().map_or(Dim::Free(usize::MAX), Dim::Fixed);
    let like = Known { dims: vec![n], ..known };
    let v = w.emit("reshape", vec![("x", Value::Var(var)), ("shape", Value::Ints(vec![-1]))], &like)?;
    Ok(Some((to, Value::Var(v))))
}

pub fn write(w: &mut Exporter, call: &Given) -> Result<bool> {
    let out = call.out();
    let known = w.known(out).clone();
    match call.name() {
        "batch_norm" | "batch_norm_activation" => return batch_norm(w, call),
        "linear" => {
            let args = vec![
                ("x", call.tensor(w, "x")?),
                ("y", call.tensor(w, "weight")?),
                ("transpose_x", Value::Bool(false)),
                ("transpose_y", Value::Bool(false)),
            ];
            let y = w.emit("matmul", args, &known)?;
            match call.id("bias") {
                Some(bias) => {
                    let bias = w.var_of(bias)?;
                    w.give("add", vec![("x", Value::Var(y)), ("y", Value::Var(bias))], out)?;
                }
                None => w.bind(out, y),
            }
        }
        "matmul" | "mm" => {
            let (x, y) = if call.name() == "mm" { ("input", "mat2") } else { ("x", "y") };
            let args = vec![
                ("x", call.tensor(w, x)?),
                ("y", call.tensor(w, y)?),
                ("transpose_x", Value::Bool(call.bool("transpose_x"))),
                ("transpose_y", Value::Bool(call.bool("transpose_y"))),
            ];
            w.give("matmul", args, out)?;
        }
        "einsum" => {
            let Some(equation) = call.text("equation") else { return Ok(false) };
            let args = vec![("x", call.tensors(w, "operands")?), ("equation", Value::Text(equation.into()))];
            w.give("einsum", args, out)?;
        }
        "layer_norm" => {
            let Some(shape) = call.ints("normalized_shape") else { return Ok(false) };
            let mut args = vec![
                ("x", call.tensor(w, "x")?),
                ("epsilon", Value::Float(call.float("epsilon").unwrap_or(1e-5))),
                ("begin_norm_axis", Value::Int((known.dims.len() - shape.len()) as i64)),
            ];
            args.extend(flat(w, call, "weight", "scale")?);
            args.extend(flat(w, call, "bias", "bias")?);
            w.give("layer_norm", args, out)?;
        }
        "group_norm" => {
            let mut args = vec![
                ("x", call.tensor(w, "x")?),
                ("epsilon", Value::Float(call.float("epsilon").unwrap_or(1e-5))),
                ("groups", Value::Int(call.int("num_groups").unwrap_or(1))),
                ("data_format", Value::Text(call.text("data_format").unwrap_or("NCHW").into())),
            ];
            args.extend(call.optional(w, "weight", "scale")?);
            args.extend(call.optional(w, "bias", "bias")?);
            w.give("group_norm", args, out)?;
        }
        "instance_norm" => {
            if !call.bool("use_input_stats")
                || call.text("data_format").is_some_and(|f| f.ends_with('C') && f.len() > 2)
            {
                return Ok(false);
            }
            let mut args =
                vec![("x", call.tensor(w, "x")?), ("epsilon", Value::Float(call.float("eps").unwrap_or(1e-5)))];
            args.extend(call.optional(w, "weight", "scale")?);
            args.extend(call.optional(w, "bias", "bias")?);
            w.give("instance_norm", args, out)?;
        }
        "dropout" => {
            if call.arg("axis").is_some() {
                return Ok(false);
            }
            let args = vec![
                ("x", call.tensor(w, "x")?),
                ("p", Value::Float(call.float("p").unwrap_or(0.5))),
                ("is_test", Value::Bool(!call.bool("training"))),
                (
                    "mode",
                    Value::Text(
                        if call.text("mode") == Some(DOWNSCALE) { DOWNGRADE } else { "upscale_in_train" }.into(),
                    ),
                ),
                ("seed", Value::Int(0)),
                ("fix_seed", Value::Bool(false)),
            ];
            w.give("dropout", args, out)?;
        }
        "prelu" => {
            let Some(weight) = call.id("weight") else { return Ok(false) };
            let mode = if w.known(weight).dims == [Dim::Fixed(1)] { "all" } else { "channel" };
            let args = vec![
                ("x", call.tensor(w, "x")?),
                ("alpha", Value::Var(w.var_of(weight)?)),
                ("data_format", Value::Text(call.text("data_format").unwrap_or("NCHW").into())),
                ("mode", Value::Text(mode.into())),
            ];
            w.give("prelu", args, out)?;
        }
        _ => return Ok(false),
    }
    Ok(true)
}

pub fn read(r: &mut Importer, op: &Op) -> Result<bool> {
    match op.schema.name {
        "batch_norm_" => {
            let global = op.bool("use_global_stats", false);
            let args = vec![
                ("x", tensor(r, op, "x")?),
                ("running_mean", tensor(r, op, "mean")?),
                ("running_var", tensor(r, op, "variance")?),
                ("weight", maybe(r, op, "scale")?),
                ("bias", maybe(r, op, "bias")?),
                ("training", Arg::Plain(Plain::Bool(!op.bool("is_test", true)))),
                ("momentum", float(op, "momentum")?),
                ("epsilon", float(op, "epsilon")?),
                ("data_format", text(op.text("data_format", "NCHW"))),
                ("use_global_stats", Arg::Plain(if global { Plain::Bool(true) } else { Plain::None })),
            ];
            r.call("batch_norm", args, &[op.result("out")?])?;
        }
        "layer_norm" => {
            let var = op.var("x")?;
            let at = usize::try_from(op.int("begin_norm_axis")?).unwrap_or(1);
            let (scale, bias) = (maybe(r, op, "scale")?, maybe(r, op, "bias")?);
            let dims = r.program.vars[var].dims.clone();
            let normal = dims.get(at..).unwrap_or(&[]).to_vec();
            if normal.is_empty() || normal.iter().any(|d| *d < 0) {
                return Ok(false);
            }
            let shaped = |r: &mut Importer, arg: Arg| match arg {
                Arg::Tensor(id) if normal.len() > 1 => {
                    let dims = normal.iter().map(|&n| Dim::Fixed(n as usize)).collect();
                    let known = Known { dims, ..r.graph.values[id].clone() };
                    let args = vec![("x", Arg::Tensor(id)), ("shape", ints(normal.clone()))];
                    r.call_new("reshape", args, known).map(Arg::Tensor)
                }
                other => Ok(other),
            };
            let (scale, bias) = (shaped(r, scale)?, shaped(r, bias)?);
            let args = vec![
                ("x", tensor(r, op, "x")?),
                ("normalized_shape", ints(normal)),
                ("weight", scale),
                ("bias", bias),
                ("epsilon", float(op, "epsilon")?),
            ];
            r.call("layer_norm", args, &[op.result("out")?])?;
        }
        "group_norm" => {
            let args = vec![
                ("x", tensor(r, op, "x")?),
                ("num_groups", Arg::Plain(Plain::Int(op.int("groups")?))),
                ("epsilon", float(op, "epsilon")?),
                ("weight", maybe(r, op, "scale")?),
                ("bias", maybe(r, op, "bias")?),
                ("data_format", text(op.text("data_format", "NCHW"))),
            ];
            r.call("group_norm", args, &[op.first_result()?])?;
        }
        "instance_norm" => {
            let args = vec![
                ("x", tensor(r, op, "x")?),
                ("weight", maybe(r, op, "scale")?),
                ("bias", maybe(r, op, "bias")?),
                ("eps", float(op, "epsilon")?),
            ];
            r.call("instance_norm", args, &[op.first_result()?])?;
        }
        "dropout" => {
            let args = vec![
                ("x", tensor(r, op, "x")?),
                ("p", float(op, "p")?),
                ("training", Arg::Plain(Plain::Bool(!op.bool("is_test", true)))),
                (
                    "mode",
                    text(if op.text("mode", DOWNGRADE) == DOWNGRADE { DOWNSCALE } else { "upscale_in_train" }.into()),
                ),
            ];
            r.call("dropout", args, &[op.first_result()?])?;
        }
        "matmul" => {
            let args = vec![
                ("x", tensor(r, op, "x")?),
                ("y", tensor(r, op, "y")?),
                ("transpose_x", flag(op, "transpose_x", false)),
                ("transpose_y", flag(op, "transpose_y", false)),
            ];
            r.call("matmul", args, &[op.first_result()?])?;
        }
        "addmm" => {
            let args = vec![
                ("input", tensor(r, op, "input")?),
                ("x", tensor(r, op, "x")?),
                ("y", tensor(r, op, "y")?),
                ("beta", float(op, "beta")?),
                ("alpha", float(op, "alpha")?),
            ];
            r.call("addmm", args, &[op.first_result()?])?;
        }
        "einsum" => {
            let args =
                vec![("equation", text(op.text("equation", ""))), ("operands", Arg::Tensors(r.ids(&op.vars("x")?)?))];
            r.call("einsum", args, &[op.first_result()?])?;
        }
        "prelu" => {
            if op.text("mode", "all") == "element" {
                return Ok(false);
            }
            let args = vec![
                ("x", tensor(r, op, "x")?),
                ("weight", tensor(r, op, "alpha")?),
                ("data_format", text(op.text("data_format", "NCHW"))),
            ];
            r.call("prelu", args, &[op.first_result()?])?;
        }
        "swish" => {
            let x = tensor(r, op, "x")?;
            r.call("silu", vec![("x", x)], &[op.first_result()?])?;
        }
        "cross_entropy_with_softmax" => {
            let args = vec![
                ("logits", tensor(r, op, "input")?),
                ("label", tensor(r, op, "label")?),
                ("soft_label", flag(op, "soft_label", false)),
                ("ignore_index", Arg::Plain(Plain::Int(op.int("ignore_index").unwrap_or(-100)))),
                ("axis", Arg::Plain(Plain::Int(op.int("axis").unwrap_or(-1)))),
                ("return_softmax", Arg::Plain(Plain::Bool(true))),
            ];
            if !op.bool("use_softmax", true) {
                return Ok(false);
            }
            let (Some(&loss), Some(&softmax)) = (op.results("loss").first(), op.results("softmax").first()) else {
                return Ok(false);
            };
            r.call("softmax_with_cross_entropy", args, &[loss, softmax])?;
        }
        _ => return Ok(false),
    }
    Ok(true)
}
