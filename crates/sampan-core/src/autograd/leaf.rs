//! Hearing of the gradients of leaves while the walk backwards goes on: what lets processes exchange gradients while others
//! are still computed.

use super::address::{HashMap, HashSet};
use super::node::{Edge, Node};
use crate::{Result, Tensor};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

/// Hears of the gradients of leaves.
///
/// ```
/// # use sampan_core::{Result, Tensor, autograd::LeafHook};
/// # use std::sync::{Arc, Mutex};
/// /// Notes when the gradient of a leaf is complete, and when the walk is over.
/// #[derive(Default)]
/// struct Notes(Mutex<Vec<f64>>);
/// impl LeafHook for Notes {
///     fn ready(&self, leaf: &Tensor) -> Result<()> {
///         self.0.lock().unwrap().push(leaf.grad().unwrap().to_f64());
///         Ok(())
///     }
///     fn finish(&self, _completed: bool) -> Result<()> {
///         self.0.lock().unwrap().push(-1.0);
///         Ok(())
///     }
/// }
/// let notes = Arc::new(Notes::default());
/// let hook: Arc<dyn LeafHook> = notes.clone();
/// let (a, b) = (Tensor::new(2.0f32).requires_grad_(), Tensor::new(3.0f32).requires_grad_());
/// a.set_leaf_hook(Some(&hook));
/// b.set_leaf_hook(Some(&hook));
/// // b has its last part in the last call, which the walk passes first; a is used twice.
/// ((&a * &a) * &b).backward();
/// assert_eq!(*notes.0.lock().unwrap(), [4.0, 12.0, -1.0]);
/// ```
pub trait LeafHook: Send + Sync {
    /// The gradient of a leaf is complete and added to its `.grad`. Other gradients may not be.
    fn ready(&self, leaf: &Tensor) -> Result<()>;

    /// A walk in which a leaf was ready is over; `completed` is false if it failed, and then what was begun in it is void.
    fn finish(&self, completed: bool) -> Result<()>;
}

/// How many leaves were ever given a hook: without any, walks look for none.
static HOOKED: AtomicUsize = AtomicUsize::new(0);

pub(crate) type Listening = Weak<dyn LeafHook>;

pub(crate) fn hooked() {
    HOOKED.fetch_add(1, Ordering::Relaxed);
}

/// What one walk knows about leaves with hooks.
#[derive(Default)]
pub(super) struct Completion {
    /// How many edges still lead to each of them.
    left: HashMap<usize, usize>,
    heard: Vec<Arc<dyn LeafHook>>,
}

impl Completion {
    /// Counts the edges to leaves with hooks among all that the outputs depend on.
    pub fn of(outputs: &[Tensor]) -> Completion {
        let mut found = Completion::default();
        if HOOKED.load(Ordering::Relaxed) == 0 {
            return found;
        }
        let mut seen = HashSet::default();
        let mut stack: Vec<Arc<Node>> =
            outputs.iter().filter_map(|t| t.history().map(|h| h.node.get().clone())).collect();
        while let Some(node) = stack.pop() {
            if !seen.insert(Arc::as_ptr(&node).addr()) {
                continue;
            }
            for edge in &node.edges {
                match edge {
                    Edge::Leaf(leaf) if leaf.leaf_hook().is_some() => {
                        *found.left.entry(leaf.as_ptr().addr()).or_default() += 1;
                    }
                    Edge::Node(n, _) => stack.push(n.get().clone()),
                    _ => {}
                }
            }
        }
        found
    }

    /// The leaves whose gradients are complete now that a node has been passed.
    pub fn passed(&mut self, node: &Node) -> Vec<Tensor> {
        let mut complete = Vec::new();
        if self.left.is_empty() {
            return complete;
        }
        for edge in &node.edges {
            if let Edge::Leaf(leaf) = edge
                && let Some(left) = self.left.get_mut(&leaf.as_ptr().addr())
            {
                *left -= 1;
                if *left == 0 {
                    complete.push(leaf.clone());
                }
            }
        }
        complete
    }

    /// Tells whoever listens to a leaf that its gradient is there.
    pub fn tell(&mut self, leaf: &Tensor) -> Result<()> {
        let Some(hook) = leaf.leaf_hook() else { return Ok(()) };
        if !self.heard.iter().any(|known| Arc::ptr_eq(known, &hook)) {
            self.heard.push(hook.clone());
        }
        hook.ready(leaf)
    }

    /// Tells all who heard of a leaf that the walk is over.
    pub fn finish(&mut self, completed: bool) -> Result<()> {
        self.heard.drain(..).try_for_each(|hook| hook.finish(completed))
    }
}
