//! Gradients through a composite inside a gradient formula.

use super::{GradOptions, enable_grad, grad, grad_enabled};
use crate::{Result, Tensor};

/// The gradients of `f(inputs)` with respect to `inputs`, `grads` being those of its outputs (`None` for zeros). The
/// gradient formula of a fused kernel states higher orders with it: `f` is the composite that the kernel stands for.
pub fn vjp(
    inputs: &[&Tensor],
    grads: &[Option<Tensor>],
    f: impl FnOnce(&[Tensor]) -> Result<Vec<Tensor>>,
) -> Result<Vec<Option<Tensor>>> {
    let create_graph = grad_enabled();
    enable_grad(|| {
        // Inputs may depend on one another; fresh views are cut off from each other but not from the recorded graph.
        let fresh = |t: &&Tensor| match create_graph && t.requires_grad() {
            true => t.try_reshape_to(t.shape()),
            false => Ok(t.detach().requires_grad_()),
        };
        let inputs: Vec<Tensor> = inputs.iter().map(fresh).collect::<Result<_>>()?;
        let outputs = f(&inputs)?;
        let (outputs, grads): (Vec<Tensor>, Vec<Option<Tensor>>) = outputs
            .into_iter()
            .zip(grads)
            .filter(|(t, g)| g.is_some() && t.requires_grad())
            .map(|(t, g)| (t, g.clone()))
            .unzip();
        if outputs.is_empty() {
            return Ok(vec![None; inputs.len()]);
        }
        grad(&outputs, &inputs, &grads, GradOptions { create_graph, allow_unused: true, ..Default::default() })
    })
}
