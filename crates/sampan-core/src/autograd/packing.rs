//! Hooks on the values that are saved for gradients: they may be kept elsewhere or in another form.

use super::mode::{grad_enabled, no_grad};
use super::node::{History, Saved};
use crate::{Error, Result, Tensor};
use std::cell::RefCell;
use std::sync::Arc;

/// Gives a packed value back.
pub type Unpack = Arc<dyn Fn() -> Result<Tensor> + Send + Sync>;
/// Takes a value away and says how to get it back.
pub type Pack = Arc<dyn Fn(&Tensor) -> Result<Unpack> + Send + Sync>;

thread_local! {
    static HOOKS: RefCell<Vec<Pack>> = const { RefCell::new(Vec::new()) };
}

/// From now on every value that is saved on this thread goes through `pack`, until [`pop_saved_hook`].
pub fn push_saved_hook(pack: Pack) {
    HOOKS.with_borrow_mut(|h| h.push(pack));
    super::recompute::note_receivers();
}

/// Ends what the last [`push_saved_hook`] began.
pub fn pop_saved_hook() {
    drop(HOOKS.with_borrow_mut(Vec::pop));
    super::recompute::note_receivers();
}

/// Is there a hook on this thread?
pub(super) fn active() -> bool {
    HOOKS.with_borrow(|h| !h.is_empty())
}

/// A value that a hook took away.
#[derive(Clone)]
pub(super) struct Packed {
    unpack: Unpack,
    shape: Vec<usize>,
    /// Where gradients of gradients go: to the call that made the value, or to the leaf that it is.
    history: Option<History>,
    leaf: Option<Tensor>,
}

impl Packed {
    pub fn get(&self) -> Result<Tensor> {
        if let Some(leaf) = self.leaf.as_ref().filter(|_| grad_enabled()) {
            return Ok(leaf.clone());
        }
        let t = no_grad(|| (self.unpack)())?.detach();
        if t.shape() != self.shape {
            return Err(Error::invalid(format!(
                "the hook that unpacks a saved value must give shape {:?} again, got {:?}",
                self.shape,
                t.shape()
            ))
            .in_op("saved_tensors_hooks"));
        }
        // What `recompute` runs again with it must be recorded as it was the first time.
        t.set_stop_gradient(self.leaf.is_none());
        Ok(match &self.history {
            Some(history) => t.with_history(history.clone()),
            None => t,
        })
    }
}

/// What is saved of a value: what the innermost hook made of it.
pub(super) fn save(tensor: &Tensor) -> Saved {
    let Some(pack) = HOOKS.with_borrow(|h| h.last().cloned()) else { return Saved::of(tensor) };
    // Without its history, so that what the hook keeps holds no graph.
    let unpack = crate::error::unwrap(no_grad(|| pack(&tensor.detach())));
    Saved::Packed(Box::new(Packed {
        unpack,
        shape: tensor.shape().to_vec(),
        history: tensor.history().filter(|_| tensor.is_tracked()).cloned(),
        leaf: (tensor.is_tracked() && tensor.history().is_none()).then(|| tensor.clone()),
    }))
}
