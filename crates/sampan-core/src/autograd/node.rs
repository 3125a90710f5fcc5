//! The recorded graph: one node a call.

use super::packing::Packed;
use super::recompute::{self, Frame};
use crate::op::Outputs;
use crate::shape::{Layout, Shape};
use crate::storage::Storage;
use crate::{DType, Device, Error, Result, Tensor, device, profiler};
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::any::Any;
use std::cell::{OnceCell, RefCell};
use std::panic::Location;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

/// A gradient formula: from the outputs' gradients to the inputs'.
pub type GradFn = Arc<dyn Fn(&Grad) -> Result<Grads> + Send + Sync>;
/// A function that sees a gradient and may replace it. One that belongs to another language is found again by its type,
/// see [`visit_foreign`](super::visit_foreign).
pub trait GradHook: Any + Send + Sync {
    /// What replaces the gradient, if anything does.
    fn call(&self, grad: &Tensor) -> Result<Option<Tensor>>;
}
pub(crate) type Hook = Arc<dyn GradHook>;

static NEXT_SEQ: AtomicU64 = AtomicU64::new(1);

/// One recorded call.
pub struct Node {
    pub(super) name: &'static str,
    /// Nodes are numbered as they are made, so a node's number is above those of all it depends on.
    pub(super) seq: u64,
    pub(super) edges: SmallVec<[Edge; 3]>,
    pub(super) outs: SmallVec<[(Shape, DType, Device); 1]>,
    pub(super) state: Mutex<Option<State>>,
    pub(super) watch: Mutex<Option<Box<Watch>>>,
    pub(super) place: Option<&'static Location<'static>>,
    /// The user's call it is a part of, for the profiler.
    origin: Option<Arc<profiler::Origin>>,
}

/// Who waits at a node's outputs.
#[derive(Clone, Default)]
pub(super) struct Watch {
    pub watchers: Vec<Watcher>,
    /// A function of another language that the formula calls; the formula keeps it.
    pub foreign: Option<Weak<dyn Any + Send + Sync>>,
}

/// Somebody who waits for the gradient of an output; they see it in the order in which they came.
#[derive(Clone)]
pub(super) struct Watcher {
    pub output: usize,
    pub what: Watching,
}

#[derive(Clone)]
pub(super) enum Watching {
    /// Calls a hook, which has a number.
    Hook(u64, Hook),
    /// Keeps it in `.grad` of a tensor.
    Retain(Weak<crate::tensor::Inner>),
}

/// What a formula needs; dropped once the walk has passed.
#[derive(Clone)]
pub(super) struct State {
    formula: GradFn,
    pub(super) saved: SmallVec<[Saved; 2]>,
    outputs: SmallVec<[Option<Saved>; 1]>,
}

/// The outputs whose values a formula reads.
#[derive(Clone, Copy)]
pub(crate) enum Keeps<'a> {
    Nothing,
    All,
    These(&'a [usize]),
}

/// Where the gradient of an input goes.
pub(super) enum Edge {
    /// Nowhere.
    None,
    /// Into `.grad` of a leaf.
    Leaf(Tensor),
    /// To the call that made the input, at this output.
    Node(NodeRef, usize),
}

/// The link from a tensor to the call that made it.
#[derive(Clone)]
pub(crate) struct History {
    pub node: NodeRef,
    pub index: usize,
}

/// A counted reference to a node. Dropping the last one of a long chain must not recurse, so drops are queued.
#[derive(Clone)]
pub(crate) struct NodeRef(Option<Arc<Node>>);

thread_local! {
    static DROPS: RefCell<Option<Vec<Arc<Node>>>> = const { RefCell::new(None) };
}

impl NodeRef {
    pub fn get(&self) -> &Arc<Node> {
        self.0.as_ref().expect("a NodeRef is empty only while it is dropped")
    }
}

impl Drop for NodeRef {
    fn drop(&mut self) {
        let Some(node) = self.0.take() else { return };
        // During thread teardown the queue may be gone; then the plain drop is all there is.
        let _ = DROPS.try_with(|queue| {
            {
                let mut q = queue.borrow_mut();
                if let Some(q) = q.as_mut() {
                    q.push(node);
                    return;
                }
                *q = Some(vec![node]);
            }
            loop {
                let next = queue.borrow_mut().as_mut().and_then(Vec::pop);
                match next {
                    Some(node) => drop(node),
                    None => break,
                }
            }
            *queue.borrow_mut() = None;
        });
    }
}

/// A value kept for a formula.
#[derive(Clone)]
pub(super) enum Saved {
    /// A leaf that is trained, with the version it had: gradients of gradients end in this very tensor.
    Leaf(Tensor, u64),
    /// Anything else by its memory. The tensor itself could keep its own node alive for ever.
    Now(Kept),
    /// By its number among the values that [`recompute`](super::recompute()) computes again.
    Again(Arc<Frame>, usize),
    /// A hook took it away.
    Packed(Box<Packed>),
}

/// Memory and history of a tensor.
#[derive(Clone)]
pub(super) struct Kept {
    storage: Storage,
    layout: Layout,
    dtype: DType,
    version: u64,
    tracked: bool,
    pub history: Option<History>,
}

impl Kept {
    fn tensor(&self) -> Tensor {
        let t = Tensor::from_parts(self.storage.clone(), self.layout.clone(), self.dtype);
        if self.tracked {
            t.set_stop_gradient(false);
        }
        match &self.history {
            Some(history) => t.with_history(history.clone()),
            None => t,
        }
    }

    /// Moves to other memory what is about to be written.
    fn keep_from_write(&mut self, storage: &Storage) {
        if self.storage.same(storage) && self.version == storage.version() {
            let copy = crate::error::unwrap(self.tensor().detach().lazy_copy(self.layout.clone()));
            (self.storage, self.layout) = (copy.storage().clone(), copy.layout().clone());
            self.version = self.storage.version();
        }
    }
}

impl Saved {
    pub fn of(tensor: &Tensor) -> Saved {
        let version = tensor.storage().version();
        if tensor.is_tracked() && tensor.is_leaf() {
            return Saved::Leaf(tensor.clone(), version);
        }
        Saved::Now(Kept {
            storage: tensor.storage().clone(),
            layout: tensor.layout().clone(),
            dtype: tensor.dtype(),
            version,
            tracked: tensor.is_tracked(),
            history: tensor.history().cloned(),
        })
    }

    /// The same without the history of what it is: the output of the very node that keeps it.
    fn of_output(t: &Tensor) -> Saved {
        match recompute::save(t) {
            Saved::Leaf(t, _) => Saved::of(&t.detach()),
            Saved::Now(kept) => Saved::Now(Kept { history: None, tracked: false, ..kept }),
            other => other,
        }
    }

    /// The tensor, unless it was changed in place since.
    pub fn get(&self, retain: bool, op: &str, what: &str, place: Option<&'static Location<'static>>) -> Result<Tensor> {
        match self {
            Saved::Leaf(t, version) => {
                check_version(op, what, t.shape(), *version, t.storage(), place).map(|_| t.clone())
            }
            Saved::Now(kept) => {
                check_version(op, what, &kept.layout.shape, kept.version, &kept.storage, place).map(|_| kept.tensor())
            }
            Saved::Again(frame, index) => frame.value(*index, retain)?.get(retain, op, what, place),
            Saved::Packed(packed) => packed.get().map_err(|e| e.in_op(op)),
        }
    }
}

/// The number of the next node.
pub(crate) fn next_node() -> u64 {
    NEXT_SEQ.load(Ordering::Relaxed)
}

/// `storage` is about to be written with the values of `out`: what the calls that computed them, the nodes numbered from
/// `since`, keep of it is moved away.
pub(crate) fn keep_from_writes(out: &Tensor, storage: &Storage, since: u64) {
    let mut stack: Vec<Arc<Node>> = out.history().map(|h| h.node.get().clone()).into_iter().collect();
    while let Some(node) = stack.pop() {
        if node.seq < since {
            continue;
        }
        if let Some(state) = &mut *node.state.lock() {
            for saved in state.saved.iter_mut().chain(state.outputs.iter_mut().flatten()) {
                if let Saved::Now(kept) = saved {
                    kept.keep_from_write(storage);
                }
            }
        }
        let below =
            node.edges.iter().filter_map(|e| if let Edge::Node(n, _) = e { Some(n.get().clone()) } else { None });
        stack.extend(below);
    }
}

fn check_version(
    op: &str,
    what: &str,
    shape: &[usize],
    then: u64,
    storage: &Storage,
    place: Option<&'static Location<'static>>,
) -> Result<()> {
    let now = storage.version();
    if then == now {
        return Ok(());
    }
    let place = place.map(|l| format!(" at {l}")).unwrap_or_default();
    Err(Error::new(
        crate::error::Kind::PreconditionNotMet,
        format!(
            "the gradient needs the {what} of shape {shape:?} of the call{place} as it was at version {then}, but it was \
             changed in place and is at version {now}"
        ),
    )
    .hint("use the out-of-place form of that op, or change a clone()")
    .in_op(op))
}

impl Node {
    /// Makes the node of a call and hangs it on the outputs.
    pub(crate) fn attach(
        name: &'static str,
        inputs: &[&Tensor],
        outputs: Outputs,
        saved: &[&Tensor],
        keeps: Keeps,
        formula: GradFn,
    ) -> Outputs {
        let edges = inputs.iter().map(|t| Edge::to(t)).collect();
        let saved = saved.iter().map(|t| recompute::save(t)).collect();
        let kept = match keeps {
            Keeps::Nothing => SmallVec::new(),
            Keeps::All => outputs.iter().map(|t| Some(Saved::of_output(t))).collect(),
            Keeps::These(which) => {
                let output = |(i, t)| which.contains(&i).then(|| Saved::of_output(t));
                outputs.iter().enumerate().map(output).collect()
            }
        };
        let node = NodeRef(Some(Arc::new(Node {
            name,
            seq: NEXT_SEQ.fetch_add(1, Ordering::Relaxed),
            edges,
            outs: outputs.iter().map(|t| (Shape::from_slice(t.shape()), t.dtype(), t.device())).collect(),
            state: Mutex::new(Some(State { formula, saved, outputs: kept })),
            watch: Mutex::new(None),
            place: crate::dispatch::caller(),
            origin: profiler::origin(),
        })));
        // Integers take part where a call gives nothing else; beside floats they are positions or counts.
        let positions = outputs.iter().any(|t| t.dtype().is_inexact());
        let takes_part = |d: DType| d.is_inexact() || d.is_int() && !positions;
        let history = |index, t: Tensor| match takes_part(t.dtype()) {
            true => t.with_history(History { node: node.clone(), index }),
            false => t,
        };
        outputs.into_iter().enumerate().map(|(index, t)| history(index, t)).collect()
    }

    /// The op's name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The user's line that made the call.
    pub fn place(&self) -> Option<&'static Location<'static>> {
        self.place
    }

    /// Runs the formula.
    pub(super) fn run(
        self: &Arc<Self>,
        grads: &[Option<Tensor>],
        needs: &[bool],
        retain: bool,
    ) -> Result<SmallVec<[Option<Tensor>; 3]>> {
        let _span = profiler::gradient(self.name, self.origin.as_ref(), grads);
        let state = if retain { self.state.lock().clone() } else { self.state.lock().take() };
        let state = state.ok_or_else(|| {
            Error::new(
                crate::error::Kind::PreconditionNotMet,
                "the values saved for this gradient were freed by an earlier backward",
            )
            .hint("pass retain_graph=True to the first backward if the graph is walked twice")
            .in_op(self.name)
        })?;
        let g = Grad {
            node: self,
            grads,
            needs,
            saved: state.saved.iter().map(|_| OnceCell::new()).collect(),
            outputs: state.outputs.iter().map(|_| OnceCell::new()).collect(),
            state: &state,
            retain,
        };
        // What the formula makes from nothing belongs where the gradient is.
        let _stay = device::Stay::on(self.outs.first().map_or_else(device::current, |(_, _, device)| *device));
        (state.formula)(&g).map(|g| g.0).map_err(|e| e.in_op(self.name))
    }
}

impl Edge {
    fn to(t: &Tensor) -> Edge {
        match t.history() {
            _ if !t.is_tracked() => Edge::None,
            Some(h) => Edge::Node(h.node.clone(), h.index),
            None => Edge::Leaf(t.clone()),
        }
    }
}

/// What a gradient formula sees.
pub struct Grad<'a> {
    node: &'a Arc<Node>,
    grads: &'a [Option<Tensor>],
    needs: &'a [bool],
    state: &'a State,
    /// Filled when the formula first asks: a value nobody reads may have changed, and need not be computed again.
    saved: SmallVec<[OnceCell<Tensor>; 2]>,
    outputs: SmallVec<[OnceCell<Tensor>; 1]>,
    retain: bool,
}

impl Grad<'_> {
    /// The gradient of the first output.
    pub fn grad(&self) -> Tensor {
        self.grad_of(0)
    }

    /// The gradient of output `i`; zeros if nothing came back to it.
    pub fn grad_of(&self, i: usize) -> Tensor {
        self.grads[i].clone().unwrap_or_else(|| {
            let (shape, dtype, device) = &self.node.outs[i];
            Tensor::zeros_on(shape, *dtype, *device)
        })
    }

    /// Did a gradient come back to output `i`?
    pub fn has_grad(&self, i: usize) -> bool {
        self.grads[i].is_some()
    }

    /// Is the gradient of the `i`-th tensor among the arguments wanted? Others may be `None`.
    pub fn needs(&self, i: usize) -> bool {
        self.needs[i]
    }

    /// `f()` if the gradient of the `i`-th tensor is wanted.
    pub fn if_needed(&self, i: usize, f: impl FnOnce() -> Tensor) -> Option<Tensor> {
        self.needs(i).then(f)
    }

    /// How many tensors there are among the arguments.
    pub fn inputs(&self) -> usize {
        self.needs.len()
    }

    /// A saved input, in the order of the `saved` list.
    pub fn saved(&self, i: usize) -> &Tensor {
        let load = || self.state.saved[i].get(self.retain, self.node.name, "input", self.node.place);
        self.saved[i].get_or_init(|| crate::error::unwrap(load()))
    }

    /// A saved output (only with `grad_from_output` and `grad_from_outputs`).
    pub fn output(&self, i: usize) -> &Tensor {
        self.outputs[i].get_or_init(|| crate::error::unwrap(self.load_output(i)))
    }

    fn load_output(&self, index: usize) -> Result<Tensor> {
        let (name, place) = (self.node.name, self.node.place);
        let kept = self.state.outputs[index].as_ref().expect("an output that the formula said it reads");
        let t = kept.get(self.retain, name, "output", place)?;
        let t = Tensor::from_parts(t.storage().clone(), t.layout().clone(), t.dtype());
        let history = History { node: NodeRef(Some(self.node.clone())), index };
        Ok(if t.dtype().is_inexact() { t.with_history(history) } else { t })
    }
}

/// Gradients of the tensors among the arguments, in their order.
pub struct Grads(pub(super) SmallVec<[Option<Tensor>; 3]>);

impl From<Tensor> for Grads {
    fn from(t: Tensor) -> Grads {
        Grads(smallvec::smallvec![Some(t)])
    }
}
impl From<Option<Tensor>> for Grads {
    fn from(t: Option<Tensor>) -> Grads {
        Grads(smallvec::smallvec![t])
    }
}
impl<const N: usize> From<[Option<Tensor>; N]> for Grads {
    fn from(ts: [Option<Tensor>; N]) -> Grads {
        Grads(ts.into_iter().collect())
    }
}
impl From<Vec<Option<Tensor>>> for Grads {
    fn from(ts: Vec<Option<Tensor>>) -> Grads {
        Grads(ts.into())
    }
}
impl From<Vec<Tensor>> for Grads {
    fn from(ts: Vec<Tensor>) -> Grads {
        Grads(ts.into_iter().map(Some).collect())
    }
}

impl Node {
    pub(crate) fn add_hook(&self, output: usize, id: u64, hook: Hook) {
        self.watch.lock().get_or_insert_default().watchers.push(Watcher { output, what: Watching::Hook(id, hook) });
    }

    pub(crate) fn remove_hook(&self, id: u64) -> bool {
        let mut guard = self.watch.lock();
        let Some(watch) = guard.as_mut() else { return false };
        let at = watch.watchers.iter().position(|w| matches!(w.what, Watching::Hook(i, _) if i == id));
        let removed = at.map(|at| watch.watchers.remove(at));
        drop(guard);
        removed.is_some()
    }

    /// Takes all hooks off.
    pub(super) fn take_hooks(&self) -> Vec<Hook> {
        let mut guard = self.watch.lock();
        let Some(watch) = guard.as_mut() else { return Vec::new() };
        let hooks: Vec<Watcher> = watch.watchers.extract_if(.., |w| matches!(w.what, Watching::Hook(..))).collect();
        drop(guard);
        hooks.into_iter().filter_map(|w| if let Watching::Hook(_, hook) = w.what { Some(hook) } else { None }).collect()
    }

    pub(super) fn set_foreign(&self, function: Weak<dyn Any + Send + Sync>) {
        self.watch.lock().get_or_insert_default().foreign = Some(function);
    }

    pub(crate) fn retain_grad(&self, output: usize, tensor: Weak<crate::tensor::Inner>) {
        let mut watch = self.watch.lock();
        let watch = &mut watch.get_or_insert_default().watchers;
        let known = |w: &Watcher| matches!(&w.what, Watching::Retain(t) if t.ptr_eq(&tensor));
        if !watch.iter().any(known) {
            watch.push(Watcher { output, what: Watching::Retain(tensor) });
        }
    }
}
