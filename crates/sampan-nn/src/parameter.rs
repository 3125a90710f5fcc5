//! A tensor that is trained.

use crate::regularizer::Regularizer;
use crate::{ParamAttr, Path, Visitor};
use sampan_core::{DType, Object, Result, Tensor, Value, recording};
use std::any::Any;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// A tensor that is trained: `stop_gradient` is false and a checkpoint keeps it. A clone is the same parameter, which is
/// how weights are shared.
#[derive(Clone)]
pub struct Parameter(Arc<Inner>);

struct Inner {
    tensor: RwLock<Tensor>,
    /// How the value is computed from other parameters, for weight norm and the like.
    form: RwLock<Option<Arc<dyn Form>>>,
    settings: RwLock<Settings>,
    /// How often another tensor or form was put in its place, counted when it is there.
    changes: AtomicU64,
}

/// What an optimizer asks of a parameter.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Multiplies the optimizer's learning rate.
    pub learning_rate: f64,
    /// A penalty of its own.
    pub regularizer: Option<Regularizer>,
    /// Does gradient clipping include it?
    pub need_clip: bool,
    /// Is it a table of which a step uses few rows (`Embedding` with `sparse`)?
    pub sparse: bool,
}

/// A value that is computed from other members before each use: `weight = g * v / |v|`.
pub trait Form: Any + Send + Sync {
    /// The value now.
    fn value(&self) -> Result<Tensor>;
    /// Shows the members the value is made of; `path` is the parameter's own.
    fn visit(&self, path: &Path, visitor: &mut dyn Visitor);
    /// The value, where it need not be computed.
    fn known(&self) -> Option<Tensor> {
        None
    }
}

/// The value of another parameter.
struct Shared(Parameter);
impl Form for Shared {
    fn value(&self) -> Result<Tensor> {
        Ok(self.0.tensor())
    }
    fn visit(&self, path: &Path, visitor: &mut dyn Visitor) {
        visitor.parameter(path, &self.0);
    }
    fn known(&self) -> Option<Tensor> {
        Some(self.0.tensor())
    }
}

/// A tensor that somebody else computes.
struct Given(Tensor);
impl Form for Given {
    fn value(&self) -> Result<Tensor> {
        Ok(self.0.clone())
    }
    fn visit(&self, _: &Path, _: &mut dyn Visitor) {}
    fn known(&self) -> Option<Tensor> {
        Some(self.0.clone())
    }
}

impl Inner {
    fn new(tensor: Tensor, settings: Settings) -> Inner {
        let (tensor, settings) = (RwLock::new(tensor), RwLock::new(settings));
        Inner { tensor, form: RwLock::default(), settings, changes: AtomicU64::new(0) }
    }
}

fn read<T: Clone>(lock: &RwLock<T>) -> T {
    lock.read().unwrap_or_else(PoisonError::into_inner).clone()
}

/// What stood there is given back, to be dropped when the lock is free again.
fn write<T>(lock: &RwLock<T>, value: T) -> T {
    std::mem::replace(&mut *lock.write().unwrap_or_else(PoisonError::into_inner), value)
}

impl Parameter {
    /// Makes a tensor a parameter.
    pub fn new(values: Tensor) -> Parameter {
        Parameter::with_attr(values, &ParamAttr::default())
    }

    /// Makes a tensor a parameter with these settings.
    pub fn with_attr(values: Tensor, attr: &ParamAttr) -> Parameter {
        let t = values.detach();
        t.set_stop_gradient(!attr.trainable);
        t.set_persistable(true);
        if let Some(name) = &attr.name {
            t.set_name(name.clone());
        }
        let ParamAttr { learning_rate, regularizer, need_clip, .. } = *attr;
        let settings = Settings { learning_rate, regularizer, need_clip, sparse: false };
        Parameter(Arc::new(Inner::new(t, settings)))
    }

    /// A parameter that is this very tensor, with its gradient: what an optimizer makes of a plain tensor.
    pub fn of(tensor: Tensor) -> Parameter {
        let settings = Settings { learning_rate: 1.0, regularizer: None, need_clip: true, sparse: false };
        Parameter(Arc::new(Inner::new(tensor, settings)))
    }

    /// The tensor that is trained and saved.
    pub fn tensor(&self) -> Tensor {
        let tensor = read(&self.0.tensor);
        if recording::on() {
            self.note(&tensor);
        }
        tensor
    }

    /// Recorded work stands for others as long as the parameter is the same tensor and is computed in the same way.
    #[cold]
    fn note(&self, tensor: &Tensor) {
        // Most of the time nothing was put here since it was looked at closely, which it is the first time.
        let seen = AtomicU64::new(u64::MAX);
        let (place, id, form) = (self.clone(), tensor.id(), self.form());
        recording::guard_once(self.id(), || {
            move || {
                let changes = place.0.changes.load(Ordering::Acquire);
                if changes == seen.load(Ordering::Relaxed) {
                    return true;
                }
                let now = place.0.form.read().unwrap_or_else(PoisonError::into_inner);
                let same = match (&*now, &form) {
                    (None, None) => true,
                    (Some(a), Some(b)) => Arc::ptr_eq(a, b),
                    _ => false,
                };
                let same = same && place.0.tensor.read().unwrap_or_else(PoisonError::into_inner).id() == id;
                if same {
                    seen.store(changes, Ordering::Relaxed);
                }
                same
            }
        });
    }

    /// What a layer computes with: the tensor, or what its form makes of other parameters.
    pub fn value(&self) -> Result<Tensor> {
        match read(&self.0.form) {
            None => Ok(self.tensor()),
            Some(form) => form.value(),
        }
    }

    /// Uses another parameter in its place from now on: how layers that exist already come to share one.
    pub fn share(&self, other: &Parameter) {
        self.set_form(if self.is_same(other) { None } else { Some(Arc::new(Shared(other.clone()))) });
    }

    /// Uses a tensor in its place that somebody else computes.
    pub fn set_given(&self, value: Tensor) {
        self.set_form(Some(Arc::new(Given(value))));
    }

    /// Computes the value in another way from now on, or (`None`) from the tensor again.
    pub fn set_form(&self, form: Option<Arc<dyn Form>>) {
        let before = write(&self.0.form, form);
        self.0.changes.fetch_add(1, Ordering::Release);
        drop(before);
    }

    /// The form that computes its value, if it has one.
    pub fn form(&self) -> Option<Arc<dyn Form>> {
        read(&self.0.form)
    }

    /// Puts another tensor in its place, in every layer that shares it, and gives the old one.
    pub fn replace(&self, tensor: Tensor) -> Tensor {
        let before = write(&self.0.tensor, tensor);
        self.0.changes.fetch_add(1, Ordering::Release);
        before
    }

    /// The settings an optimizer asks for.
    pub fn settings(&self) -> Settings {
        read(&self.0.settings)
    }

    /// Changes the settings.
    pub fn set_settings(&self, settings: Settings) {
        write(&self.0.settings, settings);
    }

    /// Says that this, or what is used in its place, is a table of which a step uses few rows.
    pub(crate) fn set_sparse(&self) {
        let form = self.form();
        let form = form.as_deref().map(|f| -> &dyn Any { f });
        let used = form.and_then(|f| f.downcast_ref()).map_or(self, |Shared(other)| other);
        if !used.settings().sparse {
            used.set_settings(Settings { sparse: true, ..used.settings() });
        }
    }

    /// Is this the same parameter?
    pub fn is_same(&self, other: &Parameter) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Tells it from every other parameter alive.
    pub fn id(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }

    /// The value as far as it need not be computed.
    pub(crate) fn known(&self) -> Tensor {
        self.form().and_then(|form| form.known()).unwrap_or_else(|| self.tensor())
    }

    /// Its name.
    pub fn name(&self) -> String {
        self.tensor().name()
    }

    /// Extents of each axis.
    pub fn shape(&self) -> Vec<usize> {
        self.known().shape().to_vec()
    }

    /// Element type.
    pub fn dtype(&self) -> DType {
        self.known().dtype()
    }

    /// Number of elements.
    pub fn numel(&self) -> usize {
        self.known().numel()
    }

    /// Is it trained?
    pub fn trainable(&self) -> bool {
        !self.tensor().stop_gradient()
    }

    /// Freezes (`false`) or thaws it.
    pub fn set_trainable(&self, on: bool) {
        self.tensor().set_stop_gradient(!on);
    }

    /// The gradient, if there is one.
    pub fn grad(&self) -> Option<Tensor> {
        self.tensor().grad()
    }

    /// Forgets the gradient.
    pub fn clear_grad(&self) {
        self.tensor().clear_grad();
    }

    /// Takes over values of the same shape; they are cast.
    pub fn set_value(&self, values: &Tensor) -> Result<()> {
        let t = self.tensor();
        t.try_set_value(&values.try_cast(t.dtype())?)
    }
}

impl From<&Parameter> for Value {
    fn from(p: &Parameter) -> Value {
        Value::Object(Object::new(p.clone()))
    }
}

impl std::fmt::Debug for Parameter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Parameter {} containing:\n{:?}", self.name(), self.tensor())
    }
}
