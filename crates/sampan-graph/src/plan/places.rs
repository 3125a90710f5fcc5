//! Values of a graph on their way into steps: put off, computed, in one layout or both.

use super::build::{Builder, refused};
use super::codes::{CodedWeight, Codes};
use super::layers::{Kind, Layer};
use super::memory::{Draft, Source, Val};
use super::run::{Given, Kernel};
use crate::graph::Id;
use sampan_core::{DType, Layout, Result, Tensor, Value};
use sampan_formula::{Bound, Constant, formula};
use sampan_kernels::planned::{After, block, blocked_len, gate, unblock};
use sampan_kernels::{AnySlice, AnySliceMut, AnyView, map};

/// Where a value of the graph is.
#[derive(Clone)]
pub(super) enum Place {
    Held(Tensor),
    /// There, in one layout or both.
    There {
        plain: Option<Val>,
        blocked: Option<Val>,
    },
    /// A layer that something may yet become a part of.
    Layer(Box<Layer>),
    /// A formula that others may yet go into.
    Chain(Bound, Vec<Id>),
    /// Codes, and the numbers that codes stand for.
    Codes(Codes),
    Decoded(Codes),
    /// The numbers that a weight's codes stand for.
    Weight(Box<CodedWeight>),
}

impl Builder<'_> {
    pub(super) fn emit(
        &mut self,
        name: String,
        kernel: Kernel,
        from: Vec<Source>,
        len: usize,
        shape: Vec<usize>,
    ) -> Val {
        let to = self.val(len, shape, false);
        self.drafts.push(Draft::Floats { name, kernel, from, to });
        to
    }

    pub(super) fn emit_blocked(&mut self, name: String, kernel: Kernel, from: Vec<Source>, id: Id) -> Val {
        let shape = self.shape(id);
        let len = blocked_len(shape[0], shape[1], shape[2..].iter().product());
        self.emit(name, kernel, from, len, vec![len])
    }

    pub(super) fn emit_plain(&mut self, name: String, kernel: Kernel, from: Vec<Source>, id: Id) -> Val {
        let shape = self.shape(id).to_vec();
        self.emit(name, kernel, from, shape.iter().product(), shape)
    }

    /// Computes what was put off.
    pub(super) fn force(&mut self, id: Id) -> Result<()> {
        let place = match self.places.get(&id) {
            None => return Err(refused(format!("value {id} is read before it is given"))),
            Some(Place::Held(_) | Place::There { .. }) => return Ok(()),
            Some(Place::Layer(layer)) => self.make((**layer).clone(), id)?,
            Some(Place::Codes(_)) => return Err(refused(format!("codes of value {id} are read as numbers"))),
            Some(Place::Decoded(codes)) => {
                let codes = *codes;
                self.decode(codes, id)?
            }
            Some(Place::Weight(weight)) => {
                let weight = weight.clone();
                self.decode_weight(&weight, id)?
            }
            Some(Place::Chain(formula, inputs)) => self.compute(formula.clone(), inputs.clone(), id)?,
        };
        self.places.insert(id, place);
        Ok(())
    }

    pub(super) fn make(&mut self, layer: Layer, id: Id) -> Result<Place> {
        if layer.coded.is_some() {
            let rows = matches!(layer.kind, Kind::Linear { .. });
            let to = Some(self.make_coded(layer, id, None)?);
            return Ok(if rows {
                Place::There { plain: to, blocked: None }
            } else {
                Place::There { plain: None, blocked: to }
            });
        }
        self.force(layer.x)?;
        let plain = matches!(self.places[&layer.x], Place::There { blocked: None, .. });
        let made = layer.make(&self.shared.packed, plain);
        let made = made.ok_or_else(|| refused("a convolution of an unknown kind"))?;
        let mut from =
            vec![if made.blocked_input { Source::Val(self.blocked(layer.x)?) } else { self.plain(layer.x)? }];
        if let Some(add) = layer.add {
            from.push(if made.blocked { Source::Val(self.blocked(add)?) } else { self.plain(add)? });
        }
        let run = made.run;
        let kernel: Kernel = Box::new(move |x, y| run(x[0], x.get(1).copied(), y));
        Ok(match made.blocked {
            true => {
                let to = self.emit_blocked(made.name, kernel, from, id);
                Place::There { plain: None, blocked: Some(to) }
            }
            false => Place::There { plain: Some(self.emit_plain(made.name, kernel, from, id)), blocked: None },
        })
    }

    /// A formula over values.
    pub(super) fn compute(&mut self, mut formula: Bound, mut inputs: Vec<Id>, id: Id) -> Result<Place> {
        for &input in &inputs {
            self.force(input)?;
        }
        // A single number is a constant of the formula.
        for at in (0..inputs.len().min(3)).rev() {
            if let Some(t) = self.held(inputs[at])
                && t.numel() == 1
                && inputs.len() > 1
            {
                formula = formula.with_number(at, Constant::Float(t.to_f64()));
                inputs.remove(at);
            }
        }
        let shape = self.shape(id).to_vec();
        let same = inputs.iter().all(|&i| self.shape(i) == shape);
        let name = format!("{formula}");
        if let &[a, b] = inputs.as_slice()
            && formula == formula!(|x, y| x * y)
            && shape.len() == 4
        {
            for (x, s) in [(a, b), (b, a)] {
                let per_channel = [shape[0], shape[1], 1, 1];
                if self.in_blocks(x) && self.shape(x) == shape && self.shape(s) == per_channel && !same {
                    let plane = shape[2] * shape[3];
                    let from = vec![Source::Val(self.blocked(x)?), Source::Val(self.blocked(s)?)];
                    let kernel: Kernel = Box::new(move |x, y| gate(plane, x[0], x[1], After::Same, y));
                    let to = self.emit_blocked("x * y, channel by channel".into(), kernel, from, id);
                    return Ok(Place::There { plain: None, blocked: Some(to) });
                }
            }
        }
        let in_rows: Kernel = {
            let formula = formula.clone();
            Box::new(move |x, y| {
                let slices: smallvec::SmallVec<[AnySlice; 3]> = x.iter().map(|s| AnySlice::from(*s)).collect();
                map::map_slices(&formula, DType::Float32, &slices, AnySliceMut::from(y));
            })
        };
        let floats = |b: &Self, i: Id| b.held(i).is_none() && b.is_float(i);
        if same
            && shape.len() == 4
            && inputs.iter().any(|&i| self.in_blocks(i))
            && inputs.iter().all(|&i| floats(self, i))
        {
            let from = inputs.iter().map(|&i| self.blocked(i).map(Source::Val)).collect::<Result<Vec<_>>>()?;
            let to = self.emit_blocked(name, in_rows, from, id);
            return Ok(Place::There { plain: None, blocked: Some(to) });
        }
        let from = inputs.iter().map(|&i| self.plain(i)).collect::<Result<Vec<_>>>()?;
        let kernel = if same {
            in_rows
        } else {
            let views: Vec<Layout> =
                inputs.iter().map(|&i| Layout::contiguous(self.shape(i)).broadcast_to(&shape)).collect();
            Box::new(move |x: &[&[f32]], y: &mut [f32]| {
                let views = x.iter().zip(&views).map(|(data, l)| AnyView {
                    data: AnySlice::from(*data),
                    shape: &l.shape,
                    strides: &l.strides,
                    offset: l.offset,
                });
                let views: smallvec::SmallVec<[AnyView; 3]> = views.collect();
                map::map(&formula, DType::Float32, &views, AnySliceMut::from(y));
            })
        };
        Ok(Place::There { plain: Some(self.emit_plain(name, kernel, from, id)), blocked: None })
    }

    /// A value, row by row.
    pub(super) fn plain(&mut self, id: Id) -> Result<Source> {
        self.force(id)?;
        let (plain, blocked) = match &self.places[&id] {
            Place::Held(t) => return Ok(Source::Held(t.try_contiguous()?)),
            Place::There { plain, blocked } => (*plain, *blocked),
            _ => unreachable!("it was just computed"),
        };
        if let Some(val) = plain {
            return Ok(Source::Val(val));
        }
        let from = blocked.ok_or_else(|| refused("a value without a place"))?;
        let shape = self.shape(id);
        let (batch, channels, plane) = (shape[0], shape[1], shape[2..].iter().product());
        let kernel: Kernel = Box::new(move |x, y| unblock(batch, channels, plane, x[0], y));
        let val = self.emit_plain("from blocks".into(), kernel, vec![Source::Val(from)], id);
        self.places.insert(id, Place::There { plain: Some(val), blocked });
        Ok(Source::Val(val))
    }

    /// A value of four axes in blocks of channels.
    pub(super) fn blocked(&mut self, id: Id) -> Result<Val> {
        self.force(id)?;
        if let Place::There { blocked: Some(val), .. } = self.places[&id] {
            return Ok(val);
        }
        let from = self.plain(id)?;
        let shape = self.shape(id);
        let (batch, channels, plane) = (shape[0], shape[1], shape[2..].iter().product());
        let kernel: Kernel = Box::new(move |x, y| block(batch, channels, plane, x[0], y));
        let val = self.emit_blocked("to blocks".into(), kernel, vec![from], id);
        if let Some(Place::There { blocked, .. }) = self.places.get_mut(&id) {
            *blocked = Some(val);
        }
        Ok(val)
    }

    /// A value as a tensor.
    pub(super) fn as_tensor(&mut self, id: Id) -> Result<(Given, Option<Val>)> {
        if let Some(t) = self.held(id) {
            return Ok((Given::Always(Value::Tensor(t.clone())), None));
        }
        let Source::Val(val) = self.plain(id)? else { return Err(refused("a value without a place")) };
        self.vals[val].tensor = true;
        let shape = self.shape(id);
        let other = (self.vals[val].shape != shape).then(|| shape.iter().map(|&n| n as i64).collect());
        Ok((Given::Tensor(val, other), Some(val)))
    }
}
