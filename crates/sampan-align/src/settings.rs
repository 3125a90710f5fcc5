//! Settings of the sides in one language: what PyTorch calls `eps` and Paddle `epsilon`, momentum that means its opposite.

use crate::{Config, kinds};
use serde_json::{Value, json};

/// Where two settings differ, and the word of the catalogue for it.
#[derive(Clone, Debug)]
pub struct Difference {
    pub key: &'static str,
    pub cause: &'static str,
    pub reference: Value,
    pub candidate: Value,
}

/// One setting: its name here, names on the sides, what it is when left out, its cause.
struct Setting(&'static str, &'static [&'static str], Option<&'static str>, &'static str);

fn settings(kind: &str) -> &'static [Setting] {
    match kind {
        k if k.starts_with("conv") => &[
            // The padding follows from the others, so it comes last.
            Setting("groups", &["groups"], Some("1"), "groups"),
            Setting("kernel_size", &["kernel_size"], None, "kernel_size"),
            Setting("dilation", &["dilation"], Some("1"), "dilation"),
            Setting("stride", &["stride"], Some("1"), "stride"),
            Setting("padding_mode", &["padding_mode"], Some("\"zeros\""), "padding_mode"),
            Setting("padding", &["padding"], Some("0"), "padding_size"),
        ],
        k if k.starts_with("adaptive") => &[Setting("output_size", &["output_size"], None, "pool_output_size")],
        k if k.contains("_pool") => &[
            Setting("kernel_size", &["kernel_size", "ksize"], None, "pool_size"),
            Setting("stride", &["stride", "strides"], None, "pool_stride"),
            Setting("padding", &["padding", "paddings"], Some("0"), "pool_padding"),
            Setting("ceil_mode", &["ceil_mode"], Some("false"), "ceil_mode"),
            Setting("exclusive", &["exclusive"], None, "avgpool_exclusive"),
        ],
        "batch_norm" => &[
            Setting("eps", &["eps", "epsilon"], Some("1e-5"), "bn_epsilon"),
            Setting("momentum", &["momentum"], None, "bn_momentum"),
            Setting("training", &["training"], None, "train_eval_mode"),
        ],
        "instance_norm" | "group_norm" => &[
            Setting("eps", &["eps", "epsilon"], Some("1e-5"), "norm_epsilon"),
            Setting("num_groups", &["num_groups"], None, "num_groups"),
        ],
        "layer_norm" | "rms_norm" => &[
            Setting("eps", &["eps", "epsilon"], Some("1e-5"), "layernorm_epsilon"),
            Setting("normalized_shape", &["normalized_shape"], None, "layernorm_axis"),
        ],
        "local_response_norm" => &[
            Setting("size", &["size"], None, "lrn_size"),
            Setting("alpha", &["alpha"], None, "lrn_alpha"),
            Setting("beta", &["beta"], None, "lrn_beta"),
            Setting("k", &["k"], None, "lrn_k"),
        ],
        k if k.starts_with("drop") => &[
            Setting("p", &["p"], Some("0.5"), "dropout_p"),
            Setting("mode", &["mode"], Some("\"upscale_in_train\""), "dropout_mode"),
            Setting("training", &["training"], None, "train_eval_mode"),
        ],
        "softmax" | "log_softmax" => &[Setting("dim", &["dim", "axis"], Some("-1"), "softmax_axis")],
        "gelu" => &[Setting("approximate", &["approximate"], Some("false"), "gelu_approximation")],
        "leaky_relu" => &[Setting("slope", &["negative_slope"], Some("0.01"), "activation_slope")],
        "hardsigmoid" => &[
            Setting("slope", &["slope"], Some("0.16666666666666666"), "activation_slope"),
            Setting("offset", &["offset"], Some("0.5"), "activation_slope"),
        ],
        "elu" | "celu" => &[Setting("alpha", &["alpha"], Some("1.0"), "activation_slope")],
        "softplus" => &[Setting("beta", &["beta"], Some("1.0"), "activation_slope")],
        "upsample" => &[
            Setting("mode", &["mode"], Some("\"nearest\""), "interpolation_mode"),
            Setting("align_corners", &["align_corners"], Some("false"), "align_corners"),
            Setting("size", &["size"], None, "interpolation_size"),
            Setting("scale_factor", &["scale_factor"], None, "interpolation_size"),
        ],
        "cross_entropy" => &[
            Setting("reduction", &["reduction"], Some("\"mean\""), "loss_reduction"),
            Setting("ignore_index", &["ignore_index"], Some("-100"), "ignore_index"),
            Setting("label_smoothing", &["label_smoothing"], Some("0.0"), "label_smoothing"),
        ],
        k if kinds::is_loss(k) => &[
            Setting("reduction", &["reduction"], Some("\"mean\""), "loss_reduction"),
            Setting("ignore_index", &["ignore_index"], Some("-100"), "ignore_index"),
            Setting("delta", &["delta", "beta"], None, "loss_delta"),
        ],
        "lstm" | "gru" | "rnn" => &[
            Setting("num_layers", &["num_layers"], Some("1"), "rnn_layers"),
            Setting("bidirectional", &["bidirectional", "direction"], Some("false"), "rnn_direction"),
            Setting("dropout", &["dropout"], Some("0.0"), "dropout_p"),
            Setting("nonlinearity", &["nonlinearity", "activation"], None, "rnn_activation"),
            Setting("batch_first", &["batch_first", "time_major"], None, "rnn_batch_first"),
        ],
        "mha" => &[
            Setting("num_heads", &["num_heads"], None, "attention_heads"),
            Setting("dropout", &["dropout"], Some("0.0"), "dropout_p"),
        ],
        "attention" => &[
            Setting("is_causal", &["is_causal"], Some("false"), "attention_mask"),
            Setting("scale", &["scale"], None, "attention_scale"),
        ],
        "embedding" => &[Setting("padding_idx", &["padding_idx"], Some("null"), "embedding_padding")],
        "flatten" => &[
            Setting("start", &["start_dim", "start_axis"], None, "flatten_order"),
            Setting("end", &["end_dim", "stop_axis"], None, "flatten_order"),
        ],
        "clamp" | "hardtanh" => &[
            Setting("min", &["min", "min_val"], None, "clamp_range"),
            Setting("max", &["max", "max_val"], None, "clamp_range"),
        ],
        "mean" | "sum" | "max" | "min" | "var" | "std" => &[
            Setting("dim", &["dim", "axis"], None, "reduction_axis"),
            Setting("keepdim", &["keepdim"], None, "reduction_axis"),
        ],
        "cat" | "stack" => &[Setting("dim", &["dim", "axis"], Some("0"), "concat_axis")],
        "masked_fill" => &[Setting("value", &["value"], None, "mask_value")],
        "add" | "sub" | "mul" | "div" | "pow" => &[Setting("other", &["other", "y", "scale"], None, "constant")],
        _ => &[],
    }
}

/// The same value written once: a number for a list of equal ones, numbers without a type.
fn plain(value: &Value) -> Value {
    match value {
        Value::Array(items) if !items.is_empty() && items.iter().all(|i| i == &items[0]) => plain(&items[0]),
        Value::Array(items) => Value::Array(items.iter().map(plain).collect()),
        Value::Number(n) => n.as_f64().map_or(value.clone(), |x| json!(x)),
        Value::String(s) => Value::String(s.to_lowercase()),
        other => other.clone(),
    }
}

/// The value of a setting in the common language; none if the side does not say.
fn value(side: &str, kind: &str, setting: &Setting, config: &Config, rank: usize) -> Option<Value> {
    let paddle = !matches!(side, "torch" | "onnxruntime" | "");
    let found = setting.1.iter().find_map(|name| config.get(*name).map(|v| (*name, v)));
    let (name, given) = match (setting.0, found) {
        // PyTorch counts padding unless told otherwise; its word for it is the opposite of Paddle's.
        ("exclusive", None) if kind.starts_with("avg") => {
            let counted = config.get("count_include_pad").and_then(Value::as_bool);
            return Some(json!(counted.map_or(paddle, |c| !c)));
        }
        ("exclusive", _) if !kind.starts_with("avg") => return None,
        ("stride", None | Some((_, Value::Null))) if kind.contains("pool") => {
            return config.get("kernel_size").or_else(|| config.get("ksize")).map(plain);
        }
        ("stride", Some((_, Value::Array(a)))) if kind.contains("pool") && a.is_empty() => {
            return config.get("kernel_size").or_else(|| config.get("ksize")).map(plain);
        }
        (_, Some(found)) => found,
        (_, None) => return setting.2.map(|d| plain(&serde_json::from_str(d).expect("a default is JSON"))),
    };
    let v = plain(given);
    Some(match (setting.0, &v) {
        // The share of the new statistic there, that of the old one here.
        ("momentum", Value::Number(m)) if paddle => json!(((1.0 - m.as_f64()?) * 1e9).round() / 1e9),
        ("approximate", Value::String(s)) => json!(s == "tanh"),
        ("align_corners", Value::Null) => json!(false),
        ("bidirectional", Value::String(s)) => json!(s.starts_with("bidirect")),
        ("batch_first", Value::Bool(b)) if name == "time_major" => json!(!b),
        ("dim" | "start" | "end", Value::Number(d)) => {
            let d = d.as_f64()?;
            json!(if d < 0.0 && rank > 0 { d + rank as f64 } else { d })
        }
        ("normalized_shape", Value::Number(n)) => json!(n.as_f64()?),
        ("scale_factor" | "size" | "nonlinearity" | "scale" | "other", Value::Null) => return None,
        _ => v,
    })
}

fn equal(a: &Value, b: &Value) -> bool {
    match (a.as_f64(), b.as_f64()) {
        (Some(x), Some(y)) => (x - y).abs() <= 1e-6 * x.abs().max(y.abs()),
        _ => a == b,
    }
}

/// Where the settings of two calls of related kinds differ.
pub fn differences(
    kinds_: (&str, &str),
    sides: (&str, &str),
    configs: (&Config, &Config),
    rank: usize,
) -> Vec<Difference> {
    if kinds_.0 != kinds_.1 {
        return Vec::new();
    }
    let mut found = Vec::new();
    for setting in settings(kinds_.0) {
        let a = value(sides.0, kinds_.0, setting, configs.0, rank);
        let b = value(sides.1, kinds_.1, setting, configs.1, rank);
        if let (Some(a), Some(b)) = (a, b)
            && !equal(&a, &b)
        {
            found.push(Difference { key: setting.0, cause: setting.3, reference: a, candidate: b });
        }
    }
    // Padding that is not counted is none at all.
    let pads = |side: &str, c: &Config| {
        let padding = Setting("padding", &["padding", "paddings"], Some("0"), "");
        value(side, kinds_.0, &padding, c, rank) != Some(json!(0.0))
    };
    if kinds_.0.starts_with("avg_pool") && !pads(sides.0, configs.0) && !pads(sides.1, configs.1) {
        found.retain(|d| d.key != "exclusive");
    }
    found
}

/// A setting in the common language by its name here, for those who compute with it.
pub fn lookup(side: &str, kind: &str, config: &Config, key: &str, rank: usize) -> Option<Value> {
    settings(kind).iter().find(|s| s.0 == key).and_then(|s| value(side, kind, s, config, rank))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> Config {
        serde_json::from_str(text).expect("valid JSON")
    }

    #[test]
    fn the_same_settings_in_two_languages_do_not_differ() {
        let pairs = [
            ("batch_norm", r#"{"eps": 1e-5, "momentum": 0.1}"#, r#"{"epsilon": 1e-05, "momentum": 0.9}"#),
            ("conv2d", r#"{"stride": [2, 2], "padding": [1, 1]}"#, r#"{"stride": 2, "padding": 1}"#),
            (
                "avg_pool2d",
                r#"{"kernel_size": 2, "padding": 1}"#,
                r#"{"kernel_size": 2, "padding": 1, "exclusive": false}"#,
            ),
            ("softmax", r#"{"dim": 3}"#, r#"{"axis": -1}"#),
            ("gelu", r#"{"approximate": "none"}"#, r#"{"approximate": false}"#),
        ];
        for (kind, a, b) in pairs {
            let d = differences((kind, kind), ("torch", "sampan"), (&config(a), &config(b)), 4);
            assert!(d.is_empty(), "{kind}: {d:?}");
        }
    }

    #[test]
    fn a_default_of_one_side_is_no_default_of_the_other() {
        let (a, b) = (config(r#"{"kernel_size": 3, "padding": 1}"#), config(r#"{"kernel_size": 3, "padding": 1}"#));
        let d = differences(("avg_pool2d", "avg_pool2d"), ("torch", "paddle"), (&a, &b), 4);
        assert_eq!(d[0].cause, "avgpool_exclusive");
        let (a, b) = (config(r#"{"momentum": 0.1}"#), config(r#"{"momentum": 0.1}"#));
        let d = differences(("batch_norm", "batch_norm"), ("torch", "paddle"), (&a, &b), 4);
        assert_eq!(d[0].cause, "bn_momentum");
    }
}
