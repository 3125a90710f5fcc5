//! Functions of the user's own, with a gradient of the user's own.

use super::mode::{grad_enabled, no_grad};
use super::node::{Grad, Grads, Keeps, Node};
use crate::error::Kind;
use crate::op::Outputs;
use crate::{Error, Result, Tensor};
use std::any::Any;
use std::sync::Arc;

/// A function with its own gradient.
///
/// ```
/// # use sampan_core::{Result, Tensor, autograd::{Function, FunctionContext, apply}};
/// /// The identity, whose gradient is squashed into (-1, 1).
/// struct Squash;
/// impl Function for Squash {
///     fn forward(&self, _: &mut FunctionContext, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
///         Ok(vec![inputs[0].clone()])
///     }
///     fn backward(&self, _: &FunctionContext, grads: &[Option<Tensor>]) -> Result<Vec<Option<Tensor>>> {
///         Ok(grads.iter().map(|g| g.as_ref().map(|g| g.tanh())).collect())
///     }
/// }
/// let x = Tensor::new([1.0f32]).requires_grad_();
/// (&apply(Squash, &[x.clone()]).unwrap()[0] * 100.0).backward();
/// assert_eq!(x.grad().unwrap().to_vec::<f32>(), [1.0]);
/// ```
pub trait Function: Send + Sync + 'static {
    /// The value. Its calls are not recorded.
    fn forward(&self, cx: &mut FunctionContext, inputs: &[Tensor]) -> Result<Vec<Tensor>>;

    /// One gradient for each input, from those of the outputs. Its calls are recorded where gradients of gradients are
    /// asked for; these flow through the gradients and through saved inputs and outputs, not through other saved values.
    fn backward(&self, cx: &FunctionContext, grads: &[Option<Tensor>]) -> Result<Vec<Option<Tensor>>>;

    /// Does it hold objects of another language, whose garbage collector looks for them with
    /// [`visit_foreign`](super::visit_foreign)?
    fn is_foreign(&self) -> bool {
        false
    }

    /// What errors and `grad_fn` call it: the name of the type, unless given.
    fn name(&self) -> &'static str {
        let path = std::any::type_name::<Self>();
        path.rsplit("::").next().unwrap_or(path)
    }
}

/// What a [`Function`] hands from its forward to its backward.
pub struct FunctionContext {
    saved: Vec<Tensor>,
    non_differentiable: Vec<Tensor>,
    materialize: bool,
    needs: Vec<bool>,
    state: Option<Arc<dyn Any + Send + Sync>>,
}

impl FunctionContext {
    /// Keeps tensors for backward, guarded against changes in place.
    pub fn save_for_backward(&mut self, tensors: &[Tensor]) {
        self.saved.extend_from_slice(tensors);
    }

    /// The kept tensors, in their order.
    pub fn saved_tensor(&self) -> &[Tensor] {
        &self.saved
    }

    /// Keeps anything else for backward.
    pub fn set_state(&mut self, state: impl Any + Send + Sync) {
        self.state = Some(Arc::new(state));
    }

    /// What [`set_state`](Self::set_state) kept, if it is of that type.
    pub fn state<T: Any>(&self) -> Option<&T> {
        self.state.as_ref()?.downcast_ref()
    }

    /// Marks outputs that have no gradient.
    pub fn mark_non_differentiable(&mut self, outputs: &[Tensor]) {
        self.non_differentiable.extend_from_slice(outputs);
    }

    /// Does backward get zeros for an output that no gradient came back to? On unless switched off.
    pub fn set_materialize_grads(&mut self, on: bool) {
        self.materialize = on;
    }

    /// How many inputs there are.
    pub fn inputs(&self) -> usize {
        self.needs.len()
    }

    /// Is the gradient of input `i` wanted?
    pub fn needs_input_grad(&self, i: usize) -> bool {
        self.needs.get(i).copied().unwrap_or(false)
    }
}

/// Where a kept tensor is found again.
enum Kept {
    Saved(usize),
    /// An output is kept by its memory: the tensor itself would keep its own node alive for ever.
    Output(usize),
}

/// Calls a [`Function`].
#[track_caller]
pub fn apply<F: Function>(function: F, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
    let name = function.name();
    let call = || {
        let track = grad_enabled() && inputs.iter().any(Tensor::requires_grad);
        let mut cx = FunctionContext {
            saved: Vec::new(),
            non_differentiable: Vec::new(),
            materialize: true,
            needs: inputs.iter().map(|t| track && t.requires_grad()).collect(),
            state: None,
        };
        let outputs = no_grad(|| function.forward(&mut cx, inputs))?;
        if !track {
            return Ok(outputs);
        }
        let inputs = inputs.iter().map(Tensor::current).collect::<Result<Vec<_>>>()?;
        Ok(record(function, cx, &inputs, outputs))
    };
    crate::dispatch::outermost(call).map_err(|e| e.in_op(name))
}

fn record<F: Function>(function: F, mut cx: FunctionContext, inputs: &[Tensor], outputs: Vec<Tensor>) -> Vec<Tensor> {
    let same = |a: &Tensor, b: &Tensor| a.as_ptr() == b.as_ptr();
    let constant: Vec<Option<Tensor>> =
        outputs.iter().map(|t| cx.non_differentiable.iter().any(|n| same(n, t)).then(|| t.clone())).collect();
    let mut values = Vec::new();
    let kept: Vec<Kept> = std::mem::take(&mut cx.saved)
        .into_iter()
        .map(|t| match outputs.iter().position(|o| same(o, &t)) {
            Some(i) if !inputs.iter().any(|x| same(x, &t)) => Kept::Output(i),
            _ => {
                values.push(t);
                Kept::Saved(values.len() - 1)
            }
        })
        .collect();
    cx.non_differentiable.clear();
    let which: Vec<usize> = kept.iter().filter_map(|k| if let Kept::Output(i) = k { Some(*i) } else { None }).collect();
    let (name, materialize, state, arity) = (function.name(), cx.materialize, cx.state, outputs.len());
    let function = Arc::new(function);
    let foreign = function.is_foreign().then(|| function.clone() as Arc<dyn Any + Send + Sync>);
    let formula = move |g: &Grad| -> Result<Grads> {
        let cx = FunctionContext {
            saved: kept
                .iter()
                .map(|k| match *k {
                    Kept::Saved(i) => g.saved(i).clone(),
                    Kept::Output(i) => g.output(i).clone(),
                })
                .collect(),
            non_differentiable: Vec::new(),
            materialize,
            needs: (0..g.inputs()).map(|i| g.needs(i)).collect(),
            state: state.clone(),
        };
        let grads: Vec<Option<Tensor>> =
            (0..arity).map(|i| (materialize || g.has_grad(i)).then(|| g.grad_of(i))).collect();
        let result = function.backward(&cx, &grads)?;
        if result.len() != g.inputs() {
            return Err(Error::new(
                Kind::InvalidArgument,
                format!("backward must return one gradient for each of {} inputs, got {}", g.inputs(), result.len()),
            )
            .hint("return None for an input without a gradient"));
        }
        Ok(result.into())
    };
    let inputs: Vec<&Tensor> = inputs.iter().collect();
    let saved: Vec<&Tensor> = values.iter().collect();
    let recorded = Node::attach(name, &inputs, Outputs::from(outputs), &saved, Keeps::These(&which), Arc::new(formula));
    if let (Some(foreign), Some(history)) = (foreign, recorded.iter().find_map(Tensor::history)) {
        history.node.get().set_foreign(Arc::downgrade(&foreign));
    }
    recorded.into_iter().zip(constant).map(|(t, constant)| constant.unwrap_or(t)).collect()
}
