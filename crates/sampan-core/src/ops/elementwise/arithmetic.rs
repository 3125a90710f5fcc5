//! Arithmetic between tensors and numbers.

use crate::ops::elementwise::pair_grads;
use crate::ops::prelude::*;

/// `x + y`, element by element, with broadcasting.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([[1.0f32, 2.0], [3.0, 4.0]]);
/// assert_eq!(x.add(&Tensor::new([10.0f32, 20.0])).to_vec::<f32>(), [11.0, 22.0, 13.0, 24.0]);
/// assert_eq!((x + 1.0).to_vec::<f32>(), [2.0, 3.0, 4.0, 5.0]);
/// ```
#[op(inplace, complex, samples = number_pairs, onnx = "Add", keywords("alpha=1"))]
fn add(cx: &Cx, x: &Tensor, y: Operand) -> Result<Tensor> {
    cx.number(formula!(|x, y| x + y), (x, &y))
}

/// `x - y`, element by element, with broadcasting.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([5i64, 7]);
/// assert_eq!(x.subtract(2).to_vec::<i64>(), [3, 5]);
/// ```
#[op(inplace, complex, samples = number_pairs, onnx = "Sub", also("sub"), keywords("alpha=1"))]
fn subtract(cx: &Cx, x: &Tensor, y: Operand) -> Result<Tensor> {
    refuse_bool(x, &y)?;
    cx.number(formula!(|x, y| x - y), (x, &y))
}

/// `y - x`: subtraction with the operands swapped, so that a number may stand on the left.
#[op(internal, complex, samples = number_pairs, peer = "lambda x, y: y - x")]
fn rsubtract(cx: &Cx, x: &Tensor, y: Operand) -> Result<Tensor> {
    refuse_bool(x, &y)?;
    cx.number(formula!(|x, y| y - x), (x, &y))
}

fn refuse_bool(x: &Tensor, y: &Operand) -> Result<()> {
    if promote_operand(x, y) == DType::Bool {
        return Err(Error::dtype("truth values cannot be subtracted").hint("use logical_xor, or cast to an integer"));
    }
    Ok(())
}

/// `x * y`, element by element, with broadcasting.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([1.0f32, 2.0, 3.0]);
/// assert_eq!(x.multiply(&x).to_vec::<f32>(), [1.0, 4.0, 9.0]);
/// ```
#[op(inplace, complex, samples = number_pairs, onnx = "Mul", also("mul"))]
fn multiply(cx: &Cx, x: &Tensor, y: Operand) -> Result<Tensor> {
    cx.number(formula!(|x, y| x * y), (x, &y))
}

/// `x / y`, element by element, with broadcasting. Integers give the default float.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([1i64, 3]).divide(2).to_vec::<f32>(), [0.5, 1.5]);
/// ```
#[op(inplace, complex, samples = complex_quotients, onnx = "Div", also("div", "true_divide"), keywords("rounding_mode=None"))]
fn divide(cx: &Cx, x: &Tensor, y: Operand) -> Result<Tensor> {
    cx.float(formula!(|x, y| x / y), (x, &y))
}

/// `y / x`: division with the operands swapped, so that a number may stand on the left.
#[op(internal, complex, samples = quotients_swapped, peer = "lambda x, y: y / x")]
fn rdivide(x: &Tensor, y: Operand) -> Result<Tensor> {
    match y {
        Operand::Tensor(y) => y.try_divide(x),
        Operand::Scalar(s) => x.try_reciprocal()?.try_multiply(s),
    }
}

/// `-x`.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!((-Tensor::new([1i64, -2])).to_vec::<i64>(), [-1, 2]);
/// ```
#[op(inplace, complex, samples = any_line, onnx = "Neg", also("negative"))]
fn neg(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    cx.number(formula!(|x| -x), x)
}

/// `1 / x`.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([2.0f32, 4.0]).reciprocal().to_vec::<f32>(), [0.5, 0.25]);
/// ```
#[op(inplace, complex, samples = any_right_half, onnx = "Reciprocal")]
fn reciprocal(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    cx.float(formula!(|x| x.recip()), x)
}

/// The quotient rounded down, `floor(x / y)`; keeps integers. It has no gradient.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([7i64, -7]).floor_divide(2).to_vec::<i64>(), [3, -4]);
/// ```
#[op(inplace, non_diff, samples = quotients)]
fn floor_divide(cx: &Cx, x: &Tensor, y: Operand) -> Result<Tensor> {
    check_divisor(x, &y)?;
    cx.number_values(formula!(|x, y| x.floor_div(y)), (x, &y))
}

/// What is left of `x` after taking out whole `y`; it has the sign of `y`, as in Python.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([5i64, -5]).remainder(3).to_vec::<i64>(), [2, 1]);
/// assert_eq!((Tensor::new([5.5f32, -5.5]) % 2.0).to_vec::<f32>(), [1.5, 0.5]);
/// ```
#[op(inplace, samples = quotients, also("mod", "floor_mod"))]
fn remainder(cx: &Cx, x: &Tensor, y: Operand) -> Result<Tensor> {
    check_divisor(x, &y)?;
    cx.number(formula!(|x, y| x.remainder(y)), (x, &y))
}

/// Integers cannot be divided by zero.
fn check_divisor(x: &Tensor, y: &Operand) -> Result<()> {
    let dtype = promote_operand(x, y);
    if dtype.is_float() {
        return Ok(());
    }
    let zero = match y {
        // A number too large for the dtype may be zero in it.
        Operand::Scalar(s) => s.rounded(dtype).to_i64() == 0,
        Operand::Tensor(y) if y.device().has_values() => {
            let mut count = [0];
            sampan_kernels::reduce::count_nonzero(y.values().view(), &vec![true; y.ndim()], &mut count);
            count[0] != y.numel() as i64
        }
        Operand::Tensor(_) => false,
    };
    ensure!(!zero, "division of integers by zero in {dtype}");
    Ok(())
}

/// `floor(x / y)` from the exact remainder, so that rounding in `x / y` cannot lift it to the next integer.
#[inline(always)]
/// `x` to the power `y`, element by element, with broadcasting. Integers stay integers under an integer exponent: a
/// negative number as the exponent is refused, negative ones in a tensor give the fraction cut to an integer (zero, or a
/// power of ±1), as in PaddlePaddle.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([2.0f32, -3.0]).pow(3).to_vec::<f32>(), [8.0, -27.0]);
/// assert_eq!(Tensor::new([2i64, 3]).pow(2).to_vec::<i64>(), [4, 9]);
/// ```
#[op(inplace, complex, samples = powers, onnx = "Pow", amp = "black", alias(exponent = y))]
fn pow(cx: &Cx, x: &Tensor, y: Operand) -> Result<Tensor> {
    match y {
        Operand::Scalar(y) => {
            let out = pow_number(cx, x, y)?;
            let dtype = out.dtype();
            cx.grad(out, &[x], move |g| match y {
                Scalar::Complex(n) => {
                    let x = g.saved(0).cast(dtype);
                    Ok(g.grad() * (x.pow(n - 1.0) * n).conjugate())
                }
                y => match y.to_f64() {
                    0.0 => Ok(crate::ops::math::zeros_like_grad(g)),
                    1.0 => Ok(g.grad()),
                    n => Ok(g.grad() * (g.saved(0).pow(n - 1.0) * n).conjugate()),
                },
            })
        }
        Operand::Tensor(y) => {
            let out = cx.number_values(formula!(|x, y| x.pow(y)), (x, &y))?;
            let dtype = out.dtype();
            cx.grad_from_output(out, &[x, &y], move |g| {
                let (x, y) = (g.saved(0), g.saved(1));
                if dtype.is_complex() {
                    return Ok(complex_pow_grads(g, &x.cast(dtype), &y.cast(dtype)));
                }
                // x⁰ has the slope 0 and 0ʸ does not change with y, where the formulas would say 0 · ∞.
                let at_zero = x.equal(0.0);
                let dx = || g.grad() * (y * x.pow(y - 1.0 + y.equal(0.0)));
                let dy = || g.grad() * (g.output(0) * (x + at_zero.logical_and(y.greater_equal(0.0))).log());
                Ok(pair_grads(g, x.shape(), Some(y.shape()), dx, dy))
            })
        }
    }
}

/// The gradients of a complex power; where the base is zero, the exponent has none.
fn complex_pow_grads(g: &Grad, x: &Tensor, y: &Tensor) -> Vec<Option<Tensor>> {
    let at_zero = x.equal(0.0);
    let dx = || g.grad() * (y * x.pow(y - 1.0 + at_zero.logical_and(y.equal(0.0)))).conjugate();
    let dy = || g.grad() * (g.output(0) * (x + &at_zero).log()).conjugate();
    pair_grads(g, x.shape(), Some(y.shape()), dx, dy)
}

fn pow_number(cx: &Cx, x: &Tensor, y: Scalar) -> Result<Tensor> {
    let dtype = crate::promote::promote_scalar(x.dtype(), y);
    if !dtype.is_float() {
        let whole = !dtype.is_complex();
        ensure!(!whole || y.to_i64() >= 0, "integers cannot be raised to the negative power {}", y.to_i64());
        return cx.number_values(formula!(|x, y| x.pow(y)), (x, &Operand::from(y)));
    }
    let n = y.to_f64();
    let power = match n {
        0.0 => formula!(|_x| 1.0),
        0.5 => formula!(|x| x.sqrt()),
        1.0 => formula!(|x| x),
        2.0 => formula!(|x| x * x),
        3.0 => formula!(|x| x * x * x),
        -1.0 => formula!(|x| x.recip()),
        -0.5 => formula!(|x| x.rsqrt()),
        n => formula!(|x; n| x.pow(n)),
    };
    cx.float_values(power, x)
}

/// `y ** x`: a power with the operands swapped, so that a number may stand on the left.
#[op(internal, complex, samples = left_numbers, peer = "lambda x, y: y ** x")]
fn rpow(x: &Tensor, y: Operand) -> Result<Tensor> {
    let x = widened(x, &y);
    left(y).try_pow(x)
}

/// `y % x`: the remainder with the operands swapped, so that a number may stand on the left.
#[op(internal, samples = left_numbers, peer = "lambda x, y: y % x")]
fn rremainder(x: &Tensor, y: Operand) -> Result<Tensor> {
    let x = widened(x, &y);
    left(y).try_remainder(x)
}

/// `y // x`: the quotient rounded down with the operands swapped, so that a number may stand on the left.
#[op(internal, non_diff, samples = left_numbers, peer = "lambda x, y: (y // x).reshape(x.shape)")]
fn rfloor_divide(x: &Tensor, y: Operand) -> Result<Tensor> {
    let x = widened(x, &y);
    left(y).try_floor_divide(x)
}

/// Truth values as integers beside an integer: `2 ** True` is 2.
fn widened(x: &Tensor, y: &Operand) -> Tensor {
    let whole = x.dtype() == DType::Bool && matches!(y, Operand::Scalar(Scalar::Int(_)));
    if whole { x.cast(DType::Int64) } else { x.clone() }
}

/// An operand as the left side of an op: a number becomes a tensor without axes, which does not widen the other side.
fn left(y: Operand) -> Tensor {
    match y {
        Operand::Tensor(y) => y,
        Operand::Scalar(Scalar::Bool(b)) => Tensor::from_vec(vec![Bool::from(b)], []),
        Operand::Scalar(Scalar::Int(i)) => Tensor::from_vec(vec![i], []),
        Operand::Scalar(Scalar::Float(f)) => Tensor::from_vec(vec![f], []).cast(default_dtype()),
        Operand::Scalar(Scalar::Complex(z)) => Tensor::from_vec(vec![z], []).cast(default_dtype().complex()),
    }
}

fn left_numbers() -> Vec<Sample> {
    vec![
        sample![positive([2, 3]), 2.5],
        sample![ints([4], 1, 5), 3],
        sample![positive([]), 2.0],
        sample![positive([0, 3]), 1.5],
    ]
}

fn powers() -> Vec<Sample> {
    vec![
        sample![randn([2, 3]), 2],
        sample![randn([2, 3]), 3.0],
        sample![randn([3]), 0],
        sample![randn([4]), -1.0],
        sample![randn([3]), 4],
        sample![positive([3]), 0.5],
        sample![positive([3]), -1.7],
        sample![positive([2, 1, 3]), randn([4, 1])],
        sample![complexes([2, 3]), 2],
        sample![complexes([3]), -1.5],
        sample![complexes([3]), Complex128::new(0.5, -2.0)].peer("torch.pow"),
        sample![positive([3]), Complex128::new(0.5, -2.0)].peer("torch.pow"),
        // Paddle does not conjugate.
        sample![complexes([2, 3]), complexes([3])].grad_peer("torch.pow"),
        sample![complexes([2, 3]), randn([3])].grad_peer("torch.pow"),
        sample![positive([2, 3]), complexes([3])].grad_peer("torch.pow"),
        sample![values([0.0f32, 2.0, 0.0], [3]), values([0.0f32, 0.0, 2.0], [3])].no_grad("one-sided at zero"),
        sample![values([-2.0f32, -1.5], [2]), values([2.0f32, -3.0], [2])].no_grad("no slope along the exponent"),
        sample![ints([4], -3, 4), 3],
        sample![positive([]), randn([])],
        sample![positive([0, 3]), 1.5],
    ]
}

fn quotients() -> Vec<Sample> {
    vec![
        sample![randn([2, 3]), positive([2, 3])],
        sample![randn([2, 1, 3]), positive([4, 1])],
        sample![randn([3]), 1.5],
        sample![randn([2, 3]), positive([])],
        sample![randn([0, 3]), positive([3])],
    ]
}

fn complex_quotients() -> Vec<Sample> {
    let mut samples = quotients();
    samples.extend([
        sample![complexes([2, 3]), complexes([3])],
        sample![complexes([2, 1]), positive([3])],
        sample![randn([2, 3]), complexes([3])],
        sample![complexes([3]), 1.5],
        sample![complexes([3]), Complex128::new(0.5, -2.0)],
    ]);
    samples
}

fn quotients_swapped() -> Vec<Sample> {
    vec![
        sample![positive([2, 3]), randn([2, 3])],
        sample![positive([3]), 1.5],
        sample![positive([4, 1]), randn([2, 1, 3])],
        sample![complexes([3]), Complex128::new(0.5, -2.0)],
    ]
}
