//! Layers made of layers.

use crate::{Base, Layer, Members, Path, Visitor};
use sampan_core::{Result, Tensor};

/// Layers applied one after the other.
pub struct Sequential {
    base: Base,
    layers: Vec<(String, Box<dyn Layer>)>,
}

impl Default for Sequential {
    fn default() -> Sequential {
        Sequential::new()
    }
}

impl Sequential {
    /// No layers yet.
    pub fn new() -> Sequential {
        Sequential { base: Base::new("sequential"), layers: Vec::new() }
    }

    /// Adds a layer at the end; its name is its position.
    pub fn push(self, layer: impl Layer) -> Sequential {
        let name = self.layers.len().to_string();
        self.push_named(name, layer)
    }

    /// Adds a layer at the end under a name.
    pub fn push_named(mut self, name: impl Into<String>, layer: impl Layer) -> Sequential {
        self.layers.push((name.into(), Box::new(layer)));
        self
    }
}

impl Members for Sequential {
    fn visit(&self, path: &Path, visitor: &mut dyn Visitor) {
        visitor.layer(path, crate::LayerRef { type_name: "Sequential", layer: self });
        self.base.visit(path, visitor);
        self.layers.iter().for_each(|(name, l)| l.visit(&path.join(name), visitor));
    }
    fn base(&self) -> Option<&Base> {
        Some(&self.base)
    }
}

impl Layer for Sequential {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.layers.iter().try_fold(x.clone(), |x, (_, layer)| layer.call(&x))
    }
}
