//! Penalties on the size of parameters, added to their gradients.

use sampan_core::value::Arg;
use sampan_core::{Object, Result, Value};
use sampan_macros::class;

/// A penalty: its gradient is added to a parameter's before each step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Regularizer {
    /// `coeff * |p|`: adds `coeff * sign(p)`.
    L1(f64),
    /// `coeff / 2 * p²`: adds `coeff * p`.
    L2(f64),
}

/// A penalty for those who build by name.
fn object(regularizer: Regularizer) -> Object {
    Object::new(regularizer)
}

/// Paddle's `regularizer.L1Decay`.
#[allow(non_snake_case)]
pub fn L1Decay(coeff: f64) -> Regularizer {
    Regularizer::L1(coeff)
}

/// Paddle's `regularizer.L2Decay`.
#[allow(non_snake_case)]
pub fn L2Decay(coeff: f64) -> Regularizer {
    Regularizer::L2(coeff)
}

/// [`L1Decay`] by name.
enum Absolute {}

#[class(module = "regularizer", name = "L1Decay", object = object)]
impl Absolute {
    /// A penalty on the absolute values of a parameter: `coeff * sign(p)` is added to its gradient.
    fn build(#[default(0.0)] coeff: f64) -> Result<Regularizer> {
        Ok(L1Decay(coeff))
    }
}

/// [`L2Decay`] by name.
enum Square {}

#[class(module = "regularizer", name = "L2Decay", object = object)]
impl Square {
    /// A penalty on the squares of a parameter: `coeff * p` is added to its gradient.
    fn build(#[default(0.0)] coeff: f64) -> Result<Regularizer> {
        Ok(L2Decay(coeff))
    }
}

/// A plain number is L2 decay, as in an optimizer's `weight_decay`.
impl From<f64> for Regularizer {
    fn from(coeff: f64) -> Regularizer {
        Regularizer::L2(coeff)
    }
}

impl From<Regularizer> for Value {
    fn from(r: Regularizer) -> Value {
        Value::Object(object(r))
    }
}

impl<'a> Arg<'a> for Regularizer {
    const EXPECTED: &'static str = "a float or a regularizer";
    fn read(v: &'a Value) -> Option<Self> {
        match v {
            Value::Float(f) => Some(Regularizer::L2(*f)),
            Value::Int(i) => Some(Regularizer::L2(*i as f64)),
            Value::Object(o) => o.downcast::<Regularizer>().copied(),
            _ => None,
        }
    }
}
