//! How the members of a layer are found: parameters, buffers and layers, by the names of fields.

use crate::{Base, Layer, Parameter, walk};
use sampan_core::{DType, Result, Tensor, Value};
use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The way from the outermost layer to a member: `encoder.0.weight`.
#[derive(Clone, Default, Debug, PartialEq, Eq)]
pub struct Path(String);

impl Path {
    /// One step further in; an empty name stays, so that a field `#[layer(name = "")]` lends its members to its owner.
    pub fn join(&self, name: &str) -> Path {
        match (self.0.is_empty(), name.is_empty()) {
            (true, _) => Path(name.into()),
            (_, true) => self.clone(),
            _ => Path(format!("{}.{name}", self.0)),
        }
    }

    /// The same place under a longer name: `weight` becomes `weight_g`.
    pub fn with_suffix(&self, suffix: &str) -> Path {
        Path(format!("{}{suffix}", self.0))
    }

    /// As text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A layer as a visitor sees it.
#[derive(Clone, Copy)]
pub struct LayerRef<'a> {
    /// The name of its type.
    pub type_name: &'static str,
    /// The layer itself.
    pub layer: &'a dyn Layer,
}

impl LayerRef<'_> {
    /// Tells it from every other layer alive. A layer may begin where its first field does, so its type counts as well.
    pub fn id(&self) -> LayerId {
        let layer: &dyn Any = self.layer;
        LayerId((layer as *const dyn Any).addr(), layer.type_id())
    }
}

/// Tells layers apart while they are alive and not moved.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct LayerId(pub(crate) usize, pub(crate) std::any::TypeId);

/// Sees the members of a layer, outermost first, in the order of its fields.
pub trait Visitor {
    /// A layer begins.
    fn layer(&mut self, _path: &Path, _layer: LayerRef) {}
    /// A parameter.
    fn parameter(&mut self, _path: &Path, _p: &Parameter) {}
    /// A parameter whose value is computed from others, which follow.
    fn computed(&mut self, _path: &Path, _p: &Parameter) {}
    /// A tensor that is kept but not trained.
    fn buffer(&mut self, _path: &Path, _b: &Buffer) {}
    /// The base of a built-in layer: its name, mode and hooks.
    fn base(&mut self, _path: &Path, _base: &Base) {}
}

/// A tensor that a layer keeps and does not train, such as a running mean. A clone is the same buffer.
#[derive(Clone)]
pub struct Buffer {
    place: Parameter,
    /// Is it part of the state that is saved?
    pub persistable: bool,
}

impl Buffer {
    /// A buffer that is saved with the layer.
    pub fn new(tensor: Tensor) -> Buffer {
        tensor.set_stop_gradient(true);
        Buffer { place: Parameter::of(tensor), persistable: true }
    }

    /// A buffer that is not saved.
    pub fn transient(tensor: Tensor) -> Buffer {
        Buffer { persistable: false, ..Buffer::new(tensor) }
    }

    /// The tensor.
    pub fn tensor(&self) -> Tensor {
        self.place.known()
    }

    /// Puts another tensor in its place and gives the old one.
    pub fn replace(&self, tensor: Tensor) -> Tensor {
        tensor.set_stop_gradient(true);
        self.place.replace(tensor)
    }

    /// The place as a parameter that is not trained, which is what Paddle's layers show their statistics as. Both see
    /// what is put there.
    pub fn as_parameter(&self) -> &Parameter {
        &self.place
    }
}

/// Something with members: `#[derive(Layer)]` implements it, and so do parameters, containers and plain settings.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is neither a layer nor something a layer can hold",
    note = "a struct with layers or parameters needs `#[derive(Layer)]`",
    note = "a field that is none of these is left out by `#[layer(skip)]` above it"
)]
pub trait Members {
    /// Shows the members to a visitor.
    fn visit(&self, path: &Path, visitor: &mut dyn Visitor);

    /// The name, mode and hooks of a layer, where it has a field of type [`Base`].
    fn base(&self) -> Option<&Base> {
        None
    }

    /// Every parameter with its name. A shared parameter is listed once, under its first name.
    fn named_parameters(&self) -> Vec<(String, Parameter)> {
        walk::named_parameters(&over(self))
    }

    /// Every parameter, a shared one once.
    fn parameters(&self) -> Vec<Parameter> {
        walk::parameters(&over(self))
    }

    /// Every buffer with its name.
    fn named_buffers(&self) -> Vec<(String, Buffer)> {
        walk::named_buffers(&over(self))
    }

    /// Every layer inside with its name and type, outermost first; the layer itself has an empty name.
    fn named_sublayers(&self) -> Vec<(String, &'static str)> {
        walk::named_sublayers(&over(self))
    }

    /// Everything a checkpoint keeps, by name; the tensors are the layer's own, not copies.
    fn state_dict(&self) -> BTreeMap<String, Tensor> {
        walk::state_dict(&over(self))
    }

    /// Takes over values by name. Missing, unexpected and wrong-shaped keys are all reported at once, and then nothing
    /// is changed.
    fn set_state_dict(&self, state: &BTreeMap<String, Tensor>) -> Result<()> {
        walk::set_state_dict(&over(self), state)
    }

    /// Takes over the values whose names and shapes fit and leaves the rest, as Paddle does; says what did not fit.
    fn load_matching(&self, state: &BTreeMap<String, Tensor>) -> Result<StateReport> {
        walk::load_matching(&over(self), state)
    }

    /// What of a state does not fit this layer.
    fn state_report(&self, state: &BTreeMap<String, Tensor>) -> StateReport {
        walk::state_report(&over(self), state)
    }

    /// Switches to training: dropout drops, batch norm counts.
    fn train(&self) {
        walk::set_training(&over(self), true);
    }

    /// Switches to evaluation.
    fn eval(&self) {
        walk::set_training(&over(self), false);
    }

    /// Freezes every parameter: it keeps its values. [`unfreeze`](Members::unfreeze) undoes it.
    fn freeze(&self) {
        walk::set_trainable(&over(self), false);
    }

    /// Trains every parameter again.
    fn unfreeze(&self) {
        walk::set_trainable(&over(self), true);
    }

    /// Forgets the gradients of all parameters.
    fn clear_gradients(&self) {
        walk::clear_gradients(&over(self));
    }

    /// Calls `f` with every layer inside, this one first, to be downcast and changed.
    ///
    /// ```
    /// use sampan_nn::{Linear, Members, ReLU, Sequential};
    /// let net = Sequential::new().push(Linear::new(2, 3)).push(ReLU::new());
    /// net.apply(&mut |_, layer| {
    ///     if let Some(fc) = layer.downcast_ref::<Linear>() {
    ///         fc.weight.tensor().set_value(&sampan_core::Tensor::zeros([2, 3], sampan_core::DType::Float32));
    ///     }
    /// });
    /// ```
    fn apply(&self, f: &mut dyn FnMut(&Path, &dyn Any)) {
        walk::apply(&over(self), f);
    }

    /// Casts every float parameter and buffer, as Paddle's `to(dtype=…)` does.
    fn to_dtype(&self, dtype: DType) -> Result<()> {
        walk::to_dtype(&over(self), dtype)
    }
}

/// The walk over the members of something, from its root.
fn over<M: Members + ?Sized>(members: &M) -> impl Fn(&mut dyn Visitor) {
    |visitor| members.visit(&Path::default(), visitor)
}

/// What of a state does not fit a layer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StateReport {
    /// Names the layer has and the state lacks.
    pub missing: Vec<String>,
    /// Names the state has and the layer lacks.
    pub unexpected: Vec<String>,
    /// Names whose shape differs: received, expected.
    pub misshapen: Vec<(String, Vec<usize>, Vec<usize>)>,
}

impl StateReport {
    /// Does everything fit?
    pub fn is_clean(&self) -> bool {
        self.missing.is_empty() && self.unexpected.is_empty() && self.misshapen.is_empty()
    }
}

impl std::fmt::Display for StateReport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut parts: Vec<String> = Vec::new();
        parts.extend(self.missing.iter().map(|k| format!("{k} is missing")));
        parts.extend(self.misshapen.iter().map(|(k, got, want)| format!("{k} has shape {got:?}, expected {want:?}")));
        parts.extend(self.unexpected.iter().map(|k| format!("{k} is unexpected")));
        f.write_str(&parts.join("; "))
    }
}

impl Members for Base {
    fn visit(&self, path: &Path, visitor: &mut dyn Visitor) {
        visitor.base(path, self);
    }
}
impl Members for Parameter {
    fn visit(&self, path: &Path, visitor: &mut dyn Visitor) {
        match self.form() {
            None => visitor.parameter(path, self),
            Some(form) => {
                visitor.computed(path, self);
                form.visit(path, visitor);
            }
        }
    }
}
impl Members for Buffer {
    fn visit(&self, path: &Path, visitor: &mut dyn Visitor) {
        visitor.buffer(path, self);
    }
}
impl<M: Members> Members for Option<M> {
    fn visit(&self, path: &Path, visitor: &mut dyn Visitor) {
        if let Some(m) = self {
            m.visit(path, visitor);
        }
    }
}
impl<M: Members> Members for Vec<M> {
    fn visit(&self, path: &Path, visitor: &mut dyn Visitor) {
        self.iter().enumerate().for_each(|(i, m)| m.visit(&path.join(&i.to_string()), visitor));
    }
}
impl<M: Members, const N: usize> Members for [M; N] {
    fn visit(&self, path: &Path, visitor: &mut dyn Visitor) {
        self.iter().enumerate().for_each(|(i, m)| m.visit(&path.join(&i.to_string()), visitor));
    }
}
impl<M: Members> Members for BTreeMap<String, M> {
    fn visit(&self, path: &Path, visitor: &mut dyn Visitor) {
        self.iter().for_each(|(name, m)| m.visit(&path.join(name), visitor));
    }
}
macro_rules! held {
    ($($holder:ident),*) => {$(
        impl<M: Members + ?Sized> Members for $holder<M> {
            fn visit(&self, path: &Path, visitor: &mut dyn Visitor) {
                (**self).visit(path, visitor);
            }
            fn base(&self) -> Option<&Base> {
                (**self).base()
            }
        }
    )*};
}
held!(Box, Arc);

macro_rules! no_members {
    ($($t:ty),*) => {$( impl Members for $t { fn visit(&self, _: &Path, _: &mut dyn Visitor) {} } )*};
}
no_members!(bool, i32, i64, u32, u64, usize, f32, f64, String, &'static str, Value, DType, AtomicBool);
