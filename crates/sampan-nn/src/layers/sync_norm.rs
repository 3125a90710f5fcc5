//! Batch normalisation by the statistics of all processes. They are summed in float64 and only then rounded, so that they have
//! the bits of one process with the whole batch, and so has the result: a rectifier after it lets through what it would there.

use super::bound::first;
use crate::joint::Joint;
use sampan_core::autograd::{Function, FunctionContext, apply};
use sampan_core::dispatch::dispatch;
use sampan_core::op::{self, Outputs};
use sampan_core::ops::joining::try_concat;
use sampan_core::{DType, Device, Error, Result, Tensor, Value, ensure, no_grad};
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

/// Calls an op that is part of others.
fn call(name: &str, args: impl IntoIterator<Item = Value>) -> Result<Vec<Tensor>> {
    let op = op::find(name).ok_or_else(|| Error::invalid(format!("there is no op {name:?}")))?;
    dispatch(op, args.into_iter().collect()).map(Outputs::into_vec)
}

/// Sums over everything but channels, in float64 where numbers have become few.
fn over_channels(t: &Tensor) -> Tensor {
    t.sum([2]).cast(DType::Float64).sum([0])
}

/// Mean and biased variance of the channels of this process, in float64.
fn moments(x: &Tensor) -> Result<[Tensor; 2]> {
    if x.device() == Device::Cpu {
        let found = call("channel_moments", [x.into()])?;
        return Ok([found[0].clone(), found[1].clone()]);
    }
    let count = (x.dim(0) * x.dim(2)) as f64;
    let mean = over_channels(x) / count;
    let centred = x - column(&mean.cast(x.dtype()));
    Ok([mean, over_channels(&centred.square()) / count])
}

/// Σ g and Σ g·(x - mean) of the channels of this process, in float64.
fn gradient_sums(x: &Tensor, g: &Tensor, mean: &Tensor) -> Result<[Tensor; 2]> {
    if x.device() == Device::Cpu {
        let found = call("channel_grad_sums", [x, g, mean].map(Value::from))?;
        return Ok([found[0].clone(), found[1].clone()]);
    }
    let (g, far) = (g.cast(mean.dtype()), x.cast(mean.dtype()) - column(mean));
    Ok([over_channels(&g), over_channels(&(&g * far))])
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
        let x = &inputs[0];
        let own = (x.dim(0) * x.dim(2)) as f64;
        let [own_mean, own_variance] = match own > 0.0 {
            true => moments(x)?,
            // It has nothing to say, but others wait for it.
            false => [(); 2].map(|()| Tensor::zeros([x.dim(1)], DType::Float64)),
        };
        // On the device of the data.
        let counted = own_mean.narrow(0, 0, 1).zeros_like() + own;
        let [total, count] = &self.sums(&[&own_mean * own, counted])?[..] else { unreachable!("two rows") };
        let count = count.to_f64();
        ensure!(count > 0.0, "the statistics of an empty batch do not exist");
        let mean = total / count;
        // By the distances from the mean of all: the difference of two large sums would lose what it is after.
        let spread = (own_variance + (own_mean - &mean).square()) * own;
        let variance = (&self.sums(&[spread])?[0] / count).cast(wide);
        let mean = mean.cast(wide);
        let mut affine = inputs[1..].iter();
        let mut next = |there: bool| there.then(|| affine.next()).flatten().map_or(Value::None, Value::from);
        let [weight, bias] = [next(self.scaled), next(self.shifted)];
        let told = [x.into(), (&mean).into(), (&variance).into(), weight, bias, self.epsilon.into(), "".into()];
        let y = first(call("channel_norm_by", told)?)?;
        cx.save_for_backward(&[x.clone(), mean.clone(), variance.clone()]);
        if self.scaled {
            cx.save_for_backward(&[inputs[1].clone()]);
        }
        cx.set_state(count);
        cx.mark_non_differentiable(&[mean.clone(), variance.clone()]);
        Ok(vec![y, mean, variance])
    }

    fn backward(&self, cx: &FunctionContext, grads: &[Option<Tensor>]) -> Result<Vec<Option<Tensor>>> {
        let saved = cx.saved_tensor();
        let (x, mean, variance) = (&saved[0], &saved[1], &saved[2]);
        let (wide, count) = (mean.dtype(), *cx.state::<f64>().unwrap_or(&1.0));
        let g = grads[0].as_ref().map_or_else(|| x.zeros_like(), Clone::clone);
        let weight = self.scaled.then(|| &saved[3]);
        // Everybody's data depends on the statistics of all; weight and bias are each process's own, and averaged later.
        let own = gradient_sums(x, &g, mean)?;
        let all = self.sums(&own)?;
        let dx = match x.device() {
            Device::Cpu => {
                let told = [x, &g].map(Value::from);
                let rest = [mean, variance, &all[0], &all[1]].map(Value::from);
                let weight = weight.map_or(Value::None, Value::from);
                let args = told.into_iter().chain([weight]).chain(rest).chain([count.into(), self.epsilon.into()]);
                first(call("channel_grad_by", args)?)?
            }
            _ => {
                let inverse = (variance + self.epsilon).rsqrt();
                let slope = (&all[1] / count).cast(wide) * inverse.square();
                let far = x.cast(wide) - column(mean);
                let centred = g.cast(wide) - column(&(&all[0] / count).cast(wide)) - far * column(&slope);
                let scale = weight.map_or(inverse.clone(), |w| &inverse * w.cast(wide));
                (centred * column(&scale)).cast(x.dtype())
            }
        };
        let mut out = vec![Some(dx)];
        if self.scaled {
            let inverse = (variance + self.epsilon).rsqrt().cast(DType::Float64);
            out.push(Some((&own[1] * inverse).cast(wide)));
        }
        if self.shifted {
            out.push(Some(own[0].cast(wide)));
        }
        Ok(out)
    }

    fn name(&self) -> &'static str {
        "sync_batch_norm"
    }
}
