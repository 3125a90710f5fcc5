//! Batch normalisation by the statistics of all processes.

use crate::joint::Joint;
use sampan_core::autograd::{Function, FunctionContext, apply};
use sampan_core::ops::joining::try_concat;
use sampan_core::{DType, Result, Tensor, ensure, no_grad};
use std::sync::Arc;

/// What is normalised how.
pub(super) struct SyncNorm {
    pub joint: Arc<dyn Joint>,
    pub epsilon: f64,
    pub momentum: f64,
    /// Do channels come last?
    pub last: bool,
}

/// The running statistics and the learnt scale and shift.
pub(super) struct Given<'a> {
    pub running: [Tensor; 2],
    pub affine: [Option<&'a Tensor>; 2],
}

impl SyncNorm {
    /// Normalises, and moves the running statistics.
    pub fn run(self, x: &Tensor, given: Given<'_>) -> Result<Tensor> {
        let (momentum, [weight, bias]) = (self.momentum, given.affine);
        ensure!(x.dtype().is_float(), "x must be of floats, got {}", x.dtype());
        let s = x.shape();
        // As [batch, channels, rest]; channels-last data has no rest.
        let rows = match self.last && s.len() > 2 {
            true => x.reshape([s[..s.len() - 1].iter().product(), s[s.len() - 1], 1]),
            false => x.reshape([s[0], s[1], s[2..].iter().product()]),
        };
        let channels = rows.dim(1);
        for (name, t) in [("running_mean", Some(&given.running[0])), ("weight", weight), ("bias", bias)] {
            if let Some(t) = t {
                ensure!(t.shape() == [channels], "{name} has shape {:?}, x has {channels} channels", t.shape());
            }
        }
        let mut inputs = vec![rows];
        inputs.extend(weight.cloned());
        inputs.extend(bias.cloned());
        let core = Core { joint: self.joint, epsilon: self.epsilon, scaled: weight.is_some(), shifted: bias.is_some() };
        let found = apply(core, &inputs)?;
        no_grad(|| -> Result<()> {
            for (running, now) in given.running.iter().zip(&found[1..]) {
                let now = now.detach().cast(running.dtype());
                running.try_set_value(&(running * momentum + now * (1.0 - momentum)))?;
            }
            Ok(())
        })?;
        Ok(found[0].reshape(x.shape()))
    }
}

/// The calculation on `[batch, channels, rest]`: the result, the mean and the variance.
struct Core {
    joint: Arc<dyn Joint>,
    epsilon: f64,
    scaled: bool,
    shifted: bool,
}

fn column(t: &Tensor) -> Tensor {
    t.reshape([1, t.numel(), 1])
}

fn over_channels(t: &Tensor) -> Tensor {
    t.sum([0, 2])
}

impl Core {
    /// Several rows of channels, each summed over all processes, in one exchange.
    fn sums(&self, rows: &[Tensor]) -> Result<Vec<Tensor>> {
        let joined = try_concat(rows, 0)?;
        self.joint.sum(&joined)?;
        let mut at = 0;
        let part = |t: &Tensor| {
            at += t.numel();
            joined.narrow(0, at - t.numel(), t.numel())
        };
        Ok(rows.iter().map(part).collect())
    }
}

impl Function for Core {
    fn forward(&self, cx: &mut FunctionContext, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        let dtype = inputs[0].dtype();
        let wide = if dtype == DType::Float64 { dtype } else { DType::Float32 };
        let x = inputs[0].cast(wide);
        let own = (x.dim(0) * x.dim(2)) as f64;
        let local = over_channels(&x);
        // On the device of the data.
        let counted = local.narrow(0, 0, 1).zeros_like() + own;
        let [total, count] = &self.sums(&[local, counted])?[..] else { unreachable!("two rows") };
        let count = count.to_f64();
        ensure!(count > 0.0, "the statistics of an empty batch do not exist");
        let mean = total / count;
        let centred = &x - column(&mean);
        // By the distances from the mean of all: the difference of two large sums would lose what it is after.
        let variance = &self.sums(&[over_channels(&centred.square())])?[0] / count;
        let inverse = (&variance + self.epsilon).rsqrt();
        let mut y = centred * column(&inverse);
        if self.scaled {
            y = y * column(&inputs[1].cast(wide));
        }
        if self.shifted {
            y = y + column(&inputs[inputs.len() - 1].cast(wide));
        }
        cx.save_for_backward(&[inputs[0].clone(), mean.clone(), inverse]);
        if self.scaled {
            cx.save_for_backward(&[inputs[1].clone()]);
        }
        cx.set_state(count);
        cx.mark_non_differentiable(&[mean.clone(), variance.clone()]);
        Ok(vec![y.cast(dtype), mean, variance])
    }

    fn backward(&self, cx: &FunctionContext, grads: &[Option<Tensor>]) -> Result<Vec<Option<Tensor>>> {
        let saved = cx.saved_tensor();
        let (x, mean, inverse) = (&saved[0], &saved[1], &saved[2]);
        let count = *cx.state::<f64>().unwrap_or(&1.0);
        let g = grads[0].as_ref().map_or_else(|| x.zeros_like(), Clone::clone).cast(mean.dtype());
        let normal = (x.cast(mean.dtype()) - column(mean)) * column(inverse);
        let (shift, scale) = (over_channels(&g), over_channels(&(&g * &normal)));
        // Everybody's data depends on the statistics of all; weight and bias are each process's own, and averaged later.
        let all = self.sums(&[shift.clone(), scale.clone()])?;
        let centred = &g - column(&(&all[0] / count)) - normal * column(&(&all[1] / count));
        let factor = match self.scaled {
            true => inverse * saved[3].cast(mean.dtype()),
            false => inverse.clone(),
        };
        let mut out = vec![Some((centred * column(&factor)).cast(x.dtype()))];
        if self.scaled {
            out.push(Some(scale));
        }
        if self.shifted {
            out.push(Some(shift));
        }
        Ok(out)
    }

    fn name(&self) -> &'static str {
        "sync_batch_norm"
    }
}
