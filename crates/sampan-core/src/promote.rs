//! Which dtype a result has.
//!
//! Paddle's rules where it has one: floats promote to the wider float (float16 with bfloat16 to float32), a 0-d tensor
//! or a number does not widen a tensor of its own category, a Python float with integers gives the default float. A real
//! type with a complex one gives a complex one that holds both.
//! Paddle refuses integers of different widths and integers with floats; here they promote as in NumPy and PyTorch.

use crate::{DType, Error, Operand, Result, Scalar, Tensor};
use std::sync::atomic::{AtomicU8, Ordering};

static DEFAULT: AtomicU8 = AtomicU8::new(2);
const FLOATS: [DType; 4] = [DType::Float16, DType::BFloat16, DType::Float32, DType::Float64];

/// The float that numbers without a dtype become.
pub fn default_dtype() -> DType {
    FLOATS[DEFAULT.load(Ordering::Relaxed) as usize]
}

/// Sets the float that numbers without a dtype become.
pub fn set_default_dtype(dtype: DType) -> Result<()> {
    let i = FLOATS.iter().position(|&d| d == dtype).ok_or_else(|| {
        Error::dtype(format!("the default dtype must be a float, got {dtype}")).in_op("set_default_dtype")
    })?;
    DEFAULT.store(i as u8, Ordering::Relaxed);
    Ok(())
}

/// 0 bool, 1 integer, 2 float, 3 complex.
fn category(d: DType) -> u8 {
    match d {
        DType::Bool => 0,
        d if d.is_int() => 1,
        d if d.is_float() => 2,
        _ => 3,
    }
}

/// The dtype that holds values of both.
pub fn promote(a: DType, b: DType) -> DType {
    use DType::*;
    if a == b {
        return a;
    }
    let (lo, hi) = if a < b { (a, b) } else { (b, a) };
    match (lo, hi) {
        (Float16, BFloat16) => Float32,
        (UInt8, Int8) => Int16,
        (Float64, Complex64) => Complex128,
        _ => hi,
    }
}

/// The dtype of arithmetic between two tensors. A 0-d tensor does not widen one with axes, unless its category is higher.
pub fn promote_tensors(a: &Tensor, b: &Tensor) -> DType {
    let (da, db) = (a.dtype(), b.dtype());
    if da == db {
        return da;
    }
    let (ca, cb) = (category(da), category(db));
    match (a.ndim() == 0, b.ndim() == 0) {
        // A float64 of no axes widens complex64 no more than it widens float32.
        (true, false) if ca <= cb => db,
        (false, true) if cb <= ca => da,
        _ => promote(da, db),
    }
}

/// The dtype of arithmetic between a tensor and a number.
pub fn promote_scalar(d: DType, s: Scalar) -> DType {
    match s {
        Scalar::Bool(_) => d,
        Scalar::Int(_) if d == DType::Bool => DType::Int64,
        Scalar::Int(_) => d,
        Scalar::Float(_) if d.is_inexact() => d,
        Scalar::Float(_) => default_dtype(),
        Scalar::Complex(_) if d.is_inexact() => d.complex(),
        Scalar::Complex(_) => default_dtype().complex(),
    }
}

/// The dtype of arithmetic between a tensor and an operand.
pub fn promote_operand(x: &Tensor, y: &Operand) -> DType {
    match y {
        Operand::Tensor(t) => promote_tensors(x, t),
        Operand::Scalar(s) => promote_scalar(x.dtype(), *s),
    }
}

/// The dtype of a function that only exists on floats and complex numbers: integers become the default float.
pub fn to_float(d: DType) -> DType {
    if d.is_inexact() { d } else { default_dtype() }
}

/// The dtype that holds all of several tensors (`concat`, `stack`).
pub fn promote_all(ts: &[Tensor]) -> Result<DType> {
    let mut it = ts.iter().map(Tensor::dtype);
    let first = it.next().ok_or_else(|| Error::invalid("needs at least one tensor"))?;
    Ok(it.fold(first, promote))
}
