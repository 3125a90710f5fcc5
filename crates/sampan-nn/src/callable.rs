//! Functions as arguments: which parameters decay, how a learning rate follows the epoch.

use crate::{Layer, SharedLayer};
use sampan_core::value::Arg;
use sampan_core::{Object, Result, Tensor, Value};
use std::sync::Arc;

/// A function of another language: it takes one value and gives one.
#[derive(Clone)]
pub struct Callable(pub Arc<dyn Fn(Value) -> Result<Value> + Send + Sync>);

macro_rules! callable {
    ($($(#[$doc:meta])* $name:ident($arg:ident: $t:ty) -> $r:ty;)*) => {$(
        $(#[$doc])*
        #[derive(Clone)]
        pub struct $name(Arc<dyn Fn($t) -> Result<$r> + Send + Sync>);

        impl $name {
            /// A function that may fail, such as one that another language runs.
            pub fn fallible(f: impl Fn($t) -> Result<$r> + Send + Sync + 'static) -> $name {
                $name(Arc::new(f))
            }

            /// Calls it.
            pub fn call(&self, $arg: $t) -> Result<$r> {
                (self.0)($arg)
            }
        }

        impl<F: Fn($t) -> $r + Send + Sync + 'static> From<F> for $name {
            fn from(f: F) -> $name {
                $name(Arc::new(move |x: $t| Ok(f(x))))
            }
        }
        impl From<$name> for Value {
            fn from(f: $name) -> Value {
                Value::Object(Object::new(f))
            }
        }
        impl<'a> Arg<'a> for $name {
            const EXPECTED: &'static str = concat!("a function: ", stringify!(($t) -> $r));
            fn read(v: &'a Value) -> Option<Self> {
                let Value::Object(o) = v else { return None };
                let foreign = |f: &Callable| {
                    let f = f.0.clone();
                    $name::fallible(move |x: $t| <$r>::get(&f(Value::from(x))?, "the function's result"))
                };
                o.downcast::<$name>().cloned().or_else(|| o.downcast::<Callable>().map(foreign))
            }
        }
    )*};
}
callable! {
    /// Chooses parameters by their names.
    NameFilter(name: &str) -> bool;
    /// Chooses parameters.
    ParameterFilter(parameter: &crate::Parameter) -> bool;
    /// A factor for each parameter.
    ParameterFactor(parameter: &crate::Parameter) -> f64;
    /// A factor for each epoch.
    EpochFactor(epoch: i64) -> f64;
    /// A factor that follows a number.
    Scale(x: f64) -> f64;
}

/// A function from a tensor to a tensor, or a layer.
#[derive(Clone)]
pub struct TensorMap(Arc<dyn Fn(&Tensor) -> Result<Tensor> + Send + Sync>);

impl TensorMap {
    /// Calls it.
    pub fn call(&self, x: &Tensor) -> Result<Tensor> {
        (self.0)(x)
    }
}

impl<F: Fn(&Tensor) -> Result<Tensor> + Send + Sync + 'static> From<F> for TensorMap {
    fn from(f: F) -> TensorMap {
        TensorMap(Arc::new(f))
    }
}
impl From<SharedLayer> for TensorMap {
    fn from(layer: SharedLayer) -> TensorMap {
        TensorMap(Arc::new(move |x| layer.0.call(x)))
    }
}
impl From<TensorMap> for Value {
    fn from(f: TensorMap) -> Value {
        Value::Object(Object::new(f))
    }
}
impl<'a> Arg<'a> for TensorMap {
    const EXPECTED: &'static str = "a layer or a function: Tensor -> Tensor";
    fn read(v: &'a Value) -> Option<Self> {
        let Value::Object(o) = v else { return None };
        o.downcast::<TensorMap>().cloned().or_else(|| SharedLayer::read(v).map(Into::into))
    }
}
