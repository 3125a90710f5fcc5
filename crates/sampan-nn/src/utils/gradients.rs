//! Gradients cut to size in place.

use crate::Parameter;
use sampan_core::ops::joining::try_stack;
use sampan_core::{DType, Error, Result, Tensor, bail, ensure, no_grad};

/// Scales all gradients by one factor so that their norm together, the norm of the norms of each, is at most `max_norm`.
/// `norm_type` is 0, 1, 2 or infinity. Gives the norm before; with `error_if_nonfinite` it is an error if that is infinite
/// or no number.
///
/// ```
/// use sampan_core::Tensor;
/// use sampan_nn::{Parameter, utils};
/// let p = Parameter::new(Tensor::new([1.0f32, 1.0]));
/// (p.tensor() * Tensor::new([3.0f32, 4.0])).sum(()).backward();
/// assert_eq!(utils::clip_grad_norm_(&[p.clone()], 1.0, 2.0, false)?.to_f64(), 5.0);
/// assert!((p.grad().unwrap().to_vec::<f32>()[0] - 0.6).abs() < 1e-5);
/// # Ok::<(), sampan_core::Error>(())
/// ```
pub fn clip_grad_norm_(
    parameters: &[Parameter],
    max_norm: f64,
    norm_type: f64,
    error_if_nonfinite: bool,
) -> Result<Tensor> {
    ensure!(
        norm_type == f64::INFINITY || [0.0, 1.0, 2.0].contains(&norm_type),
        "norm_type must be 0, 1, 2 or infinity, got {norm_type}"
    );
    let grads: Vec<Tensor> = parameters.iter().filter_map(Parameter::grad).collect();
    if grads.is_empty() {
        return Ok(Tensor::zeros([], DType::Float32));
    }
    no_grad(|| {
        let norm = |g: &Tensor| g.try_vector_norm(norm_type, ());
        let norms = grads.iter().map(|g| norm(&g.detach())).collect::<Result<Vec<_>>>()?;
        let total = norm(&try_stack(&norms, 0)?)?;
        if error_if_nonfinite && !total.to_f64().is_finite() {
            bail!("the norm of the gradients is {}", total.to_f64());
        }
        let factor = (max_norm / (&total + 1e-6)).try_clip((), 1.0)?;
        for g in grads {
            let scaled = g.try_multiply(factor.try_cast(g.dtype())?)?;
            g.try_set_value(&scaled)?;
        }
        Ok(total)
    })
    .map_err(|e: Error| e.in_op("clip_grad_norm_"))
}

/// Cuts every element of every gradient to `±clip_value`.
///
/// ```
/// use sampan_core::Tensor;
/// use sampan_nn::{Parameter, utils};
/// let p = Parameter::new(Tensor::new([1.0f32, 1.0]));
/// (p.tensor() * Tensor::new([3.0f32, -0.5])).sum(()).backward();
/// utils::clip_grad_value_(&[p.clone()], 1.0)?;
/// assert_eq!(p.grad().unwrap().to_vec::<f32>(), [1.0, -0.5]);
/// # Ok::<(), sampan_core::Error>(())
/// ```
pub fn clip_grad_value_(parameters: &[Parameter], clip_value: f64) -> Result<()> {
    ensure!(clip_value >= 0.0, "clip_value cannot be negative, got {clip_value}");
    no_grad(|| {
        for g in parameters.iter().filter_map(Parameter::grad) {
            let cut = g.try_clip(-clip_value, clip_value)?;
            g.try_set_value(&cut)?;
        }
        Ok(())
    })
}
