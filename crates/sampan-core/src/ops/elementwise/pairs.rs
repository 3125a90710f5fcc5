//! Further functions of two arguments.

use crate::ops::elementwise::pair_grads;
use crate::ops::prelude::*;
use crate::ops::trigonometric::tensor_pairs;

/// The magnitude of `x` with the sign of `y`. Integers stay integers, and those without a sign are what they were.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([1.0f32, 2.0]).copysign(-0.0).to_vec::<f32>(), [-1.0, -2.0]);
/// ```
#[op(inplace, samples = copysign_samples)]
fn copysign(cx: &Cx, x: &Tensor, y: Operand) -> Result<Tensor> {
    let whole = formula!(|x, y| select(y.lt(0.0), -x.abs(), x.abs()));
    match &y {
        Operand::Tensor(t) if x.dtype().is_int() && t.dtype() == x.dtype() => cx.number(whole, (x, t)),
        Operand::Scalar(s @ (Scalar::Int(_) | Scalar::Float(_))) if x.dtype().is_int() => {
            let sign = if x.dtype() == DType::UInt8 { 1 } else { s.to_i64().signum() };
            cx.number(whole, (x, &Operand::from(Scalar::Int(sign))))
        }
        _ => cx.float(formula!(|x, y| x.copysign(y)), (x, &y)),
    }
}

/// The next number after `x` towards `y` that the dtype can hold.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([1.0f32]).nextafter(&Tensor::new([2.0f32])).to_vec::<f32>(), [1.0 + f32::EPSILON]);
/// ```
#[op(non_diff, samples = tensor_pairs)]
fn nextafter(cx: &Cx, x: &Tensor, y: &Tensor) -> Result<Tensor> {
    let dtype = to_float(promote_tensors(x, y));
    if dtype.is_half() {
        return Err(Error::dtype(format!("works in float32 and float64, got {dtype}")).hint("cast both to float32"));
    }
    cx.float_values(formula!(|x, y| x.next_after(y)), (x, y))
}

/// The step function: 0 where `x` is negative or NaN, 1 where it is positive, `y` where it is zero.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([-1.0f32, 0.0, 2.0]).heaviside(&Tensor::new([0.5f32])).to_vec::<f32>(), [0.0, 0.5, 1.0]);
/// ```
#[op(samples = heaviside_samples)]
fn heaviside(cx: &Cx, x: &Tensor, y: &Tensor) -> Result<Tensor> {
    cx.number(formula!(|x, y| select(x.equals(0.0), y, x.gt(0.0))), (x, y))
}

/// The greatest common divisor of integers, never negative.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([12i64, -8]).gcd(&Tensor::new([18i64, 12])).to_vec::<i64>(), [6, 4]);
/// ```
#[op(inplace, non_diff, samples = int_pairs)]
fn gcd(cx: &Cx, x: &Tensor, y: &Tensor) -> Result<Tensor> {
    cx.integer(formula!(|x, y| x.gcd(y)), (x, y))
}

/// The least common multiple of integers, never negative.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([4i64, -6]).lcm(&Tensor::new([6i64, 4])).to_vec::<i64>(), [12, 12]);
/// ```
#[op(inplace, non_diff, samples = int_pairs)]
fn lcm(cx: &Cx, x: &Tensor, y: &Tensor) -> Result<Tensor> {
    cx.integer(formula!(|x, y| x.lcm(y)), (x, y))
}

/// The point between `x` and `y` at `weight`: `x + weight * (y - x)`.
///
/// ```
/// # use sampan_core::Tensor;
/// assert_eq!(Tensor::new([1.0f32]).lerp(&Tensor::new([3.0f32]), 0.25).to_vec::<f32>(), [1.5]);
/// ```
#[op(inplace, complex, samples = lerp_samples)]
fn lerp(x: &Tensor, y: &Tensor, weight: Operand) -> Result<Tensor> {
    x.try_add((y - x).try_multiply(weight)?)
}

/// `log(exp(x) + exp(y))`, without overflow.
///
/// ```
/// # use sampan_core::Tensor;
/// let x = Tensor::new([1000.0f64]);
/// assert_eq!(x.logaddexp(&x).to_vec::<f64>(), [1000.0 + std::f64::consts::LN_2]);
/// ```
#[op(samples = tensor_pairs, amp = "black")]
fn logaddexp(cx: &Cx, x: &Tensor, y: &Tensor) -> Result<Tensor> {
    // Equal infinities differ by NaN.
    let sum = formula!(|x, y| {
        let gap = select(x.equals(y), 0.0, -(x - y).abs());
        x.max(y) + gap.exp().log1p()
    });
    let out = cx.float_values(sum, (x, y))?;
    cx.grad(out, &[x, y], |g| {
        let (x, y) = (g.saved(0), g.saved(1));
        let share = |a: &Tensor, b: &Tensor| g.grad() * (a - b).sigmoid();
        Ok(pair_grads(g, x.shape(), Some(y.shape()), || share(x, y), || share(y, x)))
    })
}

/// The sum of several tensors of one shape; one without axes is added to every element.
///
/// ```
/// # use sampan_core::{Tensor, ops::pairs::add_n};
/// let x = Tensor::new([1.0f32, 2.0]);
/// assert_eq!(add_n(&[x.clone(), x.clone(), x]).to_vec::<f32>(), [3.0, 6.0]);
/// ```
#[op(complex, samples = add_n_samples, also("Tensor.add_n"))]
fn add_n(inputs: &[Tensor]) -> Result<Tensor> {
    let Some((first, rest)) = inputs.split_first() else { bail!("needs at least one tensor") };
    let wanted = inputs.iter().map(Tensor::shape).find(|s| !s.is_empty()).unwrap_or(&[]);
    for (i, t) in inputs.iter().enumerate() {
        let shape = t.shape();
        ensure!(shape.is_empty() || shape == wanted, "tensor {i} has shape {shape:?}, the first has {wanted:?}");
    }
    // A sum of one must not share memory with its input.
    let first = if rest.is_empty() { first.try_add(0)? } else { first.clone() };
    rest.iter().try_fold(first, |sum, t| sum.try_add(t))
}

fn copysign_samples() -> Vec<Sample> {
    let mut samples = real_pairs();
    samples.push(sample![ints([2, 3], -4, 5), ints([3], -2, 3)]);
    samples.push(sample![ints([4], -4, 5), -1]);
    samples
}
fn heaviside_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 3]), randn([3])],
        sample![values([-1.0f32, 0.0, 2.0, f32::NAN], [4]), randn([4])].no_grad("jumps"),
        sample![ints([4], -1, 2), ints([4], -1, 2)],
        sample![randn([]), randn([])],
        sample![randn([0, 3]), randn([3])],
    ]
}
fn int_pairs() -> Vec<Sample> {
    vec![
        sample![ints([2, 3], -30, 30), ints([2, 3], -30, 30)],
        sample![ints([4, 1], 0, 30), ints([3], 0, 9)],
        sample![ints([], 1, 30), ints([], 1, 30)],
        sample![ints([0, 3], 1, 9), ints([3], 1, 9)],
    ]
}
fn lerp_samples() -> Vec<Sample> {
    vec![
        sample![randn([2, 3]), uniform([2, 3], 0.0, 1.0), 0.3],
        sample![randn([2, 3]), randn([3]), uniform([2, 1], 0.0, 1.0)].grad_peer("torch.lerp"),
        sample![randn([]), randn([]), uniform([], 0.0, 1.0)],
        sample![randn([0, 3]), randn([3]), 0.5],
    ]
}
fn add_n_samples() -> Vec<Sample> {
    vec![
        sample![vec![randn([2, 3]), uniform([2, 3], 0.0, 1.0), positive([2, 3])]],
        sample![vec![randn([3])]],
        sample![vec![ints([3], 0, 9), ints([3], 1, 4)]],
        sample![vec![randn([]), positive([])]],
        sample![vec![randn([0, 3]), positive([0, 3])]],
    ]
}
