//! The kernels of layers that compute with codes.

use super::build::{Builder, refused};
use super::codes::{Coded, Codes, Steps};
use super::layers::{Kind, Layer};
use super::memory::{Source, Val};
use super::places::Place;
use super::run::Kernel;
use crate::graph::Id;
use sampan_core::Result;
use sampan_kernels::View;
use sampan_kernels::planned::int8::{self, Add, Conv, Grid, Linear, Out, Packed, bytes, bytes_mut};
use sampan_kernels::planned::{After, BLOCK};

impl Builder<'_> {
    /// A layer of codes; as codes again, or as numbers.
    pub(super) fn make_coded(&mut self, layer: Layer, id: Id, to: Option<Grid>) -> Result<Val> {
        let Some(coded) = layer.coded.clone() else { return Err(refused("a layer without codes")) };
        let Coded { x, weight } = &*coded;
        let after = layer.after.unwrap_or(After::Same);
        let bias = layer.bias.as_ref().map(|b| b.data::<f32>().slice().to_vec());
        let mut steps: Vec<f32> = weight.steps.to_vec();
        let step = if let Steps::One(step) = x.steps { [step] } else { [1.0] };
        let mut from = vec![Source::Val(x.val)];
        let each = matches!(x.steps, Steps::Each(_));
        if let Steps::Each(val) = x.steps {
            from.push(Source::Val(val));
        }
        let held = weight.held.try_contiguous()?;
        let suffix = format!(
            "{}{}{}",
            if layer.add.is_some() { " + sum" } else { "" },
            if layer.after.is_some() { " + activation" } else { "" },
            if to.is_some() { " to codes" } else { "" }
        );
        match &layer.kind {
            Kind::Conv { s, .. } => {
                let s = *s;
                steps.resize(s.out_channels, steps[0]);
                let pack = || Packed::conv(&s, held.data::<i8>().slice());
                let packed = self.shared.packed.coded(weight.codes, false, pack);
                let conv = Conv::new(&s, packed, x.zero, &steps, bias.as_deref(), after);
                let conv = conv.ok_or_else(|| refused("a convolution of an unknown kind"))?;
                let x_len = int8::image_len(s.batch, s.in_channels, s.input.iter().product());
                let y_len = s.batch * s.out_channels.next_multiple_of(BLOCK) * s.output.iter().product::<usize>();
                let added = match layer.add {
                    None => None,
                    Some(add) => Some(match self.places.get(&add) {
                        Some(Place::Decoded(Codes { val, images: true, steps: Steps::One(step), zero }))
                            if int8::lane(s.out_channels) == BLOCK =>
                        {
                            from.push(Source::Val(*val));
                            Some(Grid { step: *step, zero: *zero })
                        }
                        _ => {
                            from.push(Source::Val(self.blocked(add)?));
                            None
                        }
                    }),
                };
                let kernel: Kernel = Box::new(move |x, y| {
                    let steps = if each { x[1] } else { &step };
                    let add = match (added, x.get(1 + usize::from(each))) {
                        (Some(None), Some(add)) => Add::Numbers(add),
                        (Some(Some(grid)), Some(add)) => Add::Codes(&bytes(add)[..y_len], grid),
                        _ => Add::Nothing,
                    };
                    let out = match to {
                        Some(grid) => Out::Codes(&mut bytes_mut(y)[..y_len], grid),
                        None => Out::Numbers(y),
                    };
                    conv.run(&bytes(x[0])[..x_len], steps, add, out);
                });
                let name = format!("conv2d int8 {:?}→{:?}{suffix}", s.input, s.output);
                Ok(match to {
                    Some(_) => self.emit(name, kernel, from, y_len.div_ceil(4), vec![y_len.div_ceil(4)]),
                    None => self.emit_blocked(name, kernel, from, id),
                })
            }
            Kind::Linear { turned, .. } => {
                let [rows, outputs] = self.table(id);
                steps.resize(outputs, steps[0]);
                let inputs = held.numel() / outputs;
                let pack = || {
                    let data = held.data::<i8>();
                    let View { data, strides, offset, .. } = data.view();
                    let (a, b) = if *turned { (strides[1], strides[0]) } else { (strides[0], strides[1]) };
                    let at = |i: usize, o: usize| (offset as isize + i as isize * a + o as isize * b) as usize;
                    Packed::matrix(inputs, outputs, |i, o| data[at(i, o)])
                };
                let packed = self.shared.packed.coded(weight.codes, *turned, pack);
                let linear = Linear::new(inputs, packed, x.zero, &steps, bias.as_deref(), after);
                let linear = linear.ok_or_else(|| refused("a product of too many terms"))?;
                if let Some(add) = layer.add {
                    from.push(self.plain(add)?);
                }
                let (x_len, y_len) = (rows * int8::row_pitch(inputs), rows * int8::row_pitch(outputs));
                let kernel: Kernel = Box::new(move |x, y| {
                    let steps = if each { x[1] } else { &step };
                    let add = x.get(1 + usize::from(each)).map_or(Add::Nothing, |a| Add::Numbers(a));
                    let out = match to {
                        Some(grid) => Out::Codes(&mut bytes_mut(y)[..y_len], grid),
                        None => Out::Numbers(y),
                    };
                    linear.run(rows, &bytes(x[0])[..x_len], steps, add, out);
                });
                let name = format!("linear int8 {:?}{suffix}", layer.shape);
                Ok(match to {
                    Some(_) => self.emit(name, kernel, from, y_len.div_ceil(4), vec![y_len.div_ceil(4)]),
                    None => self.emit_plain(name, kernel, from, id),
                })
            }
            Kind::Depthwise { .. } => Err(refused("a convolution of each channel by itself has no codes yet")),
        }
    }
}

impl Layer {
    /// Can its outputs be codes in that layout?
    pub(super) fn gives_codes(&self, images: bool) -> bool {
        let channels = |at: usize| self.shape.get(at).copied().unwrap_or(0);
        self.coded.is_some()
            && match &self.kind {
                Kind::Conv { .. } => images && int8::lane(channels(1)) == BLOCK,
                Kind::Linear { .. } => {
                    let columns = self.shape.last().copied().unwrap_or(0);
                    !images && (self.add.is_none() || int8::row_pitch(columns) == columns)
                }
                Kind::Depthwise { .. } => false,
            }
    }
}
