//! Initial values of parameters: Paddle's `nn.initializer`.

mod constant;
mod gain;
mod random;
mod scaled;
mod structured;

pub use constant::*;
pub use gain::calculate_gain;
pub use random::*;
pub use scaled::*;
pub use structured::*;

use sampan_core::{DType, Error, Object, Result, Tensor, Value};
use sampan_macros::function;
use std::sync::{Arc, PoisonError, RwLock};

/// Makes the first values of a parameter.
pub trait Initializer: Send + Sync {
    /// Values of a shape and a float dtype.
    fn init(&self, shape: &[usize], dtype: DType) -> Result<Tensor>;
}

impl Initializer for Arc<dyn Initializer> {
    fn init(&self, shape: &[usize], dtype: DType) -> Result<Tensor> {
        (**self).init(shape, dtype)
    }
}

/// An initializer for those who build by name.
pub fn object<I: Initializer + 'static>(initializer: I) -> Object {
    Object::new(Arc::new(initializer) as Arc<dyn Initializer>)
}

type Global = Option<Arc<dyn Initializer>>;
static GLOBAL: RwLock<(Global, Global)> = RwLock::new((None, None));

/// From now on fills weights, and biases if a second one is given, wherever a layer's attributes name no initializer;
/// `set_global_initializer(None, None)` goes back to each layer's own default.
pub fn set_global_initializer(weight: Global, bias: Global) {
    *GLOBAL.write().unwrap_or_else(PoisonError::into_inner) = (weight, bias);
}

/// [`set_global_initializer`] for those who call by name.
///
/// ```
/// use sampan_core::{Value, class, function};
/// let one = class::find("nn.initializer", "Constant").expect("it is registered").make(vec![1.0.into()], vec![])?;
/// let set = function::find("nn.initializer", "set_global_initializer").expect("it is registered");
/// set.call(vec![one.into()], vec![])?;
/// assert_eq!(sampan_nn::Linear::new(1, 1).weight.value()?.to_f64(), 1.0);
/// set.call(vec![Value::None], vec![])?;
/// # Ok::<(), sampan_core::Error>(())
/// ```
#[function(module = "nn.initializer", name = "set_global_initializer")]
fn set_global_initializer_by_name(weight_init: &Value, #[default(None)] bias_init: &Value) -> Result<()> {
    let read = |v: &Value, name: &str| match v {
        Value::None => Ok(None),
        Value::Object(o) if o.downcast::<Arc<dyn Initializer>>().is_some() => Ok(o.downcast().cloned()),
        other => Err(Error::dtype(format!("{name} must be an initializer or None, got {}", other.type_name()))),
    };
    set_global_initializer(read(weight_init, "weight_init")?, read(bias_init, "bias_init")?);
    Ok(())
}

pub(crate) fn global(is_bias: bool) -> Global {
    let global = GLOBAL.read().unwrap_or_else(PoisonError::into_inner);
    if is_bias { global.1.clone() } else { global.0.clone() }
}

/// Inputs and outputs that one element of a weight connects: `[in, out]` for a matrix, `[out, in, …]` for a convolution.
pub(crate) fn fans(shape: &[usize]) -> (f64, f64) {
    match *shape {
        [] => (1.0, 1.0),
        [n] => (n as f64, n as f64),
        [a, b] => (a as f64, b as f64),
        [out, inp, ref kernel @ ..] => {
            let field = kernel.iter().product::<usize>() as f64;
            (inp as f64 * field, out as f64 * field)
        }
    }
}
