//! Calls that are layers with weights, or poolings: what their kernels need to know.

use super::codes::Coded;
use super::heard::{Heard, Part};
use super::{Form, Weights};
use crate::graph::{Arg, Call, Id};
use sampan_core::{DType, Tensor, Value};
use sampan_kernels::View;
use sampan_kernels::conv::{ConvShape, lift};
use sampan_kernels::planned::{After, Conv, Depthwise, Linear, Packed, Pooling, Way};
use sampan_kernels::pool::{Divisor, PoolShape, Windows};
use std::sync::Arc;

/// A layer whose weights are known.
#[derive(Clone)]
pub(super) struct Layer {
    pub kind: Kind,
    pub x: Id,
    pub bias: Option<Tensor>,
    /// What is added to its outputs, and what then happens to them.
    pub add: Option<Id>,
    pub after: Option<After>,
    pub shape: Vec<usize>,
    /// What it needs to compute with codes, if it does.
    pub coded: Option<Box<Coded>>,
}

#[derive(Clone)]
pub(super) enum Kind {
    Conv { s: ConvShape, weight: Id, held: Tensor },
    Depthwise { s: ConvShape, held: Tensor },
    Linear { weight: Id, held: Tensor, turned: bool },
}

fn part<'a>(heard: &'a Heard, name: &str) -> Option<&'a Part> {
    match (heard.parts.as_slice(), heard.formulas.as_slice()) {
        ([part], []) if part.op.name == name => Some(part),
        _ => None,
    }
}

impl Part {
    fn arg(&self, name: &str) -> Option<&Value> {
        self.args.get(self.op.position(name)?)
    }

    fn tensor(&self, name: &str) -> Option<&Tensor> {
        if let Value::Tensor(t) = self.arg(name)? { Some(t) } else { None }
    }

    /// One number for each of `axes`, the last ones of three.
    fn lifted(&self, name: &str, axes: usize, fill: usize) -> Option<[usize; 3]> {
        let all = self.ints(name)?;
        let all = if all.len() == 1 { vec![all[0]; axes] } else { all };
        (all.len() == axes).then(|| lift(&all, fill))
    }

    fn ints(&self, name: &str) -> Option<Vec<usize>> {
        let one = |v: &i64| usize::try_from(*v).ok();
        match self.arg(name)? {
            Value::Int(v) => Some(vec![one(v)?]),
            Value::Ints(all) => all.iter().map(one).collect(),
            Value::List(all) if all.is_empty() => Some(vec![]),
            _ => None,
        }
    }
}

fn float(t: &Tensor) -> bool {
    t.dtype() == DType::Float32
}

/// A bias that is known, or none at all.
fn bias_of(given: Option<&Value>, held: &impl Fn(&Tensor) -> Option<Id>) -> Option<Option<Tensor>> {
    match given {
        None | Some(Value::None) => Some(None),
        Some(Value::Tensor(t)) if held(t).is_some() && float(t) && t.ndim() == 1 => Some(Some(t.clone())),
        _ => None,
    }
}

/// The layer that a call is; `held` knows the tensors that are always the same.
pub(super) fn layer(
    call: &Call,
    heard: &Heard,
    args: &[Value],
    held: &impl Fn(&Tensor) -> Option<Id>,
    id: &impl Fn(&Tensor) -> Option<Id>,
) -> Option<Layer> {
    let shape = heard.outputs[0].shape().to_vec();
    if !float(&heard.outputs[0]) || shape.contains(&0) {
        return None;
    }
    if matches!(call.op.name, "linear" | "matmul") {
        let is_true = |name: &str| matches!(call.arg(name), Some(Arg::Plain(Value::Bool(true))));
        let (Value::Tensor(x), Value::Tensor(w)) = (args.first()?, args.get(1)?) else { return None };
        let weight = held(w)?;
        let bias = if call.op.name == "linear" { bias_of(args.get(2), held)? } else { None };
        if is_true("transpose_x") || w.ndim() != 2 || !float(w) || !float(x) || held(x).is_some() {
            return None;
        }
        let kind = Kind::Linear { weight, held: w.clone(), turned: is_true("transpose_y") };
        return Some(Layer { kind, x: id(x)?, bias, add: None, after: None, shape, coded: None });
    }
    let part = part(heard, "conv_forward")?;
    let (x, w) = (part.tensor("x")?, part.tensor("weight")?);
    if x.ndim() != 4 || !float(x) || !float(w) || shape.len() != 4 {
        return None;
    }
    let (axes, n) = (|name: &str, fill: usize| part.lifted(name, 2, fill), x.shape());
    let groups = *part.ints("groups")?.first()?;
    let s = ConvShape {
        batch: n[0],
        in_channels: n[1],
        out_channels: w.shape()[0],
        groups,
        input: lift(&n[2..], 1),
        kernel: lift(&w.shape()[2..], 1),
        output: axes("output", 1)?,
        stride: axes("stride", 1)?,
        dilation: axes("dilation", 1)?,
        pad_begin: axes("pad", 0)?,
    };
    let bias = bias_of(part.arg("bias"), held)?;
    let (weight, x, held) = (held(w)?, id(x)?, w.clone());
    let kind = match groups {
        1 => Kind::Conv { s, weight, held },
        // Whether that is so is asked when it is made.
        _ if groups == s.in_channels && s.in_channels == s.out_channels => Kind::Depthwise { s, held },
        _ => return None,
    };
    Some(Layer { kind, x, bias, add: None, after: None, shape, coded: None })
}

/// The kernel of a layer, its name, and whether its input must lie in blocks.
pub(super) struct Made {
    pub run: Box<dyn Fn(&[f32], Option<&[f32]>, &mut [f32]) + Send + Sync>,
    pub name: String,
    pub blocked_input: bool,
    pub blocked: bool,
}

impl Layer {
    /// Makes its kernel; `plain` says that its input does not lie in blocks yet.
    pub fn make(&self, packed: &Weights, plain: bool) -> Option<Made> {
        let bias = self.bias.as_ref().map(|b| b.data::<f32>().slice().to_vec());
        let (bias, after) = (bias.as_deref(), self.after.unwrap_or(After::Same));
        let suffix = format!(
            "{}{}",
            if self.add.is_some() { " + sum" } else { "" },
            if self.after.is_some() { " + activation" } else { "" }
        );
        match &self.kind {
            Kind::Conv { s, weight, held } => {
                let (s, weight) = (*s, *weight);
                let way = plain.then(|| Way::of(&s, true)).flatten().or_else(|| Way::of(&s, false))?;
                let make = || Packed::conv(&s, way, held.data::<f32>().slice());
                let conv = Conv::new(&s, way, packed.get(weight, Form::Conv(way), make), bias, after);
                let name = format!("conv2d {way:?} {:?}→{:?}{suffix}", s.input, s.output);
                let run = Box::new(move |x: &[f32], add: Option<&[f32]>, y: &mut [f32]| conv.run(x, add, y));
                Some(Made { run, name, blocked_input: way != Way::Plain, blocked: true })
            }
            Kind::Depthwise { s, held } => {
                let conv = Depthwise::new(s, held.data::<f32>().slice(), bias, after)?;
                let name = format!("conv2d Depthwise {:?}→{:?}{suffix}", s.input, s.output);
                let run = Box::new(move |x: &[f32], add: Option<&[f32]>, y: &mut [f32]| conv.run(x, add, y));
                Some(Made { run, name, blocked_input: true, blocked: true })
            }
            Kind::Linear { weight, held, turned } => {
                let make = || {
                    let data = held.data::<f32>();
                    let View { data, shape, strides, offset } = data.view();
                    match (turned, shape, strides) {
                        (true, &[n, k], &[a, b]) => {
                            Packed::matrix(View { data, offset, shape: &[k, n], strides: &[b, a] })
                        }
                        _ => Packed::matrix(View { data, offset, shape, strides }),
                    }
                };
                let packed: Arc<Packed> = packed.get(*weight, Form::Matrix { turned: *turned }, make);
                let linear = Linear::new(packed, bias, after);
                let run = Box::new(move |x: &[f32], add: Option<&[f32]>, y: &mut [f32]| linear.run(x, add, y));
                Some(Made {
                    run,
                    name: format!("linear {:?}{suffix}", self.shape),
                    blocked_input: false,
                    blocked: false,
                })
            }
        }
    }
}

/// The pooling of images that a call is, over all its planes.
pub(super) fn pooling(heard: &Heard) -> Option<(PoolShape, Pooling)> {
    let part = part(heard, "max_pool").or_else(|| part(heard, "avg_pool"))?;
    let (x, y) = (part.tensor("x")?, &heard.outputs[0]);
    if x.ndim() != 4 || !float(x) || heard.outputs.len() != 1 || y.numel() == 0 {
        return None;
    }
    let kernel = part.ints("kernel")?;
    if matches!(part.arg("shift"), Some(Value::Float(_))) {
        return None;
    }
    let windows = match kernel.as_slice() {
        [] => Windows::Adaptive,
        _ => {
            let pad = part.ints("pad")?;
            let [a, b, c, d] = pad[..] else { return None };
            Windows::Sliding {
                kernel: lift(&kernel, 1),
                stride: part.lifted("stride", 2, 1)?,
                pad: lift(&[a, b], 0),
                pad_end: lift(&[c, d], 0),
            }
        }
    };
    let s = PoolShape {
        planes: x.shape()[0] * x.shape()[1],
        input: lift(&x.shape()[2..], 1),
        output: lift(&y.shape()[2..], 1),
        windows,
    };
    let kind = match (part.op.name, part.arg("exclusive"), part.arg("divide_by")) {
        ("max_pool", ..) => Pooling::Max,
        (_, _, Some(Value::Float(v))) => Pooling::Average(Divisor::Fixed(*v)),
        (_, Some(Value::Bool(true)), _) => Pooling::Average(Divisor::Inside),
        _ => Pooling::Average(Divisor::Window),
    };
    Some((s, kind))
}

/// Is a call nothing but another shape of the same elements?
pub(super) fn reshapes(heard: &Heard) -> bool {
    part(heard, "reshape_to").is_some()
}
