//! Steps of optimizers.

use super::Held;
use crate::recording;
use crate::{DType, Device, Error, Result, Tensor};
use sampan_cuda::optim::{self, Part};
use sampan_kernels::optim::{Formula, Prepare, Written};
use std::collections::BTreeMap;

/// One parameter's part in a step; states are what the formula works on.
pub struct Step<'a> {
    /// The parameter, changed in place.
    pub param: &'a Tensor,
    /// Its gradient, contiguous and of the same dtype.
    pub grad: &'a Tensor,
    /// A wider copy of a half-precision parameter, which is then what the formula changes.
    pub master: Option<&'a Tensor>,
    /// What the optimizer remembers, and which row of it is used.
    pub states: Vec<(&'a Tensor, usize)>,
    /// What to do.
    pub formula: Formula,
    /// The step's size.
    pub lr: f64,
    /// What to do with the gradient first.
    pub prepare: Prepare,
    /// A factor of the gradient on the GPU, in float64: the tensor and which of its elements.
    pub factor: Option<(&'a Tensor, usize)>,
}

impl Step<'_> {
    /// The formulas of this step and their numbers, if one pass is enough.
    pub fn written(&self) -> Option<Written> {
        written(self.param.dtype(), self.formula, self.lr, &self.prepare)
    }
}

/// The formulas of a step and their numbers, if one pass is enough.
pub fn written(dtype: DType, formula: Formula, lr: f64, prepare: &Prepare) -> Option<Written> {
    match dtype {
        DType::Float64 => formula.written::<f64>(lr, prepare),
        _ => formula.written::<f32>(lr, prepare),
    }
}

/// Takes the steps on the GPU that all parameters are on; false, with nothing done, if they are elsewhere or the formula needs
/// more than one pass. Where the work is recorded, `live` gives its numbers anew, one step's after the other.
pub fn step<L: recording::Live + 'static>(steps: &[Step], live: impl FnOnce(&[Written]) -> L) -> Result<bool> {
    let Some(Device::Cuda(number)) = steps.first().map(|s| s.param.device()) else { return Ok(false) };
    if steps.iter().any(|s| s.param.device() != Device::Cuda(number) || s.grad.device() != s.param.device()) {
        return Ok(false);
    }
    let gpu = super::gpu(number)?;
    let Some(written) = steps.iter().map(Step::written).collect::<Option<Vec<Written>>>() else { return Ok(false) };
    let mut kept = vec![None; steps.len()];
    if recording::on() {
        let numbers: Vec<u64> = written.iter().flat_map(|w| w.constants.iter().map(|c| c.to_bits())).collect();
        let mut at = recording::words(&numbers, live(&written))?;
        for (kept, w) in kept.iter_mut().zip(&written) {
            *kept = Some(at);
            at += w.constants.len() as u64 * 8;
        }
    }
    // Parameters of one dtype and one formula go together.
    let mut groups: BTreeMap<(usize, &str, bool), Vec<usize>> = BTreeMap::new();
    for (i, (s, w)) in steps.iter().zip(&written).enumerate() {
        let key = (w.formulas.as_ptr().addr(), s.param.dtype().name(), s.master.is_some());
        groups.entry(key).or_default().push(i);
    }
    let gate = recording::gate_in_use();
    for members in groups.values() {
        let mut held = Vec::with_capacity(members.len());
        for &i in members {
            let s = &steps[i];
            let whole = |t: &Tensor| Held::to_change(t, t.layout().clone());
            let states =
                s.states.iter().map(|(t, row)| Ok((whole(t)?, row * s.param.numel()))).collect::<Result<Vec<_>>>()?;
            let factor = s.factor.map(|(t, at)| Ok::<_, Error>((Held::values(t, gpu)?, at))).transpose()?;
            held.push((whole(s.param)?, Held::values(s.grad, gpu)?, s.master.map(whole).transpose()?, states, factor));
        }
        let parts: Vec<Part> = members
            .iter()
            .zip(&held)
            .map(|(&i, (param, grad, master, states, factor))| Part {
                len: steps[i].param.numel(),
                param: param.block(),
                grad: grad.start(),
                master: master.as_ref().map(Held::block),
                states: states.iter().map(|(s, at)| (s.block(), *at)).collect(),
                constants: written[i].constants.clone(),
                kept: kept[i],
                factor: factor.as_ref().map(|(f, at)| (f.block(), f.start().1 + at)),
            })
            .collect();
        optim::step(gpu, &written[members[0]].formulas, steps[members[0]].param.dtype(), &parts, gate)?;
    }
    for s in steps {
        for t in [s.param].into_iter().chain(s.master).chain(s.states.iter().map(|(t, _)| *t)) {
            t.storage().bump();
            crate::dispatch::wrote(t, t, crate::dispatch::Write::Update);
        }
    }
    Ok(true)
}
