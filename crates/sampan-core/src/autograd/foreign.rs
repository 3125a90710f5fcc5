//! What a graph holds of another language's objects, for that language's garbage collector.
//!
//! A hook may hold an object that holds the tensor it hangs on. Such a circle through the graph is seen by a collector only
//! if the graph shows what it holds, and it may show only what would go away with the tensor that is asked: objects in
//! parts of the graph that somebody else keeps as well are in use.

use super::node::{Edge, GradHook, Hook, Node, Saved, Watching};
use crate::Tensor;
use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A part of a graph.
enum Part {
    Tensor(Tensor),
    Node(Arc<Node>),
}

/// Newest last: what keeps a part has a key above the part's own. A tensor comes before the call that made it, leaves are
/// the oldest of all.
type Key = (u64, bool, usize);

/// Parts that were reached, and by how many links from parts that `root` alone keeps.
struct Reached(BTreeMap<Key, (Part, usize)>);

impl Reached {
    fn tensor(&mut self, t: &Tensor) {
        let seq = t.history().map_or(0, |h| h.node.get().seq);
        self.0.entry((seq, true, t.as_ptr().addr())).or_insert_with(|| (Part::Tensor(t.clone()), 0)).1 += 1;
    }

    fn node(&mut self, node: &Arc<Node>) {
        let key = (node.seq, false, Arc::as_ptr(node).addr());
        self.0.entry(key).or_insert_with(|| (Part::Node(node.clone()), 0)).1 += 1;
    }
}

/// Walks over what nothing but the one handle `root` keeps alive. One link more than counted is the walk's own.
fn walk(root: &Tensor, mut each: impl FnMut(&Part)) {
    let mut reached = Reached(BTreeMap::new());
    reached.tensor(root);
    while let Some((_, (part, links))) = reached.0.pop_last() {
        match &part {
            Part::Tensor(t) if t.handles() == links + 1 => {
                each(&part);
                if let Some(history) = t.history() {
                    reached.node(history.node.get());
                }
            }
            Part::Node(node) if Arc::strong_count(node) == links + 1 => {
                each(&part);
                for edge in &node.edges {
                    match edge {
                        Edge::None => {}
                        Edge::Leaf(t) => reached.tensor(t),
                        Edge::Node(n, _) => reached.node(n.get()),
                    }
                }
                for saved in node.state.lock().iter().flat_map(|s| &s.saved) {
                    match saved {
                        Saved::Leaf(t, _) => reached.tensor(t),
                        Saved::Now(kept) => kept.history.iter().for_each(|h| reached.node(h.node.get())),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
}

/// Shows every hook, and every [foreign](super::Function::is_foreign) function, in the part of the graph that `root` alone
/// keeps alive. Two walks show the same unless the caller lets somebody change the graph between them.
pub fn visit_foreign(root: &Tensor, visit: &mut dyn FnMut(&dyn Any)) {
    let mut show = |hook: &Hook| {
        let hook: &dyn GradHook = &**hook;
        visit(hook);
    };
    let mut functions = Vec::new();
    walk(root, |part| match part {
        Part::Tensor(t) => t.hooks().iter().for_each(&mut show),
        Part::Node(node) => {
            let watch = node.watch.lock().clone();
            if let Some(watch) = watch {
                for watcher in &watch.watchers {
                    if let Watching::Hook(_, hook) = &watcher.what {
                        show(hook);
                    }
                }
                functions.extend(watch.foreign.and_then(|f| f.upgrade()));
            }
        }
    });
    functions.iter().for_each(|f| visit(&**f));
}

/// Takes the hooks off that [`visit_foreign`] shows, to be dropped by the caller.
pub fn release_foreign(root: &Tensor) -> Vec<Arc<dyn GradHook>> {
    let mut taken = Vec::new();
    walk(root, |part| match part {
        Part::Tensor(t) => taken.extend(t.take_hooks()),
        Part::Node(node) => taken.extend(node.take_hooks()),
    });
    taken
}
