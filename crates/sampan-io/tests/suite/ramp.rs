//! The values of every tensor in the fixtures and samples.

use sampan_core::{DType, Tensor};

/// `(i - 2) / 2` for floats, `i - 2` for signed integers, `i` for unsigned ones, "i is odd" for truth values.
pub fn ramp(dtype: DType, shape: &[usize]) -> Tensor {
    let value = |i: usize| match dtype {
        DType::Bool => (i % 2) as f64,
        DType::UInt8 => i as f64,
        d if d.is_int() => i as f64 - 2.0,
        _ => (i as f64 - 2.0) / 2.0,
    };
    let values: Vec<f64> = (0..shape.iter().product()).map(value).collect();
    Tensor::from_vec(values, shape).cast(dtype)
}
