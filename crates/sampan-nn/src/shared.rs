//! Layers as arguments of other layers.

use crate::Layer;
use crate::layers::shared;
use sampan_core::value::Arg;
use sampan_core::{Object, Value};
use std::any::Any;
use std::sync::Arc;

/// A layer of a known type that is shared with whoever passes it.
pub struct LayerOf<L>(pub Arc<L>);

impl<L> Clone for LayerOf<L> {
    fn clone(&self) -> LayerOf<L> {
        LayerOf(self.0.clone())
    }
}
impl<L: Layer> From<L> for LayerOf<L> {
    fn from(layer: L) -> LayerOf<L> {
        LayerOf(Arc::new(layer))
    }
}
impl<L: Layer> From<Arc<L>> for LayerOf<L> {
    fn from(layer: Arc<L>) -> LayerOf<L> {
        LayerOf(layer)
    }
}
impl<L: Layer> From<LayerOf<L>> for Value {
    fn from(layer: LayerOf<L>) -> Value {
        Value::Object(Object::new(layer.0 as Arc<dyn Layer>))
    }
}
impl<'a, L: Layer> Arg<'a> for LayerOf<L> {
    const EXPECTED: &'static str = "a layer of another type";
    fn read(v: &'a Value) -> Option<Self> {
        let any: Arc<dyn Any + Send + Sync> = SharedLayer::read(v)?.0;
        any.downcast().ok().map(LayerOf)
    }
}

/// A layer of any type that is shared with whoever passes it.
#[derive(Clone)]
pub struct SharedLayer(pub Arc<dyn Layer>);

impl<L: Layer> From<L> for SharedLayer {
    fn from(layer: L) -> SharedLayer {
        SharedLayer(shared(layer))
    }
}
impl From<SharedLayer> for Value {
    fn from(layer: SharedLayer) -> Value {
        Value::Object(Object::new(layer.0))
    }
}
impl<'a> Arg<'a> for SharedLayer {
    const EXPECTED: &'static str = "a layer";
    fn read(v: &'a Value) -> Option<Self> {
        let Value::Object(o) = v else { return None };
        o.downcast::<Arc<dyn Layer>>().cloned().map(SharedLayer)
    }
}
