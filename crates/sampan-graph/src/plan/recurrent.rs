//! LSTMs: a kernel for each layer, products and gates in one pass.

use super::build::Builder;
use super::lock;
use super::memory::Source;
use super::places::Place;
use super::run::Kernel;
use crate::graph::{Arg, Call, Id};
use sampan_core::{Result, Tensor, Value};
use sampan_kernels::planned::Lstm;
use std::sync::Arc;

/// Tensors of a cell that has no projection.
const EACH: usize = 4;

impl Builder<'_> {
    /// Plans a call of `rnn` if it is an LSTM with known weights that begins at zero, whose last cell states nobody asks for.
    pub(super) fn recurrent(&mut self, call: &Call, args: &[Value]) -> Result<bool> {
        let arg = |name: &str| call.op.position(name).and_then(|at| args.get(at));
        let is = |name: &str, word: &str| matches!(arg(name), Some(Value::Str(s)) if **s == *word);
        let flag = |name: &str| matches!(arg(name), Some(Value::Bool(true)));
        let (Some(Arg::Tensor(x)), Some(Arg::Tensors(weights)), Some(Value::Int(layers))) =
            (call.arg("x"), call.arg("weights"), arg("num_layers"))
        else {
            return Ok(false);
        };
        let [out, last, cells] = call.outputs[..] else { return Ok(false) };
        let directions = if is("direction", "forward") { 1 } else { 2 };
        let count = usize::try_from(*layers).unwrap_or(0) * directions;
        let held = |id: &Id| self.held(*id).filter(|t| self.is_float(*id) && t.numel() > 0);
        let nothing = |t: &Tensor| t.to_vec::<f32>().iter().all(|&v| v == 0.0);
        let zero = match call.arg("initial_states") {
            Some(Arg::Tensors(ids)) => ids.iter().all(|id| held(id).is_some_and(nothing)),
            Some(Arg::Plain(Value::List(all))) => all.is_empty(),
            Some(Arg::Plain(Value::Tensors(all))) => all.is_empty(),
            _ => false,
        };
        let fits = is("mode", "LSTM")
            && zero
            && count > 0
            && weights.len() == count * EACH
            && weights.iter().all(|id| held(id).is_some())
            && self.uses[cells] == 0
            && matches!(arg("sequence_length"), None | Some(Value::None))
            && !flag("training")
            && self.held(*x).is_none()
            && self.is_float(*x)
            && !self.shape(out).contains(&0);
        if !fits {
            return Ok(false);
        }
        let time_major = flag("time_major");
        let &[first, second, width] = self.shape(out) else { return Ok(false) };
        let (batch, steps) = if time_major { (second, first) } else { (first, second) };
        let (mut from, mut all) = (self.plain(*x)?, vec![]);
        for (k, ids) in weights.chunks(directions * EACH).enumerate() {
            let layer = self.packed_lstm(ids)?;
            let kernel: Kernel = Box::new(move |x, y| layer.run(batch, steps, time_major, x[0], y));
            let y = self.emit_plain(format!("LSTM, layer {k}"), kernel, vec![from], out);
            self.places.insert(out, Place::There { plain: Some(y), blocked: None });
            from = Source::Val(y);
            all.push(from.clone());
        }
        if self.uses[last] > 0 {
            let units = width / directions;
            let kernel: Kernel = Box::new(move |layers, h| {
                for (i, h) in h.chunks_exact_mut(units).enumerate() {
                    let (cell, b) = (i / batch, i % batch);
                    let (layer, way) = (cell / directions, cell % directions);
                    let t = if way == 1 { 0 } else { steps - 1 };
                    let row = if time_major { t * batch + b } else { b * steps + t };
                    h.copy_from_slice(&layers[layer][row * width + way * units..][..units]);
                }
            });
            let h = self.emit_plain("the last outputs".into(), kernel, all, last);
            self.places.insert(last, Place::There { plain: Some(h), blocked: None });
        }
        Ok(true)
    }

    /// A layer with its weights packed, once for all plans.
    fn packed_lstm(&self, ids: &[Id]) -> Result<Arc<Lstm>> {
        let known = &self.shared.packed.2;
        if let Some(layer) = lock(known).get(&ids[0]) {
            return Ok(layer.clone());
        }
        let tensors =
            ids.iter().filter_map(|&id| self.held(id)).map(Tensor::try_contiguous).collect::<Result<Vec<_>>>()?;
        let (units, depth) = (tensors[1].dim(1), tensors[0].dim(1));
        let data: Vec<_> = tensors.iter().map(|t| t.data::<f32>()).collect();
        let parts: Vec<_> = data.chunks_exact(EACH).map(|d| [0, 1, 2, 3].map(|i| d[i].slice())).collect();
        let made = Arc::new(Lstm::new(units, depth, &parts));
        Ok(lock(known).entry(ids[0]).or_insert(made).clone())
    }
}
