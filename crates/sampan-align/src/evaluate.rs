//! Computing a layer again from its settings, parameters and input: does a suspected cause explain the numbers?

use crate::{Config, settings};
use sampan_core::value::Value;
use sampan_core::{Tensor, dispatch, op};
use serde_json::Value as Json;
use std::collections::HashMap;

/// Parameters of a layer by role, in Paddle's form.
pub(crate) type Parameters = HashMap<String, Tensor>;

fn ints(v: &Json) -> Option<Value> {
    match v {
        Json::Number(n) => Some(Value::Int(n.as_f64()? as i64)),
        Json::Array(a) => Some(Value::Ints(a.iter().map(|x| x.as_f64().map(|x| x as i64)).collect::<Option<_>>()?)),
        Json::String(s) => Some(Value::Str(s.to_uppercase().into())),
        _ => None,
    }
}

fn plain(v: &Json) -> Option<Value> {
    Some(match v {
        Json::Bool(b) => Value::Bool(*b),
        Json::Number(n) => Value::Float(n.as_f64()?),
        Json::String(s) => Value::Str(s.as_str().into()),
        _ => return None,
    })
}

fn call(name: &str, named: Vec<(&str, Value)>) -> Option<Tensor> {
    let def = op::find(name)?;
    let args = def.bind(Vec::new(), named).ok()?;
    dispatch::dispatch(def, args).ok()?.into_iter().next()
}

/// The output of a layer or function of a kind, or none if it is not among those that are known here.
pub(crate) fn evaluate(side: &str, kind: &str, config: &Config, p: &Parameters, inputs: &[Tensor]) -> Option<Tensor> {
    let x = inputs.first()?.clone();
    let rank = x.ndim();
    let get = |key: &str| settings::lookup(side, kind, config, key, rank);
    let tensor = |role: &str| p.get(role).cloned().map_or(Value::None, Value::Tensor);
    let given = |named: Vec<(&'static str, Option<Value>)>| -> Option<Vec<(&'static str, Value)>> {
        named.into_iter().map(|(n, v)| v.map(|v| (n, v))).collect()
    };
    let x = Value::Tensor(x);
    match kind {
        "conv1d" | "conv2d" | "conv3d" => {
            if get("padding_mode") != Some(Json::from("zeros")) {
                return None;
            }
            let named = given(vec![
                ("x", Some(x)),
                ("weight", Some(tensor("weight"))),
                ("bias", Some(tensor("bias"))),
                ("stride", get("stride").as_ref().and_then(ints)),
                ("padding", get("padding").as_ref().and_then(ints)),
                ("dilation", get("dilation").as_ref().and_then(ints)),
                ("groups", get("groups").as_ref().and_then(ints)),
            ])?;
            call(kind, named)
        }
        "linear" => call("linear", vec![("x", x), ("weight", tensor("weight")), ("bias", tensor("bias"))]),
        "avg_pool2d" | "max_pool2d" | "avg_pool1d" | "max_pool1d" => {
            let mut named = given(vec![
                ("x", Some(x)),
                ("kernel_size", get("kernel_size").as_ref().and_then(ints)),
                ("stride", get("stride").as_ref().and_then(ints)),
                ("padding", get("padding").as_ref().and_then(ints)),
                ("ceil_mode", get("ceil_mode").as_ref().and_then(plain)),
            ])?;
            if kind.starts_with("avg") {
                named.push(("exclusive", get("exclusive").as_ref().and_then(plain)?));
            }
            call(kind, named)
        }
        "batch_norm" => {
            let training = get("training").and_then(|t| t.as_bool()).unwrap_or(false);
            if training {
                // Statistics of the batch: the running ones must not be written here.
                return None;
            }
            let named = given(vec![
                ("x", Some(x)),
                ("running_mean", Some(tensor("running_mean"))),
                ("running_var", Some(tensor("running_var"))),
                ("weight", Some(tensor("weight"))),
                ("bias", Some(tensor("bias"))),
                ("epsilon", get("eps").as_ref().and_then(plain)),
            ])?;
            call("batch_norm", named)
        }
        "layer_norm" => {
            let shape = match p.get("weight") {
                Some(w) => w.shape().iter().map(|&d| d as i64).collect(),
                None => match get("normalized_shape")?.as_f64() {
                    Some(n) => vec![n as i64],
                    None => return None,
                },
            };
            let named = given(vec![
                ("x", Some(x)),
                ("normalized_shape", Some(Value::Ints(shape.into_iter().collect()))),
                ("weight", Some(tensor("weight"))),
                ("bias", Some(tensor("bias"))),
                ("epsilon", get("eps").as_ref().and_then(plain)),
            ])?;
            call("layer_norm", named)
        }
        "softmax" | "log_softmax" => {
            call(kind, given(vec![("x", Some(x)), ("axis", get("dim").as_ref().and_then(ints))])?)
        }
        "gelu" => {
            call("gelu", given(vec![("x", Some(x)), ("approximate", get("approximate").as_ref().and_then(plain))])?)
        }
        "relu" | "relu6" | "silu" | "hardswish" | "hardsigmoid" | "sigmoid" | "tanh" | "mish" => {
            call(kind, vec![("x", x)])
        }
        "leaky_relu" => {
            call(kind, given(vec![("x", Some(x)), ("negative_slope", get("slope").as_ref().and_then(plain))])?)
        }
        "upsample" => {
            let named = vec![
                ("x", x),
                ("size", get("size").as_ref().and_then(ints).unwrap_or(Value::None)),
                ("scale_factor", get("scale_factor").as_ref().and_then(plain).unwrap_or(Value::None)),
                ("mode", get("mode").as_ref().and_then(plain)?),
                ("align_corners", get("align_corners").as_ref().and_then(plain)?),
            ];
            call("interpolate", named)
        }
        "dropout" => {
            let training = get("training").and_then(|t| t.as_bool()).unwrap_or(false);
            let keep = 1.0 - get("p")?.as_f64()?;
            let down = get("mode").and_then(|m| m.as_str().map(|m| m == "downscale_in_infer")).unwrap_or(false);
            let Value::Tensor(t) = x else { return None };
            (!training).then(|| if down { t * keep as f32 } else { t })
        }
        "cross_entropy" => {
            let label = inputs.get(1)?.clone();
            let named = given(vec![
                ("input", Some(x)),
                ("label", Some(Value::Tensor(label))),
                ("ignore_index", get("ignore_index").as_ref().and_then(ints)),
                ("reduction", get("reduction").as_ref().and_then(plain)),
                ("axis", Some(Value::Int(if side == "torch" { 1 } else { -1 }))),
                ("label_smoothing", get("label_smoothing").as_ref().and_then(plain)),
            ])?;
            call("cross_entropy", named)
        }
        _ => None,
    }
}
