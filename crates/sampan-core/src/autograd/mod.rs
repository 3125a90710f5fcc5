//! Gradients of any order, from formulas written in differentiable ops.

mod engine;
mod function;
pub mod functional;
mod gradcheck;
mod mode;
mod node;
mod packing;
mod recompute;
mod vjp;

pub use engine::{GradOptions, backward, grad};
pub use function::{Function, FunctionContext, apply};
pub use functional::{hessian, jacobian, jvp};
pub use gradcheck::{GradCheck, gradcheck, gradgradcheck};
pub use mode::{enable_grad, grad_enabled, no_grad, set_grad_enabled};
pub use node::{Grad, GradFn, Grads, Node};
pub(crate) use node::{History, keep_from_writes, next_node};
pub use packing::{Pack, Unpack, pop_saved_hook, push_saved_hook};
pub use recompute::{recompute, recompute_with};
pub use vjp::vjp;
