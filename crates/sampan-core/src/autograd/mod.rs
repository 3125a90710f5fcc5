//! Gradients of any order, from formulas written in differentiable ops.

mod engine;
mod gradcheck;
mod mode;
mod node;
mod vjp;

pub use engine::{GradOptions, backward, grad};
pub use gradcheck::{GradCheck, gradcheck, gradgradcheck};
pub use mode::{enable_grad, grad_enabled, no_grad, set_grad_enabled};
pub(crate) use node::History;
pub use node::{Grad, GradFn, Grads, Node};
pub use vjp::vjp;
