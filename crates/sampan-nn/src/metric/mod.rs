//! Numbers that tell how well a network does: Paddle's `metric`.

mod accuracy;
mod binary;

pub use accuracy::*;
pub use binary::*;

use sampan_core::{Error, Object, Result, Tensor};
use std::sync::{Arc, Mutex};

/// A number (or several) that is gathered over the batches of a data set.
///
/// For each batch, [`compute`](Metric::compute) takes what is needed from outputs and labels, and
/// [`update`](Metric::update) counts it in; a short last batch counts as much as it has samples.
pub trait Metric: Send {
    /// A name for each of its numbers.
    fn name(&self) -> Vec<String>;

    /// What `update` needs of a batch: without more said, the outputs and labels themselves.
    fn compute(&self, outputs: &[Tensor], labels: &[Tensor]) -> Result<Vec<Tensor>> {
        Ok([outputs, labels].concat())
    }

    /// Counts a batch in; the numbers of this batch, or those so far where a batch alone has none.
    fn update(&mut self, batch: &[Tensor]) -> Result<Vec<f64>>;

    /// The numbers of all batches since the last reset.
    fn accumulate(&self) -> Vec<f64>;

    /// Begins anew.
    fn reset(&mut self);

    /// What was counted since the last reset, so that a checkpoint inside an epoch can keep it.
    fn state(&self) -> Vec<f64> {
        Vec::new()
    }

    /// Goes on from a kept state; one of another form is passed over.
    fn set_state(&mut self, _state: &[f64]) {}
}

/// Metrics of several types in one list.
impl<M: Metric + ?Sized> Metric for Box<M> {
    fn name(&self) -> Vec<String> {
        (**self).name()
    }
    fn compute(&self, outputs: &[Tensor], labels: &[Tensor]) -> Result<Vec<Tensor>> {
        (**self).compute(outputs, labels)
    }
    fn update(&mut self, batch: &[Tensor]) -> Result<Vec<f64>> {
        (**self).update(batch)
    }
    fn accumulate(&self) -> Vec<f64> {
        (**self).accumulate()
    }
    fn reset(&mut self) {
        (**self).reset()
    }
    fn state(&self) -> Vec<f64> {
        (**self).state()
    }
    fn set_state(&mut self, state: &[f64]) {
        (**self).set_state(state)
    }
}

/// A metric for those who build by name.
pub fn object<M: Metric + 'static>(metric: M) -> Object {
    Object::new(Arc::new(Mutex::new(metric)) as Arc<Mutex<dyn Metric>>)
}

/// The tensors that a metric takes, or an error that says how many there should be.
fn take<'a, const N: usize>(batch: &'a [Tensor], metric: &str, what: &str) -> Result<&'a [Tensor; N]> {
    batch.try_into().map_err(|_| Error::invalid(format!("takes {what}, got {} tensors", batch.len())).in_op(metric))
}
