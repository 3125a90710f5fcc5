//! What layers that count over all processes need of the others. This crate knows no processes; whoever lets them meet
//! says here how tensors are summed over them.

use sampan_core::{Result, Tensor};
use std::sync::{Arc, PoisonError, RwLock};

/// Processes that train the same network.
pub trait Joint: Send + Sync {
    /// How many there are.
    fn size(&self) -> usize;
    /// Makes a tensor the sum of those of all, in place. All call it in the same order.
    fn sum(&self, tensor: &Tensor) -> Result<()>;
}

static JOINT: RwLock<Option<Arc<dyn Joint>>> = RwLock::new(None);

/// Says who trains together from now on.
pub fn set_joint(joint: Option<Arc<dyn Joint>>) {
    let old = std::mem::replace(&mut *JOINT.write().unwrap_or_else(PoisonError::into_inner), joint);
    drop(old);
}

/// Those who train together, if they are several.
pub(crate) fn joint() -> Option<Arc<dyn Joint>> {
    JOINT.read().unwrap_or_else(PoisonError::into_inner).clone().filter(|j| j.size() > 1)
}
