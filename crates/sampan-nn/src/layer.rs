//! What a layer is, and how its members are found.

use crate::Parameter;
use sampan_core::{Error, Result, Tensor};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

/// A part of a network: maps a tensor to a tensor and owns parameters, buffers and other layers.
pub trait Layer: Members + Send + Sync {
    /// Computes the output.
    fn forward(&self, x: &Tensor) -> Result<Tensor>;
}

/// The way from the outermost layer to a member: `encoder.0.weight`.
#[derive(Clone, Default, Debug)]
pub struct Path(String);

impl Path {
    /// One step further in.
    pub fn join(&self, name: &str) -> Path {
        Path(if self.0.is_empty() { name.into() } else { format!("{}.{name}", self.0) })
    }

    /// As text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Sees the members of a layer, outermost first, in the order of its fields.
pub trait Visitor {
    /// A layer begins.
    fn layer(&mut self, _path: &Path, _type_name: &'static str) {}
    /// A parameter.
    fn parameter(&mut self, _path: &Path, _p: &Parameter) {}
    /// A tensor that is kept but not trained.
    fn buffer(&mut self, _path: &Path, _b: &Tensor) {}
    /// The switch between training and evaluation.
    fn mode(&mut self, _mode: &Mode) {}
}

/// Something with members: `#[derive(Layer)]` implements it, and so do parameters, containers and plain settings.
pub trait Members {
    /// Shows the members to a visitor.
    fn visit(&self, path: &Path, visitor: &mut dyn Visitor);

    /// Every parameter with its name.
    fn named_parameters(&self) -> Vec<(String, Parameter)> {
        struct Collect(Vec<(String, Parameter)>);
        impl Visitor for Collect {
            fn parameter(&mut self, path: &Path, p: &Parameter) {
                // A shared parameter is listed once, under its first name.
                if !self.0.iter().any(|(_, q)| q.shares_memory(p)) {
                    self.0.push((path.as_str().into(), p.clone()));
                }
            }
        }
        let mut found = Collect(Vec::new());
        self.visit(&Path::default(), &mut found);
        found.0
    }

    /// Every parameter.
    fn parameters(&self) -> Vec<Parameter> {
        self.named_parameters().into_iter().map(|(_, p)| p).collect()
    }

    /// Everything a checkpoint keeps, by name; the tensors are the layer's own, not copies.
    fn state_dict(&self) -> BTreeMap<String, Tensor> {
        struct Collect(BTreeMap<String, Tensor>);
        impl Visitor for Collect {
            fn parameter(&mut self, path: &Path, p: &Parameter) {
                self.0.insert(path.as_str().into(), p.tensor().clone());
            }
            fn buffer(&mut self, path: &Path, b: &Tensor) {
                self.0.insert(path.as_str().into(), b.clone());
            }
        }
        let mut found = Collect(BTreeMap::new());
        self.visit(&Path::default(), &mut found);
        found.0
    }

    /// Takes over values by name. Missing, unexpected and wrong-shaped keys are all reported at once, and then nothing
    /// is changed.
    fn set_state_dict(&self, state: &BTreeMap<String, Tensor>) -> Result<()> {
        let own = self.state_dict();
        let mut wrong = Vec::new();
        for (name, t) in &own {
            match state.get(name) {
                None => wrong.push(format!("{name} is missing")),
                Some(s) if s.shape() != t.shape() => {
                    wrong.push(format!("{name} has shape {:?}, expected {:?}", s.shape(), t.shape()))
                }
                Some(_) => {}
            }
        }
        wrong.extend(state.keys().filter(|k| !own.contains_key(*k)).map(|k| format!("{k} is unexpected")));
        if !wrong.is_empty() {
            return Err(Error::invalid(format!("the state does not fit the layer: {}", wrong.join("; ")))
                .in_op("set_state_dict"));
        }
        own.iter().try_for_each(|(name, t)| t.try_set_value(&state[name].cast(t.dtype())))
    }

    /// Switches to training: dropout drops, batch norm counts.
    fn train(&self) {
        self.visit(&Path::default(), &mut SetMode(true));
    }

    /// Switches to evaluation.
    fn eval(&self) {
        self.visit(&Path::default(), &mut SetMode(false));
    }
}

struct SetMode(bool);
impl Visitor for SetMode {
    fn mode(&mut self, mode: &Mode) {
        mode.0.store(self.0, Ordering::Relaxed);
    }
}

/// Whether a layer trains or evaluates; a field of layers that behave differently.
#[derive(Debug)]
pub struct Mode(AtomicBool);

impl Default for Mode {
    fn default() -> Mode {
        Mode(AtomicBool::new(true))
    }
}

impl Mode {
    /// Is it training?
    pub fn training(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Members for Mode {
    fn visit(&self, _: &Path, visitor: &mut dyn Visitor) {
        visitor.mode(self);
    }
}
impl Members for Parameter {
    fn visit(&self, path: &Path, visitor: &mut dyn Visitor) {
        visitor.parameter(path, self);
    }
}
impl Members for Tensor {
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
impl<M: Members + ?Sized> Members for Box<M> {
    fn visit(&self, path: &Path, visitor: &mut dyn Visitor) {
        (**self).visit(path, visitor);
    }
}

macro_rules! no_members {
    ($($t:ty),*) => {$( impl Members for $t { fn visit(&self, _: &Path, _: &mut dyn Visitor) {} } )*};
}
no_members!(bool, i32, i64, u32, u64, usize, f32, f64, String, &'static str);
impl<T, const N: usize> Members for [T; N] {
    fn visit(&self, _: &Path, _: &mut dyn Visitor) {}
}
