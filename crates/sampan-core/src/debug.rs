//! Finds the op that made the first NaN or infinity.

use crate::error::Kind;
use crate::op::OpDef;
use crate::{Device, Error, Result, Tensor, Value};

/// How many NaN and infinite values a tensor holds. Integers hold none.
pub fn count_non_finite(t: &Tensor) -> (usize, usize) {
    if !t.dtype().is_inexact() {
        return (0, 0);
    }
    // A device whose memory is not the host's counts by ops (`isnan`, `isinf` and their sums), which run where it is.
    match t.device() {
        Device::Cpu | Device::Cuda(_) => count_on_host(t),
        Device::Meta => (0, 0),
    }
}

fn count_on_host(t: &Tensor) -> (usize, usize) {
    // Not through `contiguous`, an op whose own output would be checked.
    let copy = (!t.is_contiguous()).then(|| t.try_clone_data().expect("a copy needs only memory"));
    let t = copy.as_ref().unwrap_or(t).parts();
    sampan_kernels::reduce::count_non_finite(t.values().slice())
}

/// Fails if an output is not finite although all inputs were.
pub(crate) fn check_finite(op: &'static OpDef, args: &[Value], outputs: &[Tensor]) -> Result<()> {
    // Random and uninitialised memory (`empty`) is nobody's mistake.
    if op.family() == "creation" {
        return Ok(());
    }
    for (i, t) in outputs.iter().enumerate() {
        let (nan, inf) = count_non_finite(t);
        if nan + inf == 0 {
            continue;
        }
        let mut inputs = Vec::new();
        for (p, v) in op.params.iter().zip(args) {
            v.for_each_tensor(&mut |t| {
                let (nan, inf) = count_non_finite(t);
                inputs.push(format!("{}={:?} {} with {nan} NaN, {inf} Inf", p.name, t.shape(), t.dtype()));
            });
        }
        let place = crate::dispatch::caller().map(|l| format!(", called at {l}")).unwrap_or_default();
        return Err(Error::new(
            Kind::NotFinite,
            format!("output {i} of shape {:?} has {nan} NaN and {inf} Inf{place}", t.shape()),
        )
        .in_op(op.name)
        .received(inputs.join(", ")));
    }
    Ok(())
}
