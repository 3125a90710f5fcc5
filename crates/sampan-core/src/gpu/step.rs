//! Steps of optimizers.

use super::Held;
use crate::{DType, Device, Result, Tensor};
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
}

/// Takes the steps on the GPU that all parameters are on; false, with nothing done, if they are elsewhere or the formula needs
/// more than one pass.
pub fn step(steps: &[Step]) -> Result<bool> {
    let Some(Device::Cuda(number)) = steps.first().map(|s| s.param.device()) else { return Ok(false) };
    if steps.iter().any(|s| s.param.device() != Device::Cuda(number) || s.grad.device() != s.param.device()) {
        return Ok(false);
    }
    let gpu = super::gpu(number)?;
    let write = |s: &Step| match s.param.dtype() {
        DType::Float64 => s.formula.written::<f64>(s.lr, &s.prepare),
        _ => s.formula.written::<f32>(s.lr, &s.prepare),
    };
    let Some(written) = steps.iter().map(write).collect::<Option<Vec<Written>>>() else { return Ok(false) };
    // Parameters of one dtype and one formula go together.
    let mut groups: BTreeMap<(usize, &str, bool), Vec<usize>> = BTreeMap::new();
    for (i, (s, w)) in steps.iter().zip(&written).enumerate() {
        let key = (w.formulas.as_ptr().addr(), s.param.dtype().name(), s.master.is_some());
        groups.entry(key).or_default().push(i);
    }
    for members in groups.values() {
        let mut held = Vec::with_capacity(members.len());
        for &i in members {
            let s = &steps[i];
            let whole = |t: &Tensor| Held::to_change(t, t.layout().clone());
            let states =
                s.states.iter().map(|(t, row)| Ok((whole(t)?, row * s.param.numel()))).collect::<Result<Vec<_>>>()?;
            held.push((whole(s.param)?, Held::values(s.grad, gpu)?, s.master.map(whole).transpose()?, states));
        }
        let parts: Vec<Part> = members
            .iter()
            .zip(&held)
            .map(|(&i, (param, grad, master, states))| Part {
                len: steps[i].param.numel(),
                param: param.block(),
                grad: grad.start(),
                master: master.as_ref().map(Held::block),
                states: states.iter().map(|(s, at)| (s.block(), *at)).collect(),
                constants: written[i].constants.clone(),
            })
            .collect();
        optim::step(gpu, &written[members[0]].formulas, steps[members[0]].param.dtype(), &parts)?;
    }
    for s in steps {
        for t in [s.param].into_iter().chain(s.master).chain(s.states.iter().map(|(t, _)| *t)) {
            t.storage().bump();
            crate::dispatch::wrote(t, t, crate::dispatch::Write::Update);
        }
    }
    Ok(true)
}
