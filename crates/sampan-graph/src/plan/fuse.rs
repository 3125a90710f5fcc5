//! What follows a layer and can be a part of it.

use crate::graph::{Arg, Call};
use sampan_core::Value;
use sampan_kernels::planned::{After, Clamp};

fn number(call: &Call, name: &str) -> Option<f32> {
    match call.arg(name)? {
        Arg::Plain(Value::Float(v)) => Some(*v as f32),
        Arg::Plain(Value::Int(v)) => Some(*v as f32),
        _ => None,
    }
}

/// A limit that may be left out.
fn limit(call: &Call, name: &str, left_out: f32) -> Option<f32> {
    if call.arg(name).is_none_or(Arg::is_none) { Some(left_out) } else { number(call, name) }
}

fn clamp(scale: f32, shift: f32, low: f32, high: f32) -> After {
    After::Clamp(Clamp { scale, shift, low, high })
}

/// The activation that a call is, if a layer can apply it itself.
pub(super) fn activation(call: &Call) -> Option<After> {
    let infinity = f32::INFINITY;
    Some(match call.op.name {
        "relu" => clamp(1.0, 0.0, 0.0, infinity),
        "relu6" => clamp(1.0, 0.0, 0.0, 6.0),
        "hardtanh" => clamp(1.0, 0.0, number(call, "min")?, number(call, "max")?),
        "clip" => clamp(1.0, 0.0, limit(call, "min", -infinity)?, limit(call, "max", infinity)?),
        "hardsigmoid" => clamp(number(call, "slope")?, number(call, "offset")?, 0.0, 1.0),
        "hardswish" => After::Gate(Clamp { scale: 1.0 / 6.0, shift: 0.5, low: 0.0, high: 1.0 }),
        "leaky_relu" => After::Leaky(number(call, "negative_slope")?),
        _ => return None,
    })
}
