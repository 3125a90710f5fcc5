//! Layers as the profiler sees them: by their paths from the outermost one.

use crate::layer::Erased;
use crate::{LayerId, LayerRef, Path, Visitor};
use sampan_core::profiler::{self, Span};
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

thread_local! {
    /// The paths of all layers inside the outermost one that runs.
    static PATHS: RefCell<HashMap<LayerId, Arc<str>>> = RefCell::default();
}

struct Collect<'a>(&'a str, &'a mut HashMap<LayerId, Arc<str>>);
impl Visitor for Collect<'_> {
    fn layer(&mut self, path: &Path, layer: LayerRef) {
        // A layer that is shared has the path it is met at first.
        self.1.entry(layer.id()).or_insert_with(|| below(self.0, path.as_str()));
    }
}

fn below(outer: &str, path: &str) -> Arc<str> {
    if path.is_empty() { outer.into() } else { format!("{outer}.{path}").into() }
}

/// A layer begins; `depth` others of the core are running. The outermost one of the core that runs inside a layer of
/// another language is that very layer, which has noted itself.
pub(crate) fn enter(layer: &dyn Erased, depth: usize) -> Option<Span> {
    let name = layer.name();
    let outer = profiler::enclosing_layer();
    if depth == 0 {
        let root: Arc<str> = outer.clone().unwrap_or_else(|| name.into());
        PATHS.with_borrow_mut(|paths| {
            paths.clear();
            layer.visit(&mut Collect(&root, paths));
        });
        return outer.is_none().then(|| profiler::layer(name, root));
    }
    let known = PATHS.with_borrow(|paths| paths.get(&layer.id()).cloned());
    // Made as it is called, it is no member of the layers around it.
    let path = known.unwrap_or_else(|| outer.map_or_else(|| name.into(), |outer| below(&outer, name)));
    Some(profiler::layer(name, path))
}
