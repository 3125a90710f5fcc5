//! Layers made of layers.

use crate::{Layer, Members, Path, Visitor};
use sampan_core::{Result, Tensor};

/// Layers applied one after the other.
#[derive(Default)]
pub struct Sequential(Vec<Box<dyn Layer>>);

impl Sequential {
    /// No layers yet.
    pub fn new() -> Sequential {
        Sequential::default()
    }

    /// Adds a layer at the end.
    pub fn push(mut self, layer: impl Layer + 'static) -> Sequential {
        self.0.push(Box::new(layer));
        self
    }
}

impl Members for Sequential {
    fn visit(&self, path: &Path, visitor: &mut dyn Visitor) {
        visitor.layer(path, "Sequential");
        self.0.visit(path, visitor);
    }
}

impl Layer for Sequential {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.0
            .iter()
            .enumerate()
            .try_fold(x.clone(), |x, (i, layer)| layer.forward(&x).map_err(|e| e.in_layer(i.to_string())))
    }
}
