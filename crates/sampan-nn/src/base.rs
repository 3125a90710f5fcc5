//! What every built-in layer has: a name, a mode and hooks. A layer of your own has them if it has a field of this type.

use crate::init::{self, Initializer};
use crate::{ParamAttr, Parameter, unique_name};
use sampan_core::promote::default_dtype;
use sampan_core::{Error, Result, Tensor};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// Sees the inputs before `forward`, and may replace them.
pub type PreHook = dyn Fn(&[Tensor]) -> Result<Option<Vec<Tensor>>> + Send + Sync;
/// Sees inputs and outputs after `forward`, and may replace the outputs.
pub type PostHook = dyn Fn(&[Tensor], &[Tensor]) -> Result<Option<Vec<Tensor>>> + Send + Sync;

#[derive(Default)]
struct Hooks {
    pre: Vec<(u64, Arc<PreHook>)>,
    post: Vec<(u64, Arc<PostHook>)>,
}

/// The name, mode and hooks of a layer.
pub struct Base {
    name: String,
    training: AtomicBool,
    /// Number of hooks, to pass by the lock where there are none.
    count: AtomicUsize,
    hooks: Arc<RwLock<Hooks>>,
    weights: AtomicUsize,
    biases: AtomicUsize,
}

impl Base {
    /// A base whose name starts with `prefix`: `linear` gives `linear_0`, then `linear_1`.
    pub fn new(prefix: &str) -> Base {
        Base {
            name: unique_name::generate(prefix),
            training: AtomicBool::new(true),
            count: AtomicUsize::new(0),
            hooks: Arc::default(),
            weights: AtomicUsize::new(0),
            biases: AtomicUsize::new(0),
        }
    }

    /// The layer's name in the process, `linear_0`.
    pub fn full_name(&self) -> &str {
        &self.name
    }

    /// Is the layer training, or evaluating?
    pub fn training(&self) -> bool {
        self.training.load(Ordering::Relaxed)
    }

    /// Switches between training and evaluation.
    pub fn set_training(&self, on: bool) {
        self.training.store(on, Ordering::Relaxed);
    }

    /// Makes a parameter: `attr` says how, `default` fills it where `attr` and the global initializer do not. None if
    /// `attr` says that there is to be no such parameter.
    pub fn parameter(
        &self,
        shape: &[usize],
        attr: &ParamAttr,
        is_bias: bool,
        default: &dyn Initializer,
    ) -> Result<Option<Parameter>> {
        if !attr.is_wanted() {
            return Ok(None);
        }
        let (count, letter) = if is_bias { (&self.biases, 'b') } else { (&self.weights, 'w') };
        let number = count.fetch_add(1, Ordering::Relaxed);
        let attr = match &attr.name {
            Some(_) => attr.clone(),
            None => attr.clone().name(format!("{}.{letter}_{number}", self.name)),
        };
        let values = match (&attr.initializer, init::global(is_bias)) {
            (Some(own), _) => own.init(shape, default_dtype())?,
            (None, Some(global)) => global.init(shape, default_dtype())?,
            (None, None) => default.init(shape, default_dtype())?,
        };
        Ok(Some(Parameter::with_attr(values, &attr)))
    }

    /// Makes a weight, which there must be.
    pub fn weight(&self, shape: &[usize], attr: &ParamAttr, default: &dyn Initializer) -> Result<Parameter> {
        self.parameter(shape, attr, false, default)?
            .ok_or_else(|| Error::invalid("weight_attr cannot be False: the layer has no other weight"))
    }

    /// Makes a bias of zeros, unless `attr` says otherwise.
    pub fn bias(&self, shape: &[usize], attr: &ParamAttr) -> Result<Option<Parameter>> {
        self.parameter(shape, attr, true, &init::Constant::new(0.0))
    }

    /// Calls `hook` with the inputs before each `forward`; it may replace them.
    pub fn register_forward_pre_hook(
        &self,
        hook: impl Fn(&[Tensor]) -> Result<Option<Vec<Tensor>>> + Send + Sync + 'static,
    ) -> LayerHook {
        self.register(|hooks, id| hooks.pre.push((id, Arc::new(hook))))
    }

    /// Calls `hook` with inputs and outputs after each `forward`; it may replace the outputs.
    pub fn register_forward_post_hook(
        &self,
        hook: impl Fn(&[Tensor], &[Tensor]) -> Result<Option<Vec<Tensor>>> + Send + Sync + 'static,
    ) -> LayerHook {
        self.register(|hooks, id| hooks.post.push((id, Arc::new(hook))))
    }

    fn register(&self, add: impl FnOnce(&mut Hooks, u64)) -> LayerHook {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        add(&mut self.hooks.write().unwrap_or_else(PoisonError::into_inner), id);
        self.count.fetch_add(1, Ordering::Release);
        LayerHook { id, hooks: Arc::downgrade(&self.hooks) }
    }

    /// Runs `forward` between the hooks.
    pub(crate) fn around(
        &self,
        inputs: &[Tensor],
        forward: impl FnOnce(&[Tensor]) -> Result<Vec<Tensor>>,
    ) -> Result<Vec<Tensor>> {
        let (pre, post) = {
            let hooks = self.hooks.read().unwrap_or_else(PoisonError::into_inner);
            (hooks.pre.clone(), hooks.post.clone())
        };
        let mut inputs = inputs.to_vec();
        for (_, hook) in &pre {
            if let Some(changed) = hook(&inputs)? {
                inputs = changed;
            }
        }
        let mut outputs = forward(&inputs)?;
        for (_, hook) in &post {
            if let Some(changed) = hook(&inputs, &outputs)? {
                outputs = changed;
            }
        }
        Ok(outputs)
    }

    pub(crate) fn has_hooks(&self) -> bool {
        self.count.load(Ordering::Acquire) > 0
    }
}

/// Removes a layer's hook when asked to.
pub struct LayerHook {
    id: u64,
    hooks: std::sync::Weak<RwLock<Hooks>>,
}

impl LayerHook {
    /// Takes the hook away; false if it was gone already.
    pub fn remove(&self) -> bool {
        let Some(hooks) = self.hooks.upgrade() else { return false };
        let mut hooks = hooks.write().unwrap_or_else(PoisonError::into_inner);
        let before = hooks.pre.len() + hooks.post.len();
        hooks.pre.retain(|(id, _)| *id != self.id);
        hooks.post.retain(|(id, _)| *id != self.id);
        hooks.pre.len() + hooks.post.len() < before
    }
}
