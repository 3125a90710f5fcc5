//! Comparisons, truth values and bits. Nothing here has a gradient.

use crate::Complex64;
use crate::ops::prelude::*;
use sampan_formula::Number;

/// Is `x == y`, element by element, with broadcasting?
///
/// ```
/// # use sampan_core::{Bool, Tensor};
/// assert_eq!(Tensor::new([1i64, 2, 3]).equal(2).to_vec::<Bool>(), [false, true, false]);
/// ```
#[op(inplace, non_diff, complex, samples = equatable, onnx = "Equal", also("eq"))]
fn equal(cx: &Cx, x: &Tensor, y: Operand) -> Result<Tensor> {
    cx.truth(formula!(|x, y| x.equals(y)), (x, &y))
}

/// Is `x != y`, element by element, with broadcasting?
///
/// ```
/// # use sampan_core::{Bool, Tensor};
/// assert_eq!(Tensor::new([1i64, 2, 3]).not_equal(2).to_vec::<Bool>(), [true, false, true]);
/// ```
#[op(inplace, non_diff, complex, samples = equatable, also("ne"))]
fn not_equal(cx: &Cx, x: &Tensor, y: Operand) -> Result<Tensor> {
    cx.truth(formula!(|x, y| x.differs(y)), (x, &y))
}

/// Is `x < y`, element by element, with broadcasting?
///
/// ```
/// # use sampan_core::{Bool, Tensor};
/// assert_eq!(Tensor::new([1i64, 2, 3]).less_than(2).to_vec::<Bool>(), [true, false, false]);
/// ```
#[op(inplace, non_diff, samples = comparable, onnx = "Less", also("lt", "less"))]
fn less_than(cx: &Cx, x: &Tensor, y: Operand) -> Result<Tensor> {
    cx.truth(formula!(|x, y| x.lt(y)), (x, &y))
}

/// Is `x <= y`, element by element, with broadcasting?
///
/// ```
/// # use sampan_core::{Bool, Tensor};
/// assert_eq!(Tensor::new([1i64, 2, 3]).less_equal(2).to_vec::<Bool>(), [true, true, false]);
/// ```
#[op(inplace, non_diff, samples = comparable, onnx = "LessOrEqual", also("le"))]
fn less_equal(cx: &Cx, x: &Tensor, y: Operand) -> Result<Tensor> {
    cx.truth(formula!(|x, y| x.le(y)), (x, &y))
}

/// Is `x > y`, element by element, with broadcasting?
///
/// ```
/// # use sampan_core::{Bool, Tensor};
/// assert_eq!(Tensor::new([1i64, 2, 3]).greater_than(2).to_vec::<Bool>(), [false, false, true]);
/// ```
#[op(inplace, non_diff, samples = comparable, onnx = "Greater", also("gt", "greater"))]
fn greater_than(cx: &Cx, x: &Tensor, y: Operand) -> Result<Tensor> {
    cx.truth(formula!(|x, y| x.gt(y)), (x, &y))
}

/// Is `x >= y`, element by element, with broadcasting?
///
/// ```
/// # use sampan_core::{Bool, Tensor};
/// assert_eq!(Tensor::new([1i64, 2, 3]).greater_equal(2).to_vec::<Bool>(), [false, true, true]);
/// ```
#[op(inplace, non_diff, samples = comparable, onnx = "GreaterOrEqual", also("ge"))]
fn greater_equal(cx: &Cx, x: &Tensor, y: Operand) -> Result<Tensor> {
    cx.truth(formula!(|x, y| x.ge(y)), (x, &y))
}

/// Does both `x` and `y` hold, element by element? Numbers hold where they are not zero.
///
/// ```
/// # use sampan_core::{Bool, Tensor};
/// let (x, y) = (Tensor::new([true, true, false]), Tensor::new([1.5f32, 0.0, 0.0]));
/// assert_eq!(x.logical_and(&y).to_vec::<Bool>(), [true, false, false]);
/// ```
#[op(inplace, non_diff, complex, samples = truths, onnx = "And")]
fn logical_and(cx: &Cx, x: &Tensor, y: Operand) -> Result<Tensor> {
    cx.truth(formula!(|x, y| x.and(y)), (&x.try_cast(DType::Bool)?, &truth(y)?))
}

/// Does at least one of `x` and `y` hold, element by element? Numbers hold where they are not zero.
///
/// ```
/// # use sampan_core::{Bool, Tensor};
/// let (x, y) = (Tensor::new([true, true, false]), Tensor::new([1.5f32, 0.0, 0.0]));
/// assert_eq!(x.logical_or(&y).to_vec::<Bool>(), [true, true, false]);
/// ```
#[op(inplace, non_diff, complex, samples = truths, onnx = "Or")]
fn logical_or(cx: &Cx, x: &Tensor, y: Operand) -> Result<Tensor> {
    cx.truth(formula!(|x, y| x.or(y)), (&x.try_cast(DType::Bool)?, &truth(y)?))
}

/// Does exactly one of `x` and `y` hold, element by element? Numbers hold where they are not zero.
///
/// ```
/// # use sampan_core::{Bool, Tensor};
/// let (x, y) = (Tensor::new([true, true, false]), Tensor::new([1.5f32, 0.0, 0.0]));
/// assert_eq!(x.logical_xor(&y).to_vec::<Bool>(), [false, true, false]);
/// ```
#[op(inplace, non_diff, complex, samples = truths, onnx = "Xor")]
fn logical_xor(cx: &Cx, x: &Tensor, y: Operand) -> Result<Tensor> {
    cx.truth(formula!(|x, y| x.differs(y)), (&x.try_cast(DType::Bool)?, &truth(y)?))
}

/// An operand as a truth value.
fn truth(y: Operand) -> Result<Operand> {
    Ok(match y {
        Operand::Tensor(y) => y.try_cast(DType::Bool)?.into(),
        Operand::Scalar(s) => (s.to::<Complex128>() != Complex128::default()).into(),
    })
}

/// Does `x` not hold? Numbers hold where they are not zero.
///
/// ```
/// # use sampan_core::{Bool, Tensor};
/// assert_eq!(Tensor::new([2i64, 0]).logical_not().to_vec::<Bool>(), [false, true]);
/// ```
#[op(inplace, non_diff, complex, samples = truth_line, onnx = "Not")]
fn logical_not(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    cx.truth(formula!(|x| !x), x)
}

/// `x & y` on each bit of integers, or on truth values.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!((Tensor::new([0b1100i64]) & 0b1010).to_vec::<i64>(), [0b1000]);
/// ```
#[op(inplace, non_diff, samples = bits, onnx = "BitwiseAnd")]
fn bitwise_and(cx: &Cx, x: &Tensor, y: Operand) -> Result<Tensor> {
    cx.integer(formula!(|x, y| x.bit_and(y)), (x, &y))
}

/// `x | y` on each bit of integers, or on truth values.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!((Tensor::new([0b1100i64]) | 0b1010).to_vec::<i64>(), [0b1110]);
/// ```
#[op(inplace, non_diff, samples = bits, onnx = "BitwiseOr")]
fn bitwise_or(cx: &Cx, x: &Tensor, y: Operand) -> Result<Tensor> {
    cx.integer(formula!(|x, y| x.bit_or(y)), (x, &y))
}

/// `x ^ y` on each bit of integers, or on truth values.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!((Tensor::new([0b1100i64]) ^ 0b1010).to_vec::<i64>(), [0b0110]);
/// ```
#[op(inplace, non_diff, samples = bits, onnx = "BitwiseXor")]
fn bitwise_xor(cx: &Cx, x: &Tensor, y: Operand) -> Result<Tensor> {
    cx.integer(formula!(|x, y| x.bit_xor(y)), (x, &y))
}

/// Every bit of integers, or a truth value, turned over.
///
/// ```
/// # use sampan_core::{Bool, Tensor};
/// assert_eq!((!Tensor::new([0i64, 5])).to_vec::<i64>(), [-1, -6]);
/// assert_eq!((!Tensor::new([true, false])).to_vec::<Bool>(), [false, true]);
/// ```
#[op(inplace, non_diff, samples = bit_line, onnx = "BitwiseNot", also("bitwise_invert"))]
fn bitwise_not(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    integers("x", x.dtype())?;
    match x.dtype() {
        DType::Bool => cx.integer(formula!(|x| !x), x),
        _ => cx.integer(formula!(|x| x.bit_not()), x),
    }
}

/// The bits of `x` moved left by `y` places; what leaves the dtype is lost.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!((Tensor::new([1i64, -4]) << 2).to_vec::<i64>(), [4, -16]);
/// ```
#[op(inplace, non_diff, samples = shifts)]
fn bitwise_left_shift(cx: &Cx, x: &Tensor, y: Operand, #[opt(true)] is_arithmetic: bool) -> Result<Tensor> {
    // The two kinds of shift differ only to the right.
    let _ = is_arithmetic;
    integers("x", x.dtype())?;
    let bits = 8 * promote_operand(x, &y).size() as i64;
    cx.integer(formula!(|x, n; bits| select(n.ge(0.0).and(n.lt(bits)), x.shl(n), 0.0)), (x, &y))
}

/// The bits of `x` moved right by `y` places. The places that fall free take the sign, or zeros if not `is_arithmetic`.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([-8i64]);
/// assert_eq!((&x >> 1).to_vec::<i64>(), [-4]);
/// # use sampan_core::ops::logic::BitwiseRightShiftOpts;
/// let logical = BitwiseRightShiftOpts::new().is_arithmetic(false);
/// assert_eq!(x.bitwise_right_shift_with(1, logical).to_vec::<i64>(), [i64::MAX - 3]);
/// ```
#[op(inplace, non_diff, samples = shifts)]
fn bitwise_right_shift(cx: &Cx, x: &Tensor, y: Operand, #[opt(true)] is_arithmetic: bool) -> Result<Tensor> {
    integers("x", x.dtype())?;
    let bits = 8 * promote_operand(x, &y).size() as i64;
    if is_arithmetic {
        // Shifted by more bits than there are, the sign is left.
        return cx.integer(formula!(|x, n; bits| x.shr(select(n.ge(0.0).and(n.lt(bits)), n, 63.0))), (x, &y));
    }
    if bits == 64 {
        // The sign bit moves down like the others.
        let whole = formula!(|x, n| {
            let below = x.shr(n).bit_and(Number::from(-1.0).bit_xor(Number::from(-1.0).shl(64.0 - n)));
            select(n.equals(0.0), x, select(n.gt(0.0).and(n.lt(64.0)), below, 0.0))
        });
        return cx.integer(whole, (x, &y));
    }
    let mask = (1i64 << bits) - 1;
    let f = formula!(|x, n; bits, mask| select(n.ge(0.0).and(n.lt(bits)), x.bit_and(mask).shr(n), 0.0));
    cx.integer(f, (x, &y))
}

fn integers(name: &str, dtype: DType) -> Result<()> {
    if dtype.is_float() {
        return Err(Error::dtype(format!("{name} must hold integers or bool, got {dtype}")));
    }
    Ok(())
}

/// Is each element not a number?
///
/// ```
/// # use sampan_core::{Bool, Tensor};
/// let x = Tensor::new([f32::NAN, f32::INFINITY, -f32::INFINITY, 1.0]);
/// assert_eq!(x.isnan().to_vec::<Bool>(), [true, false, false, false]);
/// ```
#[op(non_diff, complex, samples = odd_complex_numbers)]
fn isnan(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    cx.truth(formula!(|x| x.is_nan()), x)
}

/// Is each element infinite?
///
/// ```
/// # use sampan_core::{Bool, Tensor};
/// let x = Tensor::new([f32::NAN, f32::INFINITY, -f32::INFINITY, 1.0]);
/// assert_eq!(x.isinf().to_vec::<Bool>(), [false, true, true, false]);
/// ```
#[op(non_diff, complex, samples = odd_complex_numbers)]
fn isinf(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    // As C has it: an infinite part makes a complex number infinite, even beside a NaN.
    cx.truth(formula!(|x| x.is_inf()), x)
}

/// Is each element neither infinite nor NaN?
///
/// ```
/// # use sampan_core::{Bool, Tensor};
/// let x = Tensor::new([f32::NAN, f32::INFINITY, -f32::INFINITY, 1.0]);
/// assert_eq!(x.isfinite().to_vec::<Bool>(), [false, false, false, true]);
/// ```
#[op(non_diff, complex, samples = odd_complex_numbers)]
fn isfinite(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    cx.truth(formula!(|x| x.is_finite()), x)
}

/// Is each element positive infinity?
///
/// ```
/// # use sampan_core::{Bool, Tensor};
/// let x = Tensor::new([f32::NAN, f32::INFINITY, -f32::INFINITY, 1.0]);
/// assert_eq!(x.isposinf().to_vec::<Bool>(), [false, true, false, false]);
/// ```
#[op(non_diff, samples = odd_numbers)]
fn isposinf(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    cx.truth_in(to_float(x.dtype()), formula!(|x| x.equals(f64::INFINITY)), x)
}

/// Is each element negative infinity?
///
/// ```
/// # use sampan_core::{Bool, Tensor};
/// let x = Tensor::new([f32::NAN, f32::INFINITY, -f32::INFINITY, 1.0]);
/// assert_eq!(x.isneginf().to_vec::<Bool>(), [false, false, true, false]);
/// ```
#[op(non_diff, samples = odd_numbers)]
fn isneginf(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    cx.truth_in(to_float(x.dtype()), formula!(|x| x.equals(f64::NEG_INFINITY)), x)
}

/// Is the sign of each element negative? True for -0.0 too.
///
/// ```
/// # use sampan_core::{Bool, Tensor};
/// assert_eq!(Tensor::new([-0.0f32, 0.0, -3.0]).signbit().to_vec::<Bool>(), [true, false, true]);
/// ```
#[op(non_diff, samples = signed_numbers)]
fn signbit(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    cx.truth(formula!(|x| x.sign_bit()), x)
}

/// Paddle wants two tensors.
const WRAPPED: &str = "lambda x, y: getattr(paddle, op)(x.astype('int64'), paddle.to_tensor(y))";

fn comparable() -> Vec<Sample> {
    vec![
        sample![values([1.0f32, 2.0, 3.0, f32::NAN], [4]), values([1.0f32, 3.0, 2.0, f32::NAN], [4])],
        sample![ints([2, 3], 0, 3), ints([3], 0, 3)],
        sample![randn([2, 1, 3]), uniform([4, 1], -1.0, 1.0)],
        sample![ints([5], -2, 3), 1].peer(WRAPPED),
        sample![values([1u8, 200], [2]), 300].peer(WRAPPED),
        sample![bools([4]), bools([4])],
        sample![randn([]), randn([])],
        sample![randn([0, 3]), 0.5],
    ]
}
fn equatable() -> Vec<Sample> {
    let mut samples = comparable();
    samples.push(sample![complexes([4]), complexes([4])]);
    samples.push(sample![complexes([2, 3]), randn([3])]);
    samples
}
fn truths() -> Vec<Sample> {
    vec![
        sample![values([Complex64::new(0.0, 1.0), Complex64::new(0.0, 0.0)], [2]), complexes([2])],
        sample![bools([2, 3]), bools([3])],
        sample![ints([6], 0, 2), ints([6], 0, 3)],
        sample![values([0.0f32, 1.0, f32::NAN], [3]), values([1.0f32, 0.0, 1.0], [3])],
        sample![bools([]), bools([2])],
        sample![bools([0, 3]), bools([3])],
    ]
}
fn truth_line() -> Vec<Sample> {
    vec![
        sample![bools([2, 3])],
        sample![ints([4], 0, 2)],
        sample![values([0.0f32, -0.0, 0.5, f32::NAN], [4])],
        sample![bools([0])],
    ]
}
fn bits() -> Vec<Sample> {
    vec![
        sample![ints([2, 3], -9, 9), ints([3], -9, 9)],
        sample![bools([4]), bools([4])],
        sample![ints([4], 0, 99), 5].peer(WRAPPED),
        sample![ints([0, 2], 0, 9), ints([2], 0, 9)],
    ]
}
fn bit_line() -> Vec<Sample> {
    vec![sample![ints([2, 3], -9, 9)], sample![bools([4])], sample![ints([], 0, 9)], sample![ints([0], 0, 9)]]
}
fn shifts() -> Vec<Sample> {
    vec![
        sample![ints([2, 3], -90, 90), ints([3], 0, 5)],
        sample![ints([5], -90, 90), ints([5], 0, 5); is_arithmetic = false],
        sample![values([-8i8, 127, 1], [3]), values([1i8, 7, 9], [3])],
        sample![values([-8i8, 127, 1], [3]), values([1i8, 7, 9], [3]); is_arithmetic = false],
        sample![ints([4], -9, 9), 2].peer(WRAPPED),
        sample![ints([0, 2], 0, 9), ints([2], 0, 3)],
    ]
}
fn signed_numbers() -> Vec<Sample> {
    let zeros = values([-0.0f32, 0.0, f32::NEG_INFINITY, 2.0], [4]);
    vec![sample![zeros], sample![ints([4], -3, 3)], sample![randn([])], sample![randn([0, 2])]]
}
pub(crate) fn odd_complex_numbers() -> Vec<Sample> {
    let odd = [(f32::NAN, 1.0), (1.0, f32::INFINITY), (f32::NEG_INFINITY, f32::NAN), (0.0, 0.0), (2.0, -1.0)];
    let mut samples = odd_numbers();
    samples.push(sample![values(odd.map(|(re, im)| Complex64::new(re, im)), [5])]);
    samples
}
fn odd_numbers() -> Vec<Sample> {
    let odd = vec![f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 0.0, -1.5, 3.0];
    vec![sample![values(odd, [2, 3])], sample![ints([3], 0, 3)], sample![randn([])], sample![randn([0, 2])]]
}
