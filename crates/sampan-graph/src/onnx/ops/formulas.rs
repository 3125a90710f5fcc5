//! Functions that ONNX has no operator for, as formulas of those it has.

use crate::given::Given;
use crate::onnx::export::Writer;
use sampan_core::{DType, Result};
use sampan_io::onnx::model::Attr;

/// Ops of one operand that are a formula of ONNX's operators.
pub fn formula(w: &mut Writer, call: &Given, x: &str, dtype: DType) -> Result<Option<String>> {
    let number = |w: &mut Writer, v: f64| w.number(v, dtype);
    let param = |name: &str, default: f64| call.float(name).unwrap_or(default);
    Ok(Some(match call.name() {
        "square" => w.op("Mul", &[x, x]),
        "rsqrt" => {
            let root = w.op("Sqrt", &[x]);
            w.op("Reciprocal", &[&root])
        }
        "silu" => {
            let s = w.op("Sigmoid", &[x]);
            w.op("Mul", &[x, &s])
        }
        "mish" => {
            let s = w.op("Softplus", &[x]);
            let t = w.op("Tanh", &[&s]);
            w.op("Mul", &[x, &t])
        }
        "hardswish" => {
            let attrs = vec![("alpha", Attr::Float(1.0 / 6.0)), ("beta", Attr::Float(0.5))];
            let s = w.node("HardSigmoid", vec![x.into()], attrs);
            w.op("Mul", &[x, &s])
        }
        "gelu" => {
            let tanh = call.bool("approximate") || call.text("approximate") == Some("tanh");
            if w.opset() >= 20 {
                let word = if tanh { "tanh" } else { "none" };
                return Ok(Some(w.node("Gelu", vec![x.into()], vec![("approximate", Attr::Text(word.into()))])));
            }
            let inner = if tanh {
                let (a, b, three) =
                    (number(w, 0.044715)?, number(w, (2.0 / std::f64::consts::PI).sqrt())?, number(w, 3.0)?);
                let cube = w.op("Pow", &[x, &three]);
                let cube = w.op("Mul", &[&cube, &a]);
                let sum = w.op("Add", &[x, &cube]);
                let scaled = w.op("Mul", &[&sum, &b]);
                w.op("Tanh", &[&scaled])
            } else {
                let root = number(w, std::f64::consts::SQRT_2)?;
                let scaled = w.op("Div", &[x, &root]);
                w.op("Erf", &[&scaled])
            };
            let (one, half) = (number(w, 1.0)?, number(w, 0.5)?);
            let sum = w.op("Add", &[&inner, &one]);
            let y = w.op("Mul", &[x, &sum]);
            w.op("Mul", &[&y, &half])
        }
        "softplus" => {
            let beta = param("beta", 1.0);
            let y = if beta == 1.0 {
                w.op("Softplus", &[x])
            } else {
                let factor = number(w, beta)?;
                let scaled = w.op("Mul", &[x, &factor]);
                let y = w.op("Softplus", &[&scaled]);
                w.op("Div", &[&y, &factor])
            };
            let threshold = param("threshold", 20.0);
            if threshold >= 20.0 {
                return Ok(Some(y));
            }
            // Beyond it, the argument itself.
            let bound = number(w, threshold / beta)?;
            let beyond = w.op("Greater", &[x, &bound]);
            w.op("Where", &[&beyond, x, &y])
        }
        "log_sigmoid" => {
            let turned = w.op("Neg", &[x]);
            let y = w.op("Softplus", &[&turned]);
            w.op("Neg", &[&y])
        }
        "relu6" | "hardtanh" => {
            let six = call.name() == "relu6";
            let (low, high) = if six { (0.0, 6.0) } else { (param("min", -1.0), param("max", 1.0)) };
            let (low, high) = (number(w, low)?, number(w, high)?);
            w.op("Clip", &[x, &low, &high])
        }
        "log2" | "log10" => {
            let base = number(w, if call.name() == "log2" { 2f64 } else { 10.0 }.ln())?;
            let y = w.op("Log", &[x]);
            w.op("Div", &[&y, &base])
        }
        "log1p" => {
            let one = number(w, 1.0)?;
            let y = w.op("Add", &[x, &one]);
            w.op("Log", &[&y])
        }
        "expm1" => {
            let one = number(w, 1.0)?;
            let y = w.op("Exp", &[x]);
            w.op("Sub", &[&y, &one])
        }
        "round" if call.float("decimals").is_none_or(|d| d == 0.0) => w.op("Round", &[x]),
        "trunc" => {
            let (sign, size) = (w.op("Sign", &[x]), w.op("Abs", &[x]));
            let size = w.op("Floor", &[&size]);
            w.op("Mul", &[&size, &sign])
        }
        "tanhshrink" => {
            let y = w.op("Tanh", &[x]);
            w.op("Sub", &[x, &y])
        }
        "softshrink" | "hardshrink" => {
            let t = param("threshold", 0.5) as f32;
            let bias = if call.name() == "softshrink" { t } else { 0.0 };
            w.node("Shrink", vec![x.into()], vec![("lambd", Attr::Float(t)), ("bias", Attr::Float(bias))])
        }
        "isinf" => w.op("IsInf", &[x]),
        "isfinite" => {
            let (a, b) = (w.op("IsInf", &[x]), w.op("IsNaN", &[x]));
            let either = w.op("Or", &[&a, &b]);
            w.op("Not", &[&either])
        }
        "scale" => {
            let Some(scale) = call.float("scale").filter(|_| call.arg("act").is_none()) else { return Ok(None) };
            let bias = param("bias", 0.0);
            let (s, b) = (number(w, scale)?, number(w, bias)?);
            let after = call.bool("bias_after_scale");
            let mut y = x.to_string();
            if bias != 0.0 && !after {
                y = w.op("Add", &[&y, &b]);
            }
            if scale != 1.0 || bias == 0.0 {
                y = w.op("Mul", &[&y, &s]);
            }
            if bias != 0.0 && after {
                y = w.op("Add", &[&y, &b]);
            }
            y
        }
        "softmax" | "log_softmax" => {
            let theirs = if call.name() == "softmax" { "Softmax" } else { "LogSoftmax" };
            w.node(theirs, vec![x.into()], vec![("axis", Attr::Int(call.int("axis").unwrap_or(-1)))])
        }
        _ => return Ok(None),
    }))
}
