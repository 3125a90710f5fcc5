//! Layers that compute with codes: what lies between `dequantize_linear` and `quantize_linear`.

use super::build::Builder;
use super::memory::{Source, Val};
use super::places::Place;
use super::run::Kernel;
use crate::graph::{Arg, Call, Id};
use sampan_core::dispatch::dispatch;
use sampan_core::{DType, Result, Tensor, Value, op};
use sampan_kernels::planned::int8::{self, Grid, Packed, bytes, bytes_mut};
use sampan_kernels::pool::PoolShape;
use std::sync::Arc;

/// The distance of two codes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Steps {
    One(f32),
    /// One for each sample, which is computed.
    Each(Val),
}

/// Codes among the values of a plan: four to a word.
#[derive(Clone, Copy, Debug)]
pub(super) struct Codes {
    pub val: Val,
    /// Images of codes, or rows?
    pub images: bool,
    pub steps: Steps,
    pub zero: u8,
}

/// A weight that is kept as codes.
#[derive(Clone)]
pub(super) struct CodedWeight {
    pub codes: Id,
    pub held: Tensor,
    pub steps: Tensor,
    zero: Option<Tensor>,
    axis: i64,
}

/// What a layer needs to compute with codes.
#[derive(Clone)]
pub(super) struct Coded {
    pub x: Codes,
    pub weight: CodedWeight,
}

fn id_of(call: &Call, name: &str) -> Option<Id> {
    if let Some(Arg::Tensor(id)) = call.arg(name) { Some(*id) } else { None }
}

fn int(call: &Call, name: &str) -> Option<i64> {
    if let Some(Arg::Plain(Value::Int(v))) = call.arg(name) { Some(*v) } else { None }
}

/// One number that is always the same.
fn single(t: &Tensor) -> Option<f64> {
    (t.numel() == 1).then(|| t.to_f64_vec()[0])
}

impl Builder<'_> {
    fn step_of(&self, call: &Call) -> Option<Steps> {
        let scale = id_of(call, "scale")?;
        if let Some(held) = self.held(scale) {
            let step = single(held).filter(|s| s.is_finite() && *s > 0.0)? as f32;
            return (step >= f32::MIN_POSITIVE).then_some(Steps::One(step));
        }
        // Along the samples, and by somebody who knows what it is before.
        let along = int(call, "axis") == Some(0) && self.shape(scale).len() == 1 && self.is_float(scale);
        match self.places.get(&scale)? {
            Place::There { plain: Some(val), .. } if along => Some(Steps::Each(*val)),
            _ => None,
        }
    }

    /// The code of zero, as unsigned codes have it.
    fn zero_of(&self, call: &Call, dtype: DType) -> Option<u8> {
        let zero = match call.arg("zero_point") {
            None | Some(Arg::Plain(Value::None)) => 0.0,
            Some(Arg::Tensor(id)) => single(self.held(*id)?)?,
            _ => return None,
        };
        match dtype {
            DType::Int8 if (-128.0..=127.0).contains(&zero) => Some((zero + 128.0) as u8),
            DType::UInt8 if (0.0..=255.0).contains(&zero) => Some(zero as u8),
            _ => None,
        }
    }

    /// The calls that read a value.
    fn readers(&self, id: Id) -> impl Iterator<Item = &Call> {
        self.shared.graph.calls.iter().filter(move |c| {
            let mut reads = false;
            c.args.iter().for_each(|a| a.for_each_id(&mut |i| reads |= i == id));
            reads
        })
    }

    /// Does what a call of codes asks for; false where it is like any other.
    pub(super) fn coded_call(&mut self, call: &Call) -> Result<bool> {
        match call.op.name {
            "sample_steps" => self.sample_steps(call),
            "quantize_linear" => self.quantize(call),
            "dequantize_linear" => self.dequantize(call),
            "conv2d" | "linear" | "matmul" => self.prepare(call),
            _ => Ok(false),
        }
    }

    /// `[images, channels, places]` of a value of four axes.
    fn image(&self, id: Id) -> [usize; 3] {
        let shape = self.shape(id);
        [shape[0], shape[1], shape[2] * shape[3]]
    }

    /// Rows and columns of any value.
    pub(super) fn table(&self, id: Id) -> [usize; 2] {
        let columns = self.shape(id).last().copied().unwrap_or(1);
        [self.shape(id).iter().product::<usize>() / columns.max(1), columns]
    }

    fn sample_steps(&mut self, call: &Call) -> Result<bool> {
        let (Some(x), &[out]) = (id_of(call, "x"), &call.outputs[..]) else { return Ok(false) };
        if !self.is_float(x) || self.held(x).is_some() || self.shape(x).is_empty() {
            return Ok(false);
        }
        self.force(x)?;
        let shape = self.shape(x).to_vec();
        let blocked = self.in_blocks(x);
        let from = if blocked { Source::Val(self.blocked(x)?) } else { self.plain(x)? };
        let [batch, channels, plane] = match shape.len() {
            4 => self.image(x),
            _ => [shape[0], 1, shape[1..].iter().product()],
        };
        let kernel: Kernel = Box::new(move |x, y| {
            int8::largest(batch, channels, plane, blocked, x[0], y);
            y.iter_mut().for_each(|v| *v = *v * (1.0 / 127.0) + 1e-12);
        });
        self.know(out, Tensor::meta([batch], DType::Float32));
        let to = self.emit("steps of samples".into(), kernel, vec![from], batch, vec![batch]);
        self.places.insert(out, Place::There { plain: Some(to), blocked: None });
        Ok(true)
    }

    fn quantize(&mut self, call: &Call) -> Result<bool> {
        let (Some(x), &[out]) = (id_of(call, "x"), &call.outputs[..]) else { return Ok(false) };
        let Some(Arg::Plain(Value::DType(dtype))) = call.arg("dtype") else { return Ok(false) };
        if let Some(scale) = id_of(call, "scale").filter(|&s| self.held(s).is_none()) {
            self.force(scale)?;
        }
        let only_back = !self.shared.graph.outputs.contains(&out)
            && self.readers(out).all(|c| c.op.name == "dequantize_linear" && id_of(c, "x") == Some(out))
            && self
                .readers(out)
                .all(|c| id_of(c, "scale") == id_of(call, "scale") || self.step_of(c) == self.step_of(call))
            && self.readers(out).all(|c| self.zero_of(c, *dtype) == self.zero_of(call, *dtype));
        let (Some(steps), Some(zero), true) = (self.step_of(call), self.zero_of(call, *dtype), only_back) else {
            return Ok(false);
        };
        if !self.is_float(x) || self.held(x).is_some() || self.shape(x).len() < 2 || self.shape(x).contains(&0) {
            return Ok(false);
        }
        let rows_only = |c: &Call| self.readers(c.outputs[0]).all(|c| matches!(c.op.name, "linear" | "matmul"));
        let images = self.shape(x).len() == 4 && !self.readers(out).all(rows_only);
        self.know(out, Tensor::meta(self.shape(x), *dtype));
        let codes = self.codes_of(x, images, steps, zero)?;
        self.places.insert(out, Place::Codes(codes));
        Ok(true)
    }

    /// The codes of a value.
    fn codes_of(&mut self, x: Id, images: bool, steps: Steps, zero: u8) -> Result<Codes> {
        if let Some(Place::Decoded(codes)) = self.places.get(&x)
            && (codes.steps, codes.zero, codes.images) == (steps, zero, images)
        {
            // They are on that grid already.
            return Ok(*codes);
        }
        if let (Some(Place::Layer(layer)), Steps::One(step)) = (self.places.get(&x), steps)
            && self.uses[x] == 1
            && layer.gives_codes(images)
        {
            let layer = (**layer).clone();
            let val = self.make_coded(layer, x, Some(Grid { step, zero }))?;
            return Ok(Codes { val, images, steps, zero });
        }
        self.force(x)?;
        let each = match steps {
            Steps::Each(val) => Some(Source::Val(val)),
            Steps::One(_) => None,
        };
        let step = if let Steps::One(step) = steps { [step] } else { [1.0] };
        let (from, kernel, len): (Source, Kernel, usize) = if images {
            let shape @ [batch, channels, plane] = self.image(x);
            let blocked = self.in_blocks(x);
            let from = if blocked { Source::Val(self.blocked(x)?) } else { self.plain(x)? };
            let len = int8::image_len(batch, channels, plane);
            let kernel: Kernel = Box::new(move |x, y| {
                let steps = x.get(1).copied().unwrap_or(&step);
                int8::codes_of(shape, blocked, x[0], steps, zero, &mut bytes_mut(y)[..len]);
            });
            (from, kernel, len)
        } else {
            let [rows, columns] = self.table(x);
            let len = rows * int8::row_pitch(columns);
            let kernel: Kernel = Box::new(move |x, y| {
                let steps = x.get(1).copied().unwrap_or(&step);
                int8::codes_of_rows(rows, columns, x[0], steps, zero, &mut bytes_mut(y)[..len]);
            });
            (self.plain(x)?, kernel, len)
        };
        let words = len.div_ceil(4);
        let val = self.emit(
            "to codes".into(),
            kernel,
            [Some(from), each].into_iter().flatten().collect(),
            words,
            vec![words],
        );
        Ok(Codes { val, images, steps, zero })
    }

    fn dequantize(&mut self, call: &Call) -> Result<bool> {
        let (Some(x), &[out]) = (id_of(call, "x"), &call.outputs[..]) else { return Ok(false) };
        if let Some(Place::Codes(codes)) = self.places.get(&x) {
            let codes = *codes;
            self.know(out, Tensor::meta(self.shape(x), DType::Float32));
            self.places.insert(out, Place::Decoded(codes));
            return Ok(true);
        }
        let (Some(held), Some(scale)) = (self.held(x), id_of(call, "scale").and_then(|s| self.held(s))) else {
            return Ok(false);
        };
        if held.dtype() != DType::Int8 || scale.dtype() != DType::Float32 {
            return Ok(false);
        }
        let zero = match id_of(call, "zero_point") {
            Some(id) => match self.held(id) {
                Some(zero) => Some(zero.clone()),
                None => return Ok(false),
            },
            None => None,
        };
        let axis = int(call, "axis").unwrap_or(1);
        let weight = CodedWeight { codes: x, held: held.clone(), steps: scale.clone(), zero, axis };
        self.know(out, Tensor::meta(self.shape(x), DType::Float32));
        self.places.insert(out, Place::Weight(Box::new(weight)));
        Ok(true)
    }

    /// Weights of layers that cannot compute with codes become numbers.
    fn prepare(&mut self, call: &Call) -> Result<bool> {
        let Some((_, weight, _)) = crate::quantize::parts(call, &self.shared.graph) else { return Ok(false) };
        if matches!(self.places.get(&weight), Some(Place::Weight(_))) && self.coded_of(call).is_none() {
            self.force(weight)?;
        }
        Ok(false)
    }

    /// What a layer's call needs to compute with codes, if it can.
    pub(super) fn coded_of(&self, call: &Call) -> Option<Coded> {
        let (x, weight, axis) = crate::quantize::parts(call, &self.shared.graph)?;
        let (Place::Decoded(x), Place::Weight(w)) = (self.places.get(&x)?, self.places.get(&weight)?) else {
            return None;
        };
        let conv = call.op.name == "conv2d";
        let outputs = w.held.shape()[axis as usize];
        let alone = !conv || int(call, "groups").unwrap_or(1) == 1;
        let steps = w.steps.numel() == 1 || (w.steps.numel() == outputs && w.axis == axis);
        let level = w.zero.as_ref().is_none_or(|z| z.to_f64_vec().iter().all(|v| *v == 0.0));
        let depth = w.held.numel() / outputs.max(1);
        let fits = alone && steps && level && depth > 0 && depth <= 1 << 16 && x.images == conv;
        fits.then(|| Coded { x: *x, weight: (**w).clone() })
    }

    /// Codes, or a weight of codes, as numbers.
    pub(super) fn decode(&mut self, codes: Codes, id: Id) -> Result<Place> {
        let step = if let Steps::One(step) = codes.steps { [step] } else { [1.0] };
        let mut from = vec![Source::Val(codes.val)];
        if let Steps::Each(val) = codes.steps {
            from.push(Source::Val(val));
        }
        let zero = codes.zero;
        if codes.images {
            let shape @ [batch, channels, plane] = self.image(id);
            let len = int8::image_len(batch, channels, plane);
            let kernel: Kernel = Box::new(move |x, y| {
                let steps = x.get(1).copied().unwrap_or(&step);
                int8::numbers_of(shape, &bytes(x[0])[..len], steps, zero, y);
            });
            let to = self.emit_blocked("from codes".into(), kernel, from, id);
            return Ok(Place::There { plain: None, blocked: Some(to) });
        }
        let [rows, columns] = self.table(id);
        let len = rows * int8::row_pitch(columns);
        let kernel: Kernel = Box::new(move |x, y| {
            let steps = x.get(1).copied().unwrap_or(&step);
            int8::numbers_of_rows(rows, columns, &bytes(x[0])[..len], steps, zero, y);
        });
        Ok(Place::There { plain: Some(self.emit_plain("from codes".into(), kernel, from, id)), blocked: None })
    }

    pub(super) fn decode_weight(&mut self, weight: &CodedWeight, id: Id) -> Result<Place> {
        let op = op::find("dequantize_linear").expect("it is an op");
        let zero = weight.zero.clone().map_or(Value::None, Value::Tensor);
        let args = [Value::Tensor(weight.held.clone()), Value::Tensor(weight.steps.clone()), zero, weight.axis.into()];
        let numbers = dispatch(op, args.into_iter().collect())?.remove(0);
        self.know(id, numbers.clone());
        Ok(Place::Held(numbers))
    }

    /// The largest codes of windows, where codes are pooled.
    pub(super) fn pool_codes(&mut self, s: PoolShape, x: Id, out: Id) -> Option<Place> {
        let Some(Place::Decoded(codes)) = self.places.get(&x) else { return None };
        let codes = *codes;
        if !codes.images || self.uses[out] == 0 {
            return None;
        }
        let [batch, channels, _] = self.image(x);
        let s = PoolShape { planes: batch * channels.div_ceil(int8::lane(channels)), ..s };
        let (from, to) = (self.image(x)[2], self.image(out)[2]);
        let (from, to) = (int8::image_len(batch, channels, from), int8::image_len(batch, channels, to));
        let kernel: Kernel =
            Box::new(move |x, y| int8::max_pool(&s, channels, &bytes(x[0])[..from], &mut bytes_mut(y)[..to]));
        let words = to.div_ceil(4);
        let val = self.emit("pool Max of codes".into(), kernel, vec![Source::Val(codes.val)], words, vec![words]);
        Some(Place::Decoded(Codes { val, ..codes }))
    }
}

/// Packed codes of weights.
pub(super) type Coding = std::collections::HashMap<(Id, bool), Arc<Packed>>;
