//! Activation checkpointing: values that gradients need are computed again instead of kept.
//!
//! While the function runs forward, its calls are recorded as always, but each value a call would save is replaced by
//! its number in the order of saving. The first gradient that asks for one runs the function again, with the same random
//! numbers and precision, and picks the values up by these numbers. So parameters that the function captures, `grad`,
//! gradients of gradients and nesting all work as without it.

use super::mode::{enable_grad, grad_enabled};
use super::node::Saved;
use super::packing;
use crate::error::Kind;
use crate::{Error, Result, Tensor, amp, random};
use parking_lot::Mutex;
use std::cell::{Cell, RefCell};
use std::sync::Arc;

type Body = Box<dyn Fn(&[Tensor]) -> Result<Vec<Tensor>> + Send + Sync>;

/// One call of [`recompute`].
pub(super) struct Frame {
    body: Body,
    /// Saved as any other value, so that an outer frame may drop them too.
    inputs: Vec<Saved>,
    random: Option<(u64, u64)>,
    amp: Option<Arc<amp::Policy>>,
    /// How many values the forward run would have saved.
    count: Mutex<usize>,
    /// What the second run saved, by number; each is taken out once it is used for the last time.
    values: Mutex<Option<Vec<Option<Saved>>>>,
}

/// Who receives what the calls on this thread save.
enum Receiver {
    /// The forward run: counts and drops.
    Forward(Arc<Frame>, usize),
    /// The second run: collects, with the history only where gradients of gradients need it.
    Replay { values: Vec<Option<Saved>>, keep_history: bool },
}

thread_local! {
    static RECEIVERS: RefCell<Vec<Receiver>> = const { RefCell::new(Vec::new()) };
    static ACTIVE: Cell<bool> = const { Cell::new(false) };
}

/// Notes whether anybody receives what is saved.
pub(super) fn note_receivers() {
    ACTIVE.set(packing::active() || RECEIVERS.with_borrow(|r| !r.is_empty()));
}

/// Runs `f` with a receiver and gives it back.
fn receiving<R>(receiver: Receiver, f: impl FnOnce() -> Result<R>) -> Result<(R, Receiver)> {
    /// Takes the receiver off even where `f` unwinds.
    struct Pop;
    impl Pop {
        fn pop(&self) -> Option<Receiver> {
            RECEIVERS.with_borrow_mut(|r| {
                let top = r.pop();
                ACTIVE.set(!r.is_empty() || packing::active());
                top
            })
        }
    }
    impl Drop for Pop {
        fn drop(&mut self) {
            drop(self.pop());
        }
    }
    RECEIVERS.with_borrow_mut(|r| r.push(receiver));
    ACTIVE.set(true);
    let pop = Pop;
    let result = f();
    let receiver = pop.pop().expect("receivers nest");
    std::mem::forget(pop);
    Ok((result?, receiver))
}

/// Where a value to be saved goes: with the node, or nowhere but for its number.
#[inline]
pub(super) fn save(tensor: &Tensor) -> Saved {
    if !ACTIVE.get() {
        return Saved::of(tensor);
    }
    if RECEIVERS.with_borrow(Vec::is_empty) {
        return packing::save(tensor);
    }
    RECEIVERS.with_borrow_mut(|receivers| match receivers.last_mut() {
        Some(Receiver::Forward(frame, next)) => {
            *next += 1;
            Saved::Again(frame.clone(), *next - 1)
        }
        Some(Receiver::Replay { values, keep_history }) => {
            let kept = if *keep_history { tensor.clone() } else { tensor.detach() };
            // An inner frame that is fed with it must record its calls all the same.
            kept.set_stop_gradient(tensor.stop_gradient());
            values.push(Some(Saved::of(&kept)));
            Saved::of(tensor)
        }
        None => Saved::of(tensor),
    })
}

impl Frame {
    /// The value of that number, and its version when it was saved. Without `retain` it is given away.
    pub(super) fn value(&self, index: usize, retain: bool) -> Result<Saved> {
        if self.values.lock().is_none() {
            let values = self.replay(retain)?;
            *self.values.lock() = Some(values);
        }
        let mut values = self.values.lock();
        let slot = values.as_mut().and_then(|v| v.get_mut(index));
        let value = slot.and_then(|v| if retain { v.clone() } else { v.take() });
        value.ok_or_else(|| changed("saved fewer values"))
    }

    fn replay(&self, retain: bool) -> Result<Vec<Option<Saved>>> {
        let inputs: Vec<Tensor> =
            self.inputs.iter().map(|s| s.get(retain, "recompute", "input", None)).collect::<Result<_>>()?;
        let receiver = Receiver::Replay { values: Vec::new(), keep_history: grad_enabled() };
        let run = || {
            let run = || enable_grad(|| amp::with_level(self.amp.clone(), || (self.body)(&inputs)));
            match self.random {
                Some(state) => random::fork(state, run),
                None => run(),
            }
        };
        let (_, receiver) = receiving(receiver, run)?;
        let Receiver::Replay { values, .. } = receiver else { unreachable!("the receiver that went in") };
        if values.len() != *self.count.lock() {
            return Err(changed(&format!("saved {} values, not {}", values.len(), *self.count.lock())));
        }
        Ok(values)
    }
}

fn changed(how: &str) -> Error {
    Error::new(Kind::PreconditionNotMet, format!("the function {how} when it ran again in backward"))
        .hint("it must do the same both times: no counters, no global state, no data that changes")
        .in_op("recompute")
}

/// Runs `f` without keeping what its gradients need; the backward walk runs it again. It costs one more forward run and
/// saves the memory of everything between `inputs` and the outputs.
///
/// The function must do the same both times. Random numbers are the same again.
///
/// ```
/// # use sampan_core::{Tensor, autograd::recompute};
/// let x = Tensor::new([0.5f32]).requires_grad_();
/// let y = recompute(|x| Ok(vec![x[0].tanh().tanh()]), &[x.clone()]).unwrap();
/// y[0].backward();
/// assert!(x.grad().is_some());
/// ```
#[track_caller]
pub fn recompute(
    f: impl Fn(&[Tensor]) -> Result<Vec<Tensor>> + Send + Sync + 'static,
    inputs: &[Tensor],
) -> Result<Vec<Tensor>> {
    recompute_with(f, inputs, true)
}

/// [`recompute`] with the choice to let random numbers differ in the second run, where they do not matter.
#[track_caller]
pub fn recompute_with(
    f: impl Fn(&[Tensor]) -> Result<Vec<Tensor>> + Send + Sync + 'static,
    inputs: &[Tensor],
    preserve_rng_state: bool,
) -> Result<Vec<Tensor>> {
    crate::dispatch::outermost(|| {
        if !grad_enabled() {
            return f(inputs);
        }
        let frame = Arc::new(Frame {
            body: Box::new(f),
            inputs: inputs.iter().map(save).collect(),
            random: preserve_rng_state.then(random::state),
            amp: amp::level(),
            count: Mutex::new(0),
            values: Mutex::new(None),
        });
        let (outputs, receiver) = receiving(Receiver::Forward(frame.clone(), 0), || (frame.body)(inputs))?;
        if let Receiver::Forward(_, count) = receiver {
            *frame.count.lock() = count;
        }
        Ok(outputs)
    })
}
