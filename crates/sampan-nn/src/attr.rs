//! What can be said about one parameter when a layer is made.

use crate::init::Initializer;
use crate::regularizer::Regularizer;
use sampan_core::value::Arg;
use sampan_core::{Object, Result, Value, ensure};
use std::sync::Arc;

/// Name, initial values and training settings of a parameter. `ParamAttr::from(false)` means: no such parameter.
///
/// ```
/// use sampan_nn::{Linear, ParamAttr, init};
/// let attr = ParamAttr::new().initializer(init::Constant::new(0.5)).learning_rate(0.1);
/// let fc = Linear::with(3, 4, |o| o.weight_attr(attr).bias_attr(false));
/// assert_eq!(fc.weight.tensor().to_vec::<f32>(), [0.5; 12]);
/// assert!(fc.bias.is_none());
/// ```
#[derive(Clone)]
pub struct ParamAttr {
    pub(crate) name: Option<String>,
    pub(crate) initializer: Option<Arc<dyn Initializer>>,
    pub(crate) learning_rate: f64,
    pub(crate) regularizer: Option<Regularizer>,
    pub(crate) trainable: bool,
    pub(crate) need_clip: bool,
    pub(crate) wanted: bool,
}

impl Default for ParamAttr {
    fn default() -> ParamAttr {
        ParamAttr {
            name: None,
            initializer: None,
            learning_rate: 1.0,
            regularizer: None,
            trainable: true,
            need_clip: true,
            wanted: true,
        }
    }
}

impl ParamAttr {
    /// Everything at its default.
    pub fn new() -> ParamAttr {
        ParamAttr::default()
    }
    /// A name instead of a generated one.
    pub fn name(mut self, name: impl Into<String>) -> ParamAttr {
        self.name = Some(name.into());
        self
    }
    /// How the first values are made.
    pub fn initializer(mut self, initializer: impl Initializer + 'static) -> ParamAttr {
        self.initializer = Some(Arc::new(initializer));
        self
    }
    /// Multiplies the optimizer's learning rate.
    pub fn learning_rate(mut self, factor: f64) -> ParamAttr {
        self.learning_rate = factor;
        self
    }
    /// A penalty of its own, which goes before the optimizer's.
    pub fn regularizer(mut self, regularizer: impl Into<Regularizer>) -> ParamAttr {
        self.regularizer = Some(regularizer.into());
        self
    }
    /// Is it trained? A frozen parameter keeps its values.
    pub fn trainable(mut self, on: bool) -> ParamAttr {
        self.trainable = on;
        self
    }
    /// Does gradient clipping include it?
    pub fn need_clip(mut self, on: bool) -> ParamAttr {
        self.need_clip = on;
        self
    }
    /// The initializer that was named, if one was.
    pub fn own_initializer(&self) -> Option<Arc<dyn Initializer>> {
        self.initializer.clone()
    }
    /// Is there to be a parameter at all?
    pub fn is_wanted(&self) -> bool {
        self.wanted
    }
}

impl From<bool> for ParamAttr {
    fn from(wanted: bool) -> ParamAttr {
        ParamAttr { wanted, ..ParamAttr::default() }
    }
}
impl From<&str> for ParamAttr {
    fn from(name: &str) -> ParamAttr {
        ParamAttr::new().name(name)
    }
}
impl<I: Initializer + 'static> From<I> for ParamAttr {
    fn from(initializer: I) -> ParamAttr {
        ParamAttr::new().initializer(initializer)
    }
}
impl From<ParamAttr> for Value {
    fn from(attr: ParamAttr) -> Value {
        Value::Object(Object::new(attr))
    }
}

impl<'a> Arg<'a> for ParamAttr {
    const EXPECTED: &'static str = "a ParamAttr, an initializer, a name, or False for no parameter";
    fn read(v: &'a Value) -> Option<Self> {
        match v {
            Value::None => Some(ParamAttr::default()),
            Value::Bool(wanted) => Some(ParamAttr::from(*wanted)),
            Value::Str(name) => Some(ParamAttr::from(&**name)),
            Value::Object(o) => {
                let from_initializer =
                    |i: &Arc<dyn Initializer>| ParamAttr { initializer: Some(i.clone()), ..ParamAttr::default() };
                o.downcast::<ParamAttr>().cloned().or_else(|| o.downcast().map(from_initializer))
            }
            _ => None,
        }
    }
}

/// What is said about the parameters of several parts of a layer: one thing for all, or one for each.
#[derive(Clone)]
pub enum ParamAttrs {
    /// For all parts; a name gets the number of the part.
    One(ParamAttr),
    /// For each part.
    Each(Vec<ParamAttr>),
}

impl ParamAttrs {
    /// One for each of `n` parts.
    pub(crate) fn split(&self, n: usize) -> Result<Vec<ParamAttr>> {
        match self {
            ParamAttrs::One(attr) => Ok((0..n)
                .map(|i| match &attr.name {
                    Some(name) => attr.clone().name(format!("{name}_{i}")),
                    None => attr.clone(),
                })
                .collect()),
            ParamAttrs::Each(attrs) => {
                ensure!(attrs.len() == n, "a list of attributes must have {n} entries, got {}", attrs.len());
                Ok(attrs.clone())
            }
        }
    }
}

impl<A: Into<ParamAttr>> From<A> for ParamAttrs {
    fn from(attr: A) -> ParamAttrs {
        ParamAttrs::One(attr.into())
    }
}
impl From<Vec<ParamAttr>> for ParamAttrs {
    fn from(attrs: Vec<ParamAttr>) -> ParamAttrs {
        ParamAttrs::Each(attrs)
    }
}
impl From<ParamAttrs> for Value {
    fn from(attrs: ParamAttrs) -> Value {
        match attrs {
            ParamAttrs::One(attr) => attr.into(),
            ParamAttrs::Each(attrs) => Value::List(attrs.into_iter().map(Value::from).collect()),
        }
    }
}

impl<'a> Arg<'a> for ParamAttrs {
    const EXPECTED: &'static str = "a ParamAttr, an initializer, a name, False for no parameter, or a list of these";
    fn read(v: &'a Value) -> Option<Self> {
        match v {
            Value::List(list) => list.iter().map(ParamAttr::read).collect::<Option<_>>().map(ParamAttrs::Each),
            one => ParamAttr::read(one).map(ParamAttrs::One),
        }
    }
}
