//! Values known beforehand.

use super::{Initializer, object};
use sampan_core::ops::creation::{self, FullOpts};
use sampan_core::ops::joining::try_stack;
use sampan_core::{DType, Error, Result, Tensor, Value};
use sampan_macros::class;

/// One value everywhere.
#[derive(Clone, Copy, Debug)]
pub struct Constant {
    value: f64,
}

#[class(module = "nn.initializer", object = object)]
impl Constant {
    /// One value everywhere.
    ///
    /// ```
    /// use sampan_core::DType;
    /// use sampan_nn::init::{Constant, Initializer};
    /// let w = Constant::new(2.0).init(&[2, 2], DType::Float32).unwrap();
    /// assert_eq!(w.to_vec::<f32>(), [2.0; 4]);
    /// ```
    fn build(#[default(0.0)] value: f64) -> Result<Constant> {
        Ok(Constant { value })
    }
}

impl Initializer for Constant {
    fn init(&self, shape: &[usize], dtype: DType) -> Result<Tensor> {
        creation::try_full_with(shape, self.value, FullOpts::new().dtype(dtype))
    }
}

/// Values given one by one.
#[derive(Clone, Debug)]
pub struct Assign {
    values: Tensor,
}

#[class(module = "nn.initializer", object = object)]
impl Assign {
    /// The given values: a tensor, or a list of numbers. The parameter gets their shape, whatever was asked for, as in
    /// Paddle.
    ///
    /// ```
    /// use sampan_core::{DType, Tensor};
    /// use sampan_nn::init::{Assign, Initializer};
    /// let w = Assign::new(Tensor::new([[1.0f32, 2.0]])).init(&[1, 2], DType::Float64)?;
    /// assert_eq!(w.to_vec::<f64>(), [1.0, 2.0]);
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    fn build(value: &Value) -> Result<Assign> {
        Ok(Assign { values: tensor_of(value)? })
    }
}

impl Initializer for Assign {
    fn init(&self, _: &[usize], dtype: DType) -> Result<Tensor> {
        // A parameter has a storage of its own, or training would change the values given here.
        self.values.try_cast(dtype)?.try_assign()
    }
}

/// Numbers, alone or in lists of lists.
fn tensor_of(value: &Value) -> Result<Tensor> {
    match value {
        Value::Tensor(t) => Ok(t.detach()),
        Value::Int(i) => Ok(Tensor::new(*i)),
        Value::Float(f) => Ok(Tensor::new(*f)),
        Value::Ints(v) => Tensor::try_from_slice(v, [v.len()]),
        Value::Floats(v) => Tensor::try_from_slice(v, [v.len()]),
        Value::List(rows) => try_stack(&rows.iter().map(tensor_of).collect::<Result<Vec<_>>>()?, 0),
        other => Err(Error::dtype(format!("value must be a Tensor or numbers, got {}", other.type_name()))),
    }
}
