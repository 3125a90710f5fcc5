//! Walks the recorded graph backwards, newest call first, without recursion.

use super::address::{HashMap, HashSet};
use super::leaf::Completion;
use super::mode;
use super::node::{Edge, Node, Watcher, Watching};
use crate::error::Kind;
use crate::tensor::Inner;
use crate::{Error, Result, Tensor, flags, profiler};
use smallvec::SmallVec;
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

/// How [`grad`] walks.
#[derive(Clone, Copy, Debug, Default)]
pub struct GradOptions<'a> {
    /// Keep the saved values for another walk. Follows `create_graph` unless set.
    pub retain_graph: Option<bool>,
    /// Record the walk itself, for gradients of gradients.
    pub create_graph: bool,
    /// Give `None` for an input that the outputs do not depend on, instead of an error.
    pub allow_unused: bool,
    /// Treat these as constants.
    pub no_grad_vars: &'a [Tensor],
}

/// Adds the gradients of `outputs` to `.grad` of every leaf they depend on. A missing gradient of an output means ones.
#[track_caller]
pub fn backward(outputs: &[Tensor], grads: &[Option<Tensor>], retain_graph: bool) -> Result<()> {
    crate::dispatch::outermost(|| {
        Walk::new(outputs, grads, None, &GradOptions { retain_graph: Some(retain_graph), ..Default::default() })?.run()
    })
    .map(|_| ())
}

/// The gradients of `outputs` with respect to `inputs`, without touching any `.grad`.
#[track_caller]
pub fn grad(
    outputs: &[Tensor],
    inputs: &[Tensor],
    grad_outputs: &[Option<Tensor>],
    options: GradOptions,
) -> Result<Vec<Option<Tensor>>> {
    let found = crate::dispatch::outermost(|| Walk::new(outputs, grad_outputs, Some(inputs), &options)?.run())?;
    if !options.allow_unused
        && let Some(i) = found.iter().position(Option::is_none)
    {
        return Err(Error::invalid(format!(
            "input {i} of shape {:?} does not take part in the outputs",
            inputs[i].shape()
        ))
        .hint("pass allow_unused=True to get None for it, or check for a detach() or stop_gradient on the way")
        .in_op("grad"));
    }
    if options.create_graph {
        // A constant, too, is something to go on from.
        let free = |t: Tensor| if t.requires_grad() { t } else { t.detach().requires_grad_() };
        return Ok(found.into_iter().map(|t| t.map(free)).collect());
    }
    Ok(found)
}

/// The place of a tensor in the graph: a leaf, or an output of a node.
#[derive(PartialEq, Eq, Hash, Clone, Copy)]
enum Place {
    Leaf(*const Inner),
    Output(*const Node, usize),
}

fn place(t: &Tensor) -> Place {
    match t.history() {
        Some(h) => Place::Output(Arc::as_ptr(h.node.get()), h.index),
        None => Place::Leaf(t.as_ptr()),
    }
}

fn edge_place(e: &Edge) -> Option<Place> {
    match e {
        Edge::None => None,
        Edge::Leaf(t) => Some(Place::Leaf(t.as_ptr())),
        Edge::Node(n, i) => Some(Place::Output(Arc::as_ptr(n.get()), *i)),
    }
}

/// A node waiting for its turn; the newest comes first, when all that depends on it has been seen.
struct Pending(Arc<Node>);
impl PartialEq for Pending {
    fn eq(&self, other: &Self) -> bool {
        self.0.seq == other.0.seq
    }
}
impl Eq for Pending {}
impl PartialOrd for Pending {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Pending {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.seq.cmp(&other.0.seq)
    }
}

type Slots = SmallVec<[Option<Tensor>; 1]>;

struct Walk {
    heap: BinaryHeap<Pending>,
    slots: HashMap<*const Node, Slots>,
    /// Leaves in the order they were reached, each with the sum of what has arrived: hooks see it once, and a walk that
    /// fails leaves every `.grad` as it was. A leaf whose completion somebody waits for is taken out when it is complete.
    leaves: Vec<Option<(Tensor, Tensor)>>,
    leaf_index: HashMap<*const Inner, usize>,
    /// With given inputs: where they lie, and what has arrived there.
    wanted: Option<HashMap<Place, Option<Tensor>>>,
    order: Vec<Place>,
    /// With given inputs: the nodes that lead to one of them.
    relevant: HashSet<*const Node>,
    /// With given inputs: the lowest number of a node one of them came from; 0 if one is a leaf.
    oldest_wanted: u64,
    blocked: HashSet<Place>,
    completion: Completion,
    retain: bool,
    create: bool,
}

impl Walk {
    fn new(
        outputs: &[Tensor],
        grads: &[Option<Tensor>],
        inputs: Option<&[Tensor]>,
        options: &GradOptions,
    ) -> Result<Walk> {
        let current = |ts: &[Tensor]| ts.iter().map(Tensor::current).collect::<Result<SmallVec<[Tensor; 2]>>>();
        let outputs = &current(outputs)?[..];
        let inputs = inputs.map(current).transpose()?;
        let inputs = inputs.as_deref();
        let mut walk = Walk {
            heap: BinaryHeap::new(),
            slots: HashMap::default(),
            leaves: Vec::new(),
            leaf_index: HashMap::default(),
            wanted: inputs.map(|ts| ts.iter().map(|t| (place(t), None)).collect()),
            order: inputs.unwrap_or_default().iter().map(place).collect(),
            relevant: HashSet::default(),
            oldest_wanted: inputs
                .unwrap_or_default()
                .iter()
                .map(|t| t.history().map_or(0, |h| h.node.get().seq))
                .min()
                .unwrap_or(0),
            blocked: current(options.no_grad_vars)?.iter().map(place).collect(),
            completion: if inputs.is_none() { Completion::of(outputs) } else { Completion::default() },
            retain: options.retain_graph.unwrap_or(options.create_graph),
            create: options.create_graph,
        };
        if !grads.is_empty() && grads.len() != outputs.len() {
            let (have, want) = (grads.len(), outputs.len());
            return Err(Error::invalid(format!("{have} gradients are given for {want} outputs"))
                .hint("give one for each output, None for ones, or none at all"));
        }
        if walk.wanted.is_some() {
            walk.find_relevant(outputs);
        }
        for (i, t) in outputs.iter().enumerate() {
            let given = match grads.get(i).and_then(Option::as_ref) {
                Some(g) if g.shape() != t.shape() => {
                    let (g, t) = (g.shape(), t.shape());
                    return Err(Error::invalid(format!("grad_tensor {i} has shape {g:?}, its output has {t:?}")));
                }
                given => given,
            };
            // What depends on nothing has nothing to tell, as in Paddle.
            if !t.requires_grad() {
                continue;
            }
            let g = given.cloned().unwrap_or_else(|| Tensor::full_like_scalar(t, 1.0));
            match t.history() {
                Some(h) => walk.deliver_node(h.node.get(), h.index, g)?,
                None => walk.deliver_leaf(t, g)?,
            }
        }
        Ok(walk)
    }

    /// Marks every node on a way from the outputs to a wanted place.
    fn find_relevant(&mut self, outputs: &[Tensor]) {
        let wanted = self.wanted.as_ref().expect("called with given inputs");
        // A node older than every wanted output cannot lead to one, so the search ends there unless a leaf is wanted.
        let oldest = self.oldest_wanted;
        let mut seen = HashSet::default();
        let mut nodes: Vec<Arc<Node>> = Vec::new();
        let mut stack: Vec<Arc<Node>> =
            outputs.iter().filter_map(|t| t.history().map(|h| h.node.get().clone())).collect();
        while let Some(node) = stack.pop() {
            if !seen.insert(Arc::as_ptr(&node)) {
                continue;
            }
            for e in &node.edges {
                if let Edge::Node(n, _) = e
                    && n.get().seq >= oldest
                {
                    stack.push(n.get().clone());
                }
            }
            nodes.push(node);
        }
        nodes.sort_by_key(|n| n.seq);
        for node in &nodes {
            let leads = node.edges.iter().any(|e| {
                let Some(p) = edge_place(e) else { return false };
                if self.blocked.contains(&p) {
                    return false;
                }
                wanted.contains_key(&p)
                    || matches!(e, Edge::Node(n, _) if self.relevant.contains(&Arc::as_ptr(n.get())))
            });
            if leads {
                self.relevant.insert(Arc::as_ptr(node));
            }
        }
    }

    fn run(self) -> Result<Vec<Option<Tensor>>> {
        let create = self.create;
        if crate::recording::on_cpu() {
            crate::recording::with_tape(|tape| tape.walked |= self.wanted.is_none());
        }
        let _range = profiler::range_of(profiler::Kind::Backward, "backward");
        // The formulas run in the precision the forward calls had.
        mode::with(create, || crate::amp::with_level(None, || self.walk()))
    }

    fn walk(mut self) -> Result<Vec<Option<Tensor>>> {
        let walked = self.pass_all();
        let told = self.completion.finish(walked.is_ok());
        walked.and(told)?;
        let mut wanted = self.wanted.unwrap_or_default();
        Ok(self.order.iter().map(|p| wanted.get_mut(p).and_then(|g| g.clone())).collect())
    }

    fn pass_all(&mut self) -> Result<()> {
        while let Some(Pending(node)) = self.heap.pop() {
            let Some(mut slots) = self.slots.remove(&Arc::as_ptr(&node)) else { continue };
            self.watch(&node, &mut slots)?;
            if self.wanted.is_some() && !self.relevant.contains(&Arc::as_ptr(&node)) {
                continue;
            }
            let needs: SmallVec<[bool; 4]> = node.edges.iter().map(|e| self.needs(e)).collect();
            let grads = node.run(&slots, &needs, self.retain)?;
            if grads.len() != node.edges.len() {
                return Err(Error::new(
                    Kind::PreconditionNotMet,
                    format!("the gradient formula gave {} gradients for {} inputs", grads.len(), node.edges.len()),
                )
                .in_op(node.name));
            }
            for ((edge, need), grad) in node.edges.iter().zip(needs).zip(grads) {
                let Some(g) = grad.filter(|_| need) else { continue };
                if flags::anomaly_mode() {
                    check_anomaly(&node, &g)?;
                }
                match edge {
                    Edge::None => {}
                    Edge::Leaf(t) => self.deliver_leaf(t, g).map_err(|e| e.in_op(node.name))?,
                    Edge::Node(n, i) => self.deliver_node(n.get(), *i, g).map_err(|e| e.in_op(node.name))?,
                }
            }
            for leaf in self.completion.passed(&node) {
                self.complete_leaf(&leaf)?;
            }
        }
        self.finish_leaves()
    }

    /// Hands a gradient over before the walk is at its end.
    fn complete_leaf(&mut self, leaf: &Tensor) -> Result<()> {
        let Some(&at) = self.leaf_index.get(&leaf.as_ptr()) else { return Ok(()) };
        let Some((leaf, g)) = self.leaves[at].take() else { return Ok(()) };
        let g = hooked(&leaf, g)?;
        leaf.accumulate_grad(g, self.create)?;
        self.completion.tell(&leaf)
    }

    fn needs(&self, edge: &Edge) -> bool {
        if self.wanted.is_none() && self.blocked.is_empty() {
            return !matches!(edge, Edge::None);
        }
        let Some(p) = edge_place(edge) else { return false };
        if self.blocked.contains(&p) {
            return false;
        }
        match &self.wanted {
            None => true,
            Some(w) => {
                w.contains_key(&p) || matches!(edge, Edge::Node(n, _) if self.relevant.contains(&Arc::as_ptr(n.get())))
            }
        }
    }

    /// Hooks, retained gradients and wanted inputs on the outputs of a node whose gradients are now complete.
    fn watch(&mut self, node: &Arc<Node>, slots: &mut Slots) -> Result<()> {
        // What is only reached through the other outputs of its call has a gradient of zeros.
        let complete = |slots: &Slots, index: usize| {
            let (shape, dtype, device) = &node.outs[index];
            slots[index].clone().unwrap_or_else(|| Tensor::zeros_on(shape, *dtype, *device))
        };
        let watch = node.watch.lock().clone();
        for Watcher { output, what } in watch.into_iter().flat_map(|w| w.watchers) {
            let g = complete(slots, output);
            match what {
                Watching::Hook(_, hook) => {
                    if let Some(new) = hook.call(&g)? {
                        let (shape, dtype, _) = &node.outs[output];
                        slots[output] = Some(fit(new, shape, *dtype, "a hook").map_err(|e| e.in_op("register_hook"))?);
                    }
                }
                Watching::Retain(tensor) => {
                    if let Some(inner) = tensor.upgrade() {
                        Tensor::from_inner(inner).accumulate_grad(g, self.create)?;
                    }
                }
            }
        }
        if let Some(wanted) = &mut self.wanted {
            for index in 0..slots.len() {
                if let Some(w) = wanted.get_mut(&Place::Output(Arc::as_ptr(node), index)) {
                    *w = Some(complete(slots, index));
                }
            }
        }
        Ok(())
    }

    fn deliver_node(&mut self, node: &Arc<Node>, index: usize, g: Tensor) -> Result<()> {
        let (shape, dtype, _) = &node.outs[index];
        let g = fit(g, shape, *dtype, FORMULA)?;
        let slots = match self.slots.entry(Arc::as_ptr(node)) {
            Entry::Occupied(e) => e.into_mut(),
            Entry::Vacant(e) => {
                self.heap.push(Pending(node.clone()));
                e.insert(SmallVec::from_elem(None, node.outs.len()))
            }
        };
        slots[index] = Some(match slots[index].take() {
            Some(old) => old.plus(&g, self.create)?,
            None => g,
        });
        Ok(())
    }

    fn deliver_leaf(&mut self, leaf: &Tensor, g: Tensor) -> Result<()> {
        let g = fit(g, leaf.shape(), leaf.dtype(), FORMULA)?;
        match self.leaf_index.entry(leaf.as_ptr()) {
            Entry::Vacant(e) => {
                e.insert(self.leaves.len());
                self.leaves.push(Some((leaf.clone(), g)));
            }
            Entry::Occupied(e) => {
                let place = &mut self.leaves[*e.get()];
                // Held by nobody else, the old sum may be added to where it lies.
                let sum = match place.take() {
                    Some((_, old)) => old.plus(&g, self.create)?,
                    None => g,
                };
                *place = Some((leaf.clone(), sum));
            }
        }
        Ok(())
    }

    /// Hooks on the leaves, then their gradients to where they are wanted.
    fn finish_leaves(&mut self) -> Result<()> {
        let mut left = Vec::with_capacity(self.leaves.len());
        for (leaf, g) in self.leaves.drain(..).flatten() {
            let g = hooked(&leaf, g)?;
            left.push((leaf, g));
        }
        for (leaf, g) in left {
            match &mut self.wanted {
                Some(wanted) => {
                    if let Some(slot) = wanted.get_mut(&place(&leaf)) {
                        *slot = Some(g);
                    }
                }
                None => {
                    leaf.accumulate_grad(g, self.create)?;
                    self.completion.tell(&leaf)?;
                }
            }
        }
        Ok(())
    }
}

/// What the hooks on a leaf make of its gradient.
fn hooked(leaf: &Tensor, mut g: Tensor) -> Result<Tensor> {
    for hook in leaf.hooks() {
        if let Some(new) = hook.call(&g)? {
            g = fit(new, leaf.shape(), leaf.dtype(), "a hook").map_err(|e| e.in_op("register_hook"))?;
        }
    }
    Ok(g)
}

const FORMULA: &str = "the gradient formula";

/// A gradient has the shape and dtype of what it is the gradient of.
fn fit(g: Tensor, shape: &[usize], dtype: crate::DType, whose: &str) -> Result<Tensor> {
    if g.shape() != shape {
        return Err(Error::new(
            Kind::PreconditionNotMet,
            format!("{whose} gave shape {:?} for a tensor of shape {shape:?}", g.shape()),
        ));
    }
    if g.dtype() == dtype { Ok(g) } else { g.try_cast(dtype) }
}

fn check_anomaly(node: &Node, g: &Tensor) -> Result<()> {
    let (nan, _) = crate::debug::count_non_finite(g);
    if nan == 0 {
        return Ok(());
    }
    let place = node.place.map(|l| format!(" called at {l}")).unwrap_or_default();
    Err(Error::new(
        Kind::NotFinite,
        format!("the gradient of the call{place} gave {nan} NaN in an input of shape {:?}", g.shape()),
    )
    .in_op(node.name))
}
