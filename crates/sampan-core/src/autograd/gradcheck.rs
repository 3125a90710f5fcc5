//! Compares gradient formulas with differences of values.

use super::{GradOptions, grad};
use crate::error::Kind;
use crate::{DType, Error, Result, Tensor};

/// How close is close enough.
#[derive(Clone, Copy, Debug)]
pub struct GradCheck {
    /// Step of the central difference.
    pub eps: f64,
    /// Absolute error allowed.
    pub atol: f64,
    /// Relative error allowed.
    pub rtol: f64,
}

impl Default for GradCheck {
    fn default() -> Self {
        GradCheck { eps: 1e-6, atol: 1e-6, rtol: 1e-4 }
    }
}

/// Fixed weights that turn outputs into one number, so that one walk checks them all.
fn weights(like: &Tensor, salt: usize) -> Tensor {
    let count = like.numel() * like.dtype().parts();
    rebuilt((0..count).map(|i| ((i + 1 + 31 * salt) as f64 * 0.7).sin() + 0.1).collect(), like)
}

/// A tensor of another's shape from what `to_f64_vec` gives of it: float64, or complex128 where it is complex.
fn rebuilt(values: Vec<f64>, like: &Tensor) -> Tensor {
    if like.dtype().is_complex() {
        return Tensor::from_vec(values, [like.shape(), &[2]].concat()).as_complex();
    }
    Tensor::from_vec(values, like.shape())
}

fn floats(outputs: Vec<Tensor>) -> Vec<Tensor> {
    outputs.into_iter().filter(|t| t.dtype().is_inexact()).collect()
}

/// Checks the gradient of `f` at float64 or complex128 `inputs` against central differences; both parts of a complex
/// number are moved.
///
/// ```
/// # use sampan_core::{Tensor, autograd::{gradcheck, GradCheck}};
/// let x = Tensor::new([0.3f64, 1.2]);
/// gradcheck(|x| Ok(vec![x[0].tanh()]), &[x], GradCheck::default()).unwrap();
/// ```
pub fn gradcheck(f: impl Fn(&[Tensor]) -> Result<Vec<Tensor>>, inputs: &[Tensor], how: GradCheck) -> Result<()> {
    if let Some(t) = inputs.iter().find(|t| t.dtype().real_part() != DType::Float64) {
        let message = format!("gradcheck needs float64 or complex128 inputs, got {}", t.dtype());
        return Err(Error::dtype(message).in_op("gradcheck"));
    }
    // Leaves of our own: the caller's tensors keep their flags and gradients.
    let leaves: Vec<Tensor> = inputs.iter().map(|t| Ok(t.try_clone_data()?.requires_grad_())).collect::<Result<_>>()?;
    let outputs = floats(f(&leaves)?);
    let tracked: Vec<Tensor> = outputs.iter().filter(|t| t.requires_grad()).cloned().collect();
    let all_weights: Vec<Tensor> = outputs.iter().enumerate().map(|(i, t)| weights(t, i)).collect();
    let tracked_weights: Vec<Option<Tensor>> =
        outputs.iter().zip(&all_weights).filter(|(t, _)| t.requires_grad()).map(|(_, w)| Some(w.clone())).collect();
    let options = GradOptions { allow_unused: true, ..Default::default() };
    let analytic =
        if tracked.is_empty() { vec![None; leaves.len()] } else { grad(&tracked, &leaves, &tracked_weights, options)? };

    let number = |inputs: &[Tensor]| -> Result<f64> {
        let outputs = floats(crate::no_grad(|| f(inputs))?);
        let dot =
            |(t, w): (&Tensor, &Tensor)| -> f64 { t.to_f64_vec().iter().zip(w.to_f64_vec()).map(|(a, b)| a * b).sum() };
        Ok(outputs.iter().zip(&all_weights).map(dot).sum())
    };
    for (n, input) in inputs.iter().enumerate() {
        let values = input.to_f64_vec();
        let found = analytic[n].as_ref().map_or_else(|| vec![0.0; values.len()], Tensor::to_f64_vec);
        for i in 0..values.len() {
            let moved = |by: f64| {
                let mut v = values.clone();
                v[i] += by;
                let mut all: Vec<Tensor> = inputs.to_vec();
                all[n] = rebuilt(v, input);
                number(&all)
            };
            let expected = (moved(how.eps)? - moved(-how.eps)?) / (2.0 * how.eps);
            let error = (found[i] - expected).abs();
            // Written so that a NaN on either side fails.
            // A NaN is not close to anything.
            let close = error <= how.atol + how.rtol * expected.abs();
            if !close {
                return Err(Error::new(
                    Kind::PreconditionNotMet,
                    format!(
                        "input {n} of shape {:?}, element {i}: the formula gives {}, the difference of values {expected}",
                        input.shape(),
                        found[i]
                    ),
                )
                .in_op("gradcheck"));
            }
        }
    }
    Ok(())
}

/// Checks second-order gradients: those of the gradient of `f`, with respect to its inputs and to the incoming gradient.
pub fn gradgradcheck(f: impl Fn(&[Tensor]) -> Result<Vec<Tensor>>, inputs: &[Tensor], how: GradCheck) -> Result<()> {
    let outputs = floats(crate::no_grad(|| f(inputs))?);
    let count = inputs.len();
    let mut all = inputs.to_vec();
    all.extend(outputs.iter().enumerate().map(|(i, t)| weights(t, i)));
    let first_order = |all: &[Tensor]| -> Result<Vec<Tensor>> {
        crate::enable_grad(|| {
            let (inputs, weights) = all.split_at(count);
            // In the numeric evaluations the inputs are plain data; the inner gradient needs variables.
            let inputs: Vec<Tensor> = inputs
                .iter()
                .map(|t| if t.requires_grad() { t.clone() } else { t.detach().requires_grad_() })
                .collect();
            let outputs = floats(f(&inputs)?);
            let (outputs, weights): (Vec<_>, Vec<_>) = outputs
                .into_iter()
                .zip(weights)
                .filter(|(t, _)| t.requires_grad())
                .map(|(t, w)| (t, Some(w.clone())))
                .unzip();
            if outputs.is_empty() {
                return Ok(Vec::new());
            }
            let options = GradOptions { create_graph: true, allow_unused: true, ..Default::default() };
            Ok(grad(&outputs, &inputs, &weights, options)?.into_iter().flatten().collect())
        })
    };
    gradcheck(first_order, &all, how).map_err(|e| e.in_op("gradgradcheck"))
}
