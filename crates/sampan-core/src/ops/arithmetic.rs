//! Arithmetic between tensors and numbers.

use super::elementwise::pair_grads;
use super::prelude::*;

fn y_shape(y: &Operand) -> Option<Shape> {
    y.tensor().map(Tensor::shape_vec)
}

/// `x + y`, element by element, with broadcasting.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([[1.0f32, 2.0], [3.0, 4.0]]);
/// assert_eq!(x.add(&Tensor::new([10.0f32, 20.0])).to_vec::<f32>(), [11.0, 22.0, 13.0, 24.0]);
/// assert_eq!((x + 1.0).to_vec::<f32>(), [2.0, 3.0, 4.0, 5.0]);
/// ```
#[op(inplace, samples = real_pairs, onnx = "Add")]
fn add(cx: &Cx, x: &Tensor, y: Operand) -> Result<Tensor> {
    let out = cx.binary_number(x, &y, real_fn!(|x, y| x + y), |x, y| x.wrapping_add(y))?;
    let (xs, ys) = (x.shape_vec(), y_shape(&y));
    cx.grad(out, &[], move |g| Ok(pair_grads(g, &xs, ys.as_deref(), || g.grad(), || g.grad())))
}

/// `x - y`, element by element, with broadcasting.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([5i64, 7]);
/// assert_eq!(x.subtract(2).to_vec::<i64>(), [3, 5]);
/// ```
#[op(inplace, samples = real_pairs, onnx = "Sub")]
fn subtract(cx: &Cx, x: &Tensor, y: Operand) -> Result<Tensor> {
    let out = cx.binary_number(x, &y, real_fn!(|x, y| x - y), |x, y| x.wrapping_sub(y))?;
    let (xs, ys) = (x.shape_vec(), y_shape(&y));
    cx.grad(out, &[], move |g| Ok(pair_grads(g, &xs, ys.as_deref(), || g.grad(), || -g.grad())))
}

/// `y - x`: subtraction with the operands swapped, so that a number may stand on the left.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!((1.0 - Tensor::new([0.25f32, 3.0])).to_vec::<f32>(), [0.75, -2.0]);
/// ```
#[op(samples = real_pairs, peer = "lambda x, y: y - x")]
fn rsubtract(cx: &Cx, x: &Tensor, y: Operand) -> Result<Tensor> {
    let out = cx.binary_number(x, &y, real_fn!(|x, y| y - x), |x, y| y.wrapping_sub(x))?;
    let (xs, ys) = (x.shape_vec(), y_shape(&y));
    cx.grad(out, &[], move |g| Ok(pair_grads(g, &xs, ys.as_deref(), || -g.grad(), || g.grad())))
}

/// `x * y`, element by element, with broadcasting.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([1.0f32, 2.0, 3.0]);
/// assert_eq!(x.multiply(&x).to_vec::<f32>(), [1.0, 4.0, 9.0]);
/// ```
#[op(inplace, samples = real_pairs, onnx = "Mul")]
fn multiply(cx: &Cx, x: &Tensor, y: Operand) -> Result<Tensor> {
    let out = cx.binary_number(x, &y, real_fn!(|x, y| x * y), |x, y| x.wrapping_mul(y))?;
    match y {
        Operand::Tensor(y) => cx.grad(out, &[x, &y], move |g| {
            let (x, y) = (g.saved(0), g.saved(1));
            Ok(pair_grads(g, x.shape(), Some(y.shape()), || g.grad() * y, || g.grad() * x))
        }),
        Operand::Scalar(s) => cx.grad(out, &[], move |g| Ok(g.grad() * s)),
    }
}

/// `x / y`, element by element, with broadcasting. Integers give the default float.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([1i64, 3]).divide(2).to_vec::<f32>(), [0.5, 1.5]);
/// ```
#[op(inplace, samples = quotients, onnx = "Div")]
fn divide(cx: &Cx, x: &Tensor, y: Operand) -> Result<Tensor> {
    let out = cx.binary(x, &y, real_fn!(|x, y| x / y))?;
    match y {
        Operand::Tensor(y) => cx.grad(out, &[x, &y], move |g| {
            let (x, y) = (g.saved(0), g.saved(1));
            Ok(pair_grads(g, x.shape(), Some(y.shape()), || g.grad() / y, || -(g.grad() * x) / (y * y)))
        }),
        Operand::Scalar(s) => cx.grad(out, &[], move |g| Ok(g.grad() / s)),
    }
}

/// `y / x`: division with the operands swapped, so that a number may stand on the left.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!((1.0 / Tensor::new([2.0f32, 4.0])).to_vec::<f32>(), [0.5, 0.25]);
/// ```
#[op(samples = quotients_swapped, peer = "lambda x, y: y / x")]
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
#[op(inplace, samples = real_line, onnx = "Neg")]
fn neg(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    let out = cx.unary_number(x, real_fn!(|x| -x), |x| x.wrapping_neg())?;
    cx.grad(out, &[], |g| Ok(-g.grad()))
}

/// `1 / x`.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([2.0f32, 4.0]).reciprocal().to_vec::<f32>(), [0.5, 0.25]);
/// ```
#[op(inplace, samples = positive_line, onnx = "Reciprocal")]
fn reciprocal(cx: &Cx, x: &Tensor) -> Result<Tensor> {
    let out = cx.unary(x, real_fn!(|x| x.recip()))?;
    cx.grad_from_output(out, &[], |g| Ok(-(g.grad() * g.output(0) * g.output(0))))
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

fn quotients_swapped() -> Vec<Sample> {
    vec![
        sample![positive([2, 3]), randn([2, 3])],
        sample![positive([3]), 1.5],
        sample![positive([4, 1]), randn([2, 1, 3])],
    ]
}
