//! What a tensor carries besides its values: gradient, hooks, name.

use super::{Inner, Tensor};
use crate::autograd::{self, Grad, GradHook, Grads, Hook, Keeps, LeafHook, Listening, Node};
use crate::recording;
use crate::{DType, Device, Error, Result, profiler};
use parking_lot::Mutex;
use sampan_kernels::arrange::add_assign;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

/// Made when first needed.
#[derive(Default)]
pub(crate) struct Extra {
    grad: Mutex<Slot>,
    hooks: Mutex<Vec<(u64, Hook)>>,
    leaf_hook: Mutex<Option<Listening>>,
    name: Mutex<Option<String>>,
    persistable: AtomicBool,
    /// This tensor after writes by its aliases.
    newest: Mutex<Option<Tensor>>,
}

/// Where the gradient is. Zeros are made when somebody asks for them: most are replaced by the next gradient unseen.
#[derive(Clone, Default)]
pub(crate) enum Slot {
    #[default]
    None,
    Zeros(DType),
    Held(Tensor),
}

static NEXT_ID: AtomicU64 = AtomicU64::new(0);

/// A hook that can be taken off again. It keeps neither the tensor nor the hook alive.
pub struct HookHandle {
    at: HookPlace,
    id: u64,
}

enum HookPlace {
    Leaf(Weak<Inner>),
    Node(Weak<Node>),
}

/// A closure as a hook.
struct Closure<F>(F);
impl<F: Fn(&Tensor) -> Result<Option<Tensor>> + Send + Sync + 'static> GradHook for Closure<F> {
    fn call(&self, grad: &Tensor) -> Result<Option<Tensor>> {
        (self.0)(grad)
    }
}

impl HookHandle {
    /// Takes the hook off; false if it was off already.
    pub fn remove(&self) -> bool {
        match &self.at {
            HookPlace::Node(node) => node.upgrade().is_some_and(|n| n.remove_hook(self.id)),
            HookPlace::Leaf(leaf) => leaf.upgrade().is_some_and(|leaf| Tensor::from_inner(leaf).remove_hook(self.id)),
        }
    }
}

impl Tensor {
    fn extra(&self) -> &Extra {
        self.0.extra.get_or_init(Box::default)
    }

    pub(super) fn newest(&self) -> Option<Tensor> {
        self.0.extra.get()?.newest.lock().clone()
    }

    pub(super) fn set_newest(&self, t: Tensor) {
        *self.extra().newest.lock() = Some(t);
    }

    /// Takes over the name and what goes with it from a handle that this one replaces.
    pub(super) fn keep_name_of(&self, old: &Tensor) {
        let Some(e) = old.0.extra.get() else { return };
        if let Some(name) = &*e.name.lock() {
            self.set_name(name.as_str());
        }
        if e.persistable.load(Ordering::Relaxed) {
            self.set_persistable(true);
        }
    }

    /// The gradient that `backward` added up here.
    pub fn grad(&self) -> Option<Tensor> {
        self.own_grad().or_else(|| self.newest()?.own_grad())
    }

    /// Where its gradient is now.
    pub(crate) fn grad_slot(&self) -> Slot {
        self.0.extra.get().map(|e| e.grad.lock().clone()).unwrap_or_default()
    }

    /// Looks at where its gradient is now.
    pub(crate) fn with_grad_slot<R>(&self, f: impl FnOnce(&Slot) -> R) -> R {
        match self.0.extra.get() {
            Some(extra) => f(&extra.grad.lock()),
            None => f(&Slot::None),
        }
    }

    /// Puts its gradient back to where it was.
    pub(crate) fn set_grad_slot(&self, slot: Slot) {
        let old = std::mem::replace(&mut *self.extra().grad.lock(), slot);
        drop(old);
    }

    fn own_grad(&self) -> Option<Tensor> {
        recording::leaf(self);
        let mut slot = self.0.extra.get()?.grad.lock();
        if let Slot::Zeros(dtype) = *slot {
            *slot = Slot::Held(Tensor::zeros_on(self.shape(), dtype, self.device()));
        }
        if let Slot::Held(grad) = &*slot { Some(grad.clone()) } else { None }
    }

    /// Replaces the gradient.
    pub fn set_grad(&self, grad: Option<Tensor>) {
        recording::leaf(self);
        let old = std::mem::replace(&mut *self.extra().grad.lock(), grad.map_or(Slot::None, Slot::Held));
        // Without the lock, for hooks of the old one may do anything when they are dropped.
        drop(old);
    }

    /// Forgets the gradient.
    pub fn clear_grad(&self) {
        recording::leaf(self);
        if let Some(e) = self.0.extra.get() {
            let old = std::mem::take(&mut *e.grad.lock());
            drop(old);
        }
    }

    /// Sets the gradient to zeros, if there is one.
    pub fn zero_grad(&self) {
        recording::leaf(self);
        if let Some(e) = self.0.extra.get() {
            let mut slot = e.grad.lock();
            if let Slot::Held(grad) = &*slot {
                *slot = Slot::Zeros(grad.dtype());
            }
        }
    }

    pub(crate) fn accumulate_grad(&self, g: Tensor, record: bool) -> Result<()> {
        recording::leaf(self);
        // Two leaves may receive the very same tensor; each must own its gradient, for people write into it.
        let foreign = !record && (g.is_shared() || !g.is_contiguous());
        let mut sum = None;
        loop {
            let mut slot = self.extra().grad.lock();
            let old = match std::mem::take(&mut *slot) {
                Slot::Held(old) => old,
                // Zeros of another type decide the type of the sum.
                Slot::Zeros(dtype) if dtype != g.dtype() => Tensor::zeros_on(self.shape(), dtype, self.device()),
                _ if sum.is_none() && foreign => {
                    drop(slot);
                    sum = Some(g.try_clone_data()?);
                    continue;
                }
                _ => {
                    *slot = Slot::Held(sum.unwrap_or(g));
                    return Ok(());
                }
            };
            // Without the lock; should another thread put its part there meanwhile, the next round adds it.
            drop(slot);
            sum = Some(old.plus(sum.as_ref().unwrap_or(&g), record)?);
        }
    }

    /// Does anybody else hold this tensor or its memory?
    fn is_shared(&self) -> bool {
        Arc::strong_count(&self.0) > 1 || self.storage().is_shared()
    }

    /// The sum of two gradients; in the memory of the first, if nobody else holds it and the sum is not recorded.
    pub(crate) fn plus(self, g: &Tensor, record: bool) -> Result<Tensor> {
        let _span = profiler::call("grad_add");
        // Whoever watches must see a call.
        let unseen = !record && !crate::dispatch::listening();
        let alone = unseen && !self.is_shared() && self.device() == Device::Cpu;
        let alike = self.dtype() == g.dtype() && self.shape() == g.shape() && self.is_contiguous() && g.is_contiguous();
        match self.dtype() {
            DType::Float32 | DType::Float64 if alone && alike => {
                add_assign(g.values().slice(), self.values_mut().slice())
            }
            _ => return self.try_add(g),
        }
        Ok(self)
    }

    /// Adds the gradients of this tensor to `.grad` of every leaf it depends on; it counts as a sum of its elements. A
    /// tensor that depends on none (`stop_gradient`) changes nothing, as in Paddle.
    ///
    /// ```
    /// # use sampan_core::Tensor;
    /// let x = Tensor::new([1.0f32, 2.0]).requires_grad_();
    /// (&x * &x).sum(()).backward();
    /// assert_eq!(x.grad().unwrap().to_vec::<f32>(), [2.0, 4.0]);
    /// ```
    #[track_caller]
    pub fn backward(&self) {
        crate::error::unwrap(self.try_backward(None, false))
    }

    /// `backward` with a given gradient of this tensor, and the choice to keep the graph for another walk.
    #[track_caller]
    pub fn try_backward(&self, grad: Option<&Tensor>, retain_graph: bool) -> Result<()> {
        autograd::backward(std::slice::from_ref(self), &[grad.cloned()], retain_graph)
    }

    /// Calls `hook` with the gradient when it reaches this tensor; what it returns replaces the gradient.
    pub fn register_hook(
        &self,
        hook: impl Fn(&Tensor) -> Result<Option<Tensor>> + Send + Sync + 'static,
    ) -> Result<HookHandle> {
        self.register_grad_hook(Arc::new(Closure(hook)))
    }

    /// [`register_hook`](Self::register_hook) with an object.
    pub fn register_grad_hook(&self, hook: Arc<dyn GradHook>) -> Result<HookHandle> {
        if self.stop_gradient() {
            return Err(Error::new(
                crate::error::Kind::PreconditionNotMet,
                "register_hook: a tensor with stop_gradient=True never receives a gradient",
            )
            .hint("set stop_gradient to False first"));
        }
        let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
        let tensor = self.current()?;
        let at = match tensor.history() {
            Some(h) => {
                h.node.get().add_hook(h.index, id, hook);
                HookPlace::Node(Arc::downgrade(h.node.get()))
            }
            None => {
                tensor.extra().hooks.lock().push((id, hook));
                HookPlace::Leaf(Arc::downgrade(&tensor.0))
            }
        };
        Ok(HookHandle { at, id })
    }

    fn remove_hook(&self, id: u64) -> bool {
        let Some(extra) = self.0.extra.get() else { return false };
        let mut hooks = extra.hooks.lock();
        let removed = hooks.iter().position(|(i, _)| *i == id).map(|at| hooks.remove(at));
        // What a hook holds may do anything when it is dropped.
        drop(hooks);
        removed.is_some()
    }

    /// Tells `hook` when a walk backwards has completed the gradient of this leaf and added it to `.grad`, while the walk goes
    /// on; with `None`, nobody. One at a time; the tensor does not keep it alive. A walk that fails then leaves the
    /// gradients that were complete.
    pub fn set_leaf_hook(&self, hook: Option<&Arc<dyn LeafHook>>) {
        autograd::hooked();
        let old = std::mem::replace(&mut *self.extra().leaf_hook.lock(), hook.map(Arc::downgrade));
        drop(old);
    }

    /// Who is told when its gradient is complete.
    pub fn leaf_hook(&self) -> Option<Arc<dyn LeafHook>> {
        self.0.extra.get()?.leaf_hook.lock().as_ref()?.upgrade()
    }

    /// Takes all hooks off that hang on this leaf.
    pub(crate) fn take_hooks(&self) -> Vec<Hook> {
        let taken = self.0.extra.get().map(|e| std::mem::take(&mut *e.hooks.lock()));
        taken.unwrap_or_default().into_iter().map(|(_, hook)| hook).collect()
    }

    /// How many handles there are on this very tensor.
    pub(crate) fn handles(&self) -> usize {
        Arc::strong_count(&self.0)
    }

    pub(crate) fn hooks(&self) -> Vec<Hook> {
        self.0.extra.get().map(|e| e.hooks.lock().iter().map(|(_, h)| h.clone()).collect()).unwrap_or_default()
    }

    /// Keeps the gradient of this intermediate result in `.grad`.
    pub fn retain_grads(&self) {
        let tensor = crate::error::unwrap(self.current());
        if let Some(h) = tensor.history() {
            h.node.get().retain_grad(h.index, Arc::downgrade(&tensor.0));
        }
    }

    /// Its name; generated when first asked for.
    pub fn name(&self) -> String {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        self.extra()
            .name
            .lock()
            .get_or_insert_with(|| format!("generated_tensor_{}", NEXT.fetch_add(1, Ordering::Relaxed)))
            .clone()
    }

    /// Names it.
    pub fn set_name(&self, name: impl Into<String>) {
        *self.extra().name.lock() = Some(name.into());
    }

    /// Is it part of what a checkpoint keeps?
    pub fn persistable(&self) -> bool {
        self.0.extra.get().is_some_and(|e| e.persistable.load(Ordering::Relaxed))
    }

    /// Marks it as part of what a checkpoint keeps.
    pub fn set_persistable(&self, on: bool) {
        self.extra().persistable.store(on, Ordering::Relaxed);
    }
}

/// Makes outputs the result of a call on inputs that is no op of the registry.
pub(crate) fn attach_custom(
    name: &'static str,
    inputs: &[&Tensor],
    outputs: Vec<Tensor>,
    saved: &[&Tensor],
    formula: impl Fn(&Grad) -> Result<Grads> + Send + Sync + 'static,
) -> Vec<Tensor> {
    Node::attach(name, inputs, outputs.into(), saved, Keeps::Nothing, Arc::new(formula)).into_vec()
}

#[allow(dead_code)]
fn _assert_send_sync() {
    fn check<T: Send + Sync>() {}
    check::<Inner>();
}
