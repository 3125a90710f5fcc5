//! What every built-in layer has: a name, a mode and hooks. A layer of your own has them if it has a field of this type.

use crate::init::{self, Initializer};
use crate::invoke::all_tensors;
use crate::{Buffer, ParamAttr, Parameter, unique_name};
use sampan_core::promote::default_dtype;
use sampan_core::recording;
use sampan_core::{DType, Device, Error, Result, Tensor, Value, bail};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// Sees the inputs before `forward`, and may replace them.
pub type PreHook = dyn Fn(&[Tensor]) -> Result<Option<Vec<Tensor>>> + Send + Sync;
/// Computes the result in the layer's place from the arguments of a call; None leaves it to the layer.
pub type StandIn = dyn Fn(Vec<Value>) -> Result<Option<Value>> + Send + Sync;
/// Sees inputs and outputs after `forward`, and may replace the outputs.
pub type PostHook = dyn Fn(&[Tensor], &[Tensor]) -> Result<Option<Vec<Tensor>>> + Send + Sync;

#[derive(Default)]
struct Hooks {
    /// How many there are, to pass by the lock where there are none.
    count: AtomicUsize,
    lists: RwLock<HookLists>,
}

#[derive(Default)]
struct HookLists {
    stand_in: Option<Arc<StandIn>>,
    pre: Vec<(u64, Arc<PreHook>)>,
    post: Vec<(u64, Arc<PostHook>)>,
}

impl Hooks {
    /// Changes the lists and counts again.
    fn change(&self, f: impl FnOnce(&mut HookLists)) {
        let mut lists = self.lists.write().unwrap_or_else(PoisonError::into_inner);
        f(&mut lists);
        self.count.store(lists.pre.len() + lists.post.len() + lists.stand_in.is_some() as usize, Ordering::Release);
    }
}

/// The name, mode and hooks of a layer.
pub struct Base {
    name: String,
    /// The type of the parameters, where it is not the default one.
    dtype: Option<DType>,
    /// Where the parameters are, if not where tensors are made by default.
    device: Option<Device>,
    training: Arc<AtomicBool>,
    hooks: Arc<Hooks>,
    weights: AtomicUsize,
    biases: AtomicUsize,
}

impl Base {
    /// A base whose name starts with `prefix`: `linear` gives `linear_0`, then `linear_1`.
    pub fn new(prefix: &str) -> Base {
        Base::named(unique_name::generate(prefix))
    }

    /// A base with this very name.
    pub fn named(name: String) -> Base {
        Base {
            name,
            dtype: None,
            device: None,
            training: Arc::new(AtomicBool::new(true)),
            hooks: Arc::default(),
            weights: AtomicUsize::new(0),
            biases: AtomicUsize::new(0),
        }
    }

    /// A base named after a class, as Paddle does it: `MaxPool2D` gives `max_pool2d_0`.
    pub fn of(class: &str) -> Base {
        let letters: Vec<char> = class.chars().collect();
        let mut prefix = String::new();
        for (i, c) in letters.iter().enumerate() {
            let starts_word = c.is_uppercase()
                && i > 0
                && (letters[i - 1].is_lowercase() || letters.get(i + 1).is_some_and(|n| n.is_lowercase()));
            if starts_word {
                prefix.push('_');
            }
            prefix.extend(c.to_lowercase());
        }
        Base::new(&prefix)
    }

    /// Makes parameters of this type instead of the default one, on a device (`"cpu"`, `"gpu"`, `"gpu:1"`) if one is named.
    pub fn placed(mut self, device: &Value, dtype: Option<DType>) -> Result<Base> {
        self.device = match device {
            Value::None => None,
            Value::Str(name) => Some(Device::named(name)?),
            other => bail!("device must be None or a name such as \"cpu\" or \"gpu:0\", got {other:?}"),
        };
        self.dtype = dtype;
        Ok(self)
    }

    /// The type of the parameters.
    pub fn dtype(&self) -> DType {
        self.dtype.unwrap_or_else(default_dtype)
    }

    /// The layer's name in the process, `linear_0`.
    pub fn full_name(&self) -> &str {
        &self.name
    }

    /// Is the layer training, or evaluating?
    pub fn training(&self) -> bool {
        let now = self.training.load(Ordering::Relaxed);
        if recording::on() {
            let mode = self.training.clone();
            recording::guard(move || mode.load(Ordering::Relaxed) == now);
        }
        now
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
        let made = self.parameter_as(shape, attr, is_bias, default, self.dtype())?;
        match &made {
            Some(p) if p.shape() != shape => {
                Err(Error::invalid(format!("the initializer gave shape {:?}, the parameter has {shape:?}", p.shape())))
            }
            _ => Ok(made),
        }
    }

    /// The same with a dtype of its own, and with the shape of what the initializer gives.
    pub fn parameter_as(
        &self,
        shape: &[usize],
        attr: &ParamAttr,
        is_bias: bool,
        default: &dyn Initializer,
        dtype: DType,
    ) -> Result<Option<Parameter>> {
        if !attr.is_wanted() {
            return Ok(None);
        }
        let attr = match &attr.name {
            Some(_) => attr.clone(),
            None => attr.clone().name(self.member_name(is_bias)),
        };
        // Before an initializer computes with the extents.
        sampan_core::shape::checked_numel(shape)?;
        let make = || match (&attr.initializer, init::global(is_bias)) {
            (Some(own), _) => own.init(shape, dtype),
            (None, Some(global)) => global.init(shape, dtype),
            (None, None) => default.init(shape, dtype),
        };
        let values = match self.device {
            Some(device) => sampan_core::device::with(device, make)?,
            None => make()?,
        };
        Ok(Some(Parameter::with_attr(values, &attr)))
    }

    /// The next name of a parameter: `linear_0.w_0`.
    pub(crate) fn member_name(&self, is_bias: bool) -> String {
        let (count, letter) = if is_bias { (&self.biases, 'b') } else { (&self.weights, 'w') };
        format!("{}.{letter}_{}", self.name, count.fetch_add(1, Ordering::Relaxed))
    }

    /// Makes a buffer of values that are kept but not trained.
    pub fn buffer(&self, values: Tensor, name: Option<&str>) -> Result<Buffer> {
        let mut values = values.try_cast(self.dtype())?;
        if let Some(device) = self.device {
            values = values.try_to_device(&device.to_string())?;
        }
        values.set_name(name.map_or_else(|| self.member_name(false), str::to_string));
        Ok(Buffer::new(values))
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

    /// Lets `f` compute the outputs whenever another layer calls this one, or (`None`) the layer itself again. Hooks are
    /// then the business of whoever stands in.
    pub fn set_stand_in(&self, f: Option<Arc<StandIn>>) {
        self.hooks.change(|lists| lists.stand_in = f);
    }

    fn register(&self, add: impl FnOnce(&mut HookLists, u64)) -> LayerHook {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        self.hooks.change(|lists| add(lists, id));
        LayerHook { id, hooks: Arc::downgrade(&self.hooks) }
    }

    /// Runs `forward` between the hooks.
    pub(crate) fn around(
        &self,
        inputs: &[Tensor],
        forward: &mut dyn FnMut(&[Tensor]) -> Result<Vec<Tensor>>,
    ) -> Result<Vec<Tensor>> {
        if let Some(out) = self.stood_in(&|| inputs.iter().map(Value::from).collect())? {
            return Ok(all_tensors(&out));
        }
        let (pre, post) = {
            let hooks = self.hooks.lists.read().unwrap_or_else(PoisonError::into_inner);
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

    /// What the stand-in makes of these arguments, if there is one.
    pub(crate) fn stood_in(&self, args: &dyn Fn() -> Vec<Value>) -> Result<Option<Value>> {
        if !self.has_hooks() {
            return Ok(None);
        }
        let stand_in = self.hooks.lists.read().unwrap_or_else(PoisonError::into_inner).stand_in.clone();
        stand_in.map_or(Ok(None), |stand_in| stand_in(args()))
    }

    pub(crate) fn has_hooks(&self) -> bool {
        self.hooks.count.load(Ordering::Acquire) > 0
    }
}

/// Removes a layer's hook when asked to.
pub struct LayerHook {
    id: u64,
    hooks: std::sync::Weak<Hooks>,
}

impl LayerHook {
    /// Takes the hook away; false if it was gone already.
    pub fn remove(&self) -> bool {
        let Some(hooks) = self.hooks.upgrade() else { return false };
        let mut found = false;
        hooks.change(|lists| {
            let (pre, post) = (lists.pre.len(), lists.post.len());
            lists.pre.retain(|(id, _)| *id != self.id);
            lists.post.retain(|(id, _)| *id != self.id);
            found = (lists.pre.len(), lists.post.len()) != (pre, post);
        });
        found
    }
}
