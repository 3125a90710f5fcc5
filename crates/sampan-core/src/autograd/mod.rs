//! Gradients of any order, from formulas written in differentiable ops.

mod address;
mod engine;
mod foreign;
mod function;
pub mod functional;
mod gradcheck;
mod leaf;
mod mode;
mod node;
mod packing;
mod recompute;
mod vjp;

pub use engine::{GradOptions, backward, grad};
pub use foreign::{release_foreign, visit_foreign};
pub use function::{Function, FunctionContext, apply};
pub use functional::{hessian, jacobian, jvp};
pub use gradcheck::{GradCheck, gradcheck, gradgradcheck};
pub use leaf::LeafHook;
pub(crate) use leaf::{Listening, hooked};
pub use mode::{enable_grad, grad_enabled, no_grad, set_grad_enabled};
pub use node::{Grad, GradFn, GradHook, Grads, Node};
pub(crate) use node::{History, Hook, Keeps, keep_from_writes, next_node};
pub use packing::{Pack, Unpack, pop_saved_hook, push_saved_hook};
pub use recompute::{recompute, recompute_with};
pub use vjp::vjp;
